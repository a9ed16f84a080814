// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of one connection while it is read: two flows, its beginning and its end.

use std::sync::Arc;

use capture::segment::{EncapsulationId, Endpoint, Flags, HostDirection, Segment};
use units::time::NS_PER_S;

use crate::cause::Confidence;
use crate::direction::Direction;
use crate::flow::Flow;
use crate::flow::at::At;
use crate::flow::echoes::{self, Echoes};
use crate::flow::facts::{Closed, Packets};
use crate::flow::ip_ids::Identified;
use crate::history::Event;
use crate::options::Options;
use crate::recorder::Recorder;

/// Connections of the same two ends that are checked for one whose other direction a segment
/// may be.
pub(crate) const HALVES_MOST: usize = 4;

/// The handshake as it was captured. Ends are 0 or 1, in the order of the connection's key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handshake {
    /// The end that sent a SYN without ACK, and the initial sequence number.
    pub(crate) client: Option<(usize, u32)>,
    pub(crate) syn: Option<At>,
    pub(crate) last_syn: Option<At>,
    pub(crate) syns: Packets,
    pub(crate) syn_ack: Option<At>,
    pub(crate) last_syn_ack: Option<At>,
    pub(crate) syn_acks: Packets,
    pub(crate) ack: Option<At>,
    pub(crate) reset: Option<At>,
    scale: [Option<u8>; 2],
    sack_permitted: [bool; 2],
    syn_seen: [bool; 2],
    options_cut: bool,
    syn_flags: Flags,
    /// A SYN that brought data (RFC 7413), until the answer says whether the server has it.
    syn_data: Option<Box<(At, Segment)>>,
}

/// The state of a connection while it is read.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) ends: [Endpoint; 2],
    pub(crate) encapsulation: EncapsulationId,
    pub(crate) first_ns: u64,
    pub(crate) last: At,
    pub(crate) packets: u64,
    pub(crate) backwards: u64,
    pub(crate) handshake: Handshake,
    pub(crate) fins: [bool; 2],
    pub(crate) reset: Option<(usize, At)>,
    /// The data that each end sends.
    pub(crate) flows: [Flow; 2],
    /// Packets that the capturing host sent and received, by the end that sent them.
    pub(crate) out: [u64; 2],
    pub(crate) into: [u64; 2],
    /// Packets, by end, whose hop limit is one that hosts send with; below, those with another
    /// one.
    pub(crate) whole_hops: [u64; 2],
    pub(crate) cut_hops: [u64; 2],
    pub(crate) recorder: Option<Recorder>,
    /// What is believed at most of what the capture shows.
    pub(crate) confidence_most: Confidence,
    is_ended: bool,
}

impl Connection {
    pub(crate) fn new(
        options: &Arc<Options>,
        ends: [Endpoint; 2],
        encapsulation: EncapsulationId,
        first: At,
        recorder: Option<Recorder>,
    ) -> Self {
        let shown = recorder.is_some();
        Self {
            ends,
            encapsulation,
            first_ns: first.now,
            last: first,
            packets: 0,
            backwards: 0,
            handshake: Handshake::default(),
            fins: [false; 2],
            reset: None,
            flows: [0, 1].map(|_| Flow::new(Arc::clone(options), shown)),
            out: [0; 2],
            into: [0; 2],
            whole_hops: [0; 2],
            cut_hops: [0; 2],
            recorder,
            confidence_most: Confidence::High,
            is_ended: false,
        }
    }

    /// Returns whether a SYN begins another connection of the same ports.
    pub(crate) fn is_replaced_by(&self, from: usize, segment: &Segment) -> bool {
        let flags = segment.flags;
        if !flags.any(Flags::SYN) || flags.any(Flags::ACK) {
            return false;
        }
        match self.handshake.client {
            // A host may begin with the same number again; what has ended is over.
            Some((end, number)) => end != from || number != segment.seq || self.fins != [false; 2],
            None => self.packets > 0,
        }
    }

    /// Returns whether this segment is the first of end `from`, and acknowledges what the other
    /// end sent.
    pub(crate) fn is_answered_by(&mut self, from: usize, segment: &Segment) -> bool {
        let is_first = self.whole_hops[from] + self.cut_hops[from] == 0;
        // What the other end said of this one's data has to fit, too: a SYN has a number of its
        // own.
        let is_syn = segment.flags.any(Flags::SYN);
        is_first
            && segment.flags.any(Flags::ACK)
            && self.flows[1 - from].can_be_acknowledged_by(segment.ack)
            && (is_syn || self.flows[from].may_go_on_with(segment.seq))
    }

