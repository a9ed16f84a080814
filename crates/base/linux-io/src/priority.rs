// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the calling thread real-time scheduling, if that is allowed.

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
    /// SCHED_DEADLINE: the thread may run for `runtime` in every `period`.
    Deadline {
        /// Most processor time that the thread needs in a period.
        runtime: Duration,
        period: Duration,
    },
    /// SCHED_FIFO with a priority of 1 to 99.
    Fifo(u8),
    /// Scheduling of an ordinary thread: no wish, or every one was refused.
    Other,
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadline { runtime, period } => {
                write!(f, "SCHED_DEADLINE, {runtime:?} of every {period:?}")
            }
            Self::Fifo(priority) => write!(f, "SCHED_FIFO, priority {priority}"),
            Self::Other => write!(f, "SCHED_OTHER"),
        }
    }
}

/// Identifies the calling thread in SCHED_DEADLINE's system call, which takes the kernel's number
/// of a thread. The library passes this value on unchanged; its own `thread_native_id` returns
/// pthread's number, which the kernel does not know.
const CALLING_THREAD: ThreadId = 0;

/// Gives the calling thread the first of `wishes` that is allowed, and returns it. It also makes
/// the timers of an ordinary thread exact. Needs CAP_SYS_NICE, for SCHED_DEADLINE in the initial
/// user namespace, or a limit RLIMIT_RTPRIO for SCHED_FIFO.
pub fn schedule(wishes: &[Scheduling]) -> Scheduling {
    // Timers of an ordinary thread may otherwise expire 50 µs late. If the kernel refuses, it keeps
    // its own slack.
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

    /// The test asks chrt of this host what the kernel grants.
    #[test]
    #[allow(clippy::unwrap_used, reason = "a test")]
    fn scheduling_is_granted_where_chrt_gets_it() {
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
