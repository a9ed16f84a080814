// SPDX-License-Identifier: MIT OR Apache-2.0
//! Evaluates an expression on a packet: from left to right, and no further than needed.

use super::layers::{Cut, Payload, be16, bytes, payload};
use super::test::{
    ARP, FRAGMENT, Family, IPV4, IPV6, NetOf, Node, Placed, RARP, SCTP, Side, TCP, Test, UDP,
};
use crate::frame::Frame;
use crate::link::Link;
use crate::tunnels::is_vlan;

/// Length of an IPv6 header.
const IPV6_BYTES: usize = 40;

/// Returns whether the packet has the property; `Cut` if the captured bytes end before it shows.
pub(super) fn evaluate(node: &Node<Placed>, frame: &Frame<'_>) -> Result<bool, Cut> {
    match node {
        Node::Test(placed) => holds(placed, frame),
        Node::Not(inner) => Ok(!evaluate(inner, frame)?),
        Node::And(left, right) => Ok(evaluate(left, frame)? && evaluate(right, frame)?),
        Node::Or(left, right) => Ok(evaluate(left, frame)? || evaluate(right, frame)?),
    }
}

fn holds(placed: &Placed, frame: &Frame<'_>) -> Result<bool, Cut> {
    match placed.test {
        Test::AtMost(most) => return Ok(frame.packet_bytes <= most),
        Test::AtLeast(least) => return Ok(frame.packet_bytes >= least),
        Test::Mac(side, mac) => {
            if frame.link != Some(Link::Ethernet) {
                return Ok(false);
            }
            let [to, from] = [bytes::<6>(frame.bytes, 0)?, bytes::<6>(frame.bytes, 6)?];
            return Ok(side.of(*from == mac, *to == mac));
        }
        _ => {}
    }
    let Some(inner) = payload(frame, placed.tags)? else {
        return Ok(false);
    };
    match placed.test {
        Test::Vlan(wanted) => {
            if !is_vlan(inner.ether_type) {
                return Ok(false);
            }
            match wanted {
                None => Ok(true),
                Some(wanted) => Ok(be16(inner.bytes, 0)? & 0xfff == wanted),
            }
        }
        Test::EtherType(wanted) => Ok(inner.ether_type == wanted),
        Test::Protocol(family, wanted) => protocol(&inner, family, wanted),
        Test::Net(of, side, net) => {
            let Some((from, to)) = addresses(&inner, of)? else {
                return Ok(false);
            };
            Ok(side.of(net.has(from), net.has(to)))
        }
        Test::Port(of, side, first, last) => port(&inner, of, side, first..=last),
        Test::Mac(..) | Test::AtMost(_) | Test::AtLeast(_) => Ok(false), // judged above
    }
}

/// Returns whether the payload is an IP packet with this protocol. In IPv6 it may stand behind a
/// fragment header.
fn protocol(inner: &Payload<'_>, family: Option<Family>, wanted: u8) -> Result<bool, Cut> {
    match inner.ether_type {
        IPV4 if family != Some(Family::V6) => Ok(bytes::<1>(inner.bytes, 9)?[0] == wanted),
        IPV6 if family != Some(Family::V4) => {
            let next = bytes::<1>(inner.bytes, 6)?[0];
            let is_behind = || Ok(bytes::<1>(inner.bytes, IPV6_BYTES)?[0] == wanted);
            Ok(next == wanted || next == FRAGMENT && is_behind()?)
        }
        _ => Ok(false),
    }
}

/// Addresses of both ends, as they stand in the frame.
type Ends<'a> = (&'a [u8], &'a [u8]);

/// Returns the addresses of both ends, if the payload is of the protocol.
fn addresses<'a>(inner: &Payload<'a>, of: Option<NetOf>) -> Result<Option<Ends<'a>>, Cut> {
    let wanted = match inner.ether_type {
        IPV4 => NetOf::Ip(Family::V4),
        IPV6 => NetOf::Ip(Family::V6),
        ARP => NetOf::Arp,
        RARP => NetOf::Rarp,
        _ => return Ok(None),
    };
    if of.is_some_and(|of| of != wanted) {
        return Ok(None);
    }
    let (from, to, length) = match wanted {
        NetOf::Ip(Family::V4) => (12, 16, 4),
        NetOf::Ip(Family::V6) => (8, 24, 16),
        NetOf::Arp | NetOf::Rarp => (14, 24, 4),
    };
    let part = |at: usize| inner.bytes.get(at..at + length).ok_or(Cut);
    Ok(Some((part(from)?, part(to)?)))
}

fn port(
    inner: &Payload<'_>,
    of: Option<u8>,
    side: Side,
    wanted: std::ops::RangeInclusive<u16>,
) -> Result<bool, Cut> {
    let (protocol, at) = match inner.ether_type {
        IPV4 => {
            let first = bytes::<1>(inner.bytes, 0)?[0];
            let protocol = bytes::<1>(inner.bytes, 9)?[0];
            let is_later_fragment = be16(inner.bytes, 6)? & 0x1fff != 0;
            if is_later_fragment {
                return Ok(false);
            }
            (protocol, usize::from(first & 0xf) * 4)
        }
        IPV6 => (bytes::<1>(inner.bytes, 6)?[0], IPV6_BYTES),
        _ => return Ok(false),
    };
    let is_of = match of {
        Some(of) => protocol == of,
        None => matches!(protocol, TCP | UDP | SCTP),
    };
    if !is_of {
        return Ok(false);
    }
    let (from, to) = (be16(inner.bytes, at)?, be16(inner.bytes, at + 2)?);
    Ok(side.of(wanted.contains(&from), wanted.contains(&to)))
}
