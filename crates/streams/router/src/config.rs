// SPDX-License-Identifier: MIT OR Apache-2.0
//! The router's configuration (`docs/use/formats.md`, "Router"): it is read and checked completely
//! before anything is opened.

use std::fmt;
use std::net::IpAddr;

use toml_reader::{Document, Error, Key, Section, Taken, key};
use units::parse::{RATE, TIME, rate_bps, time_ns};
use units::time::NS_PER_S;

use crate::ethernet::{Mac, wire_bytes};
use crate::table::{Prefix, Route, Stream, route};

/// Default period, paper 004's.
const PERIOD_NS: u64 = units::itm::PERIOD_NS;
/// Shortest period: threads of Linux do not keep shorter ones.
const LEAST_PERIOD_NS: u64 = 1_000_000;
/// Longest period: longer ones are of no use.
const MOST_PERIOD_NS: u64 = NS_PER_S;
/// Bytes of a full Ethernet frame: best effort must be able to send one in a period.
const FULL_FRAME: usize = 1514;
/// Bits of a byte, times the nanoseconds of a second.
const BIT_NS: u128 = 8 * NS_PER_S as u128;

const PREFIX: &str = "a network such as \"10.2.0.0/16\", or an address";
const ADDRESS: &str = "an address, IPv4 or IPv6";
const NAME: &str = "a name";

const FILE: &[Key] = &[
    key("period", TIME),
    key("device", "an array of tables, [[device]]"),
    key("route", "an array of tables, [[route]]"),
    key("stream", "an array of tables, [[stream]]"),
];
const DEVICE: &[Key] = &[
    key("name", NAME),
    key("io", "\"auto\", \"xdp\" or \"packet\""),
    key("budget", RATE),
];
const ROUTE: &[Key] = &[
    key("to", PREFIX),
    key("device", "the name of a device"),
    key("via", ADDRESS),
    key("mac", "a MAC address such as \"02:00:00:00:00:01\""),
];
const STREAM: &[Key] = &[
    key("name", NAME),
    key("to", PREFIX),
    key("from", PREFIX),
    key("port", "a number from 0 to 65535"),
    key("dscp", "a number from 0 to 63"),
    key("rate", RATE),
];

/// A checked configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Time from one run of the periodic threads to the next.
    pub period_ns: u64,
    pub devices: Vec<Device>,
    pub routes: Vec<Route>,
    /// The streams with reservations.
    pub streams: Vec<Stream>,
}

/// How the router exchanges frames with a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// Uses AF_XDP if the device and the host have it, else AF_PACKET.
    #[default]
    Auto,
    /// Uses AF_XDP; without it the router does not run.
    Xdp,
    /// Uses AF_PACKET.
    Packet,
}

impl Io {
    fn parse(text: &str) -> Option<Self> {
        let all = [Self::Auto, Self::Xdp, Self::Packet];
        all.into_iter().find(|io| io.to_string() == text)
    }
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Xdp => "xdp",
            Self::Packet => "packet",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub name: String,
    /// How frames are exchanged with it.
    pub io: Io,
    /// Wire bytes that may leave in a period.
    pub budget_bytes: u64,
    /// Indices of the streams that leave through it.
    pub streams: Vec<usize>,
}

/// The reason why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The text is no TOML, has an unknown key, lacks a key or has a value that is not valid.
    #[error(transparent)]
    File(#[from] Error),
    /// The reservations exceed what a device may send.
    #[error(
        "device {device}: streams reserve {reserved_bytes} bytes of every period, and best effort \
         needs {best_effort_bytes} for one frame: {} together, expected at most its budget of \
         {budget_bytes}",
        reserved_bytes + best_effort_bytes
    )]
    Budget {
        device: String,
        /// Bytes that all streams reserve in a period.
        reserved_bytes: u64,
        /// Bytes of a full frame, which best effort needs.
        best_effort_bytes: u64,
        budget_bytes: u64,
    },
}

