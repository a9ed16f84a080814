// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots counts or shares by class as bars, with the expected values as dots.

use units::display::short;

use crate::figure::{Figure, is_narrow};
use crate::lines::{legend, legend_rows};
use crate::scale::{Kind, Scale};
use crate::svg::{Anchor, Canvas, Frame, text_width};

/// One bar: a class and its height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistogramBar {
    /// Where the class begins on the x axis.
    pub from: f64,
    /// Where the class ends.
    pub to: f64,
    /// Height of the bar, 0 or more.
    pub height: f64,
}

/// Most bars of a plot of delays.
const DELAY_BARS: usize = 120;

/// Divides delays into classes of equal width from the least to the largest, in ms. `bins` are
/// delays in ns and the number of packets that had them.
pub fn delay_bars(
    min_ns: u64,
    max_ns: u64,
    bins: impl IntoIterator<Item = (u64, u64)>,
) -> Vec<HistogramBar> {
    let width_ns = ((max_ns - min_ns) / DELAY_BARS as u64).max(1);
    let mut counts = vec![0u64; DELAY_BARS + 1];
    for (delay_ns, count) in bins {
        let class = delay_ns.saturating_sub(min_ns) / width_ns;
        // The width of a class is rounded down: the last class also takes the delays beyond it.
        let class = usize::try_from(class).unwrap_or(DELAY_BARS).min(DELAY_BARS);
        if let Some(sum) = counts.get_mut(class) {
            *sum += count;
        }
    }
    let ms = |class: usize| (min_ns + class as u64 * width_ns) as f64 / 1e6;
    let bar = |(class, count): (usize, u64)| HistogramBar {
        from: ms(class),
        to: ms(class + 1),
        height: count as f64,
    };
    counts.into_iter().enumerate().map(bar).collect()
}

/// A plot of bars over an even x axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Short name, for the file name.
    pub slug: &'static str,
    /// The title: what the plot shows.
    pub title: String,
    /// Name of the x axis, with the unit.
    pub x_name: String,
    /// Name of the y axis, with the unit.
    pub y_name: String,
    /// Whether the y axis is logarithmic, so that single packets are visible; else it is linear.
    pub log: bool,
    /// The legend's name of the bars, used where there are dots too.
    pub bars_name: String,
    /// The bars, by x.
    pub bars: Vec<HistogramBar>,
    /// The legend's name of the dots.
    pub dots_name: String,
    /// `x, height` of each dot.
    pub dots: Vec<(f64, f64)>,
}

/// Least width of a bar, pixels, however narrow its class is.
const LEAST_BAR: f64 = 1.5;
/// Part of a wide bar's width that is left free, so that neighbours can be distinguished.
const FREE: f64 = 0.08;
/// Factor by which the y axis goes beyond the values.
const ROOM: f64 = 1.08;

pub fn histogram(histogram: &Histogram) -> Figure {
    Figure::new(histogram.slug, histogram.title.clone(), "", |width| {
        draw(histogram, width)
    })
}

