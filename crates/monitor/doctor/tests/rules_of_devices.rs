// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of devices: their links, queues and qdiscs.

use crate::host::{ROOT, device, launches, psp, qdisc, unread};
use crate::row::Row;
use doctor::Severity;
use doctor::facts::Trial;
use host_config::Backend;
use tcpsp::{Gap, Handle, SplitGso, Why};

pub(crate) const TABLE: &[Row] = &[
    (
        |f| device(f).has_carrier = Some(false),
        "no-link",
        Severity::Fault,
        "no link",
        "ethtool eth0",
    ),
    (
        |f| device(f).has_carrier = None,
        "down",
        Severity::Fault,
        "down",
        "ip link set eth0 up",
    ),
    (
        |f| {
            device(f).psp.clear();
            device(f).qdiscs = vec![qdisc("fq", Handle::new(8, 0), Handle::ROOT)];
        },
        "no-psp",
        Severity::Note,
        "its root is fq",
        "tc qdisc replace dev eth0 root handle 1: psp default 1",
    ),
    (
        |f| {
            device(f).qdiscs = vec![
                qdisc("mq", ROOT, Handle::ROOT),
                qdisc("psp", Handle::new(0x11, 0), Handle::new(1, 1)),
                qdisc("fq_codel", Handle::NONE, Handle::new(1, 2)),
                qdisc("fq_codel", Handle::NONE, Handle::new(1, 3)),
            ];
        },
        "queues-not-paced",
        Severity::Warning,
        "2 transmit queues",
        "parent 1:2 psp",
    ),
    (
        |f| device(f).driver = Some("virtio_net".to_owned()),
        "no-wire",
        Severity::Note,
        "virtio_net",
        "tc qdisc change dev eth0 handle 1: psp mode timer",
    ),
    (
        |f| {
            device(f).driver = None;
            psp(f).stats.why_not_hybrid = Why::Software.number();
        },
        "no-wire",
        Severity::Note,
        "software device",
        "mode timer",
    ),
    (
        |f| {
            device(f).line_rate_bps = None;
            psp(f).stats.line_known = 0;
        },
        "line-unknown",
        Severity::Fault,
        "assumes 10 Gbit/s",
        "psp line 10gbit",
    ),
    (
        |f| device(f).is_full_duplex = Some(false),
        "half-duplex",
        Severity::Fault,
        "half duplex",
        "duplex full",
    ),
    (
        |f| device(f).is_held_by_pause = Some(true),
        "flow-control",
        Severity::Warning,
        "PAUSE",
        "ethtool -A eth0 rx off",
    ),
    (
        |f| device(f).queue_limits_min_bytes[2] = 1_500,
        "queue-limit",
        Severity::Warning,
        "1500 bytes; in 60 µs without an interrupt the wire sends 75000",
        "byte_queue_limit_min = \"75000b\"",
    ),
    (
        |f| device(f).tx_coalesce_us = Some(200),
        "queue-limit",
        Severity::Warning,
        "in 200 µs",
        "echo 250000",
    ),
    // The qdisc gets TCP's bursts with TSO and GSO off, too.
    (
        |f| {
            psp(f).options.split_gso = SplitGso::Off;
            device(f).has_tso = Some(false);
            device(f).has_gso = Some(false);
        },
        "bursts-whole",
        Severity::Warning,
        "split-gso is off",
        "split-gso auto",
    ),
    (
        |f| {
            device(f)
                .qdiscs
                .push(qdisc("fq", Handle::new(0x20, 0), Handle::new(1, 2)))
        },
        "inner-pacing",
        Severity::Note,
        "class 1:2 is fq",
        "parent 1:2 pfifo limit 1000",
    ),
    (
        |f| {
            device(f).driver = Some("ice".to_owned());
            psp(f).options.gap = Gap::Pause;
        },
        "gap-pause-dropped",
        Severity::Fault,
        "ice drops",
        "gap multicast",
    ),
    (
        |f| {
            device(f).sends_pause = Some(true);
            psp(f).options.gap = Gap::Pause;
        },
        "gap-pause-flow-control",
        Severity::Note,
        "PAUSE frames of its own",
        "ethtool -A eth0 tx off",
    ),
    (
        |f| psp(f).stats.why_not_hybrid = Why::HostSlow.number(),
        "no-gap-frames",
        Severity::Note,
        "hardly faster than the line takes them",
        "mode timer",
    ),
    (
        |f| {
            psp(f).stats.why_not_hybrid = Why::NoClock.number();
            psp(f).stats.no_clock = 2;
        },
        "no-gap-frames",
        Severity::Fault,
        "no clock, 2 times",
        "mode timer",
    ),
    (
        |f| {
            psp(f).stats.why_not_hybrid = Why::Shared.number();
            psp(f).stats.queues = 8;
        },
        "no-gap-frames",
        Severity::Note,
        "8 transmit queues",
        "root handle 1: psp",
    ),
    (
        |f| psp(f).stats.why_not_hybrid = Why::NotEthernet.number(),
        "no-gap-frames",
        Severity::Note,
        "not_ethernet",
        "mode timer",
    ),
    (
        |f| {
            device(f).trial = Some(Trial {
                sent_frames: 1000,
                gap_frames: 1000,
                device_frames: 1001,
                wire_stops: 0,
            });
        },
        "gap-frames-lost",
        Severity::Fault,
        "1000 frames and 1000 gap frames, and the device sent 1001",
        "mode timer",
    ),
    (
        |f| psp(f).stats.line_measured_bps = 7_000_000_000,
        "wire-slow",
        Severity::Warning,
        "7000 Mbit/s",
        "line 7000000000bit",
    ),
    (
        |f| {
            device(f).line_rate_bps = Some(1_000_000_000);
            psp(f).options.line_rate_bps = Some(10_000_000_000);
        },
        "line-fast",
        Severity::Fault,
        "line is 10 Gbit/s, the device sends 1000 Mbit/s",
        "line 1000000000bit",
    ),
    (
        |f| {
            psp(f).stats.wire_stops = 9;
            psp(f).stats.wire_stop_max_ns = 80_000;
        },
        "wire-stops",
        Severity::Warning,
        "9 times so far",
        "echo 100000",
    ),
    (
        |f| psp(f).rates_bps = 11_000_000_000,
        "oversubscribed",
        Severity::Warning,
        "1: sum up to 11 Gbit/s",
        "tc class show dev eth0",
    ),
    (
        |f| psp(f).drops[1].1 = 5,
        "drops",
        Severity::Warning,
        "drop_late 5.",
        "tc -s class show dev eth0",
    ),
    (
        |f| {
            psp(f).drops.push(("drop_txtime_invalid", 7));
            psp(f).options.default_minor = 1;
            psp(f).classes[0].has_launch_times = true;
        },
        "drops",
        Severity::Warning,
        "drop_txtime_invalid 7.",
        "tc qdisc change dev eth0 handle 1: psp default 2",
    ),
    (
        |f| {
            let mut fq = qdisc("fq", Handle::new(0x7073, 0), Handle::ROOT);
            fq.horizon_drops = Some(9);
            device(f).qdiscs.push(fq);
        },
        "beyond-horizon",
        Severity::Warning,
        "fq 7073: dropped 9 packets",
        "tc -s qdisc show dev eth0",
    ),
    (
        |f| psp(f).stats.unclassified_frames = 4,
        "unclassified",
        Severity::Warning,
        "4 frames",
        "tc qdisc change dev eth0 handle 1: psp default 2",
    ),
    (
        |f| {
            psp(f).stats.unclassified_frames = 4;
            psp(f).classes.clear();
        },
        "unclassified",
        Severity::Warning,
        "4 frames",
        "tc class add dev eth0 parent 1: classid 1:1 psp mode normal && tc qdisc change",
    ),
    (
        // Frames without a class do not fit into one with a rate.
        |f| {
            psp(f).stats.unclassified_frames = 4;
            psp(f).classes.retain(|class| !class.is_normal);
        },
        "unclassified",
        Severity::Warning,
        "4 frames",
        "tc class add dev eth0 parent 1: classid 1:2 psp mode normal && \
         tc qdisc change dev eth0 handle 1: psp default 2",
    ),
    (
        // A port that `pspacer apply` made has no class 1.
        |f| {
            psp(f).stats.unclassified_frames = 4;
            psp(f).handle = Handle::new(0x7073, 0);
        },
        "unclassified",
        Severity::Warning,
        "4 frames",
        "pspacer apply  # in the host's file: default = \"NAME\" of one of its classes",
    ),
    (
        |f| unread(f, Backend::Edt),
        "statistics-unread",
        Severity::Note,
        "psp 7073: (backend edt) were not read: Operation not permitted (os error 1).",
        "pspacer plan",
    ),
    (
        |f| {
            unread(f, Backend::Bpf);
            f.is_root = false;
        },
        "statistics-unread",
        Severity::Note,
        "(backend bpf) were not read: that takes root.",
        "sudo pspacer doctor eth0",
    ),
    (
        |f| psp(f).stats.gap_failed = 3,
        "gap-memory",
        Severity::Warning,
        "3 gap frames",
        "vm.min_free_kbytes",
    ),
    (
        |f| launches(f, None),
        "launch-unused",
        Severity::Note,
        "Its NIC (igc) can hold each frame until its launch time, by /dev/ptp0",
        "ethtool -T eth0",
    ),
    (
        |f| {
            device(f).driver = Some("igb".to_owned());
            device(f).pci_id = Some(0x8086_1533);
        },
        "launch-unused",
        Severity::Note,
        "Its NIC (igb)",
        "ethtool -T eth0",
    ),
    (
        |f| launches(f, Some(false)),
        "launch-by-timer",
        Severity::Warning,
        "etf at 64:1 launches by the host's timers",
        "tc qdisc del dev eth0 parent 64:1 && tc qdisc add dev eth0 parent 64:1 etf clockid CLOCK_TAI delta 300000 offload",
    ),
    (
        |f| {
            launches(f, Some(true));
            device(f).ptp_clock = None;
        },
        "launch-no-clock",
        Severity::Warning,
        "names no clock of it",
        "ethtool -T eth0",
    ),
    (
        |f| {
            device(f).driver = Some("mlx5_core".to_owned());
            device(f).pci_id = Some(0x15b3_101d);
        },
        "launch-not-in-kernel",
        Severity::Note,
        "the kernel's driver does not offer it",
        "ethtool -T eth0",
    ),
    (
        |f| {
            let etf = qdisc("etf", Handle::new(0x10, 0), Handle::new(100, 1));
            device(f).qdiscs.push(etf);
        },
        "etf-software",
        Severity::Note,
        "etf at 64:1",
        "tc -s qdisc show dev eth0",
    ),
];
