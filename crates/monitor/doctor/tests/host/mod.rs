// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host on which no rule finds anything, and its parts, to change one.

use doctor::facts::{Device, Facts, IdleState, Lateness, Program, Psp, PspClass, Qdisc, UnreadPsp};
use host_config::{Backend, minor};
use tcpsp::account::{Account, Reasons, Renewable, Renewed, Traffic};
use tcpsp::{Handle, Mode, QdiscOptions, QdiscStats};

pub const ROOT: Handle = Handle::new(1, 0);

/// A host on which nothing is to be found: psp in mode hybrid on a NIC of 10 Gbit/s.
pub fn fine() -> Facts {
    let stats = QdiscStats {
        mode: Mode::Hybrid.number(),
        line_rate_bps: 10_000_000_000,
        line_known: 1,
        line_measured_bps: 9_990_000_000,
        queues: 1,
        ..QdiscStats::default()
    };
    let psp = Psp {
        backend: Backend::Module,
        handle: ROOT,
        parent: Handle::ROOT,
        options: QdiscOptions::default_of(true),
        stats,
        classes: [(1, false), (3, true), (2, true)]
            .map(|(minor, is_normal)| PspClass {
                id: Handle::new(1, minor),
                is_normal,
                is_dynamic: false,
                has_launch_times: false,
            })
            .to_vec(),
        rates_bps: 5_000_000_000,
        drops: vec![("drop_child", 0), ("drop_late", 0)],
    };
    let eth0 = Device {
        name: "eth0".to_owned(),
        driver: Some("ixgbe".to_owned()),
        pci_id: Some(0x8086_10fb),
        has_sent_timestamps: Some(true),
        ptp_clock: Some(0),
        is_ethernet: true,
        has_carrier: Some(true),
        line_rate_bps: Some(10_000_000_000),
        is_full_duplex: Some(true),
        is_held_by_pause: Some(false),
        sends_pause: Some(false),
        tx_coalesce_us: Some(50),
        has_tso: Some(true),
        has_gso: Some(true),
        queue_limits_min_bytes: vec![75_000; 4],
        mtu_bytes: Some(1500),
        manager_file: None,
        is_open_vswitch_port: false,
        file_changes: Some(Vec::new()),
        is_file_unread: false,
        leaves_bursts_whole: false,
        reasons: Reasons::default(),
        account: None,
        qdiscs: vec![qdisc("psp", ROOT, Handle::ROOT)],
        psp: vec![psp],
        unread_psp: Vec::new(),
        trial: None,
    };
    Facts {
        program_version: "0.2.0".to_owned(),
        is_root: true,
        kernel_release: "6.12.48+deb13-amd64".to_owned(),
        is_module_loaded: true,
        is_module_installed: true,
        module_file: Some("/lib/modules/6.12/sch_psp.ko".to_owned()),
        is_module_signed: Some(true),
        are_signatures_enforced: true,
        module_version: Some("0.2.0".to_owned()),
        timer_resolution_ns: 1,
        clocksource: Some("tsc".to_owned()),
        idle_states: vec![IdleState {
            name: "C1E".to_owned(),
            latency_us: 10,
        }],
        paced_sockets: Some(0),
        pacing_programs: Some(Vec::new()),
        keeps_launch_times: false,
        keeps_socket_rates: false,
        file_refusal: None,
        absent_devices: Vec::new(),
        tso_rtt_log: Some(9),
        near_sockets: Some(0),
        timers: Some(Lateness {
            timers: 1000,
            median_ns: 5_000,
            p99_ns: 60_000,
            max_ns: 200_000,
        }),
        devices: vec![eth0],
    }
}

pub fn qdisc(kind: &str, handle: Handle, parent: Handle) -> Qdisc {
    Qdisc {
        kind: kind.to_owned(),
        handle,
        parent,
        is_offloaded: None,
        drops_all: None,
        horizon_drops: None,
    }
}

/// Makes it a NIC that launches by time, with etf on its first transmit queue.
pub fn launches(facts: &mut Facts, etf_is_offloaded: Option<bool>) {
    let eth0 = device(facts);
    eth0.driver = Some("igc".to_owned());
    let etf = etf_is_offloaded.map(|is_offloaded| Qdisc {
        is_offloaded: Some(is_offloaded),
        ..qdisc("etf", Handle::new(0x10, 0), Handle::new(100, 1))
    });
    eth0.qdiscs.extend(etf);
}

pub fn device(facts: &mut Facts) -> &mut Device {
    &mut facts.devices[0]
}

pub fn psp(facts: &mut Facts) -> &mut Psp {
    &mut facts.devices[0].psp[0]
}

/// Returns the kind of qdisc that keeps the packets of a backend.
pub const fn kind(backend: Backend) -> &'static str {
    match backend {
        Backend::Module => "psp",
        Backend::Bpf => "psp_bpf",
        Backend::Edt => "fq",
    }
}

/// Makes its psp one of a backend without the module, as [`backend::standing`] returns it.
pub fn without_module(facts: &mut Facts, backend: Backend) {
    (facts.is_module_loaded, facts.is_module_installed) = (false, false);
    let eth0 = device(facts);
    eth0.qdiscs = vec![qdisc(kind(backend), minor::root(), Handle::ROOT)];
    let line_bps = match backend {
        Backend::Edt => 0,
        Backend::Module | Backend::Bpf => 10_000_000_000,
    };
    let psp = psp(facts);
    (psp.backend, psp.handle) = (backend, minor::root());
    psp.stats = QdiscStats {
        mode: Mode::Timer.number(),
        line_rate_bps: line_bps,
        line_known: u64::from(line_bps > 0),
        ..QdiscStats::default()
    };
}

/// Leaves the statistics of such a psp unread.
pub fn unread(facts: &mut Facts, backend: Backend) {
    without_module(facts, backend);
    let eth0 = device(facts);
    eth0.psp.clear();
    eth0.unread_psp = vec![UnreadPsp {
        backend,
        handle: minor::root(),
        parent: Handle::ROOT,
        why: "Operation not permitted (os error 1)".to_owned(),
    }];
}

pub fn program(facts: &mut Facts, with_launch_times: u64, with_rate: u64) {
    facts.pacing_programs = Some(vec![Program {
        name: "sender".to_owned(),
        with_launch_times,
        with_rate,
    }]);
}

/// What a device has sent, what psp counted of that, and what rules left to best effort, in frames of
/// 1,000 bytes.
pub fn account(device: u64, counted: u64, unmatched: Option<u64>) -> Account {
    let traffic = |frames| Traffic {
        frames,
        bytes: frames * 1000,
    };
    Account {
        device: traffic(device),
        counted: traffic(counted),
        unmatched: unmatched.map(traffic),
        tolerance_frames: 16 + device / 100,
    }
}

/// A rule names something by another number than its 9.
pub fn renewed(facts: &mut Facts, what: Renewable, name: &str, number_in_force: u64) {
    device(facts).reasons.renewed = vec![Renewed {
        what,
        name: name.to_owned(),
        number_in_force,
        number: 9,
    }];
}

/// A class's queue drops all, and why.
pub fn fifo_that_drops(facts: &mut Facts, why: &str) {
    let mut fifo = qdisc("pfifo", Handle::new(0x8003, 0), Handle::new(0x8001, 2));
    fifo.drops_all = Some(why.to_owned());
    device(facts).qdiscs.push(fifo);
}
