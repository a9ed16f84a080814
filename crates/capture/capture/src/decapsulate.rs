// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks from the first byte of a captured packet to its TCP header, through VLANs and
//! tunnels, with the lengths that the IP headers state.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use units::ethernet::IPV4_HEADER_BYTES;

use crate::encapsulation::Encapsulations;
use crate::frame::Frame;
use crate::headers::{Ahead, Endpoints, Ip, Other, Outline, Place, TcpPacket};
use crate::link_headers::{begin, ethernet, llc, ppp};
use crate::tunnels;
use crate::wireless;

/// Most layers of a packet. No real network has more; a packet with more is hostile.
const MOST_LAYERS: usize = 16;

const IPV4_BYTES: usize = IPV4_HEADER_BYTES as usize;
const IPV6_BYTES: usize = 40;

/// Finds the TCP header of a packet inside any tunnels, and stores in `outline` what it
/// passed. The function is inlined, so that a caller without an outline pays nothing for it.
#[inline]
pub(crate) fn decapsulate<'a>(
    frame: &Frame<'a>,
    encapsulations: &mut Encapsulations,
    outline: &mut Outline<'a>,
) -> Result<TcpPacket<'a>, Other> {
    let mut place = Place {
        bytes: frame.bytes,
        wire_bytes: frame.packet_bytes,
        missing_bytes: 0,
    };
    let mut host_direction = frame.host_direction;
    let mut ahead = begin(frame.link, &mut place, &mut host_direction)?;
    let mut encapsulation = 0;
    let mut ip = None;
    for _ in 0..MOST_LAYERS {
        let layer;
        outline.last = Some(ahead);
        (ahead, layer) = match (ahead, &ip) {
            (Ahead::Ethernet, _) => (ethernet(&mut place)?, None),
            (Ahead::Wifi { is_padded }, _) => (wireless::data_frame(is_padded, &mut place)?, None),
            (Ahead::Llc, _) => (llc(&mut place)?, None),
            (Ahead::Ppp, _) => (ppp(&mut place)?, None),
            (Ahead::EtherType(kind), _) => {
                let is_outermost = outline.ether_type.is_none_or(tunnels::is_vlan) && ip.is_none();
                if is_outermost {
                    (outline.ether_type, outline.payload) = (Some(kind), place.bytes);
                }
                tunnels::ether_type(kind, &mut place)?
            }
            (Ahead::Ip, _) => {
                let version = place.head::<1>()?[0] >> 4;
                let found = internet(&mut place);
                if !matches!(found, Err(Other::Cut | Other::Malformed)) {
                    outline
                        .ether_type
                        .get_or_insert(tunnels::ip_ether_type(version));
                }
                let (header, protocol) = found?;
                // What a fragment lacks comes in the next ones.
                let is_fragment = |ip: &Ip| ip.first_fragment;
                if !ip.as_ref().is_some_and(is_fragment) {
                    outline.missing_bytes = place.missing_bytes;
                }
                ip = Some(header);
                (Ahead::Protocol(protocol), None)
            }
            (Ahead::Protocol(6), Some(ip)) => {
                return Ok(TcpPacket {
                    tcp: place.bytes,
                    tcp_bytes: place.wire_bytes,
                    ip: *ip,
                    encapsulation,
                    host_direction,
                });
            }
            (Ahead::Protocol(protocol), Some(ip)) => {
                if protocol == 17 {
                    outline.datagram = Some(Endpoints {
                        ip: *ip,
                        header: place.bytes,
                        encapsulation,
                    });
                }
                tunnels::protocol(protocol, ip, &mut place)?
            }
            (Ahead::Protocol(_), None) => return Err(Other::NotTcp),
        };
        if let Some(layer) = layer {
            encapsulation = encapsulations.within(encapsulation, layer);
        }
    }
    Err(Other::NotTcp)
}

