// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer measure` as users call it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{Folder, text};
use testkit::{has, has_none};

fn measure(file: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pspacer"));
    command
        .arg("measure")
        .arg(file)
        .args(arguments)
        .output()
        .unwrap()
}

/// Makes a pcap with nanoseconds: 1000 UDP frames of 1514 bytes to port 5001, 64 bytes of each
/// kept, 500 Mbit/s at 1 Gbit/s.
fn capture() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([
        0x45, 0, 5, 0xdc, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 1, 1, 10, 1, 2, 1,
    ]);
    frame.extend([0x9c, 0x40, 0x13, 0x89, 5, 0xc8, 0, 0]);
    frame.resize(64, 0);
    let mut out = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65535, 1u32] {
        out.extend(word.to_le_bytes());
    }
    for i in 0..1000u32 {
        for word in [1_700_000_000, i * 24_224, 64, 1514] {
            out.extend(word.to_le_bytes());
        }
        out.extend(&frame);
    }
    out
}

/// Makes a pcap with the frames of [`capture`] within VXLAN network 7.
fn tunnelled() -> Vec<u8> {
    let plain = capture();
    let mut outer = vec![2, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0, 3, 8, 0];
    outer.extend([
        0x45, 0, 6, 0x0e, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
    ]);
    outer.extend([0xc3, 0x50, 0x12, 0xb5, 5, 0xfa, 0, 0]);
    outer.extend([8, 0, 0, 0, 0, 0, 7, 0]);
    let (header, records) = plain.split_at(24);
    let mut out = header.to_vec();
    for record in records.chunks(16 + 64) {
        out.extend(&record[..8]);
        out.extend(114u32.to_le_bytes());
        out.extend(1564u32.to_le_bytes());
        out.extend(&outer);
        out.extend(&record[16..]);
    }
    out
}

