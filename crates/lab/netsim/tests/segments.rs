// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared and switched segments: instants computed by hand, known results about CSMA/CD, and no
//! frame is lost without being counted.

use netsim::segment::{
    ATTEMPTS_MAX, Backoff, Event, Frame, Loss, Medium, SegmentConfig, frame_bits, propagation_max,
};
use proptest::prelude::*;
use units::clock::{Span, Time};

/// One bit at 100 Mbit/s.
const BIT_PS: u64 = 10_000;
const SLOT_BITS: u64 = 512;
/// The propagation is ten and a half bits, so no two instants coincide by accident.
const PROPAGATION_PS: u64 = 105_000;

fn config(stations: usize, backoff: Option<Backoff>, seed: u64) -> SegmentConfig {
    SegmentConfig {
        stations,
        rate_bps: 100_000_000,
        propagation: Span::from_ps(PROPAGATION_PS),
        queue_frames: 1_000,
        backoff,
        seed,
        stream: 0,
    }
}

fn frame(frame_bytes: u32, to: usize) -> Frame<u32> {
    Frame {
        frame_bytes,
        to,
        load: 0,
    }
}

fn at(bits: u64) -> Time {
    Time::from_ps(bits * BIT_PS)
}

fn later(time: Time, ps: u64) -> Time {
    time + Span::from_ps(ps)
}

/// Runs the segment until nothing is left. Returns each event with its instant.
fn drain(segment: &mut Medium<u32>) -> Vec<(Time, Event<u32>)> {
    let mut all = vec![];
    let mut events = vec![];
    while let Some(now) = segment.next() {
        segment.advance(now, &mut events);
        all.extend(events.drain(..).map(|event| (now, event)));
    }
    all
}

fn arrivals(all: &[(Time, Event<u32>)]) -> Vec<(Time, usize)> {
    let arrived = all.iter().filter_map(|(at, event)| match event {
        Event::Arrived { from, .. } => Some((*at, *from)),
        _ => None,
    });
    arrived.collect()
}

#[test]
fn a_lone_frame_and_its_followers() {
    let mut segment = Medium::new(&config(3, Some(Backoff::Standard), 1));
    let mut events = vec![];
    segment.offer(at(1_000), 0, frame(1_514, 1), &mut events);
    segment.offer(at(1_000), 0, frame(20, 1), &mut events);
    let long = frame_bits(1_514);
    assert_eq!(long, 64 + 1_518 * 8);
    // The second frame is padded to 64 bytes and begins 96 bits after the first.
    let first = later(at(1_000 + long), PROPAGATION_PS);
    let second = later(at(1_000 + long + 96 + 64 + 512), PROPAGATION_PS);
    assert_eq!(arrivals(&drain(&mut segment)), [(first, 0), (second, 0)]);
    assert_eq!(segment.counts().collisions, 0);
}

/// A station that meets a burst waits for its end, and collides with nobody.
#[test]
fn a_burst_may_keep_the_medium_to_its_end() {
    let mut segment = Medium::new(&config(3, Some(Backoff::WholeBursts), 1));
    let mut events = vec![];
    for _ in 0..3 {
        segment.offer(at(1_000), 0, frame(1_514, 1), &mut events);
    }
    segment.advance(at(2_000), &mut events);
    segment.offer(at(2_000), 2, frame(64, 1), &mut events);
    let all = drain(&mut segment);
    let from: Vec<_> = arrivals(&all).into_iter().map(|(_, from)| from).collect();
    assert_eq!(from, [0, 0, 0, 2]);
    assert_eq!(segment.counts().collisions, 0);
    // The last of the burst ends after three frames and two gaps; the other's frame follows a gap
    // after it has heard that.
    let burst = later(at(1_000 + 3 * frame_bits(1_514) + 2 * 96), PROPAGATION_PS);
    let lone = later(burst, (96 + frame_bits(64)) * BIT_PS + PROPAGATION_PS);
    assert_eq!(arrivals(&all)[2..], [(burst, 0), (lone, 2)]);
}

