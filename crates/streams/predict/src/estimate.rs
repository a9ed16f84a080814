// SPDX-License-Identifier: MIT OR Apache-2.0
//! Estimates β from measured lateness.

use serde::Serialize;
use statrs::distribution::{Beta, ContinuousCDF};

use crate::Error;

/// An estimate of β with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Periods late over stages passed: the most likely β if all stages have the same.
    pub beta: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Confidence level: at least this share of such intervals contain β, if passages are
    /// independent.
    pub level: f64,
    /// Number of stages passed by all packets together.
    pub passages: u64,
    /// Number of periods by which all packets together were late.
    pub late: u64,
}

/// Estimates β from `counts[k]` packets that were late by k of the
/// `counts.len() - 1` stages that each passed.
///
/// The interval is the exact one of Clopper and Pearson (Biometrika 26, 1934): quantiles of
/// the beta distribution at (late, passages - late + 1) and (late + 1, passages - late). It is
/// too narrow if several packets are late together, because then passages are not independent.
///
/// # Errors
/// If no packet passed a stage, or `level` is not between 0 and 1.
pub fn beta(counts: &[u64], level: f64) -> Result<Estimate, Error> {
    if !(level > 0.0 && level < 1.0) {
        return Err(Error::Level { value: level });
    }
    let stages = counts.len().saturating_sub(1);
    let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(0u64, u64::saturating_add);
    let packets = sum(&mut counts.iter().copied());
    let late = sum(&mut (0..).zip(counts).map(|(k, n)| n.saturating_mul(k)));
    let passages = packets.saturating_mul(stages as u64);
    if passages == 0 {
        return Err(Error::Nothing { packets, stages });
    }
    let (low, high) = interval(late, passages, level);
    Ok(Estimate {
        beta: late as f64 / passages as f64,
        low,
        high,
        level,
        passages,
        late,
    })
}

/// Returns Clopper and Pearson's interval of `hits` in `trials`, which is above 0.
fn interval(hits: u64, trials: u64, level: f64) -> (f64, f64) {
    let tail = (1.0 - level) / 2.0;
    let (hits_f, misses_f) = (hits as f64, trials.saturating_sub(hits) as f64);
    // The parameters are 1 or more, so the distribution exists.
    let quantile = |a, b, p| Beta::new(a, b).map_or(f64::NAN, |d| d.inverse_cdf(p));
    let low = match hits {
        0 => 0.0,
        _ => quantile(hits_f, misses_f + 1.0, tail),
    };
    let high = if hits >= trials {
        1.0
    } else {
        quantile(hits_f + 1.0, misses_f, 1.0 - tail)
    };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 5e-5, "{value} {expected}");
    }

    #[test]
    fn intervals_of_no_and_of_only_late_packets() {
        // By definition the upper end is 1 - (0.025)^(1/n).
        let (low, high) = interval(0, 10, 0.95);
        assert_eq!(low, 0.0);
        near(high, 1.0 - 0.025f64.powf(0.1));
        let (low, high) = interval(10, 10, 0.95);
        near(low, 0.025f64.powf(0.1));
        assert_eq!(high, 1.0);
    }

    /// The sums of the binomial distribution's tails define both ends of the interval.
    #[test]
    fn tails_at_the_ends_are_half_of_the_rest() {
        let tail = |n: u64, from: u64, to: u64, p: f64| -> f64 {
            (from..=to)
                .map(|k| {
                    let choose: f64 = (0..k).map(|i| (n - i) as f64 / (k - i) as f64).product();
                    choose * p.powf(k as f64) * (1.0 - p).powf((n - k) as f64)
                })
                .sum()
        };
        for (hits, trials) in [(1, 10), (8, 40), (20, 100), (99, 100)] {
            let (low, high) = interval(hits, trials, 0.95);
            near(tail(trials, hits, trials, low), 0.025);
            near(tail(trials, 0, hits, high), 0.025);
        }
    }

    #[test]
    fn many_passages_make_the_interval_narrow() {
        let found = beta(&[800_000, 200_000], 0.95).unwrap();
        assert_eq!((found.beta, found.passages), (0.2, 1_000_000));
        // The normal approximation gives 1.96 sqrt(0.16 / 1e6) = 0.000784.
        near(found.high - found.low, 2.0 * 0.000_784);
    }

    #[test]
    fn no_passage_gives_no_estimate() {
        assert!(beta(&[5], 0.95).is_err());
        assert!(beta(&[0, 0], 0.95).is_err());
        assert!(beta(&[], 0.95).is_err());
        assert_eq!(beta(&[1, 1], 1.0), Err(Error::Level { value: 1.0 }));
    }
}
