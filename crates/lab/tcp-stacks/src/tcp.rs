// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scripted TCP: one engine whose figures and habits are a system's [`Profile`].

use crate::chance::Chance;
use crate::ground_truth::{End, Why};
use crate::packet::{Packet, flag};
use crate::profile::{IpId, Profile};
use crate::receiver::{Answer, Receiver};
use crate::segment::Chunk;
use crate::sender::Sender;
use crate::stack::Stack;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// The SYN was sent.
    Asked,
    /// The SYN arrived; its answer leaves at that time.
    Accepting(u64),
    /// The answer to the SYN was sent.
    Answered,
    Established,
    /// Reset, by either end.
    Gone,
}

/// A scripted TCP.
#[derive(Debug)]
pub struct Tcp {
    profile: Profile,
    end: End,
    chance: Chance,
    state: State,
    sender: Sender,
    receiver: Receiver,
    /// How long it takes to answer a SYN.
    accept_ns: u64,
    /// What was agreed on.
    shift: u8,
    peer_shift: u8,
    uses_timestamps: bool,
    uses_sack: bool,
    peer_mss: u16,
    peer_value: u32,
    clock_base: u32,
    ip_id: u16,
    handshake: Option<(u64, u64)>,
    asked_ns: u64,
    asked_times: u32,
    heard_ns: u64,
    keep_alives: u64,
    out: Vec<Packet>,
}

impl Tcp {
    /// Makes a TCP that has no connection. The server's end answers a SYN after `accept_ns`.
    pub fn new(profile: Profile, end: End, accept_ns: u64, mut chance: Chance) -> Self {
        let clock_base = chance.below(1 << 32) as u32;
        let ip_id = chance.below(1 << 16) as u16;
        Self {
            sender: Sender::new(&profile, u64::from(profile.mss), profile.sack),
            receiver: Receiver::new(&profile),
            profile,
            end,
            chance,
            state: State::Closed,
            accept_ns,
            shift: 0,
            peer_shift: 0,
            uses_timestamps: false,
            uses_sack: false,
            peer_mss: 536,
            peer_value: 0,
            clock_base,
            ip_id,
            handshake: None,
            asked_ns: 0,
            asked_times: 0,
            heard_ns: 0,
            keep_alives: 0,
            out: Vec::new(),
        }
    }

    fn packet(&mut self, now_ns: u64, seq: u64, bytes: u64, flags: u8, why: Why) -> Packet {
        self.ip_id = match self.profile.ip_id {
            IpId::Counter => self.ip_id.wrapping_add(1),
            IpId::Zero => 0,
            IpId::Random => self.chance.below(1 << 16) as u16,
        };
        let is_syn = flags & flag::SYN != 0;
        let is_first = is_syn && flags & flag::ACK == 0;
        let tick_ns = self.profile.timestamp_tick_ns;
        let value = |tick: u64| self.clock_base.wrapping_add((now_ns / tick) as u32);
        let has_timestamps = is_first || self.uses_timestamps;
        let timestamps = tick_ns
            .filter(|_| has_timestamps)
            .map(|t| (value(t), self.peer_value));
        let has_ack = flags & flag::ACK != 0;
        let window = if is_syn {
            // Never scaled in a SYN; the edge counts from what is acknowledged.
            let field = self.receiver.acknowledge(0);
            self.profile.receive_bytes.min(65_535).max(u64::from(field)) as u16
        } else {
            self.receiver.acknowledge(self.shift)
        };
        Packet {
            from: self.end,
            seq,
            ack: if has_ack { self.receiver.next() } else { 0 },
            flags,
            window,
            payload_bytes: bytes as u32,
            mss: is_syn.then_some(self.profile.mss),
            window_scale: self
                .profile
                .window_scale
                .filter(|_| is_first || (is_syn && self.peer_shift != u8::MAX)),
            sack_permitted: is_syn && self.profile.sack && (is_first || self.uses_sack),
            timestamps,
            sack: if self.uses_sack && has_ack && !is_syn {
                self.receiver.sack()
            } else {
                Vec::new()
            },
            ip_id: self.ip_id,
            hop_limit: self.profile.hop_limit,
            why,
        }
    }

