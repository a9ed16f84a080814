// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the losses of a flow, by what may show where they come from.

use std::num::NonZeroU64;

use units::time::NS_PER_MS;

use super::at::At;
use super::facts::Packets;
use super::rounds::per_second;

/// In less time than this, what passed between two losses gives no rate.
const PASSED_LEAST_NS: u64 = NS_PER_MS / 10;

/// Consecutive losses of one repair.
#[derive(Clone, Copy, Debug, Default)]
struct Episode {
    first_hole_ns: u64,
    delivered_first: u64,
    last_hole_ns: u64,
    delivered_last: u64,
    holes: u64,
    lost_bytes: u64,
    is_open: bool,
    /// When this byte is acknowledged, everything outstanding at the beginning of the episode
    /// is.
    until: Option<NonZeroU64>,
}

/// Running mean and variance (Welford).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    pub(crate) count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (value - self.mean);
    }

    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the standard deviation as a share of the mean.
    pub(crate) fn variation(&self) -> f64 {
        if self.count < 2 || self.mean <= 0.0 {
            return f64::INFINITY;
        }
        (self.squares / (self.count - 1) as f64).sqrt() / self.mean
    }
}

/// Losses that follow each other: between them the flow was held down.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    pub(crate) packets: Packets,
    pub(crate) episodes: u64,
}

impl Span {
    const fn length_ns(&self) -> u64 {
        self.last_ns - self.first_ns
    }
}

/// The losses of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossStats {
    episode: Episode,
    pub(crate) episodes: u64,
    pub(crate) fast_episodes: u64,
    /// The losses that follow each other now, and the longest such time before.
    span: Span,
    longest: Option<Box<Span>>,
    is_interrupted: bool,
    pub(crate) holes: u64,
    pub(crate) hole_bytes: u64,
    /// Rate at which data passed between the first and the last hole of an episode, in bytes/s.
    pub(crate) passed: Moments,
    /// Bytes that passed, and bytes that were lost, in those times.
    pub(crate) passed_bytes: u64,
    pub(crate) lost_bytes: u64,
    /// Excess of the round trip at a hole over the shortest one, in ns.
    pub(crate) queue_ns: Moments,
    /// Holes at which the round trip was that of an empty path: within a quarter of the
    /// shortest, or within a millisecond if that is more.
    pub(crate) holes_without_queue: u32,
    /// Holes at which the round trip was within a sixteenth of the shortest, or within a
    /// millisecond if that is more: no buffer was full.
    pub(crate) holes_on_empty_path: u32,
    /// Needless repairs whose originals were overtaken.
    pub(crate) spurious_fast: u64,
    pub(crate) duplicated: u64,
    /// Repairs of what was acknowledged before the repair can have been answered.
    pub(crate) needless: u64,
    pub(crate) overtaken: u64,
    pub(super) last_data_ns: u64,
}

impl LossStats {
    fn note(&mut self, at: At) {
        if self.span.packets.count() > 0 && self.is_interrupted {
            self.longest = self.longest_span().map(Box::new);
            self.span = Span::default();
        }
        self.is_interrupted = false;
        if self.span.packets.count() == 0 {
            self.span.first_ns = at.now;
        }
        self.span.last_ns = at.now;
        self.span.packets.push(at.packet.get());
    }

    /// Notes that the sender had nothing to send: losses after that are another story.
    pub(super) fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// Returns the longest time in which losses followed each other.
    pub(crate) fn longest_span(&self) -> Option<Span> {
        let now = Some(self.span).filter(|span| span.packets.count() > 0);
        let before = self.longest.as_deref().copied();
        before.into_iter().chain(now).max_by_key(Span::length_ns)
    }

    /// Notes a hole of `bytes` that was reported when `delivered` bytes had arrived.
    pub(super) fn hole(
        &mut self,
        at: At,
        bytes: u64,
        delivered: u64,
        (rtt_ns, rtt_min_ns): (u64, u64),
        nxt: u64,
    ) {
        self.note(at);
        self.holes += 1;
        self.hole_bytes += bytes;
        if rtt_min_ns > 0 {
            let queue_ns = rtt_ns.saturating_sub(rtt_min_ns);
            self.queue_ns.add(queue_ns as f64);
            let allowed_ns = (rtt_min_ns / 4).max(NS_PER_MS);
            self.holes_without_queue += u32::from(queue_ns <= allowed_ns);
            let empty_ns = (rtt_min_ns / 16).max(NS_PER_MS);
            self.holes_on_empty_path += u32::from(queue_ns < empty_ns);
        }
        let episode = &mut self.episode;
        if episode.holes == 0 {
            (episode.first_hole_ns, episode.delivered_first) = (at.now, delivered);
            episode.until = NonZeroU64::new(nxt);
        } else {
            episode.lost_bytes += bytes;
        }
        episode.holes += 1;
        (episode.last_hole_ns, episode.delivered_last) = (at.now, delivered);
    }

    pub(super) fn retransmitted(&mut self, at: At) {
        self.note(at);
        self.episode.is_open = true;
    }

    pub(super) fn overtaken(&mut self, at: At, segments: u64) {
        self.note(at);
        self.overtaken += segments;
    }

    pub(super) fn fast_begins(&mut self) {
        self.fast_episodes += 1;
    }

    /// Returns whether all losses of one flight lie below `una`.
    pub(super) fn is_repaired(&self, una: u64, repairing: bool) -> bool {
        match self.episode.until {
            None => !repairing,
            Some(until) => una >= until.get(),
        }
    }

    /// Returns whether losses were noted that are not known to be repaired.
    pub(super) fn has_episode(&self) -> bool {
        self.episode.holes > 0 || self.episode.is_open
    }

    pub(super) fn episode_ends(&mut self, at: At) {
        if !self.has_episode() {
            return;
        }
        let episode = std::mem::take(&mut self.episode);
        if episode.is_open {
            self.episodes += 1;
            self.span.episodes += 1;
            self.span.last_ns = at.now;
        }
        let duration = episode.last_hole_ns - episode.first_hole_ns;
        if episode.holes >= 3 && duration >= PASSED_LEAST_NS {
            let passed = episode
                .delivered_last
                .saturating_sub(episode.delivered_first);
            self.passed.add(per_second(passed, duration) as f64);
            self.passed_bytes += passed;
            self.lost_bytes += episode.lost_bytes;
        }
    }
}
