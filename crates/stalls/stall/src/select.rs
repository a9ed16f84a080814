// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects connections for `--flow`.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use capture::filter::FlowFilter;
use capture::flows::{FlowKey, Proto};
use capture::segment::Endpoint;

use crate::Connection;

/// A value of `--flow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The connection with this number in the list, from 1.
    Number(usize),
    /// The connections with this end, or with these two.
    Ends(End, Option<End>),
    /// The connections that match the filter words of measure, in either direction.
    Flow(FlowFilter),
}

/// What is known of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    address: Option<IpAddr>,
    port: Option<u16>,
}

impl End {
    fn matches(&self, end: &Endpoint) -> bool {
        self.address.is_none_or(|a| a == end.address) && self.port.is_none_or(|p| p == end.port)
    }
}

impl FromStr for End {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        if let Ok(socket) = word.parse::<SocketAddr>() {
            return Ok(Self {
                address: Some(socket.ip()),
                port: Some(socket.port()),
            });
        }
        if let Ok(address) = word.trim_matches(['[', ']']).parse() {
            return Ok(Self {
                address: Some(address),
                port: None,
            });
        }
        let port = word.strip_prefix(':').and_then(|p| p.parse().ok());
        Ok(Self {
            address: None,
            port: Some(port.ok_or(())?),
        })
    }
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            "expected a number from 1, one or two ends such as 10.1.1.1, 10.1.1.1:80, \
             [fe80::1]:80 or :80, or conditions such as \"dst 10.1.1.1 port 80\""
                .to_owned()
        };
        if let Ok(number) = text.trim().parse() {
            return if number == 0 {
                Err(expected())
            } else {
                Ok(Self::Number(number))
            };
        }
        let words = text.split(|c: char| c.is_whitespace() || c == ',');
        let ends: Result<Vec<End>, ()> = words.filter(|w| !w.is_empty()).map(str::parse).collect();
        match ends.as_deref() {
            Ok([one]) => Ok(Self::Ends(*one, None)),
            Ok([one, other]) => Ok(Self::Ends(*one, Some(*other))),
            _ => text.parse().map(Self::Flow).map_err(|_| expected()),
        }
    }
}

impl Selector {
    /// Returns whether the connection with this number is selected.
    pub fn matches(&self, number: usize, connection: &Connection) -> bool {
        let (client, server) = (&connection.client, &connection.server);
        match self {
            Self::Number(n) => *n == number,
            Self::Ends(one, None) => one.matches(client) || one.matches(server),
            Self::Ends(one, Some(other)) => {
                one.matches(client) && other.matches(server)
                    || one.matches(server) && other.matches(client)
            }
            Self::Flow(filter) => {
                filter.matches(&key(client, server)) || filter.matches(&key(server, client))
            }
        }
    }
}

/// Returns the key of what one end sends to the other.
fn key(from: &Endpoint, to: &Endpoint) -> FlowKey {
    FlowKey::Ports {
        proto: Proto::Tcp,
        src: from.address,
        sport: from.port,
        dst: to.address,
        dport: to.port,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ends() {
        let end = |text: &str| text.parse::<End>().unwrap();
        let select = |text: &str| text.parse::<Selector>().unwrap();
        assert_eq!(select("12"), Selector::Number(12));
        assert_eq!(select(":80"), Selector::Ends(end(":80"), None));
        assert_eq!(
            select("10.1.1.1").clone(),
            Selector::Ends(end("10.1.1.1"), None)
        );
        let both = Selector::Ends(end("10.1.1.1:5"), Some(end("[fe80::1]:80")));
        assert_eq!(select("10.1.1.1:5 [fe80::1]:80"), both);
        assert_eq!(select("10.1.1.1:5,[fe80::1]:80"), both);
        for bad in ["0", "", "a", "1.2.3", "10.1.1.1 10.1.1.2 10.1.1.3", ":x"] {
            assert!(bad.parse::<Selector>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_end_matches_what_is_known_of_it() {
        let there = Endpoint {
            address: "10.1.1.1".parse().unwrap(),
            port: 80,
        };
        for (text, expected) in [
            ("10.1.1.1", true),
            ("10.1.1.1:80", true),
            (":80", true),
            ("10.1.1.1:81", false),
            ("10.1.1.2", false),
            (":81", false),
        ] {
            assert_eq!(
                text.parse::<End>().unwrap().matches(&there),
                expected,
                "{text}"
            );
        }
    }
}
