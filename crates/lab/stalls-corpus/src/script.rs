// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections written by hand: which end sends what when, and what becomes of it.
//! Acknowledgement numbers, SACK blocks and timestamps follow from what has arrived.

use std::collections::BTreeMap;

use tcp_stacks::ground_truth::{End, Why};
use tcp_stacks::packet::{Ids, Packet, flag};
use tcp_stacks::world::Point;

use crate::record::{Capture, Record, SNAP_BYTES};
use crate::sim::names;

/// One end's system.
#[derive(Clone, Debug)]
pub struct Host {
    /// Tick of its timestamps.
    pub tick_ns: Option<u64>,
    /// Whether it uses SACK.
    pub sack: bool,
    /// Its window scale.
    pub scale: Option<u8>,
    /// Its window in bytes.
    pub window: u64,
    /// The largest segment that it announces.
    pub mss: u16,
    pub hop_limit: u8,
    /// Its first timestamp.
    pub clock_base: u32,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrives,
    /// Lost before the middle of the path.
    LostEarly,
    /// Lost behind the middle of the path.
    LostLate,
}

/// A packet to send.
#[derive(Clone, Debug)]
pub struct Send {
    from: End,
    time_ns: u64,
    /// `None`: the byte after the last one sent by then.
    seq: Option<u64>,
    bytes: u64,
    flags: u8,
    ack: Option<u64>,
    window: Option<u64>,
    fate: Fate,
    late_ns: u64,
    value: Option<u32>,
    echo: Option<u32>,
    unseen: bool,
    sack: Option<Vec<(u64, u64)>>,
}

impl Send {
    /// The path loses it, before the capture point in the middle.
    pub fn lost(&mut self) -> &mut Self {
        self.fate = Fate::LostEarly;
        self
    }

    /// The path loses it, behind the capture point in the middle.
    pub fn lost_late(&mut self) -> &mut Self {
        self.fate = Fate::LostLate;
        self
    }

    /// It arrives so many milliseconds later than others.
    pub fn late(&mut self, ms: f64) -> &mut Self {
        self.late_ns = nanos(ms);
        self
    }

    /// No capture has it: a part of a packet that the card cuts into segments.
    pub fn unseen(&mut self) -> &mut Self {
        self.unseen = true;
        self
    }

    /// It acknowledges up to this byte, whatever has arrived.
    pub fn acks(&mut self, ack: u64) -> &mut Self {
        self.ack = Some(ack);
        self
    }

    /// It announces this window, in bytes.
    pub fn window(&mut self, bytes: u64) -> &mut Self {
        self.window = Some(bytes);
        self
    }

    /// It has these SACK blocks.
    pub fn sack(&mut self, blocks: &[(u64, u64)]) -> &mut Self {
        self.sack = Some(blocks.to_vec());
        self
    }

    /// Its timestamp is this one.
    pub fn value(&mut self, value: u32) -> &mut Self {
        self.value = Some(value);
        self
    }

    /// It echoes this timestamp, whatever has arrived.
    pub fn echo(&mut self, value: u32) -> &mut Self {
        self.echo = Some(value);
        self
    }

    /// It has further flags.
    pub fn flags(&mut self, flags: u8) -> &mut Self {
        self.flags |= flags;
        self
    }
}

