// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes an acknowledgement, in the order of the kernel.

use sender_log::variables::{Moment, Observer};
use units::clock::{Span, Time};
use units::time::PS_PER_S;

use super::queue::tag;
use super::{Sender, State};
use crate::tcp::congestion::{Acked, Counting, DelaySample, RttSample};
use crate::tcp::segment::Segment;
use crate::tcp::variant::Recovery;

/// What a sender learned from an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckFacts {
    /// `una` before the acknowledgement.
    pub prior_una: u64,
    /// Segments in flight before it, after its SACK blocks were counted.
    pub prior_in_flight: u32,
    /// Whether it acknowledged data.
    pub acked: bool,
    /// Number of segments that it acknowledged.
    pub acked_segments: u32,
    /// Whether it changed the window and so is no duplicate.
    pub window: bool,
    /// Whether a packet was SACKed for the first time, or a retransmission was
    /// found lost.
    pub sacked: bool,
    /// Whether a SACK block reached beyond the recovery point.
    pub beyond_recovery: bool,
    /// Whether data was reported as received twice.
    pub dsack: bool,
    /// Packets acknowledged or SACKed for the first time.
    pub delivered: u32,
    /// Packets newly marked lost.
    pub lost: u32,
}

impl AckFacts {
    /// Returns whether the acknowledgement counts as a duplicate.
    pub fn is_duplicate(&self) -> bool {
        !self.acked && !self.window
    }
}

/// Packets removed from the queue by one acknowledgement, for measuring the
/// round-trip time.
#[derive(Default)]
struct Cleaned {
    segments: u32,
    /// When the latest of them that was never retransmitted was sent; the older kernels take
    /// the first.
    sent_at: Option<Time>,
    any_retransmitted: bool,
}

impl Sender {
    pub(super) fn process_ack<O: Observer + ?Sized>(
        &mut self,
        now: Time,
        segment: &Segment,
        observer: &mut O,
    ) {
        self.last_sack = segment
            .sack_blocks()
            .first()
            .map_or((0, 0), |block| (block.start, block.end));
        if segment.ack > self.nxt {
            return;
        }
        if let Some((value, _)) = segment.timestamps {
            // An older timestamp is of a segment that was overtaken (RFC 7323,
            // section 4.3).
            self.peer_timestamp = self.peer_timestamp.max(value);
        }
        self.begin_delivery();
        if segment.ack < self.una {
            // The acknowledgement is old, but its SACK blocks may be new.
            let mut news = self.news();
            self.take_blocks(now, segment, &mut news);
            observer.observe(now, Moment::Scoreboard, &self.vars());
            if self.is_rack() {
                self.repair_after_old_ack(now);
            }
            return;
        }
        let mut news = self.news();
        self.last_echo = segment.timestamps.map(|(_, echo)| echo);
        news.acked = segment.ack > self.una;
        self.count_bytes(segment.ack - self.una);
        if news.acked || segment.window_bytes > self.peer_window {
            news.window = true;
            self.peer_window = segment.window_bytes;
        }
        self.una = segment.ack;
        self.probes = 0;
        let idle = self.queue.len() == 0;
        if !idle || !self.reduces_in_proportion() {
            self.take_blocks(now, segment, &mut news);
        }
        if idle {
            self.restart_timer(now);
            observer.observe(now, Moment::Ack, &self.vars());
            return;
        }

        observer.observe(now, Moment::Scoreboard, &self.vars());
        news.prior_in_flight = self.in_flight();
        let cleaned = self.clean_queue(now, &mut news);
        self.measure(now, segment, &cleaned);
        if cleaned.segments > 0 {
            self.restart_timer(now);
            if self.state == State::Open {
                self.control.on_segments_acked(cleaned.segments);
            }
        }
        self.after_cleaning(now, news);
        observer.observe(now, Moment::Ack, &self.vars());
    }

    fn news(&self) -> AckFacts {
        AckFacts {
            prior_una: self.una,
            ..AckFacts::default()
        }
    }

    /// Lets the window grow, or passes the acknowledgement to the congestion state
    /// machine.
    fn after_cleaning(&mut self, now: Time, mut news: AckFacts) {
        if self.is_rack() {
            self.detect_with_rack(now, &mut news);
        } else if !self.config.sack && news.is_duplicate() {
            news.delivered += 1;
        }
        let dubious =
            news.is_duplicate() || news.sacked || news.lost > 0 || self.state != State::Open;
        if !dubious {
            self.grow(now, &news, true);
            return;
        }
        let may_raise = !matches!(self.state, State::Recovery | State::Cwr);
        if news.acked && may_raise {
            self.grow(now, &news, false);
        }
        self.alert(now, &news);
    }

