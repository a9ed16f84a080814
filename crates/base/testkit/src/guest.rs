// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test that runs in the laboratory's guest: the program of the tests itself, as a command there.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]
#![allow(clippy::print_stdout, reason = "tests say what they measured")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a program without what a debugger needs, which is written to `folder` as `name`, and what
/// it is linked with, each with where it has to be in the guest: below `/GUEST`, where `ld.so` starts
/// it.
///
/// # Panics
/// Without `strip` or `ldd`.
pub fn program(built: &Path, folder: &Path, guest: &str, name: &str) -> Vec<(PathBuf, String)> {
    let stripped = folder.join(name);
    let strip = Command::new("strip")
        .arg("-o")
        .arg(&stripped)
        .arg(built)
        .status();
    assert!(strip.is_ok_and(|status| status.success()), "strip");
    let linked = Command::new("ldd").arg(built).output();
    let linked = linked.unwrap_or_else(|error| panic!("ldd: {error}"));
    let linked = String::from_utf8_lossy(&linked.stdout);
    let mut files = vec![(stripped, format!("/{guest}/{name}"))];
    for line in linked.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [name, "=>", path, _] => files.push((path.into(), format!("/{guest}/{name}"))),
            [path, _] if path.contains("ld-linux") => {
                files.push((path.into(), format!("/{guest}/ld.so")));
            }
            _ => {}
        }
    }
    assert!(files.len() > 2, "{linked}");
    files
}

/// Returns this program as [`program`] does, and the command that runs the ignored test `name` there.
///
/// # Panics
/// Without `strip` or `ldd`.
pub fn test_program(folder: &Path, name: &str) -> (Vec<(PathBuf, String)>, String) {
    let built = std::env::current_exe().unwrap_or_else(|error| panic!("this program: {error}"));
    let files = program(&built, folder, "test", "program");
    let command = format!(
        "/test/ld.so --library-path /test /test/program --ignored --exact --nocapture {name}"
    );
    (files, command)
}

/// Compiles a program in C that needs no file of the guest.
///
/// # Panics
/// If it does not compile without a warning.
pub fn compile(source: &Path, program: &Path) {
    let mut cc = Command::new("cc");
    cc.args(["-static", "-std=gnu11", "-O2"]);
    cc.args(["-Wall", "-Wextra", "-Werror", "-o"]);
    let status = cc.arg(program).arg(source).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "cc {}",
        source.display()
    );
}

/// Returns Debian's plugins of container networks of these names, and the C library that they are
/// linked with, each with where it has to be in the guest: plugins below `/cni/bin`.
pub fn plugins(names: &[&str]) -> Vec<(PathBuf, String)> {
    let plugins = names.iter().map(|name| {
        let from = Path::new("/usr/lib/cni").join(name);
        (from, format!("/cni/bin/{name}"))
    });
    let libraries = [
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/x86_64-linux-gnu/libc.so.6",
    ];
    let libraries = libraries.map(|library| (library.into(), library.to_owned()));
    plugins.chain(libraries).collect()
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A frame of the cable's record: when it leaves, its bytes, the port that it goes to.
pub type Frame = (u64, u32, u16);

/// Returns the frames of a record that a guest has left in `folder`.
///
/// # Panics
/// If the record is not there, or is none.
pub fn frames(folder: &Path, name: &str) -> Vec<Frame> {
    let flows = read(&folder.join(format!("{name}.flows")));
    let flows = String::from_utf8_lossy(&flows);
    let ports: Vec<u16> = flows
        .lines()
        .map(|line| {
            let port = line.split_whitespace().nth(5);
            port.and_then(|port| port.parse().ok()).unwrap_or(0)
        })
        .collect();
    let records = read(&folder.join(format!("{name}.timeline")));
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    records
        .chunks_exact(32)
        .map(|record| {
            let start_ps = u64::from_le_bytes(record[..8].try_into().unwrap());
            let flow = usize::try_from(word(&record[24..28])).unwrap();
            let port = ports.get(flow).copied().unwrap_or(0);
            (start_ps / 1000, word(&record[16..20]), port)
        })
        .collect()
}

/// Returns the bytes of the first second of a transfer to a port, and the most that they are ahead of
/// a rate, anywhere.
///
/// # Panics
/// If there is no such transfer.
pub fn first_second(frames: &[Frame], port: u16, mbit: u64) -> (u64, f64) {
    let of_transfer: Vec<_> = frames.iter().filter(|frame| frame.2 == port).collect();
    assert!(!of_transfer.is_empty(), "no frames to port {port}");
    let first_ns = of_transfer[0].0;
    let (mut sent, mut lowest, mut most) = (0u64, f64::MAX, 0.0f64);
    for (start_ns, bytes, _) in of_transfer {
        let since_ns = start_ns - first_ns;
        if since_ns >= 1_000_000_000 {
            break;
        }
        let due = since_ns as f64 * mbit as f64 / 8000.0;
        lowest = lowest.min(sent as f64 - due);
        sent += u64::from(*bytes);
        most = most.max(sent as f64 - due - lowest);
    }
    (sent, most)
}

/// Returns when the frames to a port leave.
pub fn starts(frames: &[Frame], port: u16) -> Vec<u64> {
    let of_port = frames.iter().filter(|frame| frame.2 == port);
    of_port.map(|frame| frame.0).collect()
}

/// Checks that what was sent at `starts_ns` left when the core says: 99 of 100 at most `late_ns`
/// later, the last one too. Lateness is fq's timer's, so it may strike a frame, but must not move
/// those behind it. The first may itself be late, so the earliest of all counts as on time.
pub fn check_times(what: &str, starts_ns: &[u64], predicted_ns: &[u64], late_ns: u64) {
    assert_eq!(starts_ns.len(), predicted_ns.len());
    assert!(starts_ns.len() > 20, "{what}: {} frames", starts_ns.len());
    let late = starts_ns
        .iter()
        .zip(predicted_ns)
        .map(|(start, due)| i128::from(*start) - i128::from(*due));
    let earliest = late.clone().min().unwrap();
    let late: Vec<i128> = late.map(|late| late - earliest).collect();
    let worst = late.iter().max().unwrap();
    let over = late.iter().filter(|late| **late > i128::from(late_ns));
    let over = over.count();
    println!(
        "{what}: {} departures, {over} late by more than {late_ns} ns, the worst by {worst} ns",
        starts_ns.len(),
    );
    assert!(over * 100 <= late.len(), "{what}: {over} of {}", late.len());
    let last = late.last().unwrap();
    assert!(
        *last <= i128::from(late_ns),
        "{what}: the last by {last} ns"
    );
}
