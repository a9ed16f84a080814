// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one connection is told before it begins.

use units::clock::Span;

use crate::tcp::algorithm::Congestion;
use crate::tcp::variant::{V2_6_17, Variant};

/// How a [`Sender`](crate::tcp::Sender) behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct SenderConfig {
    /// Loss recovery.
    pub variant: Variant,
    /// Congestion control.
    pub congestion: Congestion,
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// Congestion window at the start, in segments.
    pub initial_cwnd: u32,
    /// Slow start threshold at the start, in segments.
    pub initial_ssthresh: u32,
    /// Disorder of up to this many segments is no loss, to begin with
    /// (`tcp_reordering`).
    pub reordering: u32,
    /// Whether both sides agreed on SACK (RFC 2018).
    pub sack: bool,
    /// Whether both sides agreed on timestamps (RFC 7323).
    pub timestamps: bool,
    /// The peer's window before its first acknowledgement, in bytes.
    pub initial_window_bytes: u64,
    /// Bytes the application may have in the sender, sent or not, until they
    /// are acknowledged: the socket's send buffer.
    pub send_buffer_bytes: u64,
    /// Whether the window shrinks while nothing is sent, by half for each
    /// timeout's time (RFC 5681, section 4.1; `tcp_slow_start_after_idle`).
    pub restart_after_idle: bool,
    /// Resolution of timestamps and of round trips measured with them: a
    /// jiffy of the older kernels.
    pub tick: Span,
    /// Least variance part of the retransmission timeout (200 ms in Linux).
    pub rto_min: Span,
    /// Timeout before the first round trip is known.
    pub rto_initial: Span,
    /// The round trip that the handshake took, where it was seen.
    pub handshake_rtt: Option<Span>,
}

impl SenderConfig {
    /// A sender of the given variant with what its kernel has by default.
    #[must_use]
    pub fn new(variant: Variant) -> SenderConfig {
        SenderConfig {
            congestion: variant.default_congestion,
            initial_cwnd: variant.initial_cwnd,
            variant,
            mss_bytes: 1448,
            initial_ssthresh: u32::MAX,
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
        }
    }
}

impl Default for SenderConfig {
    fn default() -> SenderConfig {
        SenderConfig::new(V2_6_17)
    }
}

/// How a [`Receiver`](crate::tcp::Receiver) behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverConfig {
    /// Payload of a full segment, by which delayed acknowledgements count.
    pub mss_bytes: u32,
    /// Bytes that may wait for the application or for a hole to be filled.
    pub buffer_bytes: u64,
    /// The window travels in units of this power of two (RFC 7323), and is
    /// never above 65,535 of them.
    pub window_scale: u8,
    /// Whether to tell of what arrived out of order (RFC 2018).
    pub sack: bool,
    /// Whether to tell of what arrived twice (RFC 2883).
    pub dsack: bool,
    /// Whether to echo timestamps (RFC 7323).
    pub timestamps: bool,
    /// Whether the application takes each byte as soon as it can. Otherwise
    /// it must call [`Receiver::read`](crate::tcp::Receiver::read).
    pub reads_at_once: bool,
    /// Segments acknowledged one by one at the start, as Linux does.
    pub quick_acks: u32,
    /// The longest an acknowledgement is held back.
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
