// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sender survives any acknowledgements at any time: its sums are those of the tags, nothing
//! overflows, and polling ends.

use proptest::prelude::*;
use units::clock::{Span, Time};

use super::{MSS, config};
use crate::tcp::sender::Sender;
use crate::tcp::variant::SackScan;
use crate::tcp::{Congestion, SackBlock, Segment, SenderConfig, variant};

/// A sequence number near `una`, near `nxt`, at a packet's border or anywhere.
#[derive(Clone, Copy, Debug)]
enum Near {
    Una(i64),
    Nxt(i64),
    Packet(u64),
    Any(u64),
}

impl Near {
    fn of(self, una: u64, nxt: u64) -> u64 {
        match self {
            Near::Una(by) => una.saturating_add_signed(by),
            Near::Nxt(by) => nxt.saturating_add_signed(by),
            Near::Packet(n) => una + n * MSS,
            Near::Any(n) => n,
        }
    }
}

fn near() -> impl Strategy<Value = Near> {
    prop_oneof![
        3 => (-3000i64..20_000).prop_map(Near::Una),
        3 => (-20_000i64..3000).prop_map(Near::Nxt),
        10 => (0u64..40).prop_map(Near::Packet),
        1 => any::<u64>().prop_map(Near::Any),
    ]
}

#[derive(Clone, Debug)]
enum Event {
    Ack {
        ack: Option<Near>,
        blocks: Vec<(Near, Near)>,
        window: u64,
        echo: u32,
    },
    Timer,
    Wait(u64),
    Write(u64),
    Close,
    Refuse,
}

fn event() -> impl Strategy<Value = Event> {
    let ack = (
        prop::option::of(near()),
        prop::collection::vec((near(), near()), 0..5),
        prop_oneof![3 => Just(1u64 << 30), 1 => 0u64..50_000],
        any::<u32>(),
    );
    prop_oneof![
        12 => ack.prop_map(|(ack, blocks, window, echo)| Event::Ack { ack, blocks, window, echo }),
        2 => Just(Event::Timer),
        2 => (0u64..50_000).prop_map(Event::Wait),
        2 => (0u64..40_000).prop_map(Event::Write),
        1 => Just(Event::Refuse),
        1 => Just(Event::Close),
    ]
}

fn segment(sender: &Sender, event: &Event) -> Option<Segment> {
    let Event::Ack {
        ack,
        blocks,
        window,
        echo,
    } = event
    else {
        return None;
    };
    let vars = sender.vars();
    let mut segment = Segment {
        ack: ack.map_or(vars.una, |ack| ack.of(vars.una, vars.nxt)),
        window_bytes: *window,
        timestamps: Some((0, *echo)),
        sack_count: blocks.len() as u8,
        ..Segment::default()
    };
    for (slot, (start, end)) in segment.sack.iter_mut().zip(blocks) {
        *slot = SackBlock {
            start: start.of(vars.una, vars.nxt),
            end: end.of(vars.una, vars.nxt),
        };
    }
    Some(segment)
}

fn check(sender: &Sender) -> Result<(), TestCaseError> {
    let vars = sender.vars();
    prop_assert!(sender.queue.consistent());
    // Without SACK the kernels without hints mark timed-out packets lost that duplicate
    // acknowledgements have counted as arrived: more is gone than was out.
    let counts_twice = !sender.config.sack && sender.variant().sack_scan == SackScan::WholeQueue;
    if !counts_twice {
        prop_assert!(
            vars.sacked_out + vars.lost_out <= vars.packets_out,
            "{vars:?}"
        );
        prop_assert_eq!(
            vars.in_flight,
            vars.packets_out - vars.sacked_out - vars.lost_out + vars.retrans_out
        );
        prop_assert!(vars.cwnd >= 1);
    }
    prop_assert!(vars.fackets_out <= vars.packets_out);
    prop_assert!(vars.cwnd < 10_000 && vars.ssthresh >= 1);
    prop_assert!(vars.una <= vars.nxt);
    prop_assert!(
        vars.packets_out == 0 || sender.next_timer().is_some(),
        "nothing would wake it"
    );
    Ok(())
}

proptest! {
    #![proptest_config(testkit::cases(2000))]

    #[test]
    fn sums_hold_and_polling_ends(
        which in 0..variant::ALL.len(),
        congestion in prop_oneof![Just(Congestion::Reno), Just(Congestion::Bic), Just(Congestion::Cubic)],
        sack: bool,
        timestamps: bool,
        initial_cwnd in 1u32..40,
        events in prop::collection::vec(event(), 1..120),
    ) {
        let mut sender = Sender::new(&SenderConfig {
            congestion,
            sack,
            timestamps,
            initial_cwnd,
            ..config(variant::ALL[which])
        });
        sender.write(30 * MSS);
        let mut now = Time::START;
        for event in &events {
            let mut refuse = false;
            match event {
                Event::Ack { .. } => {
                    if let Some(segment) = segment(&sender, event) {
                        sender.on_segment(now, &segment, &mut ());
                    }
                }
                Event::Timer => {
                    now = sender.next_timer().map_or(now, |at| at.max(now));
                    sender.on_timer(now, &mut ());
                }
                Event::Wait(us) => now += Span::from_ns(us * 1000),
                Event::Write(bytes) => sender.write(*bytes),
                Event::Close => sender.close(),
                Event::Refuse => refuse = true,
            }
            check(&sender)?;
            let mut sent = 0;
            while let Some(segment) = sender.poll_transmit(now) {
                sent += 1;
                prop_assert!(sent < 10_000, "polling does not end");
                prop_assert!(u64::from(segment.len_bytes) <= MSS);
                prop_assert!(segment.end() <= sender.vars().nxt);
                if refuse {
                    sender.on_local_drop(now, &mut ());
                }
                check(&sender)?;
            }
        }
    }
}
