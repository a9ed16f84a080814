// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clocks, in nanoseconds.

use std::io;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_getres, clock_gettime, clock_nanosleep};
use units::time::NS_PER_S;

/// Returns the time of CLOCK_MONOTONIC, which is for schedules and for waiting.
pub fn monotonic_ns() -> io::Result<u64> {
    now_ns(ClockId::CLOCK_MONOTONIC)
}

/// Returns the time of CLOCK_BOOTTIME, which goes on while the machine is suspended and is never
/// set: for leases.
pub fn boottime_ns() -> io::Result<u64> {
    now_ns(ClockId::CLOCK_BOOTTIME)
}

/// Returns a text that differs from boot to boot: times of [`boottime_ns`] mean something within
/// one boot only.
pub fn boot_id() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

/// Returns the time of CLOCK_TAI since 1970, which is for timestamps that other hosts read: leap
/// seconds do not change it. It equals CLOCK_REALTIME if nobody has set their offset in the kernel.
pub fn tai_ns() -> io::Result<u64> {
    now_ns(ClockId::CLOCK_TAI)
}

/// Returns the time of CLOCK_REALTIME since 1970, which the kernel's timestamps of packets have.
pub fn realtime_ns() -> io::Result<u64> {
    now_ns(ClockId::CLOCK_REALTIME)
}

/// Returns the seconds that CLOCK_TAI is ahead of CLOCK_REALTIME, which is the clock of the
/// kernel's timestamps.
pub fn tai_ahead_s() -> io::Result<u64> {
    let tai_ns = now_ns(ClockId::CLOCK_TAI)?;
    let realtime_ns = now_ns(ClockId::CLOCK_REALTIME)?;
    // The offset is whole seconds; rounding removes the moment between the two readings.
    Ok((tai_ns.saturating_sub(realtime_ns) + NS_PER_S / 2) / NS_PER_S)
}

/// Returns the length of the kernel's tick (1/HZ): the coarse clock advances once in each.
pub fn tick_ns() -> io::Result<u64> {
    Ok(nanoseconds(clock_getres(ClockId::CLOCK_MONOTONIC_COARSE)?).max(1))
}

/// Returns the resolution of timers: 1 ns, or a tick where the kernel has no high-resolution timers.
pub fn timer_resolution_ns() -> io::Result<u64> {
    Ok(nanoseconds(clock_getres(ClockId::CLOCK_MONOTONIC)?).max(1))
}

/// Waits until CLOCK_MONOTONIC reaches `due_ns`; returns at once if that has passed.
pub fn sleep_until(due_ns: u64) -> io::Result<()> {
    let due = TimeSpec::from_duration(Duration::from_nanos(due_ns));
    let flags = ClockNanosleepFlags::TIMER_ABSTIME;
    loop {
        match clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &due) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Converts a time of the kernel; times before 1970 become 0.
pub(crate) fn nanoseconds(time: TimeSpec) -> u64 {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let part_ns = u64::try_from(time.tv_nsec()).unwrap_or(0);
    seconds.saturating_mul(NS_PER_S).saturating_add(part_ns)
}

fn now_ns(clock: ClockId) -> io::Result<u64> {
    Ok(nanoseconds(clock_gettime(clock)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_does_not_end_early() {
        let due_ns = monotonic_ns().unwrap() + 2_000_000;
        sleep_until(due_ns).unwrap();
        assert!(monotonic_ns().unwrap() >= due_ns);
        sleep_until(0).unwrap();
    }

    #[test]
    fn a_tick_is_of_100_to_1000_hz() {
        assert!((1_000_000..=10_000_000).contains(&tick_ns().unwrap()));
    }

    #[test]
    fn timers_are_no_coarser_than_a_tick() {
        assert!(timer_resolution_ns().unwrap() <= tick_ns().unwrap());
    }

    #[test]
    fn tai_is_whole_seconds_ahead() {
        // TAI is 37 s ahead since 2017, or 0 s if nobody set the kernel's offset.
        assert!(tai_ahead_s().unwrap() < 100);
    }
}
