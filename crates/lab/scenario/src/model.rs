// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario with all references, units and parameters resolved: input of engines and metrics.

use std::fmt;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::str::FromStr;
use toml_reader::Place;

use crate::expr::Env;
use crate::flow_kind::FlowKind;
use crate::isochronous::Isochronous;

/// The kernel under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kernel {
    /// Debian 12's kernel.
    V6_1,
    /// The backport kernel of Debian 12.
    V6_12,
    /// The backport kernel of Debian 13.
    V7,
}

impl Kernel {
    /// All kernels, oldest first.
    pub const ALL: [Self; 3] = [Self::V6_1, Self::V6_12, Self::V7];
    /// Names of the kernels, in the order of [`Kernel::ALL`].
    pub const NAMES: [&str; 3] = ["6.1", "6.12", "7"];

    /// Returns whether a release, such as `6.12.9-amd64`, belongs to this kernel.
    pub fn is_of(self, release: &str) -> bool {
        let name = self.to_string();
        let rest = release.strip_prefix(name.as_str());
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Self::NAMES[*self as usize])
    }
}

/// The error for a name that is not that of a known kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel is \"{0}\", expected \"6.1\", \"6.12\" or \"7\"")]
pub struct UnknownKernel(String);

impl FromStr for Kernel {
    type Err = UnknownKernel;

    fn from_str(text: &str) -> Result<Self, UnknownKernel> {
        Self::ALL
            .into_iter()
            .find(|kernel| kernel.to_string() == text)
            .ok_or_else(|| UnknownKernel(text.to_owned()))
    }
}

/// A scenario and its cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Short name, of `A-Z a-z 0-9 . _ -`.
    pub name: String,
    /// One line that describes the scenario to people.
    pub title: String,
    /// Publication or figure that is reproduced; may be empty.
    pub source: String,
    /// Kernel under test.
    pub kernel: Kernel,
    /// Seed of the run.
    pub seed: u64,
    /// How often each cell is run, run k from 0 with `seed` + k. Only the simulator takes over 1.
    pub runs: u64,
    /// Number of cells run one after another in one guest; at least 1.
    pub per_boot: usize,
    /// Every combination of the sweep, in order; at least one.
    pub cells: Vec<Cell>,
}

/// One combination of the sweep, ready to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Index in the sweep, from 0.
    pub index: usize,
    /// Values of the parameters, then of the sweep, by name.
    pub params: Env,
    /// Length of the cell, from t = 0, when the first flow may start.
    pub duration_ns: u64,
    /// Time after `duration_ns` before the cell is taken down.
    pub settle_ns: u64,
    /// Memory of the guest, bytes.
    pub memory_bytes: u64,
    /// Processors of the guest; at least 1. With more than one, runs differ. The simulator has
    /// none.
    pub cpus: u32,
    /// Hosts; at least one.
    pub hosts: Vec<Host>,
    /// Cables; at least one if there are no segments.
    pub cables: Vec<Cable>,
    /// Lines of tc(8) arguments, in order of their time, then of the file.
    pub tc: Vec<TcLine>,
    /// System controls to set.
    pub sysctls: Vec<Sysctl>,
    /// Features of all devices of hosts, switched before the queues are made.
    pub offloads: Vec<Offload>,
    /// Programs that run on hosts beside the flows.
    pub host_programs: Vec<HostProgram>,
    /// Times at random instants in which interrupts are held off.
    pub noise: Option<Noise>,
    /// Flows that the hosts send.
    pub flows: Vec<Flow>,
    /// Times in which programs get no CPU; those of one program do not overlap.
    pub freezes: Vec<Freeze>,
    /// Frames that are lost or delayed on purpose. If several impairments match a frame, the
    /// first applies.
    pub impairments: Vec<Impairment>,
    /// Points at which the cell is captured.
    pub captures: Vec<Capture>,
    /// What is known before the run about stalls of flows.
    pub stops: Vec<KnownStop>,
    /// Windows to measure; at least one.
    pub windows: Vec<Window>,
    /// Spans of time that are drawn in finer intervals.
    pub closeups: Vec<Closeup>,
    /// Bounds on metrics that must hold.
    pub bounds: Vec<Bound>,
    /// Hosts on segments that send by periods; such a cell has no cables and no flows.
    pub isochronous: Option<Isochronous>,
    /// Bounds on transfers that must hold over all runs; `metric` is one of
    /// [`crate::result::TransferRow::NAMES`].
    pub transfer_bounds: Vec<Bound>,
}

