// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures burstiness (paper 000, 4.1): the flow is fed into a virtual bottleneck that drains
//! at the flow's own average rate; the largest queue is its burstiness.
//!
//! The average rate is the bytes of all packets but the last, over the time from the first
//! start to the last. At this rate the queue of an even flow becomes empty just when its next
//! packet arrives. An even flow therefore has a burstiness of exactly one packet. ON-OFF
//! traffic that sends at Max for `t x Avg/Max` out of every t has `t x Avg/Max x (Max - Avg)`,
//! plus the packet being sent.
//!
//! A packet enters the queue whole, at its start, and is counted until its last bit has
//! drained. All arithmetic is in integers: with B bytes in T picoseconds, the queue is kept in
//! units of 1/T byte.

use units::rounding::thousandths;

/// Measures the average rate: the bytes of all packets but the last, and the time that they
/// took. One pass, constant memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Average {
    first_ps: u64,
    last_ps: u64,
    last_bytes: u32,
    bytes: u64,
    packets: u64,
}

impl Average {
    /// Adds the next packet; `start_ps` must not decrease.
    pub fn push(&mut self, start_ps: u64, bytes: u32) {
        if self.packets == 0 {
            self.first_ps = start_ps;
        }
        self.last_ps = start_ps;
        self.last_bytes = bytes;
        self.bytes += u64::from(bytes);
        self.packets += 1;
    }

    /// Returns the rate as `(bytes, ps)`; `None` with fewer than two packets, or if all have
    /// the same timestamp.
    pub fn rate(&self) -> Option<(u64, u64)> {
        let span_ps = self.last_ps - self.first_ps;
        (span_ps > 0).then(|| (self.bytes - u64::from(self.last_bytes), span_ps))
    }
}

/// The virtual bottleneck. One pass, constant memory.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck {
    rate_bytes: u64,
    rate_ps: u64,
    queue: u128,
    largest: u128,
    last_ps: u64,
}

impl Bottleneck {
    /// Creates a bottleneck that drains `bytes` in every `ps`, as [`Average::rate`] returns
    /// them. If `ps` is 0, which is no rate, nothing is ever queued.
    pub fn new((bytes, ps): (u64, u64)) -> Self {
        Self {
            rate_bytes: bytes,
            rate_ps: ps,
            queue: 0,
            largest: 0,
            last_ps: 0,
        }
    }

    /// Adds the next packet and returns the queue just after its arrival, in bytes; `start_ps`
    /// must not decrease.
    pub fn push(&mut self, start_ps: u64, bytes: u32) -> f64 {
        // 64 x 64 bits, and the queue never exceeds all bytes x rate_ps.
        let drained = u128::from(self.rate_bytes) * u128::from(start_ps - self.last_ps);
        self.last_ps = start_ps;
        self.queue = self.queue.saturating_sub(drained);
        self.queue += u128::from(bytes) * u128::from(self.rate_ps);
        self.largest = self.largest.max(self.queue);
        self.bytes(self.queue)
    }

    /// Returns the largest queue so far, in bytes, to a thousandth.
    pub fn largest_bytes(&self) -> f64 {
        self.bytes(self.largest)
    }

    fn bytes(&self, queue: u128) -> f64 {
        if self.rate_ps == 0 {
            0.0
        } else {
            thousandths(queue, self.rate_ps.into())
        }
    }
}

