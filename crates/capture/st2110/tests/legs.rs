// SPDX-License-Identifier: MIT OR Apache-2.0
//! Legs of SMPTE ST 2022-7, and streams that only resemble them.

use std::net::SocketAddr;

use st2110::pairs::{Pair, pairs};
use st2110::stream::{Datagram, Streams};

use crate::common::{Timed, US};
use crate::made;

fn of(legs: &[(&str, &[Timed])]) -> Vec<Pair> {
    let mut streams = Streams::default();
    for (to, packets) in legs {
        for packet in *packets {
            streams.add(&Datagram {
                time_ps: packet.time_ps,
                from: "10.0.0.1:5000".parse().unwrap(),
                to: to.parse::<SocketAddr>().unwrap(),
                payload: &packet.bytes,
                payload_bytes: packet.bytes.len() as u32,
            });
        }
    }
    pairs(&streams.finish().streams)
}

#[test]
fn losses_of_one_leg_are_none_of_both() {
    let first = made::jpeg_xs();
    let mut second = first.clone();
    second
        .iter_mut()
        .for_each(|packet| packet.time_ps += 700 * US);
    let mut first = first;
    // Lost here, lost there, lost on both.
    first.drain(1000..1010);
    first.drain(100..105);
    second.drain(1005..1020);
    let found = of(&[("239.1.1.1:5004", &first), ("239.1.1.2:5004", &second)]);
    assert_eq!(found.len(), 1);
    let pair = &found[0];
    // 1005 to 1009 came on no leg.
    assert_eq!((pair.packets, pair.lost), (2400 - 5, 5));
    let [a, b] = &pair.legs[..] else {
        panic!("{pair:?}")
    };
    assert_eq!((a.stream, a.lost, a.alone), (0, 15, 10));
    assert_eq!((b.stream, b.lost, b.alone), (1, 15, 10));
    assert_eq!((a.first, b.first), (2385, 10));
    let skew = b.skew_ns.unwrap();
    assert_eq!(
        (skew.min, skew.max, a.skew_ns),
        (700_000.0, 700_000.0, None)
    );
}

#[test]
fn others_with_the_same_source_are_no_legs() {
    let first = made::jpeg_xs();
    let mut other = first.clone();
    for packet in &mut other {
        packet.bytes[7] ^= 0x55;
    }
    let to = ("239.1.1.1:5004", &first[..]);
    assert!(
        of(&[to, ("239.1.1.2:5004", &other)]).is_empty(),
        "other timestamps"
    );
    for packet in &mut other {
        packet.bytes[7] ^= 0x55;
        packet.bytes[8] = 9;
    }
    assert!(
        of(&[to, ("239.1.1.2:5004", &other)]).is_empty(),
        "another source"
    );
    assert!(of(&[to]).is_empty());
    // Three ways are one stream, too.
    let three = of(&[to, ("239.1.1.2:5004", &first), ("239.1.1.3:5004", &first)]);
    assert_eq!((three.len(), three[0].legs.len()), (1, 3));
}
