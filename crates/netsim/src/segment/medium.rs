// SPDX-License-Identifier: MIT OR Apache-2.0
//! What both kinds of segment share: their configuration, the frames they carry
//! and what they report.

use units::clock::Span;
use units::ethernet::{FCS_BYTES, FRAME_MIN_BYTES, INTER_FRAME_GAP_BYTES, PREAMBLE_BYTES};

use super::backoff::Backoff;

/// Preamble and start of frame delimiter.
pub(super) const PREAMBLE_BITS: u64 = 8 * PREAMBLE_BYTES as u64;
/// Between two frames.
pub(super) const GAP_BITS: u64 = 8 * INTER_FRAME_GAP_BYTES as u64;

/// Bits of a frame, padded, with FCS and preamble, without the gap after it.
#[must_use]
pub fn frame_bits(frame_bytes: u32) -> u64 {
    PREAMBLE_BITS + 8 * u64::from(frame_bytes.max(FRAME_MIN_BYTES) + FCS_BYTES)
}

/// What a segment is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentConfig {
    /// Stations; at least 2.
    pub stations: usize,
    /// 10^12 is a whole multiple of it.
    pub rate_bps: u64,
    /// Between any two stations, or a station and the switch.
    pub propagation: Span,
    /// Frames that wait at a station, or at a port of the switch.
    pub queue_frames: usize,
    /// Half duplex with this back-off; `None`: a switch.
    pub backoff: Option<Backoff>,
    /// Of all chance in it.
    pub seed: u64,
    /// Streams of chance from here on, one for each station.
    pub stream: u64,
}

impl SegmentConfig {
    /// One bit.
    #[must_use]
    pub fn bit(&self) -> Span {
        Span::from_ps(1_000_000_000_000 / self.rate_bps.max(1))
    }
}

/// A frame and what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<P> {
    /// Ethernet header included, FCS not.
    pub frame_bytes: u32,
    /// The station it is for.
    pub to: usize,
    /// Carried unseen.
    pub load: P,
}

/// Why a frame did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It has collided [`super::ATTEMPTS_MAX`] times.
    Collisions,
    /// A queue of the segment was full.
    Queue,
}

/// What happened on a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<P> {
    /// A station collided with its frame for the so manieth time; from 1.
    Collided {
        /// Which.
        station: usize,
        /// How often by now.
        collisions: u32,
    },
    /// The last bit of a frame has come to its station.
    Arrived {
        /// What.
        frame: Frame<P>,
        /// Whose.
        from: usize,
        /// Collisions before it went through.
        retries: u32,
    },
    /// A frame was given up.
    Lost {
        /// What.
        frame: Frame<P>,
        /// Whose.
        from: usize,
        /// Why.
        loss: Loss,
    },
}

/// What a segment has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that came through.
    pub frames: u64,
    /// Their bits, gaps after them included.
    pub bits: u64,
    /// Stations that collided: two or more in each collision.
    pub collisions: u64,
    /// Frames given up after too many collisions.
    pub given_up: u64,
    /// Frames that met a full queue.
    pub refused: u64,
}

impl Counts {
    /// Adds what another run of the same segment has counted.
    pub fn join(&mut self, other: &Self) {
        self.frames += other.frames;
        self.bits += other.bits;
        self.collisions += other.collisions;
        self.given_up += other.given_up;
        self.refused += other.refused;
    }
}
