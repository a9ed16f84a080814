// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the older kernels' own functions do, as found by running them beside the model
//! (docs/contribute/tcp-oracle.md).

use sender_log::variables::State;

use super::{MSS, ack, config, ms, poll};
use crate::tcp::sender::Sender;
use crate::tcp::sender::queue::tag;
use crate::tcp::variant::{V2_6_11, V2_6_14, V2_6_17, V2_6_22};
use crate::tcp::{Congestion, SenderConfig, Variant};

const OLDER: [Variant; 4] = [V2_6_11, V2_6_14, V2_6_17, V2_6_22];

/// Makes a sender with `count` packets out at 0 ms, and without a round trip that limits it.
fn out(variant: Variant, count: u32) -> Sender {
    let mut sender = Sender::new(&SenderConfig {
        initial_cwnd: count,
        initial_ssthresh: 1000,
        congestion: Congestion::Reno,
        ..config(variant)
    });
    sender.write(u64::from(count) * MSS);
    assert_eq!(poll(&mut sender, ms(1)).len(), count as usize);
    sender
}

fn lost(sender: &Sender) -> Vec<u64> {
    let queue = &sender.queue;
    (queue.head()..queue.tail())
        .filter(|n| queue.get(*n).is_some_and(|p| p.has(tag::LOST)))
        .collect()
}

/// A repaired loss leaves the marker: the sender is in Disorder until data beyond the recovery
/// point is acknowledged.
#[test]
fn a_recovery_goes_on_in_disorder_for_one_more_flight() {
    for variant in OLDER {
        let mut sender = out(variant, 10);
        for end in 2..=5 {
            sender.on_segment(ms(11), &ack(0, &[(1, end)]), &mut ());
            poll(&mut sender, ms(11));
        }
        assert_eq!(sender.vars().state, State::Recovery, "{}", variant.name);
        sender.write(3 * MSS);
        poll(&mut sender, ms(12));
        let nxt = sender.vars().nxt / MSS;
        let point = sender.vars().high_seq / MSS;
        sender.on_segment(ms(21), &ack(point, &[]), &mut ());
        assert_eq!(sender.vars().state, State::Disorder, "{}", variant.name);
        assert!(sender.internals().undo_marker.is_some());
        sender.write(MSS);
        poll(&mut sender, ms(22));
        sender.on_segment(ms(31), &ack(nxt + 1, &[]), &mut ());
        assert_eq!(sender.vars().state, State::Open, "{}", variant.name);
    }
}

/// Packet 1 arrives after packets 2 to 4: reordering of 4, more than 3. After that only the
/// head counts as lost, however much above it has arrived.
#[test]
fn reordering_turns_forward_acknowledgement_off_for_good() {
    for variant in OLDER {
        let mut sender = out(variant, 20);
        sender.on_segment(ms(11), &ack(1, &[(5, 6)]), &mut ());
        sender.on_segment(ms(11), &ack(1, &[(2, 3), (5, 6)]), &mut ());
        let name = variant.name;
        assert_eq!(sender.vars().reordering, 4 + 1 - 1, "{name}");
        assert!(!sender.fack, "{name}");
        sender.on_segment(ms(11), &ack(1, &[(7, 15), (5, 6), (2, 3)]), &mut ());
        assert_eq!(sender.vars().state, State::Recovery, "{name}");
        assert_eq!(lost(&sender), [1], "{name}");
    }
}

/// A report of data received twice names packet 2. In 2.6.17 it also counts for the other
/// block, so it takes the retransmissions of packets 5 and 6 for unnecessary, too.
#[test]
fn a_report_of_data_received_twice_applies_to_all_blocks_in_2_6_17() {
    for (variant, left) in [(V2_6_14, 2), (V2_6_17, 0), (V2_6_22, 2)] {
        let mut sender = out(variant, 10);
        sender.undo_marker = Some(0);
        sender.undo_retrans = 3;
        for number in [2, 5, 6] {
            sender.queue.set(number, tag::RETRANS | tag::EVER);
        }
        sender.on_segment(ms(11), &ack(0, &[(2, 3), (2, 3), (5, 7)]), &mut ());
        assert_eq!(sender.undo_retrans.min(2), left, "{}", variant.name);
    }
}

/// A packet that is acknowledged, never was SACKed and lies below one that was, came late; so
/// did one that is reported again after it was retransmitted.
#[test]
fn packets_just_acknowledged_or_reported_again_count_as_reordered() {
    for variant in OLDER {
        let mut sender = out(variant, 20);
        sender.on_segment(ms(11), &ack(0, &[(1, 2), (9, 10)]), &mut ());
        let mut sender_2 = sender.clone();
        sender.on_segment(ms(12), &ack(5, &[(9, 11)]), &mut ());
        assert_eq!(sender.vars().reordering, 11 + 1 - 1, "{}", variant.name);
        sender_2.queue.set(1, tag::EVER);
        sender_2.on_segment(ms(12), &ack(0, &[(1, 2), (1, 2)]), &mut ());
        assert_eq!(sender_2.vars().reordering, 10 + 1 - 2, "{}", variant.name);
    }
}

