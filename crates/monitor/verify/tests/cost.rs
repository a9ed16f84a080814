// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tap costs: small frames leave a device as fast as two senders can, without it and with
//! it, and with tcpdump in its place. `make bench-verify` runs it; it judges nothing.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use host_config::Host;
use nix::ifaddrs::getifaddrs;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, MultiHeaders, SockFlag, SockType, bind, sendmmsg, socket,
};
use nix::time::{ClockId, clock_gettime};
use verify::Matcher;
use verify::tally::Tally;
use verify::tap::Tap;

const DEVICE: &str = "d0";
const SENDERS: usize = 2;
/// Frames of a system call.
const BATCH: usize = 64;
/// Short rounds, of which some meet no other work of the host.
const SECONDS: u64 = 1;
const ROUNDS: usize = 20;
/// Between two looks, and frames of one: those of `live.rs`.
const LOOK: Duration = Duration::from_millis(5);
const DRAIN_MOST: usize = 50_000;
/// Of the times that the kernel tells user space in (USER_HZ).
const TICK_NS: u64 = 10_000_000;
const FILE: &str = r#"
[[device]]
name = "d0"
line = "10gbit"
default = "rest"
[[device.class]]
name = "a"
rate = "1gbit"
match = [{ to = "10.9.0.2", to_port = 5001 }, { to = "10.10.0.0/16" }]
[[device.class]]
name = "b"
rate = "1gbit"
match = [{ to_port = 5002, protocol = "udp" }]
[[device.class]]
name = "rest"
type = "normal"
"#;

fn run(words: &[&str]) {
    let status = Command::new(words[0]).args(&words[1..]).status().unwrap();
    assert!(status.success(), "{words:?}");
}

fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    u64::try_from(time.tv_sec() * 1_000_000_000 + time.tv_nsec()).unwrap()
}

/// A frame of UDP to a port, of the least length.
fn frame(port: u16) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 1];
    bytes.extend([8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0]);
    bytes.extend([10, 9, 0, 1, 10, 9, 0, 2, 0, 9]);
    bytes.extend(port.to_be_bytes());
    bytes.extend([0, 26, 0, 0]);
    bytes.resize(60, 0);
    bytes
}

/// Sends until it is told to end; returns frames, and this thread's processor time.
fn send(port: u16, end: &AtomicBool) -> (u64, u64) {
    let socket = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::empty(),
        None,
    )
    .unwrap();
    let all = getifaddrs()
        .unwrap()
        .filter(|of| of.interface_name == DEVICE);
    let link = all
        .filter_map(|of| of.address?.as_link_addr().copied())
        .next();
    bind(socket.as_raw_fd(), &link.unwrap()).unwrap();
    let bytes = frame(port);
    let slices = [[IoSlice::new(&bytes)]; BATCH];
    let mut headers = MultiHeaders::<LinkAddr>::preallocate(BATCH, None);
    let (mut frames, begun_ns) = (0, cpu_ns());
    while !end.load(Ordering::Relaxed) {
        let (fd, flags) = (socket.as_raw_fd(), MsgFlags::empty());
        let sent = sendmmsg(fd, &mut headers, &slices, [None; BATCH], [], flags).unwrap();
        frames += sent.count() as u64;
    }
    (frames, cpu_ns() - begun_ns)
}

enum Observer {
    Nobody,
    /// The tap, with a budget of frames a second and processor.
    Tap(u32),
    Tcpdump,
}

/// What a round gave.
#[derive(Default)]
struct Found {
    frames: u64,
    sender_ns: u64,
    observer_ns: u64,
    shown: u64,
    lost: u64,
}

/// Processor time of a child, user and system.
fn child_ns(child: &Child) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let after = stat.rsplit(") ").next().unwrap();
    let ticks: u64 = after
        .split(' ')
        .skip(11)
        .take(2)
        .map(|word| word.parse::<u64>().unwrap())
        .sum();
    ticks * TICK_NS
}

