// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flow keys and the flow table (`docs/use/formats.md`, "Flow table").

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::error::ReadError;
use crate::record::NO_FLOW;
use crate::segment::EncapsulationId;

/// A transport protocol with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Proto {
    Tcp,
    Udp,
}

/// The fields that distinguish flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlowKey {
    /// One direction of a TCP connection or UDP flow.
    Ports {
        proto: Proto,
        src: IpAddr,
        sport: u16,
        dst: IpAddr,
        dport: u16,
    },
    /// All other frames, by EtherType.
    EtherType(u16),
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ports {
                proto,
                src,
                sport,
                dst,
                dport,
            } => {
                let proto = if *proto == Proto::Tcp { "tcp" } else { "udp" };
                write!(f, "{proto} {src} {sport} {dst} {dport}")
            }
            Self::EtherType(t) => write!(f, "ethertype {t:#06x}"),
        }
    }
}

impl FromStr for FlowKey {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<_> = text.split_ascii_whitespace().collect();
        let bad = |what: &str, word: &str| format!("{word:?} is not {what}");
        match words.as_slice() {
            ["ethertype", hex] => hex
                .strip_prefix("0x")
                .and_then(|h| u16::from_str_radix(h, 16).ok())
                .map(Self::EtherType)
                .ok_or_else(|| bad("an EtherType like 0x0806", hex)),
            [proto @ ("tcp" | "udp"), src, sport, dst, dport] => {
                let address = |w: &str| w.parse().map_err(|_| bad("an IP address", w));
                let port = |w: &str| w.parse().map_err(|_| bad("a port", w));
                Ok(Self::Ports {
                    proto: if *proto == "tcp" {
                        Proto::Tcp
                    } else {
                        Proto::Udp
                    },
                    src: address(src)?,
                    sport: port(sport)?,
                    dst: address(dst)?,
                    dport: port(dport)?,
                })
            }
            _ => Err(format!(
                "expected \"udp SRC SPORT DST DPORT\", the same with tcp, or \
                 \"ethertype 0xNNNN\", not {text:?}"
            )),
        }
    }
}

/// The flows of a series. [`crate::record::Record::flow`] is an index into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTable {
    keys: Vec<FlowKey>,
    /// Indices of flows outside tunnels.
    indices: HashMap<FlowKey, u32>,
    in_tunnels: HashMap<(FlowKey, EncapsulationId), u32>,
    /// Names of the tunnels, by the index of the flow.
    tunnels: HashMap<u32, String>,
}

impl FlowTable {
    /// Reads the text of `flows.a`: one line per flow, in order of index from 0.
    pub fn parse(text: &str) -> Result<Self, ReadError> {
        let mut table = Self::default();
        for (i, line) in text.lines().enumerate() {
            let line_error = |what| ReadError::Line { line: i + 1, what };
            let (index, key) = line.split_once(' ').unwrap_or((line, ""));
            if index.parse() != Ok(i) {
                return Err(line_error(format!("expected index {i}, not {index:?}")));
            }
            let key = key.parse().map_err(line_error)?;
            if table.indices.contains_key(&key) {
                return Err(line_error(format!("{key} is there twice")));
            }
            table.index_of(key);
        }
        Ok(table)
    }

    /// Returns the text of `flows.a`.
    pub fn to_text(&self) -> String {
        self.iter()
            .map(|(index, key)| format!("{index} {key}\n"))
            .collect()
    }

    /// Returns the index of a flow outside tunnels. Adds the flow if it is new.
    pub fn index_of(&mut self, key: FlowKey) -> u32 {
        let keys = &mut self.keys;
        *self.indices.entry(key).or_insert_with(|| {
            keys.push(key);
            last_index(keys)
        })
    }

    /// Returns the index of a flow in a tunnel. Adds the flow if it is new; `tunnel` is the
    /// tunnel's name.
    pub fn index_in_tunnel(
        &mut self,
        key: FlowKey,
        encapsulation: EncapsulationId,
        tunnel: impl FnOnce() -> String,
    ) -> u32 {
        let (keys, tunnels) = (&mut self.keys, &mut self.tunnels);
        let entry = self.in_tunnels.entry((key, encapsulation));
        *entry.or_insert_with(|| {
            keys.push(key);
            let index = last_index(keys);
            tunnels.insert(index, tunnel());
            index
        })
    }

    /// Returns the name of the flow of this index, with its tunnel: `udp ... in VXLAN 7`.
    pub fn name(&self, index: u32) -> Option<String> {
        let key = self.get(index)?;
        Some(match self.tunnels.get(&index) {
            Some(tunnel) => format!("{key} in {tunnel}"),
            None => key.to_string(),
        })
    }

    /// Returns the index of a flow outside tunnels, if the table has it.
    pub fn find(&self, key: &FlowKey) -> Option<u32> {
        self.indices.get(key).copied()
    }

    /// Returns the flow of this index.
    pub fn get(&self, index: u32) -> Option<FlowKey> {
        self.keys.get(index as usize).copied()
    }

    /// Iterates over all flows in order of index.
    pub fn iter(&self) -> impl Iterator<Item = (u32, FlowKey)> + '_ {
        (0u32..).zip(self.keys.iter().copied())
    }

    /// Returns the number of flows.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// Returns the index of the last key. It is below [`NO_FLOW`], because a table of 2^32 keys
/// would not fit in memory.
fn last_index(keys: &[FlowKey]) -> u32 {
    u32::try_from(keys.len() - 1).unwrap_or(NO_FLOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trip() {
        let text =
            "0 udp 10.1.1.1 40001 10.1.2.1 5001\n1 ethertype 0x0806\n2 tcp ::1 1 fe80::2 65535\n";
        let table = FlowTable::parse(text).unwrap();
        assert_eq!(table.to_text(), text);
        assert_eq!(table.len(), 3);
        assert_eq!(table.get(1), Some(FlowKey::EtherType(0x0806)));
        assert_eq!(table.get(3), None);
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, expected) in [
            ("1 ethertype 0x0806", "line 1: expected index 0, not \"1\""),
            (
                "0 ethertype 0x0806\n1 ethertype 2054",
                "line 2: \"2054\" is not an EtherType",
            ),
            (
                "0 udp 10.1.1.1 x 10.1.2.1 5001",
                "line 1: \"x\" is not a port",
            ),
            (
                "0 udp 10.1.1 1 10.1.2.1 5001",
                "line 1: \"10.1.1\" is not an IP address",
            ),
            (
                "0 ethertype 0x0806\n1 ethertype 0x0806",
                "line 2: ethertype 0x0806 is there twice",
            ),
            ("0 sctp", "line 1: expected \"udp SRC"),
            ("\n", "line 1: expected index 0, not \"\""),
        ] {
            let error = FlowTable::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
