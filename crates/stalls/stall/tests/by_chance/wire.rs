// SPDX-License-Identifier: MIT OR Apache-2.0
//! A transfer's packets, and what a capture of them has.

use std::net::IpAddr;

use capture::segment::{Endpoint, Flags, HostDirection, Segment, Timestamps};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;

/// xorshift64*.
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, most: u64) -> u64 {
        (self.next() >> 11) % most.max(1)
    }

    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// What a stack does.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    pub mss: u64,
    /// Nanoseconds of a tick of the sender's timestamps; 0: it has none.
    pub tick_ns: u64,
    pub sack: bool,
    pub rto_min_ns: u64,
    pub ack_every: u64,
    pub delayed_ack_ns: u64,
    /// 0: probes are empty; 1: the next byte, again and again.
    pub probe_bytes: u64,
    pub scale: u8,
}

/// Where and how a capture was made.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Of the way from the sender to the receiver, in percent.
    pub place: u64,
    pub no_handshake: bool,
    pub one_direction: bool,
    /// 64 bytes of each packet: SACK is cut, and the echo of timestamps.
    pub is_cut: bool,
}

/// A transfer on the wire: packets with when they leave their end, and how far they get.
pub struct Wire {
    pub habits: Habits,
    pub one_way_ns: u64,
    /// Time of leaving, data or acknowledgement, how far it gets in percent, extra delay.
    pub packets: Vec<(u64, bool, u64, u64, Segment)>,
    /// What the stream carries.
    pub sent: u64,
    pub acked: u64,
    pub window: u64,
    pub answered: u64,
}

pub fn end(sender: bool) -> Endpoint {
    Endpoint {
        address: IpAddr::from([10, 9, 0, if sender { 1 } else { 2 }]),
        port: if sender { 45_000 } else { 80 },
    }
}

impl Wire {
    pub fn new(habits: Habits, one_way_ns: u64) -> Self {
        let mut wire = Self {
            habits,
            one_way_ns,
            packets: Vec::new(),
            sent: 0,
            acked: 0,
            window: 1 << 20,
            answered: 0,
        };
        let start = 1000 * MS;
        wire.syn(start, true);
        wire.syn(start + one_way_ns, false);
        wire.packet(start + 2 * one_way_ns, true, 0, 0, &[], 100, 0);
        wire
    }

    pub fn now(&self) -> u64 {
        1000 * MS + 2 * self.one_way_ns
    }

    pub fn timestamp(&self, at: u64, of_sender: bool) -> u32 {
        let tick = if of_sender { self.habits.tick_ns } else { MS };
        ((at / tick.max(1)) as u32).wrapping_add(5_000_000)
    }

    pub fn blank(&self, at: u64, data: bool) -> Segment {
        let value = self.timestamp(at, data);
        // What the other one said a way ago, as nearly as this needs.
        let echo = self.timestamp(at.saturating_sub(self.one_way_ns), !data);
        Segment {
            number: 0,
            time_ns: at,
            from: end(data),
            to: end(!data),
            encapsulation: 0,
            seq: 1000,
            ack: 77_000,
            flags: Flags(Flags::ACK),
            window: 0,
            payload_bytes: 0,
            mss: None,
            window_scale: None,
            sack_permitted: false,
            timestamps: (self.habits.tick_ns > 0).then_some(Timestamps {
                value,
                echo: Some(echo),
            }),
            sack: Default::default(),
            options_cut: false,
            ecn: 0,
            ip_id: (at / US) as u16 | 1,
            hop_limit: 60,
            host_direction: HostDirection::Unknown,
        }
    }

    pub fn syn(&mut self, at: u64, data: bool) {
        let mut segment = self.blank(at, data);
        segment.flags = Flags(Flags::SYN | if data { 0 } else { Flags::ACK });
        (segment.seq, segment.ack) = if data { (999, 0) } else { (76_999, 1000) };
        segment.window = 60_000;
        let options = if self.habits.tick_ns > 0 { 12 } else { 0 };
        segment.mss = Some((self.habits.mss + options) as u16);
        segment.window_scale = Some(self.habits.scale);
        segment.sack_permitted = self.habits.sack;
        self.packets.push((at, data, 100, 0, segment));
    }

