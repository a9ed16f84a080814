// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer stalls --follow`: stalls as lines of JSON while the capture is written.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::common::capture::Capture;
use crate::common::{Folder, pspacer, refused, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testkit::has;

const HEADER_BYTES: usize = 24;
/// A test that waits longer has failed: the command is ended, and so are its lines.
const SECONDS_MOST: &str = "120";

/// A run of the command whose lines are read one by one.
struct Follow {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Follow {
    fn of(path: &str, more: &[&str]) -> Self {
        // `timeout` passes signals and the exit status on.
        let mut child = Command::new("timeout")
            .args([SECONDS_MOST, env!("CARGO_BIN_EXE_pspacer")])
            .args(["stalls", "--follow", path])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut follow = Self { child, lines };
        let start = follow.line();
        assert_eq!(start["type"], "start");
        assert_eq!(start["format"], "pspacer-stalls-follow-1");
        follow
    }

    /// The next line; it blocks until there is one.
    fn line(&mut self) -> Value {
        let mut line = String::new();
        assert!(
            self.lines.read_line(&mut line).unwrap() > 0,
            "the lines are over"
        );
        serde_json::from_str(&line).unwrap()
    }

    /// The lines up to the first of a type, which is last.
    fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut all = vec![];
        while all.last().is_none_or(|line: &Value| line["type"] != kind) {
            all.push(self.line());
        }
        all
    }

    /// Ends it as Ctrl-C does, and returns what it says then.
    fn end(mut self) -> Vec<Value> {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).unwrap();
        let last = self.until("summary");
        assert!(self.child.wait().unwrap().success());
        last
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A transfer from `port` that stops for half a second.
fn transfer(start_us: u64, port: u16) -> Vec<u8> {
    let mut capture = Capture::new();
    capture.transfer(start_us, port, 40, Some(20));
    capture.0
}

/// Where each packet begins in a pcap, and its end.
fn places(pcap: &[u8]) -> Vec<usize> {
    let mut at = HEADER_BYTES;
    let mut all = vec![at];
    while at < pcap.len() {
        let length: [u8; 4] = pcap[at + 8..at + 12].try_into().unwrap();
        at += 16 + u32::from_le_bytes(length) as usize;
        all.push(at);
    }
    all
}

fn causes(lines: &[Value]) -> Vec<(&str, u64)> {
    let stalls = lines.iter().filter(|line| line["type"] == "stall");
    stalls
        .map(|line| {
            (
                line["cause"].as_str().unwrap(),
                line["connection"].as_u64().unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_stall_is_reported_while_standard_input_goes_on() {
    let mut follow = Follow::of("-", &[]);
    let whole = transfer(1_000_000, 5001);
    // Half a packet more than needed to see what followed the stall.
    let places = places(&whole);
    let cut = places[places.len() - 20] + 9;
    let mut stdin = follow.child.stdin.take().unwrap();
    stdin.write_all(&whole[..cut]).unwrap();
    let stall = follow.line();
    assert_eq!(
        (&stall["type"], &stall["cause"]),
        (&"stall".into(), &"receiver-window-closed".into())
    );
    assert_eq!(stall["client"], "10.1.1.1:5001");
    let began_s = stall["start_unix_s"].as_f64().unwrap();
    assert!((1.2..1.3).contains(&began_s), "{began_s}");
    stdin.write_all(&whole[cut..]).unwrap();
    drop(stdin);
    let rest = follow.until("summary");
    assert_eq!(causes(&rest), []);
    assert_eq!(rest[0]["type"], "connection");
    assert_eq!(
        (&rest[0]["stalls"], &rest[0]["because"]),
        (&1.into(), &"capture".into())
    );
    let summary = rest.last().unwrap();
    assert_eq!(summary["packets"], places.len() as u64 - 1);
    assert_eq!(summary["by_cause"][0]["cause"], "receiver-window-closed");
    assert!(follow.child.wait().unwrap().success());
    // The stall is the one that the whole capture shows.
    let folder = Folder::new("follow-stdin");
    let all = pspacer(&["stalls", &folder.file("a.pcap", &whole), "--json"]);
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    let wanted = &all["connections"][0]["stalls"][0];
    for key in [
        "start_s",
        "duration_s",
        "side",
        "confidence",
        "evidence",
        "explanation",
    ] {
        assert_eq!(stall[key], wanted[key], "{key}");
    }
}

#[test]
fn a_file_that_grows_is_followed() {
    let folder = Folder::new("follow-file");
    let path = folder.0.join("growing.pcap");
    let mut follow = Follow::of(path.to_str().unwrap(), &[]);
    let whole = transfer(1_000_000, 5001);
    let mut file = File::create(&path).unwrap();
    // In pieces that end anywhere.
    for piece in whole.chunks(777) {
        file.write_all(piece).unwrap();
        file.flush().unwrap();
    }
    assert_eq!(follow.line()["cause"], "receiver-window-closed");
    let last = follow.end();
    assert_eq!(
        last.last().unwrap()["packets"],
        places(&whole).len() as u64 - 1
    );
}

#[test]
fn a_named_pipe_is_followed_to_its_end() {
    let folder = Folder::new("follow-fifo");
    let path = folder.0.join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let mut follow = Follow::of(path.to_str().unwrap(), &[]);
    let whole = transfer(1_000_000, 5001);
    fs::write(&path, &whole).unwrap();
    let lines = follow.until("summary");
    assert_eq!(causes(&lines), [("receiver-window-closed", 1)]);
    assert!(follow.child.wait().unwrap().success());
}

#[test]
fn a_name_that_does_not_come_is_said() {
    let folder = Folder::new("follow-awaited");
    let path = folder.0.join("later.pcapng");
    let mut follow = Follow::of(path.to_str().unwrap(), &[]);
    let note = follow.line();
    let text = note["text"].as_str().unwrap();
    assert!(
        text.contains("no capture with a packet is there yet") && text.ends_with("later.pcapng"),
        "{text}"
    );
    // It comes by the name that dumpcap makes of it.
    let file = folder.0.join("later_00001_20261123021957.pcapng");
    write(&file, &transfer(1_000_000, 5001));
    assert_eq!(follow.line()["cause"], "receiver-window-closed");
    follow.end();
}

/// Writes a file of a ring.
fn write(path: &Path, bytes: &[u8]) {
    // As tcpdump does: the file is truncated and written anew.
    let mut file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .open(path)
        .unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn the_files_of_a_ring_are_read_one_after_the_other() {
    let folder = Folder::new("follow-ring");
    let name = folder.0.join("ring.pcap");
    let mut follow = Follow::of(name.to_str().unwrap(), &[]);
    // Seven files in a ring of three; each transfer is cut in its stall, so that one file has
    // its begin and the next its end.
    let mut parts: Vec<Vec<u8>> = vec![];
    let mut packets = 0;
    for i in 0..7u16 {
        let whole = transfer(1_000_000 + u64::from(i) * 2_000_000, 5001 + i);
        let places = places(&whole);
        packets += places.len() as u64 - 1;
        let cut = places[304];
        match parts.last_mut() {
            Some(last) => last.extend(&whole[HEADER_BYTES..cut]),
            None => parts.push(whole[..cut].to_vec()),
        }
        parts.push([&whole[..HEADER_BYTES], &whole[cut..]].concat());
    }
    let count = parts.len();
    for (i, part) in parts.iter().enumerate() {
        write(&folder.0.join(format!("ring.pcap{}", i % 3)), part);
        // A file is overwritten when the reader has passed it: each but the first and the last
        // ends a stall.
        if i > 0 {
            let stall = follow.line();
            assert_eq!(stall["cause"], "receiver-window-closed", "{stall}");
            assert_eq!(stall["connection"], i as u64);
        }
    }
    let last = follow.end();
    assert_eq!(causes(&last), []);
    assert_eq!(
        last.iter()
            .filter(|line| line["type"] == "connection")
            .count(),
        count - 1
    );
    // What was written behind the last line need not have been read when the signal came.
    let read = last.last().unwrap()["packets"].as_u64().unwrap();
    assert!(
        (packets - 300..=packets).contains(&read),
        "{read} of {packets}"
    );
    assert!(last.iter().all(|line| line["type"] != "note"), "{last:?}");
}

/// A file that is overwritten before it was read to its end is said to be, and the next one is
/// read.
#[test]
fn a_file_that_is_lost_is_noted() {
    let folder = Folder::new("follow-lost");
    let name = folder.0.join("ring.pcap");
    let first = transfer(1_000_000, 5001);
    let cut = places(&first)[350];
    // Its last packet is not whole, so the reader waits within the file.
    write(&folder.0.join("ring.pcap0"), &first[..cut + 7]);
    let mut follow = Follow::of(name.to_str().unwrap(), &[]);
    assert_eq!(follow.line()["cause"], "receiver-window-closed");
    write(&folder.0.join("ring.pcap0"), &transfer(9_000_000, 5002));
    let lines = follow.until("stall");
    let notes = lines.iter().filter_map(|line| line["text"].as_str());
    let lost = "ring.pcap0 was overwritten before all of it was read";
    assert!(
        notes.into_iter().any(|note| note.contains(lost)),
        "{lines:?}"
    );
    assert_eq!(causes(&lines), [("receiver-window-closed", 2)]);
    follow.end();
}

#[test]
fn what_is_followed_is_chosen() {
    let mut follow = Follow::of(
        "-",
        &[
            "--filter",
            "port 5002",
            "--min-duration",
            "100ms",
            "--exit-code",
        ],
    );
    let mut capture = Capture::new();
    let end = capture.transfer(1_000_000, 5001, 40, Some(20));
    capture.transfer(end + 1000, 5002, 40, Some(20));
    let mut stdin = follow.child.stdin.take().unwrap();
    stdin.write_all(&capture.0).unwrap();
    drop(stdin);
    let lines = follow.until("summary");
    assert_eq!(causes(&lines), [("receiver-window-closed", 1)]);
    let client = lines.iter().find(|line| line["type"] == "stall").unwrap()["client"].clone();
    assert_eq!(client, "10.1.1.1:5002");
    assert_eq!(follow.child.wait().unwrap().code(), Some(3));
    for (arguments, expected) in [
        (
            &["--follow", "a", "b"][..],
            "--follow reads one ring of files",
        ),
        (&["--follow", "a", "--report", "x"], "cannot be used with"),
    ] {
        refused(&[&["stalls"], arguments].concat(), 2, &[expected]);
    }
}

#[test]
fn short_stalls_count_nowhere() {
    let mut follow = Follow::of("-", &["--min-duration", "3600s"]);
    let mut capture = Capture::new();
    capture.transfer(1_000_000, 5001, 40, Some(20));
    let mut stdin = follow.child.stdin.take().unwrap();
    stdin.write_all(&capture.0).unwrap();
    drop(stdin);
    let lines = follow.until("summary");
    let connection = lines.iter().find(|line| line["type"] == "connection");
    let connection = connection.unwrap();
    assert_eq!(connection["stalls"], 0, "{connection}");
    assert_eq!(connection["time_lost_s"], 0.0, "{connection}");
    assert_eq!(causes(&lines), []);
    assert!(follow.child.wait().unwrap().success());
}

#[test]
fn what_is_no_capture_is_noted() {
    let folder = Folder::new("follow-wrong");
    for bytes in [
        &b"hello, world, this is no capture at all"[..],
        &[0x1f, 0x8b, 8, 0],
    ] {
        let mut follow = Follow::of("-", &[]);
        let mut stdin = follow.child.stdin.take().unwrap();
        stdin.write_all(bytes).unwrap();
        drop(stdin);
        let lines = follow.until("summary");
        has(lines[0]["text"].as_str().unwrap(), ["expected a capture"]);
    }
    let nowhere = folder.0.join("no/such/folder/a.pcap");
    let out = pspacer(&["stalls", "--follow", nowhere.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
    has(text(&out.stderr), ["cannot read the folder"]);
    assert!(fs::read_dir(&folder.0).unwrap().next().is_none());
}
