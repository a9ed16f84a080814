// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario after every reference, unit and parameter has been resolved:
//! what the two engines and the measurements work from.

use std::fmt;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::str::FromStr;

use crate::error::Place;
use crate::expr::Env;
use crate::isochronous::Isochronous;

/// Which kernel is under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kernel {
    /// Debian 12.
    V6_1,
    /// Debian 12's backport.
    V6_12,
    /// Debian 13's backport.
    V7,
}

impl Kernel {
    /// All of them, oldest first.
    pub const ALL: [Self; 3] = [Self::V6_1, Self::V6_12, Self::V7];
    /// Their names, in that order.
    pub const NAMES: [&str; 3] = ["6.1", "6.12", "7"];

    /// Whether a release, such as `6.12.9-amd64`, is one of this kernel's.
    #[must_use]
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

/// A name that is no kernel's.
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
    /// Short name: `A-Z a-z 0-9 . _ -`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What is being reproduced; may be empty.
    pub source: String,
    /// Kernel under test.
    pub kernel: Kernel,
    /// Seed of the run.
    pub seed: u64,
    /// How often each cell is run, with seeds that count up from `seed`; above 1 only in the
    /// simulator, for what transfers of known length come to.
    pub runs: u64,
    /// Cells run one after another in one guest; at least 1.
    pub per_boot: usize,
    /// Every combination of the sweep, in order; at least one.
    pub cells: Vec<Cell>,
}

/// One combination of the sweep, ready to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Position in the sweep, from 0.
    pub index: usize,
    /// Parameters, then sweep values, by name.
    pub params: Env,
    /// From t = 0, when the first flow may start.
    pub duration_ns: u64,
    /// After `duration_ns`, before the cell is taken down.
    pub settle_ns: u64,
    /// Memory of the guest.
    pub memory_bytes: u64,
    /// Hosts; at least one.
    pub hosts: Vec<Host>,
    /// Cables; at least one if there are no segments.
    pub cables: Vec<Cable>,
    /// `tc` lines, in order of their time, then of the file.
    pub tc: Vec<TcLine>,
    /// System controls to set.
    pub sysctls: Vec<Sysctl>,
    /// Interrupts held off at random instants.
    pub noise: Option<Noise>,
    /// What is sent.
    pub flows: Vec<Flow>,
    /// Programs that get no CPU for a while; those of one program do not overlap.
    pub freezes: Vec<Freeze>,
    /// Chosen frames that are lost or late; of several that fit one, the first counts.
    pub impairments: Vec<Impairment>,
    /// Where it is looked at.
    pub captures: Vec<Capture>,
    /// What is known beforehand of flows that stop.
    pub stops: Vec<KnownStop>,
    /// When to measure; at least one.
    pub windows: Vec<Window>,
    /// What is drawn finer.
    pub closeups: Vec<Closeup>,
    /// What must hold.
    pub bounds: Vec<Bound>,
    /// Hosts on segments that send by periods; there are then no cables and no flows.
    pub isochronous: Option<Isochronous>,
    /// What must hold of transfers over all runs; `metric` is one of
    /// [`crate::result::TransferRow::NAMES`].
    pub transfer_bounds: Vec<Bound>,
}

impl Cell {
    /// The name of a flow or stream; of all of them together, and of one that the
    /// cell does not have, empty.
    #[must_use]
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
    /// Its name.
    pub name: String,
    /// IPv4 addresses on each of its devices; at least 1.
    pub addresses: u8,
}

/// One of the two ends of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// The first.
    A,
    /// The second.
    B,
}

impl End {
    /// Both, in order.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// 0 or 1.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }

    /// The far end.
    #[must_use]
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
    /// Its name.
    pub name: String,
    /// Devices at end a and end b.
    pub ends: [Device; 2],
    /// Line rate.
    pub rate_bps: u64,
    /// MTU of both devices.
    pub mtu: u32,
    /// Propagation, each way.
    pub delay_ns: u64,
    /// Transmit queues of each device.
    pub queues: u32,
    /// Transmit descriptors of each queue, frames.
    pub ring: u32,
    /// Byte queue limit floor; `None` leaves it to the kernel.
    pub bql_min_bytes: Option<u64>,
    /// Transmit completion after so many frames ...
    pub coalesce_frames: u32,
    /// ... or this long.
    pub coalesce_ns: u64,
    /// The far ends count and discard data frames.
    pub sink: bool,
    /// Bytes of each frame to keep; 0 for none.
    pub snap_bytes: u32,
    /// At the far port of the frames sent by end a, and by end b.
    pub bottlenecks: [Option<Bottleneck>; 2],
}

