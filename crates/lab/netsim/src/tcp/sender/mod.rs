// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending side of one connection.

mod ack;
mod alert;
mod detect;
mod internals;
mod last_transmit;
mod prr;
mod queue;
mod rack;
mod reduction;
mod reno;
mod rtt;
mod sack;
mod sack_memory;
#[cfg(test)]
mod tests;
mod timers;
mod transmit;
mod undo;
mod usage;
mod validation;
mod window_use;

pub use internals::Internals;
use last_transmit::LastTransmit;
use prr::Prr;
use queue::Queue;
use rack::Rack;
use rtt::Rtt;
use sack_memory::SackMemory;
use sender_log::variables::{Moment, Observer, State, Vars};
use units::clock::{Span, Time};
use window_use::{Usage, Validation};

use crate::tcp::config::SenderConfig;
use crate::tcp::congestion::{Control, Window};
use crate::tcp::counters::Counters;
use crate::tcp::segment::Segment;
use crate::tcp::variant::{Recovery, Variant};

/// Upper bound of the reordering estimate, in segments.
const REORDERING_MAX: u32 = 127;

/// The sending side of one connection, without a clock and without a network: the
/// caller passes in segments and the time, and asks for segments to send.
///
/// After every `on_...` call and every `write` or `close`, call
/// [`poll_transmit`](Sender::poll_transmit) until it returns `None`, then
/// [`next_timer`](Sender::next_timer) for when to call
/// [`on_timer`](Sender::on_timer).
///
/// Windows and sums count segments of `mss_bytes` each. Nothing is allocated once
/// the window has reached its largest size. An acknowledgement costs what it cost
/// in the modelled kernel: the scan for its SACK blocks, and otherwise constant
/// time.
#[derive(Clone, Debug)]
pub struct Sender {
    config: SenderConfig,
    /// Bytes that the application has written.
    offered: u64,
    /// Whether the application has closed the stream.
    closed: bool,
    una: u64,
    nxt: u64,
    /// The peer's window in bytes, counted from `una`.
    peer_window: u64,
    queue: Queue,
    usage: Usage,
    /// When data was last sent: new data, and in the older kernels any.
    last_data: Time,
    validation: Validation,

    window: Window,
    control: Control,
    state: State,
    /// The recovery point.
    high_seq: u64,
    /// Number of packets up to the highest SACKed.
    fackets: u32,
    /// Duplicate acknowledgements, which stand for SACKed packets when there is no
    /// SACK.
    dupacks: u32,
    /// Reordering estimate, in segments.
    reordering: u32,
    /// Whether everything up to the highest SACKed packet that is not SACKed itself counts as
    /// lost. The older kernels stop doing so for good once they have seen reordering.
    fack: bool,
    sack: SackMemory,
    rack: Rack,
    prr: Prr,
    /// All packets below this one have been examined for marking as lost.
    lost_mark: u64,
    /// Packet from which the search for timed-out packets continues.
    timed_out_mark: Option<u64>,
    /// No packet below this one waits for its retransmission.
    retransmit_mark: u64,
    /// Number of lost packets below `retransmit_mark`.
    retransmit_seen: u32,
    /// No packet below this one is left for forward retransmission.
    forward_mark: u64,

    /// Threshold before the reduction, while the reduction can be undone.
    prior_ssthresh: Option<u32>,
    /// `una` at the reduction, while the reduction can be undone.
    undo_marker: Option<u64>,
    /// Retransmissions since the reduction, less those reported as received twice.
    undo_retrans: i32,
    /// When the first of these retransmissions was sent.
    retrans_time: Option<Time>,
    /// Timestamp echo of the last acknowledgement, in ticks.
    last_echo: Option<u32>,
    /// The peer's latest timestamp, which every segment sent echoes (RFC 7323).
    peer_timestamp: u32,

    rtt: Rtt,
    /// When the retransmission timer (or the probe timer of a closed window)
    /// expires.
    timer: Option<Time>,
    /// Consecutive timeouts.
    retransmits: u32,
    probes: u32,

    /// Whether the head of the queue must be retransmitted, whatever the window is.
    send_head: bool,
    /// Whether losses may be repaired now.
    repairing: bool,
    send_probe: bool,
    /// Whether the interface's queue refused the last segment: the sender then
    /// waits for an acknowledgement or a timer.
    refused: bool,
    last_transmit: Option<LastTransmit>,
    last_sack: (u64, u64),
    counters: Counters,
}

impl Sender {
    /// Makes a sender whose connection has just been established.
    pub fn new(config: &SenderConfig) -> Sender {
        let old = config.variant.recovery != Recovery::RackPrr;
        let unit = if old { config.tick } else { Span::from_ns(1) };
        let mut rtt = Rtt::new(config.rto_min, config.rto_initial, unit);
        if let Some(handshake) = config.handshake_rtt {
            rtt.sample(handshake, 0, 0);
        }
        Sender {
            offered: 0,
            closed: false,
            una: 0,
            nxt: 0,
            peer_window: config.initial_window_bytes,
            queue: Queue::default(),
            usage: Usage::default(),
            last_data: Time::START,
            validation: Validation::default(),
            window: Window {
                cwnd: config.initial_cwnd.max(1),
                ssthresh: config.initial_ssthresh.max(2),
                count: 0,
                abc_bytes: 0,
            },
            control: Control::new(config.congestion, &config.variant),
            state: State::Open,
            high_seq: 0,
            fackets: 0,
            dupacks: 0,
            reordering: config.reordering,
            fack: true,
            sack: SackMemory::default(),
            rack: Rack::default(),
            prr: Prr::default(),
            lost_mark: 0,
            timed_out_mark: None,
            retransmit_mark: 0,
            retransmit_seen: 0,
            forward_mark: 0,
            prior_ssthresh: None,
            undo_marker: None,
            undo_retrans: 0,
            retrans_time: None,
            last_echo: None,
            peer_timestamp: 0,
            rtt,
            timer: None,
            retransmits: 0,
            probes: 0,
            send_head: false,
            repairing: false,
            send_probe: false,
            refused: false,
            last_transmit: None,
            last_sack: (0, 0),
            counters: Counters::default(),
            config: config.clone(),
        }
    }

