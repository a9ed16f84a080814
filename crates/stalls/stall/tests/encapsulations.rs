// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures in which the two directions of a connection are inside different VLANs or tunnels:
//! the numbers of a VLAN, a VXLAN network or an NVGRE subnet may differ by direction.

use std::io::{Cursor, Read};
use std::net::IpAddr;

use capture::segment::{Flags, Segment};
use capture::segments::{Segments, Source};
use stall::follow::{Follower, Limits, Report};
use stall::{Analysis, Options};

use crate::script::{Base, analyse, segments};

/// A tail that was lost, from the handshake on.
const WHOLE: &str = "
    0    S SYN
    20   R SYN
    20   S ack
    20   S 0..1448
    40   R ack 1448
    60   S 1448..2896
    310  S 1448..2896
    330  R ack 2896
    330  S 2896..4344
    350  R ack 4344
";

/// A capture that begins while data is under way: the first acknowledgements are of data that it
/// does not have.
const AMIDST: &str = "
    0    S 30000..31448
    5    R ack 20000
    10   S 31448..32896
    15   R ack 25000
    20   R ack 31448
    30   R ack 32896
    40   S 32896..34344
    290  S 32896..34344
    310  R ack 34344
    310  S 34344..35792
    330  R ack 35792
";

/// What is around a packet of one direction.
#[derive(Clone, Copy, Debug)]
enum Around {
    Nothing,
    Vlan(u16),
    Vxlan(u32),
    Nvgre(u32),
    /// The last byte of the outer addresses.
    IpInIp(u8),
    /// An outer and an inner VLAN.
    TwoVlans(u16, u16),
}

fn ethernet(kind: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(kind.to_be_bytes());
    frame
}

/// An IPv4 header in front of so many bytes.
fn ip(from: IpAddr, to: IpAddr, protocol: u8, bytes: usize) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    header.extend(u16::try_from(20 + bytes).unwrap().to_be_bytes());
    header.extend([0, 0, 0x40, 0, 60, protocol, 0, 0]);
    for address in [from, to] {
        match address {
            IpAddr::V4(address) => header.extend(address.octets()),
            IpAddr::V6(_) => unreachable!("scripts have IPv4"),
        }
    }
    header
}

fn tcp(segment: &Segment) -> Vec<u8> {
    let mut options = Vec::new();
    if let (Some(mss), Some(scale)) = (segment.mss, segment.window_scale) {
        options.extend([2, 4]);
        options.extend(mss.to_be_bytes());
        options.extend([1, 3, 3, scale]);
    }
    let mut header = Vec::new();
    header.extend(segment.from.port.to_be_bytes());
    header.extend(segment.to.port.to_be_bytes());
    header.extend(segment.seq.to_be_bytes());
    let has_ack = segment.flags.any(Flags::ACK);
    header.extend(if has_ack { segment.ack } else { 0 }.to_be_bytes());
    header.push(u8::try_from((20 + options.len()) / 4 * 16).unwrap());
    header.push(u8::try_from(segment.flags.0 & 0xff).unwrap());
    header.extend(segment.window.to_be_bytes());
    header.extend([0; 4]);
    header.extend(options);
    header
}

