// SPDX-License-Identifier: MIT OR Apache-2.0
//! A half-duplex medium: CSMA/CD as IEEE 802.3 has it (clause 4.2.3 and the
//! procedures of 4.2.8), at 10 and 100 Mbit/s.
//!
//! Every station hears every other one after `propagation`. A station that has a
//! frame defers while it hears a carrier, and then for the gap of 96 bits. A
//! station that hears another while it sends completes the preamble, adds 32 bits
//! of jam, and then waits for its back-off, in slots of 512 bits.
//!
//! Of the events of one instant, ends of transmissions come before starts, starts
//! before carriers that are heard, and of the same type that of the station with
//! the smaller number comes first: a station cannot react to what it hears at the
//! very instant at which it starts. As all stations are equally far apart, a
//! carrier never begins within another station's gap, only at its end. It therefore
//! makes no difference that a station listens during the first two thirds of its
//! gap and not during the last, and this is not modelled
//! (docs/decisions/simulator.md, "Shared segments").

use std::collections::VecDeque;

use units::clock::{Span, Time};

use super::backoff::Backoff;
use super::medium::{Counts, Event, Frame, GAP_BITS, Loss, PREAMBLE_BITS, SegmentConfig};
use crate::rng::Rng;

/// Number of collisions after which a frame is discarded.
pub const ATTEMPTS_MAX: u32 = 16;

const SLOT_BITS: u64 = 512;
const JAM_BITS: u64 = 32;

/// Returns the largest propagation delay at which what is left of a collision is
/// always shorter than a slot, so that no collision is late.
pub fn propagation_max(bit: Span) -> Span {
    Span::from_ps(bit.as_ps() * (SLOT_BITS - JAM_BITS) / 2)
}

/// Events, in the order in which those of one instant are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    End,
    Start,
    Heard,
    Silent,
}

#[derive(Debug)]
struct Sending {
    start: Time,
    end: Time,
    collided: bool,
}

#[derive(Debug)]
struct Station<P> {
    queue: VecDeque<Frame<P>>,
    rng: Rng,
    /// Collisions of the frame at the head.
    collisions: u32,
    /// When that frame may be sent.
    ready: Time,
    sending: Option<Sending>,
    /// Number of other stations that it hears.
    heard: u32,
    /// When it last stopped sending or hearing others: its gap begins then.
    gap_from: Time,
    /// Whether it sent the last frame on the medium.
    won: bool,
}

/// A transmission as the others hear it.
#[derive(Debug)]
struct Signal<P> {
    from: usize,
    on: Time,
    is_heard: bool,
    off: Option<Time>,
    /// The frame, if it was sent without a collision, and its collisions before.
    frame: Option<(Frame<P>, u32)>,
}

/// A half-duplex medium. An event costs O(stations).
#[derive(Debug)]
pub struct Shared<P> {
    bit: Span,
    propagation: Span,
    queue_frames: usize,
    backoff: Backoff,
    stations: Vec<Station<P>>,
    /// Transmissions; at most one of each station.
    signals: Vec<Signal<P>>,
    /// The station that keeps the medium for the rest of its burst.
    holder: Option<usize>,
    counts: Counts,
}

impl<P: Copy> Shared<P> {
    pub(super) fn new(config: &SegmentConfig, backoff: Backoff) -> Self {
        let station = |number: usize| Station {
            queue: VecDeque::new(),
            rng: Rng::new(config.seed, config.stream + number as u64),
            collisions: 0,
            ready: Time::START,
            sending: None,
            heard: 0,
            gap_from: Time::START,
            won: false,
        };
        Self {
            bit: config.bit(),
            propagation: config.propagation,
            queue_frames: config.queue_frames,
            backoff,
            stations: (0..config.stations).map(station).collect(),
            signals: Vec::with_capacity(config.stations),
            holder: None,
            counts: Counts::default(),
        }
    }

    fn bits(&self, bits: u64) -> Span {
        Span::from_ps(self.bit.as_ps() * bits)
    }

    /// See [`super::Medium::offer`].
    pub fn offer(&mut self, now: Time, from: usize, frame: Frame<P>, events: &mut Vec<Event<P>>) {
        let Some(station) = self.stations.get_mut(from) else {
            return;
        };
        if station.queue.len() >= self.queue_frames {
            self.counts.refused += 1;
            let loss = Loss::Queue;
            events.push(Event::Lost { frame, from, loss });
            return;
        }
        if station.queue.is_empty() {
            station.ready = now;
        }
        station.queue.push_back(frame);
    }

    /// See [`super::Medium::waiting`].
    pub fn waiting(&self, station: usize) -> usize {
        self.stations.get(station).map_or(0, |s| s.queue.len())
    }

    /// See [`super::Medium::counts`].
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// See [`super::Medium::next`].
    pub fn next(&self) -> Option<Time> {
        self.first().map(|(at, ..)| at)
    }

