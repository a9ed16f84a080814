// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sees everything: every packet with its fate, both applications, both hosts. Writes down what
//! holds each direction's data at each time.

use crate::ground_truth::{Direction, End, Fate, Hold, Interval, Limit, Pause, Sent};
use crate::packet::{Packet, flag};
use crate::path::Transit;

/// What the simulator tells of one end at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndState {
    /// Whether its TCP may carry data.
    pub is_established: bool,
    /// Whether its connection is reset or over.
    pub is_over: bool,
    /// Whether the host still exists.
    pub is_alive: bool,
    /// Bytes that its application wrote and the peer has not acknowledged.
    pub queued: u64,
    /// Bytes that its receive buffer has room for.
    pub room: u64,
    /// Whether its application wants to write more than its TCP takes.
    pub is_blocked: bool,
    /// Why its application gives nothing.
    pub pause: Pause,
}

/// A packet on its way.
#[derive(Clone, Debug)]
struct Underway {
    from: End,
    arrives_ns: u64,
    late_ns: u64,
    begin: u64,
    end: u64,
    ack: Option<u64>,
    edge: u64,
    is_fin: bool,
}

/// What is known of one direction's stream.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// Acknowledged, as the sender knows.
    una: u64,
    /// Byte after the last one that was sent.
    next: u64,
    /// Right edge of the window, as the sender knows it.
    edge: u64,
    /// All before this has arrived.
    got: u64,
    /// What arrived beyond it, each piece once.
    beyond: Vec<(u64, u64)>,
    /// What the receiver acknowledged, and the edge it announced.
    acked: u64,
    announced: u64,
    /// Dropped and not arrived since.
    dropped: Vec<(u64, u64)>,
    /// The largest payload.
    largest: u64,
    truth: Direction,
    current: Option<Interval>,
}

/// The witness of one connection.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    streams: [Stream; 2],
    underway: Vec<Underway>,
    /// Window scales of both ends, as offered.
    shifts: [Option<u8>; 2],
}

impl Witness {
    /// Notes that a packet was sent at `now_ns`, and what becomes of it.
    pub fn sent(&mut self, now_ns: u64, packet: &Packet, transit: &Transit) {
        let from = packet.from;
        if packet.has(flag::SYN) {
            self.shifts[from.index()] = packet.window_scale;
        }
        let scales = self.shifts.iter().all(Option::is_some) && !packet.has(flag::SYN);
        let shift = if scales {
            self.shifts[from.index()].unwrap_or(0)
        } else {
            0
        };
        let (begin, end) = (packet.seq, packet.end());
        let edge = packet.ack + (u64::from(packet.window) << shift);
        let own = &mut self.streams[from.index()];
        if end > begin && end > own.next && packet.why != crate::ground_truth::Why::WindowProbe {
            own.next = end;
        }
        own.largest = own.largest.max(u64::from(packet.payload_bytes));
        if matches!(transit.fate, Fate::Dropped(_)) && end > begin {
            own.dropped.push((begin, end));
        }
        // A keep-alive repeats what was acknowledged: it carries nothing.
        let is_idle_probe = packet.why == crate::ground_truth::Why::KeepAlive;
        own.truth.sent.push(Sent {
            time_ns: now_ns,
            begin,
            end: if is_idle_probe { begin } else { end },
            why: packet.why,
            fate: transit.fate,
            needless: false,
            overtaken: transit.overtaken,
        });
        if packet.has(flag::ACK) {
            let other = &mut self.streams[from.other().index()];
            other.acked = other.acked.max(packet.ack);
            other.announced = other.announced.max(edge);
            if other.got > packet.ack {
                // The receiver's TCP did not keep what arrived.
                other.got = packet.ack;
                other.beyond.clear();
            }
        }
        if let Fate::Arrives(arrives_ns) = transit.fate {
            self.underway.push(Underway {
                from,
                arrives_ns,
                late_ns: transit.late_ns,
                begin,
                end,
                ack: packet.has(flag::ACK).then_some(packet.ack),
                edge,
                is_fin: packet.has(flag::FIN),
            });
        }
    }