/// The headers of a packet, and the number of bytes that it has with its payload.
fn packet(segment: &Segment, around: Around) -> (Vec<u8>, usize) {
    let (header, payload) = (tcp(segment), segment.payload_bytes as usize);
    let (from, to) = (segment.from.address, segment.to.address);
    let mut inner = ip(from, to, 6, header.len() + payload);
    inner.extend(header);
    let ends = [[203, 0, 113, 1], [203, 0, 113, 2]].map(IpAddr::from);
    let frame = match around {
        Around::Nothing => [ethernet(0x0800), inner].concat(),
        Around::Vlan(id) => {
            let tag = [id.to_be_bytes(), 0x0800_u16.to_be_bytes()].concat();
            [ethernet(0x8100), tag, inner].concat()
        }
        Around::TwoVlans(outer, inner_id) => {
            let tags = [outer, 0x8100, inner_id, 0x0800].map(u16::to_be_bytes);
            [ethernet(0x88a8), tags.concat(), inner].concat()
        }
        Around::IpInIp(end) => {
            let outer = [[203, 0, 113, end], [203, 0, 113, end + 1]].map(IpAddr::from);
            let bytes = inner.len() + payload;
            [ethernet(0x0800), ip(outer[0], outer[1], 4, bytes), inner].concat()
        }
        Around::Vxlan(network) => {
            let within = [ethernet(0x0800), inner].concat();
            let bytes = within.len() + payload + 16;
            let mut udp = [50_000_u16, 4789, u16::try_from(bytes).unwrap(), 0]
                .map(u16::to_be_bytes)
                .concat();
            udp.extend([8, 0, 0, 0]);
            udp.extend((network << 8).to_be_bytes());
            [
                ethernet(0x0800),
                ip(ends[0], ends[1], 17, bytes),
                udp,
                within,
            ]
            .concat()
        }
        Around::Nvgre(subnet) => {
            let within = [ethernet(0x0800), inner].concat();
            let mut gre = vec![0x20, 0, 0x65, 0x58];
            gre.extend((subnet << 8).to_be_bytes());
            let bytes = gre.len() + within.len() + payload;
            [
                ethernet(0x0800),
                ip(ends[0], ends[1], 47, bytes),
                gre,
                within,
            ]
            .concat()
        }
    };
    let bytes = frame.len() + payload;
    (frame, bytes)
}

