// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of the host: its module, kernel, clocks and files, with those that other programs have of
//! its devices.

use crate::host::{account, device, fifo_that_drops, program, renewed};
use crate::row::Row;
use doctor::Severity;
use doctor::facts::{IdleState, Lateness, ManagerFile};
use tcpsp::account::Renewable;

pub(crate) const TABLE: &[Row] = &[
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
        |f| device(f).is_file_unread = true,
        "file-unread",
        Severity::Note,
        "not compared with the host's file",
        "sudo pspacer doctor eth0",
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
        |f| device(f).is_open_vswitch_port = true,
        "other-manager",
        Severity::Note,
        "a port of Open vSwitch",
        "ovs-vsctl set port eth0 qos=@none -- --id=@none create qos type=linux-noop",
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
];