#[test]
fn carrier_is_sensed_one_propagation_later() {
    let long = frame_bits(1_514);
    // Station 1 hears station 0 just before it would begin, and sends after the gap.
    let mut segment = Medium::new(&config(2, Some(Backoff::Standard), 1));
    let mut events = vec![];
    segment.offer(at(1_000), 0, frame(1_514, 1), &mut events);
    segment.advance(later(at(1_000), PROPAGATION_PS + 1), &mut events);
    segment.offer(
        later(at(1_000), PROPAGATION_PS + 1),
        1,
        frame(1_514, 0),
        &mut events,
    );
    let all = drain(&mut segment);
    let first = later(at(1_000 + long), PROPAGATION_PS);
    let second = later(first + Span::from_ps((96 + long) * BIT_PS), PROPAGATION_PS);
    assert_eq!(arrivals(&all), [(first, 0), (second, 1)]);
    // One bit earlier station 1 hears nothing and begins, and both collide.
    let mut segment = Medium::new(&config(2, Some(Backoff::Standard), 1));
    segment.offer(at(1_000), 0, frame(1_514, 1), &mut events);
    let begins = later(at(1_000), PROPAGATION_PS - 1);
    segment.advance(begins, &mut events);
    segment.offer(begins, 1, frame(1_514, 0), &mut events);
    let all = drain(&mut segment);
    // Both hear the other before their preamble ends, so a preamble and a jam are sent.
    let collided: Vec<_> = all[..2].iter().map(|(at, event)| (*at, *event)).collect();
    let collision = |station| Event::Collided {
        station,
        collisions: 1,
    };
    assert_eq!(collided[0], (at(1_096), collision(0)));
    assert_eq!(
        collided[1],
        (later(begins, 96 * BIT_PS), collision(1)),
        "{all:?}"
    );
    assert_eq!(arrivals(&all).len(), 2);
}

/// After a frame its own station would be first by one propagation. The others begin too, at
/// the instant at which they hear it.
#[test]
fn a_host_that_has_sent_collides_with_those_that_wait() {
    let mut segment = Medium::new(&config(2, Some(Backoff::Standard), 1));
    let mut events = vec![];
    segment.offer(at(1_000), 0, frame(60, 1), &mut events);
    segment.offer(at(1_000), 0, frame(60, 1), &mut events);
    segment.advance(at(1_100), &mut events);
    segment.offer(at(1_100), 1, frame(60, 0), &mut events);
    let all = drain(&mut segment);
    let end = at(1_000 + frame_bits(60));
    assert_eq!(arrivals(&all)[0], (later(end, PROPAGATION_PS), 0));
    let begins = [end, later(end, PROPAGATION_PS)].map(|gap| later(gap, 96 * BIT_PS));
    for (station, begin) in begins.into_iter().enumerate() {
        let collided = Event::Collided {
            station,
            collisions: 1,
        };
        assert_eq!(all[1 + station], (later(begin, 96 * BIT_PS), collided));
    }
}

#[test]
fn sixteen_collisions_drop_a_frame() {
    // Two hundred stations that begin at once collide again and again.
    let mut segment = Medium::new(&config(200, Some(Backoff::Standard), 3));
    let mut events = vec![];
    for station in 0..200 {
        for _ in 0..20 {
            segment.offer(at(0), station, frame(60, (station + 1) % 200), &mut events);
        }
    }
    let all = drain(&mut segment);
    let lost = |event: &&(Time, Event<u32>)| {
        matches!(
            event.1,
            Event::Lost {
                loss: Loss::Collisions,
                ..
            }
        )
    };
    let most = all.iter().filter_map(|(_, event)| match event {
        Event::Arrived { retries, .. } => Some(*retries),
        _ => None,
    });
    assert_eq!(most.max(), Some(ATTEMPTS_MAX - 1));
    let lost = all.iter().filter(lost).count();
    assert!(lost > 0);
    assert_eq!(arrivals(&all).len() + lost, 200 * 20);
    assert_eq!(segment.counts().given_up, lost as u64);
}

