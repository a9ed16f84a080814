// SPDX-License-Identifier: MIT OR Apache-2.0
//! One direction of a path: a line with a queue, and what may happen to packets on it.

use crate::chance::Chance;
use crate::ground_truth::{Fate, Origin};

/// The nature of one direction of a path. A time of 0 or a chance of 0 means that it is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nature {
    /// Rate of the narrowest line, in bits per second; 0 means without limit.
    pub rate_bps: u64,
    /// Delay without queue, in nanoseconds.
    pub delay_ns: u64,
    /// Most bytes that wait in front of the line; 0 means without limit.
    pub queue_bytes: u64,
    /// Chance that an error drops a packet, in parts of a million.
    pub loss_ppm: u64,
    /// Chance that a burst of errors begins at a packet, in parts of a million.
    pub burst_ppm: u64,
    /// Mean length of such a burst, in packets.
    pub burst_packets: u64,
    /// A policer's rate in bits per second and its bucket in bytes.
    pub policer: Option<(u64, u64)>,
    /// Chance that a packet is overtaken, in parts of a million.
    pub reorder_ppm: u64,
    /// How long an overtaken packet is held, in nanoseconds.
    pub reorder_ns: u64,
    /// Most of what is added to each packet's delay by chance, in nanoseconds; it does not
    /// change the order.
    pub jitter_ns: u64,
    /// Times in which nothing passes, start and end.
    pub outages: Vec<(u64, u64)>,
    /// Times in which packets are held up until the end.
    pub holds: Vec<(u64, u64)>,
    /// Packets of more bytes than this vanish.
    pub black_hole_bytes: Option<u64>,
    /// Numbers of the packets with payload, from 0, that an error drops.
    pub drop_data: Vec<u64>,
    /// Numbers of the packets without payload, from 0, that an error drops.
    pub drop_acks: Vec<u64>,
}

/// One direction of a path.
#[derive(Clone, Debug)]
pub struct Path {
    nature: Nature,
    chance: Chance,
    /// When the line is free again.
    free_ns: u64,
    /// Latest arrival of a packet that was not overtaken.
    latest_ns: u64,
    /// The policer's bucket, in bits times 10^9, and when it was filled.
    bucket: u128,
    filled_ns: u64,
    /// Packets that the current burst still drops, and when it ends at the latest.
    burst_left: u64,
    burst_ends_ns: u64,
    data_count: u64,
    ack_count: u64,
}

/// What the path does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transit {
    /// Whether and when it arrives.
    pub fate: Fate,
    /// When it passes the capture point in the middle; `None` if it was dropped before it.
    pub middle_ns: Option<u64>,
    /// How much later it arrives than delay and queue explain.
    pub late_ns: u64,
    /// Whether packets behind it may arrive first.
    pub overtaken: bool,
}

/// Longest burst of errors: what lasts longer is an outage.
const BURST_MOST_NS: u64 = 50_000_000;
const SECOND_NS: u128 = 1_000_000_000;

impl Path {
    /// Makes the direction; its line is empty and its bucket is full.
    pub fn new(nature: Nature, chance: Chance) -> Self {
        let bucket = nature
            .policer
            .map_or(0, |(_, bytes)| u128::from(bytes) * 8 * SECOND_NS);
        Self {
            nature,
            chance,
            free_ns: 0,
            latest_ns: 0,
            bucket,
            filled_ns: 0,
            burst_left: 0,
            burst_ends_ns: 0,
            data_count: 0,
            ack_count: 0,
        }
    }

    /// Returns the delay without queue.
    pub const fn delay_ns(&self) -> u64 {
        self.nature.delay_ns
    }

    /// Takes a packet of `bytes` on the wire that its host sends at `now_ns`. The line and its
    /// queue are at the sender's end of the path, the middle is halfway behind them.
    pub fn carry(&mut self, now_ns: u64, bytes: u64, has_payload: bool) -> Transit {
        let nature = &self.nature;
        let number = if has_payload {
            &mut self.data_count
        } else {
            &mut self.ack_count
        };
        let listed = if has_payload {
            &nature.drop_data
        } else {
            &nature.drop_acks
        };
        let is_listed = listed.contains(number);
        *number += 1;
        let dropped = |origin, middle_ns| Transit {
            fate: Fate::Dropped(origin),
            middle_ns,
            late_ns: 0,
            overtaken: false,
        };
        let within = |times: &[(u64, u64)], at: u64| {
            times
                .iter()
                .find(|(start, end)| (*start..*end).contains(&at))
                .copied()
        };
        if within(&nature.outages, now_ns).is_some() {
            return dropped(Origin::Outage, None);
        }
        // The line: a queue that drops what does not fit.
        let start_ns = self.free_ns.max(now_ns);
        let line_ns = |bytes: u64| match nature.rate_bps {
            0 => 0,
            rate => (u128::from(bytes) * 8 * SECOND_NS / u128::from(rate)) as u64,
        };
        let waiting_ns = start_ns - now_ns;
        if nature.queue_bytes > 0 && waiting_ns > line_ns(nature.queue_bytes) {
            return dropped(Origin::Queue, None);
        }
        let sent_ns = start_ns + line_ns(bytes);
        self.free_ns = sent_ns;
        if let Some((rate_bps, most_bytes)) = nature.policer {
            let gained = u128::from(sent_ns.saturating_sub(self.filled_ns)) * u128::from(rate_bps);
            self.bucket = (self.bucket + gained).min(u128::from(most_bytes) * 8 * SECOND_NS);
            self.filled_ns = sent_ns;
            let cost = u128::from(bytes) * 8 * SECOND_NS;
            if self.bucket < cost {
                return dropped(Origin::Policer, None);
            }
            self.bucket -= cost;
        }
        let middle_ns = sent_ns + nature.delay_ns / 2;
        if nature.black_hole_bytes.is_some_and(|most| bytes > most) {
            return dropped(Origin::BlackHole, Some(middle_ns));
        }
        if sent_ns >= self.burst_ends_ns {
            self.burst_left = 0;
        }
        if self.burst_left == 0 && self.chance.happens(nature.burst_ppm) {
            self.burst_left = self.chance.between(1, nature.burst_packets * 2);
            self.burst_ends_ns = sent_ns + BURST_MOST_NS;
        }
        let is_error = self.chance.happens(nature.loss_ppm);
        // An error strikes before the middle as often as behind it.
        let behind = self.chance.happens(500_000);
        let jitter_ns = self.chance.below(nature.jitter_ns + 1);
        let overtaken = self.chance.happens(nature.reorder_ppm);
        if is_error || is_listed || self.burst_left > 0 {
            self.burst_left = self.burst_left.saturating_sub(1);
            return dropped(Origin::Error, behind.then_some(middle_ns));
        }
        let mut arrival_ns = sent_ns + nature.delay_ns + jitter_ns;
        let mut late_ns = 0;
        if let Some((_, end)) = within(&nature.holds, arrival_ns) {
            late_ns = end - arrival_ns;
            arrival_ns = end;
        }
        if overtaken {
            arrival_ns += nature.reorder_ns;
        } else {
            // What is held up keeps its order.
            late_ns += if late_ns > 0 {
                self.latest_ns.saturating_sub(arrival_ns)
            } else {
                0
            };
            arrival_ns = arrival_ns.max(self.latest_ns + 1);
            self.latest_ns = arrival_ns;
        }
        // A hold is on the second half of the path: the middle has seen the packet before.
        Transit {
            fate: Fate::Arrives(arrival_ns),
            middle_ns: Some(middle_ns.min(arrival_ns)),
            late_ns,
            overtaken,
        }
    }
}