pub fn nanos(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

/// A connection written by hand. Times are milliseconds after the client's SYN.
#[derive(Clone, Debug)]
pub struct Script {
    /// The two systems.
    pub hosts: [Host; 2],
    /// What names the connection.
    pub ids: Ids,
    one_way_ms: [f64; 2],
    next: [u64; 2],
    sends: Vec<Send>,
}

/// What an end has received.
#[derive(Clone, Debug, Default)]
struct Received {
    next: u64,
    beyond: Vec<(u64, u64)>,
    newest: Option<(u64, u64)>,
    value: u32,
    has_heard: bool,
}

impl Received {
    fn take(&mut self, packet: &Packet) {
        if let Some((value, _)) = packet.timestamps {
            // PAWS: an older timestamp is of an old packet (RFC 7323, 5.3).
            let is_old = self.value.wrapping_sub(value).wrapping_sub(1) < 1 << 31;
            if is_old && self.has_heard {
                return;
            }
            if packet.seq <= self.next || !self.has_heard {
                self.value = value;
            }
        }
        self.has_heard = true;
        let (begin, end) = (packet.seq, packet.end());
        if end <= self.next {
            return;
        }
        if begin > self.next {
            self.beyond.push((begin, end));
            self.beyond.sort_unstable();
            let mut merged: Vec<(u64, u64)> = Vec::new();
            for &(b, e) in &self.beyond {
                match merged.last_mut() {
                    Some(last) if b <= last.1 => last.1 = last.1.max(e),
                    _ => merged.push((b, e)),
                }
            }
            self.newest = merged.iter().find(|r| r.0 <= begin && end <= r.1).copied();
            self.beyond = merged;
            return;
        }
        self.next = end;
        while let Some(&(_, e)) = self.beyond.first().filter(|r| r.0 <= self.next) {
            self.next = self.next.max(e);
            self.beyond.remove(0);
        }
        self.newest = self.newest.filter(|r| r.1 > self.next);
    }

    fn sack(&self) -> Vec<(u64, u64)> {
        let mut blocks: Vec<(u64, u64)> = self.newest.into_iter().collect();
        let rest = self
            .beyond
            .iter()
            .rev()
            .filter(|r| Some(**r) != self.newest);
        blocks.extend(rest);
        blocks.truncate(3);
        blocks
    }
}

impl Script {
    /// Makes a connection of two Linux hosts on a path of `rtt_ms`.
    pub fn new(seed: u64, rtt_ms: f64) -> Self {
        let host = Host {
            tick_ns: Some(1_000_000),
            sack: true,
            scale: Some(7),
            window: 131_072,
            mss: 1460,
            hop_limit: 64,
            clock_base: 0,
        };
        let mut hosts = [host.clone(), host];
        hosts[0].clock_base = 1_000_000 + seed as u32 * 7919;
        hosts[1].clock_base = 2_100_000_000 - seed as u32 * 4099;
        Self {
            hosts,
            ids: names(seed),
            one_way_ms: [rtt_ms / 2.0; 2],
            next: [0; 2],
            sends: Vec::new(),
        }
    }

    /// Takes the timestamps option away from both.
    pub fn no_timestamps(mut self) -> Self {
        self.hosts.iter_mut().for_each(|h| h.tick_ns = None);
        self
    }

    /// Takes SACK away from both.
    pub fn no_sack(mut self) -> Self {
        self.hosts.iter_mut().for_each(|h| h.sack = false);
        self
    }

    /// Returns the timestamp that an end gives at a time.
    pub fn stamp(&self, end: End, ms: f64) -> u32 {
        let host = &self.hosts[end.index()];
        let ticks = nanos(ms) / host.tick_ns.unwrap_or(1_000_000);
        host.clock_base.wrapping_add(ticks as u32)
    }

    /// Returns bytes of a full segment.
    pub fn full(&self) -> u64 {
        let mss = u64::from(self.hosts[0].mss.min(self.hosts[1].mss));
        let stamps = self.hosts.iter().all(|h| h.tick_ns.is_some());
        mss - if stamps { 12 } else { 0 }
    }

    /// Returns the number of the next new byte of an end.
    pub const fn next(&self, end: End) -> u64 {
        self.next[end.index()]
    }

    fn one_way(&self, from: End) -> f64 {
        self.one_way_ms[from.index()]
    }

    /// Sends any segment.
    pub fn raw(&mut self, from: End, ms: f64, seq: u64, bytes: u64, flags: u8) -> &mut Send {
        self.push(from, ms, Some(seq), bytes, flags)
    }

    fn push(&mut self, from: End, ms: f64, seq: Option<u64>, bytes: u64, flags: u8) -> &mut Send {
        let index = self.sends.len();
        self.sends.push(Send {
            from,
            time_ns: nanos(ms),
            seq,
            bytes,
            flags,
            ack: None,
            window: None,
            fate: Fate::Arrives,
            late_ns: 0,
            value: None,
            echo: None,
            unseen: false,
            sack: None,
        });
        &mut self.sends[index]
    }

    /// Sends new data in one segment.
    pub fn data(&mut self, from: End, ms: f64, bytes: u64) -> &mut Send {
        let seq = self.next[from.index()];
        self.next[from.index()] += bytes;
        self.raw(from, ms, seq, bytes, flag::ACK | flag::PSH)
    }

    /// Sends segments of new data in a row; returns the first one's number.
    pub fn flight(&mut self, from: End, ms: f64, segments: u32, bytes: u64) -> u64 {
        let first = self.next(from);
        for n in 0..segments {
            self.data(from, ms + 0.12 * f64::from(n), bytes);
        }
        first
    }

    /// Sends an acknowledgement alone.
    pub fn ack(&mut self, from: End, ms: f64) -> &mut Send {
        self.push(from, ms, None, 0, flag::ACK)
    }

    /// Sends data again.
    pub fn again(&mut self, from: End, ms: f64, seq: u64, bytes: u64) -> &mut Send {
        self.raw(from, ms, seq, bytes, flag::ACK | flag::PSH)
    }

    /// Opens the connection at a time; returns when the client may send.
    pub fn open(&mut self, ms: f64) -> f64 {
        let there = ms + self.one_way(End::Client) + 0.05;
        let back = there + self.one_way(End::Server) + 0.05;
        self.raw(End::Client, ms, 0, 0, flag::SYN);
        self.raw(End::Server, there, 0, 0, flag::SYN | flag::ACK);
        self.raw(End::Client, back, 1, 0, flag::ACK);
        self.next = [1, 1];
        back
    }

    /// Sends a message at once and lets the other end acknowledge each second segment and the
    /// last; returns when the last acknowledgement is back.
    pub fn burst(&mut self, from: End, ms: f64, segments: u64, bytes: u64) -> f64 {
        let mut back = ms;
        for number in 0..segments {
            let sent = ms + 0.12 * number as f64;
            self.data(from, sent, bytes);
            if number % 2 == 1 || number + 1 == segments {
                let there = sent + self.one_way(from) + 0.03;
                self.ack(from.other(), there);
                back = there + self.one_way(from.other()) + 0.02;
            }
        }
        back
    }

    /// Opens the connection, lets the client ask and the server answer with a few full segments;
    /// returns when the server may go on.
    pub fn warm(&mut self) -> f64 {
        let t = self.open(0.0);
        let t = self.burst(End::Client, t + 0.2, 1, 200);
        self.bulk(End::Server, t + 0.5, &[4, 6])
    }

    /// Sends bursts of full segments, each when the one before is acknowledged.
    pub fn bulk(&mut self, from: End, ms: f64, bursts: &[u64]) -> f64 {
        let full = self.full();
        bursts
            .iter()
            .fold(ms, |at, &segments| self.burst(from, at, segments, full))
    }

    /// Sends a message without an acknowledgement of its own; returns when it has arrived.
    pub fn say(&mut self, from: End, ms: f64, bytes: u64) -> f64 {
        let full = self.full();
        let mut left = bytes;
        let mut at = ms;
        while left > 0 {
            self.data(from, at, left.min(full));
            left -= left.min(full);
            at += if left > 0 { 0.12 } else { 0.0 };
        }
        at + self.one_way(from) + 0.03
    }

    /// Both ends close, the first one at this time.
    pub fn close(&mut self, first: End, ms: f64) {
        let there = ms + self.one_way(first) + 0.04;
        let back = there + self.one_way(first.other()) + 0.04;
        for (end, at) in [(first, ms), (first.other(), there)] {
            let seq = self.next(end);
            self.raw(end, at, seq, 0, flag::ACK | flag::FIN);
            self.next[end.index()] += 1;
        }
        self.ack(first, back);
    }

    /// Returns what a point saw.
    pub fn capture(&self, point: Point) -> Capture {
        let mut order: BTreeMap<(u64, bool, usize), Packet> = BTreeMap::new();
        let mut sends = self.sends.iter().enumerate().collect::<Vec<_>>();
        sends.sort_by_key(|(index, s)| (s.time_ns, *index));
        let mut received = [Received::default(), Received::default()];
        let mut records: Vec<(u64, usize, Record)> = Vec::new();
        let mut ip_ids = [4660_u16, 22_136];
        let mut sent = [0_u64; 2];
        for (index, send) in sends {
            // What has arrived by now comes first.
            let later = order.split_off(&(send.time_ns + 1, false, 0));
            for packet in std::mem::replace(&mut order, later).into_values() {
                received[packet.from.other().index()].take(&packet);
            }
            let own = send.from.index();
            ip_ids[own] = ip_ids[own].wrapping_add(1);
            let seq = send.seq.unwrap_or(sent[own]);
            let packet = self.packet(send, seq, &received[own], ip_ids[own]);
            sent[own] = sent[own].max(packet.end());
            let one_way_ns = nanos(self.one_way(send.from));
            let arrives_ns = send.time_ns + one_way_ns + send.late_ns;
            let (seen_ns, hops) = match (point, send.from) {
                (Point::Client, End::Client) | (Point::Server, End::Server) => {
                    (Some(send.time_ns), 0)
                }
                (Point::Middle, _) => {
                    let at = send.time_ns + one_way_ns / 2;
                    ((send.fate != Fate::LostEarly).then_some(at), 3)
                }
                _ => ((send.fate == Fate::Arrives).then_some(arrives_ns), 7),
            };
            if let Some(time_ns) = seen_ns.filter(|_| !send.unseen) {
                let record = Record {
                    time_ns,
                    hop_limit: packet.hop_limit - hops,
                    packet: packet.clone(),
                    connection: 0,
                    vlan: None,
                    other: None,
                };
                records.push((time_ns, index, record));
            }
            if send.fate == Fate::Arrives {
                order.insert((arrives_ns, true, index), packet);
            }
        }
        records.sort_by_key(|(time_ns, index, _)| (*time_ns, *index));
        Capture {
            records: records.into_iter().map(|r| r.2).collect(),
            connections: vec![self.ids.clone()],
            snap_bytes: SNAP_BYTES,
        }
    }

    fn packet(&self, send: &Send, seq: u64, received: &Received, ip_id: u16) -> Packet {
        let host = &self.hosts[send.from.index()];
        let peer = &self.hosts[send.from.other().index()];
        let is_syn = send.flags & flag::SYN != 0;
        let is_first = is_syn && send.flags & flag::ACK == 0;
        let has_ack = send.flags & flag::ACK != 0;
        let agreed = |own: bool, other: bool| own && (is_first || other);
        let stamps = agreed(host.tick_ns.is_some(), peer.tick_ns.is_some());
        let scales = agreed(host.scale.is_some(), peer.scale.is_some());
        let sacks = agreed(host.sack, peer.sack);
        let window = send.window.unwrap_or(host.window);
        let shift = host.scale.filter(|_| scales && !is_syn).unwrap_or(0);
        let value = host.tick_ns.filter(|_| stamps).map(|tick| {
            let now = host.clock_base.wrapping_add((send.time_ns / tick) as u32);
            send.value.unwrap_or(now)
        });
        let blocks = if sacks && has_ack && !is_syn {
            send.sack.clone().unwrap_or_else(|| received.sack())
        } else {
            Vec::new()
        };
        Packet {
            from: send.from,
            seq,
            ack: if has_ack {
                send.ack.unwrap_or(received.next)
            } else {
                0
            },
            flags: send.flags,
            window: (window >> shift).min(65_535) as u16,
            payload_bytes: send.bytes as u32,
            mss: is_syn.then_some(host.mss),
            window_scale: host.scale.filter(|_| is_syn && scales),
            sack_permitted: is_syn && sacks,
            timestamps: value.map(|value| (value, send.echo.unwrap_or(received.value))),
            sack: blocks,
            ip_id,
            hop_limit: host.hop_limit,
            why: Why::New,
        }
    }
}
