// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses one layer between a link header and the inner IP packet: tags, labels and tunnels,
//! skipping what each one's specification allows to skip.

use crate::encapsulation::Layer;
use crate::headers::{Ahead, Ip, Other, Place, Step};
use crate::wireless::tunnelled_data_frame;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TRANSPARENT_ETHERNET: u16 = 0x6558;
/// Provider backbone bridging (IEEE 802.1ah): a service tag before the customer's frame.
const PROVIDER_BACKBONE: u16 = 0x88e7;
/// MikroTik's Ethernet over IP, in GRE of version 1.
const EOIP: u16 = 0x6400;
/// Port of CAPWAP's data.
const CAPWAP: u16 = 5247;
const ERSPAN_2: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;
/// A PPPoE session's packet.
pub(crate) const PPPOE: u16 = 0x8864;
/// Packets that a router redirects to a cache, in GRE.
const WCCP: u16 = 0x883e;
const MACSEC: u16 = 0x88e5;
/// A chain of services (RFC 8300).
const NSH: u16 = 0x894f;
const L2TP: u16 = 1701;
const TZSP: u16 = 37008;

fn be16(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high, low])
}

fn be24(bytes: &[u8; 3]) -> u32 {
    u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]])
}

/// Returns whether an EtherType is that of a VLAN tag: 802.1Q, 802.1ad, or the one used before
/// 802.1ad.
#[inline]
pub(crate) fn is_vlan(kind: u16) -> bool {
    matches!(kind, 0x8100 | 0x88a8 | 0x9100)
}

/// Returns the EtherType of an IP version.
#[inline]
pub(crate) fn ip_ether_type(version: u8) -> u16 {
    if version == 6 { IPV6 } else { IPV4 }
}

/// Parses the header that an EtherType announces.
#[inline]
pub(crate) fn ether_type(kind: u16, place: &mut Place<'_>) -> Result<Step, Other> {
    match kind {
        IPV4 | IPV6 => Ok((Ahead::Ip, None)),
        tag if is_vlan(tag) => {
            let tag = place.head::<4>()?;
            let vlan = be16(tag[0], tag[1]) & 0xfff;
            place.skip(4)?;
            // VLAN 0 only sets a priority.
            let layer = (vlan != 0).then_some(Layer::Vlan(vlan));
            Ok((Ahead::EtherType(be16(tag[2], tag[3])), layer))
        }
        // IEEE 802.3: a length, and logical link control behind it.
        ..=1500 => Ok((Ahead::Llc, None)),
        0x8847 | 0x8848 => mpls(place),
        PROVIDER_BACKBONE => {
            let tag = place.head::<4>()?;
            place.skip(4)?;
            let layer = Layer::Pbb(be24(&[tag[1], tag[2], tag[3]]));
            Ok((Ahead::Ethernet, Some(layer)))
        }
        TRANSPARENT_ETHERNET => Ok((Ahead::Ethernet, None)),
        // PPPoE session: PPP's protocol follows.
        PPPOE => {
            let h = place.head::<8>()?;
            place.skip(8)?;
            match be16(h[6], h[7]) {
                0x0021 | 0x0057 => Ok((Ahead::Ip, Some(Layer::Pppoe(be16(h[2], h[3]))))),
                _ => Err(Other::NotTcp),
            }
        }
        NSH => nsh(place),
        MACSEC => macsec(place),
        // VN-tag, and HSR's tag (IEC 62439-3): four bytes, and the EtherType.
        0x8926 | 0x892f => tag(4, place),
        // Cisco's tag of security groups: version, and a length in words.
        0x8909 => tag(2 + usize::from(place.head::<2>()?[1]) * 4, place),
        // A switch's tag, as Linux has it with an EtherType of its own.
        0xdada => tag(6, place),
        _ => Err(Other::NotTcp),
    }
}

/// Skips a tag behind which the EtherType stands.
fn tag(tag_bytes: usize, place: &mut Place<'_>) -> Result<Step, Other> {
    place.skip(tag_bytes)?;
    let kind = *place.head::<2>()?;
    place.skip(2)?;
    Ok((Ahead::EtherType(be16(kind[0], kind[1])), None))
}

