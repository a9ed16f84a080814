// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulates segments, nodes and streams: handles one event after the other.
//!
//! The event sources are numbered, and so ordered at the same instant, as follows:
//! segments; streams that send; RT-IP threads, by node; ITM threads.

use units::clock::{Span, Time};

use super::measure::{LostTime, StreamMeasure};
use super::node::{Node, Packet, RtQueue};
use super::{Class, Hop, NetworkConfig, NodeCounts, StreamConfig, Traffic};
use crate::event_queue::EventQueue;
use crate::segment::{Counts, Event, Frame, Loss, Medium, SegmentConfig, frame_bits};
use crate::source::Source;

/// The parts of a network do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There are more segments, streams or nodes than event sources can be
    /// numbered.
    #[error("too many segments, streams or nodes")]
    TooMany,
    /// A stream's path is empty, or does not lead from node to node.
    #[error("the path of stream {0} does not lead from node to node")]
    Path(usize),
}

/// A hop, with everything that is looked up for it.
#[derive(Clone, Copy, Debug)]
struct Step {
    node: usize,
    port: usize,
    segment: usize,
    station: usize,
    to: usize,
    to_station: usize,
    /// RT: the index of its queue at the node.
    queue: usize,
    /// Time from the first bit sent to the last bit received, on an otherwise idle
    /// segment.
    least: Span,
}

impl Step {
    /// Returns the time that a packet lost in the device and on the segment until
    /// its last bit arrived.
    fn lost(&self, packet: &Packet, now: Time) -> Span {
        now.since(packet.released) - self.least
    }
}

struct Stream {
    config: StreamConfig,
    /// Hops to the receiver, then back.
    steps: Vec<Step>,
    source: Option<Source>,
    next: Option<Time>,
    numbers: u64,
    first_arrival: Option<Time>,
    measure: StreamMeasure,
}

