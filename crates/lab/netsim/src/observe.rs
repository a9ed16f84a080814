// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface through which an observer sees a running network. The network
//! itself keeps no history.

use capture::record::{Fate, Kind};
use sender_log::variables;
use units::clock::Time;

use crate::packet::{Header, Packet};
use crate::tcp::{self, Segment};

/// A frame that a device sent, shown once its fate is known; in order of departure.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The device's number.
    pub device: u32,
    /// When the first bit of the preamble left the device.
    pub start: Time,
    /// When the last bit reached the far host, after port and delays; `None`:
    /// never.
    pub arrive: Option<Time>,
    /// Length, bytes: Ethernet header included, FCS and padding not.
    pub frame_bytes: u32,
    /// Length on the wire, bytes: padded, with FCS, preamble and inter-frame gap.
    pub wire_bytes: u32,
    /// Whether it is a data frame or a gap frame.
    pub kind: Kind,
    /// What happened to the frame.
    pub fate: Fate,
    /// What the frame carries; `None` for a gap frame.
    pub content: Option<Content<'a>>,
}

/// What a data frame carries.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    pub packet: &'a Packet,
    /// Its addresses and ports.
    pub header: Header,
    /// The TCP segment; `None` if the packet is not TCP.
    pub segment: Option<&'a Segment>,
}

/// A TCP sender's state at one instant.
#[derive(Clone, Copy, Debug)]
pub struct StreamSample {
    /// Payload of a full segment, bytes.
    pub mss_bytes: u32,
    /// The sender's variables.
    pub vars: variables::Vars,
    /// The sender's counters.
    pub counters: tcp::Counters,
    /// Payload acknowledged, bytes.
    pub acked_bytes: u64,
    /// Payload given to the queue, bytes, retransmissions included.
    pub sent_bytes: u64,
    /// The highest rate at which the stack would send, bit/s of payload; 0: it does
    /// not pace.
    pub pacing_bps: u64,
}

/// Why a queue dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueDrop {
    /// The queue was full and did not take it.
    Refused,
    /// The queue dropped it by chance, or because it was late or had waited too long.
    Lost,
    /// The full queue dropped it for a packet that came later.
    Displaced,
}

/// Receives the events of a network. Every method does nothing by default; `()` is
/// an observer that ignores everything.
pub trait Observer {
    /// Called when a frame's fate is known.
    fn frame(&mut self, _frame: &Frame<'_>) {}

    /// Called when a queue refused or lost a packet before it reached a wire.
    fn dropped(&mut self, _now: Time, _device: u32, _packet: &Packet, _why: QueueDrop) {}

    /// Called when a sample of a flow's sender is due.
    fn sample(&mut self, _now: Time, _flow: u32, _sample: &StreamSample) {}

    /// Called with a TCP sender's variables after each event of that sender.
    fn tcp(&mut self, _now: Time, _flow: u32, _moment: variables::Moment, _vars: &variables::Vars) {
    }
}

impl Observer for () {}

/// Passes the events of one flow's sender to an observer of the network.
pub(crate) struct OfFlow<'a, O: Observer> {
    pub observer: &'a mut O,
    pub flow: u32,
}

impl<O: Observer> variables::Observer for OfFlow<'_, O> {
    fn observe(&mut self, now: Time, moment: variables::Moment, vars: &variables::Vars) {
        self.observer.tcp(now, self.flow, moment, vars);
    }
}
