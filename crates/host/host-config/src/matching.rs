// SPDX-License-Identifier: MIT OR Apache-2.0
//! A `match` of a class: which frames it claims, as filters of the kernel. All that a match says
//! must hold. What no filter can look at is refused, with what can be done instead.

use tcpsp::{Family, Flower, Interface, Match, Ports, Prefix, Protocol, Sender};
use toml_reader::{Error, Key, Section, key};

const PREFIX: &str = "a network such as \"192.0.2.0/24\" or \"2001:db8::/32\", or an address";
const PORT: &str = "a port such as 443, or ports such as \"5000-5009\"";

/// Keys of a match.
pub(crate) const KEYS: &[Key] = &[
    key("from", PREFIX),
    key("to", PREFIX),
    key(
        "protocol",
        "\"tcp\", \"udp\", \"sctp\", \"icmp\" or \"icmpv6\"",
    ),
    key("from_port", PORT),
    key("to_port", PORT),
    key("dscp", "a number from 0 to 63"),
    key("vlan", "a number from 1 to 4094"),
    key("interface", "the name of a device, of up to 127 characters"),
    key("mark", "a number from 1 to 4294967295"),
    key(
        "cgroup",
        "a path of cgroups of version 2 such as \"/system.slice/backup.service\"",
    ),
    key(
        "unit",
        "the name of a unit of systemd such as \"backup.service\"",
    ),
    key(
        "container",
        "12 or more hexadecimal digits of a container's id",
    ),
    key("user", "no user"),
];

/// What is said about a user.
const USER: &str = "no user: no filter looks at users. Let nftables set a mark (`meta skuid 1000 \
    meta mark set 7`) and match `mark = 7`";

/// Reads a match as the filters that claim its frames: several where the kernel's filters know
/// one protocol each.
pub(crate) fn read(section: Section<'_>) -> Result<Vec<Match>, Error> {
    if let Some(item) = section.get("user") {
        return Err(item.fault(USER));
    }
    let mark = section.number("mark", 1..=u32::MAX)?.map(Match::Mark);
    let sender = |key, parse: fn(&str) -> Option<String>| {
        let path = section.parsed(key, parse)?;
        Ok(path.map(|path| Match::Sender(Sender { path, id: 0 })))
    };
    for (key, matching) in [
        ("mark", mark),
        ("cgroup", sender("cgroup", cgroup)?),
        ("unit", sender("unit", unit)?),
        ("container", sender("container", container)?),
    ] {
        let Some(matching) = matching else { continue };
        let others = KEYS.iter().filter(|other| other.name != key);
        return match others.filter_map(|other| section.get(other.name)).next() {
            Some(item) => Err(item.fault(&format!(
                "no other key beside `{key}`: the kernel's filter of it looks at nothing else"
            ))),
            None => Ok(vec![matching]),
        };
    }
    let prefix = |key| {
        let Some(item) = section.get(key) else {
            return Ok(None);
        };
        match Prefix::parse_host(item.text()?) {
            Some((address, network)) if address != network.address => Err(item.fault(&format!(
                "the network {network}, or an address alone: the bits of the host must be 0"
            ))),
            Some((_, network)) => Ok(Some(network)),
            None => Err(item.wrong()),
        }
    };
    let ports = |key| match section.get(key) {
        Some(item) => Ports::parse(&item.scalar()?)
            .map(Some)
            .ok_or_else(|| item.wrong()),
        None => Ok(None),
    };
    let words = Protocol::ALL.map(|protocol| (protocol.word(), protocol));
    let protocol = section.word("protocol", &words)?;
    let vlan = section.number("vlan", 1..=4094)?;
    let dscp = section.number("dscp", 0..=63)?;
    let any = Flower {
        vlan: vlan.and_then(|vlan| u16::try_from(vlan).ok()),
        family: None,
        protocol,
        source: prefix("from")?,
        destination: prefix("to")?,
        source_ports: ports("from_port")?,
        destination_ports: ports("to_port")?,
        dscp: dscp.and_then(|dscp| u8::try_from(dscp).ok()),
        interface: section
            .parsed("interface", device_name)?
            .map(|name| Interface { name, index: 0 }),
    };
    if any == Flower::default() {
        return Err(section.lacks("to", "it, or another key of a match"));
    }
    let filters = expand(section, &any)?;
    Ok(filters.into_iter().map(Match::Flower).collect())
}

