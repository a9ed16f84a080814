// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filters survive a message, and what is not ours is kept as it is.

use proptest::prelude::*;

use super::*;

fn read(matching: &Match) -> Option<Match> {
    let class = Handle::new(1, 2);
    let options = attribute::write(&matching.write(class));
    let handle = match matching {
        Match::Mark(mark) => *mark,
        _ => 1,
    };
    let filter = Filter {
        device: 1,
        parent: Handle::new(1, 0),
        priority: 1,
        protocol: matching.protocol(),
        handle,
        kind: matching.kind().to_owned(),
        class: class_of(matching.kind(), &options),
        options,
    };
    if *matching != Match::Cgroup {
        assert_eq!(filter.class, Some(class));
    }
    filter.matching()
}

fn prefixes(v4: bool) -> impl Strategy<Value = Option<Prefix>> {
    let most = if v4 { 32 } else { 128u8 };
    proptest::option::of((any::<u128>(), 1..=most)).prop_map(move |drawn| {
        let (number, bits) = drawn?;
        let mask = u128::MAX << (128 - u32::from(bits));
        let bytes = (number & mask).to_be_bytes();
        let address = if v4 {
            IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]])
        } else {
            IpAddr::from(bytes)
        };
        Some(Prefix { address, bits })
    })
}

fn ports() -> impl Strategy<Value = Option<Ports>> {
    let ports = (1..=u16::MAX, 0..3u16);
    proptest::option::of(ports.prop_map(|(first, more)| Ports {
        first,
        last: first.saturating_add(more),
    }))
}

fn flowers() -> impl Strategy<Value = Flower> {
    any::<bool>().prop_flat_map(|v4| {
        let protocols = proptest::sample::select(&Protocol::ALL[..3]);
        let head = (
            proptest::option::of(1..4095u16),
            protocols,
            proptest::option::of(0..64u8),
            proptest::option::of("[a-z]{1,15}"),
        );
        let body = (prefixes(v4), prefixes(v4), ports(), ports());
        (head, body).prop_map(move |(head, body)| Flower {
            vlan: head.0,
            family: Some(if v4 { Family::Ipv4 } else { Family::Ipv6 }),
            protocol: Some(head.1),
            source: body.0,
            destination: body.1,
            source_ports: body.2,
            destination_ports: body.3,
            dscp: head.2,
            interface: head.3.map(|name| Interface { name, index: 0 }),
        })
    })
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn what_is_written_is_read(flower in flowers()) {
        let matching = Match::Flower(flower);
        prop_assert_eq!(read(&matching), Some(matching));
    }
}

#[test]
fn others_are_read_too() {
    for matching in [
        Match::Mark(7),
        Match::Cgroup,
        Match::Flower(Flower {
            vlan: Some(5),
            ..Flower::default()
        }),
        Match::Flower(Flower {
            interface: Some(Interface {
                name: "veth0".to_owned(),
                index: 0,
            }),
            ..Flower::default()
        }),
    ] {
        assert_eq!(read(&matching), Some(matching));
    }
}

#[test]
fn a_filter_that_looks_at_more_is_of_others() {
    let mut all = Flower::default().write(Handle::new(1, 1));
    assert!(Flower::read(ANY, &all).is_some());
    all.push(Attribute::new(4, [0; 6]));
    assert_eq!(Flower::read(ANY, &all), None);
    // A mask that is no prefix's.
    let odd = [
        Attribute::new(flower::IPV4[0], [10, 0, 0, 1]),
        Attribute::new(flower::IPV4[1], [255, 0, 0, 255]),
    ];
    assert_eq!(Flower::read(IPV4, &odd), None);
}

#[test]
fn prefixes_and_ports() {
    let prefix = Prefix::parse("10.1.0.0/16").unwrap();
    assert_eq!(prefix.to_string(), "10.1.0.0/16");
    assert!(prefix.contains([10, 1, 2, 3].into()));
    assert!(!prefix.contains([10, 2, 2, 3].into()));
    assert!(!prefix.contains("fd00::1".parse().unwrap()));
    assert_eq!(Prefix::parse("fd00::1").unwrap().bits, 128);
    assert_eq!(Prefix::parse("fd00::1").unwrap().to_string(), "fd00::1");
    for text in ["10.1.0.1/16", "10.0.0.0/33", "x", "10.0.0.0/", "/8"] {
        assert_eq!(Prefix::parse(text), None, "{text}");
    }
    assert_eq!(Ports::parse("80-90").unwrap().to_string(), "80-90");
    assert_eq!(Ports::parse("80").unwrap().to_string(), "80");
    for text in ["0", "90-80", "80-", "", "65536", "+1", "1-2-3"] {
        assert_eq!(Ports::parse(text), None, "{text}");
    }
}
