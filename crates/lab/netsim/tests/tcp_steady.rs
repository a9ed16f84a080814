// SPDX-License-Identifier: MIT OR Apache-2.0
//! A transfer costs little per acknowledgement, and repeats exactly.

use netsim::tcp::variant::SackScan;
use netsim::tcp::{ReceiverConfig, SenderConfig, variant};

use crate::tcp_pipe::{Path, run};

/// The walks of the scoreboard do not grow with the square of the window: with few single
/// losses, an acknowledgement looks at few packets. Before the hints it was the whole queue.
#[test]
fn single_losses_cost_few_steps_for_each_acknowledgement() {
    for variant in variant::ALL {
        let path = Path {
            loss_ppm: 50,
            ..Path::default()
        };
        let sender = SenderConfig::new(variant);
        let outcome = run(
            &path,
            &sender,
            &ReceiverConfig::default(),
            300_000_000,
            &mut (),
        );
        let counters = outcome.sender.counters();
        assert!(outcome.finished);
        assert!(counters.retransmits > 0, "{}: nothing lost", variant.name);
        let steps = counters.scoreboard_steps as f64 / counters.acks as f64;
        let few = steps < 3.0;
        let hints = variant.sack_scan == SackScan::Hints;
        assert_eq!(few, hints, "{}: {steps} packets for each", variant.name);
    }
}

/// The same seed gives the same result, to the last counter.
#[test]
fn a_transfer_repeats_exactly() {
    for variant in variant::ALL {
        let path = Path {
            loss_ppm: 10_000,
            ack_loss_ppm: 10_000,
            reorder_ppm: 10_000,
            seed: 7,
            ..Path::default()
        };
        let sender = SenderConfig::new(variant);
        let once = run(
            &path,
            &sender,
            &ReceiverConfig::default(),
            5_000_000,
            &mut (),
        );
        let again = run(
            &path,
            &sender,
            &ReceiverConfig::default(),
            5_000_000,
            &mut (),
        );
        assert_eq!(once.time, again.time);
        assert_eq!(once.sender.counters(), again.sender.counters());
    }
}