/// Parses MACsec (IEEE 802.1AE), which leaves the packet readable if it protects integrity alone.
fn macsec(place: &mut Place<'_>) -> Result<Step, Other> {
    const ENCRYPTED: u8 = 0x0c;
    const HAS_CHANNEL: u8 = 0x20;
    let control = place.head::<6>()?[0];
    if control & ENCRYPTED != 0 {
        return Err(Other::Encrypted);
    }
    tag(if control & HAS_CHANNEL != 0 { 14 } else { 6 }, place)
}

fn nsh(place: &mut Place<'_>) -> Result<Step, Other> {
    let h = *place.head::<4>()?;
    let header_bytes = usize::from(h[1] & 0x3f) * 4;
    if header_bytes < 8 {
        return Err(Other::Malformed);
    }
    place.skip(header_bytes)?;
    match h[3] {
        1 | 2 => Ok((Ahead::Ip, None)),
        3 => Ok((Ahead::Ethernet, None)),
        4 => Ok((Ahead::EtherType(NSH), None)),
        5 => mpls(place),
        _ => Err(Other::NotTcp),
    }
}

/// Skips the labels up to the last. No field says what follows. The first four bits do: they
/// are the version of an IP packet (RFC 4928), or 0 for the control word of a pseudowire.
fn mpls(place: &mut Place<'_>) -> Result<Step, Other> {
    loop {
        let label = place.head::<4>()?;
        place.skip(4)?;
        if label[2] & 1 != 0 {
            break;
        }
    }
    let ahead = match place.head::<1>()?[0] >> 4 {
        4 | 6 => Ahead::Ip,
        0 => {
            place.skip(4)?;
            Ahead::Ethernet
        }
        _ => Ahead::Ethernet,
    };
    Ok((ahead, Some(Layer::Mpls)))
}

/// Parses the header that this IP protocol announces, if it is a tunnel.
#[inline]
pub(crate) fn protocol(protocol: u8, ip: &Ip, place: &mut Place<'_>) -> Result<Step, Other> {
    let (low, high) = ip.ends();
    match protocol {
        // IPv4 and IPv6, each inside either.
        4 | 41 => Ok((Ahead::Ip, Some(Layer::IpInIp(low, high)))),
        17 => udp(ip, place),
        47 => gre(ip, place),
        50 => Err(Other::Encrypted),
        // Authentication header (RFC 4302): what it authenticates follows.
        51 => {
            let h = *place.head::<8>()?;
            place.skip((usize::from(h[1]) + 2) * 4)?;
            Ok((Ahead::Protocol(h[0]), None))
        }
        // EtherIP (RFC 3378): a version before the frame.
        97 => {
            place.skip(2)?;
            Ok((Ahead::Ethernet, Some(Layer::EthernetInIp(low, high))))
        }
        137 => mpls(place),
        // Ethernet behind a segment routing header (RFC 8986).
        143 => Ok((Ahead::Ethernet, Some(Layer::EthernetInIp(low, high)))),
        _ => Err(Other::NotTcp),
    }
}

fn udp(ip: &Ip, place: &mut Place<'_>) -> Result<Step, Other> {
    let header = place.head::<4>().map_err(|_| Other::NotTcp)?;
    let (from, port) = (be16(header[0], header[1]), be16(header[2], header[3]));
    if from == 443 || port == 443 {
        return Err(quic(place));
    }
    if from == CAPWAP || port == CAPWAP {
        place.skip(8)?;
        return capwap(ip, place);
    }
    if from == L2TP || port == L2TP {
        place.skip(8)?;
        return l2tp(ip, place);
    }
    if !matches!(port, 2152 | 4789 | 4790 | 6081 | 6635 | 8472 | TZSP) {
        return Err(Other::NotTcp);
    }
    place.skip(8)?;
    match port {
        2152 => gtp(ip, place),
        6081 => geneve(place),
        6635 => mpls(place),
        TZSP => tzsp(ip, place),
        _ => vxlan(port == 4790, place),
    }
}

/// Distinguishes QUIC by its first byte: the second bit is set in every packet (RFC 9000, 17).
fn quic(place: &mut Place<'_>) -> Other {
    let first = place.head::<9>().map_or(0, |bytes| bytes[8]);
    if first & 0x40 == 0 {
        Other::NotTcp
    } else {
        Other::Quic
    }
}

