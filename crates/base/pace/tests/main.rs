// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests of this crate, in one program: a module for each file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail that way"
)]

mod agreement;
mod burstiness;
mod bursts;
mod ceil;
mod changes;
mod device;
mod freestanding;
mod groups;
mod guard;
mod hybrid;
mod launch;
mod pacing;
mod pair;
mod periods;
mod queue;
mod queue_changes;
mod queue_groups;
mod queues;
mod recorded;
mod reference;
mod refusals;
mod sharing;
mod time;
mod wheel;
mod wheel_queue;
mod wire;
mod years;