/// Returns a path of cgroups, if it can be one.
fn cgroup(text: &str) -> Option<String> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let is_path = text.starts_with('/')
        && text.len() <= Sender::PATH_BYTES_MAX
        && !text.contains(['*', '\0'])
        && text
            .split('/')
            .skip(1)
            .all(|part| !matches!(part, "" | "." | ".."));
    is_path.then(|| text.to_owned())
}

/// Returns the path of a unit's cgroup, of which the last part is known.
fn unit(text: &str) -> Option<String> {
    let (name, kind) = text.rsplit_once('.')?;
    let is_unit = !name.is_empty()
        && ["service", "slice", "scope", "socket", "mount", "swap"].contains(&kind);
    cgroup(&format!("/{text}"))
        .filter(|_| is_unit && !text.contains('/'))
        .map(|path| format!("*{path}"))
}

/// Returns the path of a container's cgroup, of whose last part some is known.
fn container(text: &str) -> Option<String> {
    let is_id = (12..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    is_id.then(|| format!("*/*{}*", text.to_lowercase()))
}

/// Bytes of a name with the zero that ends it: of another name of a device (ALTIFNAMSIZ), which may be
/// longer than the first one.
const NAME_BYTES: usize = 128;

/// Returns the name of a device, if it can be one.
pub(crate) fn device_name(text: &str) -> Option<String> {
    let is_name = !text.is_empty()
        && text.len() < NAME_BYTES
        && text != "."
        && text != ".."
        && !text.contains(['/', ':'])
        && !text.chars().any(char::is_whitespace);
    is_name.then(|| text.to_owned())
}

/// Returns a filter for each family and protocol that the match may mean.
fn expand(section: Section<'_>, any: &Flower) -> Result<Vec<Flower>, Error> {
    let family = |prefix: &Prefix| {
        if prefix.address.is_ipv4() {
            Family::Ipv4
        } else {
            Family::Ipv6
        }
    };
    let source = any.source.as_ref().map(family);
    let destination = any.destination.as_ref().map(family);
    let of_protocol = match any.protocol {
        Some(Protocol::Icmp) => Some(Family::Ipv4),
        Some(Protocol::Icmpv6) => Some(Family::Ipv6),
        _ => None,
    };
    let named: Vec<Family> = [source, destination, of_protocol]
        .into_iter()
        .flatten()
        .collect();
    if named.iter().any(|other| Some(other) != named.first()) {
        let expected = "one family in a match: IPv4 or IPv6";
        let item = section.get("to").or_else(|| section.get("from"));
        return Err(match item {
            Some(item) => item.fault(expected),
            None => section.lacks("to", expected),
        });
    }
    let has_ports = any.source_ports.is_some() || any.destination_ports.is_some();
    if has_ports && any.protocol.is_some_and(|protocol| !protocol.has_ports()) {
        let item = section.get("protocol");
        if let Some(item) = item {
            return Err(item.fault("\"tcp\", \"udp\" or \"sctp\" beside ports"));
        }
    }
    let needs_family = has_ports || any.protocol.is_some() || any.dscp.is_some();
    let families = match (named.first(), needs_family) {
        (Some(family), _) => vec![Some(*family)],
        (None, true) => vec![Some(Family::Ipv4), Some(Family::Ipv6)],
        (None, false) => vec![None],
    };
    let protocols = match (any.protocol, has_ports) {
        (None, true) => vec![Some(Protocol::Tcp), Some(Protocol::Udp)],
        (protocol, _) => vec![protocol],
    };
    let all = families.iter().flat_map(|family| {
        protocols.iter().map(|protocol| Flower {
            family: *family,
            protocol: *protocol,
            ..any.clone()
        })
    });
    Ok(all.collect())
}
