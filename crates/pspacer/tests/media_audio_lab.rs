// SPDX-License-Identifier: MIT OR Apache-2.0
//! 64 AES67 streams beside bulk TCP on a line that is 90 % busy, on real kernels, while interrupts are
//! held up: how even each stream is on the wire.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use capture::export::{ExportedDirection, write_pcapng};
use capture::record::{Kind, Record};
use capture::timeline::TimelineReader;
use scenario::Kernel;
use serde_json::Value;

use crate::common::guest;

const MODULES: &[&str] = &[
    "sch_psp", "wire", "sch_etf", "sch_fq", "sch_prio", "sch_cake", "cls_u32",
];
const SNAP_BYTES: usize = 64;
const STREAMS: usize = 64;
/// 4 ms of two channels, with RTP, UDP, IP and Ethernet.
const AUDIO_BYTES: u32 = 1152 + 12 + 8 + 20 + 14;
const LINE_BPS: u64 = 500_000_000;

/// A frame of TCP at the line's rate.
const BULK_US: f64 = 1538.0 * 8.0 / 500.0;

/// What the driver holds at most, at the line's rate: `bql_min` of audio.sh.
const DRIVER_US: f64 = 65536.0 * 8.0 / 500.0;

/// What a run made of the streams.
#[derive(Debug)]
struct StreamFigures {
    streams: usize,
    lost: u64,
    /// Largest TS-DF of each stream, from the least to the largest.
    tsdf_us: Vec<f64>,
    /// Least and largest time of a packet of any stream after its timestamp.
    delay_us: [f64; 2],
    /// Share of the line that is busy with frames that are no gap frames, in percent.
    busy_pct: f64,
}

fn measured(folder: &Path, name: &str) -> StreamFigures {
    let timeline = File::open(folder.join(format!("{name}.timeline"))).unwrap();
    let records: Vec<_> = TimelineReader::new(timeline).map(Result::unwrap).collect();
    let snap = fs::read(folder.join(format!("{name}.snap"))).unwrap();
    let capture = folder.join(format!("{name}.pcapng"));
    let direction = ExportedDirection {
        name: "c1a",
        rate_bps: LINE_BPS,
        records: &records,
        snap: &snap,
        snap_bytes: SNAP_BYTES,
    };
    write_pcapng(File::create(&capture).unwrap(), &[direction]).unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_pspacer"))
        .args(["measure", "--st2110", "--json"])
        .args(["--flow", "udp dst 10.9.0.3"])
        .args(["--tai-ahead", &format!("{}ns", guest::tai_ahead_ns(folder))])
        .arg(&capture)
        .output()
        .unwrap();
    let said: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| {
        panic!("{name}: {error}: {}", String::from_utf8_lossy(&ran.stderr))
    });
    let sent: Value =
        serde_json::from_slice(&fs::read(folder.join(format!("{name}.sent"))).unwrap()).unwrap();
    let audio: Vec<&Value> = said["streams"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|stream| stream.get("audio"))
        .collect();
    let delays_us = audio.iter().map(|audio| {
        let list = audio["list"].as_array().unwrap();
        let is_delay = |check: &&Value| check["quantity"] == "delay_ns";
        let delay = list.iter().find(is_delay).unwrap();
        assert_eq!(delay["is_met"], true, "{name}: {delay}");
        ["min", "max"].map(|key| delay[key].as_f64().unwrap() / 1000.0)
    });
    let delay_us = delays_us
        .reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])
        .unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let came: u64 = audio.iter().map(|audio| number(&audio["packets"])).sum();
    let mut tsdf_us: Vec<f64> = audio
        .iter()
        .map(|audio| audio["tsdf_max_ns"].as_f64().unwrap() / 1000.0)
        .collect();
    tsdf_us.sort_by(f64::total_cmp);
    // While streams are sent: their last frame leaves some milliseconds after the last launch time.
    let sent_ps = number(&sent["sent_for_ns"]) * 1000;
    let is_audio =
        |record: &&Record| record.kind == Kind::Data && record.frame_bytes == AUDIO_BYTES;
    let from_ps = records.iter().find(is_audio).unwrap().start_ps;
    let wire_bits: u64 = records
        .iter()
        .filter(|r| r.kind == Kind::Data && (from_ps..from_ps + sent_ps).contains(&r.start_ps))
        .map(|r| u64::from(r.wire_bytes) * 8)
        .sum();
    let busy_pct = wire_bits as f64 / (LINE_BPS as f64 * sent_ps as f64 / 1e12) * 100.0;
    StreamFigures {
        streams: audio.len(),
        lost: number(&sent["sent"]) - came,
        tsdf_us,
        delay_us,
        busy_pct,
    }
}

fn runs(kernel: Kernel, qdiscs: &[&str]) -> Vec<(String, StreamFigures)> {
    let folder = tempfile::tempdir().unwrap();
    let files = ["crates/pspacer/tests/media/audio.sh", "kernel/tests/lib.sh"];
    let command = |script: &str| format!("env QDISCS='{}' sh {script}", qdiscs.join(" "));
    guest::run(kernel, "media", MODULES, &files, (folder.path(), &command));
    let mut all = Vec::new();
    for qdisc in qdiscs {
        for noise in [0, 60] {
            let name = format!("{qdisc},{noise}");
            let found = measured(folder.path(), &name);
            let of = |part: usize| found.tsdf_us[(found.tsdf_us.len() - 1) * part / 100];
            println!(
                "{kernel} {qdisc:<20} {noise:>2} us: {} streams, {} lost, line {:.1} % busy; TS-DF median {:.1}, 90 % {:.1}, \
                 worst {:.1} us; {:.1} to {:.1} us after timestamps",
                found.streams,
                found.lost,
                found.busy_pct,
                of(50),
                of(90),
                of(100),
                found.delay_us[0],
                found.delay_us[1]
            );
            all.push((name, found));
        }
    }
    all
}

/// In mode hybrid each stream is as even as a frame of TCP that has begun lets it be. In mode gap, and
/// while interrupts are held up, psp may find anew where the wire is, which moves all streams at
/// once, by at most what the driver holds. AES67 passes at a packet time, 4 ms.
fn streams_stay_even_beside_tcp(kernel: Kernel) {
    for (name, found) in runs(kernel, &["psp-gap", "psp-hybrid"]) {
        let what = format!("{kernel}, {name}: {found:?}");
        assert_eq!((found.streams, found.lost), (STREAMS, 0), "{what}");
        assert!((88.0..95.0).contains(&found.busy_pct), "{what}");
        let most_us = if name == "psp-hybrid,0" {
            BULK_US + 2.0
        } else {
            DRIVER_US + BULK_US
        };
        let worst_us = found.tsdf_us.last().copied().unwrap_or(f64::INFINITY);
        assert!(worst_us <= most_us, "{what}");
    }
}

testkit::on_every_kernel! {
    streams_stay_even_beside_tcp: streams_stay_even_beside_tcp;
}

/// The table of docs/use/media.md: `cargo test -p pspacer media_audio_lab:: -- --ignored --nocapture`.
#[test]
#[ignore = "prints a table"]
fn what_each_qdisc_makes_of_audio_beside_tcp() {
    runs(
        Kernel::V6_12,
        &[
            "psp-gap",
            "psp-gap-guard",
            "psp-hybrid",
            "psp-timer",
            "prio-etf-300000",
            "prio-etf-2000000",
            "prio-etf-100000-cake",
            "prio-etf-300000-cake",
            "fq",
            "pfifo",
        ],
    );
}
