// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sender keeps the rules of RFC 8985 and RFC 9937.

use proptest::prelude::*;
use sender_log::variables::State;
use units::clock::{Span, Time};

use super::{MSS, ack, config, ms, poll};
use crate::tcp::sender::Sender;
use crate::tcp::sender::prr::Prr;
use crate::tcp::sender::queue::tag;
use crate::tcp::variant::RACK;
use crate::tcp::{Segment, SenderConfig};

fn out(packets: u64) -> Sender {
    let mut sender = Sender::new(&SenderConfig {
        initial_cwnd: packets as u32,
        ..config(RACK)
    });
    sender.write(packets * MSS);
    poll(&mut sender, ms(0));
    sender
}

/// RFC 8985, section 3.3: three packets behind the head arrived and no disorder was seen, so
/// the head is lost at once.
#[test]
fn three_packets_behind_the_head_make_it_lost_at_once() {
    let mut sender = out(10);
    sender.on_segment(ms(10), &ack(0, &[(1, 2)]), &mut ());
    assert_eq!(sender.vars().lost_out, 0);
    sender.on_segment(ms(10), &ack(0, &[(1, 3)]), &mut ());
    sender.on_segment(ms(10), &ack(0, &[(1, 4)]), &mut ());
    assert_eq!(sender.vars().lost_out, 1);
    assert_eq!(sender.vars().state, State::Recovery);
    assert_eq!(poll(&mut sender, ms(10)).first(), Some(&0));
}

/// Section 6.2, step 5: with fewer packets behind it, a timer gives the head a quarter of the
/// least round trip more.
#[test]
fn fewer_packets_behind_the_head_give_it_a_quarter_round_trip() {
    let mut sender = out(3);
    sender.on_segment(ms(10), &ack(0, &[(1, 3)]), &mut ());
    assert_eq!(sender.vars().lost_out, 0);
    let at = sender.next_timer().expect("a timer for the head");
    assert!(
        at >= ms(10) + Span::from_ns(2_500_000) && at < ms(15),
        "{at}"
    );
    sender.on_timer(at, &mut ());
    assert_eq!(sender.vars().lost_out, 1);
    assert_eq!(poll(&mut sender, at), [0]);
}

/// RACK finds a lost retransmission as any other lost packet: by a packet that was sent later
/// and arrived. Paper 001's kernels needed a timeout.
#[test]
fn a_lost_retransmission_is_found() {
    let mut sender = out(10);
    sender.on_segment(ms(10), &ack(0, &[(1, 10)]), &mut ());
    sender.write(100 * MSS);
    assert_eq!(poll(&mut sender, ms(10))[0], 0);
    let now = ms(11);
    sender.on_segment(now, &ack(0, &[(1, 10)]), &mut ());
    assert!(sender.vars().nxt > 10 * MSS, "new data follows");
    sender.on_segment(ms(20), &ack(0, &[(10, 11), (1, 10)]), &mut ());
    assert_eq!(sender.counters().lost_retransmits, 1);
    assert_eq!(poll(&mut sender, ms(20)).first(), Some(&0));
    assert_eq!(sender.counters().repeated_retransmits, 1);
    assert_eq!(sender.counters().timeouts, 0);
}

/// Section 7: a lost tail costs two round trips, not a timeout.
#[test]
fn a_probe_finds_a_lost_tail() {
    let mut sender = out(5);
    let at = sender.next_timer().expect("a probe");
    assert!(at >= ms(20) && at < ms(30), "{at}");
    sender.on_timer(at, &mut ());
    assert_eq!(poll(&mut sender, at), [4]);
    assert_eq!(sender.counters().loss_probes, 1);
    assert_eq!(sender.counters().timeouts, 0);
    // RACK sends only one probe; the timeout follows.
    let at = sender.next_timer().expect("the timer");
    sender.on_timer(at, &mut ());
    assert_eq!(sender.counters().timeouts, 1);
}

