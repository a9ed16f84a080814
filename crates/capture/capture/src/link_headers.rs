// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the link header of a captured packet: of Ethernet, Linux's cooked captures, wide-area
//! links and netfilter's log. `wireless` has those of IEEE 802.11.

use crate::frame::Frame;
use crate::headers::{Ahead, Other, Place};
use crate::link::Link;
use crate::segment::HostDirection;
use crate::tunnels::{self, ip_ether_type};
use crate::wireless;

/// Unnumbered information, the control byte of frames that carry data (RFC 2427, 2).
const UNNUMBERED: u8 = 0x03;
/// Ethernet's two addresses.
const ADDRESSES_BYTES: usize = 12;

/// Moves past the link header; returns the type of the header that follows. Sets the direction
/// where the link header states it.
#[inline]
pub(crate) fn begin(
    link: Option<Link>,
    place: &mut Place<'_>,
    host_direction: &mut HostDirection,
) -> Result<Ahead, Other> {
    match link.ok_or(Other::UnknownLink)? {
        Link::Ethernet => Ok(Ahead::Ethernet),
        Link::RawIp => Ok(Ahead::Ip),
        Link::Loopback => {
            place.skip(4)?;
            Ok(Ahead::Ip)
        }
        Link::Cooked {
            header_bytes,
            type_at,
        } => {
            let header = place.bytes.get(..header_bytes).ok_or(Other::Cut)?;
            *host_direction = cooked_direction(header, type_at);
            let kind = u16::from_be_bytes([header[type_at], header[type_at + 1]]);
            place.skip(header_bytes)?;
            Ok(Ahead::EtherType(kind))
        }
        Link::FrameRelay => frame_relay(place),
        Link::CiscoHdlc => {
            let header = place.head::<4>()?;
            place.skip(4)?;
            Ok(Ahead::EtherType(u16::from_be_bytes([header[2], header[3]])))
        }
        Link::Wifi => Ok(Ahead::Wifi { is_padded: false }),
        Link::Radiotap => wireless::radiotap(place),
        Link::Ppi => wireless::ppi(place),
        Link::Nflog => nflog(place, host_direction),
        Link::Ppp => Ok(Ahead::Ppp),
        Link::Serial => match place.head::<1>()?[0] {
            0x0f | 0x8f => begin(Some(Link::CiscoHdlc), place, host_direction),
            _ => Ok(Ahead::Ppp),
        },
        Link::PppDirected { is_address } => {
            *host_direction = match place.head::<1>()?[0] {
                0 => HostDirection::In,
                _ => HostDirection::Out,
            };
            place.skip(if is_address { 2 } else { 1 })?;
            Ok(Ahead::Ppp)
        }
        Link::PppoeSession => Ok(Ahead::EtherType(tunnels::PPPOE)),
        Link::Pktap => pktap(place, host_direction),
        Link::SwitchTag { tag_bytes } => {
            place.skip(ADDRESSES_BYTES + tag_bytes)?;
            let kind = *place.head::<2>()?;
            place.skip(2)?;
            Ok(Ahead::EtherType(u16::from_be_bytes(kind)))
        }
        Link::TagPrepended => {
            place.skip(4)?;
            Ok(Ahead::Ethernet)
        }
        Link::Ipoib => {
            place.skip(40)?;
            let header = place.head::<4>()?;
            place.skip(4)?;
            Ok(Ahead::EtherType(u16::from_be_bytes([header[0], header[1]])))
        }
    }
}

/// Moves past the link header and the headers below the network's. Returns the EtherType; the
/// place is behind it.
pub(crate) fn outermost<'a>(frame: &Frame<'a>) -> Result<(u16, Place<'a>), Other> {
    let mut place = Place {
        bytes: frame.bytes,
        wire_bytes: frame.packet_bytes,
        missing_bytes: 0,
    };
    let mut ahead = begin(frame.link, &mut place, &mut HostDirection::Unknown)?;
    loop {
        // The loop ends: each turn but the last moves from a link's header to the one inside.
        ahead = match ahead {
            Ahead::EtherType(kind) => return Ok((kind, place)),
            Ahead::Ip => return Ok((ip_ether_type(place.head::<1>()?[0] >> 4), place)),
            Ahead::Ethernet => ethernet(&mut place)?,
            Ahead::Wifi { is_padded } => wireless::data_frame(is_padded, &mut place)?,
            Ahead::Llc => llc(&mut place)?,
            Ahead::Ppp => ppp(&mut place)?,
            Ahead::Protocol(_) => return Err(Other::NotTcp),
        };
    }
}

