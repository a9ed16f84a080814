// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer stalls`: which packets are read, how many connections are listed, sums by pair of
//! hosts, and a capture from the other end.

use std::fs;

use serde_json::Value;

use crate::common::capture::Capture;
use crate::common::{Folder, json, pspacer, refused, text, well};
use testkit::has;

fn stalls(arguments: &[&str]) -> Value {
    json(&[&["stalls", "--json"], arguments].concat())
}

/// Three transfers one after the other, at 1, 3 and 5 s: the first stops for half a second, the
/// others never.
fn three() -> Vec<u8> {
    let mut capture = Capture::new();
    for (start_s, closed_at) in [(1, Some(20)), (3, None), (5, None)] {
        capture.transfer(start_s * 1_000_000, 5000 + start_s as u16, 40, closed_at);
    }
    capture.0
}

fn clients(found: &Value) -> Vec<&str> {
    let connections = found["connections"].as_array().unwrap().iter();
    connections.map(|c| c["client"].as_str().unwrap()).collect()
}

/// The records of a pcap: time in us, and the bytes from the lengths on.
fn records(pcap: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut at = 24;
    let mut all = vec![];
    while at < pcap.len() {
        let word = |i: usize| u32::from_le_bytes(pcap[at + i..at + i + 4].try_into().unwrap());
        let end = at + 16 + word(8) as usize;
        let time_us = u64::from(word(0)) * 1_000_000 + u64::from(word(4));
        all.push((time_us, pcap[at + 8..end].to_vec()));
        at = end;
    }
    all
}

fn pcap(records: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut out = Capture::new().0;
    for (time_us, record) in records {
        out.extend(((time_us / 1_000_000) as u32).to_le_bytes());
        out.extend(((time_us % 1_000_000) as u32).to_le_bytes());
        out.extend(record);
    }
    out
}