/// A retransmission was needless. The window returns to its old value, not to the threshold,
/// which may have no bound.
#[test]
fn an_undone_recovery_leaves_the_window_as_it_was() {
    let mut sender = out(10);
    sender.on_segment(ms(10), &ack(0, &[(1, 4)]), &mut ());
    assert_eq!(poll(&mut sender, ms(10)).first(), Some(&0));
    sender.on_segment(ms(12), &ack(10, &[(0, 1)]), &mut ());
    let vars = sender.vars();
    assert_eq!(vars.state, State::Open);
    assert_eq!(sender.counters().undos, 1);
    assert_eq!(vars.ssthresh, u32::MAX);
    assert!((10..=20).contains(&vars.cwnd), "{}", vars.cwnd);
}

proptest! {
    #![proptest_config(testkit::properties())]

    /// RFC 9937: the sender never sends more than the reduction allows. Above the threshold
    /// that is a share of what was delivered. From then on, what is in flight and the allowance
    /// together never pass the threshold.
    #[test]
    fn reduction_is_in_proportion(
        prior in 2u32..5000,
        share in 1u32..=1024,
        acks in prop::collection::vec((1u32..4, 0u32..3, any::<bool>()), 1..400),
    ) {
        let ssthresh = (prior * share / 1024).max(2).min(prior);
        let mut prr = Prr::default();
        prr.begin(prior);
        let mut in_flight = prior;
        let (mut delivered, mut sent) = (0u64, 0u64);
        for (arrived, lost, safe) in acks {
            let arrived = arrived.min(in_flight);
            if arrived == 0 {
                break;
            }
            in_flight -= arrived;
            in_flight -= lost.min(in_flight);
            delivered += u64::from(arrived);
            let allowed = prr.allowance(ssthresh, in_flight, arrived, safe);
            if sent > 0 && in_flight <= ssthresh {
                prop_assert!(in_flight + allowed <= ssthresh);
            } else if sent > 0 {
                let most = (u64::from(ssthresh) * delivered).div_ceil(u64::from(prior));
                prop_assert!(sent + u64::from(allowed) <= most.max(sent));
            } else {
                prop_assert!(allowed >= 1, "the first retransmission leaves");
            }
            for _ in 0..allowed {
                prr.on_sent();
            }
            sent += u64::from(allowed);
            in_flight += allowed;
        }
    }

    /// Without further loss the window ends at the threshold.
    #[test]
    fn reduction_ends_at_the_threshold(prior in 4u32..3000, share in 300u32..1000) {
        let ssthresh = (prior * share / 1024).max(2);
        let mut prr = Prr::default();
        prr.begin(prior);
        let mut in_flight = prior - 1; // one was lost
        for _ in 0..prior - 1 {
            in_flight -= 1;
            let allowed = prr.allowance(ssthresh, in_flight, 1, false);
            (0..allowed).for_each(|_| prr.on_sent());
            in_flight += allowed;
        }
        prop_assert!(in_flight.abs_diff(ssthresh) <= 1, "{in_flight} of {ssthresh}");
    }
}

/// As the test above but without SACK, where Recovery is held at the recovery point.
#[test]
fn an_undone_recovery_that_is_held_leaves_the_window_as_it_was() {
    let mut sender = Sender::new(&SenderConfig {
        sack: false,
        timestamps: true,
        ..config(RACK)
    });
    let echo = |segment: Segment| Segment {
        timestamps: Some((0, 0)),
        ..segment
    };
    sender.write(10 * MSS);
    poll(&mut sender, ms(1));
    for _ in 0..3 {
        sender.on_segment(ms(11), &echo(ack(0, &[])), &mut ());
    }
    assert_eq!(poll(&mut sender, ms(11)), [0]);
    // The echo is of the original: its timestamp is older than the retransmission.
    sender.on_segment(ms(12), &echo(ack(10, &[])), &mut ());
    assert_eq!(sender.counters().undos, 1);
    assert_eq!(sender.vars().state, State::Recovery);
    sender.write(5 * MSS);
    poll(&mut sender, ms(12));
    sender.on_segment(ms(22), &echo(ack(11, &[])), &mut ());
    assert_eq!(sender.vars().state, State::Open);
    assert!(
        (10..=25).contains(&sender.vars().cwnd),
        "{:?}",
        sender.vars()
    );
}