/// Returns the length that a packet would have as an Ethernet frame. A packet whose headers
/// cannot be read counts as it is.
pub(crate) fn length_as_ethernet(frame: &Frame<'_>) -> u32 {
    let bytes = frame.packet_bytes;
    let fixed = frame.link.and_then(Link::header_bytes);
    let header = fixed.or_else(|| {
        let (_, place) = outermost(frame).ok()?;
        u32::try_from(frame.bytes.len().checked_sub(place.bytes.len())?).ok()
    });
    header.map_or(bytes, |header| {
        bytes
            .saturating_sub(header)
            .saturating_add(units::ethernet::HEADER_BYTES)
    })
}

/// Returns the direction at the host. Each version of the header stores it in another place.
fn cooked_direction(header: &[u8], type_at: usize) -> HostDirection {
    let kind = if type_at == 0 { header[10] } else { header[1] };
    match kind {
        0 => HostDirection::In,
        4 => HostDirection::Out,
        _ => HostDirection::Unknown,
    }
}

/// Parses an Ethernet header.
#[inline]
pub(crate) fn ethernet(place: &mut Place<'_>) -> Result<Ahead, Other> {
    const BYTES: usize = units::ethernet::HEADER_BYTES as usize;
    let header = place.head::<BYTES>()?;
    let kind = u16::from_be_bytes([header[12], header[13]]);
    place.skip(BYTES)?;
    Ok(Ahead::EtherType(kind))
}

/// Parses the header of logical link control (IEEE 802.2), with SNAP's where it follows.
pub(crate) fn llc(place: &mut Place<'_>) -> Result<Ahead, Other> {
    match *place.head::<3>()? {
        // SNAP.
        [0xaa, 0xaa, UNNUMBERED] => {
            place.skip(3)?;
            snap(place)
        }
        // IP without SNAP (RFC 948).
        [0x06, 0x06, UNNUMBERED] => {
            place.skip(3)?;
            Ok(Ahead::Ip)
        }
        _ => Err(Other::NotTcp),
    }
}

/// Parses an organization and its protocol: an EtherType (RFC 1042, IEEE 802.1H), or a bridged
/// Ethernet frame (RFC 2427, 4.2) with its checksum behind it or without.
fn snap(place: &mut Place<'_>) -> Result<Ahead, Other> {
    let h = *place.head::<5>()?;
    place.skip(5)?;
    match ([h[0], h[1], h[2]], u16::from_be_bytes([h[3], h[4]])) {
        ([0, 0, 0 | 0xf8], kind) => Ok(Ahead::EtherType(kind)),
        ([0, 0x80, 0xc2], 1 | 7) => Ok(Ahead::Ethernet),
        _ => Err(Other::NotTcp),
    }
}

/// Parses PPP's header: address and control, which may be left out, and a protocol of two bytes,
/// or of one if its lowest bit is set (RFC 1661, 6.5).
pub(crate) fn ppp(place: &mut Place<'_>) -> Result<Ahead, Other> {
    if place.head::<2>()? == &[0xff, UNNUMBERED] {
        place.skip(2)?;
    }
    let first = place.head::<1>()?[0];
    let protocol = if first & 1 != 0 {
        place.skip(1)?;
        u16::from(first)
    } else {
        let both = *place.head::<2>()?;
        place.skip(2)?;
        u16::from_be_bytes(both)
    };
    match protocol {
        0x21 | 0x57 => Ok(Ahead::Ip),
        0x0281 => Ok(Ahead::EtherType(0x8847)),
        0x0283 => Ok(Ahead::EtherType(0x8848)),
        // Compressed or encrypted: MPPE, deflate, ECP.
        0x53 | 0xfd | 0xfb => Err(Other::Encrypted),
        _ => Err(Other::NotTcp),
    }
}