    /// Counts acknowledged bytes (RFC 3465). Bytes acknowledged in a state worse
    /// than Disorder do not count, except after a timeout in kernels where defect 1
    /// is fixed.
    fn count_bytes(&mut self, bytes: u64) {
        if !self.variant().abc {
            return;
        }
        if self.state < State::Cwr {
            self.window.abc_bytes += bytes;
        } else if self.state == State::Loss && self.variant().abc_counts_in_loss {
            // Counts at most one segment per acknowledgement after a timeout (RFC
            // 3465, section 2.3).
            self.window.abc_bytes += bytes.min(self.mss());
        }
    }

    fn grow(&mut self, now: Time, news: &AckFacts, calm: bool) {
        if !news.acked {
            return;
        }
        self.stamp_window(now);
        self.note_delay(now, calm);
        if !self.is_cwnd_limited(news.prior_in_flight) {
            return;
        }
        let counting = match self.variant() {
            variant if variant.recovery == Recovery::RackPrr => Counting::Segments,
            variant if variant.abc => Counting::AcksOfBytes {
                mss_bytes: self.config.mss_bytes,
                keeps_count: variant.slow_start_counts,
            },
            _ => Counting::Acks,
        };
        let acked = Acked {
            now,
            segments: news.delivered.max(1),
            srtt: self.rtt.srtt(),
            counting,
            una: self.una,
            nxt: self.nxt,
            calm: self.state == State::Open,
        };
        self.control.on_acked(&mut self.window, &acked);
    }

    /// Passes the delay of an acknowledgement of new data to congestion control.
    fn note_delay(&mut self, now: Time, calm: bool) {
        let echo = self.last_echo.filter(|&echo| calm && echo > 0);
        let delay_ticks = echo.map(|echo| u64::from(self.ticks(now).wrapping_sub(echo)));
        self.control.on_delay(&DelaySample {
            now,
            delay_ticks,
            srtt8_ticks: self.rtt.srtt8_units(),
        });
    }

    /// Removes the acknowledged packets from the queue.
    fn clean_queue(&mut self, now: Time, news: &mut AckFacts) -> Cleaned {
        let mut cleaned = Cleaned::default();
        while let Some(packet) = self.queue.pop_acked(self.una) {
            cleaned.segments += 1;
            if packet.has(tag::EVER) {
                cleaned.any_retransmitted = true;
            } else {
                let first = cleaned.sent_at.filter(|_| !self.reduces_in_proportion());
                cleaned.sent_at = Some(first.unwrap_or(packet.sent_at));
            }
            if !packet.has(tag::SACKED) {
                news.delivered += 1;
                if self.is_rack() {
                    self.deliver(now, &packet);
                }
            }
        }
        if cleaned.segments > 0 {
            self.fackets = self.fackets.saturating_sub(cleaned.segments);
            if !self.is_rack() {
                self.sack.forget_hint();
                self.forget_marks();
            }
        }
        if !self.config.sack && cleaned.segments > 0 {
            // The duplicate acknowledgements have already counted the other
            // packets.
            news.delivered = cleaned.segments.saturating_sub(self.dupacks).max(1);
        }
        news.acked_segments = cleaned.segments;
        cleaned
    }

    /// Measures the round-trip time: by timestamps, which work for retransmitted
    /// packets too, or from packets never retransmitted (Karn's algorithm). Today's
    /// kernels prefer the second because its resolution is finer.
    fn measure(&mut self, now: Time, segment: &Segment, cleaned: &Cleaned) {
        if cleaned.segments == 0 {
            return;
        }
        let exact = match cleaned.sent_at {
            Some(at) if !cleaned.any_retransmitted => Some(now.since(at)),
            _ => None,
        };
        let by_timestamp = self.timestamp_rtt(now, segment);
        if let Some(rtt) = exact.or(by_timestamp) {
            let sample = RttSample {
                now,
                rtt,
                una: self.una,
                nxt: self.nxt,
                is_paced: self.config.is_paced,
                rate_bps: self.rate_bps(),
            };
            self.control.on_rtt(&mut self.window, &sample);
        }
        let rtt = if self.reduces_in_proportion() {
            exact.or(by_timestamp)
        } else {
            by_timestamp.or(exact)
        };
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt, self.una, self.nxt);
        }
    }

    /// Returns twice the window in a smoothed round trip, bit/s; 0 before there is one.
    fn rate_bps(&self) -> u64 {
        let bits = u128::from(self.window.cwnd) * u128::from(self.mss()) * 16;
        let per_s = (bits * u128::from(PS_PER_S)).checked_div(self.rtt.srtt().as_ps().into());
        per_s.map_or(0, |bps| u64::try_from(bps).unwrap_or(u64::MAX))
    }

    fn timestamp_rtt(&self, now: Time, segment: &Segment) -> Option<Span> {
        let (_, echo) = segment.timestamps.filter(|_| self.config.timestamps)?;
        let ticks = self.ticks(now).checked_sub(echo)?;
        Some(self.ticks_span(ticks.max(1)))
    }
}
