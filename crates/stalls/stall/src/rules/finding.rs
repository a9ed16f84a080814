// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a rule is given beside a pause's facts, and what it returns.

use crate::cause::{Cause, Confidence, Side};
use crate::direction::Direction;
use crate::flow::Flow;
use crate::flow::sender_clock::SenderClock;
use crate::vantage::View;

/// Most packet numbers named for a stall.
const EVIDENCE_MOST: usize = 16;
/// Where the losses of a flow come from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) cause: Cause,
    pub(crate) confidence: Confidence,
    pub(crate) explanation: String,
    /// Rate that passes a policer, in bit/s.
    pub(crate) rate_bps: Option<u64>,
}

/// What a rule may use beside the facts of the pause itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) flow: &'a Flow,
    /// The clock of the other end, which acknowledges.
    pub(crate) receiver_clock: &'a SenderClock,
    pub(crate) direction: Direction,
    pub(crate) view: View,
    /// Where the flow's losses come from, if that is known.
    pub(crate) origin: Option<&'a Origin>,
    /// Whether the data is the client's.
    pub(crate) is_client: bool,
    /// Whether the data is by far the most of the connection's, and the client's.
    pub(crate) is_upload: bool,
    /// Whether the handshake or a port tells who is the client.
    pub(crate) knows_roles: bool,
    /// Whether the client sent the connection's first data, as far as the handshake shows.
    pub(crate) has_client_begun: bool,
    /// Beginning of the capture: reported times count from here.
    pub(crate) start_ns: u64,
    /// Whether the capture lacks packets of this flow.
    pub(crate) is_patchy: bool,
    /// Whether the capture lacks the receiver's acknowledgements without data.
    pub(crate) is_filtered: bool,
    /// Whether others carry data of the same stream: pauses are merged once theirs are known.
    pub(crate) is_subflow: bool,
}

impl Context<'_> {
    /// Returns where the loss behind a cause comes from, if the cause is a loss.
    pub(super) fn root_of(&self, cause: Cause) -> Option<Cause> {
        self.origin
            .filter(|_| cause.is_loss())
            .map(|origin| origin.cause)
    }
}

/// The result of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) cause: Cause,
    pub(crate) side: Side,
    pub(crate) confidence: Confidence,
    pub(crate) explanation: String,
    /// Packets that show the cause, beside those around the pause.
    pub(crate) evidence: Vec<u64>,
    pub(crate) what: Finds,
    /// When the stop was over, and by which packet, if that was before the pause was.
    pub(crate) until: Option<(u64, u64)>,
}

/// The nature of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finds {
    /// Something was to be sent or to be acknowledged.
    Stall,
    /// One side had to answer: since when, and the packet that asked.
    Wait(u64, u64),
    /// Neither side had anything to do.
    Idle,
}

impl Finding {
    pub(crate) fn new(cause: Cause, confidence: Confidence, explanation: String) -> Self {
        Self {
            cause,
            side: cause.side(),
            confidence,
            explanation,
            evidence: Vec::new(),
            what: Finds::Stall,
            until: None,
        }
    }

    /// Creates a finding that neither side had anything to do.
    pub(crate) fn idle() -> Self {
        let mut finding = Self::new(Cause::Application, Confidence::Low, String::new());
        finding.what = Finds::Idle;
        finding
    }

    /// Makes the finding a wait, since `start_ns`, for the answer to a packet.
    pub(crate) fn waited_since(mut self, start_ns: u64, packet: u64) -> Self {
        self.what = Finds::Wait(start_ns, packet);
        self
    }

    /// Ends the stop before the pause ends: at a time, with a packet.
    pub(crate) fn until(mut self, end: Option<(u64, u64)>) -> Self {
        self.until = end;
        self
    }

    pub(crate) fn at_most(mut self, confidence: Confidence) -> Self {
        self.confidence = self.confidence.min(confidence);
        self
    }

    pub(crate) fn on(mut self, side: Side) -> Self {
        self.side = side;
        self
    }

    pub(crate) fn shown_by(mut self, packets: impl IntoIterator<Item = u64>) -> Self {
        self.evidence.extend(packets);
        self
    }
}

/// Returns the numbers of packets in order, each once: the first ones and the last.
pub(crate) fn in_order(mut packets: Vec<u64>) -> Vec<u64> {
    packets.retain(|&packet| packet > 0);
    packets.sort_unstable();
    packets.dedup();
    if packets.len() > EVIDENCE_MOST {
        let last = packets.pop();
        packets.truncate(EVIDENCE_MOST - 1);
        packets.extend(last);
    }
    packets
}
