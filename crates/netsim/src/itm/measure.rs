// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is counted of streams and nodes. Memory does not grow with time, and
//! what several runs have counted can be put together.

use hdrhistogram::Histogram;
use units::clock::Span;

use crate::segment::ATTEMPTS_MAX;

/// Three digits: a percentile is right to a thousandth.
const DIGITS: u8 = 3;
/// Longer delays count as this one.
const DELAY_NS_MAX: u64 = 100_000_000_000;
/// More periods than these count as this many.
pub(super) const LATE_MAX: usize = 63;

/// Delays of packets.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// Made for the first delay: most streams have no round trips.
    histogram: Option<Histogram<u64>>,
    worst: Option<(Span, u64)>,
}

impl Delays {
    /// Of packet `number`. O(1).
    pub fn add(&mut self, delay: Span, number: u64) {
        if self.histogram.is_none() {
            // The bounds are constants that fit.
            self.histogram = Histogram::new_with_max(DELAY_NS_MAX, DIGITS).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(delay.as_ns().max(1));
        }
        if self.worst.is_none_or(|(worst, _)| delay > worst) {
            self.worst = Some((delay, number));
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// The longest, exactly, and the number of its packet: the first that had it.
    #[must_use]
    pub fn worst(&self) -> Option<(Span, u64)> {
        self.worst
    }

    /// The shortest, in ns, to a thousandth.
    #[must_use]
    pub fn least_ns(&self) -> Option<u64> {
        self.histogram.as_ref().map(Histogram::min)
    }

    /// The delay that `percent` of the packets have at most, in ns, to a thousandth.
    #[must_use]
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        let (longest, _) = self.worst?;
        let value = self.histogram.as_ref()?.value_at_percentile(percent);
        Some(value.min(longest.as_ns()))
    }

    /// Packets by delay in steps of `step_ns`: those with up to the first step,
    /// up to the second, until there are no more.
    #[must_use]
    pub fn steps(&self, step_ns: u64) -> Vec<u64> {
        let mut steps = vec![];
        for (delay_ns, count) in self.recorded() {
            // At most a hundred seconds of steps.
            let place = ((delay_ns - 1) / step_ns.max(1)) as usize;
            if steps.len() <= place {
                steps.resize(place + 1, 0);
            }
            steps[place] += count;
        }
        steps
    }

    /// Every delay that was found, in ns to a thousandth, and how often; ascending.
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let recorded = self.histogram.iter().flat_map(Histogram::iter_recorded);
        recorded.map(|of| (of.value_iterated_to(), of.count_since_last_iteration()))
    }

    fn join(&mut self, other: &Self) {
        match (&mut self.histogram, &other.histogram) {
            (Some(own), Some(others)) => {
                // Both have the same bounds: this cannot fail.
                let _ = own.add(others);
            }
            (own @ None, others) => own.clone_from(others),
            (Some(_), None) => {}
        }
        if let Some((delay, number)) = other.worst {
            if self.worst.is_none_or(|(worst, _)| delay > worst) {
                self.worst = Some((delay, number));
            }
        }
    }
}

/// A node on a stream's path that sends by periods, or the periodic thread that
/// takes what comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Packets that went through.
    pub passed: u64,
    /// Of them those that went one period or more after the one they would have
    /// met on an empty segment.
    pub late: u64,
}

/// Time that a packet has lost on its way, by cause. What the same path takes on
/// empty segments, with nobody else at the nodes, is no part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LostTime {
    /// Periods beyond the first at nodes.
    pub deferred: Span,
    /// In devices and on segments: others were sent, or collided with it.
    pub medium: Span,
    /// Until SLIH took it: it took others.
    pub receiving: Span,
}

/// Packets with a one-way delay above (routers + 1) x (period + slot), by what made
/// them so. A cause counts only if the packet lost time by it, and is above the
/// bound without it no more; each packet by the first cause that says so together with
/// those before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overs {
    /// All of them.
    pub all: u64,
    /// They have waited for a period beyond the first at a node, for want of
    /// budget, of time in the slot, or of a reservation.
    pub deferred: u64,
    /// Devices and segments had others to send, or collisions.
    pub medium: u64,
    /// SLIH had others to take.
    pub receiving: u64,
    /// No cause says so: the bound does not hold.
    pub unexplained: u64,
}

impl Overs {
    /// A packet is `over` above the bound.
    pub(super) fn add(&mut self, over: Span, lost: LostTime) {
        let causes = [
            (lost.deferred, &mut self.deferred),
            (lost.medium, &mut self.medium),
            (lost.receiving, &mut self.receiving),
        ];
        self.all += 1;
        let mut explained = Span::ZERO;
        for (time, count) in causes {
            explained = explained + time;
            if explained >= over {
                *count += 1;
                return;
            }
        }
        self.unexplained += 1;
    }
}

