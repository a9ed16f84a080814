// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a flow sends.

/// How the datagrams of one flow are divided: each system call uses the next class and the
/// next port, in rotation; one after the other of several sockets sends for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// First class that their priority asks for, major number above minor.
    pub class: Option<u32>,
    /// Number of classes, from `class` on.
    pub classes: u16,
    /// Number of ports, from the flow's port on.
    pub ports: u16,
    /// Number of sockets, all of the flow's addresses, with the marks 1, 2, ... The laboratory
    /// only, unless `turn_ns` is 0.
    pub sockets: u16,
    /// Time for which each socket sends; 0: one socket without a mark.
    pub turn_ns: u64,
}

impl Default for Spread {
    fn default() -> Self {
        Self {
            class: None,
            classes: 1,
            ports: 1,
            sockets: 1,
            turn_ns: 0,
        }
    }
}

/// A source that sends and is silent alternately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOff {
    /// Length of each sending time, above 0 ...
    pub on_ns: u64,
    /// ... and of each silence, above 0.
    pub off_ns: u64,
}

/// A program that writes messages at a fixed interval and is silent in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    /// Length of each message, above 0.
    pub bytes: u64,
    /// Time from the start of one message to that of the next, above 0. A message starts later
    /// if the one before is not sent by then.
    pub every_ns: u64,
}

/// How a flow with a rate begins and keeps to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// System calls at the start at once, before those at the rate.
    pub ahead: u32,
    /// What falls due within so long is sent together.
    pub slack_ns: u64,
}

/// Launch times (SO_TXTIME) of a flow's datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Their clock as psp-send names it: `monotonic` or `tai`.
    pub clock: &'static str,
    /// Each datagram is handed over so long before its launch time.
    pub lead_ns: u64,
    /// Each launch time is later than the flow's rate has it by less than this, not in step with it.
    pub jitter_ns: u64,
}

/// What a flow sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// Datagrams from a socket.
    Udp {
        /// Payload of one datagram.
        payload_bytes: u32,
        /// Datagrams per system call.
        batch: u32,
        /// Link-layer rate offered; `None`: as fast as the socket accepts data.
        rate_bps: Option<u64>,
        /// How the datagrams are divided among classes and ports.
        spread: Spread,
        /// Size of the socket buffer; `None`: 1 MB, or the size that another flow of the host
        /// asks for.
        buffer_bytes: Option<u32>,
        /// Sending times and silences; `None`: no silences. The simulator only.
        on_off: Option<OnOff>,
        /// How it begins, and keeps to its rate. The laboratory only, unless it is the default.
        pattern: Pattern,
        /// Launch times of the datagrams; `None`: they have none. The laboratory only.
        launch: Option<Launch>,
    },
    /// One TCP connection.
    Tcp {
        /// Congestion control algorithm.
        congestion: String,
        /// Size of the socket buffers; `None`: the kernel tunes it.
        window_bytes: Option<u64>,
        /// `SO_MAX_PACING_RATE`; `None`: no limit.
        pacing_bps: Option<u64>,
        /// Interval at which the sender's state is sampled; `None`: never.
        sample_ns: Option<u64>,
        /// TCP that the simulator models, and changes to it (docs/use/simulator.md); `None`: the
        /// current one. The laboratory uses its kernel's TCP.
        stack: Option<String>,
        /// Length of the transfer; `None`: as much as the connection takes until the stop. The
        /// simulator only.
        bytes: Option<u64>,
        /// Messages that the program writes; `None`: it writes without pause. The laboratory
        /// only.
        messages: Option<Messages>,
    },
    /// Datagrams made by the kernel's packet generator.
    Pktgen {
        /// Payload of one datagram.
        payload_bytes: u32,
        /// Link-layer rate offered; `None`: as fast as possible.
        rate_bps: Option<u64>,
    },
}

impl FlowKind {
    /// Returns the protocol on the wire, `udp` or `tcp`.
    pub fn protocol(&self) -> &'static str {
        match self {
            Self::Udp { .. } | Self::Pktgen { .. } => "udp",
            Self::Tcp { .. } => "tcp",
        }
    }
}
