// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that the core works on, and whose it is.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use crate::layout::{RawClassConfig, RawReservation, TYPE_RT};

// SAFETY: as in ffi.rs.
unsafe extern "C" {
    static pace_shim_class_bytes: usize;
    fn pace_shim_device_bytes(slots: u32) -> usize;
    fn pace_shim_common_bytes(slots: u32) -> usize;
    fn pace_shim_device_init(d: *mut u64, slots: u32);
    fn pace_shim_common_init(k: *mut u64, slots: u32);
    fn pace_shim_device_part(d: *mut u64, slot: u32) -> *mut u64;
    fn pace_shim_common_part(k: *mut u64, slot: u32) -> *mut u64;
    fn pace_shim_common_clock_ps(k: *const u64) -> u64;
    fn pace_shim_device_loads_bps(d: *const u64) -> u64;
}

/// Zeroed memory aligned as `u64`, freed when dropped.
pub(crate) struct Memory {
    pub start: NonNull<u64>,
    words: usize,
}

impl Memory {
    pub fn zeroed(bytes: usize) -> Self {
        let boxed: Box<[u64]> = vec![0; bytes.div_ceil(8)].into_boxed_slice();
        let words = boxed.len();
        let start = NonNull::from(Box::leak(boxed)).cast();
        Memory { start, words }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let slice = NonNull::slice_from_raw_parts(self.start, self.words);
        // SAFETY: `start` and `words` are those of the box leaked above, and
        // only this value frees it.
        drop(unsafe { Box::from_raw(slice.as_ptr()) });
    }
}

/// Memory that the queues of a device share: of its line, or of one clock of a class.
pub(crate) struct Shared {
    pub memory: Memory,
    slots: u32,
    is_device: bool,
}

// SAFETY: the core reaches what is in it by atomic operations, or, of a part, from the one
// scheduler that has it.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    pub fn device(slots: u32) -> Self {
        // SAFETY: a pure function; then memory of the size that it names.
        unsafe {
            let memory = Memory::zeroed(pace_shim_device_bytes(slots));
            pace_shim_device_init(memory.start.as_ptr(), slots);
            Shared {
                memory,
                slots,
                is_device: true,
            }
        }
    }

    pub fn clock(slots: u32) -> Self {
        // SAFETY: as above.
        unsafe {
            let memory = Memory::zeroed(pace_shim_common_bytes(slots));
            pace_shim_common_init(memory.start.as_ptr(), slots);
            Shared {
                memory,
                slots,
                is_device: false,
            }
        }
    }

    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns until where time has been given out; of a class's clock.
    pub fn clock_ps(&self) -> u64 {
        assert!(!self.is_device, "a class's clock");
        // SAFETY: initialised above, and read as an atomic.
        unsafe { pace_shim_common_clock_ps(self.memory.start.as_ptr()) }
    }

    /// Returns what the classes that several queues send offer to the line.
    pub fn loads_bps(&self) -> u64 {
        assert!(self.is_device, "a device");
        // SAFETY: as above.
        unsafe { pace_shim_device_loads_bps(self.memory.start.as_ptr()) }
    }

    /// Returns the part in a slot that there is.
    pub fn part(&self, slot: u32) -> *mut u64 {
        let start = self.memory.start.as_ptr();
        assert!(slot < self.slots, "a slot that there is");
        // SAFETY: initialised above, and the slot is one of it.
        unsafe {
            if self.is_device {
                pace_shim_device_part(start, slot)
            } else {
                pace_shim_common_part(start, slot)
            }
        }
    }
}

/// A class of the core, and its reservation if its type uses periods.
pub(crate) struct Class {
    pub class: Memory,
    pub reservation: Option<Memory>,
}

impl Class {
    pub fn new() -> Self {
        Class {
            // SAFETY: a constant of shim.c.
            class: Memory::zeroed(unsafe { pace_shim_class_bytes }),
            reservation: None,
        }
    }

    /// Returns `cfg` with the memory that its class type needs.
    pub fn fitted(&mut self, cfg: &RawClassConfig) -> RawClassConfig {
        if cfg.class_type < TYPE_RT {
            return *cfg;
        }
        let reservation = self
            .reservation
            .get_or_insert_with(|| Memory::zeroed(size_of::<RawReservation>()));
        RawClassConfig {
            reservation: reservation.start.as_ptr().cast(),
            ..*cfg
        }
    }
}
