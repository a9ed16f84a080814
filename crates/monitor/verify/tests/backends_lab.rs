// SPDX-License-Identifier: MIT OR Apache-2.0
//! The matcher beside every backend, in the laboratory's guest: random frames by random rules are
//! counted by the class that it names.
//!
//! This program runs in the guest, too: see [`in_guest`].

#![allow(clippy::print_stdout, reason = "the guest's script reads it")]

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsRawFd;
use std::thread::sleep;
use std::time::Duration;

use host_apply::{DeviceWork, observe};
use host_config::{Backend, Device, Host, Made, Target};
use linux_io::packet::observer;
use nix::sys::socket::{MsgFlags, send, setsockopt, sockopt::Mark};
use scenario::Kernel;
use tcpsp::Tc;
use testkit::Random;
use testkit::guest::test_program;
use verify::{Frame, Matcher};
use vmlab::{Lab, Quiet, ScriptSpec, run_script};

use crate::agrees::{Packet, SEED, packet, rule};

const DEVICE: &str = "c1a";
const MODULES: &[&str] = &[
    "sch_psp",
    "wire",
    "cls_bpf",
    "cls_flower",
    "sch_fq",
    "sch_ingress",
];
/// Sets of rules, frames by each, and frames that wait at a time: less than a class's deadline.
const SETS: usize = 15;
const OF_SET: usize = 200;
const AT_A_TIME: usize = 100;
/// Classes with rules.
const CLASSES: usize = 8;

/// Frames that each class has sent, by minor number.
type Sent = BTreeMap<u16, u64>;

/// Returns the device with classes and no rules.
fn device(backend: Backend) -> Device {
    let mut text = format!(
        "[[device]]\nname = \"{DEVICE}\"\nbackend = \"{}\"\nmode = \"timer\"\ndefault = \"rest\"\n",
        backend.word()
    );
    for number in 0..CLASSES {
        text += &format!("[[device.class]]\nname = \"c{number}\"\nrate = \"100mbit\"\n");
        text += &format!("minor = \"{:x}\"\n", 0x8000 + number);
    }
    text += "[[device.class]]\nname = \"rest\"\nminor = \"9000\"\ntype = \"normal\"\n";
    Host::read("test", &text).unwrap().devices.remove(0)
}

/// Makes the device as a target says.
fn make(tc: &mut Tc, target: impl Fn(&host_config::Port) -> Target) {
    let observed = observe(tc, DEVICE).unwrap();
    let target = target(&observed.port);
    let work = DeviceWork::new(tc, observed, target, Vec::new(), false).unwrap();
    let mut say = |_: &str| ();
    work.begin(tc, &mut say).unwrap();
    work.make(tc, Duration::from_secs(2), &mut say).unwrap();
}

fn sent(tc: &mut Tc) -> Sent {
    let ports = backend::ports(tc).unwrap_or_else(|error| panic!("{error}"));
    let classes = ports.iter().flat_map(|port| &port.classes);
    classes
        .map(|class| (class.id.minor(), class.psp.stats.sent_frames))
        .collect()
}

/// Returns a random frame as a socket can send it: all tags are in it, and it came in nowhere.
fn frame(random: &mut Random) -> Packet {
    let mut packet = packet(random);
    if let Some(tag) = packet.tag.take() {
        let mut header = [0x81, 0, 0, 0];
        header[2..].copy_from_slice(&tag.to_be_bytes());
        packet.bytes.splice(12..12, header);
    }
    packet.beside.interface = 0;
    packet.bytes.resize(packet.bytes.len().max(60), 0);
    packet
}