/// Reads and checks a configuration.
///
/// # Errors
/// The fault, its line, and what was expected; for a reservation beyond the budget the numbers of
/// both.
pub fn read(text: &str) -> Result<Config, ConfigError> {
    let document = Document::parse("", text)?;
    let file = document.top("the file", FILE).check()?;
    let period_ns = match file.get("period") {
        Some(item) => {
            let period_ns = item.parsed(time_ns)?;
            if !(LEAST_PERIOD_NS..=MOST_PERIOD_NS).contains(&period_ns) {
                return Err(item.fault("1ms to 1s").into());
            }
            period_ns
        }
        None => PERIOD_NS,
    };
    file.require("device")?;
    file.require("route")?;
    let mut devices: Vec<Device> = Vec::new();
    let mut names = Taken::default();
    for section in file.tables("device", "[[device]]", DEVICE)? {
        let budget_bps = section.require("budget")?.parsed(rate_bps)?;
        devices.push(Device {
            name: new_name(section, &mut names)?,
            io: section.parsed("io", Io::parse)?.unwrap_or_default(),
            budget_bytes: bytes(budget_bps, period_ns),
            streams: Vec::new(),
        });
    }
    let routes = file.tables("route", "[[route]]", ROUTE)?.into_iter();
    let routes: Vec<_> = routes
        .map(|section| read_route(section, &devices))
        .collect::<Result<_, _>>()?;
    let mut streams: Vec<Stream> = Vec::new();
    let mut names = Taken::default();
    for section in file.tables("stream", "[[stream]]", STREAM)? {
        let stream = read_stream(section, period_ns, &mut names)?;
        let out = route(&routes, stream.to.address);
        let device = out.and_then(|route| devices.get_mut(route.device));
        let to = section.require("to")?;
        let device = device.ok_or_else(|| to.fault("an address that a route leads to"))?;
        device.streams.push(streams.len());
        streams.push(stream);
    }
    let config = Config {
        period_ns,
        devices,
        routes,
        streams,
    };
    config.devices.iter().try_for_each(|d| config.afford(d))?;
    Ok(config)
}

impl Config {
    /// Returns the wire bytes that the streams of a device reserve, in the order of its streams.
    pub fn reserve_bytes(&self, device: &Device) -> Vec<u64> {
        let streams = device.streams.iter().filter_map(|i| self.streams.get(*i));
        streams.map(|stream| stream.reserve_bytes).collect()
    }

    fn afford(&self, device: &Device) -> Result<(), ConfigError> {
        let reserved_bytes = self.reserve_bytes(device).iter().sum();
        let best_effort_bytes = wire_bytes(FULL_FRAME);
        if reserved_bytes + best_effort_bytes <= device.budget_bytes {
            return Ok(());
        }
        Err(ConfigError::Budget {
            device: device.name.clone(),
            reserved_bytes,
            best_effort_bytes,
            budget_bytes: device.budget_bytes,
        })
    }
}

/// Returns the bytes that a rate amounts to in a period.
fn bytes(rate_bps: u64, period_ns: u64) -> u64 {
    let bytes = u128::from(rate_bps) * u128::from(period_ns) / BIT_NS;
    u64::try_from(bytes)
        .unwrap_or(u64::MAX / 2)
        .min(u64::MAX / 2)
}

/// Parses `xx:xx:xx:xx:xx:xx`.
pub fn mac(text: &str) -> Option<Mac> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next().filter(|p| p.len() == 2)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    (parts.next().is_none() && !part_of_many(mac)).then_some(mac)
}

/// Returns whether it is a multicast or broadcast address.
fn part_of_many(mac: Mac) -> bool {
    mac[0] & 1 == 1
}

fn new_name(section: Section<'_>, names: &mut Taken<String>) -> Result<String, Error> {
    let item = section.require("name")?;
    let name = item.text()?.to_owned();
    names.insert(item, name.clone(), NAME)?;
    Ok(name)
}

fn read_route(section: Section<'_>, devices: &[Device]) -> Result<Route, Error> {
    let named = |name: &str| devices.iter().position(|d| d.name == name);
    let address = |text: &str| text.parse::<IpAddr>().ok();
    Ok(Route {
        to: section.require("to")?.parsed(Prefix::parse)?,
        device: section.require("device")?.parsed(named)?,
        via: section.require("via")?.parsed(address)?,
        mac: section.parsed("mac", mac)?,
    })
}