/// Parses VXLAN (RFC 7348), or VXLAN-GPE with its next protocol (draft-ietf-nvo3-vxlan-gpe).
fn vxlan(generic: bool, place: &mut Place<'_>) -> Result<Step, Other> {
    let h = *place.head::<8>()?;
    if h[0] & 0x08 == 0 {
        return Err(Other::NotTcp);
    }
    place.skip(8)?;
    let ahead = match h[3] {
        4 if generic => Ahead::EtherType(NSH),
        1 | 2 if generic => Ahead::Ip,
        3 => Ahead::Ethernet,
        _ if generic => return Err(Other::NotTcp),
        _ => Ahead::Ethernet,
    };
    Ok((ahead, Some(Layer::Vxlan(be24(&[h[4], h[5], h[6]])))))
}

/// Parses L2TP's data of version 2 (RFC 2661): PPP.
fn l2tp(ip: &Ip, place: &mut Place<'_>) -> Result<Step, Other> {
    let [flags, version] = *place.head::<2>()?;
    let (is_control, has_length, has_sequence, has_offset) = (
        flags & 0x80 != 0,
        flags & 0x40 != 0,
        flags & 0x08 != 0,
        flags & 0x02 != 0,
    );
    if is_control || version & 15 != 2 {
        return Err(Other::NotTcp);
    }
    // Flags, tunnel and session; length; numbers.
    place.skip(6 + usize::from(has_length) * 2 + usize::from(has_sequence) * 4)?;
    if has_offset {
        let offset = *place.head::<2>()?;
        place.skip(2 + usize::from(be16(offset[0], offset[1])))?;
    }
    let (low, high) = ip.ends();
    Ok((Ahead::Ppp, Some(Layer::L2tp(low, high))))
}

/// Parses a mirrored frame in TZSP, after its fields.
fn tzsp(ip: &Ip, place: &mut Place<'_>) -> Result<Step, Other> {
    const PADDING: u8 = 0;
    const END: u8 = 1;
    let h = *place.head::<4>()?;
    let ahead = match (h[0], be16(h[2], h[3])) {
        (1, 1) => Ahead::Ethernet,
        (1, 18) => Ahead::Wifi { is_padded: false },
        _ => return Err(Other::NotTcp),
    };
    place.skip(4)?;
    // The loop ends: each field takes a byte at least.
    loop {
        match *place.head::<1>()? {
            [END] => break,
            [PADDING] => place.skip(1)?,
            _ => place.skip(2 + usize::from(place.head::<2>()?[1]))?,
        }
    }
    place.skip(1)?;
    let (low, high) = ip.ends();
    Ok((ahead, Some(Layer::Tzsp(low, high))))
}

/// Parses GENEVE (RFC 8926).
fn geneve(place: &mut Place<'_>) -> Result<Step, Other> {
    let h = *place.head::<8>()?;
    if h[0] >> 6 != 0 {
        return Err(Other::NotTcp);
    }
    place.skip(8 + usize::from(h[0] & 0x3f) * 4)?;
    let layer = Layer::Geneve(be24(&[h[4], h[5], h[6]]));
    Ok((Ahead::EtherType(be16(h[2], h[3])), Some(layer)))
}

/// Parses GRE (RFC 2784 and 2890), with NVGRE (RFC 7637) and ERSPAN (draft-foschiano-erspan)
/// inside.
fn gre(ip: &Ip, place: &mut Place<'_>) -> Result<Step, Other> {
    let h = *place.head::<4>()?;
    let (flags, kind) = (h[0], be16(h[2], h[3]));
    let (checksum, routing, has_key, sequence) = (
        flags & 0x80 != 0,
        flags & 0x40 != 0,
        flags & 0x20 != 0,
        flags & 0x10 != 0,
    );
    if h[1] & 7 == 1 && kind == EOIP {
        return eoip(place);
    }
    if routing || h[1] & 7 != 0 {
        return Err(Other::NotTcp);
    }
    place.skip(if checksum { 8 } else { 4 })?;
    let mut key = None;
    if has_key {
        key = Some(u32::from_be_bytes(*place.head::<4>()?));
        place.skip(4)?;
    }
    if sequence {
        place.skip(4)?;
    }
    match (kind, key) {
        (ERSPAN_2 | ERSPAN_3, _) => erspan(kind, sequence, place),
        (WCCP, _) => {
            // Version 2 has four bytes before the packet.
            if place.head::<1>()?[0] >> 4 != 4 {
                place.skip(4)?;
            }
            let (low, high) = ip.ends();
            Ok((Ahead::Ip, Some(Layer::Gre(low, high))))
        }
        (TRANSPARENT_ETHERNET, Some(key)) => Ok((Ahead::Ethernet, Some(Layer::Nvgre(key >> 8)))),
        (_, Some(key)) => Ok((Ahead::EtherType(kind), Some(Layer::GreKey(key)))),
        (_, None) => {
            let (low, high) = ip.ends();
            Ok((Ahead::EtherType(kind), Some(Layer::Gre(low, high))))
        }
    }
}

