// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer measure --st2110` and `pspacer send-stream` as users call them.

use std::fs;
use std::net::UdpSocket;

use crate::common::{Folder, json, pspacer, text, words};
use testkit::{has, has_none};

/// Makes a pcap with nanoseconds: five frames of 60 a second of raw video with 8 lines, a packet
/// each. They leave two read spacings, 4 ms, before they are read, or all with the first.
fn capture(is_burst: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65535, 1u32] {
        out.extend(word.to_le_bytes());
    }
    for i in 0..40u32 {
        let (frame, row) = (i / 8, i % 8);
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        bytes.extend([
            0x45, 0, 0, 68, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 1, 1, 10, 1, 2, 1,
        ]);
        bytes.extend([0x9c, 0x40, 0x13, 0x8c, 0, 48, 0, 0]);
        let marker = if row == 7 { 0x80 } else { 0 };
        bytes.extend([0x80, 96 | marker, 0, i as u8]);
        bytes.extend((frame * 1500).to_be_bytes());
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 20, 0, row as u8, 0, 0]);
        bytes.resize(82, 0);
        // The frame's time, 28/750 of it (TR_OFFSET), and 2 ms from read to read.
        let sent_ms = if is_burst { 0 } else { 2 * row };
        let frame_ns = (frame + 1) * 50_000_000 / 3;
        let ns = frame_ns + 622_222 + sent_ms * 1_000_000 - 4_000_000;
        for word in [1_700_000_000, ns, 82, 82] {
            out.extend(word.to_le_bytes());
        }
        out.extend(&bytes);
    }
    out
}

#[test]
fn a_verdict_and_its_exit_status() {
    let folder = Folder::new("media-verdict");
    let file = folder.0.join("a.pcap");
    let name = file.to_str().unwrap();
    fs::write(&file, capture(false)).unwrap();
    let out = pspacer(&["measure", "--st2110", name, "--expect", "N"]);
    assert!(
        out.status.success(),
        "{}{}",
        text(&out.stdout),
        text(&out.stderr)
    );
    has(text(&out.stdout), ["raw 8p60, 8 packets"]);
    let page = folder.0.join("page");
    let out = pspacer(&[
        "measure",
        name,
        "--st2110",
        "--json",
        "--out",
        page.to_str().unwrap(),
    ]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json["streams"][0]["video"]["sender_type"], "N");
    assert_eq!(fs::read(page.join("streams.json")).unwrap(), out.stdout);
    for name in ["report.html", "1-vrx.svg", "1-cinst.svg"] {
        assert!(fs::metadata(page.join(name)).unwrap().len() > 500, "{name}");
    }
    fs::write(&file, capture(true)).unwrap();
    let out = pspacer(&["measure", "--st2110", name, "--expect", "NL"]);
    assert_eq!(out.status.code(), Some(1));
    has(text(&out.stderr), ["--expect"]);
}

/// The records of a pcap, without its header.
fn records(pcap: &[u8]) -> &[u8] {
    &pcap[24..]
}

