// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table: what each rule finds, one change away from a host on which none finds anything.

use std::collections::BTreeSet;

use crate::host::{
    ROOT, account, device, fifo_that_drops, fine, launches, program, psp, qdisc, renewed,
};
use doctor::facts::{Facts, IdleState, Lateness, ManagerFile, Trial};
use doctor::{RULES, Severity, findings};
use tcpsp::account::Renewable;
use tcpsp::{Gap, Handle, SplitGso, Why};

type Change = fn(&mut Facts);

/// What is changed, the one finding, words of what it says, and of its command.
const TABLE: &[(Change, &str, Severity, &str, &str)] = &[
    (
        |f| (f.is_module_loaded, f.are_signatures_enforced) = (false, false),
        "module-not-loaded",
        Severity::Note,
        "not loaded",
        "modprobe sch_psp",
    ),
    (
        |f| (f.is_module_loaded, f.is_module_installed) = (false, false),
        "module-missing",
        Severity::Fault,
        "6.12.48+deb13-amd64",
        "make install",
    ),
    (
        |f| f.is_module_loaded = false,
        "module-signature",
        Severity::Warning,
        "keys that it trusts",
        "mokutil --import /var/lib/dkms/mok.pub",
    ),
    (
        |f| (f.is_module_loaded, f.is_module_signed) = (false, None),
        "module-signature",
        Severity::Warning,
        "keys that it trusts",
        "modprobe sch_psp ||",
    ),
    (
        |f| (f.is_module_loaded, f.is_module_signed) = (false, Some(false)),
        "module-not-signed",
        Severity::Fault,
        "not signed",
        "/var/lib/dkms/mok.key /var/lib/dkms/mok.pub /lib/modules/6.12/sch_psp.ko && mokutil",
    ),
    (
        |f| f.module_version = Some("0.1.0".to_owned()),
        "module-version",
        Severity::Warning,
        "0.1.0",
        "modprobe -r",
    ),
    (
        |f| f.kernel_release = "5.10.0-33".to_owned(),
        "kernel-old",
        Severity::Warning,
        "5.10.0-33",
        "linux-image",
    ),
    (
        |f| f.file_refusal = Some("/etc/pspacer/eth0.toml:3: no device eth0".to_owned()),
        "file-refused",
        Severity::Fault,
        "eth0.toml:3: no device eth0.",
        "pspacer plan",
    ),
    (
        |f| f.absent_devices = vec!["eth9".to_owned()],
        "device-absent",
        Severity::Note,
        "name eth9, which is not there.",
        "systemctl enable \"$(systemd-escape --template=pspacer@.service eth9)\"",
    ),
    (
        |f| (f.near_sockets, device(f).leaves_bursts_whole) = (Some(2), true),
        "bursts-near",
        Severity::Note,
        "2 TCP connections have round trips below half a millisecond",
        "net.ipv4.tcp_tso_rtt_log=0",
    ),
    (
        |f| device(f).file_changes = Some(vec!["delete  class 1:3".to_owned(), String::new()]),
        "file-differs",
        Severity::Warning,
        "apply would: delete  class 1:3 (1 of 2).",
        "pspacer apply --device eth0",
    ),
    (
        |f| device(f).reasons.taken_by = vec!["program cni (id 7) at tcx egress".to_owned()],
        "taken-before",
        Severity::Fault,
        "program cni (id 7)",
        "pspacer verify eth0",
    ),
    (
        |f| renewed(f, Renewable::Interface, "br0", 5),
        "interface-renewed",
        Severity::Fault,
        "by its index 5; it has 9 now",
        "pspacer apply --device eth0",
    ),
    (
        |f| renewed(f, Renewable::Cgroup, "/backup.service", 4021),
        "cgroup-renewed",
        Severity::Fault,
        "cgroup /backup.service by its number 4021; it has 9 now",
        "pspacer apply --device eth0",
    ),
    (
        |f| fifo_that_drops(f, "its limit is 0: it drops every packet"),
        "drops-all",
        Severity::Fault,
        "pfifo at parent 8001:2: its limit is 0",
        "tc -s qdisc show dev eth0 parent 8001:2",
    ),
    (
        |f| device(f).account = Some(account(1000, 900, None)),
        "bypassed",
        Severity::Fault,
        "sent 1000 frames, psp counted 900 of them; they may differ by 26.",
        "pspacer verify eth0",
    ),
    (
        |f| device(f).account = Some(account(1000, 1000, Some(1000))),
        "unmatched",
        Severity::Note,
        "No rule claims any of the 1000 frames",
        "pspacer verify eth0",
    ),
    (
        |f| {
            device(f).manager_file = Some(ManagerFile {
                manager: "systemd-networkd".to_owned(),
                file: "/etc/systemd/network/lan.network".to_owned(),
                setting: "[CAKE]".to_owned(),
            })
        },
        "other-manager",
        Severity::Warning,
        "[CAKE] in /etc/systemd/network/lan.network",
        "$EDITOR /etc/systemd/network/lan.network",
    ),
    (
        |f| device(f).mtu_bytes = Some(9001),
        "mtu-untested",
        Severity::Note,
        "MTU is 9001",
        "ip link set eth0 mtu 9000",
    ),
    (
        |f| f.timer_resolution_ns = 4_000_000,
        "timers-coarse",
        Severity::Fault,
        "4.000 ms",
        "highres",
    ),
    (
        |f| f.clocksource = Some("hpet".to_owned()),
        "clock-slow",
        Severity::Warning,
        "hpet",
        "echo tsc",
    ),
    (
        |f| {
            f.idle_states.push(IdleState {
                name: "C6".to_owned(),
                latency_us: 51,
            })
        },
        "idle-deep",
        Severity::Warning,
        "C6, which takes 51 µs",
        "cpupower idle-set -D 50",
    ),
    (
        |f| {
            f.timers = Some(Lateness {
                p99_ns: 1_500_000,
                ..Lateness::default()
            })
        },
        "timers-late",
        Severity::Warning,
        "1.500 ms",
        "tuned-adm",
    ),
    (
        |f| f.paced_sockets = Some(3),
        "sockets-paced",
        Severity::Note,
        ": 3.",
        "ss -tin",
    ),
    (
        |f| program(f, 2, 0),
        "launch-times-lost",
        Severity::Warning,
        "no qdisc keeps them: sender 2.",
        "txtime monotonic",
    ),
    (
        |f| program(f, 0, 1),
        "socket-rates-lost",
        Severity::Warning,
        "no qdisc keeps it: sender 1.",
        "psp mode dynamic",
    ),
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

#[test]
fn a_host_that_is_fine() {
    assert_eq!(findings(&fine()), Vec::new());
    // So it is with what its kernel or driver does not say.
    let mut silent = fine();
    silent.timers = None;
    silent.clocksource = None;
    silent.module_version = None;
    silent.paced_sockets = None;
    silent.idle_states.clear();
    let device = device(&mut silent);
    device.line_rate_bps = None;
    device.is_full_duplex = None;
    device.is_held_by_pause = None;
    device.sends_pause = None;
    device.tx_coalesce_us = None;
    device.has_tso = None;
    device.queue_limits_min_bytes.clear();
    assert_eq!(findings(&silent), Vec::new());
}

#[test]
fn each_rule_finds_what_it_is_for() {
    for (change, id, severity, what, command) in TABLE {
        let mut facts = fine();
        change(&mut facts);
        let found = findings(&facts);
        let [finding] = &found[..] else {
            panic!("{id}: one finding was expected: {found:#?}");
        };
        assert_eq!(
            (finding.id, finding.severity),
            (*id, *severity),
            "{finding:#?}"
        );
        assert!(finding.what.contains(what), "{id}: {finding:#?}");
        assert!(finding.command.contains(command), "{id}: {finding:#?}");
        assert!(
            !finding.command.contains('\n') && finding.why.ends_with('.'),
            "{finding:#?}"
        );
    }
}

#[test]
fn the_table_has_every_rule() {
    let tested: BTreeSet<_> = TABLE.iter().map(|row| row.1).collect();
    let rules: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(rules.len(), RULES.len(), "each id is of one rule");
    assert_eq!(tested, rules);
}
