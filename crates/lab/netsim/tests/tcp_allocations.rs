// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sender allocates nothing once its window has had its largest size.

mod tcp_pipe;

use std::alloc::System;

use netsim::tcp::{ReceiverConfig, SenderConfig, variant};
use sender_log::variables::{Moment, Observer, Vars};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tcp_pipe::{Path, run};
use units::clock::Time;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Counts allocations since the program began. This file has one test, so nothing runs beside
/// it.
fn allocations() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}

/// The number of allocations at the first acknowledgement after `una`.
struct Mark {
    una: u64,
    at: Option<usize>,
}

impl Observer for Mark {
    fn observe(&mut self, _: Time, _: Moment, vars: &Vars) {
        if vars.una >= self.una && self.at.is_none() {
            self.at = Some(allocations());
        }
    }
}

#[test]
fn the_second_half_of_a_transfer_allocates_nothing() {
    for variant in variant::ALL {
        let path = Path {
            loss_ppm: 500,
            reorder_ppm: 500,
            ..Path::default()
        };
        let sender = SenderConfig {
            // The window is at its largest before the first loss.
            initial_cwnd: 2000,
            initial_ssthresh: 4000,
            ..SenderConfig::new(variant)
        };
        let bytes = 200_000_000;
        let mut mark = Mark {
            una: bytes / 2,
            at: None,
        };
        let outcome = run(&path, &sender, &ReceiverConfig::default(), bytes, &mut mark);
        let after = allocations();
        assert!(outcome.finished && outcome.dropped > 10);
        assert_eq!(mark.at, Some(after), "{}", variant.name);
    }
}