    /// Processes a segment of end `from`.
    pub(crate) fn segment(&mut self, from: usize, segment: &Segment, now: u64) {
        self.backwards += u64::from(now < self.last.now);
        let now = now.max(self.last.now);
        let at = At::new(now, segment.number);
        self.last = at;
        self.packets += 1;
        self.note_place(from, segment);
        let flags = segment.flags;
        let other = 1 - from;
        let mut identified = self.flows[from].ip_ids.next(segment, now);
        if identified.is_copy {
            self.flows[from].note_copy(segment);
            return; // captured twice: nothing happened
        }
        if flags.any(Flags::RST) {
            self.on_reset(at, from);
        } else if flags.any(Flags::SYN) {
            self.on_syn(at, from, segment);
        } else {
            let own = &mut self.flows[from];
            identified.is_sign_of_life = own.is_sign_of_life(segment);
            let is_below_window;
            (identified.is_repeat, is_below_window) = own.is_known(segment);
            if flags.any(Flags::ACK) {
                self.on_first_ack(at, from);
                if let Some(flow) = self.flows.get_mut(other) {
                    flow.on_ack(at, segment, &identified, is_below_window);
                }
            }
            let has_ended = self.fins[other];
            let peer = &self.flows[other];
            let (settled_ns, rtt_ns) =
                (peer.acks.settled_ns, peer.trips.measured_receiver_rtt_ns());
            if let Some(flow) = self.flows.get_mut(from) {
                flow.note_peer(settled_ns, rtt_ns, has_ended);
                flow.on_data(at, segment, &identified);
            }
            if flags.any(Flags::FIN) {
                self.fins[from] = true;
            }
            if self.fins == [true; 2] {
                self.settle();
            }
        }
        if self.recorder.is_some() {
            self.record(at);
        }
    }

    fn record(&mut self, at: At) {
        for (end, flow) in self.flows.iter_mut().enumerate() {
            let Some((shown, flight_bytes)) = flow.take_shown() else {
                continue;
            };
            let direction = if end == 0 {
                Direction::ToServer
            } else {
                Direction::ToClient
            };
            for what in shown {
                if let Some(recorder) = &mut self.recorder {
                    recorder.push(Event {
                        time_ns: at.now,
                        packet: at.packet.get(),
                        direction,
                        what,
                        flight_bytes,
                    });
                }
            }
        }
    }

    fn note_place(&mut self, from: usize, segment: &Segment) {
        match segment.host_direction {
            HostDirection::Out => self.out[from] += 1,
            HostDirection::In => self.into[from] += 1,
            HostDirection::Unknown => {}
        }
        if matches!(segment.hop_limit, 64 | 128 | 255) {
            self.whole_hops[from] += 1;
        } else {
            self.cut_hops[from] += 1;
        }
    }

    fn on_reset(&mut self, at: At, from: usize) {
        let handshake = &mut self.handshake;
        if handshake.syn.is_some() && handshake.ack.is_none() {
            handshake.reset.get_or_insert(at);
        }
        if self.reset.is_none() {
            for (end, flow) in self.flows.iter_mut().enumerate() {
                flow.end(at, Closed::Reset, end == from);
                flow.release();
            }
            self.reset = Some((from, at));
        }
    }

    fn on_syn(&mut self, at: At, from: usize, segment: &Segment) {
        let is_answer = segment.flags.any(Flags::ACK);
        let handshake = &mut self.handshake;
        let asked = handshake.client.map(|(_, number)| number.wrapping_add(1));
        let with_syn = handshake.syn_data.as_ref();
        let with_syn = with_syn.map_or(0, |both| both.1.payload_bytes);
        if is_answer && asked.is_some_and(|asked| segment.ack.wrapping_sub(asked) > with_syn) {
            return; // it answers the SYN of another connection, which was not captured
        }
        if is_answer && echoes::is_agreed(handshake.syn_flags, segment.flags) {
            for flow in &mut self.flows {
                flow.echoes = Echoes::counting();
            }
        }
        if is_answer {
            handshake.syn_acks.push(at.packet.get());
            handshake.syn_ack.get_or_insert(at);
            handshake.last_syn_ack = Some(at);
            if handshake.client.is_none() {
                handshake.client = Some((1 - from, segment.ack.wrapping_sub(1)));
            }
        } else {
            handshake.client.get_or_insert((from, segment.seq));
            handshake.syns.push(at.packet.get());
            handshake.syn_flags = segment.flags;
            if segment.payload_bytes > 0 {
                handshake.syn_data = Some(Box::new((at, *segment)));
            }
            handshake.syn.get_or_insert(at);
            handshake.last_syn = Some(at);
        }
        handshake.scale[from] = segment.window_scale;
        handshake.sack_permitted[from] = segment.sack_permitted;
        handshake.syn_seen[from] = true;
        handshake.options_cut |= segment.options_cut;
        self.flows[from].begin_at(segment.seq.wrapping_add(1));
        if let Some(mss) = segment.mss {
            for flow in &mut self.flows {
                flow.sizes.set_mss(mss);
            }
        }
        if self.handshake.sack_permitted == [true; 2] {
            self.flows.iter_mut().for_each(Flow::permit_sack);
        }
        if is_answer {
            self.settle_syn_data(at, from, segment);
        }
        self.settle_scale();
        self.settle_handshake();
    }