/// Returns the burstiness in bytes of a flow given as `(start_ps, bytes)`; `None` if it has no
/// average rate. Two passes, constant memory.
pub fn burstiness_bytes<I>(packets: I) -> Option<f64>
where
    I: Iterator<Item = (u64, u32)> + Clone,
{
    let mut average = Average::default();
    packets.clone().for_each(|(t, b)| average.push(t, b));
    let mut bottleneck = Bottleneck::new(average.rate()?);
    for (t, b) in packets {
        bottleneck.push(t, b);
    }
    Some(bottleneck.largest_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(packets: &[(u64, u32)]) -> Option<f64> {
        burstiness_bytes(packets.iter().copied())
    }

    #[test]
    fn an_even_flow_has_one_packet() {
        // The periods divide no round number, and reach the largest times there are.
        for (period, bytes) in [(12_304_000, 1514), (7, 64), (1_000_003, 9014), (1 << 54, 1)] {
            let even: Vec<_> = (0..1000).map(|i| (i * period, bytes)).collect();
            assert_eq!(of(&even), Some(f64::from(bytes)));
        }
    }

    #[test]
    fn the_queue_is_as_computed_by_hand() {
        // The average drains 300 bytes in 30 ps, 10 bytes a ps. The queue holds 100, 100 - 50 +
        // 100 = 150, 150 - 50 + 100 = 200, and 200 - 200 + 50 = 50 bytes.
        let packets = [(0, 100), (5, 100), (10, 100), (30, 50)];
        assert_eq!(of(&packets), Some(200.0));
    }

    #[test]
    fn too_few_packets_have_no_burstiness() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(1, 2)]), None);
        assert_eq!(of(&[(1, 2), (1, 2)]), None);
    }

    /// The formula of figure 5 is t x Avg/Max x (Max - Avg).
    #[test]
    fn on_off_traffic_has_the_papers_burstiness() {
        // Packets of 1000 bytes, 1 us apart while ON (Max = 8 Gbit/s), 25 of
        // every 100 us (Avg = 2 Gbit/s): 100 us x 1/4 x 6 Gbit/s = 18,750 bytes.
        let us = 1_000_000;
        let mut packets = Vec::new();
        for cycle in 0..40 {
            packets.extend((0..25).map(|i| ((cycle * 100 + i) * us, 1000)));
        }
        packets.push((4000 * us, 1000));
        let formula = 100.0 * 0.25 * (1000.0 - 250.0);
        // The last packet of an ON period enters 1 us before its end, whole.
        assert_eq!(of(&packets), Some(formula + 250.0));
        // With packets of one byte, the paper's fluid limit, both agree.
        let fluid: Vec<_> = (0..40u64)
            .flat_map(|c| (0..25_000u64).map(move |i| (c * 100 * us + i * 1000, 1)))
            .chain([(4000 * us, 1)])
            .collect();
        assert!((of(&fluid).unwrap() - formula).abs() < 1.0);
    }

    fn flow() -> impl Strategy<Value = Vec<(u64, u32)>> {
        proptest::collection::vec((0u64..1_000_000, 64u32..9000), 2..100).prop_map(|steps| {
            let mut t = 0;
            steps
                .into_iter()
                .map(|(dt, b)| {
                    t += dt;
                    (t, b)
                })
                .collect()
        })
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        #[test]
        fn a_shift_in_time_changes_nothing(flow in flow(), shift in 0u64..1 << 60) {
            let moved: Vec<_> = flow.iter().map(|&(t, b)| (t + shift, b)).collect();
            prop_assert_eq!(of(&flow), of(&moved));
        }

        #[test]
        fn a_change_of_scale_changes_nothing(flow in flow(), scale in 1u64..1000) {
            let slower: Vec<_> = flow.iter().map(|&(t, b)| (t * scale, b)).collect();
            prop_assert_eq!(of(&flow), of(&slower));
        }

        /// The definition, unrolled: the largest excess of arrivals over
        /// service between any two packets.
        #[test]
        fn agrees_with_the_definition(flow in flow()) {
            let Some(value) = of(&flow) else { return Ok(()); };
            let (t0, t1) = (flow[0].0, flow[flow.len() - 1].0);
            let sent: u64 = flow[..flow.len() - 1].iter().map(|p| u64::from(p.1)).sum();
            let rate = sent as f64 / (t1 - t0) as f64;
            let mut largest: f64 = 0.0;
            for i in 0..flow.len() {
                let mut arrived = 0.0;
                for (t, b) in &flow[i..] {
                    arrived += f64::from(*b);
                    largest = largest.max(arrived - rate * (t - flow[i].0) as f64);
                }
            }
            prop_assert!((value - largest).abs() < 0.01, "{value} {largest}");
        }

        #[test]
        fn at_least_the_largest_packet(flow in flow()) {
            let largest = flow.iter().map(|p| p.1).max().map(f64::from);
            prop_assert!(of(&flow).is_none_or(|b| Some(b) >= largest));
        }
    }
}