/// What the far port of a cable's direction does to frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// Drain rate of the FIFO, or token rate of the policer.
    pub rate_bps: u64,
    /// How the rate is kept.
    pub kind: BottleneckKind,
    /// After it.
    pub delay_ns: u64,
    /// The cable whose frames, sent by the same end, enter it too.
    pub also: Option<usize>,
}

/// How a bottleneck keeps its rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BottleneckKind {
    /// Drop-tail queue.
    Fifo {
        /// Its size.
        bytes: u64,
    },
    /// Token bucket without a queue.
    Policer {
        /// Its depth.
        burst_bytes: u64,
        /// Tokens come at multiples of this; 0: continuously.
        refresh_ns: u64,
    },
}

/// Arguments of tc(8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcLine {
    /// Index into [`Cell::hosts`].
    pub host: usize,
    /// Instant after t = 0; `None`: before it.
    pub at_ns: Option<u64>,
    /// The arguments.
    pub args: Vec<String>,
    /// Where it stands.
    pub place: Place,
}

/// A system control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysctl {
    /// Index into [`Cell::hosts`].
    pub host: usize,
    /// Its name, with dots.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Where it stands.
    pub place: Place,
}

/// The CPU held with interrupts off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Each hold is uniform in 0 to this; above 0.
    pub hold_max_ns: u64,
    /// Mean distance, exponential.
    pub every_ns: u64,
}

/// Which of a host's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// What sends its flows.
    Sender,
    /// What receives flows to it.
    Receiver,
}

/// A program that gets no CPU for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// Index into [`Cell::hosts`].
    pub host: usize,
    /// Which program there.
    pub program: Program,
    /// Since t = 0.
    pub from_ns: u64,
    /// Above `from_ns`, and at most the cell's duration.
    pub to_ns: u64,
}

/// Frames of one direction that are lost on the cable or arrive late: those that fit
/// everything that is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impairment {
    /// Whose.
    pub direction: Direction,
    /// Of this flow, its data or what answers it: index into [`Cell::flows`].
    pub flow: Option<usize>,
    /// Segments that begin in these bytes of the flow's stream, counted from 0.
    pub bytes: Option<Range<u64>>,
    /// The first so many transmissions of each of these segments.
    pub copies: Option<u64>,
    /// Frames larger than this.
    pub larger_bytes: Option<u64>,
    /// One in so many on average, by the seed.
    pub every: Option<u64>,
    /// That start from here on, since t = 0 ...
    pub start_ns: u64,
    /// ... and before this.
    pub stop_ns: u64,
    /// What becomes of them.
    pub kind: ImpairmentKind,
    /// Where it stands.
    pub place: Place,
}

/// What becomes of an impaired frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImpairmentKind {
    /// It never arrives.
    Lost,
    /// It arrives later, and others overtake it.
    Late {
        /// By so much, above 0.
        by_ns: u64,
    },
    /// It arrives at [`Impairment::stop_ns`] at the earliest, in its order.
    Held,
}

/// What a capture at a device would show, written as `NAME.pcapng`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Its name.
    pub name: String,
    /// What leaves by this end, and what arrives there.
    pub at: Direction,
}

/// Why a flow stops, known before it is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownStop {
    /// Index into [`Cell::flows`]; TCP.
    pub flow: usize,
    /// A cause by its name in docs/stalls.md, or `none`.
    pub cause: String,
    /// Whose side it is on; `None` only with `none`.
    pub side: Option<StopSide>,
    /// It is looked for from here, since t = 0 ...
    pub from_ns: u64,
    /// ... to here.
    pub to_ns: u64,
    /// Where it stands.
    pub place: Place,
}

/// Whose side a stop is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSide {
    /// The host that sends, or its program.
    Sender,
    /// The host that receives, or its program.
    Receiver,
    /// Anything between them.
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

/// Something that sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// What it sends.
    pub kind: FlowKind,
    /// Sending host: index into [`Cell::hosts`].
    pub from: usize,
    /// Receiving host: index into [`Cell::hosts`].
    pub to: usize,
    /// First address of the device it leaves by.
    pub source: Ipv4Addr,
    /// Source port; of the data connection when it is TCP.
    pub source_port: u16,
    /// The address it goes to.
    pub destination: Ipv4Addr,
    /// Destination port.
    pub port: u16,
    /// Start after t = 0.
    pub start_ns: u64,
    /// Stop after t = 0; later than the start, and not after the duration.
    pub stop_ns: u64,
    /// What it should achieve.
    pub target: Option<Target>,
    /// The cables it crosses, in order; at least one.
    pub path: Vec<Direction>,
    /// Where its table begins.
    pub place: Place,
}