/// Parses Apple's header of a packet's interface and process: its length, then, as little-endian
/// words, the type of the record and the link type of the packet behind it.
fn pktap(place: &mut Place<'_>, host_direction: &mut HostDirection) -> Result<Ahead, Other> {
    const FLAGS_AT: usize = 36;
    let h = *place.head::<{ FLAGS_AT + 4 }>()?;
    let word = |at: usize| u32::from_le_bytes([h[at], h[at + 1], h[at + 2], h[at + 3]]);
    let header_bytes = usize::try_from(word(0)).unwrap_or(usize::MAX);
    if header_bytes < FLAGS_AT + 4 {
        return Err(Other::Malformed);
    }
    place.skip(header_bytes)?;
    let inner = i32::try_from(word(8)).ok().and_then(Link::from_number);
    if inner == Some(Link::Pktap) {
        return Err(Other::Malformed);
    }
    let ahead = begin(inner, place, host_direction)?;
    *host_direction = match word(FLAGS_AT) & 3 {
        1 => HostDirection::In,
        2 => HostDirection::Out,
        _ => *host_direction,
    };
    Ok(ahead)
}

/// Parses a Frame Relay header: an address of two to four bytes (Q.922), then the control byte
/// and a protocol's number (RFC 2427), or, as Cisco has it, an EtherType.
fn frame_relay(place: &mut Place<'_>) -> Result<Ahead, Other> {
    /// The lowest bit of an address's last byte is set.
    const LAST: u8 = 1;
    let mut address_bytes = 1;
    loop {
        let byte = *place.bytes.get(address_bytes - 1).ok_or(Other::Cut)?;
        match (address_bytes, byte & LAST != 0) {
            (2..=4, true) => break,
            (1..=3, false) => address_bytes += 1,
            _ => return Err(Other::Malformed),
        }
    }
    place.skip(address_bytes)?;
    let first = place.head::<2>()?;
    if first[0] != UNNUMBERED {
        place.skip(2)?;
        return Ok(Ahead::EtherType(u16::from_be_bytes(*first)));
    }
    place.skip(1)?;
    if first[1] == 0 {
        place.skip(1)?; // padding
    }
    let protocol = place.head::<1>()?[0];
    place.skip(1)?;
    match protocol {
        0xcc | 0x8e => Ok(Ahead::Ip),
        0x80 => snap(place),
        _ => Err(Other::NotTcp),
    }
}

/// Finds the packet among the attributes of a netfilter log entry. Their numbers are in the byte
/// order of the host that logged; the type of the first attribute, which is small, shows it.
fn nflog(place: &mut Place<'_>, host_direction: &mut HostDirection) -> Result<Ahead, Other> {
    const PACKET_HEADER: u16 = 1;
    const PAYLOAD: u16 = 9;
    place.skip(4)?; // address family, version, group
    let first = place.head::<4>()?;
    let is_big_endian = first[3] != 0 && first[2] == 0;
    let number = |high: [u8; 2]| {
        if is_big_endian {
            u16::from_be_bytes(high)
        } else {
            u16::from_le_bytes(high)
        }
    };
    // The loop ends: each attribute takes at least 4 bytes.
    loop {
        let h = *place.head::<4>().map_err(|_| Other::Cut)?;
        let length = usize::from(number([h[0], h[1]]));
        let value_bytes = length.checked_sub(4).ok_or(Other::Malformed)?;
        match number([h[2], h[3]]) & 0x7fff {
            PAYLOAD => {
                place.skip(4)?;
                place.limit(u32::try_from(value_bytes).unwrap_or(u32::MAX));
                return Ok(Ahead::Ip);
            }
            // EtherType, hook, padding.
            PACKET_HEADER => {
                *host_direction = match place.bytes.get(6) {
                    Some(1) => HostDirection::In,
                    Some(3) => HostDirection::Out,
                    _ => HostDirection::Unknown,
                };
            }
            _ => {}
        }
        place.skip(length.next_multiple_of(4))?;
    }
}