/// A pcap of headers, with what is around the packets of the sender and of the receiver.
fn pcap(script: &str, around: [Around; 2]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for segment in segments(script, Base::default()) {
        let is_receiver = segment.from.port == 5001;
        let (frame, bytes) = packet(&segment, around[usize::from(is_receiver)]);
        let time = [
            segment.time_ns / 1_000_000_000,
            segment.time_ns % 1_000_000_000,
        ];
        let lengths = [frame.len(), bytes].map(|n| n as u64);
        for word in time.into_iter().chain(lengths) {
            file.extend(u32::try_from(word).unwrap().to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// The segments of a capture as the reader finds them.
fn read(pcap: &[u8]) -> Vec<Segment> {
    let open = || Ok(Box::new(Cursor::new(pcap)) as Box<dyn Read>);
    let mut found = Segments::open(vec![Source::new("case", open)]).unwrap();
    std::iter::from_fn(|| found.next()).collect()
}

/// What a connection comes to, however it is encapsulated.
fn results(analysis: &Analysis) -> Vec<(u64, u64, u64, Vec<stall::Cause>)> {
    let of = |connection: &stall::Connection| {
        let flow = &connection.flows[0];
        let causes = connection.stalls.iter().map(|stall| stall.cause);
        (
            connection.packets,
            flow.acks,
            flow.retransmissions.total(),
            causes.collect(),
        )
    };
    analysis.connections.iter().map(of).collect()
}

const PAIRS: [[Around; 2]; 8] = [
    [Around::Vlan(10), Around::Vlan(20)],
    [Around::Vlan(10), Around::Nothing],
    [Around::Nothing, Around::Vlan(10)],
    [Around::Vxlan(7001), Around::Vxlan(7002)],
    [Around::Nvgre(5001), Around::Nvgre(5002)],
    [Around::IpInIp(1), Around::IpInIp(5)],
    [Around::TwoVlans(7, 8), Around::TwoVlans(7, 9)],
    [Around::IpInIp(1), Around::Vlan(9)],
];

#[test]
fn numbers_that_differ_by_direction_do_not_split_a_connection() {
    for script in [WHOLE, AMIDST] {
        let plain = read(&pcap(script, [Around::Nothing; 2]));
        let wanted = results(&analyse(&plain));
        assert_eq!(wanted.len(), 1, "{script}");
        assert_eq!(wanted[0].2, 1, "{script}");
        for around in PAIRS {
            let found = read(&pcap(script, around));
            let ids: Vec<_> = found.iter().map(|segment| segment.encapsulation).collect();
            assert!(ids.iter().any(|id| *id != ids[0]), "{around:?}: {ids:?}");
            assert_eq!(results(&analyse(&found)), wanted, "{around:?} {script}");
        }
    }
}

/// Requests that were sent again, refused or answered twice; a tail without an end.
const SETUPS: [&str; 3] = [
    "0 S SYN\n1000 S SYN\n1020 R SYN\n1020 S ack\n1020 S 0..1448\n1040 R ack 1448",
    "0 S SYN\n20 R SYN\n220 R SYN\n221 S ack\n221 S 0..1448\n240 R ack 1448",
    "0 S SYN\n20 R SYN\n20 S ack\n30 R ack 0\n40 S 0..1448\n60 R ack 1448",
];

#[test]
fn neither_do_they_split_a_handshake() {
    for script in SETUPS {
        let wanted = results(&analyse(&read(&pcap(script, [Around::Nothing; 2]))));
        assert_eq!(wanted.len(), 1, "{script}");
        for around in PAIRS {
            let found = analyse(&read(&pcap(script, around)));
            assert_eq!(results(&found), wanted, "{around:?} {script}");
        }
    }
}

/// The number of connections and of stalls where packets are judged as they come.
fn followed(packets: &[Segment]) -> (u64, usize) {
    let mut follower = Follower::new(Options::default(), Limits::default());
    for segment in packets {
        follower.segment(segment);
    }
    follower.finish();
    assert_eq!(follower.connections(), 0);
    let opened = follower.opened();
    let is_stall = |report: &Report| matches!(report, Report::Stall(_));
    (opened, follower.reports().filter(is_stall).count())
}

#[test]
fn neither_do_they_split_one_that_is_followed() {
    for script in [WHOLE, AMIDST] {
        let wanted = followed(&read(&pcap(script, [Around::Nothing; 2])));
        assert_eq!(wanted.0, 1);
        assert!(wanted.1 > 0, "{script}");
        for around in PAIRS {
            let found = followed(&read(&pcap(script, around)));
            assert_eq!(found, wanted, "{around:?} {script}");
        }
    }
}

/// Two tenants may have the same addresses and ports: connections whose numbers do not fit each
/// other are two, also where one direction alone was captured of each.
#[test]
fn directions_whose_numbers_do_not_fit_are_two_connections() {
    let mut all = read(&pcap(AMIDST, [Around::Vxlan(7001), Around::Vxlan(7002)]));
    for segment in &mut all {
        if segment.from.port == 5001 {
            (segment.seq, segment.ack) = (segment.seq ^ 0x4000_0000, segment.ack ^ 0x2000_0000);
        }
    }
    assert_eq!(analyse(&all).connections.len(), 2);
}
/// Ports are used again: each handshake opens a connection, whose directions are joined again.
#[test]
fn each_handshake_of_reused_ports_opens_one_connection() {
    for around in PAIRS {
        let first = read(&pcap(WHOLE, around));
        let mut all = first.clone();
        for round in 1..4u32 {
            let moved = first.iter().map(|segment| Segment {
                number: segment.number + u64::from(round) * 100,
                time_ns: segment.time_ns + u64::from(round) * 5_000_000_000,
                seq: segment.seq.wrapping_add(round * 0x1234_5678),
                ack: segment.ack.wrapping_add(round * 0x1234_5678),
                ..*segment
            });
            all.extend(moved.collect::<Vec<_>>());
        }
        let found = results(&analyse(&all));
        let wanted = results(&analyse(&first));
        assert_eq!(found, vec![wanted[0].clone(); 4], "{around:?}");
    }
}
