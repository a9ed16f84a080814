// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TCP connection between two hosts: the state machines of [`crate::tcp`], and
//! the work of a host's stack between them and a queue: frame sizes, pacing rates,
//! and the limit on the sender's bytes in its own queue.

use sender_log::variables;
use units::clock::{Span, Time};
use units::ethernet::{HEADER_BYTES, IPV4_HEADER_BYTES, TCP_HEADER_BYTES};

use crate::cpu::{Cpu, CpuCost};
use crate::observe::StreamSample;
use crate::rate_arithmetic::{BYTE, span_up};
use crate::tcp::{Receiver, ReceiverConfig, Segment, Sender, SenderConfig};

/// Ethernet, IPv4 and TCP headers without options.
const FRAME_HEADER_BYTES: u32 = HEADER_BYTES + IPV4_HEADER_BYTES + TCP_HEADER_BYTES;
/// Length of the timestamps option, padded to four bytes (RFC 7323, appendix A).
const TIMESTAMPS_BYTES: u32 = 12;
/// Length of the SACK option without its blocks, padded; and of one block.
const SACK_BYTES: u32 = 4;
const SACK_BLOCK_BYTES: u32 = 8;

/// Limit of TCP small queues: a sender may have about a millisecond's worth of its
/// pacing rate in its own queue (`sk_pacing_shift` 10), at least two segments.
const SMALL_QUEUE_SHIFT: u32 = 10;

/// Pacing by the sender or by its queue, as in Linux since 3.12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Pacing rate in slow start, per cent of cwnd / RTT (`tcp_pacing_ss_ratio`).
    pub slow_start_pct: u32,
    /// Pacing rate after slow start, per cent of cwnd / RTT
    /// (`tcp_pacing_ca_ratio`).
    pub avoidance_pct: u32,
    /// Largest number of bytes in the host's own queue (`tcp_limit_output_bytes`).
    pub limit_output_bytes: u64,
}

impl Default for Pacing {
    fn default() -> Self {
        Self {
            slow_start_pct: 200,
            avoidance_pct: 120,
            limit_output_bytes: 1 << 20,
        }
    }
}

/// Configuration of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamConfig {
    pub sender: SenderConfig,
    pub receiver: ReceiverConfig,
    /// Bytes to send; `None`: without end.
    pub bytes: Option<u64>,
    /// Processing time that acknowledgements take on the sending host.
    pub cpu: CpuCost,
    /// `SO_MAX_PACING_RATE`, bit/s of link-layer bytes; `None`: no limit.
    pub pacing_max_bps: Option<u64>,
    /// Pacing, for kernels that pace; `None`: segments leave as acknowledgements
    /// arrive, and the whole window may wait in the host's own queue.
    pub pacing: Option<Pacing>,
    /// Whether the queue paces by the packets' own rates (fq, psp's dynamic
    /// classes); the stack then does not.
    pub queue_paces: bool,
    /// Interval between samples of the sender's state; `None`: no samples.
    pub sample: Option<Span>,
    /// When the handshake begins; the handshake itself is not modelled.
    pub connect: Time,
    /// When the first segment leaves.
    pub start: Time,
    /// The end: nothing is sent or sampled at this instant or later.
    pub stop: Time,
}

/// A TCP connection and its state.
#[derive(Debug)]
pub(crate) struct Stream {
    config: StreamConfig,
    pub sender: Sender,
    pub receiver: Receiver,
    /// Processor of the sending host.
    pub cpu: Cpu,
    begun: bool,
    pub finished: Option<Time>,
    /// Bytes of the sender in its host's own queue.
    in_queue_bytes: u64,
    /// Whether the sender waits because that queue holds as much as it may.
    held: bool,
    pub sent_bytes: u64,
    /// Pacing by the stack: the next segment may not leave before this.
    next_send: Time,
    next_sample: Option<Time>,
    rates: Rates,
}

/// Rates that follow from the sender's window and round-trip time. They are
/// computed once for each event of the sender, not for each segment.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    /// Limit of the bytes in the host's own queue.
    queue_bytes: u64,
    /// `sk_pacing_rate` in bit/s of payload; 0: none.
    stack_bps: u64,
    /// The rates that a packet carries for its queue: [`Stream::packet_rates`].
    packet_bps: (u64, u64),
}

