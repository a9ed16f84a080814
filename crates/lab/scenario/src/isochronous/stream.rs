// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[[stream]]`: the packets that hosts send over segments.

use super::model::{Isochronous, Stream, StreamKind};
use super::path::shortest_path;
use crate::expr::Env;
use crate::model::Cell;
use crate::reader::Section;
use crate::tables::{Names, Reading, host, is_word, reference, required, span, within};
use toml_reader::Error;

const STREAM: &[&str] = &[
    "name", "type", "from", "to", "payload", "packets", "reserve", "receive", "rate", "batch",
    "start", "stop", "when", "each",
];
/// Keys that only some types have.
const ONLY: &[(&str, &[&str])] = &[
    ("packets", &["rt", "ping"]),
    ("reserve", &["rt", "ping"]),
    ("receive", &["ping"]),
    ("rate", &["nrt"]),
    ("batch", &["nrt"]),
];
const TYPES: [&str; 3] = ["rt", "nrt", "ping"];
const NAME: &str = "a name of letters, digits, `.`, `_` and `-`, a letter or digit first, not \"each\" or \"wire\"";
/// Longest payload of an Ethernet frame.
const PAYLOAD_MAX: u32 = 1_472;
const PACKETS_MAX: u64 = 10_000;

/// Reads every stream of a cell whose segments are known.
pub(super) fn read(
    reading: &Reading<'_>,
    cell: &Cell,
    all: &mut Isochronous,
    env: &Env,
    clamp: bool,
) -> Result<(), Error> {
    let mut names = Names::default();
    reading.each_repetition("stream", "[[stream]]", STREAM, env, |section| {
        let fits = |name: &str| is_word(name, 63) && name != "each" && name != "wire";
        let name = names.take(section, NAME, fits)?;
        let stream = stream(section, cell, all, name, clamp)?;
        all.streams.push(stream);
        check_budget(section, cell, all)
    })
}

fn stream(
    section: &Section<'_, '_>,
    cell: &Cell,
    all: &Isochronous,
    name: String,
    clamp: bool,
) -> Result<Stream, Error> {
    let kind = TYPES[reference(section, "type", "type of stream", TYPES.into_iter())?];
    for (key, kinds) in ONLY {
        if let Some(item) = section.get(key).filter(|_| !kinds.contains(&kind)) {
            let kinds = kinds.join(" and ");
            return Err(item.fault(&format!(
                "nothing: only {kinds} streams have it, this is {kind}"
            )));
        }
    }
    let (from, to) = (host(section, "from", cell)?, host(section, "to", cell)?);
    let path =
        shortest_path(&all.segments, cell.hosts.len(), from, to).filter(|path| !path.is_empty());
    let Some(path) = path else {
        let expected = format!(
            "another host, which segments connect with `{}`",
            cell.hosts[from].name
        );
        return Err(section.require("to", &expected)?.fault(&expected));
    };
    let payload = section.size("payload")?.unwrap_or(PAYLOAD_MAX.into());
    let payload_bytes = u32::try_from(payload).unwrap_or(u32::MAX);
    if !(1..=PAYLOAD_MAX).contains(&payload_bytes) {
        let expected = format!("\"1b\" to \"{PAYLOAD_MAX}b\", what a frame has room for");
        return Err(section.require("payload", &expected)?.fault(&expected));
    }
    let (start_ns, stop_ns) = span(section, "start", "stop", cell.duration_ns, clamp)?;
    Ok(Stream {
        name,
        kind: kind_of(section, kind)?,
        payload_bytes,
        path,
        start_ns,
        stop_ns,
    })
}

fn kind_of(section: &Section<'_, '_>, kind: &str) -> Result<StreamKind, Error> {
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    if kind == "nrt" {
        let rate = section.rate("rate")?;
        let rate_bps = required(section, "rate", rate, "a rate, such as \"10mbit\"")?;
        within(section, "rate", rate_bps, 1_000, 1_000_000_000_000)?;
        let batch = narrow(section.number("batch", 1..PACKETS_MAX + 1)?.unwrap_or(1));
        return Ok(StreamKind::Nrt { rate_bps, batch });
    }
    let packets = section.number("packets", 1..PACKETS_MAX + 1)?.unwrap_or(1);
    let reserve = section.number("reserve", packets..PACKETS_MAX + 1)?;
    let ping = match (kind, section.get("receive")) {
        ("rt", _) => None,
        (_, None) => Some(true),
        _ => {
            let names = ["by-period", "at-once"];
            Some(reference(section, "receive", "way to receive", names.into_iter())? == 0)
        }
    };
    Ok(StreamKind::Rt {
        packets: narrow(packets),
        reserve: narrow(reserve.unwrap_or(packets)),
        ping,
    })
}

/// Rejects the stream that was read last if it exceeds the budget of one of its segments.
fn check_budget(section: &Section<'_, '_>, cell: &Cell, all: &Isochronous) -> Result<(), Error> {
    let Some(stream) = all.streams.last() else {
        return Ok(());
    };
    let ends = stream
        .path
        .iter()
        .flat_map(|hop| [(hop, hop.from), (hop, hop.to)]);
    for (hop, host) in ends {
        let budget = all.budget_bytes(hop.segment);
        let reserved = all.reserved_bytes(hop.segment, host);
        if stream.reserved_bytes() > 0 && reserved > budget {
            let segment = &all.segments[hop.segment];
            let expected = format!(
                "less: reservations of segment `{}` at `{}` come to {reserved} bytes a period with \
                 this stream's {}, and {} % of {} bit/s are {budget}",
                segment.name,
                cell.hosts[host].name,
                stream.reserved_bytes(),
                all.budget_pct,
                segment.rate_bps,
            );
            let key = if section.get("reserve").is_some() {
                "reserve"
            } else {
                "packets"
            };
            return Err(match section.get(key) {
                Some(item) => item.fault(&expected),
                None => section.require("type", &expected)?.fault(&expected),
            });
        }
    }
    Ok(())
}