#[test]
fn a_switch_stores_and_forwards() {
    let mut segment = Medium::new(&config(3, None, 1));
    let mut events = vec![];
    segment.offer(at(0), 0, frame(60, 2), &mut events);
    segment.offer(at(0), 1, frame(60, 2), &mut events);
    segment.offer(at(0), 2, frame(60, 0), &mut events);
    let once = frame_bits(60) * BIT_PS + PROPAGATION_PS;
    let straight = later(at(0), 2 * once);
    // The port to station 2 sends the frames one after the other; the path back is free.
    let waits = later(straight, (frame_bits(60) + 96) * BIT_PS);
    let mut got = arrivals(&drain(&mut segment));
    got.sort_unstable();
    assert_eq!(got, [(straight, 0), (straight, 2), (waits, 1)]);
}

/// Gives every station a frame at all times, for so many arrivals, and shows every event.
fn saturate(
    segment: &mut Medium<u32>,
    stations: usize,
    bytes: u32,
    frames: u64,
    show: &mut dyn FnMut(&Event<u32>),
) -> Time {
    let mut events = vec![];
    for from in 0..stations {
        for _ in 0..2 {
            segment.offer(
                Time::START,
                from,
                frame(bytes, (from + 1) % stations),
                &mut events,
            );
        }
    }
    let mut now = Time::START;
    while segment.counts().frames < frames {
        now = segment.next().unwrap();
        segment.advance(now, &mut events);
        for event in std::mem::take(&mut events) {
            show(&event);
            if let Event::Arrived { from, .. } | Event::Lost { from, .. } = event {
                let again = frame(bytes, (from + 1) % stations);
                segment.offer(now, from, again, &mut events);
            }
        }
    }
    now
}

/// Collisions between a frame's first attempt and another frame's nth: how many there were, how
/// many the first won, and how many ended in another collision.
#[derive(Clone, Copy, Default)]
struct Races {
    rounds: u64,
    won: u64,
    tied: u64,
}

/// Follows the collisions of two stations.
#[derive(Default)]
struct Referee {
    /// The races by n.
    races: [Races; ATTEMPTS_MAX as usize + 1],
    /// The stations of the collision under way.
    collided: Vec<(usize, u32)>,
    /// The station with the first collision, and n.
    open: Option<(usize, usize)>,
}

impl Referee {
    fn see(&mut self, event: &Event<u32>) {
        match *event {
            Event::Collided {
                station,
                collisions,
            } => {
                if let Some((_, n)) = self.open.take() {
                    self.races[n].tied += 1;
                }
                self.collided.push((station, collisions));
                let [a, b] = self.collided[..] else { return };
                self.collided.clear();
                let (fresh, old) = if a.1 <= b.1 { (a, b) } else { (b, a) };
                if fresh.1 == 1 {
                    self.races[old.1 as usize].rounds += 1;
                    self.open = Some((fresh.0, old.1 as usize));
                }
            }
            Event::Arrived { from, .. } => {
                if let Some((fresh, n)) = self.open.take() {
                    self.races[n].won += u64::from(from == fresh);
                }
            }
            Event::Lost { .. } => self.open = None,
        }
    }
}

/// A station with a new frame collides with one that collides for the nth time. It wins with 1
/// - 3/2^(n+1), and they collide again with 2^-n. Each is within four standard deviations.
#[test]
fn capture_effect() {
    let mut referee = Referee::default();
    for seed in 0..6_000 {
        let mut segment = Medium::new(&config(2, Some(Backoff::Standard), seed));
        referee.open = None;
        saturate(&mut segment, 2, 1_514, 60, &mut |event| referee.see(event));
        assert!(referee.collided.len() < 2);
        referee.collided.clear();
    }
    for (n, races) in referee.races.into_iter().enumerate().take(9).skip(1) {
        let rounds = races.rounds as f64;
        assert!(rounds > 2_000.0, "n = {n}: {rounds} rounds");
        let two = 2f64.powi(n as i32);
        for (what, count, p) in [
            ("wins", races.won, 1.0 - 1.5 / two),
            ("ties", races.tied, 1.0 / two),
        ] {
            let measured = count as f64 / rounds;
            let sigma = (p * (1.0 - p) / rounds).sqrt();
            println!("n = {n}, {what}: {measured:.4} of {rounds}, expected {p:.4}");
            assert!(
                (measured - p).abs() < 4.0 * sigma,
                "n = {n}, {what}: {measured} of {rounds}, expected {p}"
            );
        }
    }
}

