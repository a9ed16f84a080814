// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a capture for measuring the speed of the analysis: many TCP connections side by side, as
//! a router sees them, with the events that the analysis must examine: losses with SACK, timeouts,
//! pauses, closed windows. The same seed gives the same bytes.
//!
//! The senders are no model of TCP (the simulator has those): they produce, round by round, what
//! the wire would show.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

/// Payload of a full segment, in bytes.
const MSS: u32 = 1448;
const HEADERS: u32 = 14 + 20 + 32;
const ACK: u8 = 16;
const SYN: u8 = 2;
const FIN: u8 = 1;
/// Time between the segments of a burst, at about 1 Gbit/s.
const GAP_NS: u64 = 12_000;
const WINDOW: u16 = 2000;
const SHORTEST_RTO_NS: u64 = 200_000_000;

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

/// Splitmix64: random numbers that are the same on every machine.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A packet before its bytes are made.
#[derive(Clone, Copy)]
struct Packet {
    time_ns: u64,
    to_server: bool,
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    payload: u32,
    sack: Option<(u32, u32)>,
}

struct Connection {
    number: u32,
    rtt_ns: u64,
    cwnd: u32,
    /// Next sequence number of the client. The server sends no data, so its own stays at 1.
    seq: u32,
    left: u32,
    now_ns: u64,
    /// Packets of this round that are not written yet, the last first.
    round: Vec<Packet>,
    /// IP identification of the next packet. A retransmission has another one than its original:
    /// equal ones would mean one packet captured twice.
    ip_id: u16,
}

impl Connection {
    fn new(number: u32, now_ns: u64, chance: &mut Chance, packets: u32) -> Self {
        let rtt_ns = 1_000_000 * (2 + chance.below(60));
        let mut new = Self {
            number,
            rtt_ns,
            cwnd: 10,
            seq: chance.next() as u32,
            left: packets / 2 + chance.below(u64::from(packets)) as u32,
            now_ns,
            round: Vec::new(),
            ip_id: 0,
        };
        let first = new.seq;
        new.push(0, true, first, 0, SYN, 0);
        new.push(rtt_ns / 2, false, 0, first.wrapping_add(1), SYN | ACK, 0);
        new.seq = first.wrapping_add(1);
        new.push(rtt_ns, true, new.seq, 1, ACK, 0);
        new.now_ns += rtt_ns;
        new.round.reverse();
        new
    }

    fn push(
        &mut self,
        after_ns: u64,
        to_server: bool,
        seq: u32,
        ack: u32,
        flags: u8,
        payload: u32,
    ) {
        self.round.push(Packet {
            time_ns: self.now_ns + after_ns,
            to_server,
            seq,
            ack,
            flags,
            window: WINDOW,
            payload,
            sack: None,
        });
    }

    fn acknowledge(&mut self, after_ns: u64, ack: u32) {
        self.push(after_ns, false, 1, ack, ACK, 0);
    }

    fn data(&mut self, after_ns: u64, seq: u32) {
        self.push(after_ns, true, seq, 1, ACK, MSS);
    }

    /// Makes the packets of the next round; returns `false` if the connection is over.
    fn next_round(&mut self, chance: &mut Chance) -> bool {
        if self.left == 0 {
            return false;
        }
        let segments = self.cwnd.min(self.left);
        self.left -= segments;
        let first = self.seq;
        let rtt_ns = self.rtt_ns;
        let last_ns = u64::from(segments) * GAP_NS;
        for i in 0..segments {
            self.data(u64::from(i) * GAP_NS, first.wrapping_add(i * MSS));
        }
        let end = first.wrapping_add(segments * MSS);
        self.seq = end;
        match chance.below(1000) {
            0..30 if segments > 8 => self.loss(first, segments, chance),
            30..34 => self.tail_loss(first, segments),
            34..40 => {
                self.acknowledge(rtt_ns + last_ns, end);
                // The connection pauses, because the application has nothing to send.
                self.now_ns += 300_000_000;
            }
            40..43 => self.closed_window(end, last_ns),
            _ => {
                // The receiver acknowledges every second segment, and the last.
                for i in (2..segments).step_by(2) {
                    let after_ns = rtt_ns + u64::from(i) * GAP_NS;
                    self.acknowledge(after_ns, first.wrapping_add(i * MSS));
                }
                self.acknowledge(rtt_ns + last_ns, end);
                self.cwnd = (self.cwnd + 1 + self.cwnd / 16).min(200);
            }
        }
        if self.left == 0 {
            let seq = self.seq;
            self.push(2 * rtt_ns + last_ns, true, seq, 1, FIN | ACK, 0);
            self.push(
                3 * rtt_ns + last_ns,
                false,
                1,
                seq.wrapping_add(1),
                FIN | ACK,
                0,
            );
        }
        self.now_ns += rtt_ns + last_ns;
        // Packets with equal times stay in the order in which they were made.
        self.round.sort_by_key(|p| p.time_ns);
        self.round.reverse();
        true
    }

    /// Makes a round in which one segment is lost. SACK reports those after it, and the segment is
    /// retransmitted after three such reports.
    fn loss(&mut self, first: u32, segments: u32, chance: &mut Chance) {
        let lost = chance.below(u64::from(segments) - 4) as u32;
        let hole = first.wrapping_add(lost * MSS);
        let end = first.wrapping_add(segments * MSS);
        for i in lost + 1..segments {
            let after_ns = self.rtt_ns + u64::from(i) * GAP_NS;
            self.acknowledge(after_ns, hole);
            if let Some(ack) = self.round.last_mut() {
                let to = first.wrapping_add((i + 1) * MSS);
                ack.sack = Some((hole.wrapping_add(MSS), to));
            }
        }
        let again_ns = self.rtt_ns + u64::from(lost + 4) * GAP_NS;
        self.data(again_ns, hole);
        self.acknowledge(again_ns + self.rtt_ns, end);
        self.now_ns += self.rtt_ns;
        self.cwnd = (self.cwnd / 2).max(2);
    }

