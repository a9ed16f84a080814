// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causes there are, whose side each is on, and what to do about it.

use serde::Serialize;

/// Whose side a stop is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The host that sends the data: its application, its socket or its TCP.
    Sender,
    /// The host that the data is for.
    Receiver,
    /// Between them.
    Network,
    /// The capture does not carry an answer.
    Unknown,
}

/// How far the evidence carries a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The likeliest of several that fit: no ground to act on alone.
    Low,
    /// It fits, and what else would fit is rare or needs a fault of its own.
    Medium,
    /// The packets named as evidence leave no other.
    High,
}

/// Why a transfer stopped, or slowed down. `docs/stalls.md` has the rule of
/// each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The receiver's window was closed: its application did not read.
    ReceiverWindowClosed,
    /// The receiver's window is below what the round trip needs.
    ReceiverWindowSmall,
    /// The window was open again, and the sender learnt it only by a probe.
    ZeroWindowProbe,
    /// All sent was delivered, and the sending application gave no more.
    Application,
    /// The same, and it was the other application's turn: data of the other
    /// direction ended the pause.
    WaitingForPeer,
    /// What is in flight stays the same, below both windows, without loss: the
    /// socket's send buffer, or another limit within the sender.
    SendBuffer,
    /// A retransmission was lost too, and only the timeout repaired it.
    RtoLostRetransmission,
    /// The last segments before a pause were lost: nothing behind them could
    /// tell of it.
    RtoTail,
    /// A loss with too few segments behind it to tell of it.
    RtoFewDupacks,
    /// A timeout whose loss could have been repaired without; why it was not
    /// is not to be seen.
    RtoOther,
    /// The tail was lost and a probe of it (TLP) brought the repair.
    TailLossProbe,
    /// Repair of losses went on at a segment or two each round trip.
    RecoveryCwndPinned,
    /// After a collapse of the window it grew back slowly.
    SlowGrowth,
    /// A policer: whatever is above a constant rate is dropped, without a queue.
    Policer,
    /// Loss that goes with no queue: errors of a link.
    PathLoss,
    /// Loss where a queue was filling up: congestion.
    Congestion,
    /// Segments that overtook each other were taken for lost.
    Reordering,
    /// The receiver held back an acknowledgement while the sender could send
    /// nothing before it.
    DelayedAck,
    /// Acknowledgements were lost, or came in heaps.
    AckLoss,
    /// Everything was late, nothing lost.
    DelaySpike,
    /// Nothing at all came through for a time.
    SilentPath,
    /// Large packets did not come through, small ones did.
    PmtuBlackHole,
    /// One timeout after the other, each twice as long.
    RtoStorm,
    /// The connection was not answered at once.
    ConnectionSetup,
    /// The evidence carries none of them.
    Unknown,
}
