// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples.

use tcpsp::ports::{Port, PortClass};
use tcpsp::{
    ClassOptions, ClassStats, Counters, Handle, Mode, PspClass, PspQdisc, QdiscOptions, QdiscStats,
    TypeOptions, Why,
};
use top::{Model, Sample};

/// Nanoseconds of a second.
pub const S: u64 = 1_000_000_000;

/// A paced class of 100 Mbit/s after so many frames of 1000 bytes.
pub fn paced(minor: u16, frames: u64) -> PortClass {
    let mut stats = ClassStats {
        active: 1,
        rate_bps: 100_000_000,
        sent_frames: frames,
        sent_wire_bytes: frames * 1024,
        throttled: frames,
        ..ClassStats::default()
    };
    // Of ten frames nine are on time, and one is late by 512 to 1023 byte times.
    stats.late_frames[0] = frames - frames / 10;
    stats.late_frames[10] = frames / 10;
    PortClass {
        id: Handle::new(1, minor),
        counters: Counters {
            sent_bytes: frames * 1000,
            sent_packets: frames,
            waiting_bytes: 3000,
            waiting_packets: 3,
            ..Counters::default()
        },
        psp: PspClass {
            options: ClassOptions::new(TypeOptions::Paced {
                rate_bps: 100_000_000,
                ceil_bps: None,
                launch: None,
            }),
            stats,
        },
    }
}

pub fn best_effort(minor: u16, bytes: u64, drops: u64) -> PortClass {
    PortClass {
        id: Handle::new(1, minor),
        counters: Counters {
            sent_bytes: bytes,
            ..Counters::default()
        },
        psp: PspClass {
            options: ClassOptions::new(TypeOptions::Normal {
                quantum_bytes: None,
            }),
            stats: ClassStats {
                drop_child: drops,
                drop_late: 2,
                ..ClassStats::default()
            },
        },
    }
}

/// A qdisc of these classes.
pub fn port(device: &str, mode: Mode, sent: u64, gaps: u64, classes: Vec<PortClass>) -> Port {
    Port {
        device: device.to_owned(),
        index: u32::from(device.as_bytes()[3]),
        handle: Handle::new(1, 0),
        device_frames: 0,
        device_bytes: 0,
        parent: Handle::ROOT,
        counters: Counters::default(),
        psp: PspQdisc {
            options: QdiscOptions::default_of(true),
            stats: QdiscStats {
                mode: mode.number(),
                why_not_hybrid: match mode {
                    Mode::Timer => Why::NoClock.number(),
                    _ => 0,
                },
                line_rate_bps: 1_000_000_000,
                sent_wire_bytes: sent,
                gap_wire_bytes: gaps,
                ..QdiscStats::default()
            },
        },
        classes,
    }
}

/// The sample after so many seconds: 12,500 frames of 1000 bytes a second are 100 Mbit/s.
pub fn sample(second: u64) -> Sample {
    let frames = second * 12_500;
    let eth0 = vec![
        paced(1, frames),
        best_effort(2, second * 1_000_000, 5 * second),
        paced(0x1a, frames / 2),
    ];
    Sample {
        time_ns: 77 + second * S,
        cost_ns: 1_500_000,
        ports: vec![
            port(
                "eth0",
                Mode::Hybrid,
                second * 30_000_000,
                second * 90_000_000,
                eth0,
            ),
            port("eth1", Mode::Timer, second * 1000, 0, vec![paced(1, 0)]),
        ],
    }
}

pub fn after(seconds: u64) -> Model {
    let mut model = Model::default();
    (1..=seconds).for_each(|second| model.take(sample(second)));
    model
}
