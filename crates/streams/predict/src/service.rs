// SPDX-License-Identifier: MIT OR Apache-2.0
//! The curves of a stream and of its routers, from what a user gives of them.

use crate::Error;
use crate::bounds::{RateLatency, TokenBucket};

/// Rate of the stream where none is given, bit/s. A stream that fills its reservation has the same
/// bounds at any rate.
const RATE_BPS: u64 = 1_000_000;
/// Largest packet of a stream where none is given: Ethernet's, if it sends as much at once.
const PACKET_BYTES: f64 = 1500.0;
/// Nanoseconds in a second times bits in a byte.
const NS_BYTE: u64 = 8_000_000_000;

/// What is given of a stream and its service.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// Rate of the stream.
    pub rate_bps: Option<u64>,
    /// What the stream sends at once; without it, what its rate gives in a period.
    pub burst_bytes: Option<u64>,
    /// Rates that the stages serve of the stream: one for all or one for each; without it, the
    /// stream's rate.
    pub reserve_bps: &'a [u64],
    /// How late the stages begin to serve it: one for all or one for each; without it, the period
    /// and the slot.
    pub latency_ns: &'a [u64],
    /// Largest packet of the stream. A stage whose latency is given stores a packet before it forwards
    /// it: that time comes on top. In a period and a slot it is contained.
    pub packet_bytes: Option<u64>,
}

impl Given<'_> {
    /// Returns the stream and the service that each stage gives it. O(stages).
    ///
    /// A server of rate R that forwards whole packets of at most L bytes serves the next one at
    /// least `R (t - latency - L / R)` (Le Boudec and Thiran, theorem 1.7.1, a packetiser); the last
    /// packet's last byte is where delay ends, so the last stage has none.
    ///
    /// # Errors
    /// If there are several rates or latencies, but not one for each stage, or a packet longer than
    /// what the stream sends at once. The error names the option of `pspacer predict`.
    pub fn curves(
        &self,
        period_ns: u64,
        slot_ns: u64,
        stages: usize,
    ) -> Result<(TokenBucket, Vec<RateLatency>), Error> {
        let rate_bps = self.rate_bps.unwrap_or(RATE_BPS);
        let period_bytes = rate_bps as f64 * period_ns as f64 / NS_BYTE as f64;
        let bucket = TokenBucket {
            burst_bytes: self.burst_bytes.map_or(period_bytes, |bytes| bytes as f64),
            rate_bps: rate_bps as f64,
        };
        let rates = each("--reserve", self.reserve_bps, rate_bps, stages)?;
        let stage_ns = period_ns.saturating_add(slot_ns);
        let latencies = each("--latency", self.latency_ns, stage_ns, stages)?;
        let packet_bytes = match self.packet_bytes {
            _ if self.latency_ns.is_empty() => 0.0,
            None => bucket.burst_bytes.min(PACKET_BYTES),
            Some(bytes) if bytes as f64 <= bucket.burst_bytes => bytes as f64,
            Some(bytes) => {
                return Err(Error::Packet {
                    bytes,
                    burst_bytes: bucket.burst_bytes,
                });
            }
        };
        let server = |(stage, (rate, latency)): (usize, (u64, u64))| {
            let rate_bps = rate as f64;
            let is_last = stage + 1 == stages;
            let stored_bytes = if is_last { 0.0 } else { packet_bytes };
            RateLatency {
                rate_bps,
                latency_ns: latency as f64 + stored_bytes * NS_BYTE as f64 / rate_bps,
            }
        };
        let pairs = rates.into_iter().zip(latencies);
        Ok((bucket, pairs.enumerate().map(server).collect()))
    }
}

/// Returns one value for each stage.
fn each(
    option: &'static str,
    given: &[u64],
    default: u64,
    stages: usize,
) -> Result<Vec<u64>, Error> {
    match given {
        [] => Ok(vec![default; stages]),
        [one] => Ok(vec![*one; stages]),
        all if all.len() == stages => Ok(all.to_vec()),
        all => Err(Error::Values {
            option,
            given: all.len(),
            stages,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: u64 = 10_000_000;

    #[test]
    fn one_value_is_for_all_stages() {
        let given = Given {
            reserve_bps: &[3_000_000],
            ..Given::default()
        };
        let (stream, servers) = given.curves(PERIOD_NS, 1_000_000, 3).unwrap();
        assert_eq!((stream.rate_bps, stream.burst_bytes), (1e6, 1250.0));
        let served = RateLatency {
            rate_bps: 3e6,
            latency_ns: 11e6,
        };
        assert_eq!(servers, [served; 3]);
    }

    /// 1,538 bytes take 12.304 us at 1 Gbit/s: a switch stores a packet, and the next one again.
    #[test]
    fn a_packet_is_stored_at_each_stage_but_the_last() {
        let bound_ns = |packet_bytes, stages| {
            let given = Given {
                rate_bps: Some(1_000_000_000),
                burst_bytes: Some(1538),
                latency_ns: &[0],
                packet_bytes,
                ..Given::default()
            };
            let (stream, servers) = given.curves(PERIOD_NS, 0, stages).unwrap();
            let found = crate::bounds::bounds(stream, &servers).unwrap();
            found.pay_bursts_only_once_ns.round()
        };
        assert_eq!(
            [1, 2, 4].map(|n| bound_ns(Some(1538), n)),
            [12_304.0, 24_608.0, 49_216.0]
        );
        // Half of it, in two packets.
        assert_eq!(bound_ns(Some(769), 2), 18_456.0);
        // Of a stream that says nothing, Ethernet's largest.
        assert_eq!(bound_ns(None, 2), 24_304.0);
        // In a period there is room for it.
        let (_, servers) = Given::default().curves(PERIOD_NS, 0, 2).unwrap();
        assert!(servers.iter().all(|server| server.latency_ns == 10e6));
    }

    #[test]
    fn a_packet_beyond_the_burst_is_refused() {
        let given = Given {
            burst_bytes: Some(1000),
            latency_ns: &[0],
            packet_bytes: Some(1001),
            ..Given::default()
        };
        assert_eq!(
            given.curves(PERIOD_NS, 0, 1).unwrap_err().to_string(),
            "--packet: 1001 bytes, expected at most what the stream sends at once, 1000"
        );
    }

    #[test]
    fn a_wrong_number_of_values_is_refused() {
        let given = Given {
            latency_ns: &[1, 2],
            ..Given::default()
        };
        let error = given.curves(PERIOD_NS, 0, 3).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--latency: 2 values: expected 1, or 3, one for each stage"
        );
    }
}
