// SPDX-License-Identifier: MIT OR Apache-2.0
//! Link types: the headers before the network header of a captured packet.

use units::ethernet::HEADER_BYTES;

/// Layout of the first bytes of a captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Ethernet,
    /// An IP packet without a link header.
    RawIp,
    /// Four bytes of address family, then an IP packet: loopback devices of BSD
    /// and macOS. Systems differ in the order of these bytes, so they are skipped.
    Loopback,
    /// Linux "cooked" header, version 1 or 2, as in captures on `any`.
    Cooked {
        header_bytes: usize,
        type_at: usize,
    },
}

impl Link {
    /// Returns the link type of a number in the file (LINKTYPE_...), if it is supported.
    pub(crate) fn from_number(number: i32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            0 | 108 => Some(Self::Loopback),
            12 | 14 | 101 | 228 | 229 => Some(Self::RawIp),
            113 => Some(Self::Cooked {
                header_bytes: 16,
                type_at: 14,
            }),
            276 => Some(Self::Cooked {
                header_bytes: 20,
                type_at: 0,
            }),
            _ => None,
        }
    }

    /// Returns the name of a link type that is not supported.
    pub(crate) fn name(number: i32) -> &'static str {
        match number {
            6 => "Token Ring",
            7 | 129 => "ARCNET",
            9 | 50 | 51 | 166 => "PPP",
            10 => "FDDI",
            11 | 100 | 123 => "ATM or SNAP",
            104 => "Cisco HDLC",
            105 | 119 | 127 | 163 => "IEEE 802.11",
            130..=138 | 178..=183 | 194 | 200 | 238 => "Juniper",
            197 => "ERF",
            239 => "NFLOG",
            242 | 247 => "InfiniBand",
            _ => "unknown",
        }
    }

    /// Returns the length that a packet of `bytes` would have as an Ethernet frame.
    pub(crate) fn frame_bytes(self, bytes: u32) -> u32 {
        let header = match self {
            Self::Ethernet => return bytes,
            Self::RawIp => 0,
            Self::Loopback => 4,
            Self::Cooked { header_bytes, .. } => u32::try_from(header_bytes).unwrap_or(0),
        };
        bytes.saturating_sub(header).saturating_add(HEADER_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_as_ethernet_frames() {
        for (number, expected) in [
            (1, 1514),
            (101, 1528),
            (108, 1524),
            (113, 1512),
            (276, 1508),
        ] {
            assert_eq!(
                Link::from_number(number).unwrap().frame_bytes(1514),
                expected
            );
        }
        assert_eq!(Link::from_number(105), None);
        assert_eq!(Link::name(105), "IEEE 802.11");
    }
}
