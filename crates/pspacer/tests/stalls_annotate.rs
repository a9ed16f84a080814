// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer stalls --annotate`: a copy with the findings as comments and nothing else changed.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::common::capture::Capture;
use crate::common::{Folder, pspacer, refused, root, text};
use testkit::{has, has_none};

/// A block of a pcapng file, in either byte order.
struct Block {
    kind: u32,
    bytes: Vec<u8>,
    big_endian: bool,
}

impl Block {
    fn half(&self, at: usize) -> usize {
        let half: [u8; 2] = self.bytes[at..at + 2].try_into().unwrap();
        usize::from(if self.big_endian {
            u16::from_be_bytes(half)
        } else {
            u16::from_le_bytes(half)
        })
    }

    fn word(&self, at: usize) -> usize {
        let word: [u8; 4] = self.bytes[at..at + 4].try_into().unwrap();
        let word = if self.big_endian {
            u32::from_be_bytes(word)
        } else {
            u32::from_le_bytes(word)
        };
        word as usize
    }

    fn is_packet(&self) -> bool {
        matches!(self.kind, 2 | 6)
    }

    /// The options of a packet, as code and value.
    fn options(&self) -> Vec<(usize, Vec<u8>)> {
        let mut at = 28 + self.word(20).next_multiple_of(4);
        let mut options = Vec::new();
        while at < self.bytes.len() - 4 {
            let (code, length) = (self.half(at), self.half(at + 2));
            options.push((code, self.bytes[at + 4..at + 4 + length].to_vec()));
            at += 4 + length.next_multiple_of(4);
        }
        options
    }

    fn comments(&self) -> Vec<String> {
        let comments = self.options().into_iter().filter(|(code, _)| *code == 1);
        comments.map(|(_, value)| text(&value)).collect()
    }
}

/// Reads a pcapng file by its specification, without the code under test.
fn blocks(bytes: &[u8]) -> Vec<Block> {
    let (mut at, mut big_endian) = (0, false);
    let mut all = Vec::new();
    while at < bytes.len() {
        if bytes[at..at + 4] == [10, 13, 13, 10] {
            big_endian = bytes[at + 8..at + 12] == [0x1a, 0x2b, 0x3c, 0x4d];
        }
        let block = Block {
            kind: 0,
            bytes: bytes[at..].to_vec(),
            big_endian,
        };
        let (kind, length) = (block.word(0) as u32, block.word(4));
        let bytes = bytes[at..at + length].to_vec();
        assert_eq!(bytes[4..8], bytes[length - 4..], "two lengths");
        all.push(Block {
            kind,
            bytes,
            ..block
        });
        at += length;
    }
    all
}

/// A transfer that stops for half a second, as pcap.
fn transfer() -> Vec<u8> {
    let mut capture = Capture::new();
    capture.transfer(1_000_000, 5001, 40, Some(20));
    capture.0
}

/// The packets of a pcap, as time in us and bytes.
fn packets(pcap: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut at = 24;
    let mut all = Vec::new();
    while at < pcap.len() {
        let word = |i: usize| u32::from_le_bytes(pcap[at + i..at + i + 4].try_into().unwrap());
        let time_us = u64::from(word(0)) * 1_000_000 + u64::from(word(4));
        let end = at + 16 + word(8) as usize;
        all.push((time_us, pcap[at + 8..end].to_vec()));
        at = end;
    }
    all
}

