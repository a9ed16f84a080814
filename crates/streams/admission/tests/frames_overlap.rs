// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether two specifications have a packet in common, beside a search through all small headers.

use std::net::{Ipv4Addr, Ipv6Addr};

use admission::{FrameSpecification, IpTuple};
use proptest::prelude::*;

/// Headers of a packet as small numbers: version (0 or 1), source, destination, protocol, ports.
type Header = [u8; 6];

/// Most values of each field. A value above those of a specification stands for any other.
const VALUES: [u8; 6] = [2, 3, 2, 2, 3, 2];

fn v4(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

fn v6(n: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n.into())
}

fn tuple<A>(of: Header, is_any: (bool, bool), address: fn(u8) -> A) -> IpTuple<A> {
    IpTuple {
        source_ip_address: (!is_any.0).then(|| address(of[1])),
        destination_ip_address: address(of[2]),
        protocol: [6, 17][usize::from(of[3])],
        source_port: (!is_any.1).then(|| 1 + u16::from(of[4])),
        destination_port: 1 + u16::from(of[5]),
    }
}

fn specification() -> impl Strategy<Value = FrameSpecification> {
    let fields = (0..2_u8, 0..2_u8, 0..2_u8, 0..2_u8, 0..2_u8, 0..2_u8);
    (fields, any::<(bool, bool)>()).prop_map(|((a, b, c, d, e, f), is_any)| {
        let of = [a, b, c, d, e, f];
        if a == 0 {
            FrameSpecification::Ipv4Tuple(tuple(of, is_any, v4))
        } else {
            FrameSpecification::Ipv6Tuple(tuple(of, is_any, v6))
        }
    })
}

fn matches_tuple<A: PartialEq>(of: &IpTuple<A>, header: Header, address: fn(u8) -> A) -> bool {
    let full = tuple(header, (false, false), address);
    (of.source_ip_address.is_none() || of.source_ip_address == full.source_ip_address)
        && of.destination_ip_address == full.destination_ip_address
        && of.protocol == full.protocol
        && (of.source_port.is_none() || of.source_port == full.source_port)
        && of.destination_port == full.destination_port
}

fn matches(of: &FrameSpecification, header: Header) -> bool {
    match of {
        FrameSpecification::Ipv4Tuple(of) => header[0] == 0 && matches_tuple(of, header, v4),
        FrameSpecification::Ipv6Tuple(of) => header[0] == 1 && matches_tuple(of, header, v6),
    }
}

fn headers() -> impl Iterator<Item = Header> {
    let count: usize = VALUES.iter().map(|most| usize::from(*most)).product();
    (0..count).map(|n| {
        let mut rest = n;
        VALUES.map(|most| {
            let value = rest % usize::from(most);
            rest /= usize::from(most);
            u8::try_from(value).unwrap()
        })
    })
}

proptest! {
    #![proptest_config(testkit::cases(1000))]

    /// Two specifications overlap if and only if some packet matches both.
    #[test]
    fn overlaps_agree_with_a_search(one in specification(), other in specification()) {
        let has_common = headers().any(|header| matches(&one, header) && matches(&other, header));
        prop_assert_eq!(one.overlaps(&other), has_common);
        prop_assert_eq!(other.overlaps(&one), has_common);
        prop_assert!(one.overlaps(&one));
    }
}

/// An address that is absent is any address, also where the other one names it.
#[test]
fn absent_fields_are_any() {
    let all = FrameSpecification::udp_to("10.0.0.2:5004".parse().unwrap());
    let FrameSpecification::Ipv4Tuple(mut from) = all else {
        unreachable!("an IPv4 address")
    };
    (from.source_ip_address, from.source_port) = (Some(v4(1)), Some(7));
    assert!(all.overlaps(&FrameSpecification::Ipv4Tuple(from)));
    let other = IpTuple {
        source_port: Some(8),
        ..from
    };
    let [from, other] = [from, other].map(FrameSpecification::Ipv4Tuple);
    assert!(!from.overlaps(&other));
    assert!(!all.overlaps(&FrameSpecification::udp_to(
        "10.0.0.2:5005".parse().unwrap()
    )));
    assert!(!all.overlaps(&FrameSpecification::udp_to(
        "[::ffff:10.0.0.2]:5004".parse().unwrap()
    )));
}
