// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulates hosts and lines: handles one event after the other, ordered by time
//! and then by the number of the event source.
//!
//! The event sources are numbered, and so ordered at the same instant, as follows:
//! frames that reach a shared port, by device; frames that reach a host, by device;
//! devices that may send; flows. A host that forwards needs no state of its own,
//! because a packet knows the devices of its path. A switch is such a host.

mod flows;
mod standstill;

use capture::record::{Fate, Kind};
use units::clock::Time;
use units::ethernet::wire_bytes;

use crate::device::{Device, DeviceConfig, Entering};
use crate::event_queue::EventQueue;
use crate::observe::{Content, Frame, Observer, QueueDrop};
use crate::packet::{Header, Packet, Segments};
use crate::port::Port;
use crate::qdisc::{Next, Verdict};
use crate::source::{Source, SourceConfig};
use crate::stream::{Stream, StreamConfig};

use standstill::EventCount;
pub use standstill::Standstill;

/// Configuration of a flow: who sends what to whom.
#[derive(Debug)]
pub struct FlowConfig {
    /// Addresses and ports, from sender to receiver.
    pub header: Header,
    /// The devices on the path, in order; at least one.
    pub path: Vec<u32>,
    /// The devices on the path back, in order; TCP needs at least one.
    pub reverse: Vec<u32>,
    /// What is sent.
    pub traffic: TrafficConfig,
}

/// What a flow sends.
#[derive(Debug)]
pub enum TrafficConfig {
    Datagrams(SourceConfig),
    /// One TCP connection.
    Stream(Box<StreamConfig>),
}

/// Configuration of a whole network.
#[derive(Debug, Default)]
pub struct NetworkConfig {
    /// Devices; a device's number is its index here.
    pub devices: Vec<DeviceConfig>,
    /// Ports that devices send into.
    pub ports: Vec<Port>,
    /// Flows; a flow's number is its index here.
    pub flows: Vec<FlowConfig>,
}

/// Counters of packets and frames. Every packet that is offered is in the end
/// delivered, sunk, refused, lost or dropped, or is still in the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that senders gave to their hosts' queues.
    pub offered: u64,
    /// Packets that reached their receivers.
    pub delivered: u64,
    /// Packets that a sink counted and discarded.
    pub sunk: u64,
    /// Packets that a queue refused.
    pub refused: u64,
    /// Packets that a queue accepted and then dropped (netem, a deadline, head drop).
    pub lost: u64,
    /// Packets that a port dropped.
    pub dropped: u64,
    /// Frames that left a device, gap frames included: each hop of a packet counts.
    pub frames: u64,
    /// Gap frames among `frames`.
    pub gaps: u64,
}

enum Traffic {
    Datagrams(Source),
    Stream(Box<Stream>),
}

struct Flow {
    header: Header,
    paths: [Box<[u32]>; 2],
    /// Packets made so far, forward and reverse.
    numbers: [u64; 2],
    traffic: Traffic,
}

/// A network and its state at the current simulated time.
pub struct Network {
    now: Time,
    event_queue: EventQueue,
    devices: Vec<Device>,
    ports: Vec<Port>,
    flows: Vec<Flow>,
    segments: Segments,
    counts: Counts,
    /// Events at the current instant.
    event_count: EventCount,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network")
            .field("now", &self.now)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

/// The parts of a network do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// There are more devices and flows than event sources can be numbered.
    #[error("too many devices or flows")]
    TooMany,
    /// A device sends into a port that does not exist.
    #[error("device {0} sends into a port that is not there")]
    NoPort(usize),
    /// A flow's path is empty, is too long, or names a device that does not exist.
    #[error("the path of flow {0} is empty, longer than 255 devices, or has one that is not there")]
    Path(usize),
}

