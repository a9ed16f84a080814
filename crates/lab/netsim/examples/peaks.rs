// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many round trips of the first ping of each cell lie in each peak: as many periods as the
//! path has segments, one more, and so on. `pspacer sim run` has the share beyond the first.
//! `cargo run --release -p netsim --example peaks -- docs/examples/cascade-order.toml [RUNS [WHERE]]`
//! with RUNS seeds in place of the scenario's, of the cells whose parameters contain WHERE.

use std::error::Error;
use std::fs;

use netsim::itm::run_cell;
use scenario::Options;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let file = words.next().ok_or("expected the file of a scenario")?;
    let runs = words.next().map(|runs| runs.parse::<u64>()).transpose()?;
    let wanted = words.next().unwrap_or_default();
    let text = fs::read_to_string(&file)?;
    let scenario = scenario::parse(&file, &text, &Options::default())?;
    for cell in &scenario.cells {
        let params: Vec<_> = cell
            .params
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        let params = params.join(" ");
        let of = cell.isochronous.as_ref().ok_or("expected segments")?;
        let ping = of
            .streams
            .iter()
            .position(|stream| !stream.back().is_empty());
        let ping = ping.ok_or("expected a stream of type ping")?;
        let segments = of.streams.get(ping).map_or(1, |stream| stream.path.len());
        if !params.contains(&wanted) {
            continue;
        }
        let (mut peaks, mut late, mut all_late) = (vec![], 0, 0);
        for seed in 0..runs.unwrap_or(scenario.runs) {
            let ran = run_cell(cell, of, scenario.seed + seed, &mut |_| {})?;
            let Some(measure) = ran.streams.get(ping) else {
                continue;
            };
            for (periods, count) in measure.round_trip_periods.iter().enumerate() {
                let peak = (periods + 1).saturating_sub(segments);
                if peaks.len() <= peak {
                    peaks.resize(peak + 1, 0);
                }
                if let Some(sum) = peaks.get_mut(peak) {
                    *sum += count;
                }
            }
            late += measure.late.iter().skip(1).sum::<u64>();
            all_late += measure.late.iter().sum::<u64>();
        }
        let all: u64 = peaks.iter().sum();
        let pct = |count: u64, of: u64| 100.0 * count as f64 / of.max(1) as f64;
        let shares: Vec<_> = peaks
            .iter()
            .map(|n| format!("{:.1}", pct(*n, all)))
            .collect();
        println!(
            "{params}: peaks {} % of {all}; late by load {:.1} %",
            shares.join(" "),
            pct(late, all_late)
        );
    }
    Ok(())
}
