// SPDX-License-Identifier: MIT OR Apache-2.0
//! Media streams through qdiscs on real kernels, while interrupts are held up: which type of sender
//! of SMPTE ST 2110-21 each is on the wire, and what EBU's LIST expects of it.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use capture::export::{ExportedDirection, write_pcapng};
use capture::timeline::TimelineReader;
use scenario::Kernel;
use serde_json::Value;

use crate::common::guest;

const MODULES: &[&str] = &["sch_psp", "wire", "sch_etf", "sch_fq"];
const SNAP_BYTES: usize = 64;
/// 1080p60 and 2160p60, each with so many times fewer bits a second as a line of 1 Gbit/s has less than one of
/// 10, or of 40. A line of the first is one packet, of the second two. Interrupts are held up for ten times
/// as long, too: 600 us of this line are 60 us of that.
const VIDEOS: [&str; 2] = ["560x360@60", "1120x720@15"];
const NOISES_US: [u32; 3] = [0, 200, 600];

/// A stream on the wire.
struct Stream {
    /// `N`, `NL`, `W`, or `-`.
    sender_type: String,
    cinst_max: u64,
    vrx: (i64, i64),
    lost: u64,
    /// What LIST expects and the stream does not meet, as JSON names it.
    not_met: Vec<String>,
    /// The first packet of a frame after its timestamp.
    latency_us: (f64, f64),
}

/// Judges a capture as `pspacer measure --st2110 --json` does.
fn judged(capture: &Path, name: &str, options: &[&str]) -> Value {
    let ran = Command::new(env!("CARGO_BIN_EXE_pspacer"))
        .args(["measure", "--st2110", "--json"])
        .args(options)
        .args(["--frame-rate", name.rsplit('@').next().unwrap()])
        .arg(capture)
        .output()
        .unwrap();
    serde_json::from_slice(&ran.stdout)
        .unwrap_or_else(|error| panic!("{name}: {error}: {}", String::from_utf8_lossy(&ran.stderr)))
}

/// Returns what a stream is; `None`: too little of it is there to tell.
fn measured(folder: &Path, name: &str) -> Option<Stream> {
    let timeline = File::open(folder.join(format!("{name}.timeline"))).unwrap();
    let records: Vec<_> = TimelineReader::new(timeline).map(Result::unwrap).collect();
    let snap = fs::read(folder.join(format!("{name}.snap"))).unwrap();
    let capture = folder.join(format!("{name}.pcapng"));
    let direction = ExportedDirection {
        name: "c1a",
        rate_bps: 1_000_000_000,
        records: &records,
        snap: &snap,
        snap_bytes: SNAP_BYTES,
    };
    write_pcapng(File::create(&capture).unwrap(), &[direction]).unwrap();
    // The earliest datum with which no packet is late: noise moves the first packets, too.
    let said = judged(&capture, name, &["--datum", "fit"]);
    let sent: Value =
        serde_json::from_slice(&fs::read(folder.join(format!("{name}.sent"))).unwrap()).unwrap();
    let stream = &said["streams"][0];
    let Some(video) = stream.get("video") else {
        println!("{name}: {}; {sent}", stream["problem"]);
        return None;
    };
    let ahead = format!("{}ns", guest::tai_ahead_ns(folder));
    let by_tai = judged(&capture, name, &["--tai-ahead", &ahead]);
    let list = by_tai["streams"][0]["video"]["list"].as_array().unwrap();
    assert_eq!(list.len(), 3, "{name}: {list:?}");
    let is_latency = |check: &&Value| check["quantity"] == "rtp_latency_ns";
    let latency = list.iter().find(is_latency).unwrap();
    let buffer = &video["buffers"][0];
    Some(Stream {
        sender_type: video["sender_type"].as_str().unwrap_or("-").to_owned(),
        cinst_max: video["cinst_max"].as_u64().unwrap(),
        vrx: (
            buffer["vrx_min"].as_i64().unwrap(),
            buffer["vrx_max"].as_i64().unwrap(),
        ),
        lost: sent["sent"].as_u64().unwrap() - video["packets"].as_u64().unwrap(),
        not_met: list
            .iter()
            .filter(|check| check["is_met"] == false)
            .map(|check| check["quantity"].as_str().unwrap().to_owned())
            .collect(),
        latency_us: ["min", "max"]
            .map(|key| latency[key].as_f64().unwrap() / 1000.0)
            .into(),
    })
}

/// Sends the streams through each of these, and returns what each is by its name.
fn streams(kernel: Kernel, qdiscs: &[&str]) -> Vec<(String, Option<Stream>)> {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        "crates/pspacer/tests/media/streams.sh",
        "kernel/tests/lib.sh",
    ];
    let command = |script: &str| {
        format!(
            "env QDISCS='{}' VIDEOS='{}' sh {script}",
            qdiscs.join(" "),
            VIDEOS.join(" ")
        )
    };
    guest::run(kernel, "media", MODULES, &files, (folder.path(), &command));
    let mut all = Vec::new();
    for qdisc in qdiscs {
        for video in VIDEOS {
            for noise in NOISES_US {
                let name = format!("{qdisc},{noise},{video}");
                let Some(stream) = measured(folder.path(), &name) else {
                    all.push((name, None));
                    continue;
                };
                println!(
                    "{kernel} {qdisc:<10} {video:<12} {noise:>2} us: {:<2} Cinst {} VRX {} to {} lost {}; first packet {:.3} to {:.3} us \
                     after its timestamp, not met of LIST's: {:?}",
                    stream.sender_type,
                    stream.cinst_max,
                    stream.vrx.0,
                    stream.vrx.1,
                    stream.lost,
                    stream.latency_us.0,
                    stream.latency_us.1,
                    stream.not_met
                );
                all.push((name, Some(stream)));
            }
        }
    }
    all
}

/// At 15 frames a second TR_OFFSET is more than the 1 ms that LIST leaves between a timestamp and its
/// packet, so a sender whose timestamps are N T meets one of both (docs/use/media.md).
fn gap_frames_keep_streams_narrow(kernel: Kernel) {
    for (name, stream) in streams(kernel, &["psp-gap"]) {
        let stream = stream.unwrap();
        let found = (&*stream.sender_type, stream.lost);
        assert_eq!(found, ("N", 0), "{kernel}, {name}");
        let not_met: &[&str] = if name.ends_with("@15") {
            &["rtp_latency_ns"]
        } else {
            &[]
        };
        assert_eq!(stream.not_met, not_met, "{kernel}, {name}");
    }
}

testkit::on_every_kernel! {
    gap_frames_keep_streams_narrow: gap_frames_keep_streams_narrow;
}

/// The table of docs/use/media.md: `cargo test -p pspacer media_lab:: -- --ignored --nocapture`.
#[test]
#[ignore = "prints a table"]
fn what_each_qdisc_makes_of_streams() {
    streams(
        Kernel::V6_12,
        &[
            "psp-gap",
            "psp-hybrid",
            "psp-timer",
            "etf-2.4us",
            "etf-800us",
            "fq",
            "fq-rate",
            "pfifo",
        ],
    );
}
