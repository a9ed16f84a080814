// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the guarantees of network calculus for a stream over a chain of servers (J.-Y. Le
//! Boudec and P. Thiran, Network Calculus, Springer 2001, chapter 1).
//!
//! The stream obeys a token bucket; each hop gives it a rate-latency service. The results were
//! checked against the DiscoDNC (`docs/decisions/isochronous.md, "Bounds of network
//! calculus"`).

use serde::Serialize;

use crate::Error;

/// Bits in a byte times nanoseconds in a second.
const BIT_NS: f64 = 8e9;

/// Arrival curve: at most `burst_bytes + rate t` bytes arrive in any time t.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TokenBucket {
    /// Most bytes that may arrive at once.
    pub burst_bytes: f64,
    /// Long-run rate.
    pub rate_bps: f64,
}

/// Service curve: a hop serves at least `rate (t - latency)` in time t from the start of a
/// backlog.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateLatency {
    pub rate_bps: f64,
    /// Latest time at which the service begins, after the start of a backlog.
    pub latency_ns: f64,
}

impl RateLatency {
    /// Returns the curve of a server that sends up to `budget_bytes` of the stream once a
    /// period, as paper 004's ITM thread does. Its service is a staircase, budget x floor(t /
    /// period). The highest rate-latency curve below it has the mean rate and one period of
    /// latency.
    pub fn periodic(budget_bytes: f64, period_ns: f64) -> Self {
        Self {
            rate_bps: budget_bytes * BIT_NS / period_ns,
            latency_ns: period_ns,
        }
    }
}

/// Returns the longest delay over `stages` routers that each route once a period and send one
/// slot later (paper 004, 4.3, which leaves out the slot): (stages + 1) x (period + slot). At
/// each router a packet waits for less than a period and for the slot; the additional period
/// and slot are for all devices and media together.
pub fn isochronous_ns(stages: usize, period_ns: u64, slot_ns: u64) -> u64 {
    let turns = u64::try_from(stages).unwrap_or(u64::MAX).saturating_add(1);
    turns.saturating_mul(period_ns.saturating_add(slot_ns))
}

/// Bounds of the delay over a chain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// Bound of each hop, for the burst that the hops before it may have caused.
    pub per_hop_ns: Vec<f64>,
    /// Sum of the bounds of the hops: each hop counts the whole burst.
    pub per_hop_sum_ns: f64,
    /// Bound for the chain as one server: the burst counts once, at the slowest hop.
    pub pay_bursts_only_once_ns: f64,
}

/// Bounds the delay of a stream over `servers`, in order.
///
/// At one hop the delay is at most the horizontal distance of the curves, latency + burst /
/// rate (theorem 1.4.2), and the burst that leaves is larger by rate x latency (theorem
/// 1.4.3). A chain of servers acts as one with the least rate and the sum of the latencies
/// (theorem 1.4.6). O(hops).
///
/// # Errors
/// A quantity that is not finite or out of its range, or a hop slower than the stream.
pub fn bounds(arrival: TokenBucket, servers: &[RateLatency]) -> Result<Bounds, Error> {
    check("burst_bytes", arrival.burst_bytes, false)?;
    check("rate_bps", arrival.rate_bps, false)?;
    let mut burst_bytes = arrival.burst_bytes;
    let mut per_hop_ns = Vec::with_capacity(servers.len());
    for (hop, server) in (1..).zip(servers) {
        check("service rate_bps", server.rate_bps, true)?;
        check("service latency_ns", server.latency_ns, false)?;
        if server.rate_bps < arrival.rate_bps {
            return Err(Error::Overload {
                hop,
                service_bps: server.rate_bps,
                arrival_bps: arrival.rate_bps,
            });
        }
        per_hop_ns.push(server.latency_ns + burst_bytes * BIT_NS / server.rate_bps);
        burst_bytes += arrival.rate_bps * server.latency_ns / BIT_NS;
    }
    let least_bps = servers
        .iter()
        .map(|s| s.rate_bps)
        .fold(f64::INFINITY, f64::min);
    let latency_ns: f64 = servers.iter().map(|s| s.latency_ns).sum();
    Ok(Bounds {
        per_hop_sum_ns: per_hop_ns.iter().sum(),
        // Without a hop the rate is infinite and the burst takes no time.
        pay_bursts_only_once_ns: latency_ns + arrival.burst_bytes * BIT_NS / least_bps,
        per_hop_ns,
    })
}

