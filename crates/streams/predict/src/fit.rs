// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests whether measured lateness agrees with a predicted distribution.

use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::classes::Classes;

/// Least number of expected packets in a cell: below it, the statistic does not follow χ²
/// (Cochran, Biometrics 10, 1954, allows less in tails; this is the stricter rule).
pub const LEAST_EXPECTED: f64 = 5.0;

/// Neighbouring classes pooled into one cell of the test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// First class.
    pub from_periods: usize,
    /// Last class.
    pub to_periods: usize,
    /// Packets that were measured in the cell.
    pub observed: u64,
    /// Packets that the prediction expects in the cell.
    pub expected: f64,
}

/// Result of Pearson's χ² test over pooled cells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Name of the test.
    pub test: &'static str,
    pub cells: Vec<Cell>,
    /// Sum of (observed - expected)² / expected.
    pub statistic: f64,
    /// Number of cells, minus one, minus the number of values estimated from the same data.
    pub degrees_of_freedom: usize,
    /// Probability that a true prediction fits as badly; a small value speaks against it.
    /// `None` if no degree of freedom is left, because then nothing is tested.
    pub p_value: Option<f64>,
}

/// Compares classes with the `predicted` probabilities of the same number of stages, of which
/// `estimated` values come from the same packets. Packets where the model expects none, or
/// beyond all classes, make the p-value 0. Classes that expect too few packets are joined with
/// their neighbour, from the late end. O(stages).
pub fn chi_squared(classes: &Classes, predicted: &[f64], estimated: usize) -> Fit {
    let cells = pool(&classes.counts, predicted, classes.packets() as f64);
    let share = |c: &Cell| {
        let error = c.observed as f64 - c.expected;
        match c.expected {
            e if e > 0.0 => error * error / e,
            // An empty cell that is expected to be empty fits.
            _ => 0.0,
        }
    };
    let statistic = cells.iter().map(share).sum();
    let degrees_of_freedom = cells.len().saturating_sub(1).saturating_sub(estimated);
    let mut pairs = classes.counts.iter().zip(predicted);
    let impossible = classes.beyond > 0 || pairs.any(|(&n, &p)| n > 0 && p <= 0.0);
    let p_value = match (impossible, degrees_of_freedom) {
        (true, _) => Some(0.0),
        (_, 0) => None,
        (_, df) => ChiSquared::new(df as f64).ok().map(|d| d.sf(statistic)),
    };
    Fit {
        test: "pearson-chi-squared",
        cells,
        statistic,
        degrees_of_freedom,
        p_value,
    }
}

fn pool(counts: &[u64], predicted: &[f64], packets: f64) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for (periods, (&observed, p)) in counts.iter().zip(predicted).enumerate().rev() {
        let expected = p * packets;
        match cells.last_mut() {
            Some(open) if open.expected < LEAST_EXPECTED => {
                open.from_periods = periods;
                open.observed = open.observed.saturating_add(observed);
                open.expected += expected;
            }
            _ => cells.push(Cell {
                from_periods: periods,
                to_periods: periods,
                observed,
                expected,
            }),
        }
    }
    // Classes left at the early end join their later neighbour.
    if cells.len() > 1 && cells.last().is_some_and(|c| c.expected < LEAST_EXPECTED) {
        if let (Some(small), Some(open)) = (cells.pop(), cells.last_mut()) {
            open.from_periods = small.from_periods;
            open.observed = open.observed.saturating_add(small.observed);
            open.expected += small.expected;
        }
    }
    cells.reverse();
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(counts: &[u64], beyond: u64) -> Classes {
        Classes {
            base_ns: 0,
            counts: counts.to_vec(),
            early: 0,
            beyond,
        }
    }

    #[test]
    fn a_worked_case() {
        // The statistic is (60-50)²/50 + (40-50)²/50 = 4; χ² with 1 degree gives p = 0.0455.
        let fit = chi_squared(&classes(&[60, 40], 0), &[0.5, 0.5], 0);
        assert!((fit.statistic - 4.0).abs() < 1e-12);
        assert!((fit.p_value.unwrap() - 0.045_500).abs() < 1e-5, "{fit:?}");
        // With β estimated from the same packets no degree of freedom is left.
        let fit = chi_squared(&classes(&[60, 40], 0), &[0.6, 0.4], 1);
        assert_eq!((fit.degrees_of_freedom, fit.p_value), (0, None));
    }

    #[test]
    fn small_cells_are_joined() {
        let fit = chi_squared(&classes(&[80, 16, 3, 1], 0), &[0.8, 0.16, 0.03, 0.01], 0);
        let tops: Vec<_> = fit
            .cells
            .iter()
            .map(|c| (c.from_periods, c.to_periods, c.observed))
            .collect();
        assert_eq!(tops, [(0, 0, 80), (1, 3, 20)]);
        assert!(fit.statistic < 1e-12 && fit.p_value.unwrap() > 0.999);
        let fit = chi_squared(&classes(&[0, 10, 90], 0), &[0.01, 0.1, 0.89], 0);
        assert_eq!(
            (fit.cells[0].from_periods, fit.cells[0].to_periods),
            (0, 1),
            "{fit:?}"
        );
    }

    #[test]
    fn impossible_packets_do_not_fit() {
        let fit = chi_squared(&classes(&[80, 20], 1), &[0.8, 0.2], 0);
        assert_eq!(fit.p_value, Some(0.0));
        let fit = chi_squared(&classes(&[90, 10], 0), &[1.0, 0.0], 0);
        assert_eq!(fit.p_value, Some(0.0));
        let fit = chi_squared(&classes(&[0, 0], 0), &[0.8, 0.2], 0);
        assert_eq!((fit.statistic, fit.p_value), (0.0, None));
    }
}
