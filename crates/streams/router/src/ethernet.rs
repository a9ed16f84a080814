// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of a frame that a router reads and changes: Ethernet and IPv4 (RFC 791, 1812).

use std::net::Ipv4Addr;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Bytes of the Ethernet header.
pub(crate) const ETHERNET: usize = 14;
/// Bytes of an IPv4 header without options.
pub(crate) const IPV4: usize = 20;

/// The fields of a packet that routing needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Destination port of TCP or UDP; later fragments have none.
    pub port: Option<u16>,
    /// Time to live: hops that the packet may still travel.
    pub ttl: u8,
    /// Bytes of the packet, its header included.
    pub total_bytes: usize,
    /// The datagram that it is a fragment of, if it is one.
    pub fragment: Option<Fragment>,
}

/// The fields that identify a fragment's datagram, beside the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Protocol number: UDP, TCP or another one.
    pub protocol: u8,
    /// Identification of the datagram.
    pub id: u16,
    /// Whether it is the first fragment, which has the port.
    pub first: bool,
}

/// The reason why a frame is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The frame is for another MAC address, or for a multicast or broadcast address.
    NotOurs,
    /// The frame has no valid IPv4 header.
    Invalid,
}

/// Returns the bytes that a frame takes on the wire.
pub fn wire_bytes(frame_bytes: usize) -> u64 {
    units::ethernet::wire_bytes(u32::try_from(frame_bytes).unwrap_or(u32::MAX)).into()
}