    /// Bytes `from..to` of the sender, or of the receiver an acknowledgement up to `from`.
    #[allow(clippy::too_many_arguments)]
    pub fn packet(
        &mut self,
        at: u64,
        data: bool,
        from: u64,
        to: u64,
        sack: &[(u64, u64)],
        reach: u64,
        late_ns: u64,
    ) {
        let mut segment = self.blank(at, data);
        if data {
            segment.seq = 1000u32.wrapping_add(from as u32);
            segment.ack = 77_000u32.wrapping_add(self.answered as u32);
            segment.payload_bytes = (to - from) as u32;
            segment.window = 30_000;
        } else {
            segment.seq = 77_000u32.wrapping_add(self.answered as u32);
            segment.ack = 1000u32.wrapping_add(from as u32);
            segment.window = (self.window >> self.habits.scale).min(65_535) as u16;
            if self.habits.sack {
                for &(start, end) in sack {
                    let wire = |n: u64| 1000u32.wrapping_add(n as u32);
                    segment.sack.push(wire(start), wire(end));
                }
            }
        }
        self.packets.push((at, data, reach, late_ns, segment));
    }

    /// The echo of the acknowledgement added last is the timestamp of what left at `sent_ns`.
    pub fn echoes(&mut self, sent_ns: u64) {
        let value = self.timestamp(sent_ns, true);
        if let Some((.., segment)) = self.packets.last_mut() {
            if let Some(timestamps) = &mut segment.timestamps {
                timestamps.echo = Some(value);
            }
        }
    }

    /// A burst of `bytes` from `at` on, which arrives and is acknowledged; when the last
    /// acknowledgement reaches the sender.
    pub fn burst(&mut self, at: u64, bytes: u64) -> u64 {
        let (mss, one_way_ns) = (self.habits.mss, self.one_way_ns);
        let stop = self.sent + bytes.min(self.window / 2);
        let (mut leaves, mut last, mut count) = (at, at, 0);
        while self.sent < stop {
            let to = (self.sent + mss).min(stop);
            self.packet(leaves, true, self.sent, to, &[], 100, 0);
            self.sent = to;
            count += 1;
            let is_last = to == stop;
            if count % self.habits.ack_every == 0 || is_last {
                // The timer is for who sends no second segment; here it is short.
                let acks = leaves + one_way_ns + 20 * US;
                self.packet(acks, false, to, to, &[], 100, 0);
                self.echoes(leaves);
                last = acks + one_way_ns;
            }
            leaves += 120 * US;
        }
        self.acked = stop;
        last
    }

    /// The latest timestamp of the receiver that had reached the sender.
    pub fn latest_heard(&self, at: u64) -> u32 {
        let arrived = self
            .packets
            .iter()
            .filter(|(left, data, reach, late_ns, _)| {
                !data && *reach >= 100 && left + self.one_way_ns + late_ns <= at
            });
        let latest = arrived.max_by_key(|(left, ..)| *left);
        latest
            .and_then(|(.., segment)| segment.timestamps)
            .map_or(0, |timestamps| timestamps.value)
    }

    /// What a capture has of it.
    pub fn capture(&self, view: View) -> Vec<Segment> {
        let mut seen: Vec<(u64, usize, Segment)> = Vec::new();
        for (order, (at, data, reach, late_ns, segment)) in self.packets.iter().enumerate() {
            let along = if *data { view.place } else { 100 - view.place };
            let is_lost = *reach < 100 && along >= *reach;
            if is_lost || view.one_direction && !*data {
                continue;
            }
            if view.no_handshake && *at < self.now() + 4 * self.one_way_ns {
                continue;
            }
            let late_ns = if along > 30 { *late_ns } else { 0 };
            let mut segment = *segment;
            if let (true, Some(timestamps)) = (*data, &mut segment.timestamps) {
                timestamps.echo = Some(self.latest_heard(*at));
            }
            segment.time_ns = at + self.one_way_ns * along / 100 + late_ns;
            if view.is_cut && !segment.flags.any(Flags::SYN) {
                segment.options_cut = !segment.sack.as_slice().is_empty();
                segment.sack = Default::default();
                if let Some(timestamps) = &mut segment.timestamps {
                    timestamps.echo = None;
                }
            }
            seen.push((segment.time_ns, order, segment));
        }
        seen.sort_by_key(|(at, order, _)| (*at, *order));
        seen.into_iter()
            .zip(1..)
            .map(|((_, _, segment), number)| Segment { number, ..segment })
            .collect()
    }
}