/// The same packets as pcapng: two sections of different byte orders with a length each, a
/// block of no known type, interfaces with options, packets with options of their own, and a
/// packet without a time.
fn pcapng(pcap: &[u8], has_unknown: bool) -> Vec<u8> {
    let packets = packets(pcap);
    let half = packets.len() / 2;
    let mut out = Vec::new();
    for (big_endian, packets) in [(false, &packets[..half]), (true, &packets[half..])] {
        let word = |v: u32| {
            if big_endian {
                v.to_be_bytes()
            } else {
                v.to_le_bytes()
            }
        };
        let half = |v: u16| {
            if big_endian {
                v.to_be_bytes()
            } else {
                v.to_le_bytes()
            }
        };
        let block = |kind: u32, body: &[u8]| {
            let length = word(body.len() as u32 + 12);
            [&word(kind)[..], &length, body, &length].concat()
        };
        let option = |code: u16, value: &[u8]| {
            let mut option = [&half(code)[..], &half(value.len() as u16), value].concat();
            option.resize(option.len().next_multiple_of(4), 0);
            option
        };
        let end = option(0, &[]);
        let interface = [&half(1)[..], &half(0), &word(96), &option(2, b"eth0"), &end].concat();
        let mut section = block(1, &interface);
        if has_unknown {
            section.extend(block(0xbad, &[1, 2, 3, 4]));
        }
        // A simple packet: it takes a number.
        section.extend(block(3, &[&word(4)[..], &[9; 4]].concat()));
        for (i, (time_us, packet)) in packets.iter().enumerate() {
            let captured = u32::from_le_bytes(packet[..4].try_into().unwrap());
            let length = u32::from_le_bytes(packet[4..8].try_into().unwrap());
            let mut body = [0, (time_us >> 32) as u32, *time_us as u32, captured, length]
                .into_iter()
                .flat_map(word)
                .collect::<Vec<_>>();
            body.extend(&packet[8..]);
            body.resize(body.len().next_multiple_of(4), 0);
            match i % 3 {
                0 => {}
                1 => body.extend([option(2, &word(2)), option(1, b"mine"), end.clone()].concat()),
                _ => body.extend(option(4, &[7; 8])), // without an end mark
            }
            section.extend(block(6, &body));
        }
        let length = section.len() as u64;
        let length = if big_endian {
            length.to_be_bytes()
        } else {
            length.to_le_bytes()
        };
        let header = [&word(0x1a2b_3c4d)[..], &half(1), &half(0), &length].concat();
        out.extend(block(0x0a0d_0d0a, &header));
        out.extend(section);
    }
    out
}

/// Analyses a file, writes the annotated copy, and returns it with the analysis.
fn annotated(folder: &Folder, file: &str) -> (Vec<u8>, Value) {
    let out = folder.0.join("out.pcapng");
    let run = pspacer(&[
        "stalls",
        file,
        "--json",
        "--annotate",
        out.to_str().unwrap(),
    ]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let left: Vec<_> = fs::read_dir(&folder.0).unwrap().collect();
    assert_eq!(left.len(), 2, "no temporary file stays: {left:?}");
    (
        fs::read(out).unwrap(),
        serde_json::from_slice(&run.stdout).unwrap(),
    )
}

/// The comments that the analysis asks for: how many for each packet.
fn wanted(found: &Value) -> BTreeMap<u64, usize> {
    let mut wanted = BTreeMap::new();
    for connection in found["connections"].as_array().unwrap() {
        for stall in connection["stalls"].as_array().unwrap() {
            for packet in stall["evidence"].as_array().unwrap() {
                *wanted.entry(packet.as_u64().unwrap()).or_default() += 1;
            }
        }
    }
    assert!(wanted.len() > 2, "the stall has evidence");
    wanted
}

fn ours(block: &Block) -> Vec<String> {
    let all = block.comments().into_iter();
    all.filter(|comment| comment.starts_with("pspacer stall="))
        .collect()
}

#[test]
fn a_pcap_becomes_pcapng_with_the_same_packets() {
    let folder = Folder::new("annotate-pcap");
    let pcap = transfer();
    let (copy, found) = annotated(&folder, &folder.file("a.pcap", &pcap));
    let blocks = blocks(&copy);
    let copied: Vec<_> = blocks.iter().filter(|b| b.is_packet()).collect();
    let packets = packets(&pcap);
    assert_eq!(copied.len(), packets.len());
    for (block, (time_us, packet)) in copied.iter().zip(&packets) {
        let time = ((block.word(12) as u64) << 32) | block.word(16) as u64;
        assert_eq!(time, *time_us);
        let bytes = &block.bytes[20..28 + block.word(20)];
        assert_eq!(bytes, packet, "lengths and bytes");
    }
    let wanted = wanted(&found);
    for (number, block) in (1..).zip(&copied) {
        assert_eq!(
            ours(block).len(),
            wanted.get(&number).copied().unwrap_or(0),
            "{number}"
        );
    }
    let first = copied[*wanted.keys().next().unwrap() as usize - 1].comments();
    has(&first[0], [" cause=receiver-window-closed side=receiver "]);
    // The copy is a capture of the same stalls.
    let again = pspacer(&[
        "stalls",
        folder.0.join("out.pcapng").to_str().unwrap(),
        "--json",
    ]);
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["connections"], found["connections"]);
}