    /// Notes that a packet of `from` arrived at `now_ns`.
    pub fn arrived(&mut self, now_ns: u64, packet: &Packet) {
        let (from, begin, end) = (packet.from, packet.seq, packet.end());
        let found = self.underway.iter().position(|u| {
            u.from == from && u.arrives_ns == now_ns && u.begin == begin && u.end == end
        });
        let Some(index) = found else { return };
        let underway = self.underway.swap_remove(index);
        let stream = &mut self.streams[from.index()];
        let is_known = |stream: &Stream| {
            end <= stream.got || stream.beyond.iter().any(|b| b.0 <= begin && end <= b.1)
        };
        if end > begin {
            if is_known(stream) {
                let copy = stream.truth.sent.iter_mut().rev();
                let mut copies = copy.filter(|s| s.begin == begin && s.end == end);
                if let Some(sent) = copies.find(|s| s.fate == Fate::Arrives(now_ns)) {
                    sent.needless = true;
                }
            } else {
                let room = stream.announced.max(1) + u64::from(packet.has(flag::FIN));
                let end = end.min(room);
                if begin <= stream.got {
                    stream.got = stream.got.max(end);
                } else if begin < end {
                    stream.beyond.push((begin, end));
                }
                while let Some(at) = stream.beyond.iter().position(|b| b.0 <= stream.got) {
                    let (_, last) = stream.beyond.swap_remove(at);
                    stream.got = stream.got.max(last);
                }
            }
            let got = stream.got;
            let beyond = &stream.beyond;
            stream
                .dropped
                .retain(|d| d.1 > got && !beyond.iter().any(|b| b.0 <= d.0 && d.1 <= b.1));
        }
        if let Some(ack) = underway.ack {
            let other = &mut self.streams[from.other().index()];
            other.una = other.una.max(ack);
            other.next = other.next.max(ack);
            if ack >= other.una {
                other.edge = underway.edge;
            }
        }
    }

    /// Notes what holds both directions from `now_ns` on.
    pub fn note(&mut self, now_ns: u64, ends: &[EndState; 2]) {
        for end in [End::Client, End::Server] {
            let hold = self.hold(now_ns, end, ends);
            let limit = self.limit(end, &ends[end.index()]);
            let stream = &mut self.streams[end.index()];
            let misses = matches!(hold, Hold::Lost | Hold::PeerGone);
            let next = Interval {
                start_ns: now_ns,
                end_ns: now_ns,
                hold,
                above: if misses {
                    u32::try_from(stream.beyond.len()).unwrap_or(u32::MAX)
                } else {
                    0
                },
                missing: if misses { stream.got } else { 0 },
                limit,
                ack_lost: misses && stream.acked > stream.una,
            };
            let same = |a: &Interval| {
                (a.hold, a.above, a.missing, a.limit, a.ack_lost)
                    == (
                        next.hold,
                        next.above,
                        next.missing,
                        next.limit,
                        next.ack_lost,
                    )
            };
            match &mut stream.current {
                Some(current) if same(current) => {}
                current => {
                    if let Some(mut last) = current.replace(next) {
                        last.end_ns = now_ns;
                        if last.end_ns > last.start_ns {
                            stream.truth.timeline.push(last);
                        }
                    }
                }
            }
        }
    }

    /// Ends the timelines at `end_ns`, and returns both directions: the client's, the server's.
    pub fn finish(self, end_ns: u64) -> [Direction; 2] {
        self.streams.map(|stream| {
            let mut truth = stream.truth;
            truth.timeline.extend(stream.current);
            truth.timeline.retain(|i| i.start_ns < end_ns);
            if let Some(last) = truth.timeline.last_mut() {
                last.end_ns = end_ns;
            }
            truth
        })
    }