fn round(observer: &Observer, index: u32) -> Found {
    let end = AtomicBool::new(false);
    let mut found = Found::default();
    thread::scope(|scope| {
        let mut tcpdump = matches!(observer, Observer::Tcpdump).then(|| {
            let words = ["-q", "-n", "-i", DEVICE, "-s", "160", "-w", "/dev/null"];
            let mut child = Command::new("tcpdump");
            let child = child.args(words).stderr(Stdio::piped()).spawn().unwrap();
            thread::sleep(Duration::from_secs(1));
            child
        });
        let mut tap = match observer {
            Observer::Tap(budget) => Some(Tap::open(DEVICE, index, *budget).unwrap()),
            _ => None,
        };
        let host = Host::read("d0.toml", FILE).unwrap();
        let device = &host.devices[0];
        let minors: Vec<u16> = device.classes.iter().map(|class| class.minor).collect();
        let matcher = Matcher::new(&device.rules, &minors, &|_| None);
        let mut tally = Tally::new(matcher, true, BTreeMap::new());
        let senders: Vec<_> = (0..SENDERS)
            .map(|n| {
                let end = &end;
                scope.spawn(move || send(5001 + n as u16, end))
            })
            .collect();
        let begun = Instant::now();
        let begun_ns = cpu_ns();
        while begun.elapsed() < Duration::from_secs(SECONDS) {
            thread::sleep(LOOK);
            if let Some(tap) = &mut tap {
                tap.drain(DRAIN_MOST, &mut |shown| {
                    tally.take(shown, device.options.default_minor);
                });
            }
        }
        found.observer_ns = cpu_ns() - begun_ns;
        if let Some(tap) = &tap {
            let totals = tap.totals().unwrap();
            (found.shown, found.lost) = (totals.shown, totals.lost);
        }
        if let Some(child) = &mut tcpdump {
            found.observer_ns = child_ns(child);
            run(&["kill", "-INT", &child.id().to_string()]);
        }
        end.store(true, Ordering::Relaxed);
        for sender in senders {
            let (frames, ns) = sender.join().unwrap();
            found.frames += frames;
            found.sender_ns += ns;
        }
        if let Some(child) = tcpdump {
            let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
            let number = |ending: &str| -> u64 {
                let line = said.lines().find(|line| line.ends_with(ending)).unwrap();
                line.split(' ').next().unwrap().parse().unwrap()
            };
            found.shown = number("captured");
            found.lost = number("dropped by kernel");
        }
    });
    found
}

#[test]
#[ignore = "a benchmark: make bench-verify"]
fn a_flood_of_small_frames() {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    // The other end takes frames to another address for somebody else's, and drops them at once.
    let words = |line: &str| run(&line.split(' ').collect::<Vec<_>>());
    words("ip link add d0 type veth peer name d1");
    words("ip link set d1 up");
    words("ip link set d0 up");
    let links = linux_io::links::links().unwrap();
    let index = links.iter().find(|link| link.name == DEVICE).unwrap().index;
    let observers = [
        ("nobody looks", Observer::Nobody),
        ("verify, 100,000 frames a second", Observer::Tap(100_000)),
        ("verify, each frame", Observer::Tap(u32::MAX)),
        ("tcpdump -s 160 -w /dev/null", Observer::Tcpdump),
    ];
    let mut found: [Vec<Found>; 4] = Default::default();
    for _ in 0..ROUNDS {
        for ((_, observer), found) in observers.iter().zip(&mut found) {
            found.push(round(observer, index));
        }
    }
    println!(
        "observer | frames a second | of that round: observer's processor | shown | lost of those | \
         a sender's ns a frame, median of {ROUNDS}"
    );
    for ((name, _), found) in observers.iter().zip(&found) {
        let share = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
        // That of most frames had least other work beside it.
        let best = found.iter().max_by_key(|found| found.frames).unwrap();
        let mut all_ns: Vec<u64> = found.iter().map(|of| of.sender_ns / of.frames).collect();
        all_ns.sort_unstable();
        println!(
            "{name} | {} | {:.1} % | {:.1} % | {:.2} % | {}",
            best.frames / SECONDS,
            share(best.observer_ns, SECONDS * 1_000_000_000),
            share(best.shown, best.frames),
            share(best.lost, best.shown + best.lost),
            all_ns[ROUNDS / 2],
        );
    }
}
