// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties that hold for every chain.

use predict::bounds::{RateLatency, TokenBucket, bounds};
use predict::classes::{Classes, Delay};
use predict::distribution::Chain;
use predict::{estimate, fit, measured};
use proptest::collection::vec;
use proptest::prelude::*;

/// Returns (n over k) p^k q^(n-k) in doubles.
fn binomial(n: usize, k: usize, p: f64) -> f64 {
    let choose: f64 = (0..k).map(|i| (n - i) as f64 / (k - i) as f64).product();
    choose * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32)
}

/// Adds up every combination of late and timely stages.
fn enumerated(betas: &[f64]) -> Vec<f64> {
    let mut late = vec![0.0; betas.len() + 1];
    for late_stages in 0..1usize << betas.len() {
        let at = |(i, b): (usize, &f64)| {
            if (late_stages >> i) & 1 == 1 {
                *b
            } else {
                1.0 - b
            }
        };
        let p: f64 = betas.iter().enumerate().map(at).product();
        late[late_stages.count_ones() as usize] += p;
    }
    late
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn alike_routers_are_binomial(beta in 0.0..=1.0f64, hops in 0usize..40) {
        let late = Chain::one_way(&[beta], hops).unwrap().late();
        for (k, p) in late.iter().enumerate() {
            prop_assert!((p - binomial(hops, k, beta)).abs() < 1e-12, "{k}: {p}");
        }
    }

    #[test]
    fn any_routers_are_the_sum_of_all_combinations(betas in vec(0.0..=1.0f64, 1..10)) {
        let chain = Chain::one_way(&betas, betas.len()).unwrap();
        let late = chain.late();
        for (p, expected) in late.iter().zip(enumerated(&betas)) {
            prop_assert!((p - expected).abs() < 1e-12);
        }
        let mean: f64 = late.iter().enumerate().map(|(k, p)| k as f64 * p).sum();
        prop_assert!((mean - chain.mean_periods()).abs() < 1e-9);
    }

    #[test]
    fn the_estimate_is_within_its_interval(counts in vec(0u64..1000, 2..8)) {
        prop_assume!(counts.iter().any(|c| *c > 0));
        let found = estimate::beta(&counts, 0.95).unwrap();
        prop_assert!(found.low <= found.beta && found.beta <= found.high, "{found:?}");
        prop_assert!(found.low >= 0.0 && found.high <= 1.0, "{found:?}");
    }

    #[test]
    fn all_delays_are_in_one_class(
        delays in vec((0u64..10_000, 0u64..50), 1..50),
        period in 1u64..2000,
        base in proptest::option::of(0u64..5000),
        stages in 0usize..6,
    ) {
        let delays: Vec<_> = delays
            .iter()
            .map(|&(delay_ns, count)| Delay { delay_ns, count })
            .collect();
        let packets: u64 = delays.iter().map(|d| d.count).sum();
        prop_assume!(packets > 0);
        let classes = Classes::new(&delays, period, base, stages).unwrap();
        prop_assert_eq!(classes.packets() + classes.beyond, packets);
        let predicted = Chain::one_way(&[0.3], stages).unwrap().late();
        let fit = fit::chi_squared(&classes, &predicted, 0);
        let observed: u64 = fit.cells.iter().map(|c| c.observed).sum();
        prop_assert_eq!(observed, classes.packets());
        let (first, last) = (fit.cells.first().unwrap(), fit.cells.last().unwrap());
        prop_assert_eq!((first.from_periods, last.to_periods), (0, stages));
        prop_assert!(fit.p_value.is_none_or(|p| (0.0..=1.0).contains(&p)), "{:?}", fit);
    }

    #[test]
    fn a_burst_paid_once_is_never_more(
        burst in 0.0..1e6f64,
        rate in 1.0..1e9f64,
        hops in vec((0.0..1e9f64, 0.0..1e8f64), 1..10),
    ) {
        let stream = TokenBucket { burst_bytes: burst, rate_bps: rate };
        let servers: Vec<_> = hops
            .iter()
            .map(|&(more, latency_ns)| RateLatency { rate_bps: rate + more, latency_ns })
            .collect();
        let found = bounds(stream, &servers).unwrap();
        let slack = 1.0 + 1e-12;
        prop_assert!(found.pay_bursts_only_once_ns <= found.per_hop_sum_ns * slack);
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}", round_trip: bool) {
        if let Ok(delays) = measured::read(&text, round_trip) {
            prop_assert!(delays.iter().any(|d| d.count > 0));
        }
    }
}