/// Metcalfe and Boggs (1976): stations that each begin in a slot with probability 1/Q get the
/// medium after W = (1 - A) / A slots, where A = (1 - 1/Q)^(Q-1).
fn metcalfe_boggs(stations: usize, bytes: u32) -> f64 {
    let q = stations as f64;
    let a = (1.0 - 1.0 / q).powf(q - 1.0);
    let frame = frame_bits(bytes) as f64 + 96.0;
    frame / (frame + SLOT_BITS as f64 * (1.0 - a) / a)
}

/// Binary exponential back-off is not the model's. A winner goes on winning, so few stations
/// and short frames do better than the model, and many stations begin with too few slots. So
/// the error is stated by the frame's length; for the shortest frames the model is a lower
/// bound.
#[test]
fn efficiency_beside_metcalfe_and_boggs() {
    for (bytes, below, above) in [(60, 0.0, 0.5), (508, 0.0, 0.13), (1_514, 0.035, 0.04)] {
        for stations in [2, 3, 5, 10, 20, 32] {
            let mut c = config(stations, Some(Backoff::Standard), 11);
            // The model's slot is a round trip, so the stations are as far apart as possible.
            c.propagation = propagation_max(c.bit());
            let mut segment = Medium::new(&c);
            let end = saturate(&mut segment, stations, bytes, 30_000, &mut |_| {});
            let busy = segment.counts().bits as f64 * BIT_PS as f64;
            let measured = busy / end.as_ps() as f64;
            let model = metcalfe_boggs(stations, bytes);
            println!("{stations} stations, {bytes} bytes: {measured:.3}, model {model:.3}");
            assert!(
                measured > model - below && measured < model + above,
                "{stations} stations, {bytes} bytes: {measured}, model {model}"
            );
        }
    }
}

proptest! {
    #![proptest_config(testkit::cases(64))]

    /// Every frame arrives once or is lost once, and a station's frames stay in order. The same
    /// seed gives the same events.
    #[test]
    fn every_frame_arrives_once_or_is_counted_as_lost(
        offers in proptest::collection::vec((0u64..40_000, 0usize..5, 0u32..1_514), 1..120),
        kind in prop_oneof![
            Just(None), Just(Some(Backoff::Standard)), Just(Some(Backoff::CaptureAvoiding)), Just(Some(Backoff::WholeBursts))
        ],
        seed in 0u64..1_000,
    ) {
        let run = || {
            let mut c = config(5, kind, seed);
            c.queue_frames = 10;
            let mut segment = Medium::new(&c);
            let mut offers = offers.clone();
            offers.sort_by_key(|offer| offer.0);
            let (mut all, mut events) = (vec![], vec![]);
            for (number, (bits, from, bytes)) in offers.iter().enumerate() {
                segment.advance(at(*bits), &mut events);
                let frame = Frame { frame_bytes: *bytes, to: (from + 1) % 5, load: number as u32 };
                segment.offer(at(*bits), *from, frame, &mut events);
                all.append(&mut events);
            }
            all.extend(drain(&mut segment).into_iter().map(|(_, event)| event));
            (all, segment.counts())
        };
        let (all, counts) = run();
        prop_assert_eq!(&run().0, &all);
        let mut ends = vec![0; offers.len()];
        let mut last = [None; 5];
        for event in &all {
            match event {
                Event::Arrived { frame, from, .. } => {
                    ends[frame.load as usize] += 1;
                    prop_assert!(last[*from] < Some(frame.load));
                    last[*from] = Some(frame.load);
                }
                Event::Lost { frame, .. } => ends[frame.load as usize] += 1,
                Event::Collided { .. } => {}
            }
        }
        prop_assert!(ends.iter().all(|n| *n == 1));
        prop_assert_eq!(counts.frames + counts.given_up + counts.refused, offers.len() as u64);
    }
}
