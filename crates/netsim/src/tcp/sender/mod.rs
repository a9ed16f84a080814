// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending side of one connection.

mod ack;
mod alert;
mod detect;
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
mod window_use;

use last_transmit::LastTransmit;
use prr::Prr;
use queue::Queue;
use rack::Rack;
use rtt::Rtt;
use sack_memory::SackMemory;
use sender_log::variables::{Moment, Observer, State, Vars};
use units::clock::{Span, Time};
use window_use::Usage;

use crate::tcp::config::SenderConfig;
use crate::tcp::congestion::{Control, Window};
use crate::tcp::counters::Counters;
use crate::tcp::segment::Segment;
use crate::tcp::variant::{Recovery, Variant};

/// Disorder is not believed beyond this many segments.
const REORDERING_MAX: u32 = 127;

/// The sending side of one connection, without a clock and without a network:
/// it is told what arrives and what time it is, and asked what to send.
///
/// After every `on_...` call and every `write` or `close`, ask
/// [`poll_transmit`](Sender::poll_transmit) until it has nothing, then
/// [`next_timer`](Sender::next_timer) for when to call
/// [`on_timer`](Sender::on_timer).
///
/// Windows and sums count segments, of `mss_bytes` each. Nothing is allocated
/// once the window has had its largest size. An acknowledgement costs what it
/// cost in the kernel modelled: the walk for its blocks, else constant.
#[derive(Clone, Debug)]
pub struct Sender {
    config: SenderConfig,
    /// Bytes the application wrote.
    offered: u64,
    /// Whether it has no more.
    closed: bool,
    una: u64,
    nxt: u64,
    /// The peer's window, counted from `una`.
    peer_window: u64,
    queue: Queue,
    usage: Usage,
    /// When new data was sent last.
    last_new: Time,

    window: Window,
    control: Control,
    state: State,
    /// The recovery point.
    high_seq: u64,
    /// Packets up to the highest SACKed.
    fackets: u32,
    /// Without SACK: duplicate acknowledgements in place of SACKed packets.
    dupacks: u32,
    /// Disorder seen so far.
    reordering: u32,
    sack: SackMemory,
    rack: Rack,
    prr: Prr,
    /// Below this packet none is untagged as far as it may be marked lost.
    lost_mark: u64,
    /// Below this packet none waits for its retransmission.
    retransmit_mark: u64,
    /// Packets below it that are lost.
    retransmit_seen: u32,
    /// Below this packet none is left for forward retransmission.
    forward_mark: u64,

    /// Threshold before the reduction, while that can be taken back.
    prior_ssthresh: Option<u32>,
    /// Where `una` was at the reduction, while it can be taken back.
    undo_marker: Option<u64>,
    /// Retransmissions since, less those reported as received twice.
    undo_retrans: u32,
    /// When the first of them left.
    retrans_time: Option<Time>,
    /// Echo of the last acknowledgement, in ticks.
    last_echo: Option<u32>,
    /// The peer's latest timestamp: what is sent echoes it (RFC 7323).
    peer_timestamp: u32,

    rtt: Rtt,
    /// When the retransmission timer (or the probe of a closed window) runs
    /// out.
    timer: Option<Time>,
    /// Timeouts in a row.
    retransmits: u32,
    probes: u32,

    /// The head is to be sent once more, whatever the window says.
    send_head: bool,
    /// Losses may be repaired now.
    repairing: bool,
    send_probe: bool,
    /// The interface's queue refused the last segment: wait for an event.
    refused: bool,
    last_transmit: Option<LastTransmit>,
    last_sack: (u64, u64),
    counters: Counters,
}

impl Sender {
    /// A sender whose connection was just set up.
    #[must_use]
    pub fn new(config: &SenderConfig) -> Sender {
        let mut rtt = Rtt::new(config.rto_min, config.rto_initial);
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
            last_new: Time::START,
            window: Window {
                cwnd: config.initial_cwnd.max(1),
                ssthresh: config.initial_ssthresh.max(2),
                count: 0,
                abc_bytes: 0,
            },
            control: Control::new(config.congestion),
            state: State::Open,
            high_seq: 0,
            fackets: 0,
            dupacks: 0,
            reordering: config.reordering,
            sack: SackMemory::default(),
            rack: Rack::default(),
            prr: Prr::default(),
            lost_mark: 0,
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

    /// The application has `bytes` more to send.
    pub fn write(&mut self, bytes: u64) {
        if !self.closed {
            self.offered = self.offered.saturating_add(bytes);
        }
    }

    /// The application has no more to send; the stream ends after what it
    /// wrote.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// A segment of the peer has arrived: its acknowledgement, window and SACK
    /// blocks. Anything may be in it: what makes no sense is passed over.
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

    /// It is the time that [`next_timer`](Sender::next_timer) gave, or later.
    /// Earlier calls do nothing.
    pub fn on_timer<O: Observer + ?Sized>(&mut self, now: Time, observer: &mut O) {
        self.run_timers(now, observer);
    }

    /// When to call [`on_timer`](Sender::on_timer), if ever.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        match (self.timer, self.rack.timer()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The next segment to send now, if there is one and the windows let it.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if self.refused {
            return None;
        }
        self.next_segment(now)
    }

    /// The interface's queue had no room for the segment that
    /// [`poll_transmit`](Sender::poll_transmit) gave last. It counts as not
    /// sent, and as Linux does (paper 000, section 4.2) the window is reduced
    /// as for a loss, at most once each round trip. Nothing more is sent
    /// before the next acknowledgement or timeout.
    pub fn on_local_drop<O: Observer + ?Sized>(&mut self, now: Time, observer: &mut O) {
        self.refuse(now);
        observer.observe(now, Moment::LocalDrop, &self.vars());
    }

    /// Whether all that was written, and the end of the stream, is
    /// acknowledged.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.closed && self.una > self.offered
    }

    /// Bytes of the application acknowledged so far.
    #[must_use]
    pub fn acked_bytes(&self) -> u64 {
        self.una.min(self.offered)
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The variables as they are now.
    #[must_use]
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
            in_flight: self.in_flight(),
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

    /// Segments thought to be in the network (paper 001, section 2).
    fn in_flight(&self) -> u32 {
        let left = self.sacked_out() + self.queue.lost();
        self.queue.len().saturating_sub(left) + self.queue.retrans()
    }

    fn ticks(&self, at: Time) -> u32 {
        (at.as_ps() / self.config.tick.as_ps().max(1)) as u32
    }

    fn ticks_span(&self, ticks: u32) -> Span {
        Span::from_ps(u64::from(ticks).saturating_mul(self.config.tick.as_ps()))
    }
}
