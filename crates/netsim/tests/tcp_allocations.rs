// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nothing is allocated once the window has had its largest size.

// Counting allocations takes an allocator, and that takes `unsafe`.
#![allow(unsafe_code)]

mod tcp_pipe;

use netsim::Time;
use netsim::tcp::{Moment, Observer, ReceiverConfig, SenderConfig, Vars, variant};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use tcp_pipe::{Path, run};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.with(|n| n.set(n.get() + 1));
}

struct Counting;

// SAFETY: all is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(at, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations at the first acknowledgement after `una`.
struct Mark {
    una: u64,
    at: Option<u64>,
}

impl Observer for Mark {
    fn observe(&mut self, _: Time, _: Moment, vars: &Vars) {
        if vars.una >= self.una && self.at.is_none() {
            self.at = Some(ALLOCATIONS.with(Cell::get));
        }
    }
}

#[test]
fn none_in_the_second_half() {
    for variant in variant::ALL {
        let path = Path {
            loss_ppm: 500,
            reorder_ppm: 500,
            ..Path::default()
        };
        let sender = SenderConfig {
            initial_ssthresh: 4000,
            ..SenderConfig::new(variant)
        };
        let bytes = 200_000_000;
        let mut mark = Mark {
            una: bytes / 2,
            at: None,
        };
        let outcome = run(&path, &sender, &ReceiverConfig::default(), bytes, &mut mark);
        let after = ALLOCATIONS.with(Cell::get);
        assert!(outcome.finished && outcome.dropped > 10);
        assert_eq!(mark.at, Some(after), "{}", variant.name);
    }
}
