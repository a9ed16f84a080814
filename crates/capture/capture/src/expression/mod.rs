// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses packets by an expression in the syntax of capture filters (pcap-filter(7)), such as
//! `host 10.1.1.1 and (tcp port 80 or 443)`.
//!
//! Read are hosts, nets, ports and ranges of ports, each of a direction; protocols; `ether
//! host`; `vlan`; `less` and `greater`; and, or, not and parentheses. Names of hosts and ports,
//! and arithmetic on bytes (`tcp[13] & 2 != 0`), are refused.

mod evaluate;
mod layers;
mod parse;
mod test;
mod tokens;

use std::str::FromStr;

use test::{Node, Placed};

use crate::frame::Frame;

/// A filter expression that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression(Node<Placed>);

impl Expression {
    /// Returns whether a packet is chosen. As with a compiled filter, one that the snap length
    /// cut before what decides is not.
    pub(crate) fn matches(&self, frame: &Frame<'_>) -> bool {
        evaluate::evaluate(&self.0, frame).unwrap_or(false)
    }
}

impl FromStr for Expression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse::parse(text).map(Self)
    }
}

#[cfg(test)]
mod tests;
