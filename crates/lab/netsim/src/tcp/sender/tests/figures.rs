// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures 2 and 7 of paper 001, step by step, with the paper's simplifications: no disorder
//! (the tolerance is 0), and a window that is always one above what is in flight (the threshold
//! is far above it).

use super::{MSS, ack, config, ms, poll};
use crate::tcp::sender::Sender;
use crate::tcp::sender::queue::tag;
use crate::tcp::variant::{FIX_MAX_END, FIX_SKIP, V2_6_17, V2_6_22, V2_6_24};
use crate::tcp::{SenderConfig, Variant};

const FACK: [Variant; 5] = [V2_6_17, V2_6_22, FIX_SKIP, FIX_MAX_END, V2_6_24];

/// One row of a figure: the block that arrives, the packet that the sender then sends, and the
/// sums after that.
struct Step {
    block: (u64, u64),
    sent: u64,
    packets_out: u32,
    sacked_out: u32,
    lost_out: u32,
    retrans_out: u32,
    in_flight: u32,
}

const fn step(block: (u64, u64), sent: u64, sums: [u32; 5]) -> Step {
    Step {
        block,
        sent,
        packets_out: sums[0],
        sacked_out: sums[1],
        lost_out: sums[2],
        retrans_out: sums[3],
        in_flight: sums[4],
    }
}

/// The rows of figure 2 up to SACK(1,3), where figure 7 begins.
const FIGURE_2: [Step; 8] = [
    step((3, 4), 0, [10, 1, 3, 1, 7]),
    step((3, 5), 1, [10, 2, 3, 2, 7]),
    step((3, 6), 2, [10, 3, 3, 3, 7]),
    step((3, 7), 10, [11, 4, 3, 3, 7]),
    step((8, 9), 7, [11, 5, 4, 4, 6]),
    step((8, 10), 11, [12, 6, 4, 4, 6]),
    step((1, 2), 12, [13, 7, 3, 3, 6]),
    step((1, 3), 13, [14, 8, 2, 2, 6]),
];

/// Makes a sender with ten packets out and none acknowledged.
fn ten_out(variant: Variant) -> Sender {
    let mut sender = Sender::new(&SenderConfig {
        reordering: 0,
        initial_cwnd: 100,
        ..config(variant)
    });
    sender.write(10 * MSS);
    assert_eq!(poll(&mut sender, ms(0)), (0..10).collect::<Vec<u64>>());
    assert_eq!(sender.vars().in_flight, 10);
    sender
}

/// Plays figure 2 up to SACK(1,3), included.
fn play(sender: &mut Sender) {
    for (i, step) in FIGURE_2.iter().enumerate() {
        let now = ms(10 + i as u64);
        sender.on_segment(now, &ack(0, &[step.block]), &mut ());
        let sent = poll(sender, now);
        if i == 0 {
            sender.write(1000 * MSS);
        }
        assert_eq!(sent, [step.sent], "step {i}");
        check(sender, step);
    }
}

fn check(sender: &Sender, step: &Step) {
    let vars = sender.vars();
    let sums = [
        vars.packets_out,
        vars.sacked_out,
        vars.lost_out,
        vars.retrans_out,
        vars.in_flight,
    ];
    let expected = [
        step.packets_out,
        step.sacked_out,
        step.lost_out,
        step.retrans_out,
        step.in_flight,
    ];
    assert_eq!(sums, expected, "after SACK{:?}", step.block);
    assert_eq!(vars.cwnd, vars.in_flight, "the window is just filled");
    assert!(sender.queue.consistent());
}

fn tags(sender: &Sender, packet: u64) -> u8 {
    sender.queue.get(packet).map_or(0, |p| p.tags & tag::ANY)
}

#[test]
fn figure_2() {
    for variant in FACK {
        let mut sender = ten_out(variant);
        play(&mut sender);
        assert_eq!(sender.queue.get(0).map(|p| p.sent_nxt), Some(10 * MSS));
        assert_eq!(sender.queue.get(7).map(|p| p.sent_nxt), Some(11 * MSS));
        assert_eq!(tags(&sender, 1), tag::SACKED);

        // These packets were sent after the retransmission of packet 0 and arrived before it.
        sender.on_segment(ms(20), &ack(0, &[(8, 11)]), &mut ());
        assert_eq!(tags(&sender, 0), tag::LOST, "{}", variant.name);
        assert_eq!(tags(&sender, 7), tag::LOST | tag::RETRANS);
        assert_eq!(poll(&mut sender, ms(20)), [0], "{}", variant.name);
        check(&sender, &step((8, 11), 0, [14, 9, 2, 2, 5]));
        assert_eq!(sender.counters().lost_retransmits, 1);
    }
}

/// As the test above, but the acknowledgement also has the block before.
#[test]
fn figure_7() {
    for (variant, found) in [
        (V2_6_17, false),
        (V2_6_22, false),
        (FIX_SKIP, true),
        (FIX_MAX_END, true),
        (V2_6_24, true),
    ] {
        let mut sender = ten_out(variant);
        play(&mut sender);
        sender.on_segment(ms(20), &ack(0, &[(8, 11), (1, 3)]), &mut ());
        let sent = poll(&mut sender, ms(20));
        if found {
            assert_eq!(sent, [0], "{}", variant.name);
            check(&sender, &step((8, 11), 0, [14, 9, 2, 2, 5]));
        } else {
            assert_eq!(sent, [14], "{}: new data instead", variant.name);
            assert_eq!(tags(&sender, 0), tag::LOST | tag::RETRANS);
            check(&sender, &step((8, 11), 14, [15, 9, 2, 2, 6]));
        }
    }
}

/// Many losses found at once leave the window at one, and Recovery keeps it there: the sender
/// sends a packet each round trip.
#[test]
fn many_lost_retransmissions_pin_the_window_at_one() {
    let mut sender = Sender::new(&SenderConfig {
        initial_cwnd: 100,
        ..config(V2_6_17)
    });
    sender.write(100 * MSS);
    poll(&mut sender, ms(0));
    // The last 30 of 100 packets arrive and are reported one by one. Each report sends one of
    // the 70 before.
    for end in 71..=100 {
        sender.on_segment(ms(10), &ack(0, &[(70, end)]), &mut ());
        poll(&mut sender, ms(10));
    }
    let retransmitted = sender.vars().retrans_out;
    assert!(retransmitted >= 25, "{retransmitted}");
    // All of these retransmissions are lost. Data sent after them shows it.
    sender.write(100 * MSS);
    poll(&mut sender, ms(10));
    let now = ms(20);
    sender.on_segment(now, &ack(0, &[(100, 101), (70, 100)]), &mut ());
    poll(&mut sender, now);
    assert_eq!(
        sender.vars().retrans_out,
        retransmitted,
        "defect 3 hides it"
    );
    // The next block begins a new list, so the sender compares it with all of them.
    sender.on_segment(now, &ack(0, &[(102, 103)]), &mut ());
    let vars = sender.vars();
    assert_eq!(vars.retrans_out, 0);
    assert_eq!(sender.counters().lost_retransmits, u64::from(retransmitted));
    assert!(vars.cwnd <= vars.in_flight + 1);
    let before = vars.cwnd;
    for una in 1..20 {
        let now = ms(20 + 10 * una);
        sender.on_segment(now, &ack(una, &[(102, 103)]), &mut ());
        poll(&mut sender, now);
        assert!(sender.vars().cwnd <= before, "never rises in Recovery");
    }
}
