// SPDX-License-Identifier: MIT OR Apache-2.0
//! What would be refused of a psp of BPF or of the module, before there is a port for it.

use host_config::{Facts, Psp};
use pace::{ClassConfig, Config, Period, Scheduler};
use tcpsp::{Budget, ClassOptions, QdiscOptions, SplitGso, TypeOptions};

use super::Error as QdiscError;
use super::error::refused;
use super::ports::{self, class_refused};
use super::settings::{BURST_BYTES_MAX, LINE_UNKNOWN_BPS, class_config, period, settings};
use crate::error::Error;

/// The module leaves bursts whole that the line sends in this time.
const WHOLE_BURST_NS: u64 = 10_000;

/// Checks a psp.
///
/// # Errors
/// What the core refuses, a budget that the line does not carry, or a device of a filter that is
/// not there.
pub(crate) fn check(psp: &Psp, facts: &Facts) -> Result<(), Error> {
    let wanted = settings(psp, facts, &[], 0);
    budget(psp, wanted.config.line_rate_bps)?;
    Ok(ports::check(&wanted.config, &wanted.classes)?)
}

/// Checks a budget in bytes, as the module does.
fn budget(psp: &Psp, line_rate_bps: u64) -> Result<(), Error> {
    if let Budget::Bytes(bytes) = psp.options.budget {
        let most = Period::percent(line_rate_bps, psp.options.period_ns, 100).budget_bytes;
        if bytes > most {
            return Err(Error::Qdisc(QdiscError::Value(format!(
                "`budget` is {bytes} bytes, expected at most {most} bytes, line x period"
            ))));
        }
    }
    Ok(())
}

/// Checks a psp of the module by the core of this program, as the module asks its own. What the core
/// does not know (launch times, flows, what a device can do) the module alone decides.
pub(crate) fn check_module(psp: &Psp, facts: &Facts) -> Result<(), Error> {
    let line_rate_bps = psp.line_bps.unwrap_or(LINE_UNKNOWN_BPS);
    let mut config = settings(psp, facts, &[], 0).config;
    config.period = Some(period(&psp.options, line_rate_bps, 0));
    config.line_rate_bps = line_rate_bps;
    config.max_burst_bytes = burst_bytes(&psp.options, line_rate_bps, config.max_frame_bytes);
    budget(psp, line_rate_bps)?;
    let fault = |error: pace::Error| refused("configuration", &error);
    let mut port = Scheduler::new(&config, 0).map_err(fault)?;
    for (minor, class) in &psp.classes {
        let mut of = config;
        let group = class
            .options
            .group
            .and_then(|group| psp.classes.get(&group));
        if let Some(TypeOptions::Group { rate_bps, ceil_bps }) =
            group.map(|group| &group.options.by_type)
        {
            of.line_rate_bps = ceil_bps.unwrap_or(*rate_bps).min(line_rate_bps);
        }
        for (key, wanted) in configs(&class.options, of.line_rate_bps) {
            let refused = |why| class_refused(*minor, (key, &wanted), why, &of);
            if of == config {
                port.add_class(&wanted).map_err(refused)?;
            } else {
                let mut inner = Scheduler::new(&of, 0).map_err(fault)?;
                inner.add_class(&wanted).map_err(refused)?;
            }
        }
        if let Some(ceil_bps) = carries_bps(&class.options) {
            let inner = Config {
                line_rate_bps: ceil_bps.min(line_rate_bps),
                ..config
            };
            Scheduler::new(&inner, 0).map_err(fault)?;
        }
    }
    Ok(())
}

/// Returns the longest burst that the module leaves whole: `psp_burst_max_bytes()` in
/// `kernel/psp_dev.c`, of a device that takes bursts of 64 KiB.
fn burst_bytes(options: &QdiscOptions, line_rate_bps: u64, max_frame_bytes: u32) -> u32 {
    let on_line = u128::from(line_rate_bps) * u128::from(WHOLE_BURST_NS) / 8_000_000_000;
    let on_line = u32::try_from(on_line).unwrap_or(u32::MAX);
    let most = match options.split_gso {
        SplitGso::On => 0,
        SplitGso::Auto if options.guard => 0,
        SplitGso::Auto => BURST_BYTES_MAX.min(on_line),
        SplitGso::Off => BURST_BYTES_MAX,
    };
    Some(most)
        .filter(|most| *most > max_frame_bytes)
        .unwrap_or(0)
}

/// Returns what the core is told of a class of the module: of a node and of what it carries, each
/// with the key that gives it its rate.
fn configs(options: &ClassOptions, line_rate_bps: u64) -> Vec<(&'static str, ClassConfig)> {
    let paced = |rate_bps: u64, ceil_bps: Option<u64>| {
        let rate_bps = rate_bps.min(line_rate_bps);
        match ceil_bps {
            Some(ceil_bps) => ClassConfig::Borrowing {
                rate_bps,
                ceil_bps: ceil_bps.min(line_rate_bps),
            },
            None => ClassConfig::Paced { rate_bps },
        }
    };
    match &options.by_type {
        TypeOptions::Group { rate_bps, ceil_bps } => vec![("rate", paced(*rate_bps, *ceil_bps))],
        TypeOptions::Dynamic(dynamic) => {
            let ceil_bps = dynamic.ceil_bps.unwrap_or(line_rate_bps);
            let total_bps = dynamic.total_bps;
            let total = total_bps.map(|total_bps| ("total", paced(total_bps, None)));
            let (key, rate_bps) = match dynamic.rate_bps {
                Some(rate_bps) => ("rate", rate_bps),
                None => ("ceil", ceil_bps),
            };
            let rate_bps = rate_bps.min(total_bps.unwrap_or(u64::MAX));
            // A flow is no faster than the ceil.
            let (rate, ceil) = (paced(rate_bps, None), paced(ceil_bps, None));
            total
                .into_iter()
                .chain([(key, rate), ("ceil", ceil)])
                .collect()
        }
        _ => vec![("rate", class_config(options, line_rate_bps))],
    }
}

/// Returns the rate of what carries other classes or flows.
fn carries_bps(options: &ClassOptions) -> Option<u64> {
    match &options.by_type {
        TypeOptions::Group { rate_bps, ceil_bps } => Some(ceil_bps.unwrap_or(*rate_bps)),
        TypeOptions::Dynamic(dynamic) => dynamic.total_bps,
        _ => None,
    }
}