impl Network {
    /// Makes a network at time 0.
    ///
    /// # Errors
    /// Returns an error when the parts do not fit together.
    pub fn new(config: NetworkConfig) -> Result<Self, ConfigError> {
        let count = config.devices.len();
        let sources = u32::try_from(3 * count + config.flows.len());
        let sources = sources.map_err(|_| ConfigError::TooMany)?;
        let mut users = vec![0; config.ports.len()];
        for (index, device) in config.devices.iter().enumerate() {
            if let Some(port) = device.port {
                *users.get_mut(port).ok_or(ConfigError::NoPort(index))? += 1;
            }
        }
        let shared = |port: Option<usize>| port.is_some_and(|port| users[port] > 1);
        let devices = config.devices.into_iter();
        let devices = devices.map(|d| (shared(d.port), d));
        let devices: Vec<_> = devices.map(|(s, d)| Device::new(d, s)).collect();
        let mut flows = Vec::with_capacity(config.flows.len());
        for (index, flow) in config.flows.into_iter().enumerate() {
            let fits =
                |path: &[u32]| path.len() < 256 && path.iter().all(|d| (*d as usize) < count);
            let needs_reverse = matches!(flow.traffic, TrafficConfig::Stream(_));
            if flow.path.is_empty()
                || (needs_reverse && flow.reverse.is_empty())
                || !fits(&flow.path)
                || !fits(&flow.reverse)
            {
                return Err(ConfigError::Path(index));
            }
            flows.push(Flow::new(flow));
        }
        let mut network = Self {
            now: Time::START,
            event_queue: EventQueue::new(sources),
            devices,
            ports: config.ports,
            flows,
            segments: Segments::default(),
            counts: Counts::default(),
            event_count: EventCount::default(),
        };
        for flow in 0..network.flows.len() {
            network.schedule_flow(flow);
        }
        Ok(network)
    }

    /// Returns the current simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the counters so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the number of packets in queues and on lines.
    pub fn under_way(&self) -> u64 {
        let of = |d: &Device| {
            let entering = d.entering.iter().filter(|e| e.packet.is_some()).count();
            (d.qdisc.len() + entering + d.arriving.len()) as u64
        };
        self.devices.iter().map(of).sum()
    }

    /// Returns the number of packets and segments for which the lines have memory.
    /// It grows to the highest number in flight at one time, and not with simulated
    /// time.
    pub fn capacity(&self) -> usize {
        let of = |d: &Device| d.entering.capacity() + d.arriving.capacity();
        self.devices.iter().map(of).sum::<usize>() + self.segments.capacity()
    }

    /// Returns the number of TCP segments in queues and on lines.
    pub fn segments_under_way(&self) -> usize {
        self.segments.len()
    }

    /// Returns the state of a flow's TCP sender, and when all of its bytes were
    /// acknowledged; `None` if the flow is not TCP.
    pub fn stream(&self, flow: usize) -> Option<(crate::observe::StreamSample, Option<Time>)> {
        match &self.flows.get(flow)?.traffic {
            Traffic::Stream(stream) => Some((stream.sample(), stream.finished)),
            Traffic::Datagrams(_) => None,
        }
    }

    /// Returns the payload, bytes, that a flow's TCP receiver has received in
    /// order; `None` if the flow is not TCP.
    pub fn received_bytes(&self, flow: usize) -> Option<u64> {
        match &self.flows.get(flow)?.traffic {
            Traffic::Stream(stream) => Some(stream.receiver.delivered_bytes()),
            Traffic::Datagrams(_) => None,
        }
    }

    /// Returns the queue of a device, to inspect or to change between events.
    pub fn qdisc(&mut self, device: usize) -> Option<&mut crate::qdisc::Qdisc> {
        self.devices.get_mut(device).map(|d| &mut d.qdisc)
    }

    /// Serves a device's queue again after it was changed.
    pub fn ask<O: Observer>(&mut self, device: usize, observer: &mut O) {
        if device < self.devices.len() {
            self.serve(device, observer);
        }
    }

