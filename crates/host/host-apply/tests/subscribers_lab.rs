// SPDX-License-Identifier: MIT OR Apache-2.0
//! Thousands of subscribers of two addresses each, in groups, come under traffic to some of them, in
//! the laboratory's guest. Then one of them gets another rate, one another group, and most go. No
//! frame is lost, and none of a flow overtakes another of it unless its class moves.
//!
//! This program runs in the guest, too, where it applies the files: see [`in_guest`].

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]
#![allow(clippy::print_stdout, reason = "the guest's script reads it")]

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use scenario::Kernel;
use serde_json::Value;
use testkit::guest::program;

use crate::commands;
use crate::guest::run_in_guest;
use crate::record::numbered_frames;

/// How many there are in `make test` and in `make test-all`: the guest is emulated. PSPACER_SUBSCRIBERS asks
/// for another number.
const SUBSCRIBERS: usize = 1_100;
const SUBSCRIBERS_ALL: usize = 2_000;
pub const GROUPS: usize = 20;
/// Subscribers that have frames, each to a port of its own: two of one group, and some of others.
const WITH_FRAMES: [usize; 4] = [0, 1, GROUPS + 1, 1_000];
/// One of them gets another rate; another moves.
const CHANGED: usize = 1;
const MOVED: usize = 1_000;
const FIRST_PORT: usize = 5001;

/// Returns how many there are.
fn subscribers() -> usize {
    let wanted = std::env::var("PSPACER_SUBSCRIBERS");
    let usual = if testkit::everything() {
        SUBSCRIBERS_ALL
    } else {
        SUBSCRIBERS
    };
    wanted.map_or(usual, |wanted| wanted.parse().unwrap())
}

pub fn address(subscriber: usize) -> String {
    let number = subscriber + 1;
    format!("10.1.{}.{}", number / 256, number % 256)
}

/// Returns a file with so many of `subscribers`, beside those with frames.
pub fn file(subscribers: usize, all: usize, changed_mbit: u32, moved_to: usize) -> String {
    let mut text = "[[device]]\nname = \"c1a\"\nline = \"1gbit\"\nmode = \"timer\"\n".to_owned();
    for group in 0..GROUPS {
        let rates = "rate = \"60mbit\"\nceil = \"60mbit\"";
        writeln!(text, "[[device.group]]\nname = \"site{group}\"\n{rates}").unwrap();
    }
    let there = (0..subscribers).filter(|i| *i < all || WITH_FRAMES.contains(i));
    for i in there {
        let group = if i == MOVED { moved_to } else { i % GROUPS };
        let ceil = if i == CHANGED { changed_mbit } else { 2 };
        // Sockets' buffers hold more than a class keeps by default.
        write!(
            text,
            "[[device.class]]\nname = \"s{i}\"\ngroup = \"site{group}\"\nrate = \"1mbit\"\n\
             ceil = \"{ceil}mbit\"\ndeadline = \"off\"\nmatch = [{{ to = \"{}\" }}, {{ to = \"2001:db8:{i:x}::/56\" }}]\n",
            address(i)
        )
        .unwrap();
    }
    text
}

/// Does what the guest's script asks for in `SUBSCRIBERS`, and says how long it took.
#[test]
#[ignore = "runs in the guest"]
fn in_guest() {
    let words = std::env::var("SUBSCRIBERS").unwrap();
    let every = subscribers();
    let text = match words.as_str() {
        "few" => file(every, 0, 2, 0),
        "all" | "all again" => file(every, every, 2, 0),
        "one" => file(every, every, 3, 0),
        "moved" => file(every, every, 3, 7),
        _ => panic!("{words}"),
    };
    let path = Path::new("/tmp/c1a.toml");
    fs::write(path, text).unwrap();
    let start = Instant::now();
    let said = commands::apply(path);
    let took_s = start.elapsed().as_secs_f64();
    println!(
        "took: {words}: {took_s:.2} s, {} changes",
        said.lines().count()
    );
    let changes = said.lines().filter(|line| !line.contains("note:")).count();
    let expected = match words.as_str() {
        "all again" => Some(0),
        "one" => Some(1),
        // Added, redirected twice over, and taken away: it has two addresses.
        "moved" => Some(8),
        _ => None,
    };
    assert!(
        expected.is_none_or(|expected| expected == changes),
        "{said}"
    );
}

fn check(kernel: Kernel) {
    let folder = tempfile::tempdir().unwrap();
    let here = testkit::crate_folder();
    let built = std::env::current_exe().unwrap();
    let mut files = program(&built, folder.path(), "subscribers", "test");
    for (from, to) in [
        ("tests/subscribers/traffic.sh", "/subscribers/traffic.sh"),
        ("../../../kernel/tests/lib.sh", "/subscribers/lib.sh"),
    ] {
        files.push((here.join(from), to.to_owned()));
    }
    let flows: Vec<String> = WITH_FRAMES
        .iter()
        .zip(FIRST_PORT..)
        .map(|(i, port)| format!("to={}:{port},payload=1000,rate=max", address(*i)))
        .collect();
    run_in_guest(
        (kernel, &["sch_psp", "wire", "cls_flower", "cls_bpf"]),
        &files,
        &format!(
            "PSPACER_SUBSCRIBERS={} sh /subscribers/traffic.sh {}",
            subscribers(),
            flows.join(" ")
        ),
        Duration::from_secs(600),
        folder.path(),
    );
    let frames = numbered_frames(folder.path(), "subscribers");
    let moved = WITH_FRAMES.iter().zip(5001..);
    let moved = moved.filter(|(i, _)| **i == MOVED).map(|(_, port)| port);
    let moved: u16 = moved.last().unwrap();
    let sent = fs::read_to_string(folder.path().join("subscribers.sent")).unwrap();
    for (line, port) in sent.lines().zip(FIRST_PORT..) {
        let flow: Value = serde_json::from_str(line).unwrap();
        let count = flow["datagrams"].as_u64().unwrap();
        let port = u16::try_from(port).unwrap();
        let mut numbers: Vec<u64> = frames[&port].iter().map(|frame| frame.1).collect();
        // Frames of the class that is made anew overtake those that wait in the old one.
        if port == moved {
            numbers.sort_unstable();
        }
        assert!(
            numbers.iter().copied().eq(0..count),
            "{kernel}, {port}: {} of {count}",
            numbers.len()
        );
        let (first, last) = (frames[&port][0].0, frames[&port].last().unwrap().0);
        // 1042 bytes, and 24 on the wire.
        let bits = (count - 1) * 8 * 1066;
        println!(
            "{kernel}, port {port}: {count} frames, {} Mbit/s",
            bits * 1000 / (last - first)
        );
    }
    assert_eq!(sent.lines().count(), WITH_FRAMES.len());
}

#[test]
fn subscribers_come_under_traffic_on_7() {
    check(Kernel::V7);
}

#[test]
fn subscribers_come_under_traffic_on_6_1() {
    check(Kernel::V6_1);
}
