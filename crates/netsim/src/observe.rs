// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be seen of a network while it runs. The network itself keeps no
//! history.

use capture::record::{Fate, Kind};
use sender_log::variables;
use units::clock::Time;

use crate::packet::{Header, Packet};
use crate::tcp::{self, Segment};

/// A frame of one device, once its fate is known; in order of departure.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The device's number.
    pub device: u32,
    /// First bit of the preamble leaves.
    pub start: Time,
    /// Last bit at the far host, after port and delays; `None`: never.
    pub arrive: Option<Time>,
    /// Ethernet header included, FCS not, not padded.
    pub frame_bytes: u32,
    /// Padded, with FCS, preamble and inter-frame gap.
    pub wire_bytes: u32,
    /// Data, or gap frame.
    pub kind: Kind,
    /// What became of it.
    pub fate: Fate,
    /// What it carries; `None` of a gap frame.
    pub content: Option<Content<'a>>,
}

/// What a data frame carries.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// Its addresses and ports.
    pub header: Header,
    /// Of TCP.
    pub segment: Option<&'a Segment>,
}

/// A TCP sender's state at one instant.
#[derive(Clone, Copy, Debug)]
pub struct StreamSample {
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// Its variables.
    pub vars: variables::Vars,
    /// What it has counted.
    pub counters: tcp::Counters,
    /// Payload acknowledged.
    pub acked_bytes: u64,
    /// Payload given to the queue, retransmissions included.
    pub sent_bytes: u64,
    /// What the stack would send at the most, bit/s of payload; 0: it does not pace.
    pub pacing_bps: u64,
}

/// Who is shown what happens. Every method does nothing unless it is written;
/// `()` looks at nothing.
pub trait Observer {
    /// A frame's fate is known.
    fn frame(&mut self, _frame: &Frame<'_>) {}

    /// A queue refused or lost a packet before it came to a wire.
    fn dropped(&mut self, _now: Time, _device: u32, _packet: &Packet) {}

    /// The time at which a flow's sender is to be written down.
    fn sample(&mut self, _now: Time, _flow: u32, _sample: &StreamSample) {}

    /// A TCP sender's variables after something happened to it.
    fn tcp(&mut self, _now: Time, _flow: u32, _moment: variables::Moment, _vars: &variables::Vars) {
    }
}

impl Observer for () {}

/// Shows one flow's sender to an observer of the network.
pub(crate) struct OfFlow<'a, O: Observer> {
    pub observer: &'a mut O,
    pub flow: u32,
}

impl<O: Observer> variables::Observer for OfFlow<'_, O> {
    fn observe(&mut self, now: Time, moment: variables::Moment, vars: &variables::Vars) {
        self.observer.tcp(now, self.flow, moment, vars);
    }
}