    fn send_handshake(&mut self, now_ns: u64) {
        let flags = match self.state {
            State::Asked => flag::SYN,
            _ => flag::SYN | flag::ACK,
        };
        let packet = self.packet(now_ns, 0, 0, flags, Why::Handshake);
        self.out.push(packet);
        let wait_ns = self.profile.rto_initial_ns << self.asked_times.min(6);
        self.asked_times += 1;
        self.asked_ns = now_ns;
        self.handshake = (self.asked_times < 7).then_some((now_ns + wait_ns, 0));
    }

    fn send_ack(&mut self, now_ns: u64, why: Why) {
        let seq = self.sender.next();
        let packet = self.packet(now_ns, seq, 0, flag::ACK, why);
        self.out.push(packet);
    }

    fn flush(&mut self, now_ns: u64) {
        for chunk in self.sender.take() {
            let Chunk {
                begin,
                bytes,
                fin,
                why,
            } = chunk;
            let mut flags = flag::ACK;
            flags |= if fin { flag::FIN } else { 0 };
            flags |= if bytes > 0 && bytes < u64::from(self.profile.mss) {
                flag::PSH
            } else {
                0
            };
            let packet = self.packet(now_ns, begin, bytes, flags, why);
            self.out.push(packet);
        }
    }

    /// Agrees on the options of the peer's SYN.
    fn agree(&mut self, packet: &Packet) {
        self.peer_mss = packet.mss.unwrap_or(536);
        let scales = packet.window_scale.is_some() && self.profile.window_scale.is_some();
        self.shift = self.profile.window_scale.filter(|_| scales).unwrap_or(0);
        // 255 marks a peer without the option: the answer to its SYN has none either.
        self.peer_shift = packet.window_scale.filter(|_| scales).unwrap_or(u8::MAX);
        self.uses_timestamps =
            packet.timestamps.is_some() && self.profile.timestamp_tick_ns.is_some();
        self.uses_sack = packet.sack_permitted && self.profile.sack;
        let options = if self.uses_timestamps { 12 } else { 0 };
        let mss = u64::from(self.peer_mss.min(self.profile.mss)) - options;
        self.sender = Sender::new(&self.profile, mss, self.uses_sack);
        self.receiver = Receiver::new(&self.profile);
    }

    fn establish(&mut self, now_ns: u64) {
        self.state = State::Established;
        self.handshake = None;
        if self.asked_times == 1 {
            self.sender.sample(now_ns - self.asked_ns);
        }
    }

    fn keep_alive_ns(&self) -> Option<u64> {
        let (idle_ns, interval_ns) = self.profile.keep_alive?;
        let is_quiet = self.sender.queued() == 0 && !self.is_over();
        let last_ns = self.heard_ns.max(self.sender.last_sent_ns());
        (is_quiet && self.is_established())
            .then_some(last_ns + idle_ns + interval_ns * self.keep_alives)
    }
}

impl Stack for Tcp {
    fn connect(&mut self, now_ns: u64) {
        self.state = State::Asked;
        self.send_handshake(now_ns);
    }

    fn receive(&mut self, now_ns: u64, packet: &Packet) {
        self.heard_ns = now_ns;
        self.keep_alives = 0;
        if let Some((value, _)) = packet.timestamps {
            let is_newer = value.wrapping_sub(self.peer_value) < 1 << 31;
            // The echo is of the segment that the next acknowledgement answers (RFC 7323, 4.3).
            if packet.has(flag::SYN) || (is_newer && packet.seq <= self.receiver.next()) {
                self.peer_value = value;
            }
        }
        if packet.has(flag::RST) {
            self.state = State::Gone;
            return;
        }
        match self.state {
            State::Closed if packet.has(flag::SYN) => {
                self.agree(packet);
                self.state = State::Accepting(now_ns + self.accept_ns);
                if self.accept_ns == 0 {
                    self.wake(now_ns);
                }
                return;
            }
            State::Answered if packet.has(flag::SYN) => {
                self.send_handshake(now_ns);
                return;
            }
            State::Asked if packet.has(flag::SYN) => {
                self.agree(packet);
                self.establish(now_ns);
                let window = u64::from(packet.window);
                self.sender.acknowledge(now_ns, 1, 1 + window, &[], false);
                self.send_ack(now_ns, Why::Handshake);
                self.flush(now_ns);
                return;
            }
            State::Established if packet.has(flag::SYN) => {
                self.send_ack(now_ns, Why::Handshake);
                return;
            }
            State::Answered => self.establish(now_ns),
            State::Established => {}
            _ => return,
        }
        let fin = packet.has(flag::FIN);
        let end = packet.seq + u64::from(packet.payload_bytes);
        let shift = if self.peer_shift == u8::MAX {
            0
        } else {
            self.peer_shift
        };
        let edge = packet.ack + (u64::from(packet.window) << shift);
        let pure = packet.payload_bytes == 0 && !fin;
        let answer = self.receiver.take(now_ns, packet.seq, end, fin);
        self.sender
            .acknowledge(now_ns, packet.ack, edge, &packet.sack, pure);
        self.flush(now_ns);
        // Data that leaves carries the acknowledgement.
        let has_left = self.out.iter().any(|p| p.ack >= self.receiver.next());
        if answer == Answer::Now && !has_left {
            self.send_ack(now_ns, Why::Ack);
        }
    }