    /// Makes a round in which the last segment is lost and retransmitted after a timeout.
    fn tail_loss(&mut self, first: u32, segments: u32) {
        let tail = first.wrapping_add((segments - 1) * MSS);
        let last_ns = u64::from(segments) * GAP_NS;
        self.acknowledge(self.rtt_ns + last_ns, tail);
        let timeout_ns = SHORTEST_RTO_NS + 2 * self.rtt_ns;
        self.data(last_ns + timeout_ns, tail);
        self.acknowledge(last_ns + timeout_ns + self.rtt_ns, tail.wrapping_add(MSS));
        self.now_ns += timeout_ns;
        self.cwnd = 2;
    }

    fn closed_window(&mut self, end: u32, last_ns: u64) {
        for (after_ns, window) in [(self.rtt_ns + last_ns, 0), (400_000_000, WINDOW)] {
            self.acknowledge(after_ns, end);
            if let Some(ack) = self.round.last_mut() {
                ack.window = window;
            }
        }
        self.now_ns += 400_000_000;
    }
}

/// Writes the capture, a pcap file with nanoseconds.
///
/// # Errors
/// The errors of `out`.
pub fn write(out: &mut impl Write, traffic: Traffic) -> io::Result<()> {
    for word in [
        0xa1b2_3c4d,
        0x0004_0002,
        0,
        0,
        traffic.snap_bytes as u32,
        1u32,
    ] {
        out.write_all(&word.to_le_bytes())?;
    }
    let mut chance = Chance(1);
    let mut connections = Vec::new();
    let mut next = BinaryHeap::new();
    for number in 0..traffic.side_by_side {
        let start_ns = chance.below(1_000_000_000);
        connections.push(Connection::new(
            number,
            start_ns,
            &mut chance,
            traffic.packets_each,
        ));
        next.push(Reverse((start_ns, number)));
    }
    let mut numbers = traffic.side_by_side;
    for _ in 0..traffic.packets {
        let Some(Reverse((_, index))) = next.pop() else {
            break;
        };
        let connection = &mut connections[index as usize];
        if let Some(packet) = connection.round.pop() {
            connection.ip_id = connection.ip_id.wrapping_add(1);
            let (number, ip_id) = (connection.number, connection.ip_id);
            record(out, &packet, (number, ip_id), traffic.snap_bytes)?;
        }
        if connection.round.is_empty() && !connection.next_round(&mut chance) {
            // The new connection begins after the last packets of the old one.
            let now_ns = connection.now_ns + 10_000_000 + 3 * connection.rtt_ns;
            *connection = Connection::new(numbers, now_ns, &mut chance, traffic.packets_each);
            numbers += 1;
        }
        let time_ns = connection.round.last().map_or(0, |p| p.time_ns);
        next.push(Reverse((time_ns, index)));
    }
    out.flush()
}

fn record(
    out: &mut impl Write,
    p: &Packet,
    (number, ip_id): (u32, u16),
    snap_bytes: usize,
) -> io::Result<()> {
    let syn = p.flags & SYN != 0;
    // Option bytes beside the timestamps: a SACK block, or the options of a SYN.
    let options = match (syn, p.sack) {
        (true, _) => 8,
        (false, Some(_)) => 12,
        (false, None) => 0,
    };
    let total = HEADERS - 14 + options + p.payload;
    let mut bytes = [0u8; 128];
    let mut at = 0;
    let mut put = |part: &[u8]| {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    };
    let [_, b, c, d] = number.to_be_bytes();
    let client = [10, b, c, d];
    let server = [192, 0, 2, (number % 200) as u8];
    let port = 1024 + (number % 60_000) as u16;
    let (from, to, ports) = if p.to_server {
        (client, server, [port, 443])
    } else {
        (server, client, [443, port])
    };
    put(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0]);
    put(&(total as u16).to_be_bytes());
    put(&ip_id.to_be_bytes());
    put(&[0x40, 0, 61, 6, 0, 0]);
    put(&from);
    put(&to);
    put(&ports[0].to_be_bytes());
    put(&ports[1].to_be_bytes());
    put(&p.seq.to_be_bytes());
    put(&p.ack.to_be_bytes());
    put(&[((32 + options) * 4) as u8, p.flags]);
    put(&p.window.to_be_bytes());
    put(&[0; 4]);
    if syn {
        // The options of a SYN in Linux's order: MSS, SACK permitted, timestamps, window scale 7.
        put(&[2, 4, 0x05, 0xb4, 4, 2, 8, 10]);
    } else {
        put(&[1, 1, 8, 10]);
    }
    put(&((p.time_ns / 1_000_000) as u32).to_be_bytes());
    put(&[0; 4]);
    if syn {
        put(&[1, 3, 3, 7]);
    } else if let Some((begin, end)) = p.sack {
        put(&[1, 1, 5, 10]);
        put(&begin.to_be_bytes());
        put(&end.to_be_bytes());
    }
    let wire = 14 + total;
    let kept = snap_bytes.min(wire as usize).min(bytes.len());
    let seconds = (p.time_ns / 1_000_000_000) as u32;
    for word in [
        seconds,
        (p.time_ns % 1_000_000_000) as u32,
        kept as u32,
        wire,
    ] {
        out.write_all(&word.to_le_bytes())?;
    }
    out.write_all(&bytes[..kept])
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
