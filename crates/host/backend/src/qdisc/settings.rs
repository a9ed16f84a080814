// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the core and the programs are told of a psp, as the module tells it to the core.

use host_config::limits::LINE_BPS_MAX;
use host_config::{Facts, Psp};
use pace::{ClassConfig, Config, Layer, Mode, Order, Period};
use tcpsp::{Budget, ClassOptions, Handle, QdiscOptions, TypeOptions};
use units::ethernet::{FRAME_MIN_BYTES, HEADER_BYTES};

use super::{PortClass, PortConfig};
use crate::match_words::words_of;

/// The line rate of a device that names none: the core's highest.
pub(crate) const LINE_UNKNOWN_BPS: u64 = LINE_BPS_MAX;
/// Most packets that wait in a class: those of a pfifo on a device of the usual queue length.
const LIMIT_PACKETS: u32 = 1000;
/// The longest burst that the stack makes, and an eighth more for the headers of its frames.
pub(crate) const BURST_BYTES_MAX: u32 = 65_536 + 65_536 / 8;

/// Returns what a qdisc shall do for a psp, where CLOCK_TAI is so far ahead of the monotonic clock.
/// O(classes + filters).
pub(crate) fn settings<'a>(
    psp: &Psp,
    facts: &Facts,
    text: &'a [u8],
    tai_ahead_ns: u64,
) -> PortConfig<'a> {
    let (link_bytes, min_bytes) = if facts.is_ethernet {
        (HEADER_BYTES, FRAME_MIN_BYTES)
    } else {
        (0, 0)
    };
    let options = &psp.options;
    let line_rate_bps = line_bps(psp, facts);
    let max_frame_bytes = facts.max_frame_bytes.max(min_bytes);
    let config = Config {
        line_rate_bps,
        overhead_bytes: options.overhead_bytes,
        min_frame_bytes: min_bytes,
        max_frame_bytes,
        max_burst_bytes: BURST_BYTES_MAX.max(max_frame_bytes),
        link_header_bytes: link_bytes,
        layer: match options.layer {
            tcpsp::Layer::Link => Layer::Link,
            tcpsp::Layer::Wire => Layer::Wire,
            tcpsp::Layer::Ip => Layer::Ip,
        },
        order: match options.order {
            tcpsp::Order::Clock => Order::Clock,
            tcpsp::Order::Rate => Order::Rate,
            tcpsp::Order::Next => Order::Next,
        },
        mode: Mode::Timer,
        guard_band: options.guard,
        period: Some(period(options, line_rate_bps, tai_ahead_ns)),
    };
    let classes = psp.classes.iter().map(|(minor, class)| PortClass {
        minor: *minor,
        limit: LIMIT_PACKETS,
        deadline_ns: class.options.deadline_ns,
        config: class_config(&class.options, line_rate_bps),
    });
    let (rules, net_cls) = psp.rules();
    let rules = words_of(&rules);
    PortConfig {
        config,
        classes: classes.collect(),
        default: Some(options.default_minor).filter(|minor| *minor != 0),
        rules,
        net_cls,
        link_bytes,
        text,
    }
}

/// Returns the line rate that a psp goes by: below mq a queue's even part of the device's.
fn line_bps(psp: &Psp, facts: &Facts) -> u64 {
    let queues = if psp.parent == Handle::ROOT {
        1
    } else {
        u64::from(facts.queues.max(1))
    };
    let even_bps = facts.speed_bps.map(|speed_bps| speed_bps / queues);
    let line_bps = psp.options.line_rate_bps.or(even_bps);
    line_bps.unwrap_or(LINE_UNKNOWN_BPS)
}

pub(crate) fn period(options: &QdiscOptions, line_rate_bps: u64, tai_ahead_ns: u64) -> Period {
    let length_ns = options.period_ns;
    let budget_bytes = match options.budget {
        Budget::Percent(percent) => Period::percent(line_rate_bps, length_ns, percent).budget_bytes,
        Budget::Bytes(budget_bytes) => budget_bytes,
    };
    // The first instant after 0 of the monotonic clock at which a period begins, or one later.
    let past_ns = tai_ahead_ns % length_ns.max(1);
    let align_ns = options.align_ns.map(|ns| ns + length_ns - past_ns);
    Period {
        length_ns,
        budget_bytes,
        align_ns,
    }
}

/// A class asks for at most the line: it may have become slower since the file was checked.
pub(crate) fn class_config(options: &ClassOptions, line_rate_bps: u64) -> ClassConfig {
    match options.by_type {
        TypeOptions::Paced {
            rate_bps,
            ceil_bps: Some(ceil_bps),
            ..
        } => ClassConfig::Borrowing {
            rate_bps: rate_bps.min(line_rate_bps),
            ceil_bps: ceil_bps.min(line_rate_bps),
        },
        TypeOptions::Paced { rate_bps, .. } => ClassConfig::Paced {
            rate_bps: rate_bps.min(line_rate_bps),
        },
        TypeOptions::Normal { quantum_bytes } => ClassConfig::Normal { quantum_bytes },
        TypeOptions::Rt { reserve_bytes } => ClassConfig::Rt { reserve_bytes },
        TypeOptions::Nrt { reserve_bytes } => ClassConfig::Nrt { reserve_bytes },
        // Refused before: check_backend().
        TypeOptions::Dynamic(_) | TypeOptions::Group { .. } => ClassConfig::Normal {
            quantum_bytes: None,
        },
    }
}
