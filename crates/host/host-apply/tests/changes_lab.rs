// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random changes of a host's file under paced traffic, in the laboratory's guest: no
//! frame is lost, none leaves before its class may send it, frames of a flow whose class stays keep
//! their order, classes that no change names are as even as without changes, and `restore` leads
//! back to the same tables.
//!
//! This program runs in the guest, too, where it applies the files: see [`in_guest`].

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]
#![allow(clippy::print_stdout, reason = "the guest's script reads it")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use host_apply::Command as Apply;
use host_config::Backend;
use nix::time::{ClockId, clock_gettime};
use scenario::Kernel;
use serde_json::Value;
use testkit::guest::{compile, program};

use crate::commands::{self, run};
use crate::guest::run_in_guest;
use crate::record::{Frame, numbered_frames as frames};

/// The modules that a backend needs, and the cable.
fn modules(backend: Backend) -> &'static [&'static str] {
    match backend {
        Backend::Module => &["sch_psp", "wire", "cls_flower", "cls_fw", "cls_bpf"],
        Backend::Bpf => &["wire"],
        Backend::Edt => &["wire", "sch_fq", "sch_ingress", "cls_bpf"],
    }
}
/// A change costs some 100 ms of processor time; PSPACER_CHANGES asks for another number.
const CHANGES: usize = 60;
/// Bytes of a frame: 1000 of payload, UDP, IP, Ethernet.
const FRAME_BYTES: u64 = 1042;
/// A tick of these kernels. Where one ends a softirq, what is to be sent may wait for the process that
/// changes tables until the next interrupt: 0.9 ms was seen.
const TICK_NS: u64 = 4_000_000;
/// What a socket of the sender has room for: traffic.sh.
const SNDBUF_BYTES: u64 = 60_000;
/// Ports of the classes that no change names, and their rates.
const STEADY: [(u16, u64); 2] = [(5001, 20), (5002, 35)];
/// Ports of the classes whose rate and ceil change.
const CHANGED: [u16; 2] = [5003, 5004];
/// Ports whose frames go to other classes, which come and go.
const MOVING: [u16; 2] = [5005, 5006];
/// Port of a class with launch times, which no frame has.
const LAUNCHED: u16 = 5999;

/// The least byte queue limit of the device that files are applied to.
const LIMIT_MIN: &str = "/sys/class/net/c1a/queues/tx-0/byte_queue_limits/limit_min";

/// Pseudo-random numbers (Knuth's MMIX constants), the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A class whose frames have a port of their own: rate and ceil in Mbit/s.
type Rate = (u64, Option<u64>);

/// What a file says.
struct File {
    changed: [Rate; 2],
    /// Classes that come and go, as lines of the file.
    going: [Option<String>; 3],
    /// Which of them has the frames of a port of [`MOVING`].
    class_of: [usize; 2],
    /// Matches of no frame that is sent.
    others: Vec<u64>,
    /// Where in the file each class is.
    order: Vec<usize>,
    guard: bool,
    /// `byte_queue_limit_min`, if the file says it.
    limit: Option<&'static str>,
    /// `txtime_late` of a class whose frames have launch times, in us.
    late_us: u64,
    backend: Backend,
}

/// Returns the backend that the guest's script asks for.
fn backend() -> Backend {
    let wanted = std::env::var("CHANGES_BACKEND").unwrap_or_default();
    let all = Backend::ALL.into_iter();
    let mut named = all.filter(|backend| backend.word() == wanted);
    named.next().unwrap_or(Backend::Module)
}

impl File {
    fn first() -> Self {
        Self {
            changed: [
                (10, None),
                (15, Some(25).filter(|_| backend() != Backend::Edt)),
            ],
            going: [None, None, None],
            class_of: [0, 1],
            others: Vec::new(),
            order: (0..7).collect(),
            guard: false,
            limit: None,
            late_us: 200,
            backend: backend(),
        }
    }