    fn wake(&mut self, now_ns: u64) {
        if let State::Accepting(due_ns) = self.state {
            if due_ns <= now_ns {
                self.state = State::Answered;
                self.send_handshake(now_ns);
            }
        }
        if let Some((due_ns, _)) = self.handshake {
            if due_ns <= now_ns && matches!(self.state, State::Asked | State::Answered) {
                self.send_handshake(now_ns);
            }
        }
        if self.state != State::Established {
            return;
        }
        if self.keep_alive_ns().is_some_and(|due| due <= now_ns) {
            self.keep_alives += 1;
            let bytes = u64::from(self.profile.keep_alive_bytes);
            let seq = self.sender.next().saturating_sub(1);
            let packet = self.packet(now_ns, seq, bytes, flag::ACK, Why::KeepAlive);
            self.out.push(packet);
        }
        if self.sender.deadline().is_some_and(|due| due <= now_ns) {
            self.sender.fire(now_ns);
            self.flush(now_ns);
        }
        if self.receiver.deadline().is_some_and(|due| due <= now_ns) {
            self.send_ack(now_ns, Why::DelayedAck);
        }
    }

    fn deadline(&mut self, _now_ns: u64) -> Option<u64> {
        match self.state {
            State::Accepting(due_ns) => Some(due_ns),
            State::Asked | State::Answered => self.handshake.map(|h| h.0),
            State::Established => {
                let timers = [
                    self.sender.deadline(),
                    self.receiver.deadline(),
                    self.keep_alive_ns(),
                ];
                timers.into_iter().flatten().min()
            }
            State::Closed | State::Gone => None,
        }
    }

    fn take(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.out)
    }

    fn write(&mut self, now_ns: u64, bytes: u64) -> u64 {
        if self.state != State::Established {
            return 0;
        }
        let taken = self.sender.write(bytes);
        self.sender.push(now_ns);
        self.flush(now_ns);
        taken
    }

    fn read(&mut self, now_ns: u64, most: u64) -> u64 {
        let (bytes, announces) = self.receiver.read(most);
        if announces && self.state == State::Established {
            self.send_ack(now_ns, Why::WindowUpdate);
        }
        bytes
    }

    fn close(&mut self, now_ns: u64) {
        self.sender.close();
        self.sender.push(now_ns);
        self.flush(now_ns);
    }

    fn abort(&mut self, now_ns: u64) {
        let seq = self.sender.next();
        let packet = self.packet(now_ns, seq, 0, flag::RST | flag::ACK, Why::Reset);
        self.out.push(packet);
        self.state = State::Gone;
    }

    fn is_established(&self) -> bool {
        self.state == State::Established
    }

    fn is_ended(&self) -> bool {
        self.receiver.is_ended() && self.receiver.readable() == 0
    }

    fn is_over(&self) -> bool {
        let is_done = self.sender.is_finished() && self.receiver.is_ended();
        self.state == State::Gone || is_done
    }

    fn room(&self) -> u64 {
        self.receiver.room()
    }

    fn queued(&self) -> u64 {
        self.sender.queued()
    }
}