/// Does what the guest's script asks for in `BACKEND`.
#[test]
#[ignore = "runs in the guest"]
fn in_guest() {
    let backend = Backend::from_word(&std::env::var("BACKEND").unwrap()).unwrap();
    let (mut random, mut tc) = (Random::new(SEED), Tc::open().unwrap());
    let socket = observer(DEVICE).unwrap();
    let (mut claimed, mut frames) = (0, 0);
    for set in 0..SETS {
        let mut device = device(backend);
        let count = u16::try_from(1 + random.below(12)).unwrap();
        let last = u16::try_from(CLASSES - 1).unwrap();
        device.rules = (0..count)
            .map(|n| rule(&mut random, 0x8000 + n.min(last)))
            // No interface of the generator is there.
            .filter(|rule| !format!("{rule:?}").contains("eth7"))
            .collect();
        make(&mut tc, |port| Target::new(&device, backend, port));
        let made = observe(&mut tc, DEVICE).unwrap().port;
        let psp = made.psps()[0];
        assert_eq!(psp.made.backend(), backend);
        assert!(
            psp.made != Made::Module || psp.is_classified || device.rules.is_empty(),
            "no program classifies"
        );
        let mut matcher = Matcher::new(&device.rules, &[], &|_| None);
        let mut due = sent(&mut tc);
        for _ in 0..OF_SET / AT_A_TIME {
            let packets: Vec<Packet> = (0..AT_A_TIME).map(|_| frame(&mut random)).collect();
            for packet in &packets {
                let verdict = matcher.ask(&Frame::read(&packet.bytes, None), packet.beside);
                claimed += usize::from(verdict.class.is_some());
                *due.entry(verdict.class.unwrap_or(0x9000)).or_default() += 1;
                setsockopt(&socket, Mark, &packet.beside.mark).unwrap();
                send(socket.as_raw_fd(), &packet.bytes, MsgFlags::empty()).unwrap();
            }
            frames += packets.len();
            let total: u64 = due.values().sum();
            for _ in 0..50 {
                if sent(&mut tc).values().sum::<u64>() >= total {
                    break;
                }
                sleep(Duration::from_millis(2));
            }
            let found = sent(&mut tc);
            let read = packets
                .iter()
                .map(|p| (Frame::read(&p.bytes, None), p.beside.mark));
            assert!(
                found == due,
                "set {set}: {found:x?}, expected {due:x?}: {:#?} {:?}",
                device.rules,
                read.collect::<Vec<_>>()
            );
        }
        make(&mut tc, |_| Target::nothing());
    }
    assert!(claimed > frames / 10, "{claimed} of {frames}");
    println!("FRAMES {} {frames}, {claimed} of classes", backend.word());
}

fn check(kernel: Kernel, backends: &str) {
    let folder = tempfile::tempdir().unwrap();
    let here = testkit::crate_folder();
    let (mut files, command) = test_program(folder.path(), "backends_lab::in_guest");
    for (from, to) in [
        ("tests/backends/reach.sh", "/reach/reach.sh"),
        ("../../../kernel/tests/lib.sh", "/reach/lib.sh"),
    ] {
        files.push((here.join(from), to.to_owned()));
    }
    let files = files.iter().map(|(from, to)| (from.as_path(), to.as_str()));
    let files: Vec<_> = files.collect();
    let spec = ScriptSpec {
        kernel,
        modules: MODULES,
        files: &files,
        command: &format!("PROGRAM='{command}' sh /reach/reach.sh {backends}"),
        seed: 1,
        timeout: Duration::from_secs(600),
        out_dir: folder.path(),
    };
    let ran = run_script(&Lab::find().unwrap(), &spec, &Quiet).unwrap_or_else(|error| {
        let console = fs::read_to_string(folder.path().join("console.log"));
        panic!("{kernel}: {error}\n{}", console.unwrap_or_default())
    });
    assert_eq!(ran.status, 0, "{kernel}:\n{}", ran.output);
    println!("{kernel}:\n{}", ran.output);
}

testkit::on_every_kernel! {
    frames_are_counted_where_the_matcher_says: |kernel| check(kernel, if kernel == Kernel::V7 {
        "module bpf edt"
    } else {
        "module edt"
    });
}