fn draw(histogram: &Histogram, width: f64) -> Canvas {
    let bars = &histogram.bars;
    let heights = || {
        let of_bars = bars.iter().map(|b| b.height);
        of_bars.chain(histogram.dots.iter().map(|d| d.1))
    };
    let most = heights().fold(0.0, f64::max);
    let least = heights().filter(|h| *h > 0.0).fold(most, f64::min);
    let (kind, low, high) = if histogram.log {
        (Kind::Log, least / 2.0, most * 2.0)
    } else {
        (Kind::Linear, 0.0, most * ROOM)
    };
    let names = [&*histogram.bars_name, &*histogram.dots_name];
    let rows = if histogram.dots.is_empty() {
        Vec::new()
    } else {
        legend_rows(&names, width)
    };
    let top = 34.0 + rows.len() as f64 * 17.0;
    let bottom = top + if is_narrow(width) { 190.0 } else { 250.0 };
    let ticks: Vec<_> = Scale::new(kind, low, high, 1.0, 0.0)
        .ticks(5)
        .into_iter()
        .map(|t| (t, short(t, 4)))
        .collect();
    let labels = ticks.iter().map(|t| text_width(&t.1)).fold(20.0, f64::max);
    let frame = Frame {
        left: labels + 12.0,
        right: width - 10.0,
        top,
        bottom,
    };
    let mut canvas = Canvas::new(width, bottom + 44.0);
    let y = Scale::new(kind, low, high, frame.bottom, frame.top);
    let low = bars.iter().map(|b| b.from).reduce(f64::min).unwrap_or(0.0);
    let high = bars.iter().map(|b| b.to).reduce(f64::max).unwrap_or(1.0);
    let x = Scale::new(Kind::Linear, low, high, frame.left, frame.right);
    legend(&mut canvas, &[(names[0], 0), (names[1], 1)], &rows, 12.0);
    let unit = (0.0, top - 22.0);
    canvas.text(unit, Anchor::Start, "unit", &histogram.y_name);
    frame.y_axis(&mut canvas, &y, &ticks, "");
    let wanted = if is_narrow(width) { 5 } else { 10 };
    let named = |t: f64| (t, short(t, 4));
    let ticks: Vec<_> = x.ticks(wanted).into_iter().map(named).collect();
    frame.x_axis(&mut canvas, &x, &ticks, &histogram.x_name);
    let shapes: Vec<_> = bars
        .iter()
        .filter(|b| b.height > 0.0)
        .map(|b| {
            let (from, to) = (x.at(b.from), x.at(b.to));
            let free = (to - from) * FREE;
            let drawn = (to - from - free).max(LEAST_BAR);
            (from + free / 2.0, drawn, y.at(b.height))
        })
        .collect();
    canvas.bars(&shapes, frame.bottom, "bar f0");
    for (at, height) in histogram.dots.iter().filter(|d| d.1 > 0.0) {
        canvas.dot((x.at(*at), y.at(*height)), 4.2, "f1");
    }
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(log: bool, heights: &[f64], dots: Vec<(f64, f64)>) -> String {
        let bar = |(i, height): (usize, &f64)| HistogramBar {
            from: i as f64,
            to: i as f64 + 1.0,
            height: *height,
        };
        let figure = histogram(&Histogram {
            slug: "h",
            title: "Delay".to_owned(),
            x_name: "ms".to_owned(),
            y_name: "packets".to_owned(),
            log,
            bars_name: "measured".to_owned(),
            bars: heights.iter().enumerate().map(bar).collect(),
            dots_name: "predicted".to_owned(),
            dots,
        });
        figure.svg()
    }

    #[test]
    fn bars_and_dots_have_a_legend() {
        let svg = plot(false, &[0.8, 0.0, 0.2], vec![(0.5, 0.7), (2.5, 0.3)]);
        assert!(svg.contains(">measured<") && svg.contains(">predicted<"));
        assert_eq!(svg.matches("<circle").count(), 2 + 2, "legend too: {svg}");
        let bars = svg.split("class=\"bar f0\" d=\"").nth(1).unwrap();
        let bars = bars.split('"').next().unwrap();
        assert_eq!(bars.matches('M').count(), 2, "none of no height: {bars}");
    }

    #[test]
    fn one_packet_in_a_million_is_visible() {
        let svg = plot(true, &[1e6, 1.0], Vec::new());
        assert!(!svg.contains(">measured<"), "no legend of bars alone");
        assert!(svg.contains(">1,000<"), "{svg}");
    }

    #[test]
    fn no_data_gives_an_empty_histogram() {
        for log in [false, true] {
            let svg = plot(log, &[], Vec::new());
            assert!(svg.starts_with("<svg") && !svg.contains("NaN"), "{svg}");
        }
    }
}