    /// Processes the data that came with the SYN, if its answer acknowledges it: else the client
    /// sends it once more. Windows in a SYN are not scaled (RFC 7323, 2.2).
    fn settle_syn_data(&mut self, at: At, from: usize, answer: &Segment) {
        let Some((syn_at, mut syn)) = self.handshake.syn_data.take().map(|both| *both) else {
            return;
        };
        syn.seq = syn.seq.wrapping_add(1);
        if answer.ack == syn.seq || self.flows[1 - from].has_data() {
            return;
        }
        syn.flags = Flags(syn.flags.0 & !Flags::SYN);
        let mut answer = *answer;
        answer.flags = Flags(answer.flags.0 & !Flags::SYN);
        answer.seq = answer.seq.wrapping_add(1);
        let client = &mut self.flows[1 - from];
        client.on_data(syn_at, &syn, &Identified::default());
        client.on_ack(at, &answer, &Identified::default(), false);
        self.flows[from].note_request(syn_at, syn.payload_bytes, false);
    }

    /// Sets the window scales once both SYNs are known. They count only if both SYNs have one
    /// (RFC 7323, 2.2).
    fn settle_scale(&mut self) {
        let handshake = &self.handshake;
        if handshake.syn_seen != [true; 2] || handshake.options_cut {
            return;
        }
        let scales = match handshake.scale {
            [Some(a), Some(b)] => [a, b],
            _ => [0, 0],
        };
        let [a, b] = scales;
        self.flows[0].set_scale(b);
        self.flows[1].set_scale(a);
    }

    fn on_first_ack(&mut self, at: At, from: usize) {
        let handshake = &mut self.handshake;
        let is_client = || handshake.client.is_some_and(|(client, _)| client == from);
        if handshake.ack.is_none() && handshake.syn_ack.is_some() && is_client() {
            handshake.ack = Some(at);
            self.settle_handshake();
        }
    }

    /// Sets the round trips of the handshake, where nothing was sent twice: only then is it
    /// sure which segment answers which.
    fn settle_handshake(&mut self) {
        let handshake = &self.handshake;
        let Some((client, _)) = handshake.client else {
            return;
        };
        let once = handshake.syns.count() <= 1 && handshake.syn_acks.count() == 1;
        if !once {
            return;
        }
        // What takes longer than the first timer of a SYN (RFC 6298, 2.1) was a host's time, or
        // a repeat answered that was not captured.
        let between = |from: Option<At>, to: Option<At>| {
            from.zip(to)
                .map(|(from, to)| to.now.saturating_sub(from.now))
                .filter(|&ns| ns < NS_PER_S)
        };
        let to_server = between(handshake.syn, handshake.syn_ack);
        let to_client = between(handshake.syn_ack, handshake.ack);
        self.flows[client].set_handshake(to_client, to_server);
        self.flows[1 - client].set_handshake(to_server, to_client);
    }

    /// Shrinks the buffers once both sides have sent a FIN and everything is acknowledged.
    fn settle(&mut self) {
        if self.flows.iter().all(Flow::is_finished) {
            for flow in &mut self.flows {
                flow.settle();
            }
        }
    }

    /// Returns whether nothing more is expected: a reset, or a FIN of each side that was
    /// acknowledged.
    pub(crate) fn is_over(&self) -> bool {
        let is_closed = self.fins == [true; 2] && self.flows.iter().all(Flow::is_finished);
        self.reset.is_some() || is_closed
    }

    /// Ends the connection and frees its buffers, because a new connection has its ports. The
    /// results stay.
    pub(crate) fn close(&mut self) {
        self.end();
        for flow in &mut self.flows {
            flow.release();
        }
    }

    /// Ends the flows, because the capture or the connection is over.
    pub(crate) fn end(&mut self) {
        if !std::mem::replace(&mut self.is_ended, true) && self.reset.is_none() {
            let at = self.last;
            for flow in &mut self.flows {
                flow.end(at, Closed::Capture, false);
            }
        }
    }
}
