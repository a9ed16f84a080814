// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the MAC addresses of neighbours: the kernel asks for them (ARP, neighbour discovery) and
//! keeps them.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, UdpSocket};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};

use crate::rtnetlink::dump;

/// UDP port discard (RFC 863), where nobody listens: to send there, the kernel must first find the
/// MAC address.
const DISCARD: u16 = 9;

/// The kernel's state of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has this MAC address: confirmed, being confirmed, or set by hand.
    Known([u8; 6]),
    /// It had this MAC address, which nobody has confirmed for a while. The kernel confirms it once
    /// something is sent.
    Stale([u8; 6]),
    /// The kernel is asking for its MAC address.
    Asked,
    /// It did not answer.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Interface index of the device.
    pub device: u32,
    /// Its IPv4 or IPv6 address.
    pub address: IpAddr,
    /// Its state, with its MAC address.
    pub state: State,
}

/// Makes the kernel ask for a neighbour, or confirm a stale one, by sending a datagram of one byte.
/// `device` is the scope of a link-local address.
///
/// # Errors
/// If there is no route to the address.
pub fn ask(address: IpAddr, device: u32) -> io::Result<()> {
    let (any, to): (SocketAddr, SocketAddr) = match address {
        IpAddr::V4(address) => (([0; 4], 0).into(), (address, DISCARD).into()),
        IpAddr::V6(address) => (
            ([0; 16], 0).into(),
            SocketAddrV6::new(address, DISCARD, 0, device).into(),
        ),
    };
    UdpSocket::bind(any)?.send_to(&[0], to).map(|_| ())
}

/// Returns all neighbours that the kernel knows, IPv4 and IPv6.
pub fn known() -> io::Result<Vec<Neighbour>> {
    let all = dump(RouteNetlinkMessage::GetNeighbour(
        NeighbourMessage::default(),
    ))?;
    let neighbours = all.iter().filter_map(|entry| match entry {
        RouteNetlinkMessage::NewNeighbour(entry) => neighbour(entry),
        _ => None,
    });
    Ok(neighbours.collect())
}

fn neighbour(entry: &NeighbourMessage) -> Option<Neighbour> {
    let mut address = None;
    let mut mac = None;
    for attribute in &entry.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(v4)) => {
                address = Some(IpAddr::V4(*v4));
            }
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(v6)) => {
                address = Some(IpAddr::V6(*v6));
            }
            // NDA_LLADDR; the addresses of devices other than Ethernet's have other lengths.
            NeighbourAttribute::LinkLocalAddress(bytes) => {
                mac = <[u8; 6]>::try_from(bytes.as_slice()).ok();
            }
            _ => {}
        }
    }
    let state = match entry.header.state {
        NeighbourState::Failed => State::Failed,
        NeighbourState::Incomplete | NeighbourState::None => State::Asked,
        NeighbourState::Stale => State::Stale(mac?),
        _ => State::Known(mac?),
    };
    Some(Neighbour {
        device: entry.header.ifindex,
        address: address?,
        state,
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn entry(state: NeighbourState, to: NeighbourAddress, mac: &[u8]) -> NeighbourMessage {
        let mut entry = NeighbourMessage::default();
        entry.header.ifindex = 7;
        entry.header.state = state;
        entry.attributes = vec![
            NeighbourAttribute::Destination(to),
            NeighbourAttribute::LinkLocalAddress(mac.to_vec()),
        ];
        entry
    }

    #[test]
    fn states_and_families() {
        let v4 = Ipv4Addr::new(10, 1, 0, 2);
        let v6 = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
        for (state, expected) in [
            (NeighbourState::Reachable, State::Known(MAC)),
            (NeighbourState::Delay, State::Known(MAC)),
            (NeighbourState::Probe, State::Known(MAC)),
            (NeighbourState::Permanent, State::Known(MAC)),
            (NeighbourState::Stale, State::Stale(MAC)),
            (NeighbourState::Incomplete, State::Asked),
            (NeighbourState::Failed, State::Failed),
        ] {
            for (to, address) in [
                (NeighbourAddress::Inet(v4), IpAddr::V4(v4)),
                (NeighbourAddress::Inet6(v6), IpAddr::V6(v6)),
            ] {
                let expected = Neighbour {
                    device: 7,
                    address,
                    state: expected,
                };
                assert_eq!(neighbour(&entry(state, to, &MAC)), Some(expected));
            }
        }
        // One address has InfiniBand's length, the other none.
        let to = NeighbourAddress::Inet(v4);
        let long = entry(NeighbourState::Reachable, to, &[0; 20]);
        assert_eq!(neighbour(&long), None);
        assert_eq!(neighbour(&NeighbourMessage::default()), None);
    }

    #[test]
    fn the_kernel_has_a_table() {
        known().unwrap();
    }
}
