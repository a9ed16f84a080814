// SPDX-License-Identifier: MIT OR Apache-2.0
//! The curves of a stream and of its routers, from what a user gives of them.

use crate::Error;
use crate::bounds::{RateLatency, TokenBucket};

/// Rate of the stream where none is given, bit/s. A stream that fills its reservation has the same
/// bounds at any rate.
const RATE_BPS: u64 = 1_000_000;
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
}

impl Given<'_> {
    /// Returns the stream and the service that each stage gives it. O(stages).
    ///
    /// # Errors
    /// If there are several rates or latencies, but not one for each stage. The error names the
    /// option of `pspacer predict`.
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
        let server = |(rate, latency): (u64, u64)| RateLatency {
            rate_bps: rate as f64,
            latency_ns: latency as f64,
        };
        let servers = rates.into_iter().zip(latencies).map(server).collect();
        Ok((bucket, servers))
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