impl Stream {
    pub fn new(config: StreamConfig) -> Self {
        Self {
            sender: Sender::new(&config.sender),
            receiver: Receiver::new(&config.receiver),
            cpu: Cpu::new(config.cpu),
            begun: false,
            finished: None,
            in_queue_bytes: 0,
            held: false,
            sent_bytes: 0,
            next_send: config.start,
            next_sample: config.sample.map(|span| config.start + span),
            rates: Rates::default(),
            config,
        }
    }

    /// Passes a received segment to the sender, or, without one, runs its expired
    /// timers.
    pub fn tell_sender<O: variables::Observer>(
        &mut self,
        now: Time,
        segment: Option<&Segment>,
        observer: &mut O,
    ) {
        let before = self.sender.counters().scoreboard_steps;
        match segment {
            Some(segment) => self.sender.on_segment(now, segment, observer),
            None => self.sender.on_timer(now, observer),
        }
        let steps = self.sender.counters().scoreboard_steps - before;
        self.cpu.worked(now, segment.is_some().into(), steps);
        self.refresh();
    }

    /// Recomputes the rates; must be called after each event of the sender.
    pub fn refresh(&mut self) {
        let stack_bps = self.stack_bps();
        self.rates = Rates {
            queue_bytes: self.queue_limit_bytes(stack_bps),
            stack_bps,
            packet_bps: self.rates_of_packets(stack_bps),
        };
    }

    /// Returns the time of the next event; `None`: there is none.
    pub fn next(&self, now: Time) -> Option<Time> {
        if now >= self.config.stop {
            return None;
        }
        if !self.begun {
            return Some(self.config.start);
        }
        let paced = self.own_pace() && self.next_send > now;
        [
            self.sender.next_timer().map(|at| self.cpu.after(at)),
            self.cpu.due(),
            self.receiver.next_timer(),
            paced.then_some(self.next_send),
            self.next_sample,
            self.finished.is_none().then_some(self.config.stop),
        ]
        .into_iter()
        .flatten()
        .min()
        .map(|at| at.max(now))
    }

    /// Begins the transfer if it is due, and returns whether the sender may send at
    /// all.
    pub fn is_open(&mut self, now: Time) -> bool {
        if now < self.config.start || now >= self.config.stop {
            return false;
        }
        if !self.begun {
            self.begun = true;
            self.sender.write(self.config.bytes.unwrap_or(u64::MAX / 2));
            if self.config.bytes.is_some() {
                self.sender.close();
            }
            self.refresh();
        }
        true
    }

    /// Returns the sample that is due: one at each multiple of the interval after
    /// the start, and a last one at the end.
    pub fn take_sample(&mut self, now: Time) -> Option<StreamSample> {
        let due = self.next_sample.filter(|at| *at <= now)?;
        let span = self.config.sample?;
        let is_last = due >= self.config.stop || self.finished.is_some();
        self.next_sample = (!is_last).then(|| (due + span).min(self.config.stop));
        Some(self.sample())
    }

    pub fn sample(&self) -> StreamSample {
        StreamSample {
            mss_bytes: self.config.sender.mss_bytes,
            vars: self.sender.vars(),
            counters: *self.sender.counters(),
            acked_bytes: self.sender.acked_bytes(),
            sent_bytes: self.sent_bytes,
            pacing_bps: self.rates.stack_bps,
        }
    }

    /// Returns the sender's next segment, if its host lets it go now.
    pub fn poll_sender(&mut self, now: Time) -> Option<Segment> {
        let has_begun = self.begun && now < self.config.stop;
        self.held = has_begun && self.in_queue_bytes >= self.rates.queue_bytes;
        if !has_begun || self.held {
            return None;
        }
        if self.own_pace() && self.next_send > now {
            return None;
        }
        self.sender.poll_transmit(now)
    }

    /// Accounts for a segment of the sender that entered its host's queue.
    pub fn went_into_queue(&mut self, now: Time, segment: &Segment, frame_bytes: u32) {
        self.in_queue_bytes += u64::from(frame_bytes);
        self.sent_bytes += u64::from(segment.len_bytes);
        if self.own_pace() && segment.len_bytes > 0 {
            let rate_bps = self.packet_rates().0.max(1);
            let units = u128::from(frame_bytes) * BYTE;
            self.next_send = self.next_send.max(now) + span_up(units, rate_bps);
        }
    }

    /// Accounts for a frame of the sender that left its host's queue. Returns
    /// `true` if the sender was waiting for this.
    pub fn left_queue(&mut self, frame_bytes: u32) -> bool {
        self.in_queue_bytes = self.in_queue_bytes.saturating_sub(frame_bytes.into());
        std::mem::take(&mut self.held)
    }