impl Cell {
    /// Returns the name of a flow or stream; for others and those not in the cell, "".
    pub fn name_of(&self, subject: Subject) -> &str {
        let streams = self.isochronous.as_ref().map(|of| &of.streams);
        let name = match subject {
            Subject::Flow(index) => self.flows.get(index).map(|flow| &flow.name),
            Subject::Stream(index) => streams.and_then(|s| s.get(index)).map(|s| &s.name),
            Subject::Wire => None,
        };
        name.map_or("", String::as_str)
    }
}

/// A network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name of the host.
    pub name: String,
    /// Number of IPv4 addresses on each of the host's devices; at least 1.
    pub addresses: u8,
}

/// One of the two ends of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// The first end.
    A,
    /// The second end.
    B,
}

impl End {
    /// Both ends, in order.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// Returns the index of the end, 0 or 1.
    pub fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }

    /// Returns the opposite end.
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::A => "a",
            Self::B => "b",
        })
    }
}

/// A device of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Index into [`Cell::hosts`].
    pub host: usize,
    /// Interface name within the host.
    pub name: String,
}

/// A full-duplex cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cable {
    /// Name of the cable.
    pub name: String,
    /// Devices at end a and end b.
    pub ends: [Device; 2],
    /// Line rate.
    pub rate_bps: u64,
    /// MTU of both devices.
    pub mtu: u32,
    /// Propagation delay of each direction.
    pub delay_ns: u64,
    /// Transmit queues of each device.
    pub queues: u32,
    /// Transmit descriptors of each queue, frames.
    pub ring: u32,
    /// Minimum of the byte queue limit; `None` leaves it to the kernel.
    pub bql_min_bytes: Option<u64>,
    /// Number of frames after which a transmit completion is due ...
    pub coalesce_frames: u32,
    /// ... or time after which it is due.
    pub coalesce_ns: u64,
    /// Whether the far ends count and discard data frames.
    pub sink: bool,
    /// Bytes kept of each frame; 0 for none.
    pub snap_bytes: u32,
    /// Bottlenecks at the far port, for the frames sent by end a and by end b.
    pub bottlenecks: [Option<Bottleneck>; 2],
}

/// Bottleneck that the far port of a cable's direction applies to frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// Drain rate of the FIFO, or token rate of the policer.
    pub rate_bps: u64,
    /// FIFO or policer.
    pub kind: BottleneckKind,
    /// Delay after the bottleneck.
    pub delay_ns: u64,
    /// Index of a further cable whose frames, sent by the same end, enter this bottleneck too.
    pub also: Option<usize>,
}

/// How a bottleneck keeps its rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BottleneckKind {
    /// Drop-tail queue.
    Fifo {
        /// Size of the queue.
        bytes: u64,
    },
    /// Token bucket without a queue.
    Policer {
        /// Depth of the bucket.
        burst_bytes: u64,
        /// Interval at which tokens are added; 0: continuously.
        refresh_ns: u64,
    },
}

/// What makes a psp in the laboratory. To the simulator all are the same core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The module, by tc(8).
    #[default]
    Module,
    /// The qdisc of BPF, by `pspacer apply` of a host's file that says the same as the lines.
    Bpf,
}

