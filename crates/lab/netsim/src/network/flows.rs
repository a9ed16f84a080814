// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traffic of a network's flows: passes datagrams and TCP segments from their
//! senders to the hosts' queues, and from the network to their receivers.

use units::clock::Time;

use super::{Flow, FlowConfig, Network, Traffic, TrafficConfig};
use crate::observe::{Observer, OfFlow};
use crate::packet::{Header, NO_SEGMENT, Packet};
use crate::qdisc::Verdict;
use crate::source::Source;
use crate::stream::{Stream, frame_bytes};

impl Flow {
    pub(super) fn new(config: FlowConfig) -> Self {
        Self {
            header: config.header,
            paths: [config.path.into(), config.reverse.into()],
            numbers: [0; 2],
            traffic: match config.traffic {
                TrafficConfig::Datagrams(source) => Traffic::Datagrams(Source::new(source)),
                TrafficConfig::Stream(stream) => Traffic::Stream(Box::new(Stream::new(*stream))),
            },
        }
    }

    /// Returns the addresses and ports of one of the flow's packets.
    pub(super) fn header_of(&self, packet: &Packet) -> Header {
        let header = if packet.reverse {
            self.header.reversed()
        } else {
            self.header
        };
        Header {
            dport: header.dport.wrapping_add(packet.port),
            ..header
        }
    }

    /// Makes the flow's next packet in one direction.
    fn packet(&mut self, now: Time, frame_bytes: u32, segment: u32, reverse: bool) -> Packet {
        let number = &mut self.numbers[usize::from(reverse)];
        *number += 1;
        Packet {
            born: now,
            queued: now,
            number: *number - 1,
            pacing_bps: 0,
            window_bps: 0,
            flow: 0,
            segment,
            frame_bytes,
            class: 0,
            port: 0,
            hop: 0,
            reverse,
        }
    }
}

impl Network {
    pub(super) fn run_flow<O: Observer>(&mut self, flow: usize, observer: &mut O) {
        let now = self.now;
        match &mut self.flows[flow].traffic {
            Traffic::Datagrams(_) => self.send_datagrams(flow, observer),
            Traffic::Stream(stream) => {
                if let Some(sample) = stream.take_sample(now) {
                    observer.sample(now, flow as u32, &sample);
                }
                let is_open = stream.is_open(now);
                if is_open && stream.cpu.is_free(now) {
                    let mut of_flow = OfFlow {
                        observer: &mut *observer,
                        flow: flow as u32,
                    };
                    let waited = stream.cpu.next(now);
                    stream.tell_sender(now, waited.as_ref(), &mut of_flow);
                    stream.note_end(now);
                }
                if is_open {
                    stream.receiver.on_timer(now);
                }
                self.send_segments(flow, observer);
                self.send_acks(flow, observer);
            }
        }
        self.schedule_flow(flow);
    }

    /// Delivers a packet to its receiver.
    pub(super) fn deliver<O: Observer>(&mut self, packet: Packet, observer: &mut O) {
        self.counts.delivered += 1;
        let Some(segment) = self.segments.take(packet.segment) else {
            return;
        };
        let (flow, now) = (packet.flow as usize, self.now);
        if let Traffic::Stream(stream) = &mut self.flows[flow].traffic {
            if packet.reverse {
                if let Some(segment) = stream.cpu.take(now, segment) {
                    let mut of_flow = OfFlow {
                        observer: &mut *observer,
                        flow: packet.flow,
                    };
                    stream.tell_sender(now, Some(&segment), &mut of_flow);
                    stream.note_end(now);
                    self.send_segments(flow, observer);
                }
            } else {
                stream.receiver.on_segment(now, &segment);
                self.send_acks(flow, observer);
            }
        }
        self.schedule_flow(flow);
    }

    /// Handles a packet that left the queue of its sender's host or was dropped
    /// from it: the queue has room again, so a sender that waits for room sends.
    pub(super) fn left_queue<O: Observer>(&mut self, packet: &Packet, observer: &mut O) {
        if packet.hop > 0 || packet.reverse {
            return;
        }
        let flow = packet.flow as usize;
        match &mut self.flows[flow].traffic {
            Traffic::Datagrams(source) => {
                if source.left_queue() {
                    self.send_datagrams(flow, observer);
                    self.schedule_flow(flow);
                }
            }
            Traffic::Stream(stream) => {
                if stream.left_queue(packet.frame_bytes) {
                    self.send_segments(flow, observer);
                    self.schedule_flow(flow);
                }
            }
        }
    }

