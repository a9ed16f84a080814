// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real-time scheduling of the calling thread, where it is allowed.

use std::fmt;
use std::time::Duration;

use nix::sys::prctl::set_timerslack;
use thread_priority::{
    DeadlineFlags, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// SCHED_DEADLINE: so long in every period.
    Deadline {
        /// What it needs of each period at most.
        runtime: Duration,
        /// The period.
        period: Duration,
    },
    /// SCHED_FIFO, of 1 to 99.
    Fifo(u8),
    /// Like any other thread: the wish was refused.
    Other,
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadline { runtime, period } => {
                write!(f, "SCHED_DEADLINE, {runtime:?} of every {period:?}")
            }
            Self::Fifo(priority) => write!(f, "SCHED_FIFO, priority {priority}"),
            Self::Other => write!(f, "SCHED_OTHER (real-time scheduling was refused)"),
        }
    }
}

/// Gives the calling thread the first of `wishes` that is allowed, and says
/// which; and lets its timers be exact where none is. Needs CAP_SYS_NICE, or a
/// limit RLIMIT_RTPRIO for SCHED_FIFO.
pub fn schedule(wishes: &[Scheduling]) -> Scheduling {
    // A timer of a thread that is not real-time may otherwise be 50 µs late.
    // The kernel keeps its own slack if it refuses.
    let _ = set_timerslack(1);
    let granted = wishes.iter().find(|wish| grant(**wish));
    granted.copied().unwrap_or(Scheduling::Other)
}

fn grant(wish: Scheduling) -> bool {
    let (priority, policy) = match wish {
        Scheduling::Deadline { runtime, period } => (
            ThreadPriority::Deadline {
                runtime,
                deadline: period,
                period,
                flags: DeadlineFlags::empty(),
            },
            RealtimeThreadSchedulePolicy::Deadline,
        ),
        Scheduling::Fifo(priority) => {
            let Ok(priority) = priority.try_into() else {
                return false;
            };
            (
                ThreadPriority::Crossplatform(priority),
                RealtimeThreadSchedulePolicy::Fifo,
            )
        }
        Scheduling::Other => return true,
    };
    let policy = ThreadSchedulePolicy::Realtime(policy);
    set_thread_priority_and_policy(thread_native_id(), priority, policy).is_ok()
}