/// What is counted of a stream.
#[derive(Clone, Debug, Default)]
pub struct StreamMeasure {
    /// Packets sent.
    pub sent: u64,
    /// Packets that came to the receiver.
    pub arrived: u64,
    /// Packets that came back.
    pub returned: u64,
    /// Packets given up after too many collisions.
    pub lost_collisions: u64,
    /// Packets that met a full queue.
    pub lost_queue: u64,
    /// From the sender's ITM thread to the receiver.
    pub one_way: Delays,
    /// From the sender's ITM thread until it had the packet back.
    pub round_trip: Delays,
    /// Transmissions by collisions before; the last place is of those given up.
    pub retries: [u64; ATTEMPTS_MAX as usize + 1],
    /// Packets by periods lost on all of their path.
    pub late: Vec<u64>,
    /// By stage, on the way and back.
    pub stages: Vec<Stage>,
    /// Of RT.
    pub overs: Overs,
    /// From the first arrival to the last; of several runs the longest.
    pub span: Span,
}

impl StreamMeasure {
    pub(super) fn new(stages: usize) -> Self {
        Self {
            stages: vec![Stage::default(); stages],
            ..Self::default()
        }
    }

    pub(super) fn note_late(&mut self, periods: u64) {
        let place = usize::try_from(periods).unwrap_or(LATE_MAX).min(LATE_MAX);
        if self.late.len() <= place {
            self.late.resize(place + 1, 0);
        }
        self.late[place] += 1;
    }

    /// Adds what another run of the same stream has counted.
    pub fn join(&mut self, other: &Self) {
        self.sent += other.sent;
        self.arrived += other.arrived;
        self.returned += other.returned;
        self.lost_collisions += other.lost_collisions;
        self.lost_queue += other.lost_queue;
        self.one_way.join(&other.one_way);
        self.round_trip.join(&other.round_trip);
        for (own, others) in self.retries.iter_mut().zip(other.retries) {
            *own += others;
        }
        if self.late.len() < other.late.len() {
            self.late.resize(other.late.len(), 0);
        }
        for (own, others) in self.late.iter_mut().zip(&other.late) {
            *own += others;
        }
        for (own, others) in self.stages.iter_mut().zip(&other.stages) {
            own.passed += others.passed;
            own.late += others.late;
        }
        self.overs.all += other.overs.all;
        self.overs.deferred += other.overs.deferred;
        self.overs.medium += other.overs.medium;
        self.overs.receiving += other.overs.receiving;
        self.overs.unexplained += other.overs.unexplained;
        self.span = self.span.max(other.span);
    }
}

/// What is counted of a node, each precondition of the bound by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// RT packets that went beyond their reservation.
    pub late_first: u64,
    /// NRT budget that these took, bytes on the wire.
    pub late_first_bytes: u64,
    /// RT packets that had to wait for another period, once for each period: no
    /// late-first, the NRT budget was used up, or a period's backlog was paid for.
    pub deferred: u64,
    /// RT packets that had to wait for another period, once for each period: their
    /// stream has sent more than is reserved for it.
    pub excess: u64,
    /// RT packets that RT-IP had no time for in its slot, once for each period.
    pub slot_overruns: u64,
    /// Times at which ITM found a device that had not sent everything of the
    /// period before.
    pub device_busy: u64,
    /// NRT packets that waited for another period, once for each period.
    pub nrt_deferred: u64,
    /// NRT packets that met a full queue.
    pub nrt_dropped: u64,
}

impl NodeCounts {
    /// Adds what another run of the same node has counted.
    pub fn join(&mut self, other: &Self) {
        self.late_first += other.late_first;
        self.late_first_bytes += other.late_first_bytes;
        self.deferred += other.deferred;
        self.excess += other.excess;
        self.slot_overruns += other.slot_overruns;
        self.device_busy += other.device_busy;
        self.nrt_deferred += other.nrt_deferred;
        self.nrt_dropped += other.nrt_dropped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_counts_only_if_it_was_there_and_suffices() {
        let ms = |ms: u64| Span::from_ns(ms * 1_000_000);
        let over = |deferred, medium, receiving| {
            let mut overs = Overs::default();
            let lost = LostTime {
                deferred: ms(deferred),
                medium: ms(medium),
                receiving: ms(receiving),
            };
            overs.add(ms(2), lost);
            assert_eq!(overs.all, 1);
            [
                overs.deferred,
                overs.medium,
                overs.receiving,
                overs.unexplained,
            ]
        };
        assert_eq!(over(10, 10, 0), [1, 0, 0, 0]);
        assert_eq!(over(0, 2, 0), [0, 1, 0, 0]);
        assert_eq!(over(0, 1, 1), [0, 0, 1, 0]);
        assert_eq!(over(0, 1, 0), [0, 0, 0, 1]);
        assert_eq!(over(0, 0, 0), [0, 0, 0, 1]);
    }
}
