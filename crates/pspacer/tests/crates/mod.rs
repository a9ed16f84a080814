// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may depend on whom, among the crates.

/// Every crate, and those of ours that it may use.
pub const MAY_USE: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("toml-faults", &["units"]),
    ("capture", &["units"]),
    ("sender-log", &["units"]),
    ("metrics", &["capture", "scenario", "sender-log", "units"]),
    ("scenario", &["toml-faults", "units"]),
    ("st2110", &["units"]),
    ("pace", &[]),
    (
        "netsim",
        &["capture", "pace", "scenario", "sender-log", "units"],
    ),
    ("stall", &["capture", "units"]),
    ("stall-files", &["capture", "stall", "units"]),
    ("predict", &[]),
    // Its tests compare bounds with those of predict.
    ("admission", &["predict", "toml-faults", "units"]),
    ("vmlab", &["scenario", "units"]),
    (
        "report",
        &[
            "capture",
            "metrics",
            "predict",
            "scenario",
            "sender-log",
            "stall",
            "units",
        ],
    ),
    (
        "lab-run",
        &[
            "capture",
            "metrics",
            "netsim",
            "predict",
            "report",
            "scenario",
            "sender-log",
            "stall",
            "units",
            "vmlab",
        ],
    ),
    // Clocks, sockets and threads of the live tools; no rules of ours.
    ("linux-io", &["units"]),
    // Compiles bpf/, for build scripts.
    ("bpf-build", &[]),
    ("afxdp", &["bpf-build"]),
    ("ping", &["linux-io", "units"]),
    // Traffic control over netlink.
    ("tcpsp", &["linux-io", "units"]),
    ("host-config", &["tcpsp", "toml-faults", "units"]),
    // Its tests compare departures with those of pace, in guests of vmlab.
    (
        "edt",
        &[
            "bpf-build",
            "host-config",
            "linux-io",
            "pace",
            "scenario",
            "tcpsp",
            "units",
            "vmlab",
        ],
    ),
    // Its tests run in guests of vmlab.
    (
        "bpf-qdisc",
        &["bpf-build", "linux-io", "pace", "scenario", "vmlab"],
    ),
    // Its tests apply files under traffic, in guests of vmlab, and read what was on the cable.
    (
        "host-apply",
        &[
            "capture",
            "edt",
            "host-config",
            "linux-io",
            "scenario",
            "tcpsp",
            "units",
            "vmlab",
        ],
    ),
    ("ports", &["linux-io", "tcpsp"]),
    // Its tests run the Prometheus that vmlab unpacks.
    (
        "exporter",
        &[
            "host-config",
            "linux-io",
            "manager",
            "ports",
            "stall",
            "tcpsp",
            "vmlab",
            "watch",
        ],
    ),
    ("doctor", &["linux-io", "ports", "tcpsp", "units"]),
    // Both show what managers have granted.
    (
        "top",
        &["host-config", "manager", "ports", "tcpsp", "units"],
    ),
    ("router", &["afxdp", "linux-io", "toml-faults", "units"]),
    // Its tests run the etcd that vmlab unpacks.
    (
        "manager",
        &[
            "admission",
            "linux-io",
            "report",
            "toml-faults",
            "units",
            "vmlab",
        ],
    ),
    (
        "agent",
        &[
            "admission",
            "host-apply",
            "host-config",
            "linux-io",
            "manager",
            "tcpsp",
            "units",
        ],
    ),
    // The C-callable library.
    ("psp-reserve", &["admission", "linux-io", "manager"]),
    (
        "media",
        &["capture", "linux-io", "report", "st2110", "units"],
    ),
    (
        "watch",
        &["bpf-build", "linux-io", "sender-log", "stall", "units"],
    ),
    ("watch-view", &["report", "stall", "units", "watch"]),
    // For tests of all others: see below.
    ("testkit", &[]),
    // Connections whose truth is known, for tests of the analysis.
    ("tcp-stacks", &["capture", "stall"]),
    (
        "pspacer",
        &[
            "agent",
            "capture",
            "doctor",
            "exporter",
            "host-apply",
            "lab-run",
            "linux-io",
            "manager",
            "media",
            "metrics",
            "ping",
            "ports",
            "predict",
            "report",
            "router",
            "scenario",
            "stall",
            "stall-files",
            "tcpsp",
            "top",
            "units",
            "vmlab",
            "watch",
            "watch-view",
        ],
    ),
    // What only developers run.
    (
        "xtask",
        &[
            "capture",
            "lab-run",
            "pspacer",
            "report",
            "scenario",
            "stall",
            "tcp-stacks",
            "units",
            "vmlab",
        ],
    ),
];
