// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots of distributions of packets: by delay, by retries, by periods late.

use draw::figure::Figure;
use draw::lines::{Line, Lines};
use draw::scale::Kind;
use serde::{Deserialize, Serialize};

/// The packets of one cell, divided into classes: a step of delay, a number of retries, or a number
/// of periods late.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    label: String,
    /// Measured shares of all packets by class; `predicted` has the predicted shares.
    shares: Vec<f64>,
    predicted: Option<Vec<f64>>,
}

impl Distribution {
    /// Makes a distribution from the counts of packets by class and the predicted share of each
    /// class.
    pub fn new(label: &str, counts: &[u64], predicted: Option<&[f64]>) -> Self {
        let all = counts.iter().sum::<u64>().max(1) as f64;
        Self {
            label: label.to_owned(),
            shares: counts.iter().map(|count| *count as f64 / all).collect(),
            predicted: predicted.map(<[f64]>::to_vec),
        }
    }
}

/// Least number of decades of the y axis: fewer do not show a tail.
const DECADES: i32 = 5;

/// Draws the share of packets by delay on a logarithmic scale, like figures 2, 3 and 13 of paper
/// 004. `step_ms` is the width of a class.
pub fn delays(of: &[Distribution], step_ms: f64, is_round_trip: bool) -> Figure {
    let least = least(of);
    let longest = of.iter().map(|d| d.shares.len()).max().unwrap_or(1);
    let lines = of.iter().enumerate().map(|(colour, d)| {
        let shares = d.shares.iter().enumerate();
        let points = shares.map(|(place, share)| {
            let at = (place as f64 + 0.5) * step_ms;
            (at, [(share * 100.0).max(least); 3])
        });
        Line {
            label: d.label.clone(),
            colour,
            points: points.collect(),
            target: None,
        }
    });
    let plot = Lines {
        lines: lines.collect(),
        x: (Kind::Linear, 0.0, longest as f64 * step_ms),
        x_name: if is_round_trip {
            "round trip, ms".to_owned()
        } else {
            "delay, ms".to_owned()
        },
        y: (Kind::Log, least, 100.0),
        y_name: format!("% of packets in {step_ms} ms"),
        marks: Vec::new(),
        dots: false,
    };
    let caption = "Places without packets lie on the axis.";
    let title = if is_round_trip {
        "Round trips"
    } else {
        "Delays"
    };
    Figure::new("delays", title, caption, |width| plot.draw(width))
}

/// Returns where the logarithmic scale begins, per cent: at the least share that occurs, or lower,
/// so that the axis has enough decades.
fn least(of: &[Distribution]) -> f64 {
    let shares = of.iter().flat_map(|d| &d.shares).filter(|s| **s > 0.0);
    let least = shares.fold(1.0, |a: f64, b| a.min(*b));
    least.min(10f64.powi(-DECADES)) * 100.0
}

/// Draws the share of frames by collisions before they went through, like figure 1 of paper 004.
pub fn retries(of: &[Distribution]) -> Figure {
    let caption = "Of all frames on all segments; the last place is of those given up. Places \
                   without frames lie on the axis.";
    let x_name = "collisions";
    by_number(of, ("retries", "Retries"), x_name, caption)
}

/// Draws the share of packets by the periods they lost on their path.
pub fn lateness(of: &[Distribution]) -> Figure {
    let caption = "Dots are measured; the shade reaches to what the nodes' own shares of late \
                   packets predict. \
                   Places without packets lie on the axis.";
    let x_name = "periods late";
    by_number(of, ("lateness", "Late by periods"), x_name, caption)
}

/// Draws shares by whole numbers on a logarithmic scale, because the rare values are the ones of
/// interest.
fn by_number(
    of: &[Distribution],
    (slug, title): (&'static str, &str),
    x_name: &str,
    caption: &str,
) -> Figure {
    let places = |d: &Distribution| d.shares.len().max(d.predicted.as_ref().map_or(0, Vec::len));
    let last = of.iter().map(places).max().unwrap_or(1).saturating_sub(1);
    let least = least(of);
    let lines: Vec<Line> = of
        .iter()
        .enumerate()
        .map(|(colour, d)| {
            let at = |of: &[f64], place: usize| {
                let share = of.get(place).copied().unwrap_or(0.0);
                (share * 100.0).max(least)
            };
            let points = (0..places(d)).map(|place| {
                let share = at(&d.shares, place);
                let other = d.predicted.as_ref().map_or(share, |p| at(p, place));
                (place as f64, [share.min(other), share, share.max(other)])
            });
            Line {
                label: d.label.clone(),
                colour,
                points: points.collect(),
                target: None,
            }
        })
        .collect();
    let plot = Lines {
        lines,
        x: (Kind::Linear, 0.0, last.max(1) as f64),
        x_name: x_name.to_owned(),
        y: (Kind::Log, least, 100.0),
        y_name: "% of packets".to_owned(),
        marks: Vec::new(),
        dots: true,
    };
    Figure::new(slug, title, caption, |width| plot.draw(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_delay_has_its_share() {
        let of = [
            Distribution::new("a", &[1, 0, 3], Some(&[0.5, 0.5])),
            Distribution::new("b", &[], None),
        ];
        let svg = lateness(&of).svg();
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        assert!(svg.contains(">a<") && svg.contains(">0.001<"), "{svg}");
        assert!(delays(&of, 0.5, false).svg().contains("delay, ms"));
        assert!(retries(&[]).svg().starts_with("<svg"));
    }
}