/// Packets 1 and 2 are as old as the timeout allows, but the head was retransmitted since: none
/// is marked. Once the head is as old, all are.
#[test]
fn timed_out_packets_are_marked_only_if_the_head_is_one() {
    for variant in OLDER {
        let mut sender = out(variant, 5);
        sender.fack = false;
        sender.state = State::Recovery;
        sender.high_seq = 5 * MSS;
        sender.queue.set(0, tag::RETRANS | tag::EVER);
        sender.queue.get_mut(0).unwrap().sent_at = ms(150);
        sender.queue.get_mut(0).unwrap().sent_nxt = 5 * MSS;
        sender.on_segment(ms(300), &ack(0, &[(4, 5)]), &mut ());
        assert!(lost(&sender).is_empty(), "{}", variant.name);
        sender.on_segment(ms(400), &ack(0, &[(4, 5)]), &mut ());
        assert_eq!(lost(&sender), [1, 2, 3], "{}", variant.name);
    }
}

/// Blocks that a shorter acknowledgement did not replace still match the next: then only the
/// first is scanned, and a block that is new in third place would be missed. Not so in 2.6.22.
#[test]
fn remembered_blocks_outlive_a_shorter_acknowledgement_in_2_6_17() {
    for (variant, only_first) in [(V2_6_17, true), (V2_6_22, false)] {
        let mut sender = out(variant, 20);
        for blocks in [&[(10, 11), (6, 7), (3, 4)][..], &[(10, 12), (6, 7)]] {
            sender.on_segment(ms(11), &ack(0, blocks), &mut ());
        }
        let blocks = ack(0, &[(10, 13), (6, 7), (3, 4)]).sack;
        let keep = variant.keeps_old_blocks;
        assert_eq!(sender.sack.exchange(&blocks[..3], keep), only_first);
    }
}

/// An idle spell reduces the window, but not the counter of its growth. It begins with the last
/// transmission, which a retransmission is as well.
#[test]
fn an_idle_spell_keeps_the_counter_and_begins_with_any_transmission() {
    for variant in OLDER {
        let mut sender = out(variant, 10);
        sender.window.cwnd = 40;
        sender.window.count = 7;
        sender.on_timer(ms(301), &mut ());
        assert_eq!(poll(&mut sender, ms(301)), [0]);
        assert_eq!(sender.last_data, ms(301), "{}", variant.name);
        sender.window.count = 7;
        sender.window.cwnd = 40;
        sender.on_segment(ms(311), &ack(10, &[]), &mut ());
        sender.window.cwnd = 40;
        let count = sender.window.count;
        sender.write(MSS);
        poll(&mut sender, ms(1400));
        assert!(sender.window.cwnd < 40, "{}", variant.name);
        assert_eq!(sender.window.count, count, "{}", variant.name);
    }
}

/// Slow start adds a window to the counter from 2.6.22 on: with 6 counted of 4 the window grows
/// by 1 + 1, not by 1.
#[test]
fn slow_start_uses_up_the_counter_in_2_6_22() {
    for (variant, cwnd) in [(V2_6_14, 5), (V2_6_17, 5), (V2_6_22, 6)] {
        let mut sender = out(variant, 4);
        sender.window.count = 6;
        sender.on_segment(ms(11), &ack(1, &[]), &mut ());
        assert_eq!(sender.vars().cwnd, cwnd, "{}", variant.name);
    }
}

/// Rate halving stops at the threshold with BIC, at half of it with Reno.
#[test]
fn halving_stops_at_half_the_threshold_with_reno() {
    for (congestion, least) in [(Congestion::Reno, 10), (Congestion::Bic, 20)] {
        let mut sender = Sender::new(&SenderConfig {
            congestion,
            initial_cwnd: 60,
            initial_ssthresh: 20,
            ..config(V2_6_17)
        });
        sender.write(60 * MSS);
        poll(&mut sender, ms(1));
        sender.state = State::Cwr;
        sender.high_seq = 60 * MSS;
        for _ in 0..200 {
            sender.on_segment(ms(11), &ack(0, &[]), &mut ());
        }
        assert_eq!(sender.vars().cwnd, least);
    }
}

/// The window grows only if it was full, to the last segment.
#[test]
fn a_window_with_room_for_one_more_does_not_grow() {
    for variant in OLDER {
        let mut sender = out(variant, 10);
        sender.window.cwnd = 11;
        sender.on_segment(ms(11), &ack(2, &[]), &mut ());
        assert_eq!(sender.vars().cwnd, 11, "{}", variant.name);
    }
}

/// An application that uses 6 of 40 segments for a timeout is left with (40 + 6) / 2.
#[test]
fn a_window_that_is_not_used_falls_half_way_to_what_was() {
    for variant in OLDER {
        let mut sender = out(variant, 4);
        sender.window.cwnd = 40;
        sender.write(2 * MSS);
        poll(&mut sender, ms(2));
        assert_eq!(sender.vars().cwnd, 40);
        sender.write(0);
        sender.on_segment(ms(11), &ack(1, &[]), &mut ());
        sender.write(MSS);
        poll(&mut sender, ms(210));
        assert_eq!(sender.vars().cwnd, 40);
        sender.on_segment(ms(215), &ack(2, &[]), &mut ());
        sender.window.ssthresh = 2;
        let later = ms(215) + sender.rtt.rto();
        sender.write(MSS);
        poll(&mut sender, later);
        assert_eq!(sender.vars().cwnd, (40 + 6) / 2, "{}", variant.name);
    }
}
