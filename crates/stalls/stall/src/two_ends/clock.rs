// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fits one capture's clock to the other's, by packets that are in both.
//!
//! Let d be the far timestamp less the near one. Of packets that go from near to far, d is the
//! clocks' offset and the delay; of packets that come back, it is the offset less the delay. So
//! the line that the offset follows lies below all points of the first kind and above all of
//! the second. The widest corridor between them gives the drift (the delays' least values show
//! on both sides), and its middle the offset. If the two directions' least delays differ, the
//! offset is wrong by half of the difference: no packets can tell. The corridor's half width,
//! half of the least round trip, bounds that.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use capture::segment::Endpoint;
use serde::Serialize;

use super::unpaired::Unpaired;

/// Timestamps of a packet at both captures: near and far.
pub(super) type Pair = (u64, u64);
type Common = BTreeMap<(Endpoint, Endpoint), Vec<Pair>>;

/// Largest drift that is looked for: a part in a thousand. Crystals are a tenth of that.
const DRIFT_MOST: f64 = 1e-3;
/// Steps of the search for the drift: each takes a third off the range.
const STEPS: u32 = 120;
/// Shortest time in which a drift can be seen, ns.
const DRIFT_SPAN_NS: f64 = 1e9;
/// A corridor may be narrower than nothing by so much: timestamps are not exact.
const JITTER_NS: f64 = 20_000.0;

/// The far clock, beside the near one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Clocks {
    /// Far clock less near clock, at the near capture's first common packet, s.
    pub offset_s: f64,
    /// How fast the far clock runs away from the near one, in millionths.
    pub drift_ppm: f64,
    /// Bound on the error of the offset, and so of each one-way delay, s: half of the least
    /// round trip. The error is as large only if the whole path were one direction's.
    pub uncertainty_s: f64,
    /// Packets that were found in both captures without doubt.
    pub pairs: u64,
    /// Near time that times count from.
    #[serde(skip)]
    zero_ns: u64,
    /// Whole nanoseconds of the offset, and the rest.
    #[serde(skip)]
    base_ns: i128,
    #[serde(skip)]
    rest_ns: f64,
    #[serde(skip)]
    drift: f64,
}

/// Returns the hosts at the near capture: those whose packets have the smaller difference of
/// far and near time when they receive than when they send.
pub(super) fn near_hosts(common: &Common) -> BTreeSet<IpAddr> {
    let mut votes: BTreeMap<IpAddr, i64> = BTreeMap::new();
    for ((from, to), pairs) in common {
        let Some(back) = common.get(&(*to, *from)).filter(|_| from < to) else {
            continue;
        };
        let count = pairs.len().min(back.len());
        let weight = i64::try_from(count).unwrap_or(i64::MAX);
        let is_near = median(pairs) > median(back);
        let (near, far) = if is_near { (from, to) } else { (to, from) };
        *votes.entry(near.address).or_default() += weight;
        *votes.entry(far.address).or_default() -= weight;
    }
    let near = votes.into_iter().filter(|(_, votes)| *votes > 0);
    near.map(|(host, _)| host).collect()
}

fn difference(pair: &Pair) -> i128 {
    i128::from(pair.1) - i128::from(pair.0)
}

fn median(pairs: &[Pair]) -> i128 {
    let mut all: Vec<_> = pairs.iter().map(difference).collect();
    let middle = all.len() / 2;
    *all.select_nth_unstable(middle).1
}

impl Clocks {
    /// Fits the clocks. `is_near` tells the ends at the near capture.
    pub(super) fn fit(
        common: &Common,
        is_near: impl Fn(&Endpoint) -> bool,
    ) -> Result<Self, Unpaired> {
        let all = || common.values().flatten();
        let zero_ns = all().map(|pair| pair.0).min().unwrap_or(0);
        let base_ns = all().next().map_or(0, difference);
        let point = |pair: &Pair| {
            // Both are far below 2^53 ns, hundred days.
            let at = (i128::from(pair.0) - i128::from(zero_ns)) as f64;
            (at, (difference(pair) - base_ns) as f64)
        };
        let (mut forth, mut back) = (Vec::new(), Vec::new());
        for ((from, _), pairs) in common {
            let points = pairs.iter().map(point);
            if is_near(from) {
                forth.extend(points)
            } else {
                back.extend(points.map(|(x, y)| (x, -y)))
            }
        }
        if forth.is_empty() || back.is_empty() {
            return Err(Unpaired::OneDirection);
        }
        let pairs = (forth.len() + back.len()) as u64;
        let span_ns = all().map(|pair| pair.0).max().unwrap_or(0) - zero_ns;
        let (forth, back) = (lower_hull(forth), lower_hull(back));
        let least = |hull: &[(f64, f64)], drift: f64| {
            let above = hull.iter().map(|(x, y)| y - drift * x);
            above.fold(f64::INFINITY, f64::min)
        };
        let width = |drift: f64| least(&forth, drift) + least(&back, -drift);
        let drift = if (span_ns as f64) < DRIFT_SPAN_NS {
            0.0
        } else {
            highest(width)
        };
        let (upper, lower) = (least(&forth, drift), -least(&back, -drift));
        let half_ns = (upper - lower) / 2.0;
        if half_ns < -JITTER_NS || drift.abs() > DRIFT_MOST * 0.99 {
            return Err(Unpaired::Clocks);
        }
        let rest_ns = f64::midpoint(upper, lower);
        Ok(Self {
            offset_s: (base_ns as f64 + rest_ns) / 1e9,
            drift_ppm: drift * 1e6,
            uncertainty_s: half_ns.max(0.0) / 1e9,
            pairs,
            zero_ns,
            base_ns,
            rest_ns,
            drift,
        })
    }

    /// Returns a near timestamp as time of the near clock since its first common packet, ns.
    pub(super) fn near(&self, time_ns: u64) -> i64 {
        let since = i128::from(time_ns) - i128::from(self.zero_ns);
        i64::try_from(since).unwrap_or(i64::MAX)
    }

    /// Returns a far timestamp as time of the near clock since its first common packet, ns.
    pub(super) fn as_near(&self, time_ns: u64) -> i64 {
        let since = i128::from(time_ns) - i128::from(self.zero_ns) - self.base_ns;
        // Some 2^53 ns at most.
        ((since as f64 - self.rest_ns) / (1.0 + self.drift)).round() as i64
    }

    /// Returns how much earlier than sent a packet may seem to arrive, ns.
    pub(super) fn slack_ns(&self) -> i64 {
        (self.uncertainty_s * 1e9) as i64 + JITTER_NS as i64 * 10
    }
}

/// Returns the lower convex hull of points, by x.
fn lower_hull(mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in points {
        while let [.., a, b] = hull.as_slice() {
            let turns = (b.0 - a.0) * (point.1 - a.1) - (b.1 - a.1) * (point.0 - a.0);
            if turns > 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// Returns where a concave function of the drift is highest; the middle, where several are.
fn highest(of: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-DRIFT_MOST, DRIFT_MOST);
    for _ in 0..STEPS {
        let third = (high - low) / 3.0;
        let (a, b) = (low + third, high - third);
        let (of_a, of_b) = (of(a), of(b));
        if of_a <= of_b {
            low = a;
        }
        if of_b <= of_a {
            high = b;
        }
    }
    f64::midpoint(low, high)
}