#[test]
fn a_pcapng_keeps_everything_else_to_the_byte() {
    let folder = Folder::new("annotate-pcapng");
    let original = pcapng(&transfer(), true);
    let (copy, found) = annotated(&folder, &folder.file("a.pcapng", &original));
    let wanted = wanted(&found);
    let mut number = 0;
    let (before, after) = (blocks(&original), blocks(&copy));
    assert_eq!(before.len(), after.len());
    let mut section_bytes = [0u64; 2];
    let mut section = 0;
    for (before, after) in before.iter().zip(&after) {
        if before.kind == 0x0a0d_0d0a {
            section += 1;
            continue;
        }
        section_bytes[section - 1] += after.bytes.len() as u64;
        number += u64::from(matches!(before.kind, 2 | 3 | 6));
        let comments = wanted
            .get(&number)
            .copied()
            .filter(|_| before.is_packet())
            .unwrap_or(0);
        if comments == 0 {
            assert_eq!(before.bytes, after.bytes, "block of packet {number}");
            continue;
        }
        // The packet, then its own options, then ours, then the end if there was none at all.
        let fixed = 8..28 + before.word(20).next_multiple_of(4);
        assert_eq!(before.bytes[fixed.clone()], after.bytes[fixed]);
        let (own, all) = (before.options(), after.options());
        let is_end = |option: &(usize, Vec<u8>)| option.0 == 0;
        let kept: Vec<_> = own.iter().filter(|o| !is_end(o)).collect();
        assert!(
            kept.iter().copied().eq(all.iter().take(kept.len())),
            "{number}"
        );
        assert_eq!(ours(after).len(), comments);
        let has_end = own.is_empty() || own.iter().any(is_end);
        assert_eq!(all.len(), kept.len() + comments + usize::from(has_end));
    }
    // Each section's length is what it is now.
    let headers = after.iter().filter(|b| b.kind == 0x0a0d_0d0a);
    for (header, bytes) in headers.zip(section_bytes) {
        let field: [u8; 8] = header.bytes[16..24].try_into().unwrap();
        let length = if header.big_endian {
            u64::from_be_bytes(field)
        } else {
            u64::from_le_bytes(field)
        };
        assert_eq!(length, bytes);
    }
}

/// A second run replaces the comments of the first, and keeps all others.
#[test]
fn a_copy_of_a_copy_has_each_comment_once() {
    let folder = Folder::new("annotate-again");
    for bytes in [transfer(), pcapng(&transfer(), true)] {
        let file = folder.file("a", &bytes);
        let (first, second) = (folder.0.join("1.pcapng"), folder.0.join("2.pcapng"));
        let (first, second) = (first.to_str().unwrap(), second.to_str().unwrap());
        assert!(
            pspacer(&["stalls", &file, "--annotate", first])
                .status
                .success()
        );
        assert!(
            pspacer(&["stalls", first, "--annotate", second])
                .status
                .success()
        );
        let first = fs::read(first).unwrap();
        assert!(
            blocks(&first)
                .iter()
                .any(|b| b.is_packet() && !ours(b).is_empty())
        );
        assert!(first == fs::read(second).unwrap(), "nothing changes");
        // Where nothing is found any more, the earlier comments go and the rest stays.
        let third = folder.0.join("3.pcapng");
        let third = third.to_str().unwrap();
        let copy = folder.file("b", &first);
        let none = [
            "stalls",
            &copy,
            "--min-duration",
            "60s",
            "--annotate",
            third,
        ];
        assert!(pspacer(&none).status.success());
        let third = fs::read(third).unwrap();
        let comments = |bytes: &[u8], mine: bool| {
            let all = blocks(bytes).into_iter().filter(Block::is_packet);
            let all: Vec<_> = all.flat_map(|b| b.comments()).collect();
            all.iter().filter(|c| (*c == "mine") == mine).count()
        };
        assert_eq!(comments(&third, false), 0);
        assert_eq!(comments(&third, true), comments(&first, true));
    }
}

