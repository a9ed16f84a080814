// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes how many periods late a packet is after a chain of routers (paper 004, 4.1 and
//! figure 11).
//!
//! Stages are independent: the lateness over all of them is a sum of Bernoulli variables. With
//! one β for all stages it is binomial, with several it is Poisson binomial.

use crate::Error;

/// Most stages of a chain; the work grows with the square.
pub const MOST_STAGES: usize = 4096;

/// The β of each stage that a packet passes, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    betas: Vec<f64>,
}

impl Chain {
    /// Creates a chain of `hops` routers in one direction. One value of `betas` applies to all
    /// of them; otherwise there is one for each.
    ///
    /// # Errors
    /// If a value is outside 0 to 1, the number of values does not match, or the chain is too
    /// long.
    pub fn one_way(betas: &[f64], hops: usize) -> Result<Self, Error> {
        let each = per_stage(betas, hops, hops, false)?;
        Self::new(each)
    }

    /// Creates a chain of `hops` routers, the reflecting host, and the routers again: 2N + 1
    /// stages, which is what figure 15 of paper 004 fits (its figure (a), with no router,
    /// still shows late packets: the reflecting host works as a router). One value of `betas`
    /// applies to all stages; otherwise there is one for each router and one more for the
    /// reflecting host.
    ///
    /// # Errors
    /// As [`Chain::one_way`].
    pub fn round_trip(betas: &[f64], hops: usize) -> Result<Self, Error> {
        let there = per_stage(betas, hops, hops.saturating_add(1), true)?;
        let back = there.iter().rev().skip(1);
        Self::new(there.iter().chain(back).copied().collect())
    }

    fn new(betas: Vec<f64>) -> Result<Self, Error> {
        if let Some(&value) = betas.iter().find(|b| !(0.0..=1.0).contains(*b)) {
            return Err(Error::Probability { value });
        }
        Ok(Self { betas })
    }

    /// Returns the β of each stage.
    pub fn betas(&self) -> &[f64] {
        &self.betas
    }

    pub fn stages(&self) -> usize {
        self.betas.len()
    }

    /// Returns the mean number of periods that a packet is late.
    pub fn mean_periods(&self) -> f64 {
        self.betas.iter().sum()
    }

    /// Returns the probabilities of being late by 0, 1, … periods; there is one more value
    /// than stages. Only non-negative numbers are added and multiplied, so the error of each
    /// is at most about as many units of the last place as there are stages. O(stages²).
    pub fn late(&self) -> Vec<f64> {
        let mut late = Vec::with_capacity(self.betas.len() + 1);
        late.push(1.0);
        for &beta in &self.betas {
            let mut carried = 0.0;
            for p in &mut late {
                let stays = *p * (1.0 - beta);
                let moves = *p * beta;
                *p = stays + carried;
                carried = moves;
            }
            late.push(carried);
        }
        late
    }
}

/// Returns one value for each of `wanted` stages.
fn per_stage(
    betas: &[f64],
    hops: usize,
    wanted: usize,
    round_trip: bool,
) -> Result<Vec<f64>, Error> {
    let stages = if round_trip {
        hops.saturating_mul(2).saturating_add(1)
    } else {
        hops
    };
    if stages > MOST_STAGES {
        return Err(Error::Stages {
            stages,
            most: MOST_STAGES,
        });
    }
    match betas {
        [one] => Ok(vec![*one; wanted]),
        all if all.len() == wanted => Ok(all.to_vec()),
        all => Err(Error::Betas {
            given: all.len(),
            hops,
            expected: wanted,
            round_trip,
        }),
    }
}

/// Returns the longest delay of a packet that is `late_periods` late, if a packet that is not
/// late arrives within one period and slot, together `stage_ns`. Over N stages no delay is
/// longer than N + 1 of them (paper 004, 4.3), whatever the phases of the routers are.
pub fn delay_ns_max(late_periods: usize, stage_ns: u64) -> u64 {
    crate::bounds::isochronous_ns(late_periods, stage_ns, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len(), "{a:?} {b:?}");
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
    }

    #[test]
    fn figure_11_of_the_paper() {
        let chain = Chain::one_way(&[0.4], 2).unwrap();
        close(&chain.late(), &[0.36, 0.48, 0.16]);
    }

    #[test]
    fn figure_15_of_the_paper() {
        // Without a router the reflecting host is the only stage.
        close(&Chain::round_trip(&[0.2], 0).unwrap().late(), &[0.8, 0.2]);
        // With one router the stages are the router, the host, and the router again.
        close(
            &Chain::round_trip(&[0.2], 1).unwrap().late(),
            &[0.512, 0.384, 0.096, 0.008],
        );
        let four = Chain::round_trip(&[0.2], 4).unwrap();
        assert_eq!(four.stages(), 9);
        // The paper's bound is "period x (routers + 1)" in each direction.
        assert_eq!(delay_ns_max(four.stages(), 10), 2 * 5 * 10);
        assert_eq!(
            delay_ns_max(Chain::one_way(&[0.2], 4).unwrap().stages(), 10),
            50
        );
    }

    #[test]
    fn routers_may_differ() {
        let chain = Chain::one_way(&[0.5, 0.1], 2).unwrap();
        close(&chain.late(), &[0.45, 0.5, 0.05]);
        let chain = Chain::round_trip(&[0.5, 0.1, 0.0], 2).unwrap();
        assert_eq!(chain.betas(), [0.5, 0.1, 0.0, 0.1, 0.5]);
        close(&Chain::one_way(&[0.3], 0).unwrap().late(), &[1.0]);
    }

    #[test]
    fn invalid_chains_are_rejected() {
        assert_eq!(
            Chain::one_way(&[1.5], 1),
            Err(Error::Probability { value: 1.5 })
        );
        assert!(Chain::one_way(&[f64::NAN], 1).is_err());
        let error = Chain::round_trip(&[0.1, 0.2], 2).unwrap_err();
        assert!(error.to_string().contains("expected 1, or 3"), "{error}");
        assert!(Chain::one_way(&[], 1).is_err());
        assert_eq!(
            Chain::round_trip(&[0.1], usize::MAX),
            Err(Error::Stages {
                stages: usize::MAX,
                most: MOST_STAGES,
            })
        );
    }
}
