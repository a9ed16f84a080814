// SPDX-License-Identifier: MIT OR Apache-2.0
//! What several stations send on: a half-duplex medium as IEEE 802.3 has it,
//! or a switch with full-duplex ports.
//!
//! Both are told of frames and of time, and answer when they want to be asked
//! again. Times are whole bit times and exact.

mod backoff;
mod medium;
mod shared;
mod switched;

pub use backoff::Backoff;
pub use medium::{Counts, Event, Frame, Loss, SegmentConfig, frame_bits};
pub use shared::{ATTEMPTS_MAX, Shared, propagation_max};
pub use switched::Switched;

use units::clock::Time;

/// What the stations of a segment share: a cable or a switch. (`tcp::Segment` is
/// what TCP sends.)
#[derive(Debug)]
pub enum Medium<P> {
    /// Half duplex.
    Shared(Shared<P>),
    /// A switch.
    Switched(Switched<P>),
}

impl<P: Copy> Medium<P> {
    /// Silent.
    #[must_use]
    pub fn new(config: &SegmentConfig) -> Self {
        match config.backoff {
            Some(backoff) => Self::Shared(Shared::new(config, backoff)),
            None => Self::Switched(Switched::new(config)),
        }
    }

    /// Gives a frame to a station's queue.
    pub fn offer(&mut self, now: Time, from: usize, frame: Frame<P>, events: &mut Vec<Event<P>>) {
        match self {
            Self::Shared(shared) => shared.offer(now, from, frame, events),
            Self::Switched(switched) => switched.offer(now, from, frame, events),
        }
    }

    /// When something happens next.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        match self {
            Self::Shared(shared) => shared.next(),
            Self::Switched(switched) => switched.next(),
        }
    }

    /// Lets everything happen that happens before or at `now`.
    pub fn advance(&mut self, now: Time, events: &mut Vec<Event<P>>) {
        match self {
            Self::Shared(shared) => shared.advance(now, events),
            Self::Switched(switched) => switched.advance(now, events),
        }
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        match self {
            Self::Shared(shared) => shared.counts(),
            Self::Switched(switched) => switched.counts(),
        }
    }

    /// Frames of a station that have not left it.
    #[must_use]
    pub fn waiting(&self, station: usize) -> usize {
        match self {
            Self::Shared(shared) => shared.waiting(station),
            Self::Switched(switched) => switched.waiting(station),
        }
    }
}
