// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes metrics: OpenMetrics, which Prometheus asks for, and the older text that the textfile
//! collector of node_exporter reads.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::families::{Family, Kind, Number};

/// What OpenMetrics is called in HTTP.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the older text is called in HTTP.
pub const OLDER_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns metrics as OpenMetrics.
///
/// # Errors
/// If a value cannot be written, which no value of [`Family`] is.
pub fn open_metrics(families: Vec<Family>) -> Result<String, fmt::Error> {
    let is_histogram = |family: &&Family| family.kind == Kind::Histogram;
    let histograms = families.iter().filter(is_histogram);
    let sums: Vec<_> = histograms.map(|of| format!("{}_sum", of.name)).collect();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(without(&text, &sums))
}

/// Leaves out the samples of these names. The library writes a sum of each histogram; OpenMetrics
/// does not ask for one, and the kernel keeps none of the latenesses.
fn without(text: &str, names: &[String]) -> String {
    let is_kept = |line: &&str| {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        !names.iter().any(|other| other == name)
    };
    text.split_inclusive('\n').filter(is_kept).collect()
}

/// Returns OpenMetrics as the text format of Prometheus (0.0.4): there the type of a counter is
/// that of its name with `_total`, and there are neither units nor an end.
pub fn prometheus(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            // Written with the type, which says how the metric is called.
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let total = if kind == "counter" { "_total" } else { "" };
            text += &format!("# HELP {name}{total} {help}\n# TYPE {name}{total} {kind}\n");
        } else if !line.starts_with("# ") {
            text += line;
            text.push('\n');
        }
    }
    text
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for family in &self.0 {
            let unit = family.unit.map(|unit| match unit {
                "bytes" => Unit::Bytes,
                "seconds" => Unit::Seconds,
                other => Unit::Other(other.to_owned()),
            });
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut metric =
                encoder.encode_descriptor(&family.name, &family.help, unit.as_ref(), kind)?;
            for sample in &family.samples {
                if sample.labels.is_empty() {
                    write(family.kind, &sample.number, &mut metric)?
                } else {
                    let mut one = metric.encode_family(&sample.labels)?;
                    write(family.kind, &sample.number, &mut one)?;
                }
            }
        }
        Ok(())
    }
}

/// The labels of exemplars, of which there are none.
type Labels = Vec<(String, String)>;

fn write(kind: Kind, number: &Number, to: &mut MetricEncoder<'_>) -> Result<(), fmt::Error> {
    match (kind, number) {
        (_, Number::Buckets(counts)) => {
            let last = counts.len().saturating_sub(1);
            let bound = |i: usize| {
                if i == last {
                    f64::INFINITY
                } else {
                    ((1u64 << i) - 1) as f64
                }
            };
            let counted = (0..).zip(counts).map(|(i, count)| (bound(i), *count));
            let buckets: Vec<_> = counted.collect();
            to.encode_histogram::<Labels>(0.0, counts.iter().sum(), &buckets, None)
        }
        (Kind::Counter, Number::Whole(number)) => {
            to.encode_counter::<Labels, u64, u64>(number, None)
        }
        (Kind::Counter, Number::Seconds(number)) => {
            to.encode_counter::<Labels, f64, f64>(number, None)
        }
        // The library writes whole gauges with a sign.
        (_, Number::Whole(number)) => match i64::try_from(*number) {
            Ok(number) => to.encode_gauge(&number),
            Err(_) => to.encode_gauge(&(*number as f64)),
        },
        (_, Number::Seconds(number)) => to.encode_gauge(number),
    }
}
