// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program of others at tcx, which is asked before any filter and ends the search: departure times
//! are refused where it stands, and verify names it where it came later.

#![allow(clippy::print_stdout, reason = "the guest's script reads it")]

use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::thread::{sleep, spawn};
use std::time::Duration;

use aya::Ebpf;
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use host_apply::{DeviceWork, observe};
use host_config::{Backend, Host, Target};
use linux_io::links::{links, named};
use linux_io::packet::observer;
use nix::sys::socket::{MsgFlags, send};
use scenario::Kernel;
use tcpsp::Tc;
use testkit::guest::test_program;
use verify::live::{Wanted, verify};
use verify::report::State;
use vmlab::{Lab, Quiet, ScriptSpec, run_script};

const MODULES: &[&str] = &["wire", "cls_bpf", "sch_fq", "sch_ingress"];
/// A program that lets each packet pass, and ends the search (TC_ACT_OK).
const PASS: &str = r#"
__attribute__((section("classifier"), used)) int pass(void *skb) { return 0; }
__attribute__((section("license"), used)) char gpl[] = "GPL";
"#;
const FILE: &str = r#"
[[device]]
name = "c1a"
backend = "edt"
default = "rest"
[[device.class]]
name = "paced"
rate = "10mbit"
match = [{ to_port = 5001, protocol = "udp" }]
[[device.class]]
name = "rest"
type = "normal"
"#;
const FRAMES: usize = 600;

/// A frame of UDP to port 5001.
fn frame() -> Vec<u8> {
    let mut bytes = vec![2; 12];
    bytes.extend([8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0x13, 0x89, 0, 26, 0, 0]);
    bytes.resize(60, 0);
    bytes
}

/// Plans the file's device.
fn plan(tc: &mut Tc) -> Result<DeviceWork, String> {
    let device = Host::read("test", FILE).unwrap().devices.remove(0);
    let observed = observe(tc, "c1a").unwrap();
    let target = Target::new(&device, Backend::Edt, &observed.port);
    DeviceWork::new(tc, observed, target, Vec::new(), false).map_err(|error| format!("{error:#}"))
}

/// Does all of it in the guest.
#[test]
#[ignore = "runs in the guest"]
fn in_guest() {
    let mut tc = Tc::open().unwrap();
    let work = plan(&mut tc).unwrap();
    let mut say = |_: &str| Ok(());
    work.begin(&mut tc, &mut say).unwrap();
    work.make(&mut tc, Duration::ZERO, &mut say).unwrap();

    let look = |tc: &mut Tc| {
        let device = Host::read("test", FILE).unwrap().devices.remove(0);
        let links = links().unwrap();
        let link = named(&links, "c1a").unwrap();
        let observed = observe(tc, "c1a").unwrap();
        let reasons = backend::reasons(tc, &observed.port, &observed.facts, &links);
        let reasons = reasons.unwrap_or_else(|error| panic!("{error}"));
        let sender = spawn(|| {
            let socket = observer("c1a").unwrap();
            for _ in 0..FRAMES {
                send(socket.as_raw_fd(), &frame(), MsgFlags::empty()).unwrap();
                sleep(Duration::from_millis(4));
            }
        });
        let wanted = Wanted {
            time_ns: 1_500_000_000,
            frames_per_s: 100_000,
        };
        let report = verify(tc, &device, &links, link, reasons, wanted);
        sender.join().unwrap();
        report.unwrap_or_else(|error| panic!("{error}"))
    };
    let before = look(&mut tc);
    assert!(before.is_well(), "{before:?}");
    assert!(
        before
            .classes
            .iter()
            .any(|class| class.counted_frames > 100)
    );

    let mut others = Ebpf::load_file("/tcx/pass.o").unwrap();
    let program: &mut SchedClassifier = others.program_mut("pass").unwrap().try_into().unwrap();
    program.load().unwrap();
    let first = TcAttachOptions::TcxOrder(LinkOrder::first());
    program
        .attach_with_options("c1a", TcAttachType::Egress, first)
        .unwrap();

    let after = look(&mut tc);
    let class = after.classes.iter().find(|class| class.name == "paced");
    let class = class.unwrap();
    assert_eq!(class.state, State::Missing, "{after:?}");
    let why = &class.why[0];
    let expected = "another program takes packets before the classifier: program pass (id";
    assert!(
        why.starts_with(expected) && why.ends_with("at tcx egress"),
        "{why}"
    );
    let refused = plan(&mut tc).err().unwrap();
    assert!(
        refused.contains("program pass (id") && refused.contains("expected none before ours"),
        "{refused}"
    );
    println!("TCX is named and refused");
}

fn check(kernel: Kernel) {
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (source, object) = (folder.path().join("pass.c"), folder.path().join("pass.o"));
    fs::write(&source, PASS).unwrap();
    let built = ["clang-19", "clang"].iter().any(|clang| {
        let mut command = Command::new(clang);
        command
            .args(["-target", "bpf", "-O2", "-g", "-c"])
            .arg(&source);
        command
            .arg("-o")
            .arg(&object)
            .status()
            .is_ok_and(|status| status.success())
    });
    assert!(built, "clang compiles the program of others");
    let (mut files, command) = test_program(folder.path(), "tcx_lab::in_guest");
    files.push((object, "/tcx/pass.o".to_owned()));
    files.push((
        here.join("../../../kernel/tests/lib.sh"),
        "/tcx/lib.sh".to_owned(),
    ));
    let files = files.iter().map(|(from, to)| (from.as_path(), to.as_str()));
    let files: Vec<_> = files.collect();
    let command = format!(
        ". /tcx/lib.sh; cable c1 1000000000 sink=1; ip link set c1a mtu 1500; \
         {command} >/tmp/said 2>&1 || {{ cat /tmp/said; exit 1; }}; grep -q 'TCX is named' /tmp/said"
    );
    let spec = ScriptSpec {
        kernel,
        modules: MODULES,
        files: &files,
        command: &command,
        seed: 1,
        timeout: Duration::from_secs(300),
        out_dir: folder.path(),
    };
    let ran = run_script(&Lab::find().unwrap(), &spec, &Quiet);
    let ran = ran.unwrap_or_else(|error| panic!("{kernel}: {error}"));
    assert_eq!(ran.status, 0, "{kernel}:\n{}", ran.output);
}

#[test]
fn a_program_of_others_at_tcx_is_named_on_6_12() {
    check(Kernel::V6_12);
}

#[test]
fn a_program_of_others_at_tcx_is_named_on_7() {
    check(Kernel::V7);
}