/// Parses EoIP: the frame's length, and the tunnel's number in little-endian order. A length of 0
/// keeps the tunnel alive.
fn eoip(place: &mut Place<'_>) -> Result<Step, Other> {
    let h = *place.head::<8>()?;
    place.skip(8)?;
    match be16(h[4], h[5]) {
        0 => Err(Other::NotTcp),
        length => {
            place.limit(length.into());
            let layer = Layer::Eoip(u16::from_le_bytes([h[6], h[7]]));
            Ok((Ahead::Ethernet, Some(layer)))
        }
    }
}

/// Parses CAPWAP's data (RFC 5415, 4.3): Ethernet or IEEE 802.11 frames.
fn capwap(ip: &Ip, place: &mut Place<'_>) -> Result<Step, Other> {
    const DTLS: u8 = 1;
    const WIFI: u8 = 1;
    let h = *place.head::<8>()?;
    match h[0] {
        0 => {}
        DTLS => return Err(Other::Encrypted),
        _ => return Err(Other::NotTcp),
    }
    let header_bytes = usize::from(h[1] >> 3) * 4;
    let (binding, is_native) = ((h[2] >> 1) & 0x1f, h[2] & 1 != 0);
    let (is_fragment, is_keep_alive) = (h[3] & 0x80 != 0, h[3] & 0x08 != 0);
    if header_bytes < 8 {
        return Err(Other::Malformed);
    }
    if is_keep_alive || is_native && binding != WIFI {
        return Err(Other::NotTcp);
    }
    if is_fragment && be16(h[6], h[7]) >> 3 != 0 {
        return Err(Other::LaterFragment);
    }
    place.skip(header_bytes)?;
    let (low, high) = ip.ends();
    let ahead = if is_native {
        tunnelled_data_frame(place)?
    } else {
        Ahead::Ethernet
    };
    Ok((ahead, Some(Layer::Capwap(low, high))))
}

/// Parses a mirrored frame. A frame without a sequence number is of ERSPAN's first version,
/// which has no header.
fn erspan(kind: u16, sequence: bool, place: &mut Place<'_>) -> Result<Step, Other> {
    if !sequence {
        return Ok((Ahead::Ethernet, Some(Layer::Erspan(0))));
    }
    let h = *place.head::<8>()?;
    let session = be16(h[2], h[3]) & 0x3ff;
    if kind == ERSPAN_2 {
        place.skip(8)?;
    } else {
        let has_more = place.head::<12>()?[11] & 1 != 0;
        place.skip(if has_more { 20 } else { 12 })?;
    }
    Ok((Ahead::Ethernet, Some(Layer::Erspan(session))))
}

/// Parses GTP-U (3GPP TS 29.281): user data only, after any extension headers.
fn gtp(ip: &Ip, place: &mut Place<'_>) -> Result<Step, Other> {
    let h = *place.head::<8>()?;
    if h[0] & 0xf0 != 0x30 || h[1] != 0xff {
        return Err(Other::NotTcp);
    }
    place.skip(8)?;
    if h[0] & 7 != 0 {
        let mut next = place.head::<4>()?[3];
        place.skip(4)?;
        if h[0] & 4 == 0 {
            next = 0;
        }
        while next != 0 {
            let length = usize::from(place.head::<1>()?[0]) * 4;
            let last = length.checked_sub(1).ok_or(Other::Malformed)?;
            next = *place.bytes.get(last).ok_or(Other::Cut)?;
            place.skip(length)?;
        }
    }
    let (low, high) = ip.ends();
    Ok((Ahead::Ip, Some(Layer::Gtp(low, high))))
}
