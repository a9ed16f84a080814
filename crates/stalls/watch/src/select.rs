// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses `--flow` of watch: those words of the other subcommands that the BPF program can tell
//! connections by.

use std::str::FromStr;

use crate::Network;

/// Selects connections by `port N`, `dst ADDRESS[/BITS]`, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The port of either end.
    pub port: Option<u16>,
    /// The address of the other end.
    pub destination: Option<Network>,
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut selector = Self::default();
        let mut words = text.split_ascii_whitespace();
        while let Some(word) = words.next() {
            let value = words.next();
            let value = || value.ok_or_else(|| format!("{word} must be followed by a value"));
            match word {
                "tcp" => return Err("expected no tcp: all connections are TCP".into()),
                "port" if selector.port.is_none() => {
                    let port = value()?.parse().ok().filter(|port| *port > 0);
                    selector.port = Some(port.ok_or("expected a port from 1 to 65535")?);
                }
                "dst" if selector.destination.is_none() => {
                    selector.destination = Some(value()?.parse()?);
                }
                other => {
                    return Err(format!(
                        "{other:?}: expected \"port N\", \"dst ADDRESS\" or both, once each: \
                         the kernel chooses by these"
                    ));
                }
            }
        }
        if selector == Self::default() {
            Err("expected conditions such as \"port 80\"".into())
        } else {
            Ok(selector)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_destinations() {
        let both: Selector = "dst 10.1.0.0/16 port 80".parse().unwrap();
        assert_eq!(both.port, Some(80));
        assert_eq!(both.destination, Some("10.1.0.0/16".parse().unwrap()));
        assert_eq!("port 80".parse::<Selector>().unwrap().destination, None);
        for bad in [
            "",
            "port",
            "port 0",
            "port x",
            "src 10.1.1.1",
            "dst 10",
            "port 1 port 2",
            "80",
        ] {
            assert!(bad.parse::<Selector>().is_err(), "{bad}");
        }
    }
}
