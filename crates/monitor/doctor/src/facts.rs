// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts of a host, as the rules want them. `None` is what this kernel or driver does not say.

use host_config::Backend;
use serde::Serialize;
use tcpsp::account::{Account, Reasons};
use tcpsp::{Handle, QdiscOptions, QdiscStats};

/// Facts of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    pub program_version: String,
    /// Whether this program runs as root.
    pub is_root: bool,
    /// The kernel's release, as `uname -r` says it.
    pub kernel_release: String,
    /// Whether the module is loaded.
    pub is_module_loaded: bool,
    /// Whether the module is where modprobe looks for it.
    pub is_module_installed: bool,
    /// The module's file, if it is installed.
    pub module_file: Option<String>,
    /// Whether that file ends with a signature; `None`: it is compressed, or cannot be read.
    pub is_module_signed: Option<bool>,
    /// Whether the kernel loads only modules that are signed with a key it trusts.
    pub are_signatures_enforced: bool,
    /// Version of the loaded module.
    pub module_version: Option<String>,
    pub timer_resolution_ns: u64,
    /// The kernel's clock, such as `tsc`.
    pub clocksource: Option<String>,
    /// Idle states of the first processor that are enabled: name, and time to leave it.
    pub idle_states: Vec<IdleState>,
    /// TCP connections of this network namespace that have SO_MAX_PACING_RATE.
    pub paced_sockets: Option<u64>,
    /// Programs whose sockets of datagrams leave pacing to a qdisc.
    pub pacing_programs: Option<Vec<Program>>,
    /// Whether a qdisc of any device keeps launch times.
    pub keeps_launch_times: bool,
    /// Whether one keeps the rates of sockets.
    pub keeps_socket_rates: bool,
    /// Why the host's files cannot be applied, if they cannot.
    pub file_refusal: Option<String>,
    /// Devices that the host's files name and that are not there.
    pub absent_devices: Vec<String>,
    /// net.ipv4.tcp_tso_rtt_log: over shorter round trips TCP makes longer bursts; 0: it does not.
    pub tso_rtt_log: Option<u64>,
    /// TCP connections with other hosts whose shortest round trip is below half a millisecond.
    pub near_sockets: Option<u64>,
    /// Lateness of timers, if it was measured.
    pub timers: Option<Lateness>,
    pub devices: Vec<Device>,
}

/// An idle state of a processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdleState {
    /// Its name, such as `C6`.
    pub name: String,
    /// Time to leave it.
    pub latency_us: u64,
}

/// A program whose sockets leave pacing to a qdisc.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    pub name: String,
    /// Sockets with launch times (SO_TXTIME).
    pub with_launch_times: u64,
    /// Sockets of datagrams with a rate (SO_MAX_PACING_RATE).
    pub with_rate: u64,
}

