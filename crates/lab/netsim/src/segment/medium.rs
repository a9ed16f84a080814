// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part that both types of segment share: their configuration, the frames they
//! carry and the events they report.

use units::clock::Span;
use units::ethernet::{FCS_BYTES, FRAME_MIN_BYTES, INTER_FRAME_GAP_BYTES, PREAMBLE_BYTES};

use super::backoff::Backoff;

/// Bits of the preamble and the start of frame delimiter.
pub(super) const PREAMBLE_BITS: u64 = 8 * PREAMBLE_BYTES as u64;
/// Bits of the gap between two frames.
pub(super) const GAP_BITS: u64 = 8 * INTER_FRAME_GAP_BYTES as u64;

/// Returns the bits of a frame on the medium: padded, with FCS and preamble,
/// without the gap after it.
pub fn frame_bits(frame_bytes: u32) -> u64 {
    PREAMBLE_BITS + 8 * u64::from(frame_bytes.max(FRAME_MIN_BYTES) + FCS_BYTES)
}

/// Configuration of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentConfig {
    /// Number of stations; at least 2.
    pub stations: usize,
    /// Rate, bit/s; 10^12 must be a whole multiple of it, so that a bit is a whole
    /// number of picoseconds.
    pub rate_bps: u64,
    /// Propagation delay between any two stations, or between a station and the
    /// switch.
    pub propagation: Span,
    /// Number of frames that may wait at a station, or at a port of the switch.
    pub queue_frames: usize,
    /// Back-off of a half-duplex medium; `None`: a switch.
    pub backoff: Option<Backoff>,
    /// Seed of the segment's random numbers.
    pub seed: u64,
    /// Number of the first random stream; each station has one.
    pub stream: u64,
}

impl SegmentConfig {
    /// Returns the duration of one bit.
    pub fn bit(&self) -> Span {
        Span::from_ps(1_000_000_000_000 / self.rate_bps.max(1))
    }
}

/// A frame and what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<P> {
    /// Length, bytes: Ethernet header included, FCS not.
    pub frame_bytes: u32,
    /// The destination station.
    pub to: usize,
    /// Data that the segment carries without reading it.
    pub load: P,
}

/// Why a frame did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The frame has collided [`super::ATTEMPTS_MAX`] times.
    Collisions,
    /// A queue of the segment was full.
    Queue,
}

/// What happened on a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<P> {
    /// A station's frame collided.
    Collided {
        /// Number of the station.
        station: usize,
        /// Collisions of this frame so far, counted from 1.
        collisions: u32,
    },
    /// The last bit of a frame has reached its destination station.
    Arrived {
        frame: Frame<P>,
        /// The station that sent it.
        from: usize,
        /// Collisions before the successful transmission.
        retries: u32,
    },
    /// A frame was discarded.
    Lost {
        frame: Frame<P>,
        /// The station that sent it.
        from: usize,
        loss: Loss,
    },
}

/// Counters of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that were transmitted successfully.
    pub frames: u64,
    /// Bits of these frames, including the gaps after them.
    pub bits: u64,
    /// Stations that collided: two or more in each collision.
    pub collisions: u64,
    /// Frames discarded after too many collisions.
    pub given_up: u64,
    /// Frames discarded because a queue was full.
    pub refused: u64,
}

impl Counts {
    /// Adds the counters of another run of the same segment.
    pub fn join(&mut self, other: &Self) {
        self.frames += other.frames;
        self.bits += other.bits;
        self.collisions += other.collisions;
        self.given_up += other.given_up;
        self.refused += other.refused;
    }
}
