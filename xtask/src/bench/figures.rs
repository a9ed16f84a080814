// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plots of the benchmark page.

use draw::Plot;
use draw::chart::{Chart, ChartCurve};

use crate::bench::model::{Dpdk, Rival, Spread, Structures};

pub(crate) const STRUCTURES: &str = "bench-structures";
pub(crate) const CORE: &str = "bench-core";
pub(crate) const TAILS: &str = "bench-tails";
pub(crate) const DPDK: &str = "bench-dpdk";

const CLASSES: &str = "classes";
const NS: &str = "ns per packet";

/// Returns whether a rival is the whole core, and not only a data structure.
pub(crate) fn is_core(rival: &Rival) -> bool {
    rival.name.starts_with("core_")
}

/// Returns all plots, without those that would be empty.
pub fn figures(s: &Structures, dpdk: Option<&Dpdk>) -> Vec<Plot> {
    let standard = s.of_case("standard");
    let of_kind = |core: bool| {
        let rivals = standard.iter().flat_map(|c| {
            let rivals = c.rivals.iter().filter(move |r| is_core(r) == core);
            rivals.map(|r| (c.classes, r))
        });
        curves(rivals, "")
    };
    let charts = [
        chart(
            STRUCTURES,
            "Cost of a decision, by structure",
            NS,
            of_kind(false),
        ),
        chart(
            CORE,
            "Cost of a packet in the whole core",
            NS,
            of_kind(true),
        ),
        chart(
            TAILS,
            "One operation in ten thousand takes longer",
            "99.99th percentile of one operation, ns",
            tails(s),
        ),
        chart(
            DPDK,
            "With mbufs, beside DPDK rte_sched",
            NS,
            dpdk.map(dpdk_curves).unwrap_or_default(),
        ),
    ];
    charts
        .iter()
        .filter(|c| !c.curves.is_empty())
        .map(|of| draw::chart::chart(of).plot())
        .collect()
}

fn chart(slug: &'static str, title: &str, y_name: &str, curves: Vec<ChartCurve>) -> Chart {
    Chart {
        slug,
        title: title.to_owned(),
        x_name: CLASSES.to_owned(),
        y_name: y_name.to_owned(),
        curves,
    }
}

/// Returns a curve for each title, in the order of their first points.
fn curves<'a>(points: impl Iterator<Item = (u32, &'a Rival)>, suffix: &str) -> Vec<ChartCurve> {
    let places = points.filter_map(|(classes, rival)| {
        let s = Spread::of(&rival.ns).filter(|s| s.low > 0.0 && s.high.is_finite())?;
        let label = format!("{}{suffix}", rival.title);
        Some((label, (f64::from(classes), [s.low, s.median, s.high])))
    });
    grouped(places)
}

fn grouped(places: impl Iterator<Item = (String, (f64, [f64; 3]))>) -> Vec<ChartCurve> {
    let mut curves: Vec<ChartCurve> = Vec::new();
    for (label, place) in places {
        match curves.iter_mut().find(|c| c.label == label) {
            Some(curve) => curve.points.push(place),
            None => curves.push(ChartCurve {
                label,
                points: vec![place],
            }),
        }
    }
    curves
}

fn tails(s: &Structures) -> Vec<ChartCurve> {
    let places = s.latency.iter().flat_map(|at| {
        at.rivals.iter().filter(|r| r.p9999_ns > 0.0).map(|r| {
            let place = (f64::from(at.classes), [r.p9999_ns; 3]);
            (r.title.clone(), place)
        })
    });
    grouped(places)
}

fn dpdk_curves(dpdk: &Dpdk) -> Vec<ChartCurve> {
    [(false, ", unshaped"), (true, ", shaped")]
        .iter()
        .flat_map(|(shaped, suffix)| {
            let contests = dpdk.contests.iter().filter(|c| c.shaped == *shaped);
            curves(
                contests.flat_map(|c| c.rivals.iter().map(|r| (c.classes, r))),
                suffix,
            )
        })
        .collect()
}
