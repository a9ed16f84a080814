// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets of a running host, written and read again.

use capture::saved::{SavedPacket, write_packets};
use capture::segment::HostDirection;
use capture::segments::{Segments, Source};

/// A segment without payload from port 1 to port 2.
fn segment() -> Vec<u8> {
    let mut bytes = vec![
        0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 1, 0, 1, 10, 1, 0, 2,
    ];
    bytes.extend([
        0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0,
    ]);
    bytes
}

#[test]
fn time_direction_and_interface_are_read_again() {
    let bytes = segment();
    let packet = |interface, time_ns, is_outgoing| SavedPacket {
        interface,
        time_ns,
        is_outgoing,
        packet_bytes: 40,
        bytes: &bytes,
    };
    // The second time needs more than 32 bits twice over.
    let packets = [
        packet(1, 7, true),
        packet(0, 1_800_000_000_123_456_789, false),
    ];
    let names = ["eth0".to_owned(), "eth1".to_owned()];
    let mut file = Vec::new();
    write_packets(&mut file, "a comment", &names, 128, &packets).unwrap();
    let source = Source::new("a file", || Ok(Box::new(file.as_slice())));
    let mut segments = Segments::open(vec![source]).unwrap();
    let mut times = Vec::new();
    while let Some(segment) = segments.next() {
        assert_eq!((segment.from.port, segment.to.port), (1, 2));
        times.push((segment.time_ns, segment.host_direction));
    }
    let expected = [
        (7, HostDirection::Out),
        (1_800_000_000_123_456_789, HostDirection::In),
    ];
    assert_eq!(times, expected);
    let names: Vec<&str> = segments
        .interfaces()
        .iter()
        .map(|i| i.name.as_str())
        .collect();
    assert_eq!(names, ["eth0", "eth1"]);
    assert!(file.windows(9).any(|part| part == b"a comment"));
}
