// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causes of stalls: the side that each is on, and what to do about it.

use serde::Serialize;

/// Side that a stall is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The host that sends the data: its application, its socket or its TCP.
    Sender,
    /// The host that receives the data.
    Receiver,
    /// The network between the two hosts.
    Network,
    /// The capture does not show the side.
    Unknown,
}

/// How far the evidence supports a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The likeliest of several causes that fit: no ground to act on alone.
    Low,
    /// The cause fits; any other that would fit is rare or needs a fault of its own.
    Medium,
    /// The packets named as evidence leave no other cause.
    High,
}

/// Makes `Cause` of its variants, and `Cause::ALL` of the same.
macro_rules! causes {
    ($($(#[$doc:meta])* $cause:ident,)*) => {
        /// Why a transfer stalled, or slowed down. `docs/use/stalls.md` has the rule of each cause.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Cause {
            $($(#[$doc])* $cause,)*
        }

        impl Cause {
            /// All causes, in the order of their declaration.
            pub const ALL: [Cause; [$(Cause::$cause),*].len()] = [$(Cause::$cause),*];
        }
    };
}

causes! {
    /// The receiver's window was closed: its application did not read.
    ReceiverWindowClosed,
    /// The receiver's window is below what the round trip needs.
    ReceiverWindowSmall,
    /// The window was open again, and the sender learnt of it only by a probe.
    ZeroWindowProbe,
    /// Everything that was sent had been delivered, and the sending application supplied no
    /// more.
    Application,
    /// As `Application`, but the sending application waited for the other one: data of the
    /// other direction ended the pause.
    WaitingForPeer,
    /// The application had received the request and answered late.
    ResponseTime,
    /// The bytes in flight stay the same, below both windows, without loss: the socket's send
    /// buffer limits them, or another limit within the sender.
    SendBuffer,
    /// A retransmission was lost too, and only the timeout repaired the loss.
    RtoLostRetransmission,
    /// The last segments before a pause were lost: no segment behind them could report the
    /// loss.
    RtoTail,
    /// A loss with too few segments behind it to report it.
    RtoFewDupacks,
    /// A timeout whose loss could have been repaired without one; the capture does not show why
    /// it was not.
    RtoOther,
    /// The tail was lost, and a tail loss probe (TLP) started the repair.
    TailLossProbe,
    /// The repair of losses went on at one or two segments each round trip.
    RecoveryCwndPinned,
    /// The congestion window collapsed and grew back slowly.
    SlowGrowth,
    /// A policer dropped whatever was above a constant rate, without a queue.
    Policer,
    /// Loss without a queue: errors of a link.
    PathLoss,
    /// Loss while a queue was filling up: congestion.
    Congestion,
    /// The sender took segments that were overtaken by others for lost.
    Reordering,
    /// The receiver held back an acknowledgement while the sender could send nothing before it
    /// came.
    DelayedAck,
    /// Acknowledgements were lost, or arrived in bunches.
    AckLoss,
    /// Everything was late, and nothing was lost.
    DelaySpike,
    /// Nothing at all came through for a time.
    SilentPath,
    /// Large packets did not come through, and small ones did.
    PmtuBlackHole,
    /// Several timeouts in a row, each twice as long as the one before.
    RtoStorm,
    /// The connection request was not answered at once.
    ConnectionSetup,
    /// The evidence supports none of the others.
    Unknown,
}

impl Cause {
    /// Returns the side that the cause is on, unless a stall's evidence says otherwise.
    pub const fn side(self) -> Side {
        match self {
            Cause::ReceiverWindowClosed
            | Cause::ReceiverWindowSmall
            | Cause::ZeroWindowProbe
            | Cause::WaitingForPeer
            | Cause::DelayedAck => Side::Receiver,
            Cause::Application
            | Cause::ResponseTime
            | Cause::SendBuffer
            | Cause::RecoveryCwndPinned
            | Cause::SlowGrowth => Side::Sender,
            Cause::RtoLostRetransmission
            | Cause::RtoTail
            | Cause::RtoFewDupacks
            | Cause::TailLossProbe
            | Cause::Policer
            | Cause::PathLoss
            | Cause::Congestion
            | Cause::Reordering
            | Cause::AckLoss
            | Cause::DelaySpike
            | Cause::SilentPath
            | Cause::PmtuBlackHole
            | Cause::RtoStorm => Side::Network,
            Cause::RtoOther | Cause::ConnectionSetup | Cause::Unknown => Side::Unknown,
        }
    }

    /// Returns whether the cause is a symptom of lost packets, so that their origin can be its
    /// root.
    pub const fn is_loss(self) -> bool {
        match self {
            Cause::RtoLostRetransmission
            | Cause::RtoTail
            | Cause::RtoFewDupacks
            | Cause::RtoOther
            | Cause::TailLossProbe
            | Cause::RecoveryCwndPinned
            | Cause::SlowGrowth
            | Cause::RtoStorm => true,
            Cause::ReceiverWindowClosed
            | Cause::ReceiverWindowSmall
            | Cause::ZeroWindowProbe
            | Cause::Application
            | Cause::WaitingForPeer
            | Cause::ResponseTime
            | Cause::SendBuffer
            | Cause::Policer
            | Cause::PathLoss
            | Cause::Congestion
            | Cause::Reordering
            | Cause::DelayedAck
            | Cause::AckLoss
            | Cause::DelaySpike
            | Cause::SilentPath
            | Cause::PmtuBlackHole
            | Cause::ConnectionSetup
            | Cause::Unknown => false,
        }
    }

    /// Returns whether consecutive stalls of the cause are one series: waits for each
    /// acknowledgement, or pauses between messages.
    pub(crate) const fn is_serial(self) -> bool {
        match self {
            Cause::ReceiverWindowClosed
            | Cause::Application
            | Cause::WaitingForPeer
            | Cause::DelayedAck => true,
            Cause::ReceiverWindowSmall
            | Cause::ZeroWindowProbe
            | Cause::ResponseTime
            | Cause::SendBuffer
            | Cause::RtoLostRetransmission
            | Cause::RtoTail
            | Cause::RtoFewDupacks
            | Cause::RtoOther
            | Cause::TailLossProbe
            | Cause::RecoveryCwndPinned
            | Cause::SlowGrowth
            | Cause::Policer
            | Cause::PathLoss
            | Cause::Congestion
            | Cause::Reordering
            | Cause::AckLoss
            | Cause::DelaySpike
            | Cause::SilentPath
            | Cause::PmtuBlackHole
            | Cause::RtoStorm
            | Cause::ConnectionSetup
            | Cause::Unknown => false,
        }
    }

    /// Returns whether the cause follows from the place of the capture.
    pub(crate) const fn follows_from_place(self) -> bool {
        match self {
            Cause::Application
            | Cause::ResponseTime
            | Cause::RtoLostRetransmission
            | Cause::RtoTail
            | Cause::RtoFewDupacks
            | Cause::TailLossProbe
            | Cause::DelayedAck
            | Cause::AckLoss => true,
            Cause::ReceiverWindowClosed
            | Cause::ReceiverWindowSmall
            | Cause::ZeroWindowProbe
            | Cause::WaitingForPeer
            | Cause::SendBuffer
            | Cause::RtoOther
            | Cause::RecoveryCwndPinned
            | Cause::SlowGrowth
            | Cause::Policer
            | Cause::PathLoss
            | Cause::Congestion
            | Cause::Reordering
            | Cause::DelaySpike
            | Cause::SilentPath
            | Cause::PmtuBlackHole
            | Cause::RtoStorm
            | Cause::ConnectionSetup
            | Cause::Unknown => false,
        }
    }

    /// Returns the cause in words that follow "because".
    pub const fn because(self) -> &'static str {
        match self {
            Cause::ReceiverWindowClosed => "the receiving application did not read",
            Cause::ReceiverWindowSmall => "the receiver's window is too small for the round trip",
            Cause::ZeroWindowProbe => "only a probe told that the receiver's window was open again",
            Cause::Application => "the sending application gave nothing to send",
            Cause::WaitingForPeer => "it was the other application's turn",
            Cause::ResponseTime => "the application answered requests late",
            Cause::SendBuffer => "a limit within the sender, likely its send buffer, was reached",
            Cause::RtoLostRetransmission => {
                "a retransmission was lost as well and only the timeout repaired it"
            }
            Cause::RtoTail => "the last segments before a pause were lost",
            Cause::RtoFewDupacks => "too little was under way behind a loss to repair it at once",
            Cause::RtoOther => "a loss was repaired only by the timeout",
            Cause::TailLossProbe => "the tail was lost and a probe had to find out",
            Cause::RecoveryCwndPinned => {
                "repair went on at next to nothing each round trip until all losses were mended"
            }
            Cause::SlowGrowth => "the window grew back slowly after it had collapsed",
            Cause::Policer => "a policer drops what is above a constant rate",
            Cause::PathLoss => "the path loses packets without being full",
            Cause::Congestion => "a queue on the way was full",
            Cause::Reordering => "packets overtook each other and were taken for lost",
            Cause::DelayedAck => "the receiver held acknowledgements back that the sender needed",
            Cause::AckLoss => "acknowledgements were lost or came in heaps",
            Cause::DelaySpike => "everything was late, though nothing was lost",
            Cause::SilentPath => "nothing at all came through for a time",
            Cause::PmtuBlackHole => "large packets do not come through",
            Cause::RtoStorm => "one timeout followed the other",
            Cause::ConnectionSetup => "the connection was not answered at once",
            Cause::Unknown => "of something that the capture does not show",
        }
    }

    /// Returns what to do about the cause.
    pub const fn advice(self) -> &'static str {
        match self {
            Cause::ReceiverWindowClosed => {
                "Look at the receiving application: what keeps it from reading (its disk, its \
                 processor, its own peer)?"
            }
            Cause::ReceiverWindowSmall => {
                "Let the receive buffer grow: net.ipv4.tcp_rmem's third value to at least rate x \
                 round trip, and no SO_RCVBUF in the application."
            }
            Cause::ZeroWindowProbe => {
                "Look for what loses single small packets from the receiver to the sender; the \
                 window itself was closed because the receiving application did not read."
            }
            Cause::Application => {
                "Look at the sending application: what does it wait for (its disk, its \
                 processor, a lock, its own peer)?"
            }
            Cause::WaitingForPeer => {
                "Let requests overlap: more than one outstanding, or several connections."
            }
            Cause::ResponseTime => {
                "Look at the application that answers: what does a request wait for (its queue, \
                 its database, a service behind it)?"
            }
            Cause::SendBuffer => {
                "Let the send buffer grow: no SO_SNDBUF in the application, net.ipv4.tcp_wmem's \
                 third value to twice rate x round trip; look for pacing or cwnd limits on the \
                 route too."
            }
            Cause::RtoLostRetransmission => {
                "Pace the sender below what the path drops at, so that a repair is not lost as \
                 well; use a kernel whose recovery finds lost retransmissions (RACK, Linux 4.18 \
                 and later)."
            }
            Cause::RtoTail => {
                "See that tail loss probes are on (net.ipv4.tcp_early_retrans=3, SACK on); pace \
                 bursts so that their ends are not dropped."
            }
            Cause::RtoFewDupacks => {
                "See that SACK and RACK are on (net.ipv4.tcp_recovery=1); a window this small \
                 has a cause of its own."
            }
            Cause::RtoOther => {
                "See which recovery the sender has (SACK, RACK on?); a capture at the sender \
                 would show more."
            }
            Cause::TailLossProbe => {
                "The sender did what can be done; look for the loss: pace bursts below what the \
                 path drops at."
            }
            Cause::RecoveryCwndPinned => {
                "Use a kernel with proportional rate reduction (Linux 3.2 and later), and pace \
                 the sender below what the path drops at."
            }
            Cause::SlowGrowth => {
                "Avoid the collapse (pacing, a recovery that finds lost retransmissions); choose \
                 a congestion control that grows faster on long paths."
            }
            Cause::Policer => {
                "Pace or shape the sender to a little below the policed rate; or have the policer \
                 replaced by a shaper."
            }
            Cause::PathLoss => {
                "Look for errors on the links of the path (optics, cables, duplex, radio); a \
                 congestion control that does not take each loss for congestion helps meanwhile."
            }
            Cause::Congestion => {
                "Share the bottleneck: pace, or use a queue management there (fq_codel, ECN)."
            }
            Cause::Reordering => {
                "Look for what reorders (links used in turn, several queues); use a kernel with \
                 RACK, and raise net.ipv4.tcp_reordering on older ones."
            }
            Cause::DelayedAck => {
                "Send in larger pieces or with TCP_NODELAY; let the window hold two segments or \
                 more; on the receiver quickack on the route."
            }
            Cause::AckLoss => {
                "Look at the way back: a full uplink, or a device that thins or gathers \
                 acknowledgements."
            }
            Cause::DelaySpike => {
                "Look for what holds everything up at times: radio, a virtual machine not \
                 scheduled, a queue without bound."
            }
            Cause::SilentPath => {
                "Look for an outage at that time: routing, a link, a firewall that forgot the \
                 connection, or the receiving host itself."
            }
            Cause::PmtuBlackHole => {
                "Let ICMP \"fragmentation needed\" through, clamp the MSS on the tunnel, or set \
                 net.ipv4.tcp_mtu_probing=1."
            }
            Cause::RtoStorm => "The path loses far too much; find where before tuning anything.",
            Cause::ConnectionSetup => {
                "See whether the SYN arrives at the server (firewall, routing) and whether its \
                 listen queue overflows (nstat TcpExtListenOverflows)."
            }
            Cause::Unknown => "A capture at the sender shows most.",
        }
    }
}