/// Lateness of timers, measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lateness {
    /// Timers that were measured.
    pub timers: usize,
    /// Half of them were later.
    pub median_ns: u64,
    /// One of a hundred was later.
    pub p99_ns: u64,
    pub max_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Device {
    pub name: String,
    /// Its driver; `None` of a software device.
    pub driver: Option<String>,
    /// Vendor and device of PCI, as vendor << 16 | device.
    pub pci_id: Option<u32>,
    /// Whether the NIC stamps sent frames by a clock of its own.
    pub has_sent_timestamps: Option<bool>,
    /// Number of that clock: N of `/dev/ptpN`.
    pub ptp_clock: Option<u64>,
    /// Whether its frames are Ethernet's.
    pub is_ethernet: bool,
    /// Whether it has a link; `None`: it is down.
    pub has_carrier: Option<bool>,
    pub line_rate_bps: Option<u64>,
    /// Whether it sends and receives at once.
    pub is_full_duplex: Option<bool>,
    /// Whether PAUSE frames of the link partner hold it.
    pub is_held_by_pause: Option<bool>,
    /// Whether it sends PAUSE frames of its own.
    pub sends_pause: Option<bool>,
    /// Time for which interrupts of sent frames are held off.
    pub tx_coalesce_us: Option<u64>,
    /// Whether it segments TCP (TSO).
    pub has_tso: Option<bool>,
    /// Whether the stack segments as late as it can (GSO).
    pub has_gso: Option<bool>,
    /// Byte queue limit of each transmit queue: its least value.
    pub queue_limits_min_bytes: Vec<u64>,
    /// Longest packet of the network layer.
    pub mtu_bytes: Option<u64>,
    /// The file of another program that gives it a qdisc.
    pub manager_file: Option<ManagerFile>,
    /// Whether it is a port of Open vSwitch.
    pub is_open_vswitch_port: bool,
    /// What `pspacer apply` would change by the host's files; `None`: they do not name it.
    pub file_changes: Option<Vec<String>>,
    /// Whether they name it, and only root knows what they would change.
    pub is_file_unread: bool,
    /// Whether it is paced without the module, which alone cuts bursts: there is a paced class.
    pub leaves_bursts_whole: bool,
    /// Why packets may not come to their classes, as the kernel's tables say.
    pub reasons: Reasons,
    /// What it sent while the host was looked at, and what psp counted of that.
    pub account: Option<Account>,
    /// Qdiscs, without those that the kernel made on its own below classes.
    pub qdiscs: Vec<Qdisc>,
    pub psp: Vec<Psp>,
    /// Psp whose statistics were not read.
    pub unread_psp: Vec<UnreadPsp>,
    /// What a second of traffic showed.
    pub trial: Option<Trial>,
}

/// A file of a program that configures networks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ManagerFile {
    pub manager: String,
    pub file: String,
    /// What in it makes a qdisc.
    pub setting: String,
}

/// A qdisc of any kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Qdisc {
    /// The kernel's name of its kind.
    pub kind: String,
    pub handle: Handle,
    /// [`Handle::ROOT`], or the class that it is the queue of.
    pub parent: Handle,
    /// Of etf: whether the NIC launches its frames.
    pub is_offloaded: Option<bool>,
    /// Why it drops all packets, or all full ones, if it does.
    pub drops_all: Option<String>,
    /// Of fq: packets that it dropped because their times were beyond its horizon.
    pub horizon_drops: Option<u64>,
}

impl Device {
    /// Returns what paces it, of each psp.
    pub fn backends(&self) -> impl Iterator<Item = Backend> {
        let unread = self.unread_psp.iter().map(|psp| psp.backend);
        self.psp.iter().map(|psp| psp.backend).chain(unread)
    }

    /// Returns the psp of the module.
    pub fn psp_of_module(&self) -> impl Iterator<Item = &Psp> {
        let all = self.psp.iter();
        all.filter(|psp| psp.backend == Backend::Module)
    }
}

/// A psp whose statistics were not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreadPsp {
    pub backend: Backend,
    pub handle: Handle,
    /// [`Handle::ROOT`], or mq's class that it is the queue of.
    pub parent: Handle,
    /// Why not.
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Psp {
    /// What paces by it.
    pub backend: Backend,
    pub handle: Handle,
    /// [`Handle::ROOT`], or mq's class that it is the queue of.
    pub parent: Handle,
    pub options: QdiscOptions,
    pub stats: QdiscStats,
    pub classes: Vec<PspClass>,
    /// Sum of the rates of its classes.
    pub rates_bps: u64,
    /// Frames that its classes dropped, by cause, in the order of the table.
    pub drops: Vec<(&'static str, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PspClass {
    pub id: Handle,
    /// Whether it is of type normal: without a rate.
    pub is_normal: bool,
    /// Whether its rates are those of its sockets: of type dynamic.
    pub is_dynamic: bool,
    /// Whether its frames have to have launch times: `txtime`.
    pub has_launch_times: bool,
}

/// What a second of traffic showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Trial {
    /// Frames that psp gave to the device.
    pub sent_frames: u64,
    /// Gap frames that psp gave to the device.
    pub gap_frames: u64,
    /// Frames that the device counted as sent.
    pub device_frames: u64,
    /// Times the wire was silent although a frame was due.
    pub wire_stops: u64,
}