/// An event that happens to a sender; the test checks the rules after each.
#[derive(Clone, Debug)]
enum Event {
    /// These packets after `una` are SACKed, after so many microseconds.
    Sack(u64, Vec<u64>),
    /// So many packets are acknowledged, after so many microseconds.
    Ack(u64, u64),
    /// The next timer expires.
    Timer,
}

fn event() -> impl Strategy<Value = Event> {
    let sack = (0u64..20_000, prop::collection::vec(1u64..25, 1..3));
    prop_oneof![
        5 => sack.prop_map(|(us, packets)| Event::Sack(us, packets)),
        1 => (0u64..20_000, 1u64..4).prop_map(|(us, packets)| Event::Ack(us, packets)),
        1 => Just(Event::Timer),
    ]
}

/// Returns the packets with these tags: the time and the end by which RACK orders them.
fn transmissions(sender: &Sender, tags: u8) -> Vec<(Time, u64)> {
    let queue = &sender.queue;
    (queue.head()..queue.tail())
        .filter_map(|number| queue.get(number))
        .filter(|packet| packet.tags & (tag::SACKED | tag::LOST | tag::RETRANS) == tags)
        .map(|packet| (packet.sent_at, packet.end))
        .collect()
}

proptest! {
    #![proptest_config(testkit::cases(500))]

    /// RFC 8985, section 6.2, step 5, until a timeout. No packet is lost that was sent after
    /// all delivered ones. A packet that was sent before them, and has been out for longer than
    /// the round trip and the time for disorder, is lost or has a timer.
    #[test]
    fn packets_sent_before_an_arrived_one_are_lost_or_timed(events in prop::collection::vec(event(), 1..60)) {
        let mut sender = out(20);
        sender.write(1000 * MSS);
        let mut now = ms(10);
        for event in events {
            match event {
                Event::Sack(us, packets) => {
                    now += Span::from_ns(us * 1000);
                    let vars = sender.vars();
                    let una = vars.una / MSS;
                    let blocks: Vec<(u64, u64)> = packets
                        .iter()
                        .map(|n| (una + n, una + n + 1))
                        .filter(|block| block.1 * MSS <= vars.nxt)
                        .collect();
                    sender.on_segment(now, &ack(una, &blocks), &mut ());
                }
                Event::Ack(us, packets) => {
                    now += Span::from_ns(us * 1000);
                    let vars = sender.vars();
                    let una = (vars.una / MSS + packets).min(vars.nxt / MSS);
                    sender.on_segment(now, &ack(una, &[]), &mut ());
                }
                Event::Timer => {
                    now = sender.next_timer().map_or(now, |at| at.max(now));
                    sender.on_timer(now, &mut ());
                }
            }
            if sender.counters().timeouts > 0 || sender.vars().state == State::Loss {
                return Ok(()); // all is lost then, by another rule
            }
            let newest = sender.rack.newest();
            for lost in transmissions(&sender, tag::LOST) {
                prop_assert!(Some(lost) < newest, "{lost:?} is not older than {newest:?}");
            }
            let waiting = sender.rack.timer().is_some();
            // The time for disorder is that from before Recovery.
            let allowed = sender.rack.rtt() + sender.rack.full_window(&sender);
            for tags in [0, tag::LOST | tag::RETRANS] {
                for out in transmissions(&sender, tags) {
                    let overdue = out.0 + allowed <= now;
                    let waits = waiting && !overdue;
                    prop_assert!(Some(out) >= newest || waits, "{out:?} of {tags} at {now}");
                }
            }
            poll(&mut sender, now);
        }
    }
}
