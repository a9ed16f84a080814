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
    /// Frame Relay, with the encapsulation of RFC 2427 or Cisco's.
    FrameRelay,
    /// Cisco HDLC: address, control, EtherType.
    CiscoHdlc,
    /// IEEE 802.11, without a header of the receiver's radio.
    Wifi,
    /// IEEE 802.11 behind a radiotap header.
    Radiotap,
    /// A header of per-packet information, and a packet of the link type that it names.
    Ppi,
    /// Linux netfilter's log: attributes, one of which is the IP packet.
    Nflog,
    /// PPP (RFC 1661), with address and control (RFC 1662) or without.
    Ppp,
    /// PPP or Cisco HDLC, which the first byte tells apart.
    Serial,
    /// PPP, and before it a byte with the direction: pppd writes it in the address's place.
    PppDirected {
        is_address: bool,
    },
    /// A PPPoE session's header, without Ethernet's.
    PppoeSession,
    /// Apple's header of interface and process, and a packet of the link type that it names.
    Pktap,
    /// Ethernet with a switch's tag of so many bytes behind the addresses (Linux's DSA).
    SwitchTag {
        tag_bytes: usize,
    },
    /// Ethernet behind a switch's tag of four bytes.
    TagPrepended,
    /// IP over InfiniBand (RFC 4391), behind a global routing header.
    Ipoib,
}

/// The link types that are read, by name, as the notes list them.
pub(crate) const READ: &str = "Ethernet (1), IP (101), Linux cooked (113, 276), BSD loopback (0, \
                               108), PPP (9, 50, 51, 166, 204), Frame Relay (107), Cisco HDLC \
                               (104), IEEE 802.11 (105, 127, 192), NFLOG (239), IP over \
                               InfiniBand (242), PKTAP (258) or switches' tags (281, 282, 284, \
                               285)";

impl Link {
    /// Returns the link type of a number in the file (LINKTYPE_...), if it is supported.
    pub(crate) fn from_number(number: i32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            0 | 108 => Some(Self::Loopback),
            9 => Some(Self::Ppp),
            12 | 14 | 101 | 228 | 229 => Some(Self::RawIp),
            50 => Some(Self::Serial),
            51 => Some(Self::PppoeSession),
            104 => Some(Self::CiscoHdlc),
            105 => Some(Self::Wifi),
            107 => Some(Self::FrameRelay),
            113 => Some(Self::Cooked {
                header_bytes: 16,
                type_at: 14,
            }),
            127 => Some(Self::Radiotap),
            166 => Some(Self::PppDirected { is_address: true }),
            192 => Some(Self::Ppi),
            204 => Some(Self::PppDirected { is_address: false }),
            239 => Some(Self::Nflog),
            242 => Some(Self::Ipoib),
            258 => Some(Self::Pktap),
            276 => Some(Self::Cooked {
                header_bytes: 20,
                type_at: 0,
            }),
            281 | 284 => Some(Self::SwitchTag { tag_bytes: 4 }),
            282 => Some(Self::TagPrepended),
            285 => Some(Self::SwitchTag { tag_bytes: 8 }),
            _ => None,
        }
    }

    /// Returns the name of a link type that is not supported.
    pub(crate) fn name(number: i32) -> &'static str {
        match number {
            6 => "Token Ring",
            7 | 129 => "ARCNET",
            8 => "SLIP",
            10 => "FDDI",
            11 | 100 | 123 => "ATM or SNAP",
            119 | 163 => "IEEE 802.11 with a Prism or AVS header",
            122 => "IP over Fibre Channel",
            130..=138 | 178..=183 | 194 | 200 | 238 => "Juniper",
            143 => "DOCSIS",
            147..=162 => "a private one",
            187 | 201 | 251 | 254..=256 | 272 => "Bluetooth",
            189 | 220 | 249 => "USB",
            195 | 215 | 230 | 283 => "IEEE 802.15.4",
            197 => "ERF",
            199 => "IPMB",
            206 | 227 => "CAN",
            224 | 225 => "Fibre Channel",
            247 => "InfiniBand",
            253 => "netlink",
            _ => "unknown",
        }
    }

    /// Returns the length of the header, where it is the same in all packets.
    pub(crate) fn header_bytes(self) -> Option<u32> {
        match self {
            Self::Ethernet => Some(HEADER_BYTES),
            Self::RawIp => Some(0),
            Self::Loopback | Self::CiscoHdlc => Some(4),
            Self::Cooked { header_bytes, .. } => u32::try_from(header_bytes).ok(),
            Self::SwitchTag { tag_bytes } => {
                u32::try_from(tag_bytes).ok().map(|tag| HEADER_BYTES + tag)
            }
            Self::TagPrepended => Some(HEADER_BYTES + 4),
            Self::Ipoib => Some(44),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names() {
        for (number, expected) in [
            (1, Some(14)),
            (101, Some(0)),
            (104, Some(4)),
            (108, Some(4)),
            (113, Some(16)),
            (127, None),
            (276, Some(20)),
        ] {
            assert_eq!(Link::from_number(number).unwrap().header_bytes(), expected);
        }
        assert_eq!(Link::from_number(119), None);
        assert_eq!(Link::name(8), "SLIP");
        assert_eq!(Link::name(9999), "unknown");
        for number in [
            0, 1, 9, 50, 51, 101, 104, 105, 107, 108, 113, 127, 166, 192, 204, 239, 242, 258, 276,
            281, 282, 284, 285,
        ] {
            assert!(Link::from_number(number).is_some(), "{number}");
            assert!(READ.contains(&number.to_string()), "{number}");
        }
    }
}
