// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[itm]`, `[[segment]]`, `[[stream]]` and `[[node]]`: hosts that send by periods over
//! segments (paper 004).

mod model;
mod node;
mod path;
mod stream;

pub use model::{Backoff, Hop, Isochronous, Node, Segment, Stream, StreamKind};

use toml_reader::{Error, Problem};
use units::itm;
use units::time::PS_PER_S;

use crate::expr::Env;
use crate::model::Cell;
use crate::reader::{Fill, Section};
use crate::tables::{Names, Reading, WORD, find, is_word, reference, within};

const ITM: &[&str] = &["period", "slot", "budget"];
const SEGMENT: &[&str] = &[
    "name",
    "type",
    "hosts",
    "rate",
    "propagation",
    "backoff",
    "queue",
    "when",
    "each",
];
/// Tables that a cell with segments must not have.
const APART: &[&str] = &[
    "cable",
    "bottleneck",
    "tc",
    "sysctl",
    "program",
    "flow",
    "freeze",
    "impairment",
    "capture",
    "stop",
    "closeup",
    "window",
];

const STATIONS_MAX: usize = 64;
const SEGMENTS_MAX: usize = 254;
/// Half-duplex Ethernet was built only at these rates.
const SHARED_BPS: [u64; 2] = [10_000_000, 100_000_000];
/// Longest round trip: the bits that a collision leaves behind, jam of 32 included, are less
/// than a slot of 512 bits.
const ROUND_TRIP_BITS_MAX: u64 = 512 - 32;

/// Returns whether a scenario has segments.
pub(crate) fn is_meant(reading: &Reading<'_>) -> Result<bool, Error> {
    let segments = reading.root.unchecked_tables("segment", "[[segment]]")?;
    Ok(!segments.is_empty())
}

/// Reads the segments, streams and nodes of a cell, in place of cables and flows; its hosts
/// are known.
pub(crate) fn read(
    reading: &Reading<'_>,
    cell: &mut Cell,
    env: &Env,
    clamp: bool,
) -> Result<(), Error> {
    for key in APART {
        if let Some(table) = reading.root.unchecked_tables(key, "")?.first() {
            return Err(table.error(Problem::Apart {
                key: (*key).to_owned(),
                other: "segment".to_owned(),
            }));
        }
    }
    let mut all = periods(reading, env)?;
    segments(reading, cell, &mut all, env)?;
    stream::read(reading, cell, &mut all, env, clamp)?;
    node::read(reading, cell, &mut all, env)?;
    cell.isochronous = Some(all);
    Ok(())
}

fn periods(reading: &Reading<'_>, env: &Env) -> Result<Isochronous, Error> {
    let mut all = Isochronous {
        period_ns: itm::PERIOD_NS,
        slot_ns: 1_000_000,
        budget_pct: itm::BUDGET_PCT.into(),
        ..Isochronous::default()
    };
    let Some(table) = reading.root.table("itm", "[itm]")? else {
        return Ok(all);
    };
    let section = Section {
        prefix: Some("itm."),
        ..reading.section(table, env)
    };
    section.allow(ITM)?;
    if let Some(period_ns) = section.time("period")? {
        within(&section, "period", period_ns, 125_000, 1_000_000_000)?;
        all.period_ns = period_ns;
        all.slot_ns = period_ns / 10;
    }
    if let Some(slot_ns) = section.time("slot")? {
        within(&section, "slot", slot_ns, 1, all.period_ns / 2)?;
        all.slot_ns = slot_ns;
    }
    if let Some(budget_pct) = section.number("budget", 1..101)? {
        all.budget_pct = budget_pct;
    }
    Ok(all)
}

fn segments(
    reading: &Reading<'_>,
    cell: &Cell,
    all: &mut Isochronous,
    env: &Env,
) -> Result<(), Error> {
    let mut names = Names::default();
    reading.each_repetition("segment", "[[segment]]", SEGMENT, env, |section| {
        let name = names.take(section, WORD, |name| is_word(name, 31))?;
        if all.segments.len() == SEGMENTS_MAX {
            let expected = format!("at most {SEGMENTS_MAX} segments");
            return Err(section.require("name", &expected)?.fault(&expected));
        }
        let segment = segment(section, cell, name)?;
        all.segments.push(segment);
        Ok(())
    })
}

fn segment(section: &Section<'_, '_>, cell: &Cell, name: String) -> Result<Segment, Error> {
    let expected = "a list of hosts, each once, 2 to 64";
    let item = section.require("hosts", expected)?;
    let mut hosts = Vec::new();
    for entry in item.expecting(expected).list()? {
        let host = entry.filled(section.env, expected)?;
        let known = cell.hosts.iter().map(|host| host.name.as_str());
        let host = find(entry, &host, "host", known)?;
        if hosts.contains(&host) {
            return Err(item.fault(expected));
        }
        hosts.push(host);
    }
    if !(2..=STATIONS_MAX).contains(&hosts.len()) {
        return Err(item.fault(expected));
    }
    let is_shared = match section.get("type") {
        None => true,
        Some(_) => {
            reference(
                section,
                "type",
                "type of segment",
                ["shared", "switched"].into_iter(),
            )? == 0
        }
    };
    let rate_bps = section.rate("rate")?.unwrap_or(100_000_000);
    let fits = if is_shared {
        SHARED_BPS.contains(&rate_bps)
    } else {
        rate_bps > 0 && PS_PER_S % rate_bps == 0
    };
    if !fits {
        let expected = if is_shared {
            "\"10mbit\" or \"100mbit\", what half duplex was built for"
        } else {
            "a rate whose bits last whole picoseconds, such as \"100mbit\" or \"1gbit\""
        };
        return Err(section.require("rate", expected)?.fault(expected));
    }
    let backoff = match section.get("backoff") {
        None => is_shared.then_some(Backoff::Standard),
        Some(item) if !is_shared => {
            return Err(item.fault("nothing: nobody collides on a switched segment"));
        }
        Some(_) => {
            let all = [
                ("standard", Backoff::Standard),
                ("capture-avoiding", Backoff::CaptureAvoiding),
                ("whole-bursts", Backoff::WholeBursts),
            ];
            let names = all.iter().map(|(name, _)| *name);
            Some(all[reference(section, "backoff", "back-off", names)?].1)
        }
    };
    let bit_ps = PS_PER_S / rate_bps;
    let most_ns = if is_shared {
        ROUND_TRIP_BITS_MAX / 2 * bit_ps / 1_000
    } else {
        1_000_000_000
    };
    let propagation_ns = section.time("propagation")?.unwrap_or(500);
    within(section, "propagation", propagation_ns, 0, most_ns)?;
    let queue = section.number("queue", 1..1_000_001)?.unwrap_or(1_000);
    Ok(Segment {
        name,
        hosts,
        rate_bps,
        propagation_ns,
        backoff,
        queue_frames: usize::try_from(queue).unwrap_or(usize::MAX),
    })
}