/// One line of arguments of tc(8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcLine {
    /// Index into [`Cell::hosts`].
    pub host: usize,
    /// Instant after t = 0 at which tc(8) runs; `None`: before t = 0.
    pub at_ns: Option<u64>,
    pub args: Vec<String>,
    /// What makes the psp that the line is about.
    pub backend: Backend,
    /// Place of the line in the scenario.
    pub place: Place,
}

/// A system control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysctl {
    /// Index into [`Cell::hosts`].
    pub host: usize,
    /// Name of the control, with dots.
    pub key: String,
    /// Value to set.
    pub value: String,
    /// Place of the control in the scenario.
    pub place: Place,
}

/// A feature of a host's devices, on or off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Index into [`Cell::hosts`].
    pub host: usize,
    /// Its name as `ethtool -K` takes it ...
    pub word: &'static str,
    /// ... and as `ethtool -k` lists it.
    pub listed: &'static str,
    pub is_on: bool,
    /// Place of the host's offloads in the scenario.
    pub place: Place,
}

/// A program of the guest, or the command `pspacer`, on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostProgram {
    /// Index into [`Cell::hosts`].
    pub host: usize,
    /// Its name, then its arguments.
    pub args: Vec<String>,
    /// A file in the folder in which it runs.
    pub file: Option<ProgramFile>,
    /// What it prints once it is ready, which is waited for before t = 0.
    pub ready: Option<String>,
    /// Start, after t = 0; `None`: before.
    pub start_ns: Option<u64>,
    /// When it is ended; `None`: with the cell.
    pub stop_ns: Option<u64>,
    /// Place of the program in the scenario.
    pub place: Place,
}

/// A file that a program finds in its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFile {
    pub name: String,
    pub text: String,
}

/// Intervals in which the CPU is held with interrupts off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Longest hold; each is uniform in 0 to this, which is above 0.
    pub hold_max_ns: u64,
    /// Mean distance between holds, distributed exponentially.
    pub every_ns: u64,
}

/// One of a host's two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The program that sends the host's flows.
    Sender,
    /// The program that receives the flows to the host.
    Receiver,
}

/// A time in which a program gets no CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// Index into [`Cell::hosts`].
    pub host: usize,
    /// The program on that host.
    pub program: Program,
    /// Begin, since t = 0.
    pub from_ns: u64,
    /// End, above `from_ns` and at most the cell's duration.
    pub to_ns: u64,
}

/// Frames of one direction that are lost on the cable or arrive late: those that match every
/// condition given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impairment {
    /// Direction of the frames.
    pub direction: Direction,
    /// Flow of the frames, its data or the answers to it: index into [`Cell::flows`].
    pub flow: Option<usize>,
    /// Range of the flow's stream, in bytes from 0: segments that begin in it match.
    pub bytes: Option<Range<u64>>,
    /// Number of transmissions of each such segment that match, from the first.
    pub copies: Option<u64>,
    /// Length that a matching frame exceeds.
    pub larger_bytes: Option<u64>,
    /// One matching frame in this many is impaired, on average, chosen by the seed.
    pub every: Option<u64>,
    /// Begin of the time in which matching frames start, since t = 0 ...
    pub start_ns: u64,
    /// ... and its end, exclusive.
    pub stop_ns: u64,
    /// What happens to the frames.
    pub kind: ImpairmentKind,
    /// Place of the impairment in the scenario.
    pub place: Place,
}

/// What happens to an impaired frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImpairmentKind {
    /// It never arrives.
    Lost,
    /// It arrives later, and other frames overtake it.
    Late {
        /// Added delay, above 0.
        by_ns: u64,
    },
    /// It arrives at [`Impairment::stop_ns`] or later, in its original order.
    Held,
}

/// A capture at a device, written as `NAME.pcapng`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Name of the capture.
    pub name: String,
    /// The direction that leaves by the captured end. The capture holds what leaves by this
    /// end and what arrives there.
    pub at: Direction,
}

