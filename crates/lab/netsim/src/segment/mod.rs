// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments: a medium that several stations share, either half duplex as in IEEE
//! 802.3, or a switch with full-duplex ports.
//!
//! The caller passes frames and the time to both, and both return the time of their
//! next event. Times are exact; they are whole numbers of bit times.

mod backoff;
mod medium;
mod shared;
mod switched;

pub use backoff::Backoff;
pub use medium::{Counts, Event, Frame, Loss, SegmentConfig, frame_bits};
pub use shared::{ATTEMPTS_MAX, Shared, propagation_max};
pub use switched::Switched;

use units::clock::Time;

/// The medium to which the stations of a segment are attached: a shared cable or a
/// switch. (`tcp::Segment` is what TCP sends.)
#[derive(Debug)]
pub enum Medium<P> {
    /// A half-duplex medium.
    Shared(Shared<P>),
    Switched(Switched<P>),
}

impl<P: Copy> Medium<P> {
    /// Makes a medium on which nothing is sent.
    pub fn new(config: &SegmentConfig) -> Self {
        match config.backoff {
            Some(backoff) => Self::Shared(Shared::new(config, backoff)),
            None => Self::Switched(Switched::new(config)),
        }
    }

    /// Adds a frame to a station's queue.
    pub fn offer(&mut self, now: Time, from: usize, frame: Frame<P>, events: &mut Vec<Event<P>>) {
        match self {
            Self::Shared(shared) => shared.offer(now, from, frame, events),
            Self::Switched(switched) => switched.offer(now, from, frame, events),
        }
    }

    /// Returns the time of the next event.
    pub fn next(&self) -> Option<Time> {
        match self {
            Self::Shared(shared) => shared.next(),
            Self::Switched(switched) => switched.next(),
        }
    }

    /// Handles all events before or at `now`, and appends what happened to
    /// `events`.
    pub fn advance(&mut self, now: Time, events: &mut Vec<Event<P>>) {
        match self {
            Self::Shared(shared) => shared.advance(now, events),
            Self::Switched(switched) => switched.advance(now, events),
        }
    }

    /// Returns the counters so far.
    pub fn counts(&self) -> Counts {
        match self {
            Self::Shared(shared) => shared.counts(),
            Self::Switched(switched) => switched.counts(),
        }
    }

    /// Returns the number of frames in a station's queue. On a half-duplex medium
    /// this includes the frame that the station is sending.
    pub fn waiting(&self, station: usize) -> usize {
        match self {
            Self::Shared(shared) => shared.waiting(station),
            Self::Switched(switched) => switched.waiting(station),
        }
    }
}