    fn hold(&self, now_ns: u64, end: End, ends: &[EndState; 2]) -> Hold {
        let (own, peer) = (&ends[end.index()], &ends[end.other().index()]);
        let stream = &self.streams[end.index()];
        let idle = self.idle(end, ends);
        if own.is_over || !own.is_alive || (peer.is_over && peer.is_alive) {
            return Hold::Paused(Pause::Finished);
        }
        if !own.is_established {
            return self.setup(now_ns, end, peer, own);
        }
        let unsent = (stream.una.max(1) + own.queued).saturating_sub(stream.next.max(1));
        let is_outstanding = stream.next > stream.una.max(1);
        if !is_outstanding && unsent == 0 {
            return idle;
        }
        if !peer.is_alive {
            return Hold::PeerGone;
        }
        let window_limits = unsent > 0 && self.lacks_room(stream, unsent);
        let useful = self.underway.iter().filter(|u| {
            if u.from == end {
                let kept = stream.beyond.iter().any(|b| b.0 <= u.begin && u.end <= b.1);
                let is_in_window = u.begin < stream.announced || u.is_fin;
                u.end > stream.got && !kept && u.end > u.begin && is_in_window
            } else {
                u.ack.is_some_and(|ack| {
                    ack > stream.una
                        || (u.edge > stream.edge && window_limits)
                        || (is_outstanding && !stream.beyond.is_empty())
                })
            }
        });
        let mut any = false;
        let mut all_late = true;
        let mut has_acks = false;
        for packet in useful {
            any = true;
            has_acks |= packet.from != end;
            all_late &= packet.late_ns > 0 && now_ns >= packet.arrives_ns - packet.late_ns;
        }
        if any {
            return match (all_late, has_acks) {
                (false, _) => Hold::Moving,
                (true, false) => Hold::Late,
                (true, true) => Hold::AcksLate,
            };
        }
        // Nobody waits for an acknowledgement if there is nothing more to send or to repair.
        let waits = unsent > 0 || own.is_blocked || stream.got < stream.next;
        let is_lost = stream.acked > stream.una;
        if is_outstanding && stream.got > stream.acked.max(1) && stream.beyond.is_empty() {
            // The receiver owes an acknowledgement, and it will end the pause. If it would
            // announce no room, the window is what holds the sender.
            let room = (stream.got + peer.room).saturating_sub(stream.next);
            return if !waits {
                if is_lost { Hold::AckLost } else { idle }
            } else if window_limits && room < unsent.min(stream.largest.max(1)) {
                Hold::WindowClosed
            } else if is_lost {
                Hold::AckLostAndHeld
            } else {
                Hold::AckHeld
            };
        }
        if is_outstanding && stream.got >= stream.next {
            return if is_lost { Hold::AckLost } else { idle };
        }
        if is_outstanding {
            return Hold::Lost;
        }
        if window_limits {
            // What the receiver announced would let the sender go on, had it arrived: scaling
            // alone moves the edge by less.
            let room = stream.announced.saturating_sub(stream.next.max(1));
            let is_open = room >= unsent.min(stream.largest.max(1));
            return if is_open {
                Hold::UpdateLost
            } else {
                Hold::WindowClosed
            };
        }
        Hold::SenderHeld
    }

    fn lacks_room(&self, stream: &Stream, unsent: u64) -> bool {
        let room = stream.edge.saturating_sub(stream.next.max(1));
        room < unsent.min(stream.largest.max(1))
    }

    fn setup(&self, now_ns: u64, end: End, peer: &EndState, own: &EndState) -> Hold {
        if !peer.is_alive || !own.is_alive {
            return Hold::PeerGone;
        }
        let mut any = false;
        let mut all_late = true;
        for packet in &self.underway {
            any = true;
            all_late &= packet.late_ns > 0 && now_ns >= packet.arrives_ns - packet.late_ns;
        }
        if any {
            return if all_late { Hold::Late } else { Hold::Moving };
        }
        // The SYN arrived and was not answered yet, or something was lost.
        let asked = self.streams[0].got > 0 || self.streams[1].got > 0;
        let answered = self.streams[1].truth.sent.iter().any(|s| s.end > s.begin);
        match (asked && !answered, end) {
            (false, _) => Hold::SetupLost,
            (true, End::Client) => Hold::SetupSlow,
            (true, End::Server) => Hold::AcceptSlow,
        }
    }

    /// Returns the pause of an end that has nothing to send.
    fn idle(&self, end: End, ends: &[EndState; 2]) -> Hold {
        let (own, peer) = (&ends[end.index()], &ends[end.other().index()]);
        if own.pause != Pause::AwaitPeer {
            return Hold::Paused(own.pause);
        }
        let back = &self.streams[end.other().index()];
        let owes = peer.queued > 0 || back.next > back.got;
        // A request on its way will be worked on.
        let asked = self.streams[end.index()].next > self.streams[end.index()].got;
        let is_idle = matches!(
            peer.pause,
            Pause::Think | Pause::Finished | Pause::AwaitPeer
        );
        Hold::Paused(if is_idle && !owes && !asked {
            Pause::AwaitIdle
        } else {
            Pause::AwaitPeer
        })
    }

    fn limit(&self, end: End, own: &EndState) -> Limit {
        let stream = &self.streams[end.index()];
        let unsent = (stream.una.max(1) + own.queued).saturating_sub(stream.next.max(1));
        if !stream.dropped.is_empty() {
            Limit::Repair
        } else if own.is_blocked && unsent < stream.largest.max(1) {
            // All whole segments that the buffer holds are under way.
            let room = stream.edge.saturating_sub(stream.next.max(1));
            if room < stream.largest.max(1) {
                Limit::WindowAndBuffer
            } else {
                Limit::SendBuffer
            }
        } else if unsent == 0 {
            Limit::Application
        } else if self.lacks_room(stream, unsent) {
            Limit::Window
        } else {
            Limit::Path
        }
    }
}