#[test]
fn a_tunnel_shows_the_flows_it_carries() {
    let folder = Folder::new("measure-tunnel");
    let file = folder.0.join("tunnel.pcap");
    fs::write(&file, tunnelled()).unwrap();
    let out = measure(&file, &["--flow", "udp dport 5001", "--json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let flows = json["window"]["flows"].as_array().unwrap();
    let names: Vec<_> = flows.iter().map(|flow| &flow["name"]).collect();
    assert_eq!(
        names,
        ["udp 10.1.1.1 40000 10.1.2.1 5001 in VXLAN 7", "wire"]
    );
    // Lengths are those on the captured wire, with the tunnel.
    assert_eq!(flows[0]["burstiness_bytes"], 1564.0);
}

#[test]
fn a_capture_as_text_json_and_page() {
    let folder = Folder::new("measure-capture");
    let file = folder.0.join("even.pcap");
    fs::write(&file, capture()).unwrap();
    let out = measure(&file, &["--line", "1gbit"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let shown = text(&out.stdout);
    assert!(!shown.contains('\x1b'), "colours into a pipe");
    let row = shown
        .lines()
        .find(|l| l.starts_with(" udp 10.1.1.1 40000"))
        .unwrap();
    let cells: Vec<_> = row.split_whitespace().skip(5).collect();
    assert_eq!(
        cells,
        ["500.000", "1.00", "3,028", "3,028", "3,028", "1,000"]
    );

    let page = folder.0.join("page");
    let out = measure(
        &file,
        &[
            "--line",
            "1gbit",
            "--json",
            "--report",
            page.to_str().unwrap(),
        ],
    );
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json["window"]["flows"][0]["burstiness_bytes"], 1514.0);
    assert_eq!(json["frames"], 1000);
    for name in [
        "report.html",
        "measures.json",
        "bandwidth.svg",
        "gaps.svg",
        "burstiness.svg",
    ] {
        assert!(fs::metadata(page.join(name)).unwrap().len() > 500, "{name}");
    }
    assert_eq!(fs::read(page.join("measures.json")).unwrap(), out.stdout);
}

#[test]
fn a_capture_cut_short_is_measured_up_to_there() {
    let folder = Folder::new("measure-cut");
    let file = folder.0.join("cut.pcap");
    fs::write(&file, &capture()[..24 + 80 * 10 + 7]).unwrap();
    let out = measure(&file, &["--json"]);
    assert!(out.status.success());
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json["frames"], 10);
    let expected = "only the first 824 bytes are used: the file ends inside the record at byte 824";
    has(text(&out.stderr), [expected]);
    assert!(json["damage"].as_str().unwrap().starts_with(expected));
}

#[test]
fn a_timeline_needs_its_flow_table() {
    let folder = Folder::new("measure-timeline");
    let file = folder.0.join("timeline.a");
    let mut records = Vec::new();
    for i in 0..10u64 {
        records.extend((i * 24_224_000).to_le_bytes());
        records.extend(0u64.to_le_bytes());
        for word in [1514u32, 1538, 0, 0] {
            records.extend(word.to_le_bytes());
        }
    }
    fs::write(&file, &records).unwrap();
    let out = measure(&file, &[]);
    assert_eq!(out.status.code(), Some(1));
    has(text(&out.stderr), ["needs its flow table"]);
    fs::write(folder.0.join("flows.a"), "0 udp 10.1.1.1 4 10.1.2.1 5001\n").unwrap();
    let out = measure(&file, &["--json", "--flow", "dport 5001"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        json["window"]["flows"][0]["name"],
        "udp 10.1.1.1 4 10.1.2.1 5001"
    );
    assert_eq!(json["resolution_ps"], 1);
}

/// The first bytes of a file say what it is, not its name or its folder.
#[test]
fn a_capture_is_one_whatever_it_is_called() {
    let folder = Folder::new("measure-names");
    let frames = |out: Output| {
        assert!(out.status.success(), "{}", text(&out.stderr));
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        json["frames"].as_u64()
    };
    for name in ["timeline.a", "timeline.pcap", "flows.a", "even"] {
        let file = folder.0.join(name);
        fs::write(&file, capture()).unwrap();
        assert_eq!(frames(measure(&file, &["--json"])), Some(1000), "{name}");
    }
    let gzip = Command::new("gzip")
        .arg("-c")
        .arg(folder.0.join("even"))
        .output()
        .unwrap();
    fs::write(folder.0.join("timeline.b"), gzip.stdout).unwrap();
    assert_eq!(
        frames(measure(&folder.0.join("timeline.b"), &["--json"])),
        Some(1000)
    );
}

/// A capture may be in the folder of the run that made it.
#[test]
fn the_results_of_a_run_are_not_taken_away() {
    let folder = Folder::new("measure-into-a-run");
    let file = folder.0.join("wire.pcapng");
    fs::write(&file, capture()).unwrap();
    fs::write(folder.0.join("result.json"), "hours").unwrap();
    let marker = "pspacer-files-1 run\nresult.json\nwire.pcapng\n";
    fs::write(folder.0.join(".pspacer"), marker).unwrap();
    let out = measure(&file, &["--out", folder.0.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(1));
    has(text(&out.stderr), ["of a pspacer run"]);
    assert!(file.is_file());
    assert!(folder.0.join("result.json").is_file());
}

#[test]
fn standard_input_is_read() {
    let folder = Folder::new("measure-stdin");
    let file = folder.0.join("even.pcap");
    fs::write(&file, capture()).unwrap();
    let read = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pspacer"));
        command.args(["measure", "-"]).args(arguments);
        command.current_dir(&folder.0);
        command
            .stdin(fs::File::open(&file).unwrap())
            .output()
            .unwrap()
    };
    let out = read(&["--json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        (json["frames"].as_u64(), json["file"].as_str()),
        (Some(1000), Some("-"))
    );
    fs::write(&file, &capture()[..24 + 80 * 10 + 7]).unwrap();
    has(
        text(&read(&[]).stderr),
        ["pspacer: -: only the first 824 bytes"],
    );
    fs::write(&file, "just text").unwrap();
    let wrong = read(&[]);
    assert_eq!(wrong.status.code(), Some(1));
    has(text(&wrong.stderr), ["expected a capture"]);
}

#[test]
fn mistakes_are_reported() {
    let folder = Folder::new("measure-mistakes");
    let file = folder.0.join("even.pcap");
    fs::write(&file, capture()).unwrap();
    let foreign = folder.0.join("notes.txt");
    fs::write(&foreign, "just text").unwrap();
    for (file, arguments, status, expected) in [
        (
            &file,
            &["--flow", "tcp"][..],
            1,
            "no flow matches --flow; the first of 1: udp 10.1.1.1",
        ),
        (&file, &["--flow", "udp 5001"], 2, "\"5001\" is none of tcp"),
        (&file, &["--from", "1s"], 1, "nothing lies between"),
        (&file, &["--line", "fast"], 2, "expected a rate such as"),
        (&foreign, &[], 1, "expected a capture (pcap or pcapng"),
        (
            &folder.0.join("gone.pcap"),
            &[],
            1,
            "gone.pcap: No such file",
        ),
    ] {
        let out = measure(file, arguments);
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(status), "{error}");
        has(&error, [expected]);
        assert!(out.stdout.is_empty());
    }
}

/// A recorder that states the cut length as the frame's: rates are those of the IP headers, and it is said. A mirror
/// that cuts before it encapsulates is no other.
#[test]
fn frames_whose_length_was_lost_count_by_their_ip_headers() {
    let folder = Folder::new("measure-lost-length");
    let bits_per_s = |name: &str, bytes: &[u8]| {
        let file = folder.0.join(name);
        fs::write(&file, bytes).unwrap();
        let out = measure(&file, &["--json"]);
        let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let flow = &json["window"]["flows"][0];
        (flow["rate_bps"].clone(), text(&out.stderr).to_owned())
    };
    let (right, note) = bits_per_s("whole.pcap", &capture());
    assert!(right.as_f64().is_some_and(|bps| bps > 4e8), "{right}");
    assert_eq!(note, "");
    let mut cut = capture();
    cut[24..]
        .chunks_mut(16 + 64)
        .for_each(|record| record[12..16].copy_from_slice(&[64, 0, 0, 0]));
    let (found, note) = bits_per_s("cut.pcap", &cut);
    assert_eq!(found, right);
    has(&note, ["1000 packets have IP headers that state more"]);
    let (right, _) = bits_per_s("tunnelled.pcap", &tunnelled());
    // The outer headers state what the mirror sent: 36 bytes and 64 of the frame.
    let mut mirrored = tunnelled();
    for record in mirrored[24..].chunks_mut(16 + 114) {
        record[12..16].copy_from_slice(&[114, 0, 0, 0]);
        record[16 + 16..16 + 18].copy_from_slice(&[0, 100]);
        record[16 + 38..16 + 40].copy_from_slice(&[0, 80]);
    }
    let (found, note) = bits_per_s("mirrored.pcap", &mirrored);
    assert_eq!(found, right);
    has(&note, ["mirror"]);
    // The link word says that frames have a check sequence, and fractions are beyond a second.
    let mut odd = capture();
    odd[..4].copy_from_slice(&[0xd4, 0xc3, 0xb2, 0xa1]);
    odd[20..24].copy_from_slice(&[1, 0, 0, 0x24]);
    // This writer counted it nowhere: that is no cut.
    let (_, note) = bits_per_s("odd.pcap", &odd);
    has(&note, ["fractions of a second or more"]);
    has_none(&note, ["left out", "IP headers"]);
}