/// What is known before the run about a stall of a flow: its cause, or that there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownStop {
    /// Index into [`Cell::flows`]; a TCP flow.
    pub flow: usize,
    /// Name of the cause as in docs/use/stalls.md, or `none`.
    pub cause: String,
    /// Side that causes the stall; `None` only with cause `none`.
    pub side: Option<StopSide>,
    /// Begin of the time in which the stall is looked for, since t = 0 ...
    pub from_ns: u64,
    /// ... and its end.
    pub to_ns: u64,
    /// Place of the stall in the scenario.
    pub place: Place,
}

/// The side that causes a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSide {
    /// The sending host or its program.
    Sender,
    /// The receiving host or its program.
    Receiver,
    /// Anything between the two hosts.
    Network,
}

/// One direction of one cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Direction {
    /// Index into [`Cell::cables`].
    pub cable: usize,
    /// The end that sends.
    pub end: End,
}

/// A flow of packets from one host to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Name of the flow.
    pub name: String,
    /// What the flow sends.
    pub kind: FlowKind,
    /// Sending host: index into [`Cell::hosts`].
    pub from: usize,
    /// Receiving host: index into [`Cell::hosts`].
    pub to: usize,
    /// Source address: the first address of the device that the flow leaves by.
    pub source: Ipv4Addr,
    /// Source port; for TCP that of the data connection.
    pub source_port: u16,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Destination port.
    pub port: u16,
    /// Start, after t = 0.
    pub start_ns: u64,
    /// Stop, after t = 0; later than the start, and at most the duration.
    pub stop_ns: u64,
    /// Rate that the flow should achieve.
    pub target: Option<Target>,
    /// Directions that the flow crosses, in order; at least one.
    pub path: Vec<Direction>,
    /// Place of the flow's table in the scenario.
    pub place: Place,
}

impl Flow {
    /// Returns the direction in which the flow is measured: of the cables that it crosses, the
    /// first in the file.
    pub fn measured_at(&self) -> Option<Direction> {
        self.path.iter().copied().min_by_key(|hop| hop.cable)
    }
}

/// A rate that a flow should achieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub rate_bps: u64,
    /// Which bytes the rate counts.
    pub layer: Layer,
}

/// Which bytes of a frame a rate counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layer {
    /// The frame as the host holds it: with header, without FCS.
    #[default]
    Link,
    /// The frame as the wire carries it: with padding, FCS, preamble and inter-frame gap.
    Wire,
    /// The frame without the link header.
    Ip,
}

/// A span of time to measure, from t = 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Name of the window.
    pub name: String,
    /// Begin of the window.
    pub from_ns: u64,
    /// End of the window; later than its begin, and at most the duration.
    pub to_ns: u64,
}

/// A span of time drawn in finer intervals than the whole cell: every flow's bandwidth and
/// their sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closeup {
    /// Name of the closeup.
    pub name: String,
    /// Begin of the closeup.
    pub from_ns: u64,
    /// End of the closeup; later than its begin, and at most the duration.
    pub to_ns: u64,
    /// Length of one interval.
    pub interval_ns: u64,
    /// Time over which a mean is drawn too, a multiple of the interval.
    pub mean_ns: Option<u64>,
}

/// Limits that a metric of one flow in one window must keep.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Flow, stream or wire that the metric is of.
    pub subject: Subject,
    /// Index into [`Cell::windows`].
    pub window: usize,
    /// Name of the metric, one of [`crate::result::FlowMetrics::NAMES`].
    pub metric: String,
    /// Smallest value allowed.
    pub min: Option<f64>,
    /// Largest value allowed.
    pub max: Option<f64>,
}

/// The flow, stream or wire that a bound is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A flow: index into [`Cell::flows`].
    Flow(usize),
    /// A stream: index into [`Isochronous::streams`].
    Stream(usize),
    /// All data frames of one direction: the one in which the first flow is measured.
    Wire,
}
