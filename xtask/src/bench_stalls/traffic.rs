// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a capture for measuring the speed of the analysis: many TCP connections side by side, as
//! a router sees them, with the events that the analysis must examine: losses with SACK, timeouts,
//! pauses, closed windows. The same seed gives the same bytes.
//!
//! Each connection repeats one of a few simulated transfers, with addresses, ports, sequence
//! numbers and a beginning of its own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use tcp_stacks::app::{App, Reader, Step};
use tcp_stacks::capture_file::{header, push_record};
use tcp_stacks::chance::Chance;
use tcp_stacks::draw::Kind;
use tcp_stacks::ground_truth::{End, Pause};
use tcp_stacks::packet::Ids;
use tcp_stacks::path::{Nature, Path};
use tcp_stacks::profile::{MS, Profile, S};
use tcp_stacks::world::{Point, Seen, Setup, run};

/// Number of simulated transfers.
const TRANSFERS: u64 = 60;
/// Payload of a full segment, in bytes.
const SEGMENT_BYTES: u64 = 1448;

/// Describes the capture.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Number of packets in the capture.
    pub packets: u64,
    /// Number of simultaneous connections; when one ends, another begins.
    pub side_by_side: u32,
    /// Approximate number of packets of a connection.
    pub packets_each: u32,
    /// Bytes kept of each packet.
    pub snap_bytes: usize,
}

/// Simulates an upload of about `packets` packets; returns what a router in the middle sees of it.
fn transfer(number: u64, packets: u32) -> Vec<Seen> {
    let mut chance = Chance::new(1, number);
    let packets = u64::from(packets);
    // Each second segment is acknowledged, so two of three packets carry data.
    let bytes = chance.between(packets / 3, packets) * SEGMENT_BYTES;
    let mut steps = vec![Step::Write(bytes / 2)];
    if number % 3 == 1 {
        steps.push(Step::Pause(Pause::Work, 300 * MS));
    }
    steps.extend([Step::Write(bytes - bytes / 2), Step::Close, Step::AwaitEnd]);
    let mut reader = Reader::default();
    if number % 6 == 2 {
        reader.pauses.push((bytes / 2, 400 * MS));
    }
    let back = Nature {
        rate_bps: 1_000_000_000,
        delay_ns: chance.between(1, 30) * MS,
        ..Nature::default()
    };
    let mut forth = back.clone();
    // About two losses in a transfer of 5000 packets.
    forth.loss_ppm = 600;
    if number % 5 == 0 {
        // No retransmission timeout of Linux is shorter than 200 ms.
        forth
            .outages
            .push((5 * back.delay_ns, 5 * back.delay_ns + 250 * MS));
    }
    let ids = ids(0, &mut chance);
    let kind = || Kind::Scripted(Profile::linux());
    let mut run = run(Setup {
        stacks: [
            kind().stack(End::Client, &ids, 0, &mut chance),
            kind().stack(End::Server, &ids, 0, &mut chance),
        ],
        ids,
        apps: [
            App::new(&steps, Reader::default()),
            App::new(&[Step::AwaitEnd, Step::Close], reader),
        ],
        paths: [
            Path::new(forth, Chance::new(2, number)),
            Path::new(back, Chance::new(3, number)),
        ],
        host_ns: [10_000; 2],
        dies_ns: [None; 2],
        until_ns: 600 * S,
    });
    std::mem::take(&mut run.seen[Point::Middle as usize])
}

/// Returns the addresses, ports and initial sequence numbers of connection `number`.
fn ids(number: u32, chance: &mut Chance) -> Ids {
    let [_, b, c, d] = number.to_be_bytes();
    Ids {
        addresses: [[10, b, c, d], [192, 0, 2, (number % 200) as u8]],
        ports: [1024 + (number % 60_000) as u16, 443],
        initial: [(); 2].map(|()| chance.below(1 << 32) as u32),
    }
}

/// A connection that repeats a transfer.
struct Connection<'a> {
    ids: Ids,
    start_ns: u64,
    /// Packets that are not written yet.
    left: &'a [Seen],
}

impl<'a> Connection<'a> {
    fn new(number: u32, start_ns: u64, transfers: &'a [Vec<Seen>], chance: &mut Chance) -> Self {
        let index = chance.below(transfers.len() as u64) as usize;
        Self {
            ids: ids(number, chance),
            start_ns,
            left: &transfers[index],
        }
    }
}

/// Writes the capture, a pcap file with nanoseconds.
pub fn write(out: &mut impl Write, traffic: Traffic) -> io::Result<()> {
    out.write_all(&header(traffic.snap_bytes))?;
    let transfers = (0..TRANSFERS).map(|number| transfer(number, traffic.packets_each));
    let transfers: Vec<_> = transfers.collect();
    let mut chance = Chance::new(1, TRANSFERS);
    let mut connections = Vec::new();
    let mut next = BinaryHeap::new();
    for number in 0..traffic.side_by_side {
        let start_ns = chance.below(S);
        connections.push(Connection::new(number, start_ns, &transfers, &mut chance));
        next.push(Reverse((start_ns, number)));
    }
    let mut begun = traffic.side_by_side;
    let mut written = 0;
    let mut record = Vec::new();
    while let (true, Some(Reverse((time_ns, index)))) = (written < traffic.packets, next.pop()) {
        let connection = &mut connections[index as usize];
        match connection.left.split_first() {
            Some((seen, left)) => {
                record.clear();
                push_record(
                    &mut record,
                    seen,
                    &connection.ids,
                    time_ns,
                    traffic.snap_bytes,
                );
                out.write_all(&record)?;
                connection.left = left;
                written += 1;
            }
            None => {
                *connection = Connection::new(begun, time_ns + 10 * MS, &transfers, &mut chance);
                begun += 1;
            }
        }
        let after_ns = connection.left.first().map_or(0, |seen| seen.time_ns);
        next.push(Reverse((
            time_ns.max(connection.start_ns + after_ns),
            index,
        )));
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Traffic = Traffic {
        packets: 20_000,
        side_by_side: 10,
        packets_each: 200,
        snap_bytes: 64,
    };

    fn capture(traffic: Traffic) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, traffic).unwrap();
        out
    }

    #[test]
    fn as_many_packets_as_asked_for_in_order_and_always_the_same() {
        let file = capture(SMALL);
        assert_eq!(file, capture(SMALL));
        let mut rest = &file[24..];
        let (mut packets, mut last) = (0, (0, 0));
        while !rest.is_empty() {
            let word = |i: usize| u32::from_le_bytes(rest[i..i + 4].try_into().unwrap());
            assert!(
                (word(0), word(4)) >= last,
                "packet {packets} runs backwards"
            );
            last = (word(0), word(4));
            assert!(word(8) <= 64 && word(8) <= word(12));
            rest = &rest[16 + word(8) as usize..];
            packets += 1;
        }
        assert_eq!(packets, SMALL.packets);
    }

    #[test]
    fn a_longer_snap_length_keeps_the_options() {
        let whole = capture(Traffic {
            snap_bytes: 128,
            ..SMALL
        });
        let some_sack = whole.windows(4).any(|w| w == [1, 1, 5, 10]);
        assert!(some_sack);
    }
}