    /// Returns the first event: its time, its type, and the index of its station or
    /// signal.
    fn first(&self) -> Option<(Time, Step, usize)> {
        let stations = self.stations.iter().enumerate();
        let stations = stations.filter_map(|(place, station)| match &station.sending {
            Some(sending) => Some((sending.end, Step::End, place)),
            None if self.holder.is_some_and(|holder| holder != place) => None,
            None => Some((self.start_of(station)?, Step::Start, place)),
        });
        let signals = self.signals.iter().enumerate();
        let signals = signals.filter_map(|(place, signal)| {
            if signal.is_heard {
                Some((signal.off?, Step::Silent, place))
            } else {
                Some((signal.on, Step::Heard, place))
            }
        });
        stations.chain(signals).min()
    }

    /// Returns when a station that does not send will begin to, as far as is known.
    fn start_of(&self, station: &Station<P>) -> Option<Time> {
        let defers = station.heard > 0 || station.queue.is_empty();
        let gap_end = station.gap_from + self.bits(GAP_BITS);
        (!defers).then_some(gap_end.max(station.ready))
    }

    /// See [`super::Medium::advance`].
    pub fn advance(&mut self, now: Time, events: &mut Vec<Event<P>>) {
        while let Some((at, step, place)) = self.first() {
            if at > now {
                break;
            }
            match step {
                Step::End => self.end(at, place, events),
                Step::Start => self.start(at, place),
                Step::Heard => self.hear(at, place),
                Step::Silent => self.fall_silent(at, place, events),
            }
        }
    }

    fn start(&mut self, now: Time, place: usize) {
        let whole = self.stations[place].queue.front();
        let whole = whole.map_or(0, |frame| super::frame_bits(frame.frame_bytes));
        let end = now + self.bits(whole);
        self.stations[place].sending = Some(Sending {
            start: now,
            end,
            collided: false,
        });
        self.signals.push(Signal {
            from: place,
            on: now + self.propagation,
            is_heard: false,
            off: None,
            frame: None,
        });
    }

    /// Handles the last bit, of a frame or of jam, that a station sent.
    fn end(&mut self, now: Time, place: usize, events: &mut Vec<Event<P>>) {
        let slot = self.bits(SLOT_BITS);
        let station = &mut self.stations[place];
        let Some(sending) = station.sending.take() else {
            return;
        };
        let mut through = None;
        if sending.collided {
            station.collisions += 1;
            let collisions = station.collisions;
            let slots = self
                .backoff
                .slots(collisions, station.won, &mut station.rng);
            station.ready = now + Span::from_ps(slot.as_ps() * slots);
            self.counts.collisions += 1;
            events.push(Event::Collided {
                station: place,
                collisions,
            });
        } else if let Some(frame) = station.queue.pop_front() {
            through = Some((frame, station.collisions));
        }
        if self.backoff == Backoff::WholeBursts {
            let keeps = through.is_some() && !station.queue.is_empty();
            self.holder = keeps.then_some(place);
        }
        if through.is_some() || station.collisions == ATTEMPTS_MAX {
            station.collisions = 0;
            station.won = through.is_some();
            station.ready = now;
        }
        if sending.collided && station.collisions == 0 {
            if let Some(frame) = station.queue.pop_front() {
                self.counts.given_up += 1;
                events.push(Event::Lost {
                    frame,
                    from: place,
                    loss: Loss::Collisions,
                });
            }
        }
        if station.heard == 0 {
            station.gap_from = now;
        }
        let off = now + self.propagation;
        let of_it = |s: &&mut Signal<P>| s.from == place && s.off.is_none();
        if let Some(signal) = self.signals.iter_mut().find(of_it) {
            signal.off = Some(off);
            signal.frame = through;
        }
    }

    /// Handles the first bit of a transmission that reaches the other stations.
    fn hear(&mut self, now: Time, signal: usize) {
        let (jam, preamble) = (self.bits(JAM_BITS), self.bits(PREAMBLE_BITS));
        let signal = &mut self.signals[signal];
        signal.is_heard = true;
        for (place, station) in self.stations.iter_mut().enumerate() {
            if place == signal.from {
                continue;
            }
            station.heard += 1;
            if let Some(sending) = station.sending.as_mut().filter(|s| !s.collided) {
                sending.collided = true;
                sending.end = now.max(sending.start + preamble) + jam;
            }
        }
    }

    /// Handles the last bit of a transmission that reaches the other stations.
    fn fall_silent(&mut self, now: Time, signal: usize, events: &mut Vec<Event<P>>) {
        let signal = self.signals.swap_remove(signal);
        for (place, station) in self.stations.iter_mut().enumerate() {
            if place == signal.from {
                continue;
            }
            station.won &= signal.frame.is_none();
            station.heard -= 1;
            if station.heard == 0 && station.sending.is_none() {
                station.gap_from = now;
            }
        }
        if let Some((frame, retries)) = signal.frame {
            self.counts.frames += 1;
            self.counts.bits += super::frame_bits(frame.frame_bytes) + GAP_BITS;
            events.push(Event::Arrived {
                frame,
                from: signal.from,
                retries,
            });
        }
    }
}
