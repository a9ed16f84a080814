// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds in a guest's console log why the guest failed.

use std::fmt;

/// The failure of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The kernel panicked; its message.
    Panic(String),
    /// The kernel reported a fault of its own: an oops, a warning, a lock held wrongly, a task that
    /// hangs; its message.
    KernelWarning(String),
    /// A step of the plan failed; the step's number, its text and the reason.
    Step(String),
    /// The guest did not end within its limit of processor time, in seconds.
    Timeout(u64),
    /// QEMU itself failed; its messages.
    Machine(String),
    /// The guest ended without results.
    NoResult,
    /// The guest left other bytes than the store has of the same guest: of what, and its key.
    Differs(String, String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic(line) => write!(f, "the guest's kernel panicked: {line}"),
            Self::KernelWarning(line) => write!(f, "the guest's kernel complained: {line}"),
            Self::Step(text) => write!(f, "the guest stopped: {text}"),
            Self::Timeout(seconds) => {
                write!(
                    f,
                    "the guest did not end within {seconds} s of processor time, or four times that on the wall clock"
                )
            }
            Self::Machine(words) => write!(f, "QEMU failed: {words}"),
            Self::NoResult => write!(f, "the guest ended without results"),
            Self::Differs(what, key) => write!(
                f,
                "the same guest left another {what} before, which the store has as {key}"
            ),
        }
    }
}

/// Beginnings of kernel messages that report a fault.
const COMPLAINTS: &[&str] = &[
    "BUG:",
    "WARNING:",
    "Oops:",
    "general protection fault",
    "kernel BUG at",
    "KASAN:",
    "UBSAN:",
    "refcount_t:",
    "INFO: rcu",
    "rcu: INFO:",
    "rcu: rcu_preempt kthread starved",
    "INFO: task ",
    "INFO: possible ",
    "INFO: inconsistent lock state",
    "unregister_netdevice: waiting for",
    "watchdog:",
    "NETDEV WATCHDOG:",
    "list_add corruption",
    "list_del corruption",
    "divide error:",
    "invalid opcode:",
    "double fault:",
    "traps: PANIC",
    "Out of memory:",
    "Kernel panic",
];

/// Returns the failure that the console log shows: the first complaint of the kernel (a panic
/// follows from it, so the complaint says more), else a failed step.
pub(crate) fn classify(console: &str) -> Option<Failure> {
    let kernel = console.lines().map(message).find(|line| {
        COMPLAINTS
            .iter()
            .any(|complaint| line.starts_with(complaint))
    });
    if let Some(line) = kernel {
        let line = line.trim_end().to_owned();
        return Some(if line.starts_with("Kernel panic") {
            Failure::Panic(line)
        } else {
            Failure::KernelWarning(line)
        });
    }
    let (before, after) = console.split_once("agent: FAILED ")?;
    let _ = before;
    let mut lines = after
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    // Output of the failed command; the console log ends soon after it.
    let said: Vec<&str> = lines
        .take(4)
        .filter(|line| !line.starts_with('['))
        .collect();
    Some(Failure::Step(if said.is_empty() {
        first.to_owned()
    } else {
        format!("{first}: {}", said.join("; "))
    }))
}

/// Removes from a line its timestamp, `[ 1.234567] `, and the task that KERN_CONT or printk's
/// caller info puts before the message.
fn message(line: &str) -> &str {
    let line = line.trim_start();
    line.strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
        .filter(|(timestamp, _)| {
            timestamp
                .trim()
                .bytes()
                .all(|b| b.is_ascii_digit() || b == b'.')
        })
        .map_or(line, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_console_has_no_complaint() {
        assert_eq!(classify(""), None);
        assert_eq!(classify("[    0.1] Linux version 6.1\nagent: done\n"), None);
        // A line that only mentions a warning is not one.
        assert_eq!(
            classify("[    0.1] random: crng init done, WARNING: not\n"),
            None
        );
    }

    #[test]
    fn the_first_complaint_counts() {
        let text = "[    2.1] BUG: kernel NULL pointer dereference, address: 0000\r\n\
                    [    2.2] #PF: supervisor read access in kernel mode\r\n\
                    [    2.3] Kernel panic - not syncing: Fatal exception\r\n";
        assert_eq!(
            classify(text),
            Some(Failure::KernelWarning(
                "BUG: kernel NULL pointer dereference, address: 0000".into()
            ))
        );
    }

    #[test]
    fn every_kind_of_complaint() {
        for line in [
            "WARNING: CPU: 0 PID: 1 at net/sched/sch_generic.c:1 x+0x1/0x2",
            "WARNING: possible recursive locking detected",
            "rcu: INFO: rcu_sched self-detected stall on CPU",
            "INFO: task tc:12 blocked for more than 120 seconds.",
            "Oops: 0000 [#1] PREEMPT SMP",
            "unregister_netdevice: waiting for eth0 to become free. Usage count = 2",
        ] {
            let text = format!("agent: x\n[   12.345678] {line}\n");
            assert_eq!(
                classify(&text),
                Some(Failure::KernelWarning(line.into())),
                "{line}"
            );
        }
        assert_eq!(
            classify("[    9.0] Kernel panic - not syncing: sysrq triggered crash\n"),
            Some(Failure::Panic(
                "Kernel panic - not syncing: sysrq triggered crash".into()
            ))
        );
    }

    #[test]
    fn a_failed_step_has_the_commands_output() {
        let text = "agent: FAILED step 7: run tc qdisc add: exit status 2\r\n\
                    Error: Specified qdisc kind is unknown.\r\n[    2.0] reboot: Restarting\r\n";
        assert_eq!(
            classify(text),
            Some(Failure::Step(
                "step 7: run tc qdisc add: exit status 2: Error: Specified qdisc kind is unknown."
                    .into()
            ))
        );
    }
}