    /// A file, and one that asks for changes of every kind after it.
    fn before_second() -> Self {
        let class = |rate: u64| Some(format!("rate = \"{rate}mbit\""));
        Self {
            going: [class(5), class(6), None],
            others: vec![3, 6, 4],
            ..Self::first()
        }
    }

    fn second() -> Self {
        let rt = "type = \"rt\"\nreserve = \"2000b\"".to_owned();
        Self {
            changed: [(12, Some(14)), (15, Some(25))],
            going: [Some("rate = \"5mbit\"".to_owned()), None, Some(rt)],
            class_of: [2, 0],
            others: vec![3, 9, 12, 8, 6],
            order: vec![0, 4, 2, 3, 6, 1, 5],
            guard: true,
            limit: Some("64kb"),
            late_us: 300,
            backend: backend(),
        }
    }

    /// Makes a change, of one of `kinds`: (r)ate, (c)lass, (m)atch, (o)rder, (g)uard of the qdisc, (n)othing.
    fn change(&mut self, kinds: &str, random: &mut Random) {
        let has_periods = self.backend != Backend::Edt;
        let has_ceil = self.backend != Backend::Edt;
        let mut pick = |end: usize| usize::try_from(random.below(end as u64)).unwrap();
        match kinds.as_bytes()[pick(kinds.len())] {
            b'r' => {
                let rate = 5 + pick(26) as u64;
                let ceil = Some(rate + pick(20) as u64);
                let ceil = ceil.filter(|ceil| has_ceil && ceil % 2 == 0);
                self.changed[pick(2)] = (rate, ceil);
                self.late_us = 100 + pick(900) as u64;
            }
            b'c' => {
                let class = &mut self.going[pick(3)];
                *class = match (class.is_some(), pick(5)) {
                    (true, 0 | 1) => None,
                    (_, 2) => Some("type = \"normal\"".to_owned()),
                    (_, 3) if has_periods => Some(format!(
                        "type = \"rt\"\nreserve = \"{}b\"",
                        2000 + pick(900)
                    )),
                    _ => Some(format!("rate = \"{}mbit\"", 4 + pick(17))),
                };
            }
            b'm' if pick(2) == 0 => self.class_of[pick(2)] = pick(3),
            b'm' if self.others.len() < 8 && pick(2) == 0 => {
                let at = pick(self.others.len() + 1);
                self.others.insert(at, random.below(250));
            }
            b'm' if !self.others.is_empty() => {
                self.others.remove(pick(self.others.len()));
            }
            b'o' => self.order.swap(pick(7), pick(7)),
            b'g' if has_ceil => self.guard = !self.guard,
            _ => {}
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "[[device]]\nname = \"c1a\"\ndefault = \"rest\"\nguard = {}\nbackend = \"{}\"\n",
            self.guard,
            self.backend.word()
        );
        if let Some(limit) = self.limit {
            writeln!(text, "byte_queue_limit_min = \"{limit}\"").unwrap();
        }
        let udp = |port: u16| format!("{{ to_port = {port}, protocol = \"udp\" }}");
        // Sockets' buffers hold more than a class keeps by default. Launch times have none.
        let waits = |lines: &str| {
            let has_deadline = lines.contains("rate = ") && !lines.contains("txtime");
            if has_deadline {
                "\ndeadline = \"2s\""
            } else {
                ""
            }
        };
        let mut class = |name: String, lines: &str, matches: &[String]| {
            let matches = matches.join(", ");
            let waits = waits(lines);
            let named = format!(
                "[[device.class]]\nname = \"{name}\"\n{lines}{waits}\nmatch = [{matches}]\n"
            );
            text.push_str(&named);
        };
        for at in &self.order {
            match *at {
                at @ 0..2 => {
                    let (port, mbit) = STEADY[at];
                    let rate = format!("rate = \"{mbit}mbit\"");
                    class(format!("steady{port}"), &rate, &[udp(port)]);
                }
                at @ 2..4 => {
                    let (rate, ceil) = self.changed[at - 2];
                    let mut lines = format!("rate = \"{rate}mbit\"");
                    if let Some(ceil) = ceil {
                        write!(lines, "\nceil = \"{ceil}mbit\"").unwrap();
                    }
                    class(format!("changed{at}"), &lines, &[udp(CHANGED[at - 2])]);
                }
                at => {
                    let Some(lines) = &self.going[at - 4] else {
                        continue;
                    };
                    let mut matches: Vec<String> = (0..2)
                        .filter(|port| self.class_of[*port] == at - 4)
                        .map(|port| udp(MOVING[port]))
                        .collect();
                    let others = self
                        .others
                        .iter()
                        .filter(|other| **other % 3 == (at - 4) as u64);
                    matches.extend(others.map(|other| format!("{{ to = \"10.9.{other}.0/24\" }}")));
                    class(format!("going{at}"), lines, &matches);
                }
            }
        }
        if self.backend == Backend::Module {
            let launch = format!("txtime = \"tai\"\ntxtime_late = \"{}us\"", self.late_us);
            class(
                "launched".to_owned(),
                &format!("rate = \"1mbit\"\n{launch}"),
                &[udp(LAUNCHED)],
            );
        }
        class("rest".to_owned(), "type = \"normal\"", &[]);
        text
    }

