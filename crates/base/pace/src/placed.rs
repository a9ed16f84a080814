// SPDX-License-Identifier: MIT OR Apache-2.0
//! A port laid out in memory that someone else runs: a BPF program that shares it at the same
//! addresses. Unsafe, because the core keeps pointers into that memory.
#![allow(unsafe_code)]

use crate::config::{ClassConfig, Config, Error};
use crate::ffi;
use crate::layout::{RawClass, RawReservation, RawStats, TYPE_RT};
use crate::{ReservationStats, Stats};

/// Words of 8 bytes of `struct pace_reservation`.
pub const RESERVATION_WORDS: usize = size_of::<RawReservation>() / 8;
/// Words of 8 bytes of `struct pace_stats`.
pub const STATS_WORDS: usize = size_of::<RawStats>() / 8;

/// Size of `struct pace_sched` in bytes.
pub fn sched_bytes() -> usize {
    ffi::sched_bytes()
}

/// Size of `struct pace_class` in bytes.
pub fn class_bytes() -> usize {
    ffi::class_bytes()
}

/// Size of the storage of so many classes in bytes, a multiple of 8.
pub fn storage_bytes(capacity: u32) -> usize {
    ffi::storage_bytes(capacity)
}

/// Reads the counters of a `struct pace_stats`.
pub fn stats(words: [u64; STATS_WORDS]) -> Stats {
    ffi::stats_of_words(words).into()
}

/// Reads the counters of a `struct pace_reservation`.
pub fn reservation_stats(words: [u64; RESERVATION_WORDS]) -> ReservationStats {
    ffi::reservation_of_words(words).into()
}

/// A port that was laid out and has not been handed over.
pub struct Placed {
    sched: *mut u64,
}

impl Placed {
    /// Initialises a scheduler without classes, whose clock is 0 at `now_ns`. Its queues are
    /// heaps, whatever their length: bpf/no_wheel.h.
    ///
    /// # Safety
    /// `sched` has [`sched_bytes`], `storage` [`storage_bytes`] of `capacity`; both are zeroed,
    /// aligned to 8, and used by nobody else until the port is handed over. They outlive the port.
    ///
    /// # Errors
    /// As of [`crate::Scheduler::new`].
    pub unsafe fn new(
        sched: *mut u64,
        storage: *mut u64,
        capacity: u32,
        config: &Config,
        now_ns: u64,
    ) -> Result<Self, Error> {
        // SAFETY: the caller's.
        let error = unsafe { ffi::init(sched, &config.raw(), storage, capacity, now_ns) };
        match error {
            0 => Ok(Self { sched }),
            code => Err(Error::from_code(code)),
        }
    }

    /// Adds a class.
    ///
    /// # Safety
    /// `class` has [`class_bytes`], `reservation` [`RESERVATION_WORDS`]; both are zeroed, aligned to
    /// 8, used by nobody else, and outlive the port.
    ///
    /// # Errors
    /// As of [`crate::Scheduler::add_class`].
    pub unsafe fn add_class(
        &mut self,
        class: *mut u64,
        reservation: *mut u64,
        config: &ClassConfig,
    ) -> Result<(), Error> {
        let mut raw = config.raw();
        if raw.class_type >= TYPE_RT {
            raw.reservation = reservation.cast();
        }
        // SAFETY: the caller's; the scheduler was initialised.
        let error = unsafe { ffi::class_add(self.sched, class.cast::<RawClass>(), &raw) };
        match error {
            0 => Ok(()),
            code => Err(Error::from_code(code)),
        }
    }
}