impl Flow {
    /// Where the flow is measured: on the first cable of the file that it
    /// crosses.
    #[must_use]
    pub fn measured_at(&self) -> Option<Direction> {
        self.path.iter().copied().min_by_key(|hop| hop.cable)
    }
}

/// How the datagrams of one flow are divided, system call by system call in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The first class they ask for by their priority, major number above minor.
    pub class: Option<u32>,
    /// So many classes, from that on.
    pub classes: u16,
    /// So many ports, from the flow's on.
    pub ports: u16,
}

impl Default for Spread {
    fn default() -> Self {
        Self {
            class: None,
            classes: 1,
            ports: 1,
        }
    }
}

/// A source that is silent again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOff {
    /// Sends for so long, above 0 ...
    pub on_ns: u64,
    /// ... and then not, above 0.
    pub off_ns: u64,
}

/// A program that sends so much at once, and is silent until it is time again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// Of each, above 0.
    pub bytes: u64,
    /// From the start of one to that of the next, above 0; later if one is not sent by then.
    pub every_ns: u64,
}

/// What a flow sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// Datagrams from a socket.
    Udp {
        /// Payload of one.
        payload_bytes: u32,
        /// Datagrams per system call.
        batch: u32,
        /// Link-layer rate offered; `None`: as fast as the socket takes.
        rate_bps: Option<u64>,
        /// Whose they are.
        spread: Spread,
        /// Socket buffer; `None`: 1 MB, or what another flow of the host asks for.
        buffer_bytes: Option<u32>,
        /// Sends and is silent in turn; `None`: never silent. The simulator only.
        on_off: Option<OnOff>,
    },
    /// One connection with as much to send as it takes.
    Tcp {
        /// Congestion control.
        congestion: String,
        /// Socket buffers; `None`: the kernel's own tuning.
        window_bytes: Option<u64>,
        /// `SO_MAX_PACING_RATE`; `None`: no limit.
        pacing_bps: Option<u64>,
        /// How often the sender's state is written down; `None`: never.
        sample_ns: Option<u64>,
        /// Which TCP the simulator models, and what is changed in it (docs/simulator.md);
        /// `None`: today's. The laboratory has its kernel's.
        stack: Option<String>,
        /// What is to be sent; `None`: as much as it takes. The simulator only.
        bytes: Option<u64>,
        /// What the program sends at once, again and again; `None`: without end. The
        /// laboratory only.
        messages: Option<Messages>,
    },
    /// Datagrams made by the kernel's packet generator.
    Pktgen {
        /// Payload of one.
        payload_bytes: u32,
        /// Link-layer rate offered; `None`: as fast as it goes.
        rate_bps: Option<u64>,
    },
}

impl FlowKind {
    /// `udp` or `tcp`, as it is on the wire.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        match self {
            Self::Udp { .. } | Self::Pktgen { .. } => "udp",
            Self::Tcp { .. } => "tcp",
        }
    }
}

/// A rate to achieve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The rate.
    pub rate_bps: u64,
    /// What its bytes are.
    pub layer: Layer,
}

/// Which bytes of a frame a rate counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layer {
    /// The frame as the host holds it: header, no FCS.
    #[default]
    Link,
    /// What the wire carries: padded, FCS, preamble and gap.
    Wire,
    /// Without the link header.
    Ip,
}

/// A time to measure over, from t = 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its name.
    pub name: String,
    /// Begin.
    pub from_ns: u64,
    /// End; later than the begin, and not after the duration.
    pub to_ns: u64,
}

/// A stretch of time to be drawn finer than the whole cell, every flow's
/// bandwidth and their sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closeup {
    /// Its name.
    pub name: String,
    /// Begin.
    pub from_ns: u64,
    /// End; later than the begin, and not after the duration.
    pub to_ns: u64,
    /// Of one point.
    pub interval_ns: u64,
    /// Whole intervals over which a mean is drawn too.
    pub mean_ns: Option<u64>,
}

/// A value that must hold, of one flow in one window.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Whose.
    pub subject: Subject,
    /// Index into [`Cell::windows`].
    pub window: usize,
    /// One of [`crate::result::FlowMetrics::NAMES`].
    pub metric: String,
    /// Smallest value allowed.
    pub min: Option<f64>,
    /// Largest value allowed.
    pub max: Option<f64>,
}

/// Whose metric a bound is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Index into [`Cell::flows`].
    Flow(usize),
    /// Index into [`Isochronous::streams`].
    Stream(usize),
    /// All data frames of one direction together: the one where the first
    /// flow is measured.
    Wire,
}