#[test]
fn a_time_is_chosen() {
    let folder = Folder::new("choice-time");
    let file = folder.file("a.pcap", &three());
    let of = |arguments: &[&str]| {
        let found = stalls(&[&[file.as_str()], arguments].concat());
        clients(&found)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let [one, two, three] = ["10.1.1.1:5001", "10.1.1.1:5003", "10.1.1.1:5005"];
    assert_eq!(of(&["--from", "1.5"]), [two, three]);
    assert_eq!(of(&["--to", "1.5s"]), [one]);
    assert_eq!(of(&["--from", "1500ms", "--to", "3.5"]), [two]);
    // The capture begins a second after 1970 did.
    assert_eq!(of(&["--from", "1970-01-01T00:00:02.5Z"]), [two, three]);
    assert_eq!(of(&["--to", "1970-01-01T02:00:02.5+02:00"]), [one]);
    // What is left keeps its numbers.
    let whole = stalls(&[&file, "--flow", ":5001"]);
    let later = stalls(&[&file, "--from", "0.02"]);
    let evidence = |found: &Value| found["connections"][0]["stalls"][0]["evidence"].clone();
    assert_eq!(evidence(&whole), evidence(&later));
    assert_eq!(whole["packets"], later["packets"]);

    let none = pspacer(&["stalls", &file, "--from", "100"]);
    assert_eq!(none.status.code(), Some(1));
    has(
        text(&none.stderr),
        ["--from, --to or --filter leave packets out"],
    );
    for (arguments, expected) in [
        (["--from", "2", "--to", "1"], "--from is not before --to"),
        (
            ["--from", "yesterday", "--to", "1"],
            "expected seconds since the capture's start",
        ),
    ] {
        refused(
            &[&["stalls", &file][..], &arguments].concat(),
            2,
            &[expected],
        );
    }
}

#[test]
fn a_capture_filter_chooses_packets() {
    let folder = Folder::new("choice-filter");
    let file = folder.file("a.pcap", &three());
    let found = stalls(&[&file, "--filter", "tcp port 5003 or 5005 and host 10.1.2.1"]);
    assert_eq!(clients(&found), ["10.1.1.1:5003", "10.1.1.1:5005"]);
    let expected = "port must be followed by 0 to 65535, not \"http\"";
    refused(&["stalls", &file, "--filter", "port http"], 2, &[expected]);
}

#[test]
fn the_worst_are_listed_and_all_are_summed_up() {
    let folder = Folder::new("choice-top");
    let mut capture = Capture::new();
    for i in 0..4u16 {
        let start_us = 1_000_000 + u64::from(i) * 3_000_000;
        capture.transfer(start_us, 5001 + i, 40, (i % 2 == 0).then_some(20));
    }
    let one = records(&capture.0);
    // The same between two other hosts, a tenth of a second later, but for the last transfers.
    let other = one.iter().take(700).map(|(time_us, record)| {
        let mut record = record.clone();
        for at in 0..record.len() - 4 {
            if record[at..at + 4] == [10, 1, 1, 1] {
                record[at + 3] = 9;
            }
        }
        (time_us + 100_000, record)
    });
    let mut both: Vec<_> = other.chain(one.iter().cloned()).collect();
    both.sort_by_key(|(time_us, _)| *time_us);
    let file = folder.file("a.pcap", &pcap(&both));
    let found = stalls(&[&file, "--top", "1"]);
    assert_eq!(clients(&found).len(), 1);
    let all = stalls(&[&file]);
    for key in ["by_cause", "by_side", "by_host_pair"] {
        assert_eq!(found[key], all[key], "{key}");
    }
    let pairs = all["by_host_pair"].as_array().unwrap();
    let row = |pair: &Value| {
        (
            pair["client"].as_str().unwrap().to_owned(),
            pair["stalls"].clone(),
            pair["connections"].clone(),
        )
    };
    let rows: Vec<_> = pairs.iter().map(row).collect();
    let wanted = |client: &str, n: u64| (client.to_owned(), Value::from(n), Value::from(n));
    assert_eq!(rows, [wanted("10.1.1.1", 2), wanted("10.1.1.9", 1)]);
    // Each sum is divided by side and by cause.
    for pair in pairs {
        for key in ["by_side", "by_cause"] {
            let parts = pair[key].as_array().unwrap().iter();
            let sum: f64 = parts
                .map(|part| part["time_lost_s"].as_f64().unwrap())
                .sum();
            assert!((sum - pair["time_lost_s"].as_f64().unwrap()).abs() < 1e-9);
        }
    }
    let sides = &all["by_side"];
    assert_eq!(
        (&sides[0]["side"], &sides[0]["stalls"]),
        (&"receiver".into(), &3.into())
    );

    let shown = text(&pspacer(&["stalls", &file, "--top", "1"]).stdout);
    assert_eq!(shown.matches("\n#").count(), 1, "{shown}");
    let (_, pairs) = shown.split_once("\nBy host pair\n").unwrap();
    assert!(
        pairs.contains("10.1.1.1") && pairs.contains("receiver window closed"),
        "{shown}"
    );
    assert!(
        pairs.contains("1 more pairs"),
        "as many as connections: {shown}"
    );

    let page = folder.0.join("out.html");
    well(&["stalls", &file, "--report", page.to_str().unwrap()]);
    let html = fs::read_to_string(page).unwrap();
    has(&html, ["Time lost by cause", "Time lost by host pair"]);
    assert!(html.contains("10.1.1.9 → 10.1.2.1") && !html.contains("NaN"));
}

/// The far capture of a near one: the way takes 5 ms, its clock is 2 s ahead.
fn far_end(near: &[(u64, Vec<u8>)]) -> Vec<(u64, Vec<u8>)> {
    let is_client = |record: &[u8]| record[8 + 36..8 + 38] == 80u16.to_be_bytes();
    let mut far: Vec<_> = near
        .iter()
        .map(|(time_us, record)| {
            let there_us = if is_client(record) {
                time_us + 5_000
            } else {
                time_us - 5_000
            };
            (there_us + 2_000_000, record.clone())
        })
        .collect();
    far.sort_by_key(|(time_us, _)| *time_us);
    far
}

#[test]
fn a_capture_from_the_other_end_is_put_beside() {
    let folder = Folder::new("choice-ends");
    let mut capture = Capture::new();
    capture.transfer(1_000_000, 5001, 40, Some(20));
    let near = records(&capture.0);
    let mut far = far_end(&near);
    // The 100th packet of the near capture never came.
    let lost = &near[99];
    let at = far
        .iter()
        .position(|(_, record)| *record == lost.1)
        .unwrap();
    far.remove(at);
    let near_file = folder.file("near.pcap", &capture.0);
    let far_file = folder.file("far.pcap", &pcap(&far));
    let found = stalls(&[&near_file, "--other-end", &far_file]);
    let ends = &found["two_ends"];
    let clock = |key: &str| ends["clocks"][key].as_f64().unwrap();
    assert!((clock("offset_s") - 2.0).abs() < 1e-4, "{}", ends["clocks"]);
    assert!(
        (clock("uncertainty_s") - 0.005).abs() < 1e-4,
        "{}",
        ends["clocks"]
    );
    let paths = ends["paths"].as_array().unwrap();
    let path = paths.iter().find(|p| p["from"] == "10.1.1.1:5001").unwrap();
    assert_eq!(
        (&path["lost"], &path["lost_packets"]),
        (&1.into(), &serde_json::json!([100]))
    );
    assert_eq!(
        (&path["from_near"], &path["missed"]),
        (&true.into(), &0.into())
    );
    let median_s = path["delays"]["median_s"].as_f64().unwrap();
    assert!((median_s - 0.005).abs() < 1e-3, "{median_s}");
    // The stall is still the receiver's, and proved.
    let stall = &found["connections"][0]["stalls"][0];
    assert_eq!(
        (&stall["cause"], &stall["confidence"]),
        (&"receiver-window-closed".into(), &"high".into())
    );
    has(
        stall["explanation"].as_str().unwrap(),
        ["Both captures: at the receiver"],
    );
    assert_eq!(ends["proofs"][0]["stall"], 1);

    let shown = text(&pspacer(&["stalls", &near_file, "--other-end", &far_file]).stdout);
    has(&shown, ["\nBoth captures\n", " ms ahead and "]);
    let page = folder.0.join("out.html");
    let report = ["--report", page.to_str().unwrap()];
    well(
        &[
            &["stalls", &near_file, "--other-end", &far_file][..],
            &report,
        ]
        .concat(),
    );
    has(
        fs::read_to_string(page).unwrap(),
        ["One-way delay over time"],
    );

    // Captures that are of other connections, or the same one.
    let mut other = Capture::new();
    other.transfer(1_000_000, 6001, 5, None);
    let other = folder.file("other.pcap", &other.0);
    let out = pspacer(&["stalls", &other, "--other-end", &far_file]);
    assert_eq!(out.status.code(), Some(1));
    has(text(&out.stderr), ["no packet in common"]);
    refused(&["stalls", "-", "--other-end", &far_file], 2, &[]);
}

/// A qlog is read by its name; what is for captures alone is refused.
#[test]
fn a_qlog_is_judged_as_a_capture_is() {
    let folder = Folder::new("stalls-qlog");
    let event = |ms: u64, name: &str, number: u64, frames: &str| {
        format!(
            "{{\"time\":{ms},\"name\":\"quic:packet_{name}\",\"data\":{{\"header\":\
             {{\"packet_type\":\"1RTT\",\"packet_number\":{number}}},\"frames\":[{frames}]}}}}\n"
        )
    };
    let stream = "{\"frame_type\":\"stream\",\"stream_id\":0,\"offset\":9,\"length\":1000}";
    let ack = "{\"frame_type\":\"ack\",\"acked_ranges\":[[0,9]]}";
    let log = [
        "{\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n".to_owned(),
        event(0, "sent", 1, stream),
        event(1, "sent", 2, "{\"frame_type\":\"data_blocked\"}"),
        event(20, "received", 1, ack),
        event(620, "received", 2, "{\"frame_type\":\"max_data\"}"),
        event(621, "sent", 3, &stream.replace("9,", "1009,")),
    ]
    .concat();
    let file = folder.file("a.sqlog", log.as_bytes());
    let out = pspacer(&["stalls", &file, "--exit-code"]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    let shown = text(&out.stdout);
    has(
        &shown,
        [
            "1 connection of QUIC; 1 stalled, 1 stall",
            "receiver window closed: the receiver's side; medium confidence",
            "to the server for 601 ms",
            "events ",
        ],
    );
    let out = pspacer(&["stalls", &file, "--json"]);
    let found: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(found["format"], "pspacer-stalls-qlog-1");
    let stall = &found["connections"][0]["stalls"][0];
    assert_eq!(stall["cause"], "receiver-window-closed");
    assert_eq!(found["by_cause"][0]["stalls"], 1);
    let calm = [
        "{\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n".to_owned(),
        event(0, "sent", 1, stream),
        event(20, "received", 1, ack),
    ];
    let calm = folder.file("calm.sqlog", calm.concat().as_bytes());
    for (top, worst_at) in [("2", 1), ("1", 0)] {
        let out = pspacer(&["stalls", &calm, &file, "--json", "--top", top]);
        let found: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let connections = found["connections"].as_array().unwrap();
        assert_eq!(connections.len(), worst_at + 1);
        assert_eq!(connections[worst_at]["stalls"].as_array().unwrap().len(), 1);
    }
    for option in ["--report", "--annotate", "--filter", "--flow"] {
        let value = if option == "--flow" { "1" } else { "tcp" };
        let expected = format!("{option} is for captures: FILE is a qlog");
        refused(&["stalls", &file, option, value], 2, &[&expected]);
    }
    let capture = folder.file("a.pcap", b"");
    refused(
        &["stalls", &file, &capture],
        2,
        &["qlogs cannot be merged with captures"],
    );
    let broken = folder.file(
        "b.qlog",
        b"{\"traces\":[{\"events\":[\n{\"time\":\"x\"}]}]}",
    );
    let expected = "b.qlog: line 2: traces[0].events[0].time: expected milliseconds";
    refused(&["stalls", &broken], 1, &[expected]);
}
