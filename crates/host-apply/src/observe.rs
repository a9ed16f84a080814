// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel says of a device.

use std::fs;
use std::path::Path;

use anyhow::{Result, anyhow};
use host_config::{Facts, Port, minor};
use linux_io::links::{Link, links};
use tcpsp::{Handle, Tc};
use units::ethernet;
use units::nearest::hint;

const VLAN_TAG_BYTES: u32 = 4;

/// A device, and what stands there.
pub struct Observed {
    /// What is known of it beside its tables.
    pub facts: Facts,
    /// Its tables.
    pub port: Port,
    /// Its longest frame, with a VLAN tag.
    pub max_frame_bytes: u32,
}

/// Reads a device's tables.
///
/// # Errors
/// If there is no such device, or the kernel's.
pub fn observe(tc: &mut Tc, device: &str) -> Result<Observed> {
    let links = links()?;
    let link = links.iter().find(|link| link.name == device);
    let link = link.ok_or_else(|| {
        let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        anyhow!("{device}: expected a device{}", hint(device, &names))
    })?;
    let facts = facts(link);
    let header_bytes = match link.is_ethernet {
        true => ethernet::HEADER_BYTES + VLAN_TAG_BYTES,
        false => 0,
    };
    let mtu_bytes = u32::try_from(link.mtu_bytes).unwrap_or(u32::MAX);
    let max_frame_bytes = mtu_bytes.saturating_add(header_bytes);
    let qdiscs = tc.qdiscs()?;
    let classes = tc.classes(facts.index)?;
    let mut filters = Vec::new();
    for qdisc in &qdiscs {
        let is_ours = qdisc.device == facts.index && qdisc.psp.is_some();
        if is_ours && qdisc.handle != Handle::NONE {
            filters.extend(tc.filters(facts.index, qdisc.handle)?);
        }
    }
    let port = Port::new(&facts, &qdiscs, &classes, &filters);
    Ok(Observed {
        facts,
        port,
        max_frame_bytes,
    })
}

/// Returns the names of the devices on which there is something of ours.
pub(crate) fn ours(tc: &mut Tc) -> Result<Vec<String>> {
    let roots = tc.qdiscs()?;
    let is_ours = |link: &&Link| {
        roots.iter().any(|qdisc| {
            let is_known = [minor::root(), minor::mq()].contains(&qdisc.handle);
            qdisc.device == link.index && qdisc.parent == Handle::ROOT && is_known
        })
    };
    let links = links()?;
    Ok(links
        .iter()
        .filter(is_ours)
        .map(|link| link.name.clone())
        .collect())
}

/// Adds what sysfs knows: transmit queues in use and the line rate. It may show another network
/// namespace than netlink does, then nothing is taken from it.
fn facts(link: &Link) -> Facts {
    let folder = Path::new("/sys/class/net").join(&link.name);
    let number = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        text.trim().parse().ok()
    };
    let is_this = number("ifindex") == Some(link.index.into());
    let in_use = || {
        let entries = fs::read_dir(folder.join("queues")).ok()?;
        let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
        let count = names
            .filter(|name| name.to_string_lossy().starts_with("tx-"))
            .count();
        u16::try_from(count).ok().filter(|count| *count > 0)
    };
    let allocated = u16::try_from(link.tx_queues).unwrap_or(u16::MAX);
    let mbit = number("speed").filter(|speed| is_this && (1..10_000_000).contains(speed));
    Facts {
        index: link.index,
        name: link.name.clone(),
        is_ethernet: link.is_ethernet,
        queues: in_use().filter(|_| is_this).unwrap_or(allocated),
        speed_bps: mbit.map(|mbit| mbit * 1_000_000),
    }
}