fn check(what: &'static str, value: f64, above_zero: bool) -> Result<(), Error> {
    let (fits, expected) = if above_zero {
        (value > 0.0, "above 0")
    } else {
        (value >= 0.0, "0 or more")
    };
    if fits && value.is_finite() {
        return Ok(());
    }
    Err(Error::Curve {
        what,
        value,
        expected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const T_NS: f64 = 10e6;

    /// Returns the bounds of a stream that sends its reservation, a period's bytes, at once.
    fn paper(hops: usize) -> Bounds {
        let server = RateLatency::periodic(1250.0, T_NS);
        let stream = TokenBucket {
            burst_bytes: 1250.0,
            rate_bps: server.rate_bps,
        };
        bounds(stream, &vec![server; hops]).unwrap()
    }

    /// The bound of paper 004, 4.3, is period x (routers + 1).
    #[test]
    fn burst_paid_once_is_the_papers_bound() {
        for hops in 1..=9u32 {
            let found = paper(hops as usize);
            let expected = T_NS * f64::from(hops + 1);
            assert!((found.pay_bursts_only_once_ns - expected).abs() < 1e-3);
        }
    }

    #[test]
    fn each_hop_makes_the_burst_larger_for_the_next() {
        let found = paper(3);
        let periods: Vec<_> = found.per_hop_ns.iter().map(|ns| ns / T_NS).collect();
        assert_eq!(periods, [2.0, 3.0, 4.0]);
        assert!(found.per_hop_sum_ns >= found.pay_bursts_only_once_ns);
    }

    #[test]
    fn the_slot_counts_at_each_router_and_once_more() {
        assert_eq!(isochronous_ns(9, 10_000_000, 1_000_000), 110_000_000);
        // Without a router the bound is the sender's period and slot.
        assert_eq!(isochronous_ns(0, 10_000_000, 1_000_000), 11_000_000);
        assert_eq!(isochronous_ns(usize::MAX, 1, 1), u64::MAX);
        // The chain as one server, with a slot at each stage, is within the bound.
        let server = RateLatency {
            latency_ns: T_NS + T_NS / 10.0,
            ..RateLatency::periodic(1250.0, T_NS)
        };
        let stream = TokenBucket {
            burst_bytes: 1250.0,
            rate_bps: server.rate_bps,
        };
        for hops in 1..=9 {
            let found = bounds(stream, &vec![server; hops]).unwrap();
            let most_ns = isochronous_ns(hops, 10_000_000, 1_000_000) as f64;
            assert!(found.pay_bursts_only_once_ns <= most_ns);
        }
    }

    #[test]
    fn a_chain_without_hops_takes_no_time() {
        let found = paper(0);
        assert_eq!(
            (found.per_hop_sum_ns, found.pay_bursts_only_once_ns),
            (0.0, 0.0)
        );
    }

    #[test]
    fn a_stream_beyond_the_service_has_no_bound() {
        let stream = TokenBucket {
            burst_bytes: 0.0,
            rate_bps: 2e6,
        };
        let server = RateLatency {
            rate_bps: 1e6,
            latency_ns: 0.0,
        };
        let error = bounds(stream, &[server]).unwrap_err().to_string();
        assert!(
            error.contains("1000000") && error.contains("2000000"),
            "{error}"
        );
        let broken = TokenBucket {
            burst_bytes: f64::NAN,
            ..stream
        };
        assert!(bounds(broken, &[]).is_err());
        let stopped = RateLatency {
            rate_bps: 0.0,
            ..server
        };
        assert!(bounds(stream, &[stopped]).is_err());
    }
}
