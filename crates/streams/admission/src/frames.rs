// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets of an interval, their fragments, and the bytes they take on the wire.

use std::collections::BTreeMap;

use units::ethernet::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

use crate::topology::wire_bytes_of_packet;

/// Unit of the offsets of IPv4 fragments, bytes.
const FRAGMENT_UNIT_BYTES: u32 = 8;

/// IPv4 packets by length. Operations are O(different lengths).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packets(BTreeMap<u32, u64>);

impl Packets {
    /// Returns `count` packets of `ip_bytes` bytes each.
    pub fn alike(count: u64, ip_bytes: u32) -> Self {
        let mut packets = Self::default();
        packets.add(ip_bytes, count);
        packets
    }

    /// Returns the packets of `bytes` of UDP payload, in datagrams that fill the MTU.
    /// `mtu_bytes` must exceed the headers' 28 bytes.
    pub fn of_payload(bytes: u32, mtu_bytes: u32) -> Self {
        const HEADERS_BYTES: u32 = IPV4_HEADER_BYTES + UDP_HEADER_BYTES;
        let room_bytes = mtu_bytes.saturating_sub(HEADERS_BYTES).max(1);
        let mut packets = Self::alike((bytes / room_bytes).into(), room_bytes + HEADERS_BYTES);
        if bytes % room_bytes > 0 {
            packets.add(bytes % room_bytes + HEADERS_BYTES, 1);
        }
        packets
    }

    fn add(&mut self, ip_bytes: u32, count: u64) {
        if count > 0 {
            let of_length = self.0.entry(ip_bytes).or_default();
            *of_length = of_length.saturating_add(count);
        }
    }

    /// Returns the number of packets.
    pub fn count(&self) -> u64 {
        self.0.values().fold(0, |all, n| all.saturating_add(*n))
    }

    /// Returns the `count` longest packets, or all if there are fewer.
    pub fn longest(&self, count: u64) -> Self {
        let mut left = count;
        let mut packets = Self::default();
        for (ip_bytes, n) in self.0.iter().rev() {
            packets.add(*ip_bytes, left.min(*n));
            left = left.saturating_sub(*n);
        }
        packets
    }

    /// Returns what leaves for a link of this MTU: longer packets become fragments, each with a
    /// header of its own. `mtu_bytes` must be at least 28.
    pub fn fragmented(&self, mtu_bytes: u32) -> Self {
        let room_bytes = mtu_bytes.saturating_sub(IPV4_HEADER_BYTES);
        let room_bytes =
            (room_bytes / FRAGMENT_UNIT_BYTES * FRAGMENT_UNIT_BYTES).max(FRAGMENT_UNIT_BYTES);
        let mut packets = Self::default();
        for (ip_bytes, count) in &self.0 {
            if *ip_bytes <= mtu_bytes {
                packets.add(*ip_bytes, *count);
                continue;
            }
            // The last fragment may be longer than the others: it needs no multiple of 8.
            let data_bytes = ip_bytes - IPV4_HEADER_BYTES;
            let last_room_bytes = mtu_bytes - IPV4_HEADER_BYTES;
            let beyond = data_bytes.saturating_sub(last_room_bytes);
            let full = beyond.div_ceil(room_bytes);
            packets.add(
                room_bytes + IPV4_HEADER_BYTES,
                count.saturating_mul(full.into()),
            );
            packets.add(data_bytes - full * room_bytes + IPV4_HEADER_BYTES, *count);
        }
        packets
    }

    /// Returns the bytes on the wire, with all that Ethernet adds; saturates.
    pub fn wire_bytes(&self, is_tagged: bool) -> u64 {
        let bytes = self.0.iter().map(|(ip_bytes, count)| {
            u64::from(wire_bytes_of_packet(*ip_bytes, is_tagged)).saturating_mul(*count)
        });
        bytes.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_fills_the_mtu() {
        // 6 x 1472 + 1168.
        let packets = Packets::of_payload(10_000, 1500);
        assert_eq!(packets.count(), 7);
        assert_eq!(packets.wire_bytes(false), 6 * 1538 + 1168 + 28 + 38);
        assert_eq!(packets.wire_bytes(true), 6 * 1542 + 1168 + 28 + 42);
        // A short rest is padded to 60 bytes.
        assert_eq!(Packets::of_payload(1473, 1500).wire_bytes(false), 1538 + 84);
        assert_eq!(Packets::of_payload(1472, 1500).count(), 1);
    }

    #[test]
    fn long_packets_become_fragments() {
        // A datagram of 10,000 bytes: 10,008 in fragments of 1480, the last of 1128.
        let packets = Packets::alike(1, 10_028).fragmented(1500);
        assert_eq!(packets.count(), 7);
        assert_eq!(packets.wire_bytes(false), 10_008 + 7 * (20 + 38));
        assert_eq!(packets.fragmented(1500), packets);
        // RFC 791: the first 1276 bytes of data take 157 x 8 = 1256, not 1260.
        let smaller = Packets::alike(2, 1500).fragmented(1280);
        assert_eq!(smaller, {
            let mut all = Packets::alike(2, 1276);
            all.add(20 + 1480 - 1256, 2);
            all
        });
        // An MTU that is no multiple of 8 takes a last fragment of its own length.
        let odd = Packets::alike(1, 20 + 1003).fragmented(20 + 503);
        assert_eq!(odd, {
            let mut all = Packets::alike(1, 20 + 496);
            all.add(20 + 496, 1);
            all.add(20 + 11, 1);
            all
        });
    }

    #[test]
    fn the_longest_are_taken_first() {
        let packets = Packets::of_payload(10_000, 1500);
        assert_eq!(packets.longest(2), Packets::alike(2, 1500));
        assert_eq!(packets.longest(7), packets);
        assert_eq!(packets.longest(u64::MAX), packets);
        assert_eq!(packets.longest(0), Packets::default());
    }

    #[test]
    fn nothing_overflows() {
        let most = Packets::alike(u64::MAX, 65_535);
        assert_eq!(most.fragmented(68).wire_bytes(true), u64::MAX);
        assert_eq!(Packets::of_payload(u32::MAX, 68).count(), 107_374_183);
    }
}