    /// Adds `bytes` that the application wants to send.
    pub fn write(&mut self, bytes: u64) {
        if !self.closed {
            self.offered = self.offered.saturating_add(bytes);
        }
    }

    /// Closes the stream: it ends after what the application has written.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Processes a segment of the peer: its acknowledgement, window and SACK
    /// blocks. Any content is accepted: what is not valid is ignored.
    pub fn on_segment<O: Observer + ?Sized>(
        &mut self,
        now: Time,
        segment: &Segment,
        observer: &mut O,
    ) {
        self.refused = false;
        self.counters.acks += 1;
        self.process_ack(now, segment, observer);
    }

    /// Runs the timers; must be called at the time that
    /// [`next_timer`](Sender::next_timer) returned, or later. Earlier calls do
    /// nothing.
    pub fn on_timer<O: Observer + ?Sized>(&mut self, now: Time, observer: &mut O) {
        self.run_timers(now, observer);
    }

    /// Returns when to call [`on_timer`](Sender::on_timer), if ever.
    pub fn next_timer(&self) -> Option<Time> {
        match (self.timer, self.rack.timer()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Returns the next segment to send now, if there is one and the windows allow
    /// it.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if self.refused {
            return None;
        }
        self.next_segment(now)
    }

    /// Handles a full queue of the interface, which refused the segment that
    /// [`poll_transmit`](Sender::poll_transmit) returned last. The segment counts
    /// as not sent, and as in Linux (paper 000, section 4.2) the window is reduced
    /// as after a loss, at most once each round trip. Nothing more is sent before
    /// the next acknowledgement or timeout.
    pub fn on_local_drop<O: Observer + ?Sized>(&mut self, now: Time, observer: &mut O) {
        self.refuse(now);
        observer.observe(now, Moment::LocalDrop, &self.vars());
    }

    /// Handles a full queue of the interface, which took the segment that
    /// [`poll_transmit`](Sender::poll_transmit) returned last and dropped another. As
    /// in Linux the window is reduced as after a loss, at most once each round trip.
    pub fn on_local_congestion<O: Observer + ?Sized>(&mut self, now: Time, observer: &mut O) {
        self.enter_cwr(now);
        observer.observe(now, Moment::LocalDrop, &self.vars());
    }

    /// Returns whether all written data and the end of the stream have been
    /// acknowledged.
    pub fn is_finished(&self) -> bool {
        self.closed && self.una > self.offered
    }

    /// Returns the bytes of the application acknowledged so far.
    pub fn acked_bytes(&self) -> u64 {
        self.una.min(self.offered)
    }

    /// Returns the counters so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the variables that only a comparison with a kernel needs.
    pub fn internals(&self) -> Internals {
        Internals {
            undo_marker: self.undo_marker,
            undo_retrans: self.undo_retrans,
            growth_count: self.window.count,
        }
    }

    /// Returns the current variables.
    pub fn vars(&self) -> Vars {
        Vars {
            una: self.una,
            nxt: self.nxt,
            high_seq: self.high_seq,
            window_bytes: self.peer_window,
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            packets_out: self.queue.len(),
            sacked_out: self.sacked_out(),
            lost_out: self.queue.lost(),
            retrans_out: self.queue.retrans(),
            fackets_out: self.fackets,
            in_flight: (self.in_flight() as i32).max(0) as u32,
            reordering: self.reordering,
            state: self.state,
            srtt: self.rtt.srtt(),
            rto: self.rtt.rto(),
            sack: self.last_sack,
        }
    }

    fn variant(&self) -> &Variant {
        &self.config.variant
    }

    fn is_rack(&self) -> bool {
        self.config.sack && self.variant().recovery == Recovery::RackPrr
    }

    fn reduces_in_proportion(&self) -> bool {
        self.variant().recovery == Recovery::RackPrr
    }

    fn mss(&self) -> u64 {
        u64::from(self.config.mss_bytes.max(1))
    }

    fn sacked_out(&self) -> u32 {
        self.queue.sacked() + self.dupacks
    }

    /// Returns the estimated number of segments in the network (paper 001, section
    /// 2). Without SACK more can count as gone than are out. The older kernels then compute
    /// a number less than zero, and take it for a very large one.
    fn in_flight(&self) -> u32 {
        let left = self.sacked_out() + self.queue.lost();
        let out = if self.reduces_in_proportion() {
            self.queue.len().saturating_sub(left)
        } else {
            self.queue.len().wrapping_sub(left)
        };
        out.wrapping_add(self.queue.retrans())
    }

    fn ticks(&self, at: Time) -> u32 {
        (at.as_ps() / self.config.tick.as_ps().max(1)) as u32
    }

    fn ticks_span(&self, ticks: u32) -> Span {
        Span::from_ps(u64::from(ticks).saturating_mul(self.config.tick.as_ps()))
    }
}