    /// The highest rate of a class of [`CHANGED`], in Mbit/s.
    fn highest(&self, at: usize) -> u64 {
        let (rate, ceil) = self.changed[at];
        ceil.unwrap_or(rate)
    }
}

fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}

fn apply(file: &File) -> String {
    let path = PathBuf::from("/tmp/c1a.toml");
    fs::write(&path, file.text()).unwrap();
    commands::apply(&path)
}

/// Checks the byte queue limit of the device, and whether it is kept that it was another before.
fn has_limit(bytes: u64, is_kept: bool) {
    let limit = fs::read_to_string(LIMIT_MIN).unwrap();
    assert_eq!(limit.trim(), bytes.to_string());
    let files = fs::read_dir("/run/pspacer").unwrap();
    let mut names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let kept = names.find(|name| name.starts_with("byte-queue-limits.") && name.ends_with(".json"));
    assert_eq!(kept.is_some(), is_kept, "{kept:?}");
}

/// Sets a device up anew, by the file before [`File::second`].
fn reset() {
    commands::remove("c1a");
    has_limit(0, false);
    apply(&File::before_second());
}

/// Does what the guest's script asks for in `CHANGES`.
#[test]
#[ignore = "runs in the guest"]
fn in_guest() {
    let words = std::env::var("CHANGES").unwrap();
    let words: Vec<&str> = words.split_whitespace().collect();
    let save = |to: &str| {
        let devices = vec!["c1a".to_owned()];
        let saved = run(&Apply::Save(host_apply::SaveArgs { devices }));
        fs::write(to, saved).unwrap();
    };
    match words[..] {
        ["first"] => {
            apply(&File::first());
        }
        ["second"] => {
            apply(&File::second());
        }
        ["expect"] => {
            reset();
            apply(&File::second());
            save("/tmp/expected");
            reset();
        }
        ["again"] => {
            apply(&File::second());
            has_limit(65_536, true);
            save("/tmp/found");
            let [expected, found] =
                ["/tmp/expected", "/tmp/found"].map(|path| fs::read_to_string(path).unwrap());
            assert_eq!(found, expected);
            reset();
        }
        ["save"] => save("/tmp/saved"),
        ["save", "again"] => save("/tmp/saved-again"),
        ["restore"] => {
            run(&Apply::Restore(host_apply::RestoreArgs {
                guard: false,
                file: "/tmp/saved".into(),
                after: None,
                drain: 10_000_000_000,
            }));
        }
        ["random", count, kinds] => {
            let (mut file, mut random) = (File::first(), Random(1));
            let (mut log, mut steps) = (String::new(), String::new());
            let start = now_ns();
            for _ in 0..count.parse().unwrap() {
                file.change(kinds, &mut random);
                let from = now_ns();
                steps.push_str(&apply(&file));
                let (to, highest) = (now_ns(), [0, 1].map(|at| file.highest(at)));
                writeln!(log, "{from} {to} {} {}", highest[0], highest[1]).unwrap();
                sleep(Duration::from_micros(random.below(2000)));
            }
            let took = Duration::from_nanos((now_ns() - start).try_into().unwrap());
            fs::write("/tmp/took", format!("{:.3}", took.as_secs_f64())).unwrap();
            fs::write("/out/applied", log).unwrap();
            fs::write("/out/steps", steps).unwrap();
        }
        _ => panic!("{words:?}"),
    }
}

