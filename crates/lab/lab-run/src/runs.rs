// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts the runs of a cell together: the metrics of each, and the bounds over all.

use scenario::result::{BoundResult, CellResult, FlowResult};

/// Adds a further run of a cell. A bound holds if it holds in each run; its value is the one that
/// is nearest to the bound or beyond it.
pub fn add(cell: &mut CellResult, again: &CellResult) {
    for (window, other) in cell.windows.iter_mut().zip(&again.windows) {
        for (flow, of_run) in window.flows.iter_mut().zip(&other.flows) {
            keep(flow, of_run);
        }
    }
    for (bound, of_run) in cell.bounds.iter_mut().zip(&again.bounds) {
        if is_worse(of_run, bound) {
            *bound = of_run.clone();
        }
    }
}

/// Adds the metrics of a further run to those of a flow.
fn keep(flow: &mut FlowResult, of_run: &FlowResult) {
    for name in FlowResult::OF_RUNS {
        let (Some(first), Some(value)) = (flow.metrics.get(name), of_run.metrics.get(name)) else {
            continue;
        };
        let values = flow.runs.entry(name.to_owned());
        values.or_insert_with(|| vec![first]).push(value);
    }
}

/// Returns whether some runs of a cell agree in what is told of each: in rates to a thousandth, and so
/// in frames that were lost. How even a flow was is not asked.
pub fn agree(runs: &[&CellResult]) -> bool {
    const PART: f64 = 1e-3;
    const TOLD: [&str; 4] = ["rate_bps", "goodput_bps", "dropped", "retransmits"];
    let Some((first, others)) = runs.split_first() else {
        return false;
    };
    let flows = |cell: &'_ CellResult| -> Vec<[Option<f64>; 4]> {
        let flows = cell.windows.iter().flat_map(|window| &window.flows);
        flows
            .map(|flow| TOLD.map(|name| flow.metrics.get(name)))
            .collect()
    };
    let is_near = |pair: (&Option<f64>, &Option<f64>)| match pair {
        (Some(one), Some(other)) => (one - other).abs() <= PART * one.abs(),
        (one, other) => one == other,
    };
    let first = flows(first);
    others.iter().all(|cell| {
        let cell = flows(cell);
        let mut pairs = first.iter().flatten().zip(cell.iter().flatten());
        cell.len() == first.len() && pairs.all(is_near)
    })
}

fn is_worse(one: &BoundResult, other: &BoundResult) -> bool {
    if one.ok != other.ok {
        return other.ok;
    }
    match (one.value, other.value) {
        (Some(one), Some(of_other)) if other.min.is_some() => one < of_other,
        (Some(one), Some(of_other)) => one > of_other,
        (one, _) => one.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::result::{FlowMetrics, WindowResult};

    fn cell(dropped: u64, goodput_bps: Option<f64>) -> CellResult {
        let metrics = FlowMetrics {
            dropped,
            goodput_bps,
            ..FlowMetrics::default()
        };
        let value = Some(dropped as f64);
        CellResult {
            windows: vec![WindowResult {
                flows: vec![FlowResult {
                    metrics,
                    ..FlowResult::default()
                }],
                ..WindowResult::default()
            }],
            bounds: vec![BoundResult {
                flow: String::new(),
                window: String::new(),
                metric: "dropped".into(),
                min: None,
                max: Some(3.0),
                value,
                ok: BoundResult::holds(value, None, Some(3.0)),
            }],
            ..CellResult::default()
        }
    }

    #[test]
    fn each_run_counts_and_the_worst_one_judges() {
        let mut all = cell(1, Some(5.0));
        add(&mut all, &cell(4, None));
        add(&mut all, &cell(2, Some(7.0)));
        let flow = &all.windows[0].flows[0];
        assert_eq!(flow.runs["dropped"], [1.0, 4.0, 2.0]);
        assert_eq!(flow.runs["goodput_bps"], [5.0, 7.0]);
        assert_eq!(flow.get("goodput_bps"), Some(6.0));
        assert!(!flow.runs.contains_key("retransmits"));
        assert_eq!((all.bounds[0].value, all.bounds[0].ok), (Some(4.0), false));
    }

    #[test]
    fn runs_agree_to_the_digit() {
        let first = cell(1000, Some(478.2e6));
        let near = cell(1001, Some(478.3e6));
        assert!(agree(&[&first, &first, &near]));
        for other in [
            cell(1002, Some(478.2e6)),
            cell(1000, Some(477.7e6)),
            cell(1000, None),
            CellResult::default(),
        ] {
            assert!(!agree(&[&first, &near, &other]));
            assert!(!agree(&[&other, &first, &first]));
        }
        let lossless = cell(0, None);
        assert!(agree(&[&lossless, &lossless]));
        assert!(!agree(&[&lossless, &cell(1, None)]));
    }

    #[test]
    fn a_bound_has_the_worst_value_of_all_runs() {
        let bound = |min, max, value| BoundResult {
            min,
            max,
            value,
            ok: BoundResult::holds(value, min, max),
            ..cell(0, None).bounds.remove(0)
        };
        for (one, other, worse) in [
            (
                bound(None, Some(3.0), Some(2.0)),
                bound(None, Some(3.0), Some(1.0)),
                true,
            ),
            (
                bound(None, Some(3.0), Some(1.0)),
                bound(None, Some(3.0), Some(2.0)),
                false,
            ),
            (
                bound(Some(3.0), None, Some(4.0)),
                bound(Some(3.0), None, Some(5.0)),
                true,
            ),
            (
                bound(Some(3.0), None, Some(2.0)),
                bound(Some(3.0), None, Some(9.0)),
                true,
            ),
            (
                bound(Some(3.0), None, None),
                bound(Some(3.0), None, Some(2.0)),
                true,
            ),
            (
                bound(Some(3.0), None, Some(2.0)),
                bound(Some(3.0), None, None),
                false,
            ),
        ] {
            assert_eq!(is_worse(&one, &other), worse, "{one:?} {other:?}");
        }
    }
}
