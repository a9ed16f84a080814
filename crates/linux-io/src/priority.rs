// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real-time scheduling of the calling thread, where it is allowed.

use std::fmt;
use std::time::Duration;

use nix::sys::prctl::set_timerslack;
use thread_priority::{
    DeadlineFlags, RealtimeThreadSchedulePolicy, ThreadId, ThreadPriority, ThreadSchedulePolicy,
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

/// The calling thread, to SCHED_DEADLINE's system call: it takes the kernel's
/// number of a thread. The library passes on what it is given, and its own
/// `thread_native_id` is pthread's, which the kernel does not know.
const CALLING_THREAD: ThreadId = 0;

/// Gives the calling thread the first of `wishes` that is allowed, and says
/// which; and lets its timers be exact where none is. Needs CAP_SYS_NICE, for
/// SCHED_DEADLINE in the first user namespace, or a limit RLIMIT_RTPRIO for
/// SCHED_FIFO.
pub fn schedule(wishes: &[Scheduling]) -> Scheduling {
    // A timer of a thread that is not real-time may otherwise be 50 µs late.
    // The kernel keeps its own slack if it refuses.
    let _ = set_timerslack(1);
    let granted = wishes.iter().find(|wish| grant(**wish));
    granted.copied().unwrap_or(Scheduling::Other)
}

fn grant(wish: Scheduling) -> bool {
    let (thread, priority, policy) = match wish {
        Scheduling::Deadline { runtime, period } => (
            CALLING_THREAD,
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
                thread_native_id(),
                ThreadPriority::Crossplatform(priority),
                RealtimeThreadSchedulePolicy::Fifo,
            )
        }
        Scheduling::Other => return true,
    };
    let policy = ThreadSchedulePolicy::Realtime(policy);
    set_thread_priority_and_policy(thread, priority, policy).is_ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// The host's own tool is the judge of what the host grants.
    #[test]
    #[allow(clippy::unwrap_used, reason = "a test")]
    fn what_chrt_gets_is_granted() {
        let wish = Scheduling::Deadline {
            runtime: Duration::from_millis(1),
            period: Duration::from_millis(10),
        };
        let words = "-d --sched-runtime 1000000 --sched-period 10000000 0 true";
        let chrt = Command::new("chrt").args(words.split(' ')).output();
        if !chrt.is_ok_and(|out| out.status.success()) {
            eprintln!("SKIPPED: chrt gets no SCHED_DEADLINE here");
            return;
        }
        let granted = std::thread::spawn(move || schedule(&[wish, Scheduling::Fifo(1)]));
        assert_eq!(granted.join().unwrap(), wish);
    }
}
