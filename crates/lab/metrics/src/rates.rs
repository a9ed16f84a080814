// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures rates: between neighbouring frames, and over a window.

use std::collections::VecDeque;

use units::rounding::thousandths;
use units::time::PS_PER_S;

/// Returns the bits per second of `bytes` in `ps`, to a thousandth; `ps` must not be 0.
fn bps(bytes: u64, ps: u64) -> f64 {
    thousandths(u128::from(bytes) * 8 * u128::from(PS_PER_S), ps.into())
}

/// Rate per n packets (paper 000, 4.4): the sizes of n packets over the time
/// from the first one's start to that of the packet after them,
/// `sum(size[i..i+n]) / (t[i+n] - t[i])`, for every i. It reaches the line
/// rate exactly where n + 1 packets leave back to back.
///
/// One pass; memory for n packets.
#[derive(Clone, Debug)]
pub struct SpanRate {
    packets: usize,
    recent: VecDeque<(u64, u32)>,
    bytes: u64,
    min_bps: f64,
    max_bps: f64,
    sum_bps: f64,
    spans: u64,
    unresolved: u64,
}

/// Results of [`SpanRate`]. All are `None` if there were not n + 1 packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpanRates {
    pub min_bps: Option<f64>,
    /// Largest rate. `None` also if n + 1 packets have the same timestamp: then the clock was
    /// too coarse.
    pub max_bps: Option<f64>,
    /// Arithmetic mean over all spans, as in the paper's tables. `None` in the same cases as
    /// `max_bps`.
    pub mean_bps: Option<f64>,
}

impl SpanRate {
    /// Measures spans of `packets` packets, at least 1.
    pub fn new(packets: usize) -> Self {
        let packets = packets.max(1);
        Self {
            packets,
            recent: VecDeque::with_capacity(packets + 1),
            bytes: 0,
            min_bps: f64::INFINITY,
            max_bps: 0.0,
            sum_bps: 0.0,
            spans: 0,
            unresolved: 0,
        }
    }

    /// Adds the next packet; `start_ps` must not decrease.
    pub fn push(&mut self, start_ps: u64, bytes: u32) {
        if self.recent.len() == self.packets {
            if let Some((first_ps, first_bytes)) = self.recent.pop_front() {
                self.span(start_ps - first_ps);
                self.bytes -= u64::from(first_bytes);
            }
        }
        self.recent.push_back((start_ps, bytes));
        self.bytes += u64::from(bytes);
    }

    fn span(&mut self, ps: u64) {
        if ps == 0 {
            self.unresolved += 1;
            return;
        }
        let rate = bps(self.bytes, ps);
        self.min_bps = self.min_bps.min(rate);
        self.max_bps = self.max_bps.max(rate);
        self.sum_bps += rate;
        self.spans += 1;
    }

    /// Returns the rates of all packets added.
    pub fn finish(&self) -> SpanRates {
        let resolved = self.spans > 0 && self.unresolved == 0;
        // Fewer than 2^53 spans; the mean is rounded like every other figure.
        let mean = || (self.sum_bps / self.spans as f64 * 1000.0).round() / 1000.0;
        SpanRates {
            min_bps: (self.spans > 0).then_some(self.min_bps),
            max_bps: resolved.then_some(self.max_bps),
            mean_bps: resolved.then(mean),
        }
    }
}

/// Measures the rate over a window `from_ps..to_ps` without the error of counting whole frames
/// at its borders. Each frame counts evenly over the time from its start to the start of the
/// flow's next frame; the flow's last frame counts over as long as the one before it. An even
/// flow therefore has exactly its rate in every window, and a silence lowers the rate.
///
/// One pass over the flow's frames, those before and after the window included; constant
/// memory.
#[derive(Clone, Debug)]
pub struct WindowRate {
    from_ps: u64,
    to_ps: u64,
    held: Option<(u64, [u32; 3])>,
    previous_ps: Option<u64>,
    /// The sums hold whole frames, not byte-picoseconds. Each of the at most three frames cut
    /// by a border adds a fraction of its bytes in units of 2^-32 byte.
    sums: [u128; 3],
}

/// Bits of the fraction of a byte in the sums of [`WindowRate`].
const FRACTION_BITS: u32 = 32;

impl WindowRate {
    /// Measures `from_ps..to_ps`.
    pub fn new(from_ps: u64, to_ps: u64) -> Self {
        Self {
            from_ps,
            to_ps,
            held: None,
            previous_ps: None,
            sums: [0; 3],
        }
    }

    /// Adds the next frame as three counts of bytes (link, wire, IP), one for each rate;
    /// `start_ps` must not decrease.
    pub fn push(&mut self, start_ps: u64, bytes: [u32; 3]) {
        if let Some((held_ps, held_bytes)) = self.held.replace((start_ps, bytes)) {
            self.spread(held_ps, start_ps, held_bytes);
            self.previous_ps = Some(held_ps);
        }
    }

    fn spread(&mut self, begin_ps: u64, end_ps: u64, bytes: [u32; 3]) {
        let inside = |t: u64| (self.from_ps..self.to_ps).contains(&t);
        let (share, whole) = if begin_ps == end_ps {
            (u64::from(inside(begin_ps)), 1)
        } else {
            let common = end_ps
                .min(self.to_ps)
                .saturating_sub(begin_ps.max(self.from_ps));
            (common, end_ps - begin_ps)
        };
        for (sum, b) in self.sums.iter_mut().zip(bytes) {
            // 32 + 32 + 64 bits.
            *sum += (u128::from(b) << FRACTION_BITS) * u128::from(share) / u128::from(whole);
        }
    }

