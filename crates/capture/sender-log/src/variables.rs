// SPDX-License-Identifier: MIT OR Apache-2.0
//! The variables of a sender that an observer can read.

use units::clock::{Span, Time};

/// State of a sender's congestion control (paper 001, section 2; RFC 5681). Ordered from the
/// mildest to the most severe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Normal operation.
    #[default]
    Open,
    /// Segments arrived out of order or twice; none is assumed lost yet.
    Disorder,
    /// The window is being reduced without a loss, because the local queue was full.
    Cwr,
    /// The sender is repairing losses.
    Recovery,
    /// The retransmission timer expired.
    Loss,
}

impl State {
    /// Returns the name that tables and records use.
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

/// A sender's variables at one instant. Sequence numbers are offsets in bytes; the fields
/// ending in `_out`, and the windows, count segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vars {
    /// First byte not acknowledged.
    pub una: u64,
    /// Next new byte to be sent.
    pub nxt: u64,
    /// Recovery point: the sender leaves its present state when `una` reaches it.
    pub high_seq: u64,
    /// The peer's window, bytes from `una`.
    pub window_bytes: u64,
    /// Congestion window.
    pub cwnd: u32,
    /// Slow start threshold.
    pub ssthresh: u32,
    /// Segments sent and not acknowledged.
    pub packets_out: u32,
    /// Those segments reported as arrived (or, without SACK, duplicate acknowledgements
    /// counted).
    pub sacked_out: u32,
    /// Those segments assumed lost.
    pub lost_out: u32,
    /// Those segments retransmitted and not reported on since.
    pub retrans_out: u32,
    /// Segments from `una` to the highest one reported as arrived.
    pub fackets_out: u32,
    /// Segments assumed to be in the network:
    /// `packets_out - sacked_out - lost_out + retrans_out`.
    pub in_flight: u32,
    /// Degree of reordering, in segments, that is not taken for loss.
    pub reordering: u32,
    /// State of congestion control.
    pub state: State,
    /// Smoothed round-trip time; zero before the first measurement.
    pub srtt: Span,
    /// Retransmission timeout now in force, including its doublings.
    pub rto: Span,
    /// First SACK block of the last acknowledgement, start and end; zeros if it had none.
    pub sack: (u64, u64),
}

/// The event just before the variables were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// The scoreboard includes an acknowledgement, but the window does not yet: where paper
    /// 001, section 3.5, reads the variables.
    Scoreboard,
    /// The sender finished processing an acknowledgement.
    Ack,
    /// The retransmission timer expired.
    Timeout,
    /// The interface's queue dropped a segment.
    LocalDrop,
}

impl Moment {
    /// Returns the name that records use.
    pub fn name(self) -> &'static str {
        match self {
            Moment::Scoreboard => "scoreboard",
            Moment::Ack => "ack",
            Moment::Timeout => "timeout",
            Moment::LocalDrop => "local-drop",
        }
    }
}

/// Receives a sender's variables. `()` ignores them.
pub trait Observer {
    /// Receives `vars`, the variables just after `moment`, at `now`.
    fn observe(&mut self, now: Time, moment: Moment, vars: &Vars);
}

impl Observer for () {
    fn observe(&mut self, _: Time, _: Moment, _: &Vars) {}
}
