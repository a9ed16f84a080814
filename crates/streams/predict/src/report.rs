// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows a prediction of delays, as text and as a plot.

use std::fmt::Write;

use crate::answer::{Answer, Measured, Row};
use crate::estimate::Estimate;
use crate::fit::Fit;

use draw::Plot;
use draw::histogram::{Histogram, HistogramBar, histogram};
use draw::table::{Column, Table, Value};
use draw::terminal::{self, Style};
use units::display::{count, short};

/// Length of the longest bar, columns.
const BAR: f64 = 40.0;
/// Probability of a fit, if the prediction is true, below which the fit is called bad.
const UNLIKELY: f64 = 0.01;
/// Most values of β that are listed.
const MOST_BETAS: usize = 12;

/// Returns the distribution with bars, then the inputs of the prediction and the bounds.
pub fn text(answer: &Answer, style: Style) -> String {
    let mut out = format!(
        "{}: {} {}, period {}\n\n",
        answer.title(),
        answer.stages,
        if answer.stages == 1 {
            "stage"
        } else {
            "stages"
        },
        time(answer.period_ns as f64)
    );
    out.push_str(&terminal::table(&distribution(answer), style));
    out.push('\n');
    // Writing to a String cannot fail.
    let _ = writeln!(out, "beta {}", betas(&answer.betas));
    let _ = writeln!(
        out,
        "late on average {} periods",
        short(answer.mean_periods, 4)
    );
    for line in [
        answer.measured.as_ref().map(measured),
        answer.estimate.as_ref().map(estimate),
        answer.fit.as_ref().map(fit),
    ]
    .into_iter()
    .flatten()
    {
        out.push_str(&line);
    }
    out.push('\n');
    out.push_str(&bounds(answer));
    out
}

fn distribution(answer: &Answer) -> Table {
    let column = |title: &str, unit: &str, is_text| Column {
        title: title.to_owned(),
        unit: unit.to_owned(),
        is_text,
    };
    let mut columns = vec![
        column("late", "periods", false),
        column("delay", "at most", false),
        column("predicted", "%", false),
    ];
    if answer.measured.is_some() {
        columns.push(column("measured", "%", false));
    }
    columns.push(column("", "", true));
    let most = answer
        .distribution
        .iter()
        .map(|r| r.probability)
        .fold(0.0, f64::max);
    let row = |row: &Row| {
        let mut values: Vec<Value> = vec![
            row.delay_periods.to_string().into(),
            time(row.delay_ns_max as f64).into(),
            format!("{:.4}", row.probability * 100.0).into(),
        ];
        values.extend(
            row.measured
                .map(|share| format!("{:.4}", share * 100.0).into()),
        );
        // The result is at most `BAR`.
        let blocks = (row.probability / most * BAR).round() as usize;
        values.push("█".repeat(blocks).into());
        values
    };
    Table {
        columns,
        rows: answer.distribution.iter().map(row).collect(),
    }
}

fn betas(betas: &[f64]) -> String {
    let Some(first) = betas.first() else {
        return "of no stage".to_owned();
    };
    if betas.iter().all(|b| b == first) {
        return format!("{} at each stage", short(*first, 6));
    }
    let mut named: Vec<_> = betas
        .iter()
        .take(MOST_BETAS)
        .map(|b| short(*b, 6))
        .collect();
    if betas.len() > MOST_BETAS {
        named.push("…".to_owned());
    }
    named.join(", ")
}

fn measured(measured: &Measured) -> String {
    let classes = &measured.classes;
    let all = classes.packets().saturating_add(classes.beyond);
    let mut line = format!(
        "measured {}: {} packets, lateness from {} on",
        measured.file,
        count(all),
        time(classes.base_ns as f64)
    );
    if classes.early > 0 {
        let _ = write!(line, "; {} before that", count(classes.early));
    }
    if classes.beyond > 0 {
        let beyond = count(classes.beyond);
        let _ = write!(line, "; {beyond} later than all stages explain");
    }
    line + "\n"
}

fn estimate(found: &Estimate) -> String {
    format!(
        "estimated beta {}, {} % interval {} to {} (Clopper-Pearson, of independent passages)\n",
        short(found.beta, 6),
        short(found.level * 100.0, 4),
        short(found.low, 6),
        short(found.high, 6)
    )
}

fn fit(fit: &Fit) -> String {
    let statistic = short(fit.statistic, 3);
    let cells = fit.cells.len();
    let p = |p: f64| match p {
        p if p < 0.0001 => "below 0.0001".to_owned(),
        p => short(p, 4),
    };
    match (fit.p_value, fit.degrees_of_freedom) {
        (None, _) => {
            format!("fit: not tested, {cells} classes of 5 packets or more leave no freedom\n")
        }
        (Some(_), 0) => "fit: none, there are packets where the model puts none\n".to_owned(),
        (Some(value), df) => {
            let verdict = if value < UNLIKELY {
                "the model does not fit"
            } else {
                "nothing speaks against the model"
            };
            let p = p(value);
            format!("fit: chi-squared {statistic} ({df} degrees of freedom), p {p}: {verdict}\n")
        }
    }
}

fn bounds(answer: &Answer) -> String {
    let served = &answer.bounds;
    let mut out = format!(
        "bound, {} x ({} + {}): {}\n",
        answer.stages + 1,
        time(answer.period_ns as f64),
        time(answer.slot_ns as f64),
        time(served.isochronous_ns as f64),
    );
    let Some(bounds) = &served.bounds else {
        return out;
    };
    let stream = &served.stream;
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "bounds (network calculus) for a stream of {} bit/s, {} bytes at once:\n  \
         the burst paid once      {}\n  \
         each hop by itself, sum  {}\n",
        count(stream.rate_bps as u64),
        short(stream.burst_bytes, 1),
        time(bounds.pay_bursts_only_once_ns),
        time(bounds.per_hop_sum_ns),
    );
    out
}

/// Returns a time given in nanoseconds, with the unit that suits it.
pub fn time(ns: f64) -> String {
    units::display::time(ns / 1e9)
}

/// Plots the shares of packets by lateness. The bars are the measured shares, if there are any.
pub fn plot(answer: &Answer) -> Plot {
    let rows = &answer.distribution;
    let measured = answer.measured.is_some();
    let bar = |row: &Row| HistogramBar {
        from: row.delay_periods as f64 - 0.5,
        to: row.delay_periods as f64 + 0.5,
        height: row.measured.unwrap_or(row.probability),
    };
    let dot = |row: &Row| (row.delay_periods as f64, row.probability);
    histogram(&Histogram {
        slug: "delay",
        title: answer.title(),
        x_name: format!("periods late, of {}", time(answer.period_ns as f64)),
        y_name: "share of packets".to_owned(),
        log: false,
        bars_name: "measured".to_owned(),
        bars: rows.iter().map(bar).collect(),
        dots_name: "predicted".to_owned(),
        dots: if measured {
            rows.iter().map(dot).collect()
        } else {
            Vec::new()
        },
    })
    .plot()
}
