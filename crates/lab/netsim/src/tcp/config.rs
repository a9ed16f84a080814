// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configuration of the two ends of a connection.

use units::clock::Span;

use crate::tcp::algorithm::Congestion;
use crate::tcp::variant::{V2_6_17, Variant};

/// Configuration of a [`Sender`](crate::tcp::Sender).
#[derive(Clone, Debug, PartialEq)]
pub struct SenderConfig {
    /// Kernel variant, which determines loss recovery.
    pub variant: Variant,
    /// Congestion control.
    pub congestion: Congestion,
    /// Payload of a full segment, bytes.
    pub mss_bytes: u32,
    /// Congestion window at the start, in segments.
    pub initial_cwnd: u32,
    /// Slow start threshold at the start, in segments. BIC of some kernels sets one.
    pub initial_ssthresh: u32,
    /// Reordering of up to this many segments is at first not taken for loss
    /// (`tcp_reordering`).
    pub reordering: u32,
    /// Whether both sides agreed on SACK (RFC 2018).
    pub sack: bool,
    /// Whether both sides agreed on timestamps (RFC 7323).
    pub timestamps: bool,
    /// The peer's window before its first acknowledgement, in bytes.
    pub initial_window_bytes: u64,
    /// Size of the socket's send buffer: bytes that the application may have in the
    /// sender, sent or not, until they are acknowledged.
    pub send_buffer_bytes: u64,
    /// Whether the congestion window is halved for each retransmission timeout that
    /// passes while the sender is idle (RFC 5681, section 4.1;
    /// `tcp_slow_start_after_idle`).
    pub restart_after_idle: bool,
    /// Resolution of timestamps and of round-trip times measured with them: a jiffy
    /// of the older kernels.
    pub tick: Span,
    /// Lower bound of the variance part of the retransmission timeout (200 ms in
    /// Linux).
    pub rto_min: Span,
    /// Retransmission timeout before the first round-trip time is known.
    pub rto_initial: Span,
    /// Round-trip time of the handshake, if it was measured.
    pub handshake_rtt: Option<Span>,
    /// Whether segments leave at a rate (`sk_pacing_status`), by the stack or the queue.
    pub is_paced: bool,
}

impl SenderConfig {
    /// Returns the configuration of a sender with the defaults of the variant's
    /// kernel.
    pub fn new(variant: Variant) -> SenderConfig {
        SenderConfig {
            congestion: variant.default_congestion,
            initial_cwnd: variant.initial_cwnd,
            variant,
            mss_bytes: 1448,
            initial_ssthresh: variant.initial_ssthresh(variant.default_congestion),
            reordering: 3,
            sack: true,
            timestamps: true,
            initial_window_bytes: 65_535,
            send_buffer_bytes: u64::MAX,
            restart_after_idle: true,
            tick: Span::from_ns(1_000_000),
            rto_min: Span::from_ns(200_000_000),
            rto_initial: variant.rto_initial,
            handshake_rtt: None,
            is_paced: false,
        }
    }
}

impl Default for SenderConfig {
    fn default() -> SenderConfig {
        SenderConfig::new(V2_6_17)
    }
}

/// Configuration of a [`Receiver`](crate::tcp::Receiver).
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverConfig {
    /// Payload of a full segment, bytes: the unit in which delayed acknowledgements
    /// count.
    pub mss_bytes: u32,
    /// Size of the receive buffer: bytes that may wait for the application or for a
    /// hole to be filled.
    pub buffer_bytes: u64,
    /// Window scale: the window is announced in units of two to this power (RFC
    /// 7323), and is at most 65,535 units.
    pub window_scale: u8,
    /// Whether to report data that arrived out of order (SACK, RFC 2018).
    pub sack: bool,
    /// Whether to report data that arrived twice (D-SACK, RFC 2883).
    pub dsack: bool,
    /// Whether to echo timestamps (RFC 7323).
    pub timestamps: bool,
    /// Whether the application reads each byte as soon as it can. Otherwise it must
    /// call [`Receiver::read`](crate::tcp::Receiver::read).
    pub reads_at_once: bool,
    /// Number of segments that are acknowledged one by one at the start, as Linux
    /// does.
    pub quick_acks: u32,
    /// Longest delay of an acknowledgement.
    pub delayed_ack: Span,
    /// Resolution of timestamps.
    pub tick: Span,
}

impl Default for ReceiverConfig {
    fn default() -> ReceiverConfig {
        ReceiverConfig {
            mss_bytes: 1448,
            buffer_bytes: 2_250_000,
            window_scale: 6,
            sack: true,
            dsack: true,
            timestamps: true,
            reads_at_once: true,
            quick_acks: 16,
            delayed_ack: Span::from_ns(40_000_000),
            tick: Span::from_ns(1_000_000),
        }
    }
}