/// Comments as ptcpdump writes them name the process and its container.
#[test]
fn comments_of_ptcpdump_name_the_process() {
    let folder = Folder::new("stalls-process");
    let file = folder.file("a.pcapng", &pcapng(&transfer(), false));
    let mut copy = fs::read(&file).unwrap();
    // In place of the comment "mine" of a packet in the first section.
    let block = blocks(&copy).into_iter();
    let mut at = 0;
    let mut out = Vec::new();
    for block in block {
        let end = at + block.bytes.len();
        let is_first = block.is_packet() && block.comments() == ["mine"] && !block.big_endian;
        if is_first {
            let comment = b"PID: 42\nCmd: /usr/bin/curl\nArgs: curl a\nContainerName: web\n\
                            ContainerId: 36f0310403b1d9028334\nPodName: front\nPodNamespace: shop";
            let fixed = 28 + block.word(20).next_multiple_of(4);
            let mut body = block.bytes[8..fixed].to_vec();
            body.extend([1, 0]);
            body.extend((comment.len() as u16).to_le_bytes());
            body.extend(comment);
            body.resize(body.len().next_multiple_of(4), 0);
            body.extend([0; 4]);
            let length = (body.len() as u32 + 12).to_le_bytes();
            out.extend([&6u32.to_le_bytes()[..], &length, &body, &length].concat());
        } else {
            out.extend(&copy[at..end]);
        }
        at = end;
    }
    // The lengths of the sections are not known any more: -1.
    copy = out;
    let mut at = 0;
    for block in blocks(&copy) {
        if block.kind == 0x0a0d_0d0a {
            copy[at + 16..at + 24].fill(0xff);
        }
        at += block.bytes.len();
    }
    let file = folder.file("b.pcapng", &copy);
    let out = pspacer(&["stalls", &file]);
    let shown = text(&out.stdout);
    let expected = "process /usr/bin/curl (pid 42), container web (36f0310403b1), pod shop/front";
    assert!(shown.contains(expected), "{shown}{}", text(&out.stderr));
    let found = pspacer(&["stalls", &file, "--json"]);
    let found: Value = serde_json::from_slice(&found.stdout).unwrap();
    let process = &found["connections"][0]["processes"][0];
    assert_eq!(
        (&process["pid"], &process["container"]),
        (&42.into(), &"web".into())
    );
    assert_eq!(process["arguments"], "curl a");
}

#[test]
fn a_capture_cut_short_keeps_its_rest() {
    let folder = Folder::new("annotate-cut");
    let original = pcapng(&transfer(), true);
    let cut = &original[..original.len() - 30];
    let (copy, _) = annotated(&folder, &folder.file("a.pcapng", cut));
    let tail = 200;
    assert_eq!(copy[copy.len() - tail..], cut[cut.len() - tail..]);
}

#[test]
fn what_cannot_be_written_changes_nothing() {
    let folder = Folder::new("annotate-wrong");
    let file = folder.file("a.pcap", &transfer());
    refused(
        &["stalls", &file, "--annotate", &file],
        2,
        &["is a file that is read"],
    );
    assert_eq!(fs::read(&file).unwrap(), transfer());
    for (arguments, expected) in [
        (
            &["-", "--annotate", "x"][..],
            "--annotate copies one capture",
        ),
        (
            &[&file, &file, "--annotate", "x"],
            "--annotate copies one capture",
        ),
    ] {
        refused(&[&["stalls"], arguments].concat(), 2, &[expected]);
        let usage = "Usage: pspacer stalls [OPTIONS] <FILE>...";
        refused(&[&["stalls"], arguments].concat(), 2, &[usage]);
    }
    let other = folder.file("b.pcap", &transfer());
    let (new, read) = (folder.0.join("x"), "is a file that is read");
    let new = new.to_str().unwrap();
    for (arguments, expected) in [
        (&["--report", &file][..], read),
        (&["--other-end", &other, "--report", &other], read),
        (&["--other-end", &other, "--annotate", &other], read),
        (&["--report", new, "--annotate", new], "name one file"),
        (&["--annotate", "/dev/null"], "expected a regular file"),
    ] {
        refused(&[&["stalls", &file], arguments].concat(), 2, &[expected]);
    }
    assert_eq!(fs::read(&other).unwrap(), transfer());
    assert!(!fs::exists(new).unwrap());
    let nowhere = folder.0.join("no/such/folder/out.pcapng");
    refused(
        &["stalls", &file, "--annotate", nowhere.to_str().unwrap()],
        1,
        &["cannot write"],
    );
}