/// Returns by how many bytes frames exceed, at most, what the rates allow: the largest queue before
/// a bottleneck of these rates in Mbit/s, each from an instant on. A new rate begins anew: the frame
/// that waited for its time by the old one goes by that time.
fn excess_bytes(frames: &[Frame], rates: &[(u64, u64)]) -> u64 {
    // In bits x 1000: a Mbit/s drains one such unit in a nanosecond.
    let (mut level, mut most) = (0, 0);
    let mut last = frames[0].0;
    let mut next = 0;
    let mut mbit = rates[0].1;
    for (now, _) in frames {
        while let Some((from, rate)) = rates.get(next).filter(|(from, _)| from <= now) {
            if *from > last {
                level = u64::saturating_sub(level, (from - last) * mbit);
                last = *from;
            }
            if mbit != *rate {
                level = 0;
            }
            mbit = *rate;
            next += 1;
        }
        level = level.saturating_sub((now - last) * mbit);
        last = *now;
        level += FRAME_BYTES * 8000;
        most = most.max(level);
    }
    most / 8000
}

/// Returns for how long no frame left at most while one waited, in ns. Of the fastest of [`STEADY`] one
/// always waits.
fn silence_ns(frames: &BTreeMap<u16, Vec<Frame>>) -> u64 {
    let end = frames[&STEADY[1].0].last().unwrap().0;
    let starts = frames.values().flatten().map(|(start, _)| *start);
    let mut starts: Vec<u64> = starts.filter(|start| *start <= end).collect();
    starts.sort_unstable();
    let gaps = starts.windows(2).map(|two| two[1] - two[0]);
    gaps.max().unwrap()
}

/// Runs a script in the guest, and returns the folder with what it left.
fn ran(on: (Kernel, &[&str]), script: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let here = testkit::crate_folder();
    let built = std::env::current_exe().unwrap();
    let mut files = program(&built, folder.path(), "changes", "test");
    let killer = folder.path().join("kill-at");
    compile(&here.join("tests/changes/kill-at.c"), &killer);
    files.push((killer, "/changes/kill-at".to_owned()));
    for (from, to) in [
        ("tests/changes/traffic.sh", "/changes/traffic.sh"),
        ("tests/changes/killed.sh", "/changes/killed.sh"),
        ("../../../kernel/tests/lib.sh", "/changes/lib.sh"),
    ] {
        files.push((here.join(from), to.to_owned()));
    }
    run_in_guest(
        on,
        &files,
        &format!("sh /changes/{script}"),
        Duration::from_secs(900),
        folder.path(),
    );
    folder
}

/// Checks that every frame that was sent left, and returns those of each port.
fn all_frames(kernel: Kernel, folder: &Path, name: &str) -> BTreeMap<u16, Vec<Frame>> {
    let frames = frames(folder, name);
    let sent = fs::read_to_string(folder.join(format!("{name}.sent"))).unwrap();
    for line in sent.lines() {
        let flow: Value = serde_json::from_str(line).unwrap();
        let port = flow["to"].as_str().unwrap().rsplit(':').next().unwrap();
        let port: u16 = port.parse().unwrap();
        let count = flow["datagrams"].as_u64().unwrap();
        let mut numbers: Vec<u64> = frames[&port].iter().map(|frame| frame.1).collect();
        let is_ordered = numbers.is_sorted();
        assert!(
            is_ordered || MOVING.contains(&port),
            "{kernel}, {name}: frames to {port} are reordered"
        );
        numbers.sort_unstable();
        let is_whole = numbers.iter().copied().eq(0..count);
        assert!(
            is_whole,
            "{kernel}, {name}: {} of {count} frames to {port}",
            numbers.len()
        );
    }
    frames
}