    /// Notes the end of a stream of known length, once everything is acknowledged.
    pub fn note_end(&mut self, now: Time) {
        if self.finished.is_none() && self.sender.is_finished() {
            self.finished = Some(now);
            self.next_sample = self.next_sample.map(|at| at.min(now));
        }
    }

    /// Returns whether the stack itself paces segments: only at a rate that was
    /// explicitly configured.
    fn own_pace(&self) -> bool {
        self.config.pacing.is_some()
            && self.config.pacing_max_bps.is_some()
            && !self.config.queue_paces
    }

    fn queue_limit_bytes(&self, stack_bps: u64) -> u64 {
        let Some(pacing) = self.config.pacing else {
            return u64::MAX;
        };
        let two = 2 * u64::from(self.full_frame_bytes());
        let rate_bytes = stack_bps / 8;
        (rate_bytes >> SMALL_QUEUE_SHIFT).clamp(two, pacing.limit_output_bytes.max(two))
    }

    fn full_frame_bytes(&self) -> u32 {
        let timestamps_bytes = if self.config.sender.timestamps {
            TIMESTAMPS_BYTES
        } else {
            0
        };
        FRAME_HEADER_BYTES + timestamps_bytes + self.config.sender.mss_bytes
    }

    /// Returns cwnd / RTT in bit/s of payload; 0 before there is an RTT.
    fn window_bps(&self) -> u64 {
        let vars = self.sender.vars();
        let srtt_ps = u128::from(vars.srtt.as_ps());
        let packets = u128::from(vars.cwnd.max(vars.packets_out));
        let bytes = packets * u128::from(self.config.sender.mss_bytes);
        let bps = (bytes * BYTE).checked_div(srtt_ps).unwrap_or(0);
        u64::try_from(bps).unwrap_or(u64::MAX)
    }

    /// `sk_pacing_rate` in bit/s of payload; 0: none.
    fn stack_bps(&self) -> u64 {
        let Some(pacing) = self.config.pacing else {
            return 0;
        };
        let pct = if self.in_slow_start() {
            pacing.slow_start_pct
        } else {
            pacing.avoidance_pct
        };
        let bps = u128::from(self.window_bps()) * u128::from(pct) / 100;
        let max = self.config.pacing_max_bps.unwrap_or(u64::MAX);
        u64::try_from(bps).unwrap_or(u64::MAX).min(max)
    }

    fn in_slow_start(&self) -> bool {
        let vars = self.sender.vars();
        vars.cwnd < vars.ssthresh / 2
    }

    /// Returns the rates that a packet carries for its queue: the stack's limit,
    /// and packet size x cwnd / RTT, twice the window in slow start
    /// (docs/decisions/qdisc.md, "The rate of a flow in a dynamic class"). Both in
    /// bit/s of link-layer bytes; 0: unknown. The kernels that do not pace have no rate
    /// of their own, but a window and a round trip as well.
    pub fn packet_rates(&self) -> (u64, u64) {
        self.rates.packet_bps
    }

    fn rates_of_packets(&self, stack_bps: u64) -> (u64, u64) {
        let max = self.config.pacing_max_bps;
        let mss = u128::from(self.config.sender.mss_bytes.max(1));
        let frames = |bps: u128| {
            let bps = bps * u128::from(self.full_frame_bytes()) / mss;
            u64::try_from(bps).unwrap_or(u64::MAX)
        };
        let times = if self.in_slow_start() { 2 } else { 1 };
        let stack = frames(stack_bps.into());
        let limit = match (stack, max) {
            (0, max) => max.unwrap_or(0),
            (stack, Some(max)) => stack.min(max),
            (stack, None) => stack,
        };
        (limit, frames(u128::from(self.window_bps()) * times))
    }
}

/// Returns the length of the frame that carries a segment, bytes.
pub(crate) fn frame_bytes(segment: &Segment) -> u32 {
    let timestamps_bytes = segment.timestamps.map_or(0, |_| TIMESTAMPS_BYTES);
    let sack = match u32::from(segment.sack_count) {
        0 => 0,
        blocks => SACK_BYTES + blocks * SACK_BLOCK_BYTES,
    };
    FRAME_HEADER_BYTES + timestamps_bytes + sack + segment.len_bytes
}
