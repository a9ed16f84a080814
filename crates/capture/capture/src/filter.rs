// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects flows by the fields that people know, such as `udp dport 5001`.

use std::net::IpAddr;
use std::str::FromStr;

use crate::flows::{FlowKey, Proto};

/// Conditions, all of which a flow must meet: `tcp`, `udp`, `src ADDRESS`,
/// `dst ADDRESS`, `host ADDRESS` (either), `sport N`, `dport N`, `port N`
/// (either). A flow as the flow table writes it names just that flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowFilter(Vec<Condition>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Proto(Proto),
    Src(IpAddr),
    Dst(IpAddr),
    Host(IpAddr),
    SrcPort(u16),
    DstPort(u16),
    Port(u16),
    Is(FlowKey),
}

impl FlowFilter {
    /// Returns whether the flow meets all conditions.
    #[must_use]
    pub fn matches(&self, key: &FlowKey) -> bool {
        self.0.iter().all(|condition| condition.holds(key))
    }
}

impl Condition {
    fn holds(self, key: &FlowKey) -> bool {
        let FlowKey::Ports {
            proto,
            src,
            sport,
            dst,
            dport,
        } = *key
        else {
            return self == Self::Is(*key);
        };
        match self {
            Self::Proto(wanted) => proto == wanted,
            Self::Src(wanted) => src == wanted,
            Self::Dst(wanted) => dst == wanted,
            Self::Host(wanted) => src == wanted || dst == wanted,
            Self::SrcPort(wanted) => sport == wanted,
            Self::DstPort(wanted) => dport == wanted,
            Self::Port(wanted) => sport == wanted || dport == wanted,
            Self::Is(wanted) => *key == wanted,
        }
    }
}

impl FromStr for FlowFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(key) = text.parse() {
            return Ok(Self(vec![Condition::Is(key)]));
        }
        let mut words = text.split_ascii_whitespace();
        let mut conditions = Vec::new();
        while let Some(word) = words.next() {
            conditions.push(match word {
                "tcp" => Condition::Proto(Proto::Tcp),
                "udp" => Condition::Proto(Proto::Udp),
                "src" => Condition::Src(value(word, words.next())?),
                "dst" => Condition::Dst(value(word, words.next())?),
                "host" => Condition::Host(value(word, words.next())?),
                "sport" => Condition::SrcPort(value(word, words.next())?),
                "dport" => Condition::DstPort(value(word, words.next())?),
                "port" => Condition::Port(value(word, words.next())?),
                other => {
                    return Err(format!(
                        "{other:?} is none of tcp, udp, src, dst, host, sport, dport, port"
                    ));
                }
            });
        }
        if conditions.is_empty() {
            return Err("expected conditions such as \"udp dport 5001\"".into());
        }
        Ok(Self(conditions))
    }
}

fn value<T: FromStr>(name: &str, word: Option<&str>) -> Result<T, String> {
    let expected = if name.ends_with("port") {
        "a port"
    } else {
        "an IP address"
    };
    let word = word.ok_or_else(|| format!("{name} must be followed by {expected}"))?;
    word.parse()
        .map_err(|_| format!("{name} must be followed by {expected}, not {word:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions() {
        let key: FlowKey = "udp 10.1.1.1 40001 10.1.2.1 5001".parse().unwrap();
        for (text, expected) in [
            ("udp", true),
            ("tcp", false),
            ("udp dport 5001", true),
            ("udp dport 40001", false),
            ("port 40001 host 10.1.2.1", true),
            ("src 10.1.2.1", false),
            ("sport 40001 dst 10.1.2.1 src 10.1.1.1", true),
            ("udp 10.1.1.1 40001 10.1.2.1 5001", true),
            ("udp 10.1.1.1 40002 10.1.2.1 5001", false),
            ("ethertype 0x0806", false),
        ] {
            assert_eq!(
                text.parse::<FlowFilter>().unwrap().matches(&key),
                expected,
                "{text}"
            );
        }
        let arp = FlowKey::EtherType(0x0806);
        assert!(
            "ethertype 0x0806"
                .parse::<FlowFilter>()
                .unwrap()
                .matches(&arp)
        );
        assert!(!"port 5".parse::<FlowFilter>().unwrap().matches(&arp));
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, expected) in [
            ("", "expected conditions"),
            ("udp 5001", "\"5001\" is none of tcp, udp"),
            ("dport", "dport must be followed by a port"),
            ("dport x", "dport must be followed by a port, not \"x\""),
            (
                "host 1.2.3",
                "host must be followed by an IP address, not \"1.2.3\"",
            ),
        ] {
            let error = text.parse::<FlowFilter>().unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
