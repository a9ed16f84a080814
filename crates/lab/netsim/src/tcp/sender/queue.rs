// SPDX-License-Identifier: MIT OR Apache-2.0
//! The retransmission queue: packets sent and not acknowledged, in order, each with
//! the tags of the scoreboard, and the number of packets with each tag.

use std::collections::VecDeque;

use units::clock::Time;

/// Tags of a packet. The queue counts the packets with each tag except `EVER`.
pub(crate) mod tag {
    pub const SACKED: u8 = 1;
    /// Retransmitted; the fate of the retransmission is unknown.
    pub const RETRANS: u8 = 2;
    /// Marked lost.
    pub const LOST: u8 = 4;
    /// Retransmitted at least once.
    pub const EVER: u8 = 8;
    /// The tags that prevent a packet from being marked lost again.
    pub const ANY: u8 = SACKED | RETRANS | LOST;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub start: u64,
    /// The sequence number after the last byte; the end of the stream counts as
    /// one.
    pub end: u64,
    pub tags: u8,
    pub fin: bool,
    /// `snd_nxt` when the packet was last retransmitted: the paper calls it the
    /// packet's high_seq.
    pub sent_nxt: u64,
    /// When the packet was last sent.
    pub sent_at: Time,
}

impl Packet {
    pub fn has(&self, tags: u8) -> bool {
        self.tags & tags != 0
    }
}

/// The packets from `una` to `nxt`. A packet's number never changes, so marks into
/// the queue stay valid when packets are removed from its head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    packets: VecDeque<Packet>,
    /// Number of the packet at the head.
    base: u64,
    sacked: u32,
    lost: u32,
    retrans: u32,
}

impl Queue {
    pub fn len(&self) -> u32 {
        self.packets.len() as u32
    }

    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    pub fn lost(&self) -> u32 {
        self.lost
    }

    pub fn retrans(&self) -> u32 {
        self.retrans
    }

    /// Returns the number of the packet at the head.
    pub fn head(&self) -> u64 {
        self.base
    }

    /// Returns the number after that of the last packet.
    pub fn tail(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    pub fn get(&self, number: u64) -> Option<&Packet> {
        let index = number.checked_sub(self.base)?;
        self.packets.get(usize::try_from(index).ok()?)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut Packet> {
        let index = number.checked_sub(self.base)?;
        self.packets.get_mut(usize::try_from(index).ok()?)
    }

    /// Returns how many packets there are up to and including this one: the
    /// kernel's fack_count.
    pub fn count_to(&self, number: u64) -> u32 {
        (number + 1).saturating_sub(self.base) as u32
    }

    pub fn push(&mut self, packet: Packet) {
        self.packets.push_back(packet);
    }

    /// Removes the packet sent last.
    pub fn pop_back(&mut self) {
        let last = self.tail().wrapping_sub(1);
        self.clear(last, tag::ANY);
        self.packets.pop_back();
    }

    /// Removes and returns the head if all of it is below `una`.
    pub fn pop_acked(&mut self, una: u64) -> Option<Packet> {
        let packet = *self.packets.front()?;
        if packet.end > una {
            return None;
        }
        self.clear(self.base, tag::ANY);
        self.packets.pop_front();
        self.base += 1;
        Some(packet)
    }

    /// Sets tags; other tags are kept.
    pub fn set(&mut self, number: u64, tags: u8) {
        let Some(packet) = self.get_mut(number) else {
            return;
        };
        let added = tags & !packet.tags;
        packet.tags |= tags;
        self.sacked += u32::from(added & tag::SACKED != 0);
        self.lost += u32::from(added & tag::LOST != 0);
        self.retrans += u32::from(added & tag::RETRANS != 0);
    }

    /// Clears tags; other tags are kept.
    pub fn clear(&mut self, number: u64, tags: u8) {
        let Some(packet) = self.get_mut(number) else {
            return;
        };
        let removed = tags & packet.tags;
        packet.tags &= !tags;
        self.sacked -= u32::from(removed & tag::SACKED != 0);
        self.lost -= u32::from(removed & tag::LOST != 0);
        self.retrans -= u32::from(removed & tag::RETRANS != 0);
    }

    /// Returns the number of the first packet that ends after `seq`; the tail if
    /// there is none. Logarithmic.
    pub fn number_at(&self, seq: u64) -> u64 {
        self.base + self.packets.partition_point(|packet| packet.end <= seq) as u64
    }

    /// Returns whether the counts agree with the tags, no packet is both SACKed and
    /// lost, and the packets are contiguous.
    #[cfg(test)]
    pub fn consistent(&self) -> bool {
        let sum = |tag| self.packets.iter().filter(|packet| packet.has(tag)).count() as u32;
        sum(tag::SACKED) == self.sacked
            && sum(tag::LOST) == self.lost
            && sum(tag::RETRANS) == self.retrans
            && self
                .packets
                .iter()
                .all(|packet| packet.tags & (tag::SACKED | tag::LOST) != tag::SACKED | tag::LOST)
            && self
                .packets
                .iter()
                .zip(self.packets.iter().skip(1))
                .all(|(a, b)| a.start < a.end && a.end == b.start)
    }
}