/// A full disk, as `/dev/full` is one: an output that was there stays as it was.
#[test]
fn a_full_disk_leaves_the_earlier_output() {
    let folder = Folder::new("annotate-full");
    let file = folder.file("a.pcap", &transfer());
    let out = folder.file("out.pcapng", b"earlier");
    // No file may grow beyond four blocks of 512 bytes.
    let limited = format!(
        "trap '' XFSZ; ulimit -f 4; exec {} stalls {file} --annotate {out} --json >/dev/null",
        env!("CARGO_BIN_EXE_pspacer")
    );
    let run = Command::new("sh").args(["-c", &limited]).output().unwrap();
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    has(text(&run.stderr), ["cannot write"]);
    assert_eq!(fs::read(&out).unwrap(), b"earlier");
    assert_eq!(
        fs::read_dir(&folder.0).unwrap().count(),
        2,
        "no temporary file stays"
    );
}

/// Wireshark reads the copy, and the post-dissector makes columns of the comments. Wireshark counts
/// a block that it does not know as a packet, so there is none here.
#[test]
fn tshark_filters_by_cause() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed (tools/setup.sh tshark)");
        return;
    }
    let folder = Folder::new("annotate-tshark");
    for (name, bytes) in [
        ("a.pcap", transfer()),
        ("b.pcapng", pcapng(&transfer(), false)),
    ] {
        let file = folder.file(name, &bytes);
        let out = folder.0.join("out.pcapng");
        let run = pspacer(&[
            "stalls",
            &file,
            "--json",
            "--annotate",
            out.to_str().unwrap(),
        ]);
        let found: Value = serde_json::from_slice(&run.stdout).unwrap();
        let lua = root().join("crates/stalls/stall/lua/pspacer.lua");
        let tshark = |more: &[&str]| {
            let mut command = Command::new("tshark");
            command.args(["-n", "-X", &format!("lua_script:{}", lua.display()), "-r"]);
            command.arg(&out).args(more).env("HOME", &folder.0);
            let out = command.output().unwrap();
            assert!(out.status.success(), "{}", text(&out.stderr));
            has_none(text(&out.stderr), ["Lua"]);
            text(&out.stdout)
        };
        let columns = [
            "-T",
            "fields",
            "-e",
            "frame.number",
            "-e",
            "psp.stall",
            "-e",
            "psp.side",
        ];
        let closed = "psp.cause == \"receiver-window-closed\" && psp.confidence";
        let shown = tshark(&[&["-Y", closed][..], &columns].concat());
        let rows: Vec<Vec<&str>> = shown
            .lines()
            .map(|line| line.split('\t').collect())
            .collect();
        let numbers: Vec<u64> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
        assert_eq!(
            numbers,
            wanted(&found).into_keys().collect::<Vec<_>>(),
            "{name}: {shown}"
        );
        assert!(
            rows.iter().all(|row| row[1..] == ["1.1", "receiver"]),
            "{name}: {shown}"
        );
        assert_eq!(tshark(&["-Y", "psp.cause == \"policer\""]), "");
        // The advice has a place of its own.
        let told = [
            "-Y",
            "psp.advice",
            "-T",
            "fields",
            "-e",
            "psp.advice",
            "-e",
            "psp.text",
        ];
        let told = tshark(&told);
        assert_eq!(
            told.matches("Look at the receiving application").count(),
            1,
            "{told}"
        );
        assert!(!told.contains('→'), "{told}");
        let longer = tshark(&["-Y", "psp.duration_s > 0.4 && psp.start_s < 1"]);
        assert_eq!(longer.lines().count(), numbers.len(), "{name}: {longer}");
    }
}