    /// Returns the three rates, bits per second; 0 for an empty window.
    pub fn finish(mut self) -> [f64; 3] {
        if let Some((held_ps, bytes)) = self.held.take() {
            let length = self.previous_ps.map_or(0, |p| held_ps - p);
            self.spread(held_ps, held_ps.saturating_add(length), bytes);
        }
        let window = u128::from(self.to_ps.saturating_sub(self.from_ps));
        self.sums.map(|sum| {
            if window == 0 {
                return 0.0;
            }
            // Bits per window first, so that the product stays within 128 bits.
            let bits = sum * 8;
            let per_s = u128::from(PS_PER_S);
            let scaled = bits
                .checked_mul(per_s)
                .map_or_else(|| bits / window * per_s, |product| product / window);
            thousandths(scaled, 1 << FRACTION_BITS)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spans(n: usize, packets: &[(u64, u32)]) -> SpanRates {
        let mut rate = SpanRate::new(n);
        packets.iter().for_each(|&(t, b)| rate.push(t, b));
        rate.finish()
    }

    /// One microsecond in ps. One byte in it is 8 Mbit/s.
    const US: u64 = 1_000_000;

    #[test]
    fn rates_are_as_computed_by_hand() {
        let packets = [(0, 100), (2 * US, 200), (3 * US, 300), (7 * US, 50)];
        let one = spans(1, &packets);
        // The spans carry 100 B in 2 us, 200 B in 1 us and 300 B in 4 us.
        assert_eq!(one.min_bps, Some(400e6));
        assert_eq!(one.max_bps, Some(1600e6));
        assert_eq!(one.mean_bps, Some(866_666_666.667));
        let two = spans(2, &packets);
        // The spans carry 300 B in 3 us and 500 B in 5 us.
        assert_eq!(
            two,
            SpanRates {
                min_bps: Some(800e6),
                max_bps: Some(800e6),
                mean_bps: Some(800e6),
            }
        );
    }

    #[test]
    fn too_few_packets_or_too_coarse_a_clock() {
        assert_eq!(spans(1, &[]), SpanRates::default());
        assert_eq!(spans(1, &[(5, 100)]), SpanRates::default());
        assert_eq!(spans(2, &[(5, 100), (9, 100)]), SpanRates::default());
        let coarse = spans(1, &[(0, 100), (0, 100), (US, 100)]);
        assert_eq!(
            (coarse.min_bps, coarse.max_bps, coarse.mean_bps),
            (Some(800e6), None, None)
        );
    }

    fn window(from: u64, to: u64, packets: &[(u64, u32)]) -> f64 {
        let mut rate = WindowRate::new(from, to);
        packets.iter().for_each(|&(t, b)| rate.push(t, [b, b, 0]));
        let [link, wire, ip] = rate.finish();
        assert_eq!(link, wire);
        assert_eq!(ip, 0.0);
        link
    }

    #[test]
    fn an_even_flow_has_its_rate_in_every_window() {
        let even: Vec<_> = (0..100).map(|i| (i * 3 * US, 1500)).collect();
        for (from, to) in [(0, 300), (1, 2), (7, 291), (50, 52), (297, 300)] {
            assert_eq!(window(from * US, to * US, &even), 4e9, "{from}..{to}");
        }
    }

    #[test]
    fn a_silence_lowers_the_rate() {
        // The flow sends 1000 bytes at 0 and at 1 us, then nothing.
        let stops = [(0, 1000), (US, 1000)];
        assert_eq!(window(0, 4 * US, &stops), 4e9);
        assert_eq!(window(3 * US, 4 * US, &stops), 0.0);
        // The flow sends again after 10 us: the second frame counts evenly over the 9 us up
        // to the third.
        let pauses = [(0, 1000), (US, 1000), (10 * US, 1000)];
        assert_eq!(window(US, 10 * US, &pauses), 888_888_888.889);
        assert_eq!(window(5, 5, &pauses), 0.0);
        assert_eq!(window(0, US, &[]), 0.0);
        assert_eq!(window(0, US, &[(US / 2, 125)]), 1e9);
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        /// Neighbouring windows add up to the whole.
        #[test]
        fn windows_add_up(
            steps in proptest::collection::vec((0u64..50 * US, 1u32..9000), 1..40),
            cut in 1u64..999,
        ) {
            let mut t = 0;
            let packets: Vec<_> = steps.iter().map(|&(dt, b)| { t += dt; (t, b) }).collect();
            let (end, cut) = (1000 * US, cut * US);
            let parts = window(0, cut, &packets) * cut as f64
                + window(cut, end, &packets) * (end - cut) as f64;
            let whole = window(0, end, &packets) * end as f64;
            prop_assert!((parts - whole).abs() <= 0.003 * end as f64, "{parts} {whole}");
        }

        /// n = 1 reaches the line rate iff two packets leave back to back.
        #[test]
        fn line_rate_means_back_to_back(gaps in proptest::collection::vec(0u64..5, 1..30)) {
            // Wire bytes of 1538 at 1 Gbit/s; idle times of whole byte times.
            let mut t = 0;
            let mut rate = SpanRate::new(1);
            rate.push(0, 1538);
            for gap in &gaps {
                t += (1538 + gap) * 8000;
                rate.push(t, 1538);
            }
            let reached = rate.finish().max_bps == Some(1e9);
            prop_assert_eq!(reached, gaps.contains(&0));
        }
    }
}
