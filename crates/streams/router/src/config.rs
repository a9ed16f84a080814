// SPDX-License-Identifier: MIT OR Apache-2.0
//! The router's configuration (`docs/use/formats.md`, "Router"): it is read and checked completely
//! before anything is opened.

use std::fmt;
use std::net::IpAddr;

use serde::Deserialize;
use toml::Spanned;
use toml_faults::{line_of, rejected};
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
const IO: &str = "\"auto\", \"xdp\" or \"packet\"";
const MAC: &str = "a MAC address such as \"02:00:00:00:00:01\"";

/// A checked configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Time from one run of the periodic threads to the next.
    pub period_ns: u64,
    /// The ports.
    pub devices: Vec<Device>,
    /// The routes.
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

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name.
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
    /// The text is no TOML, or has an unknown key, or lacks a key.
    #[error("line {line}: {message}")]
    Syntax {
        /// Line of the fault.
        line: usize,
        /// The TOML parser's message.
        message: String,
    },
    /// A value is not valid.
    #[error("line {line}: `{key}` is \"{value}\", expected {expected}")]
    Value {
        /// Line of the value.
        line: usize,
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The values that are valid.
        expected: String,
    },
    /// The reservations exceed what a device may send.
    #[error(
        "device {device}: streams reserve {reserved_bytes} bytes of every period, and best effort \
         needs {best_effort_bytes} for one frame: {} together, expected at most its budget of \
         {budget_bytes}",
        reserved_bytes + best_effort_bytes
    )]
    Budget {
        /// The device.
        device: String,
        /// Bytes that all streams reserve in a period.
        reserved_bytes: u64,
        /// Bytes of a full frame, which best effort needs.
        best_effort_bytes: u64,
        /// The device's budget.
        budget_bytes: u64,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    period: Option<Spanned<String>>,
    device: Vec<FileDevice>,
    route: Vec<FileRoute>,
    #[serde(default)]
    stream: Vec<FileStream>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileDevice {
    name: Spanned<String>,
    io: Option<Spanned<String>>,
    budget: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRoute {
    to: Spanned<String>,
    device: Spanned<String>,
    via: Spanned<String>,
    mac: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileStream {
    name: Spanned<String>,
    to: Spanned<String>,
    from: Option<Spanned<String>>,
    port: Option<u16>,
    dscp: Option<Spanned<u8>>,
    rate: Spanned<String>,
}

/// Reads and checks a configuration.
///
/// # Errors
/// The fault, its line, and what was expected; for a reservation beyond the budget the numbers of
/// both.
pub fn read(text: &str) -> Result<Config, ConfigError> {
    let text = Text(text);
    let file: File = toml::from_str(text.0).map_err(|error| {
        let (line, message) = rejected(text.0, &error);
        ConfigError::Syntax { line, message }
    })?;
    let period_ns = match &file.period {
        Some(period) => text.value("period", period, time_ns, TIME)?,
        None => PERIOD_NS,
    };
    if !(LEAST_PERIOD_NS..=MOST_PERIOD_NS).contains(&period_ns) {
        let expected = "1ms to 1s".to_owned();
        return Err(text.wrong("period", file.period.as_ref(), expected));
    }
    let mut devices: Vec<Device> = Vec::new();
    for device in &file.device {
        let fresh = |name: &str| {
            devices
                .iter()
                .all(|d| d.name != name)
                .then(|| name.to_owned())
        };
        let budget_bps = text.value("budget", &device.budget, rate_bps, RATE)?;
        let io = device.io.as_ref();
        let io = io
            .map(|io| text.value("io", io, Io::parse, IO))
            .transpose()?;
        devices.push(Device {
            name: text.value("name", &device.name, fresh, "a name not in use")?,
            io: io.unwrap_or_default(),
            budget_bytes: bytes(budget_bps, period_ns),
            streams: Vec::new(),
        });
    }
    let routes = file.route.iter();
    let routes: Vec<_> = routes
        .map(|route| text.route(route, &devices))
        .collect::<Result<_, _>>()?;
    let mut streams: Vec<Stream> = Vec::new();
    for given in &file.stream {
        let stream = text.stream(given, period_ns, &streams)?;
        let out = route(&routes, stream.to.address);
        let device = out.and_then(|route| devices.get_mut(route.device));
        let expected = || "an address that a route leads to".to_owned();
        let device = device.ok_or_else(|| text.wrong("to", Some(&given.to), expected()))?;
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
    #[must_use]
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
#[must_use]
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

/// The text of the file, which finds the lines of values.
#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

impl Text<'_> {
    fn wrong(
        self,
        key: &'static str,
        at: Option<&Spanned<String>>,
        expected: String,
    ) -> ConfigError {
        ConfigError::Value {
            line: line_of(self.0, at.map_or(0, |at| at.span().start)),
            key,
            value: at.map(|at| at.get_ref().clone()).unwrap_or_default(),
            expected,
        }
    }

    fn value<T>(
        self,
        key: &'static str,
        given: &Spanned<String>,
        read: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<T, ConfigError> {
        read(given.get_ref()).ok_or_else(|| self.wrong(key, Some(given), expected.to_owned()))
    }

    fn route(self, route: &FileRoute, devices: &[Device]) -> Result<Route, ConfigError> {
        let named = |name: &str| devices.iter().position(|d| d.name == name);
        let address = |text: &str| text.parse::<IpAddr>().ok();
        let given = route.mac.as_ref();
        Ok(Route {
            to: self.value("to", &route.to, Prefix::parse, PREFIX)?,
            device: self.value("device", &route.device, named, "the name of a device")?,
            via: self.value("via", &route.via, address, ADDRESS)?,
            mac: given.map(|m| self.value("mac", m, mac, MAC)).transpose()?,
        })
    }

    fn stream(
        self,
        stream: &FileStream,
        period_ns: u64,
        before: &[Stream],
    ) -> Result<Stream, ConfigError> {
        let fresh = |name: &str| {
            before
                .iter()
                .all(|s| s.name != name)
                .then(|| name.to_owned())
        };
        let rate_bps = self.value("rate", &stream.rate, rate_bps, RATE)?;
        let reserve_bytes = bytes(rate_bps, period_ns);
        let least_bytes = wire_bytes(0);
        if reserve_bytes < least_bytes {
            let expected = format!("at least a frame of {least_bytes} bytes in every period");
            return Err(self.wrong("rate", Some(&stream.rate), expected));
        }
        if let Some(dscp) = stream.dscp.as_ref().filter(|d| *d.get_ref() > 63) {
            let value = Spanned::new(dscp.span(), dscp.get_ref().to_string());
            return Err(self.wrong("dscp", Some(&value), "0 to 63".to_owned()));
        }
        let from = stream.from.as_ref();
        Ok(Stream {
            name: self.value("name", &stream.name, fresh, "a name not in use")?,
            to: self.value("to", &stream.to, Prefix::parse, PREFIX)?,
            from: from
                .map(|f| self.value("from", f, Prefix::parse, PREFIX))
                .transpose()?,
            port: stream.port,
            dscp: stream.dscp.as_ref().map(|d| *d.get_ref()),
            reserve_bytes,
        })
    }
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
                "line 18: `dscp` is \"64\", expected 0 to 63",
            ),
            ("\"1mbit\"", "\"1kbit\"", "at least a frame of 84 bytes"),
            ("port = 5001", "ports = 5001", "unknown field `ports`"),
            ("via = \"10.1.0.2\"", "", "missing field `via`"),
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
