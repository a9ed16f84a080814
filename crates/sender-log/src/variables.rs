// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be seen of a sender from outside.

use units::clock::{Span, Time};

/// Where a sender stands in its treatment of congestion (paper 001, section
/// 2; RFC 5681). Ordered from the mildest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// All is well.
    #[default]
    Open,
    /// Something arrived out of order or twice; nothing is thought lost yet.
    Disorder,
    /// The window is being reduced without a loss: the local queue was full.
    Cwr,
    /// Losses are being repaired.
    Recovery,
    /// The retransmission timer ran out.
    Loss,
}

impl State {
    /// As tables and records name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            State::Open => "open",
            State::Disorder => "disorder",
            State::Cwr => "cwr",
            State::Recovery => "recovery",
            State::Loss => "loss",
        }
    }
}

/// A sender's variables at one moment. Sequence numbers are offsets in bytes;
/// what ends in `_out`, and the windows, count segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vars {
    /// First byte not acknowledged.
    pub una: u64,
    /// Next new byte to send.
    pub nxt: u64,
    /// The recovery point: leaving the present state needs `una` to reach it.
    pub high_seq: u64,
    /// The peer's window, bytes from `una`.
    pub window_bytes: u64,
    /// Congestion window.
    pub cwnd: u32,
    /// Slow start threshold.
    pub ssthresh: u32,
    /// Sent and not acknowledged.
    pub packets_out: u32,
    /// Of these, reported as arrived (or, without SACK, duplicate
    /// acknowledgements counted).
    pub sacked_out: u32,
    /// Of these, thought lost.
    pub lost_out: u32,
    /// Of these, retransmitted and not heard of since.
    pub retrans_out: u32,
    /// From `una` to the highest reported as arrived.
    pub fackets_out: u32,
    /// Thought to be in the network:
    /// `packets_out - sacked_out - lost_out + retrans_out`.
    pub in_flight: u32,
    /// Disorder of up to this many segments is not taken for loss.
    pub reordering: u32,
    /// State.
    pub state: State,
    /// Smoothed round trip; nothing before the first.
    pub srtt: Span,
    /// Retransmission timeout now in force, doublings included.
    pub rto: Span,
    /// The first SACK block of the last acknowledgement, start and end; zeros
    /// if it had none.
    pub sack: (u64, u64),
}

/// What had just happened when the variables were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The scoreboard is up to date with an acknowledgement and the window is
    /// not yet: where paper 001, section 3.5, reads them.
    Scoreboard,
    /// An acknowledgement was dealt with.
    Ack,
    /// The retransmission timer ran out.
    Timeout,
    /// The interface's queue refused a segment.
    LocalDrop,
}

impl Moment {
    /// As records name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Moment::Scoreboard => "scoreboard",
            Moment::Ack => "ack",
            Moment::Timeout => "timeout",
            Moment::LocalDrop => "local-drop",
        }
    }
}

/// Who is shown a sender's variables. `()` looks at nothing.
pub trait Observer {
    /// `vars` are those after `moment` at `now`.
    fn observe(&mut self, now: Time, moment: Moment, vars: &Vars);
}

impl Observer for () {
    fn observe(&mut self, _: Time, _: Moment, _: &Vars) {}
}
