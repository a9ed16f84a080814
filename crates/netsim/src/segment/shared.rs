// SPDX-License-Identifier: MIT OR Apache-2.0
//! A half-duplex medium: CSMA/CD as IEEE 802.3 has it (clause 4.2.3 and the
//! procedures of 4.2.8), at 10 and 100 Mbit/s.
//!
//! Every station hears every other one `propagation` later. A station that has
//! a frame defers while it hears somebody and then for the gap of 96 bits. One
//! that hears another while it sends completes the preamble, adds 32 bits of
//! jam, and waits as its back-off says, in slots of 512 bits.
//!
//! At one instant ends come before starts, starts before what is heard, and
//! within these the station of the smaller number first: a station cannot heed
//! what it hears at the very instant at which it starts. As all are equally far
//! apart, nobody's carrier begins within another's gap, only at its end; so
//! that a station listens during the first two thirds of its gap and not during
//! the last makes no difference, and is not modelled (docs/decisions/simulator.md, "Shared
//! segments").

use std::collections::VecDeque;

use units::clock::{Span, Time};

use super::backoff::Backoff;
use super::medium::{Counts, Event, Frame, GAP_BITS, Loss, PREAMBLE_BITS, SegmentConfig};
use crate::rng::Rng;

/// With so many collisions a frame is given up.
pub const ATTEMPTS_MAX: u32 = 16;

const SLOT_BITS: u64 = 512;
const JAM_BITS: u64 = 32;

/// The largest propagation at a rate: what is left of a collision is then always
/// shorter than a slot, and none is late.
#[must_use]
pub fn propagation_max(bit: Span) -> Span {
    Span::from_ps(bit.as_ps() * (SLOT_BITS - JAM_BITS) / 2)
}

/// What happens, in the order of one instant.
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
    /// That frame may go from here on.
    ready: Time,
    sending: Option<Sending>,
    /// How many others it hears.
    heard: u32,
    /// Since when it neither hears nor sends.
    gap_from: Time,
    /// The last frame on the medium was its own.
    won: bool,
}

/// A transmission as the others hear it.
#[derive(Debug)]
struct Signal<P> {
    from: usize,
    on: Time,
    is_heard: bool,
    off: Option<Time>,
    /// What came through, and after how many collisions.
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
    /// At most one of each station.
    signals: Vec<Signal<P>>,
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
            counts: Counts::default(),
        }
    }

    fn bits(&self, bits: u64) -> Span {
        Span::from_ps(self.bit.as_ps() * bits)
    }

    /// See [`super::Segment::offer`].
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

    /// See [`super::Segment::waiting`].
    #[must_use]
    pub fn waiting(&self, station: usize) -> usize {
        self.stations.get(station).map_or(0, |s| s.queue.len())
    }

    /// See [`super::Segment::counts`].
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// See [`super::Segment::next`].
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.first().map(|(at, ..)| at)
    }

    /// What comes first: when, what, and the place of its station or signal.
    fn first(&self) -> Option<(Time, Step, usize)> {
        let stations = self.stations.iter().enumerate();
        let stations = stations.filter_map(|(place, station)| match &station.sending {
            Some(sending) => Some((sending.end, Step::End, place)),
            None => Some((self.start_of(station)?, Step::Start, place)),
        });
        let signals = self.signals.iter().enumerate();
        let signals = signals.filter_map(|(place, signal)| match signal.is_heard {
            false => Some((signal.on, Step::Heard, place)),
            true => Some((signal.off?, Step::Silent, place)),
        });
        stations.chain(signals).min()
    }

    /// When a station that does not send begins to, as far as is known.
    fn start_of(&self, station: &Station<P>) -> Option<Time> {
        let defers = station.heard > 0 || station.queue.is_empty();
        let gap_end = station.gap_from + self.bits(GAP_BITS);
        (!defers).then_some(gap_end.max(station.ready))
    }

    /// See [`super::Segment::advance`].
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

    /// A station has sent its last bit, of a frame or of jam.
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

    /// The first bit of a transmission has come to the others.
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

    /// The last bit of a transmission has come to the others.
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