/// Reads an IP header and its extensions, up to the transport header.
#[inline]
fn internet(place: &mut Place<'_>) -> Result<(Ip, u8), Other> {
    match place.head::<1>()?[0] >> 4 {
        4 => ipv4(place),
        6 => ipv6(place),
        _ => Err(Other::Malformed),
    }
}

#[inline]
fn ipv4(place: &mut Place<'_>) -> Result<(Ip, u8), Other> {
    let h = place.head::<IPV4_BYTES>()?;
    let header_bytes = usize::from(h[0] & 15) * 4;
    if header_bytes < IPV4_BYTES {
        return Err(Other::Malformed);
    }
    // Linux writes 0 if the length does not fit, and so do devices that segment.
    match u16::from_be_bytes([h[2], h[3]]) {
        0 => {}
        total if usize::from(total) < header_bytes => return Err(Other::Malformed),
        total => place.limit(total.into()),
    }
    let fragment = u16::from_be_bytes([h[6], h[7]]);
    if fragment & 0x1fff != 0 {
        return Err(Other::LaterFragment);
    }
    let address = |i: usize| IpAddr::V4(Ipv4Addr::new(h[i], h[i + 1], h[i + 2], h[i + 3]));
    let ip = Ip {
        from: address(12),
        to: address(16),
        ecn: h[1] & 3,
        id: u16::from_be_bytes([h[4], h[5]]),
        hop_limit: h[8],
        first_fragment: fragment & 0x2000 != 0,
    };
    place.skip(header_bytes)?;
    Ok((ip, h[9]))
}

fn ipv6(place: &mut Place<'_>) -> Result<(Ip, u8), Other> {
    let h = place.head::<IPV6_BYTES>()?;
    let length = u16::from_be_bytes([h[4], h[5]]);
    if length != 0 {
        place.limit(u32::from(length) + IPV6_BYTES as u32);
    }
    let address = |i: usize| {
        let octets: [u8; 16] = h[i..i + 16].try_into().unwrap_or_default();
        IpAddr::V6(Ipv6Addr::from(octets))
    };
    let mut ip = Ip {
        from: address(8),
        to: address(24),
        ecn: (h[1] >> 4) & 3,
        id: 0,
        hop_limit: h[7],
        first_fragment: false,
    };
    let mut next = h[6];
    place.skip(IPV6_BYTES)?;
    // The loop ends: each step takes at least 8 bytes.
    loop {
        let header_bytes = match next {
            // Hop-by-hop, routing, destination, mobility, HIP and shim6 headers.
            0 | 43 | 60 | 135 | 139 | 140 => (usize::from(place.head::<8>()?[1]) + 1) * 8,
            // Authentication header.
            51 => (usize::from(place.head::<8>()?[1]) + 2) * 4,
            44 => {
                let fragment = place.head::<8>()?;
                let offset = u16::from_be_bytes([fragment[2], fragment[3]]);
                if offset >> 3 != 0 {
                    return Err(Other::LaterFragment);
                }
                ip.first_fragment = offset & 1 != 0;
                8
            }
            _ => return Ok((ip, next)),
        };
        let header = place.bytes;
        if next == 0 && length == 0 {
            if let Some(jumbo) = jumbo(&header[..header_bytes.min(header.len())]) {
                // A packet is at most as long as it was on the wire.
                place.limit(jumbo.min(place.wire_bytes));
            }
        }
        next = header[0];
        place.skip(header_bytes)?;
    }
}

/// Returns the jumbo payload option (RFC 2675) of a hop-by-hop header.
fn jumbo(header: &[u8]) -> Option<u32> {
    let mut options = header.get(2..)?;
    loop {
        match *options {
            [0, ref rest @ ..] => options = rest,
            [0xc2, 4, a, b, c, d, ..] => {
                let length = u32::from_be_bytes([a, b, c, d]);
                return (length > u32::from(u16::MAX)).then_some(length);
            }
            [_, length, ref rest @ ..] => options = rest.get(usize::from(length)..)?,
            _ => return None,
        }
    }
}