/// A network and its state at the current simulated time.
pub struct Network {
    now: Time,
    event_queue: EventQueue,
    segments: Vec<Medium<Packet>>,
    nodes: Vec<Node>,
    streams: Vec<Stream>,
    /// Buffers, kept for reuse.
    events: Vec<Event<Packet>>,
    taken: Vec<Packet>,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl Network {
    /// Makes a network at time 0.
    ///
    /// # Errors
    /// Returns an error when the parts do not fit together.
    pub fn new(config: NetworkConfig) -> Result<Self, ConfigError> {
        let sources = config.segments.len() + config.streams.len() + 2 * config.nodes.len();
        let sources = u32::try_from(sources).map_err(|_| ConfigError::TooMany)?;
        let mut nodes: Vec<Node> = config.nodes.into_iter().map(Node::new).collect();
        let mut streams = Vec::with_capacity(config.streams.len());
        for (number, stream) in config.streams.into_iter().enumerate() {
            let made = Stream::new(stream, &mut nodes, &config.segments);
            streams.push(made.ok_or(ConfigError::Path(number))?);
        }
        let mut network = Self {
            now: Time::START,
            event_queue: EventQueue::new(sources),
            segments: config.segments.iter().map(Medium::new).collect(),
            nodes,
            streams,
            events: Vec::new(),
            taken: Vec::new(),
        };
        for stream in 0..network.streams.len() {
            network.schedule_stream(stream);
        }
        for node in 0..network.nodes.len() {
            let of = &network.nodes[node];
            let clock = of.config.clock;
            let begin = of.has_itm().then_some(Time::START + clock.phase);
            network.event_queue.set(network.rt_ip(node), begin);
            let begin = begin.map(|at| at + clock.slot);
            network.event_queue.set(network.itm(node), begin);
        }
        Ok(network)
    }

    // `Network::new` has checked that the numbers of all sources fit.
    fn stream_source(&self, stream: usize) -> u32 {
        (self.segments.len() + stream) as u32
    }

    fn rt_ip(&self, node: usize) -> u32 {
        (self.segments.len() + self.streams.len() + node) as u32
    }

    fn itm(&self, node: usize) -> u32 {
        self.rt_ip(self.nodes.len() + node)
    }

    /// Returns the measurements of a stream.
    pub fn stream(&self, stream: usize) -> Option<&StreamMeasure> {
        self.streams.get(stream).map(|s| &s.measure)
    }

    /// Returns the counters of a node.
    pub fn node(&self, node: usize) -> Option<NodeCounts> {
        self.nodes.get(node).map(|n| n.counts)
    }

    /// Returns the counters of a segment.
    pub fn segment(&self, segment: usize) -> Option<Counts> {
        self.segments.get(segment).map(Medium::counts)
    }

    /// Handles all events before or at `until`. An event costs O(log(segments +
    /// streams + nodes)) and O(stations) of its segment.
    pub fn run(&mut self, until: Time) {
        let (segments, streams) = (self.segments.len(), self.streams.len());
        let nodes = self.nodes.len();
        while let Some((at, source)) = self.event_queue.first() {
            if at > until {
                break;
            }
            self.now = at;
            let source = source as usize;
            if source < segments {
                self.run_segment(source);
            } else if source < segments + streams {
                self.run_stream(source - segments);
            } else if source < segments + streams + nodes {
                self.run_rt_ip(source - segments - streams);
            } else {
                self.run_itm(source - segments - streams - nodes);
            }
        }
        self.now = self.now.max(until);
    }

    // Segments

    fn run_segment(&mut self, segment: usize) {
        let mut events = std::mem::take(&mut self.events);
        self.segments[segment].advance(self.now, &mut events);
        for event in events.drain(..) {
            match event {
                Event::Collided { .. } => {}
                Event::Lost { frame, loss, .. } => self.lose(&frame.load, loss),
                Event::Arrived { frame, retries, .. } => {
                    let measure = &mut self.streams[frame.load.stream].measure;
                    // `retries` is below the largest number of attempts, so it is a
                    // valid index.
                    measure.retries[retries as usize] += 1;
                    self.arrive(frame.load);
                }
            }
        }
        self.events = events;
        let next = self.segments[segment].next();
        self.event_queue.set(segment as u32, next);
    }

    fn lose(&mut self, packet: &Packet, loss: Loss) {
        let measure = &mut self.streams[packet.stream].measure;
        match loss {
            Loss::Collisions => {
                measure.lost_collisions += 1;
                if let Some(last) = measure.retries.last_mut() {
                    *last += 1;
                }
            }
            Loss::Queue => measure.lost_queue += 1,
        }
    }

    /// Hands a packet to its node's device.
    fn release(&mut self, mut packet: Packet) {
        let step = self.streams[packet.stream].steps[packet.hop];
        packet.released = self.now;
        let frame = Frame {
            frame_bytes: packet.frame_bytes,
            to: step.to_station,
            load: packet,
        };
        let mut events = std::mem::take(&mut self.events);
        let segment = &mut self.segments[step.segment];
        segment.offer(self.now, step.station, frame, &mut events);
        self.event_queue.set(step.segment as u32, segment.next());
        for event in events.drain(..) {
            if let Event::Lost { frame, loss, .. } = event {
                self.lose(&frame.load, loss);
            }
        }
        self.events = events;
    }

    /// Handles a packet whose last bit has reached the end of a hop.
    fn arrive(&mut self, mut packet: Packet) {
        let stream = &self.streams[packet.stream];
        let step = stream.steps[packet.hop];
        let (there, last) = (stream.config.path.len() - 1, stream.steps.len() - 1);
        let by_period = self.nodes[step.to].has_itm() && stream.config.class == Class::Rt;
        let is_taken_at_once = !stream.config.taken_by_period || !by_period;
        let hop = packet.hop;
        if hop == there {
            self.reach(&packet);
        }
        if hop == last && (hop == there || is_taken_at_once) {
            if hop != there {
                self.come_back(&packet);
            } else {
                self.streams[packet.stream].measure.note_late(packet.late);
            }
            return;
        }
        let node = &mut self.nodes[step.to];
        let at = node.slih(self.now);
        packet.hop += 1;
        packet.lost.medium = packet.lost.medium + step.lost(&packet, self.now);
        if by_period {
            let waited = at.since(self.now) - node.config.packet_cost;
            packet.lost.receiving = packet.lost.receiving + waited;
            let earliest = packet.released + step.least + node.config.packet_cost;
            packet.expected = node.config.clock.run_from(earliest);
            node.received.push_back((at, packet));
        } else if node.has_itm() {
            let at = node.ip(at);
            let port = self.streams[packet.stream].steps[packet.hop].port;
            if !node.queue_nrt(port, at, packet) {
                self.lose(&packet, Loss::Queue);
            }
        } else {
            self.release(packet);
        }
    }

    /// Measures a packet that has reached its receiver.
    fn reach(&mut self, packet: &Packet) {
        let stream = &mut self.streams[packet.stream];
        let delay = self.now.since(packet.born);
        let measure = &mut stream.measure;
        measure.arrived += 1;
        measure.one_way.add(delay, packet.number);
        let first = *stream.first_arrival.get_or_insert(self.now);
        measure.span = self.now.since(first);
        // The bound over the sender and each router: (routers + 1) x (period +
        // slot).
        let senders = stream.steps.iter().take(packet.hop + 1);
        let turns = senders.map(|step| self.nodes[step.node].config.clock);
        let bound = turns.fold(Span::ZERO, |sum, of| sum + of.period + of.slot);
        if stream.config.class == Class::Nrt || delay <= bound {
            return;
        }
        let mut lost = packet.lost;
        lost.medium = lost.medium + stream.steps[packet.hop].lost(packet, self.now);
        measure.overs.add(delay - bound, lost);
    }

    /// Measures a packet that has returned to its sender.
    fn come_back(&mut self, packet: &Packet) {
        let stream = &mut self.streams[packet.stream];
        let period = self.nodes[stream.steps[0].node].config.clock.period;
        let measure = &mut stream.measure;
        measure.returned += 1;
        let delay = self.now.since(packet.born);
        measure.note_round_trip(delay, period);
        measure.round_trip.add(delay, packet.number);
        measure.note_late(packet.late);
    }

    // Nodes

    fn run_rt_ip(&mut self, node: usize) {
        let mut taken = std::mem::take(&mut self.taken);
        let of = &mut self.nodes[node];
        let clock = of.config.clock;
        of.rt_ip(self.now, &mut taken);
        for mut packet in taken.drain(..) {
            let stream = &self.streams[packet.stream];
            match stream.steps.get(packet.hop) {
                Some(step) => self.nodes[node].rt[step.queue].packets.push_back(packet),
                None => {
                    let periods = clock.periods(packet.expected, self.now);
                    self.pass(&mut packet, periods);
                    self.come_back(&packet);
                }
            }
        }
        self.taken = taken;
        let next = self.now + clock.period;
        self.event_queue.set(self.rt_ip(node), Some(next));
    }

    fn run_itm(&mut self, node: usize) {
        let mut taken = std::mem::take(&mut self.taken);
        let clock = self.nodes[node].config.clock;
        for port in 0..self.nodes[node].config.ports.len() {
            let of = &mut self.nodes[node];
            let (segment, station) = of.config.ports[port];
            if self.segments[segment].waiting(station) > 0 {
                of.counts.device_busy += 1;
            }
            of.itm(self.now, port, &mut taken);
            for mut packet in taken.drain(..) {
                let is_rt = self.streams[packet.stream].config.class == Class::Rt;
                if packet.hop > 0 && is_rt {
                    let met = packet.expected + clock.slot;
                    self.pass(&mut packet, clock.periods(met, self.now));
                }
                self.release(packet);
            }
        }
        self.taken = taken;
        let next = self.now + clock.period;
        self.event_queue.set(self.itm(node), Some(next));
    }

    /// Counts a packet that passed a stage `periods` periods late.
    fn pass(&mut self, packet: &mut Packet, periods: u64) {
        packet.late += periods;
        let stages = &mut self.streams[packet.stream].measure.stages;
        if let Some(stage) = stages.get_mut(packet.hop - 1) {
            stage.passed += 1;
            stage.late += u64::from(periods > 0);
        }
    }

    // Streams

    fn schedule_stream(&mut self, stream: usize) {
        let source = self.stream_source(stream);
        let of = &self.streams[stream];
        let at = match &of.source {
            Some(source) => source.next(self.now),
            None => of.next,
        };
        self.event_queue.set(source, at);
    }

    fn run_stream(&mut self, stream: usize) {
        let now = self.now;
        loop {
            let of = &mut self.streams[stream];
            match (&mut of.source, &of.config.traffic) {
                (Some(source), _) => {
                    if source.take(now).is_none() {
                        break;
                    }
                    self.send(stream);
                }
                (None, Traffic::Periodic { packets, stop, .. }) => {
                    let (packets, stop) = (*packets, *stop);
                    let next = now + self.nodes[of.steps[0].node].config.clock.period;
                    of.next = (next < stop).then_some(next);
                    (0..packets).for_each(|_| self.send(stream));
                    break;
                }
                (None, Traffic::Datagrams(_)) => break,
            }
        }
        self.schedule_stream(stream);
    }

    /// Sends a stream's next packet, at its sender.
    fn send(&mut self, stream: usize) {
        let of = &mut self.streams[stream];
        let step = of.steps[0];
        let packet = Packet {
            stream,
            number: of.numbers,
            frame_bytes: of.config.frame_bytes,
            born: self.now,
            released: self.now,
            expected: self.now,
            lost: LostTime::default(),
            hop: 0,
            late: 0,
        };
        of.numbers += 1;
        of.measure.sent += 1;
        let node = &mut self.nodes[step.node];
        if !node.has_itm() {
            self.release(packet);
        } else if of.config.class == Class::Rt {
            node.rt[step.queue].packets.push_back(packet);
        } else if !node.queue_nrt(step.port, self.now, packet) {
            self.lose(&packet, Loss::Queue);
        }
    }
}

impl Stream {
    /// Makes a stream; `None`: its path does not lead from node to node.
    fn new(config: StreamConfig, nodes: &mut [Node], segments: &[SegmentConfig]) -> Option<Self> {
        let hops: Vec<Hop> = config.path.iter().chain(&config.back).copied().collect();
        let leads = |pair: &[Hop]| pair[0].to == pair[1].node;
        let ends = config.back.is_empty() || hops.last()?.to == hops.first()?.node;
        if config.path.is_empty() || !ends || !hops.windows(2).all(leads) {
            return None;
        }
        let mut steps = Vec::with_capacity(hops.len());
        for hop in &hops {
            let port_of = |node: usize, nodes: &[Node]| {
                let ports = &nodes.get(node)?.config.ports;
                let port = ports.iter().position(|(on, _)| *on == hop.segment)?;
                Some((port, ports[port].1))
            };
            let (port, station) = port_of(hop.node, nodes)?;
            let (_, to_station) = port_of(hop.to, nodes)?;
            let segment = segments.get(hop.segment)?;
            let once = Span::from_ps(segment.bit().as_ps() * frame_bits(config.frame_bytes));
            let once = once + segment.propagation;
            let rt = &mut nodes[hop.node].rt;
            steps.push(Step {
                node: hop.node,
                port,
                segment: hop.segment,
                station,
                to: hop.to,
                to_station,
                queue: rt.len(),
                least: if segment.backoff.is_some() {
                    once
                } else {
                    once + once
                },
            });
            if config.class == Class::Rt {
                rt.push(RtQueue::new(port, config.reserve));
            }
        }
        let clock = nodes[hops.first()?.node].config.clock;
        let (source, next) = match &config.traffic {
            Traffic::Datagrams(source) => (Some(Source::new(*source)), None),
            Traffic::Periodic { start, stop, .. } => {
                // At the same instant as its node's ITM thread, and handled before
                // it.
                let first = clock.run_from(*start) + clock.slot;
                (None, (first < *stop).then_some(first))
            }
        };
        let last = hops.len() - usize::from(!config.taken_by_period || config.back.is_empty());
        Some(Self {
            measure: StreamMeasure::new(last),
            config,
            steps,
            source,
            next,
            numbers: 0,
            first_arrival: None,
        })
    }
}
