// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ports whose statistics are known.

use exporter::{Stalls, device_families, families, text};
use host_config::ClassNames;
use tcpsp::ports::{Port, PortClass};
use tcpsp::stats::Stats;
use tcpsp::{
    ClassOptions, ClassStats, Counters, Dynamic, Handle, Mode, PspClass, PspQdisc, QdiscOptions,
    QdiscStats, TypeOptions, Why,
};

/// A struct of the kernel with another number in each 32 bits.
fn bytes(first: u32) -> Vec<u8> {
    (first..first + 200).flat_map(u32::to_ne_bytes).collect()
}

pub fn class(minor: u16, by_type: TypeOptions) -> PortClass {
    let mut stats = ClassStats::read(&bytes(1000 * u32::from(minor)));
    // Beyond what a double holds.
    stats.sent_wire_bytes = (1 << 60) + u64::from(minor);
    PortClass {
        id: Handle::new(1, minor),
        counters: Counters {
            sent_bytes: u64::from(minor) * 1000,
            ..Counters::default()
        },
        psp: PspClass {
            options: ClassOptions::new(by_type),
            stats,
        },
    }
}

pub fn port(device: &str, classes: Vec<PortClass>) -> Port {
    let mut stats = QdiscStats::read(&bytes(7));
    stats.mode = Mode::Timer.number();
    stats.why_not_hybrid = Why::NoClock.number();
    Port {
        device: device.to_owned(),
        index: 2,
        handle: Handle::new(1, 0),
        device_frames: 0,
        device_bytes: 0,
        parent: Handle::ROOT,
        counters: Counters::default(),
        psp: PspQdisc {
            options: QdiscOptions::default_of(true),
            stats,
        },
        classes,
    }
}

/// A port with a class of each type.
pub fn all_types() -> Vec<Port> {
    let types = [
        TypeOptions::Normal {
            quantum_bytes: None,
        },
        TypeOptions::Paced {
            rate_bps: 1,
            ceil_bps: None,
            launch: None,
        },
        TypeOptions::Dynamic(Dynamic::default()),
        TypeOptions::Rt { reserve_bytes: 1 },
        TypeOptions::Nrt { reserve_bytes: 1 },
    ];
    let classes = (1..).zip(types).map(|(minor, of)| class(minor, of));
    vec![port("eth0", classes.collect())]
}

pub fn rendered(ports: &[Port], most: usize) -> String {
    let mut all = exporter::Health::default().families();
    all.extend(Stalls::default().families());
    all.extend(device_families(ports));
    all.extend(families(ports, most, &ClassNames::default()));
    text::open_metrics(all).unwrap()
}