/// Reads a frame that arrived at the MAC address `own`. O(header).
///
/// # Errors
/// The reason why the frame is not forwarded.
pub fn read(frame: &[u8], own: Mac) -> Result<Header, Refusal> {
    let (ethernet, packet) = frame
        .split_first_chunk::<ETHERNET>()
        .ok_or(Refusal::Invalid)?;
    if ethernet[..6] != own {
        return Err(Refusal::NotOurs);
    }
    if ethernet[12..] != [0x08, 0x00] {
        return Err(Refusal::Invalid);
    }
    let fixed: &[u8; IPV4] = packet.first_chunk().ok_or(Refusal::Invalid)?;
    let header_bytes = usize::from(fixed[0] & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let header = packet.get(..header_bytes).ok_or(Refusal::Invalid)?;
    let sound = fixed[0] >> 4 == 4
        && header_bytes >= IPV4
        && (header_bytes..=packet.len()).contains(&total)
        && sum(header) == 0xffff;
    if !sound {
        return Err(Refusal::Invalid);
    }
    let [.., a, b, c, d, e, f, g, h] = *fixed;
    let destination = Ipv4Addr::new(e, f, g, h);
    if destination.is_multicast() || destination.is_broadcast() || destination.is_loopback() {
        return Err(Refusal::NotOurs);
    }
    let offset = u16::from_be_bytes([fixed[6], fixed[7]]);
    let first = offset & 0x1fff == 0;
    let fragment = Fragment {
        protocol: fixed[9],
        id: u16::from_be_bytes([fixed[4], fixed[5]]),
        first,
    };
    let has_ports = matches!(fixed[9], 6 | 17) && first;
    let ports = packet
        .get(header_bytes..)
        .and_then(|p| p.first_chunk::<4>());
    let port = ports.map(|[_, _, high, low]| u16::from_be_bytes([*high, *low]));
    Ok(Header {
        source: Ipv4Addr::new(a, b, c, d),
        destination,
        dscp: fixed[1] >> 2,
        port: port.filter(|_| has_ports),
        ttl: fixed[8],
        total_bytes: total,
        // Either more fragments follow (MF), or fragments precede this one (offset).
        fragment: (offset & 0x3fff != 0).then_some(fragment),
    })
}

/// Rewrites a received frame for sending: sets the MAC addresses, decrements the TTL, and updates
/// the header checksum (RFC 1624, equation 3). O(1).
pub fn forward(frame: &mut [u8], from: Mac, to: Mac) {
    let Some((ethernet, packet)) = frame.split_first_chunk_mut::<ETHERNET>() else {
        return;
    };
    ethernet[..6].copy_from_slice(&to);
    ethernet[6..12].copy_from_slice(&from);
    let Some(header) = packet.first_chunk_mut::<IPV4>() else {
        return;
    };
    let old = u16::from_be_bytes([header[8], header[9]]);
    header[8] = header[8].saturating_sub(1);
    let new = u16::from_be_bytes([header[8], header[9]]);
    let check = u16::from_be_bytes([header[10], header[11]]);
    let check = !fold(u32::from(!check) + u32::from(!old) + u32::from(new));
    header[10..12].copy_from_slice(&check.to_be_bytes());
}

/// Fills the TCP or UDP checksum of a frame whose sender left it to the device. Such a frame has
/// the sum of the pseudo header in the checksum field (RFC 768, RFC 9293, 3.1). If a complete
/// checksum equals that sum by chance, the result is the same checksum. Fragments are complete when
/// they are sent. O(1), or O(frame) if the checksum is filled.
pub fn fill_checksum(frame: &mut [u8]) {
    let Some(header) = frame.get(ETHERNET..ETHERNET + IPV4) else {
        return;
    };
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let protocol = header[9];
    let (at, when_zero) = match protocol {
        6 => (16, 0),
        // A UDP checksum of 0 means that there is none, so 0 is sent as 0xffff.
        17 => (6, u16::MAX),
        _ => return,
    };
    let addresses = sum(&header[12..20]);
    let segment = ETHERNET + header_bytes..ETHERNET + total;
    let Some(segment) = frame.get_mut(segment).filter(|_| !is_fragment) else {
        return;
    };
    let length = u32::try_from(segment.len()).unwrap_or(u32::MAX);
    let pseudo = fold(u32::from(addresses) + u32::from(protocol) + length);
    let place = segment.get(at..at + 2);
    if place.is_none_or(|place| place != pseudo.to_be_bytes()) {
        return;
    }
    let check = match !sum(segment) {
        0 => when_zero,
        check => check,
    };
    segment[at..at + 2].copy_from_slice(&check.to_be_bytes());
}

/// Returns the one's complement sum; 0xffff over a header whose checksum is right.
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |b| u32::from(*b) << 8);
    let words = words.map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    // The sum does not overflow: there are at most 2^15 words.
    fold(words.sum::<u32>().saturating_add(odd))
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // The conversion does not fail: the sum is folded to 16 bits.
    u16::try_from(sum).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Mac = [2, 0, 0, 0, 0, 1];

    /// Makes a UDP packet to port 5001.
    fn frame(ttl: u8) -> Vec<u8> {
        let mut frame = [&OWN[..], &[2, 0, 0, 0, 0, 9], &[8, 0]].concat();
        let mut header = vec![0x45, 46 << 2, 0, 28, 0, 1, 0, 0, ttl, 17, 0, 0];
        header.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        let check = !sum(&header);
        header[10..12].copy_from_slice(&check.to_be_bytes());
        frame.extend(header);
        frame.extend([0x10, 0, 0x13, 0x89, 0, 8, 0, 0]);
        frame
    }

    #[test]
    fn a_packet_is_read_and_forwarded() {
        for ttl in 1..=255 {
            let mut frame = frame(ttl);
            let header = read(&frame, OWN).unwrap();
            assert_eq!(
                (header.dscp, header.port, header.ttl),
                (46, Some(5001), ttl)
            );
            assert_eq!(header.destination, Ipv4Addr::new(10, 0, 0, 2));
            forward(&mut frame, OWN, [2, 0, 0, 0, 0, 7]);
            assert_eq!(frame[..6], [2, 0, 0, 0, 0, 7]);
            assert_eq!(frame[6..12], OWN);
            // The checksum is right again.
            frame[..6].copy_from_slice(&OWN);
            assert_eq!(read(&frame, OWN).unwrap().ttl, ttl - 1);
        }
    }

    #[test]
    fn packets_that_are_not_forwarded() {
        let good = frame(9);
        assert_eq!(read(&good, [2, 0, 0, 0, 0, 3]), Err(Refusal::NotOurs));
        for (at, value) in [
            (12, 9),
            (14, 0x65),
            (14, 0x44),
            (17, 200),
            (22, 8),
            (30, 11),
        ] {
            let mut bad = good.clone();
            bad[at] = value;
            assert_eq!(read(&bad, OWN), Err(Refusal::Invalid), "byte {at}");
        }
        for bytes in 0..34 {
            assert_eq!(read(&good[..bytes], OWN), Err(Refusal::Invalid));
        }
        let mut later = good.clone();
        later[20..22].copy_from_slice(&[0, 1]);
        let check = u16::from_be_bytes([later[24], later[25]]);
        later[24..26].copy_from_slice(&(check - 1).to_be_bytes());
        let header = read(&later, OWN).unwrap();
        assert_eq!(header.port, None, "a later fragment");
        let fragment = Fragment {
            protocol: 17,
            id: 1,
            first: false,
        };
        assert_eq!(header.fragment, Some(fragment));
        assert_eq!(read(&good, OWN).unwrap().fragment, None);
    }

    /// The router fills a checksum that the sender left to its device, so that the receiver
    /// accepts it. It leaves alone a complete one, a wrong one, none, and a fragment's.
    #[test]
    fn checksums_left_to_the_device_are_filled() {
        for (protocol, at) in [(17, 6), (6, 16)] {
            let mut left = frame(9);
            left.extend([0xab; 13]);
            left[17] = 41;
            left[23] = protocol;
            let pseudo = [&left[26..34], &[0, protocol, 0, 21]].concat();
            let place = 34 + at..36 + at;
            left[place.clone()].copy_from_slice(&sum(&pseudo).to_be_bytes());
            let mut made = left.clone();
            fill_checksum(&mut made);
            assert_ne!(made, left);
            assert_eq!(sum(&[&pseudo[..], &made[34..]].concat()), 0xffff);
            for (byte, value) in [(place.start, 0), (20, 0x20), (21, 1), (23, 1), (17, 60)] {
                for mut given in [left.clone(), made.clone()] {
                    given[byte] = value;
                    let before = given.clone();
                    fill_checksum(&mut given);
                    assert_eq!(given, before, "byte {byte} of protocol {protocol}");
                }
            }
            let complete = made.clone();
            fill_checksum(&mut made);
            assert_eq!(made, complete);
        }
        for bytes in 0..60 {
            fill_checksum(&mut vec![0; bytes]);
        }
    }

    #[test]
    fn wire_lengths() {
        assert_eq!((wire_bytes(1514), wire_bytes(42)), (1538, 84));
    }
}
