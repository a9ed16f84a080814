// SPDX-License-Identifier: MIT OR Apache-2.0
//! Axes: the position of a value, and the values of the ticks.

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Linear,
    /// Logarithmically; values must be above 0.
    Log,
}

/// One axis.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    kind: Kind,
    low: f64,
    high: f64,
    at_low: f64,
    at_high: f64,
}

impl Scale {
    /// Makes an axis that maps `low..high` to `at_low..at_high`. An empty range is widened.
    pub fn new(kind: Kind, low: f64, high: f64, at_low: f64, at_high: f64) -> Self {
        let low = if kind == Kind::Log {
            low.max(f64::MIN_POSITIVE)
        } else {
            low
        };
        let high = if high > low {
            high
        } else {
            low + low.abs().max(1.0)
        };
        Self {
            kind,
            low,
            high,
            at_low,
            at_high,
        }
    }

    fn unit(&self, value: f64) -> f64 {
        match self.kind {
            Kind::Linear => (value - self.low) / (self.high - self.low),
            Kind::Log => (value.max(self.low) / self.low).log10() / (self.high / self.low).log10(),
        }
    }

    /// Returns the position of `value`, clamped to the axis.
    pub fn at(&self, value: f64) -> f64 {
        self.at_low + self.unit(value).clamp(0.0, 1.0) * (self.at_high - self.at_low)
    }

    /// Returns the least and the largest value of the axis.
    pub fn range(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Returns about `wanted` round values along the axis.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        match self.kind {
            Kind::Linear => {
                let step = step(self.high - self.low, wanted);
                let (first, last) = (
                    (self.low / step - 1e-9).ceil(),
                    (self.high / step + 1e-9).floor(),
                );
                // Limits the number of ticks.
                let count = (last - first).clamp(0.0, 100.0) as u32;
                (0..=count).map(|i| (first + f64::from(i)) * step).collect()
            }
            Kind::Log => self.log_ticks(wanted),
        }
    }

    /// Returns powers of ten; where those are few, also 2 and 5 times them.
    fn log_ticks(&self, wanted: usize) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let (first, last) = (
            self.low.log10().floor() as i32,
            self.high.log10().ceil() as i32,
        );
        let room = wanted as f64 / decades.max(0.1);
        let factors: &[f64] = if room >= 3.0 {
            &[1.0, 2.0, 5.0]
        } else if room >= 2.0 {
            &[1.0, 3.0]
        } else {
            &[1.0]
        };
        let all = (first..=last).flat_map(|e| factors.iter().map(move |f| f * 10f64.powi(e)));
        let (low, high) = (self.low * (1.0 - 1e-9), self.high * (1.0 + 1e-9));
        all.filter(|t| (low..=high).contains(t)).collect()
    }
}

/// Returns 1, 2 or 5 times a power of ten, about `span / wanted`.
fn step(span: f64, wanted: usize) -> f64 {
    let rough = span / wanted.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let factor = match rough / power {
        f if f < 1.5 => 1.0,
        f if f < 3.5 => 2.0,
        f if f < 7.5 => 5.0,
        _ => 10.0,
    };
    factor * power
}

/// Returns the next round value at or above `value`, at which an axis that begins at 0 ends.
pub fn round_up(value: f64, wanted: usize) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let step = step(value, wanted);
    (value / step - 1e-9).ceil() * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round() {
        let scale = Scale::new(Kind::Linear, 0.0, 500.0, 0.0, 100.0);
        assert_eq!(scale.ticks(5), [0.0, 100.0, 200.0, 300.0, 400.0, 500.0]);
        assert_eq!(
            (scale.at(250.0), scale.at(900.0), scale.at(-1.0)),
            (50.0, 100.0, 0.0)
        );
        assert_eq!(
            Scale::new(Kind::Linear, -0.3, 0.2, 0.0, 1.0).ticks(5).len(),
            6
        );
        assert_eq!(
            (round_up(487.0, 5), round_up(0.0, 5), round_up(500.0, 5)),
            (500.0, 1.0, 500.0)
        );
    }

    #[test]
    fn log_ticks_fill_the_room() {
        let scale = Scale::new(Kind::Log, 1.0, 1000.0, 0.0, 30.0);
        assert_eq!(scale.ticks(4), [1.0, 10.0, 100.0, 1000.0]);
        assert!((scale.at(10.0) - 10.0).abs() < 1e-9);
        assert_eq!(
            Scale::new(Kind::Log, 1.0, 30.0, 0.0, 1.0).ticks(6),
            [1.0, 2.0, 5.0, 10.0, 20.0]
        );
    }

    #[test]
    fn empty_ranges_are_widened() {
        let scale = Scale::new(Kind::Linear, 5.0, 5.0, 0.0, 1.0);
        assert_eq!(scale.range(), (5.0, 10.0));
        assert!(
            Scale::new(Kind::Log, 0.0, 0.0, 0.0, 1.0)
                .at(1.0)
                .is_finite()
        );
    }
}