/// Nine frames' time of ancillary data that only keep the stream alive, to port 5006.
fn ancillary() -> Vec<u8> {
    let mut out = Vec::new();
    for i in 0..9u32 {
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        bytes.extend([
            0x45, 0, 0, 48, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 1, 1, 10, 1, 2, 1,
        ]);
        bytes.extend([0x9c, 0x40, 0x13, 0x8e, 0, 28, 0, 0]);
        bytes.extend([0x80, 100 | 0x80, 0, i as u8]);
        bytes.extend((i * 1500).to_be_bytes());
        bytes.extend([0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
        let length = bytes.len() as u32;
        for word in [1_700_000_000, (i + 1) * 50_000_000 / 3, length, length] {
            out.extend(word.to_le_bytes());
        }
        out.extend(bytes);
    }
    out
}

#[test]
fn ancillary_data_beside_a_narrow_video_have_no_type() {
    let folder = Folder::new("media-ancillary");
    let file = folder.0.join("a.pcap");
    fs::write(&file, [capture(false), ancillary()].concat()).unwrap();
    let name = file.to_str().unwrap();
    let json = json(&["measure", "--st2110", name, "--expect", "N", "--json"]);
    let [video, data] = &json["streams"].as_array().unwrap()[..] else {
        panic!("{json}");
    };
    assert_eq!(video["video"]["decided_by"]["height"], "lines");
    assert_eq!(data["carries"], "ancillary, p60, 1 a picture");
    assert_eq!(data["ancillary"]["decided_by"]["kind"], "ancillary_headers");
    assert_eq!(data["ancillary"]["empty_packets"], 9);
}

#[test]
fn an_sdp_decides_and_its_contradictions_are_named() {
    let folder = Folder::new("media-sdp");
    let (file, sdp) = (folder.0.join("a.pcap"), folder.0.join("a.sdp"));
    fs::write(&file, capture(false)).unwrap();
    let (name, described) = (file.to_str().unwrap(), sdp.to_str().unwrap());
    let measure = |text: &str| {
        fs::write(&sdp, text).unwrap();
        pspacer(&["measure", "--st2110", name, "--sdp", described])
    };
    let medium =
        "v=0\nm=video 5004 RTP/AVP 96\nc=IN IP4 10.1.2.1\na=rtpmap:96 raw/90000\na=fmtp:96 ";
    let out = measure(&format!(
        "{medium}height=8; exactframerate=60; TP=2110TPN; MAXUDP=1460"
    ));
    let said = words(&out.stdout);
    has_none(&said, ["The SDP says"]);
    let out = measure(&format!(
        "{medium}height=10; exactframerate=50; interlace; TP=2110TPW; MAXUDP=40"
    ));
    for expected in [
        "lines: 10; the packets show 8",
        "frames a second: 50; the packets show 60",
        "interlaced; the packets show progressive",
        "at most 40 bytes (MAXUDP)",
    ] {
        let said = words(&out.stdout);
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let out = measure("v=0\nm=video 9 RTP/AVP 96\na=rtpmap:96 raw/90000\n");
    let said = words(&out.stdout);
    has(&said, ["no stream of payload type 96"]);
    let out = measure("v=0\nm=video x RTP/AVP 96\n");
    assert!(
        text(&out.stderr).contains("line 2") && !out.status.success(),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn two_legs_are_shown_as_one_stream() {
    let folder = Folder::new("media-legs");
    let file = folder.0.join("a.pcap");
    let one = capture(false);
    // The other leg goes to 10.1.2.2, and has lost the 20th packet.
    let mut other = records(&one).to_vec();
    other.chunks_mut(98).for_each(|record| record[16 + 33] = 2);
    other.drain(98 * 20..98 * 21);
    fs::write(&file, [one, other].concat()).unwrap();
    let out = pspacer(&["measure", "--st2110", file.to_str().unwrap(), "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let pair = &json["pairs"][0];
    assert_eq!((&pair["packets"], &pair["lost"]), (&40.into(), &0.into()));
    assert_eq!(
        (&pair["legs"][0]["lost"], &pair["legs"][1]["lost"]),
        (&0.into(), &1.into())
    );
    assert_eq!(pair["legs"][1]["skew_ns"]["max"], 0.0);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (arguments, expected) in [
        (
            &["measure", "--st2110", "a.pcap", "--expect", "narrow"][..],
            "expected N, NL or W",
        ),
        (
            &["measure", "--st2110", "a.pcap", "--line", "1gbit"],
            "--line",
        ),
        (&["measure", "a.pcap", "b.pcap"], "--st2110"),
        (&["measure", "a.pcap", "--frame-rate", "60"], "--st2110"),
        (
            &["measure", "--st2110", "a.pcap", "--frame-rate", "59.95"],
            "59.94",
        ),
        (
            &["measure", "--st2110", "a.pcap", "--troffset", "2s"],
            "below a second",
        ),
        (&["measure", "a.pcap", "--sdp", "a.sdp"], "--st2110"),
        (&["send-stream", "127.0.0.1"], "ADDRESS:PORT"),
        (
            &["send-stream", "127.0.0.1:9", "--video", "1081p60"],
            "expected a format",
        ),
        (
            &[
                "send-stream",
                "127.0.0.1:9",
                "--video",
                "1080p60",
                "--audio",
                "2",
            ],
            "--audio",
        ),
        (
            &["send-stream", "127.0.0.1:9", "--by", "magic"],
            "so-txtime",
        ),
    ] {
        let out = pspacer(arguments);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        assert!(
            text(&out.stderr).contains(expected),
            "{arguments:?}: {}",
            text(&out.stderr)
        );
    }
}

#[test]
fn a_stream_is_sent_over_the_loopback() {
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = far.local_addr().unwrap().to_string();
    let options = ["--audio", "2", "--for", "10ms", "--json", "--quiet"];
    for by in ["none", "so-max-pacing-rate", "so-txtime"] {
        let by = ["send-stream", &to, "--by", by, "--clock", "monotonic"];
        let json = json(&[&by[..], &options].concat());
        assert_eq!(
            (&json["sent"], &json["unsent"]),
            (&10.into(), &0.into()),
            "{json}"
        );
        assert_eq!(
            json["missed"].is_null(),
            !by.contains(&"so-txtime"),
            "{json}"
        );
        let mut buffer = [0; 2000];
        for _ in 0..10 {
            // The RTP header and 48 samples of two channels.
            assert_eq!(far.recv(&mut buffer).unwrap(), 12 + 288);
        }
    }
}
