// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses values of options that several subcommands take. A wrong value is reported as an error of
//! the command line.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use scenario::{Kernel, UnknownKernel};

/// Parses a rate above 0, in bit/s.
pub fn rate(text: &str) -> Result<u64, String> {
    let known = units::parse::rate_bps(text).filter(|r| *r > 0);
    known.ok_or_else(|| "expected a rate such as 500mbit or 1gbit".to_owned())
}

/// Parses a time, in ns.
pub fn time(text: &str) -> Result<u64, String> {
    units::parse::time_ns(text).ok_or_else(|| "expected a time such as 10ms or 1s".to_owned())
}

/// Parses a time above 0, in ns.
pub fn some_time(text: &str) -> Result<u64, String> {
    let known = time(text).ok().filter(|ns| *ns > 0);
    known.ok_or_else(|| "expected a time above 0, such as 10ms or 1s".to_owned())
}

/// Parses a size, in bytes.
pub fn size(text: &str) -> Result<u64, String> {
    units::parse::size_bytes(text).ok_or_else(|| format!("expected {}", units::parse::SIZE))
}

/// Where to listen: the first of these addresses that the host has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// As it was given.
    text: String,
    /// All that it stands for.
    pub addresses: Vec<SocketAddr>,
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Parses an address or a name of this host, and a port. A port alone stands for each address of the
/// host: IPv6 and IPv4, or IPv4 where the host has no IPv6.
pub fn listen(text: &str) -> Result<Listen, String> {
    let every = |port: u16| {
        let addresses = [
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        ];
        addresses.to_vec()
    };
    let addresses = match text.strip_prefix(':') {
        Some(port) => port.parse().ok().map(every),
        None => text.to_socket_addrs().ok().map(Iterator::collect),
    };
    let addresses = addresses.filter(|addresses| !addresses.is_empty());
    let text = text.to_owned();
    let addresses = addresses
        .ok_or("expected ADDRESS:PORT or :PORT, such as 127.0.0.1:9977, localhost:9977 or :9977")?;
    Ok(Listen { text, addresses })
}

/// Parses a probability from 0 to 1.
pub fn probability(text: &str) -> Result<f64, String> {
    let known = text.parse().ok().filter(|p| (0.0..=1.0).contains(p));
    known.ok_or_else(|| "expected a probability from 0 to 1".to_owned())
}

/// Parses a confidence level above 0 and below 1.
pub fn level(text: &str) -> Result<f64, String> {
    let known = text.parse().ok().filter(|p| *p > 0.0 && *p < 1.0);
    known.ok_or_else(|| "expected a level above 0 and below 1, such as 0.95".to_owned())
}

/// A key and its value, `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The text before the first `=`.
    pub key: String,
    /// The text after the first `=`.
    pub value: String,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// Parses `KEY=VALUE`.
pub fn pair(text: &str) -> Result<Pair, String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("expected KEY=VALUE, as in rate=250mbit")?;
    Ok(Pair {
        key: key.trim().to_owned(),
        value: value.trim().to_owned(),
    })
}

/// Returns a parser for the names of the laboratory's kernels.
pub fn kernel() -> impl TypedValueParser<Value = Kernel> {
    PossibleValuesParser::new(Kernel::NAMES)
        .try_map(|name| -> Result<Kernel, UnknownKernel> { name.parse() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_to_listen_at_have_a_port_and_may_be_names() {
        for (text, expected) in [
            ("127.0.0.1:9977", "127.0.0.1:9977"),
            ("[::1]:9977", "[::1]:9977"),
            (":9977", "[::]:9977 0.0.0.0:9977"),
        ] {
            let found = listen(text).map(|listen| {
                let addresses = listen.addresses.iter().map(SocketAddr::to_string);
                addresses.collect::<Vec<_>>().join(" ")
            });
            assert_eq!(found.as_deref(), Ok(expected));
        }
        let local = listen("localhost:9977").map(|listen| listen.addresses);
        assert!(local.is_ok_and(|all| all.iter().all(|at| at.ip().is_loopback())));
        for wrong in ["9977", ":", ":99770", "127.0.0.1", "127.0.0.1:x"] {
            let why = listen(wrong).map_err(|why| why.contains("expected ADDRESS:PORT or :PORT"));
            assert_eq!(why, Err(true), "{wrong}");
        }
    }
}