fn read_stream(
    section: Section<'_>,
    period_ns: u64,
    names: &mut Taken<String>,
) -> Result<Stream, Error> {
    let rate = section.require("rate")?;
    let reserve_bytes = bytes(rate.parsed(rate_bps)?, period_ns);
    let least_bytes = wire_bytes(0);
    if reserve_bytes < least_bytes {
        let expected = format!("at least a frame of {least_bytes} bytes in every period");
        return Err(rate.fault(&expected));
    }
    let port = section.number("port", 0..=u16::MAX.into())?;
    let dscp = section.number("dscp", 0..=63)?;
    Ok(Stream {
        name: new_name(section, names)?,
        to: section.require("to")?.parsed(Prefix::parse)?,
        from: section.parsed("from", Prefix::parse)?,
        port: port.and_then(|port| port.try_into().ok()),
        dscp: dscp.and_then(|dscp| dscp.try_into().ok()),
        reserve_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
period = "10ms"
[[device]]
name = "a"
budget = "70mbit"
[[device]]
name = "b"
budget = "4mbit"
[[route]]
to = "10.2.0.0/16"
device = "b"
via = "10.1.0.2"
mac = "02:00:00:00:00:0a"
[[stream]]
name = "video"
to = "10.2.0.5"
port = 5001
dscp = 46
rate = "1mbit"
[[device]]
name = "d"
budget = "4mbit"
io = "xdp"
"#;

    #[test]
    fn a_valid_configuration_is_read() {
        let config = read(GOOD).unwrap();
        assert_eq!(config.devices[0].budget_bytes, 87_500);
        assert_eq!(config.devices[1].streams, [0]);
        let io: Vec<_> = config.devices.iter().map(|d| d.io).collect();
        assert_eq!(io, [Io::Auto, Io::Auto, Io::Xdp]);
        assert_eq!(config.streams[0].reserve_bytes, 1250);
        assert_eq!(config.routes[0].mac, Some([2, 0, 0, 0, 0, 10]));
    }

    #[test]
    fn errors_name_key_and_value() {
        for (from, to, words) in [
            (
                "10ms",
                "soon",
                "line 2: `period` is \"soon\", expected a time",
            ),
            (
                "10ms",
                "2s",
                "line 2: `period` is \"2s\", expected 1ms to 1s",
            ),
            (
                "\"b\"\nbudget",
                "\"a\"\nbudget",
                "line 7: `name` is \"a\", expected a name not in use",
            ),
            ("10.2.0.0/16", "10.2.0.1/16", "line 10: `to` is"),
            (
                "device = \"b\"",
                "device = \"c\"",
                "line 11: `device` is \"c\"",
            ),
            ("10.1.0.2", "there", "line 12: `via` is"),
            (
                "02:00:00:00:00:0a",
                "03:00:00:00:00:0a",
                "line 13: `mac` is",
            ),
            (
                "10.2.0.5",
                "10.3.0.5",
                "line 16: `to` is \"10.3.0.5\", expected an address that",
            ),
            (
                "dscp = 46",
                "dscp = 64",
                "line 18: `dscp` is 64, expected a number from 0 to 63",
            ),
            ("\"1mbit\"", "\"1kbit\"", "at least a frame of 84 bytes"),
            (
                "port = 5001",
                "ports = 5001",
                "line 17: unknown key `ports` in [[stream]]; did you mean `port`?",
            ),
            (
                "port = 5001",
                "port = 65536",
                "line 17: `port` is 65536, expected a number from 0 to 65535",
            ),
            (
                "via = \"10.1.0.2\"",
                "",
                "line 9: [[route]] lacks `via`, expected an address",
            ),
            (
                "via = \"10.1.0.2\"",
                "via = 10",
                "line 12: `via` is 10, expected an address",
            ),
            ("[[stream]]", "[[stream", "line 14: "),
            (
                "\"xdp\"",
                "\"dpdk\"",
                "line 23: `io` is \"dpdk\", expected \"auto\", \"xdp\" or \"packet\"",
            ),
        ] {
            let said = read(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(said.contains(words), "{to}: {said}");
        }
    }

    #[test]
    fn devices_and_routes_must_be_there() {
        for (text, words) in [
            ("", "line 1: the file lacks `device`, expected an array"),
            (
                "device = []",
                "line 1: the file lacks `route`, expected an array",
            ),
        ] {
            let said = read(text).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
        assert!(read("device = []\nroute = []").is_ok());
    }

    #[test]
    fn a_reservation_beyond_the_budget_is_rejected_with_the_numbers() {
        let said = read(&GOOD.replace("\"1mbit\"", "\"3mbit\""))
            .unwrap_err()
            .to_string();
        for words in ["device b", "3750 bytes", "1538", "5288 together", "5000"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        // A reservation of 2.7 Mbit/s leaves best effort 1625 bytes.
        assert!(read(&GOOD.replace("\"1mbit\"", "\"2.7mbit\"")).is_ok());
    }
}
