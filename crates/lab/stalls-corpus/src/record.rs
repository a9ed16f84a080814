// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a capture holds, and what may go wrong with it: lost records, filters, clocks, tags.

use tcp_stacks::ground_truth::End;
use tcp_stacks::packet::{Ids, Packet, flag};
use tcp_stacks::world::{Point, Run};

/// Wall clock of a capture's time 0: the first second of 2026, in nanoseconds since 1970.
const EPOCH_NS: u64 = 1_767_225_600_000_000_000;

/// Bytes that the captures keep of each frame: Ethernet, two tags, IPv4 and the longest TCP
/// header do not fit together; all but the second tag do.
pub const SNAP_BYTES: usize = 96;

/// One captured packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// When, on the capture's clock.
    pub time_ns: u64,
    pub packet: Packet,
    /// Hop limit at the capture point.
    pub hop_limit: u8,
    /// Which of the capture's connections it belongs to.
    pub connection: usize,
    /// VLAN identifier, if the frame has a tag.
    pub vlan: Option<u16>,
    /// The bytes behind the Ethernet header, where they are not those of `packet` in IPv4.
    pub other: Option<Vec<u8>>,
}

impl Record {
    /// Returns nanoseconds since 1970.
    pub const fn wall_ns(&self) -> u64 {
        EPOCH_NS + self.time_ns
    }

    /// Returns whether the segment carries data.
    pub const fn is_data(&self) -> bool {
        self.packet.payload_bytes > 0
    }

    /// Returns whether the end sent it.
    pub fn is_of(&self, end: End) -> bool {
        self.packet.from == end
    }

    /// Returns whether it is an acknowledgement alone.
    pub fn is_pure_ack(&self) -> bool {
        self.packet.flags == flag::ACK && self.packet.payload_bytes == 0
    }

    /// Returns the Ethernet frame.
    pub fn frame(&self, connections: &[Ids]) -> Vec<u8> {
        let own = self.packet.from.index() as u8;
        let mut frame = vec![2, 0, 0, 0, 0, 2 - own, 2, 0, 0, 0, 0, 1 + own];
        if let Some(vlan) = self.vlan {
            frame.extend([0x81, 0]);
            frame.extend(vlan.to_be_bytes());
        }
        let is_v6 = self.other.as_ref().is_some_and(|b| b[0] >> 4 == 6);
        frame.extend(if is_v6 { [0x86, 0xdd] } else { [8, 0] });
        match (&self.other, connections.get(self.connection)) {
            (Some(bytes), _) => frame.extend(bytes),
            (None, Some(ids)) => frame.extend(self.packet.ipv4(ids, self.hop_limit)),
            (None, None) => {}
        }
        frame
    }
}

/// A silence: when the last packet before it and the first behind it were captured.
pub type Span = (u64, u64);

#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// Packets in the order of the file.
    pub records: Vec<Record>,
    /// What names each connection.
    pub connections: Vec<Ids>,
    /// Bytes kept of each frame.
    pub snap_bytes: usize,
}

impl Capture {
    /// Returns what one point saw of a simulated connection.
    pub fn of(run: &Run, point: Point) -> Self {
        let records = run.seen[point as usize].iter().map(|seen| Record {
            time_ns: seen.time_ns,
            packet: seen.packet.clone(),
            hop_limit: seen.hop_limit,
            connection: 0,
            vlan: None,
            other: None,
        });
        Self {
            records: records.collect(),
            connections: vec![run.ids.clone()],
            snap_bytes: SNAP_BYTES,
        }
    }

    /// Returns whether the segments are in IPv6.
    pub fn is_v6(&self) -> bool {
        let first = self.records.first().and_then(|r| r.other.as_ref());
        first.is_some_and(|bytes| bytes[0] >> 4 == 6)
    }

    /// Keeps the records that the filter takes.
    pub fn keep(mut self, mut filter: impl FnMut(&Record) -> bool) -> Self {
        self.records.retain(|record| filter(record));
        self
    }

    /// Removes the records of these indices, as a capture that loses packets does.
    pub fn without(mut self, indices: &[usize]) -> Self {
        let mut index = 0;
        self.records.retain(|_| {
            index += 1;
            !indices.contains(&(index - 1))
        });
        self
    }

    /// Changes records; the first argument is the index.
    pub fn edit(mut self, mut change: impl FnMut(usize, &mut Record)) -> Self {
        for (index, record) in self.records.iter_mut().enumerate() {
            change(index, record);
        }
        self
    }

    /// Carries the segments in IPv6, under addresses for documentation (RFC 3849).
    pub fn in_ipv6(mut self) -> Self {
        self.snap_bytes += 20;
        let address = |end: End| {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
            bytes[15] = 1 + end.index() as u8;
            bytes
        };
        for record in &mut self.records {
            let own = record.packet.from;
            let mut tcp = record
                .packet
                .ipv4(&self.connections[record.connection], record.hop_limit)
                .split_off(20);
            tcp[16..18].copy_from_slice(&[0, 0]);
            let mut bytes = vec![0x60, 0, 0, 0];
            bytes.extend((tcp.len() as u16).to_be_bytes());
            bytes.extend([6, record.hop_limit]);
            bytes.extend(address(own));
            bytes.extend(address(own.other()));
            let mut sum: u64 = tcp.len() as u64 + 6;
            for pair in bytes[8..].chunks(2).chain(tcp.chunks(2)) {
                sum += (u64::from(pair[0]) << 8) + u64::from(pair.get(1).copied().unwrap_or(0));
            }
            while sum >> 16 != 0 {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            tcp[16..18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
            bytes.extend(tcp);
            record.other = Some(bytes);
        }
        self
    }

    /// Puts another connection's records beside these, in order of time.
    pub fn merge(mut self, other: Capture) -> Self {
        let first = self.connections.len();
        self.connections.extend(other.connections);
        self.records
            .extend(other.records.into_iter().map(|mut record| {
                record.connection += first;
                record
            }));
        self.records.sort_by_key(|r| r.time_ns);
        self
    }

    /// Returns the index of the `number`-th data segment of an end.
    pub fn data(&self, end: End, number: usize) -> usize {
        let all = self.records.iter().enumerate();
        let mut those = all.filter(|(_, r)| r.is_of(end) && r.is_data());
        those.nth(number).map_or(0, |(index, _)| index)
    }

    /// Returns the silences of at least `least_ms`, in order.
    pub fn gaps(&self, least_ms: u64) -> Vec<Span> {
        let pairs = self.records.windows(2);
        let times = pairs.map(|p| (p[0].time_ns, p[1].time_ns));
        times
            .filter(|(start, end)| end.saturating_sub(*start) >= least_ms * 1_000_000)
            .collect()
    }

    /// Returns the longest silence.
    pub fn longest(&self) -> Span {
        let all = self.gaps(1);
        all.into_iter()
            .max_by_key(|(start, end)| end - start)
            .unwrap_or((0, 0))
    }

    /// Returns the time from the first silence of at least `least_ms` to the end of the last one.
    pub fn from_first_to_last(&self, least_ms: u64) -> Span {
        let gaps = self.gaps(least_ms);
        let start = gaps.first().map_or(0, |g| g.0);
        (start, gaps.last().map_or(0, |g| g.1))
    }

    /// Returns the time from the first data segment of an end to its last one.
    pub fn whole(&self, end: End) -> Span {
        let mut those = self.records.iter().filter(|r| r.is_of(end) && r.is_data());
        let first = those.next().map_or(0, |r| r.time_ns);
        (first, those.next_back().map_or(first, |r| r.time_ns))
    }
}