fn check(kernel: Kernel, backend: Backend) {
    let count = std::env::var("PSPACER_CHANGES").map_or(CHANGES, |count| count.parse().unwrap());
    let word = backend.word();
    let folder = ran(
        (kernel, modules(backend)),
        &format!("traffic.sh {count} rcmog {word}"),
    );
    let changes = all_frames(kernel, folder.path(), "changes");
    let control = all_frames(kernel, folder.path(), "control");
    let silence = [&changes, &control].map(silence_ns);
    println!("{kernel}: no frame for {silence:?} ns with changes and without");
    assert!(silence[0] < TICK_NS, "{kernel}: {silence:?}");
    // What the host was late by in one piece is made up for.
    let late_ns = silence[0].saturating_sub(silence[1]);
    for (port, mbit) in STEADY {
        let of = |frames: &BTreeMap<u16, Vec<Frame>>| excess_bytes(&frames[&port], &[(0, mbit)]);
        let (with, without) = (of(&changes), of(&control));
        println!(
            "{kernel}, port {port}: burstiness {with} bytes, without changes {without}, {} and {} frames",
            changes[&port].len(),
            control[&port].len()
        );
        let most = without + FRAME_BYTES + late_ns * mbit / 8000;
        assert!(with <= most, "{kernel}, port {port}: {most}");
    }
    let log = fs::read_to_string(folder.path().join("applied")).unwrap();
    for (at, port) in CHANGED.into_iter().enumerate() {
        let mut mbit = File::first().highest(at);
        let mut rates = vec![(0, mbit)];
        for line in log.lines() {
            let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            let next = numbers[2 + at];
            // While the change is made either rate may hold.
            rates.push((numbers[0], mbit.max(next)));
            rates.push((numbers[1], next));
            mbit = next;
        }
        let excess = excess_bytes(&changes[&port], &rates);
        println!("{kernel}, port {port}: {excess} bytes more than its rates allow");
        // Three by its ceil, and one that its rate has to make up for: core/src/borrow.c. What
        // waits in fq leaves by the rate at which it came.
        let waits = if backend == Backend::Edt {
            SNDBUF_BYTES
        } else {
            0
        };
        let most = 4 * FRAME_BYTES + waits;
        assert!(excess <= most, "{kernel}, port {port}: {excess}");
    }
    let steps = fs::read_to_string(folder.path().join("steps")).unwrap();
    let made = |what: &str| steps.lines().filter(|line| line.contains(what)).count();
    assert!(made("add     class") > 0 && made("delete  class") > 0);
    assert!(made("change  qdisc") > 0 || backend == Backend::Edt);
    assert!(made("change  class") > 0 && made("add     match") > 0 && made("delete  match") > 0);
    println!(
        "{kernel}: {} changes: {:?}",
        log.lines().count(),
        [
            "add     class",
            "change  class",
            "delete  class",
            "add     match",
            "change  match",
            "delete  match",
            "change  qdisc"
        ]
        .map(|what| (what, made(what)))
    );
}

testkit::on_every_kernel! {
    changes_of_the_file_under_traffic: |kernel| check(kernel, Backend::Module);
    a_command_killed_at_any_system_call_ends_in_the_same_tables: killed;
}

/// At all calls, or at one in so many from the first on.
fn killed(kernel: Kernel) {
    let every = if testkit::everything() { 1 } else { 12 };
    ran(
        (kernel, modules(Backend::Module)),
        &format!("killed.sh {every}"),
    );
}

#[test]
fn changes_of_the_file_under_traffic_by_a_qdisc_of_bpf_on_7() {
    check(Kernel::V7, Backend::Bpf);
}

#[test]
fn changes_of_the_file_under_traffic_by_departure_times_on_6_12() {
    check(Kernel::V6_12, Backend::Edt);
}
