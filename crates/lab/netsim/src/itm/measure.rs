// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements of streams and nodes. Their memory does not grow with time, and the
//! measurements of several runs can be joined.

use hdrhistogram::Histogram;
use units::clock::Span;

use crate::segment::ATTEMPTS_MAX;

/// Significant digits of delays: a percentile is exact to a thousandth.
const DIGITS: u8 = 3;
/// Longest delay recorded: longer ones are recorded as this one.
const DELAY_NS_MAX: u64 = 100_000_000_000;
/// Largest number of periods recorded: larger ones are recorded as this one.
pub(super) const LATE_MAX: usize = 63;

/// Delays of packets.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// Allocated at the first delay: most streams have no round trips.
    histogram: Option<Histogram<u64>>,
    worst: Option<(Span, u64)>,
}

impl Delays {
    /// Adds the delay of packet `number`. O(1).
    pub fn add(&mut self, delay: Span, number: u64) {
        if self.histogram.is_none() {
            // The bounds are constants that the histogram accepts.
            self.histogram = Histogram::new_with_max(DELAY_NS_MAX, DIGITS).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(delay.as_ns().max(1));
        }
        if self.worst.is_none_or(|(worst, _)| delay > worst) {
            self.worst = Some((delay, number));
        }
    }

    /// Returns the number of delays.
    pub fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// Returns the longest delay, exactly, and the number of the first packet that
    /// had it.
    pub fn worst(&self) -> Option<(Span, u64)> {
        self.worst
    }

    /// Returns the shortest delay, in ns, to a thousandth.
    pub fn least_ns(&self) -> Option<u64> {
        self.histogram.as_ref().map(Histogram::min)
    }

    /// Returns the delay that `percent` of the packets do not exceed, in ns, to a
    /// thousandth.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        let (longest, _) = self.worst?;
        let value = self.histogram.as_ref()?.value_at_percentile(percent);
        Some(value.min(longest.as_ns()))
    }

    /// Returns the number of packets by delay in steps of `step_ns`: those up to
    /// the first step, from there to the second, and so on to the longest delay.
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

    /// Returns every recorded delay, in ns to a thousandth, and its count;
    /// ascending.
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let recorded = self.histogram.iter().flat_map(Histogram::iter_recorded);
        recorded.map(|of| (of.value_iterated_to(), of.count_since_last_iteration()))
    }

    fn join(&mut self, other: &Self) {
        match (&mut self.histogram, &other.histogram) {
            (Some(own), Some(others)) => {
                // Both have the same bounds, so this cannot fail.
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

/// A node on a stream's path that sends periodically, or the periodic thread that
/// takes returned packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Packets that passed.
    pub passed: u64,
    /// Of these, packets that passed one or more periods after the one in which
    /// they would have passed had the segment been idle.
    pub late: u64,
}

/// Time that a packet has lost on its path, by cause. The time that the same path
/// takes on idle segments, with no other packets at the nodes, is not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LostTime {
    /// Waiting at nodes for periods beyond the first.
    pub deferred: Span,
    /// Waiting in devices and on segments, because of other frames or of
    /// collisions.
    pub medium: Span,
    /// Waiting for SLIH, which received other packets first.
    pub receiving: Span,
}

/// Packets with a one-way delay above (routers + 1) x (period + slot), by cause.
/// The causes are added up in the order of the fields; each packet counts under the
/// first cause with which the time lost explains the excess over the bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overs {
    /// All such packets.
    pub all: u64,
    /// Packets that waited for a period beyond the first at a node, for lack of
    /// budget, of time in the slot, or of a reservation.
    pub deferred: u64,
    /// Packets delayed in devices and on segments by other frames or by collisions.
    pub medium: u64,
    /// Packets delayed by others that SLIH received first.
    pub receiving: u64,
    /// No cause explains the delay: the bound does not hold.
    pub unexplained: u64,
}

impl Overs {
    /// Counts a packet whose delay is `over` above the bound.
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

/// Measurements of a stream.
#[derive(Clone, Debug, Default)]
pub struct StreamMeasure {
    /// Packets sent.
    pub sent: u64,
    /// Packets that reached the receiver.
    pub arrived: u64,
    /// Packets that returned to the sender.
    pub returned: u64,
    /// Packets discarded after too many collisions.
    pub lost_collisions: u64,
    /// Packets discarded because a queue was full.
    pub lost_queue: u64,
    /// Delays from the sender's ITM thread to the receiver.
    pub one_way: Delays,
    /// Delays from the sender's ITM thread until the packet has returned to the
    /// sender.
    pub round_trip: Delays,
    /// Transmissions by the number of collisions before them; the last element
    /// counts the frames discarded.
    pub retries: [u64; ATTEMPTS_MAX as usize + 1],
    /// Packets by the number of periods lost on their whole path.
    pub late: Vec<u64>,
    /// Round trips by length: element n counts those longer than n periods of the
    /// sender and not longer than n + 1.
    pub round_trip_periods: Vec<u64>,
    /// Stages, on the path to the receiver and back.
    pub stages: Vec<Stage>,
    /// RT: packets above the bound.
    pub overs: Overs,
    /// Time from the first arrival to the last; of several runs the longest.
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
        count(&mut self.late, periods);
    }

    /// Counts a round trip by the periods that it has begun.
    pub(super) fn note_round_trip(&mut self, delay: Span, period: Span) {
        let begun = delay.as_ps().div_ceil(period.as_ps().max(1));
        count(&mut self.round_trip_periods, begun.saturating_sub(1));
    }

    /// Adds the measurements of another run of the same stream.
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
        add(&mut self.late, &other.late);
        add(&mut self.round_trip_periods, &other.round_trip_periods);
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

/// Counts one at `place`, or at the last place there is.
fn count(counts: &mut Vec<u64>, place: u64) {
    let place = usize::try_from(place).unwrap_or(LATE_MAX).min(LATE_MAX);
    if counts.len() <= place {
        counts.resize(place + 1, 0);
    }
    counts[place] += 1;
}

/// Adds counts place by place.
fn add(own: &mut Vec<u64>, others: &[u64]) {
    if own.len() < others.len() {
        own.resize(others.len(), 0);
    }
    own.iter_mut().zip(others).for_each(|(own, o)| *own += o);
}

/// Counters of a node, with each precondition of the bound counted separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// RT packets that late-first sent beyond the reservation of the current
    /// period.
    pub late_first: u64,
    /// NRT budget that these used, bytes on the wire.
    pub late_first_bytes: u64,
    /// RT packets that had to wait for another period, counted once for each
    /// period, because there is no late-first, the NRT budget was used up, or one
    /// period's backlog had been sent.
    pub deferred: u64,
    /// RT packets that had to wait for another period, counted once for each
    /// period, because their stream has sent more than is reserved for it.
    pub excess: u64,
    /// RT packets for which RT-IP had no time in its slot, counted once for each
    /// period.
    pub slot_overruns: u64,
    /// Number of times that ITM found a device that had not sent everything of the
    /// period before.
    pub device_busy: u64,
    /// NRT packets that waited for another period, counted once for each period.
    pub nrt_deferred: u64,
    /// NRT packets discarded because the queue was full.
    pub nrt_dropped: u64,
}

impl NodeCounts {
    /// Adds the counters of another run of the same node.
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
    fn a_cause_counts_only_if_it_explains_the_delay() {
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