    /// Handles a packet that its sender's host dropped for another one: the sender may
    /// send again, as an event of its own at this instant. It does not send from here,
    /// since its next packet may displace another sender's, and so on.
    pub(super) fn left_queue_early(&mut self, packet: &Packet) {
        if packet.hop > 0 || packet.reverse {
            return;
        }
        let flow = packet.flow as usize;
        let has_waited = match &mut self.flows[flow].traffic {
            Traffic::Datagrams(source) => source.left_queue(),
            Traffic::Stream(stream) => stream.left_queue(packet.frame_bytes),
        };
        if has_waited {
            let source = (3 * self.devices.len() + flow) as u32;
            self.event_queue.set(source, Some(self.now));
        }
    }

    fn send_datagrams<O: Observer>(&mut self, flow: usize, observer: &mut O) {
        let now = self.now;
        while !self.event_count.is_exceeded() {
            let f = &mut self.flows[flow];
            let device = f.paths[0][0] as usize;
            let Traffic::Datagrams(source) = &mut f.traffic else {
                return;
            };
            let Some(wish) = source.take(now) else {
                return;
            };
            let frame_bytes = source.frame_bytes();
            let packet = Packet {
                flow: flow as u32,
                class: wish.class,
                port: wish.port,
                ..f.packet(now, frame_bytes, NO_SEGMENT, false)
            };
            self.counts.offered += 1;
            let verdict = self.enqueue(device, packet, observer);
            if verdict == Verdict::Queued {
                continue;
            }
            let pause = self.devices[device].frame_span(frame_bytes);
            if let Traffic::Datagrams(source) = &mut self.flows[flow].traffic {
                match verdict {
                    Verdict::Displaced(_) => source.pause(now, pause),
                    _ => source.refused(now, pause),
                }
            }
        }
    }

    /// Sends the segments that a stream's sender may send now.
    fn send_segments<O: Observer>(&mut self, flow: usize, observer: &mut O) {
        let now = self.now;
        while !self.event_count.is_exceeded() {
            let f = &mut self.flows[flow];
            let device = f.paths[0][0] as usize;
            let Traffic::Stream(stream) = &mut f.traffic else {
                return;
            };
            let Some(segment) = stream.poll_sender(now) else {
                return;
            };
            let frame_bytes = frame_bytes(&segment);
            let (pacing_bps, window_bps) = match segment.len_bytes {
                0 => (0, 0),
                _ => stream.packet_rates(),
            };
            stream.went_into_queue(now, &segment, frame_bytes);
            let slot = self.segments.put(segment);
            let packet = Packet {
                flow: flow as u32,
                pacing_bps,
                window_bps,
                ..f.packet(now, frame_bytes, slot, false)
            };
            self.counts.offered += 1;
            let verdict = self.enqueue(device, packet, observer);
            let Traffic::Stream(stream) = &mut self.flows[flow].traffic else {
                return;
            };
            let mut of_flow = OfFlow {
                observer: &mut *observer,
                flow: flow as u32,
            };
            match verdict {
                Verdict::Queued => {}
                Verdict::Displaced(_) => {
                    stream.sender.on_local_congestion(now, &mut of_flow);
                    stream.refresh();
                }
                Verdict::Refused => {
                    stream.left_queue(frame_bytes);
                    stream.sender.on_local_drop(now, &mut of_flow);
                    stream.refresh();
                }
                Verdict::Lost => {
                    stream.left_queue(frame_bytes);
                }
            }
        }
    }

    /// Sends the acknowledgements of a stream's receiver. An acknowledgement that
    /// the queue refuses is lost.
    fn send_acks<O: Observer>(&mut self, flow: usize, observer: &mut O) {
        let now = self.now;
        while !self.event_count.is_exceeded() {
            let f = &mut self.flows[flow];
            let device = f.paths[1][0] as usize;
            let Traffic::Stream(stream) = &mut f.traffic else {
                return;
            };
            let Some(segment) = stream.receiver.poll_transmit(now) else {
                return;
            };
            let frame_bytes = frame_bytes(&segment);
            let slot = self.segments.put(segment);
            let packet = Packet {
                flow: flow as u32,
                ..f.packet(now, frame_bytes, slot, true)
            };
            self.counts.offered += 1;
            self.enqueue(device, packet, observer);
        }
    }
}
