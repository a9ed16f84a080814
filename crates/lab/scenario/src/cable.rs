// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[[cable]]` and `[[bottleneck]]`. The ranges of the values are those of lab/wire.

use toml_reader::{Error, quote};

use crate::model::{Bottleneck, BottleneckKind, Cable, Cell, Device};
use crate::reader::{Fill, Section};
use crate::tables::{find, is_word, reference, required, within};

pub(crate) fn ends(section: &Section<'_, '_>, cell: &Cell) -> Result<[Device; 2], Error> {
    let expected = "two ends, [\"HOST:DEVICE\", \"HOST:DEVICE\"]";
    let item = section.require("ends", expected)?;
    let mut ends: Vec<Device> = Vec::with_capacity(2);
    for entry in item.expecting(expected).list()? {
        let text = entry.filled(section.env, expected)?;
        let (host, name) = text
            .split_once(':')
            .filter(|(_, name)| is_word(name, 15) && *name != "lo")
            .ok_or_else(|| entry.fault_of(&quote(&text), "HOST:DEVICE, such as \"tx:eth0\""))?;
        let names = cell.hosts.iter().map(|host| host.name.as_str());
        let host = find(entry, host, "host", names)?;
        let device = Device {
            host,
            name: name.to_owned(),
        };
        let others = cell.cables.iter().flat_map(|cable| &cable.ends);
        if others.chain(&ends).any(|other| *other == device) {
            return Err(entry.fault_of(&quote(&text), "a device that no other end has"));
        }
        ends.push(device);
    }
    match <[Device; 2]>::try_from(ends) {
        Ok([a, b]) if a.host == b.host => Err(item.fault("ends at two different hosts")),
        Ok(ends) => Ok(ends),
        Err(_) => Err(item.fault(expected)),
    }
}

pub(crate) fn cable(
    section: &Section<'_, '_>,
    name: String,
    ends: [Device; 2],
) -> Result<Cable, Error> {
    let rate_bps = required(
        section,
        "rate",
        section.rate("rate")?,
        "a rate such as \"1gbit\"",
    )?;
    within(section, "rate", rate_bps, 1_000, 1_000_000_000_000)?;
    let delay_ns = section.time("delay")?.unwrap_or(0);
    within(section, "delay", delay_ns, 0, 1_000_000_000_000)?;
    let bql_min_bytes = section.size("bql_min")?;
    within(section, "bql_min", bql_min_bytes.unwrap_or(0), 0, 1 << 30)?;
    let coalesce_ns = section.time("coalesce_time")?.unwrap_or(20_000);
    within(section, "coalesce_time", coalesce_ns, 0, 1_000_000_000)?;
    let small = |key, range, default| -> Result<u32, Error> {
        let value = section.number(key, range)?.unwrap_or(default);
        Ok(u32::try_from(value).unwrap_or(u32::MAX))
    };
    Ok(Cable {
        name,
        ends,
        rate_bps,
        mtu: small("mtu", 68..65_001, 1500)?,
        delay_ns,
        queues: small("queues", 1..65, 1)?,
        ring: small("ring", 1..65_537, 256)?,
        bql_min_bytes,
        coalesce_frames: small("coalesce_frames", 1..65_537, 16)?,
        coalesce_ns,
        sink: section.boolean("sink")?.unwrap_or(false),
        snap_bytes: small("snap", 0..1_025, 64)?,
        bottlenecks: [None, None],
    })
}

pub(crate) fn bottleneck(section: &Section<'_, '_>) -> Result<Bottleneck, Error> {
    let rate_bps = required(
        section,
        "rate",
        section.rate("rate")?,
        "a rate such as \"500mbit\"",
    )?;
    within(section, "rate", rate_bps, 1_000, 1_000_000_000_000)?;
    let delay_ns = section.time("delay")?.unwrap_or(0);
    within(section, "delay", delay_ns, 0, 100_000_000_000)?;
    let refresh_ns = section.time("refresh")?;
    within(
        section,
        "refresh",
        refresh_ns.unwrap_or(0),
        0,
        1_000_000_000,
    )?;
    let (fifo, burst) = (section.size("fifo")?, section.size("burst")?);
    within(section, "fifo", fifo.unwrap_or(1), 1, u32::MAX.into())?;
    within(section, "burst", burst.unwrap_or(1), 1, u32::MAX.into())?;
    let kind = match (fifo, burst, refresh_ns) {
        (Some(bytes), None, None) => BottleneckKind::Fifo { bytes },
        (None, Some(burst_bytes), refresh_ns) => BottleneckKind::Policer {
            burst_bytes,
            refresh_ns: refresh_ns.unwrap_or(0),
        },
        (None, None, _) => {
            return Err(section.missing("fifo", "`fifo`, or for a policer `burst` and `refresh`"));
        }
        (Some(_), ..) => {
            let expected = "either `fifo`, or for a policer `burst` and `refresh`";
            return Err(section.require("fifo", expected)?.fault(expected));
        }
    };
    Ok(Bottleneck {
        rate_bps,
        kind,
        delay_ns,
        also: None,
    })
}

/// Returns the further cable whose frames enter the bottleneck at `end` of cable `at` too.
pub(crate) fn also(
    section: &Section<'_, '_>,
    cables: &[Cable],
    at: usize,
    end: usize,
) -> Result<Option<usize>, Error> {
    if section.get("also").is_none() {
        return Ok(None);
    }
    let names = cables.iter().map(|cable| cable.name.as_str());
    let other = reference(section, "also", "cable", names)?;
    let shares = |cable: &Cable| {
        cable.bottlenecks[end]
            .as_ref()
            .is_some_and(|b| b.also.is_some())
    };
    let is_fit = |index: usize| {
        let cable = &cables[index];
        let entered = cables.iter().filter_map(|c| c.bottlenecks[end].as_ref());
        !cable.sink && !shares(cable) && entered.filter(|b| b.also == Some(index)).count() == 0
    };
    if other == at || !is_fit(other) || !is_fit(at) || cables[other].bottlenecks[end].is_some() {
        let expected = "another cable without a bottleneck there, neither of them a sink or \
                        sharing already";
        return Err(section.require("also", expected)?.fault(expected));
    }
    Ok(Some(other))
}