    /// Handles all events before or at `until`. An event costs O(log(devices +
    /// flows)) in addition to the work of its queue. Nothing is allocated once the
    /// number of packets in flight has reached its maximum.
    ///
    /// # Errors
    /// When simulated time stands still. The network then runs no further.
    pub fn run<O: Observer>(&mut self, until: Time, observer: &mut O) -> Result<(), Standstill> {
        let devices = self.devices.len();
        self.event_count.check()?;
        while let Some((at, source)) = self.event_queue.first() {
            if at > until {
                break;
            }
            self.now = at;
            let source = source as usize;
            self.count_event(self.device_of(source));
            match (source / devices.max(1), source % devices.max(1)) {
                (0, device) => self.enter_port(device, observer),
                (1, device) => self.arrive(device, observer),
                (2, device) => self.serve(device, observer),
                _ => self.run_flow(source - 3 * devices, observer),
            }
            self.event_count.check()?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    /// Returns the device of an event source; of a flow, the one that sends its
    /// packets first.
    fn device_of(&self, source: usize) -> usize {
        let devices = self.devices.len();
        match source.checked_sub(3 * devices) {
            Some(flow) => self.flows[flow].paths[0][0] as usize,
            None => source % devices.max(1),
        }
    }

    fn count_event(&mut self, device: usize) {
        let qdisc = self.devices[device].qdisc.name();
        self.event_count.add(self.now, device, qdisc);
    }

    fn schedule(&mut self, kind: usize, device: usize, at: Option<Time>) {
        // `Network::new` has checked that the numbers of all sources fit.
        let source = (kind * self.devices.len() + device) as u32;
        self.event_queue.set(source, at);
    }

    fn schedule_flow(&mut self, flow: usize) {
        let at = match &self.flows[flow].traffic {
            Traffic::Datagrams(source) => source.next(self.now),
            Traffic::Stream(stream) => stream.next(self.now),
        };
        self.event_queue
            .set((3 * self.devices.len() + flow) as u32, at);
    }

    // Queues and lines

    /// Enqueues a packet at a device, and serves the queue if the line is free.
    fn enqueue<O: Observer>(&mut self, device: usize, mut packet: Packet, o: &mut O) -> Verdict {
        packet.queued = self.now;
        self.count_event(device);
        let header = self.flows[packet.flow as usize].header_of(&packet);
        let d = &mut self.devices[device];
        let verdict = d.qdisc.enqueue(packet, &header);
        match verdict {
            Verdict::Queued => {}
            Verdict::Displaced(oldest) => {
                self.discard(device, &oldest, QueueDrop::Displaced, o);
                self.left_queue_early(&oldest);
            }
            Verdict::Refused => {
                self.discard(device, &packet, QueueDrop::Refused, o);
                return verdict;
            }
            Verdict::Lost => {
                self.discard(device, &packet, QueueDrop::Lost, o);
                return verdict;
            }
        }
        let d = &self.devices[device];
        if !d.serving && d.free.time <= self.now {
            self.serve(device, o);
        }
        verdict
    }

    /// Discards a packet that was refused or lost before it reached a wire.
    fn discard<O: Observer>(
        &mut self,
        device: usize,
        packet: &Packet,
        why: QueueDrop,
        observer: &mut O,
    ) {
        match why {
            QueueDrop::Refused => self.counts.refused += 1,
            QueueDrop::Lost | QueueDrop::Displaced => self.counts.lost += 1,
        }
        observer.dropped(self.now, device as u32, packet, why);
        self.segments.take(packet.segment);
    }

    /// Serves a device's queue until the line is busy or the queue has nothing to
    /// send.
    fn serve<O: Observer>(&mut self, device: usize, observer: &mut O) {
        self.devices[device].serving = true;
        let at = loop {
            let d = &mut self.devices[device];
            if d.free.time > self.now {
                break Some(d.free.time);
            }
            self.count_event(device);
            if self.event_count.is_exceeded() {
                break None;
            }
            let d = &mut self.devices[device];
            match d.qdisc.next(self.now) {
                Next::Idle => break None,
                Next::Wait(at) => break Some(at),
                Next::Gap { wire_bytes } => self.transmit(device, wire_bytes, None, observer),
                Next::Send(packet) => {
                    let bytes = wire_bytes(packet.frame_bytes);
                    self.transmit(device, bytes, Some(packet), observer);
                    self.left_queue(&packet, observer);
                }
                Next::Drop(packet) => {
                    self.discard(device, &packet, QueueDrop::Lost, observer);
                    self.left_queue(&packet, observer);
                }
            }
        };
        self.devices[device].serving = false;
        self.schedule(2, device, at);
    }

    fn transmit<O: Observer>(
        &mut self,
        device: usize,
        wire_bytes: u32,
        packet: Option<Packet>,
        observer: &mut O,
    ) {
        self.counts.frames += 1;
        self.counts.gaps += u64::from(packet.is_none());
        let d = &mut self.devices[device];
        let (start, at) = d.transmit(self.now, wire_bytes);
        let entering = Entering {
            start,
            at,
            wire_bytes,
            packet,
        };
        if d.shared {
            if d.entering.is_empty() {
                self.schedule(0, device, Some(at));
            }
            self.devices[device].entering.push_back(entering);
        } else {
            self.decide(device, &entering, observer);
        }
    }

    /// Handles the frames that have reached a shared port.
    fn enter_port<O: Observer>(&mut self, device: usize, observer: &mut O) {
        while let Some(entering) = self.devices[device].entering.front().copied() {
            if entering.at > self.now {
                break;
            }
            self.devices[device].entering.pop_front();
            self.decide(device, &entering, observer);
        }
        let next = self.devices[device].entering.front().map(|e| e.at);
        self.schedule(0, device, next);
    }

    /// Decides the fate of a frame at the far end of the line, and reports it to
    /// the observer.
    fn decide<O: Observer>(&mut self, device: usize, frame: &Entering, observer: &mut O) {
        let d = &self.devices[device];
        let (fate, arrive) = match (frame.packet, d.port) {
            (None, _) => (Fate::Ended, None),
            (Some(_), None) => (Fate::Delivered, Some(frame.at)),
            (Some(packet), Some(port)) => {
                match self.ports[port].enter(frame.at, packet.frame_bytes) {
                    Ok(at) => (Fate::Delivered, Some(at)),
                    Err(fate) => (fate, None),
                }
            }
        };
        let fate = match fate {
            Fate::Delivered if d.sink => Fate::Sunk,
            fate => fate,
        };
        self.show(device, frame, fate, arrive, observer);
        let (Some(packet), Some(at)) = (frame.packet, arrive) else {
            self.counts.dropped += u64::from(frame.packet.is_some());
            if let Some(packet) = frame.packet {
                self.segments.take(packet.segment);
            }
            return;
        };
        if fate == Fate::Sunk {
            self.counts.sunk += 1;
            self.segments.take(packet.segment);
            return;
        }
        let d = &mut self.devices[device];
        if d.arriving.is_empty() {
            self.schedule(1, device, Some(at));
        }
        self.devices[device].arriving.push_back((at, packet));
    }

    fn show<O: Observer>(
        &self,
        device: usize,
        frame: &Entering,
        fate: Fate,
        arrive: Option<Time>,
        observer: &mut O,
    ) {
        let content = frame.packet.as_ref().map(|packet| Content {
            packet,
            header: self.flows[packet.flow as usize].header_of(packet),
            segment: self.segments.get(packet.segment),
        });
        let gap_bytes = frame
            .wire_bytes
            .saturating_sub(units::ethernet::WIRE_OVERHEAD_BYTES);
        observer.frame(&Frame {
            device: device as u32,
            start: frame.start,
            arrive,
            frame_bytes: frame.packet.map_or(gap_bytes, |p| p.frame_bytes),
            wire_bytes: frame.wire_bytes,
            kind: match content {
                Some(_) => Kind::Data,
                None => self.devices[device].qdisc.gap_kind(),
            },
            fate,
            content,
        });
    }

    /// Handles the frames that have reached a host.
    fn arrive<O: Observer>(&mut self, device: usize, observer: &mut O) {
        while let Some((at, packet)) = self.devices[device].arriving.front().copied() {
            if at > self.now {
                break;
            }
            self.devices[device].arriving.pop_front();
            self.pass_on(packet, observer);
        }
        let next = self.devices[device].arriving.front().map(|(at, _)| *at);
        self.schedule(1, device, next);
    }

    /// Forwards a packet to the next device of its path, or to its receiver.
    fn pass_on<O: Observer>(&mut self, mut packet: Packet, observer: &mut O) {
        packet.hop += 1;
        let flow = &self.flows[packet.flow as usize];
        let path = &flow.paths[usize::from(packet.reverse)];
        match path.get(usize::from(packet.hop)) {
            Some(&device) => {
                self.enqueue(device as usize, packet, observer);
            }
            None => self.deliver(packet, observer),
        }
    }
}
