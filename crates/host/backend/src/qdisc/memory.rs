// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arena in this process: the only unsafe code of this crate.
//!
//! A mapping is shared with BPF programs, which read and write it at any time. So no reference to
//! it exists: numbers are read and written one by one, and an image is laid out by the core where
//! no program looks.
#![allow(unsafe_code)]

use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, fence};

use libbpf_rs::Object;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use pace::placed::Placed;
use pace::{ClassConfig, Config};

use super::layout::{ImageParts, START};

/// Checks that nothing of this process is where an arena of so many bytes would be. libbpf maps an
/// arena there when it loads programs, whatever there is.
///
/// # Errors
/// The kernel's: `EEXIST` if something is there, such as the arena of another device.
pub(crate) fn check_free(bytes: u64) -> nix::Result<()> {
    let (start, length) = range(bytes)?;
    let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_FIXED_NOREPLACE | MapFlags::MAP_NORESERVE;
    // SAFETY: the kernel replaces nothing that is mapped already; nobody uses what is mapped here.
    unsafe {
        let at = mmap_anonymous(Some(start), length, ProtFlags::PROT_NONE, flags)?;
        munmap(at, length.get())?;
        if at.as_ptr() as u64 == START {
            Ok(())
        } else {
            // A kernel that does not know the flag takes the address for a hint.
            Err(nix::Error::EEXIST)
        }
    }
}

fn range(bytes: u64) -> nix::Result<(NonZeroUsize, NonZeroUsize)> {
    let start = usize::try_from(START).ok().and_then(NonZeroUsize::new);
    let length = usize::try_from(bytes).ok().and_then(NonZeroUsize::new);
    start.zip(length).ok_or(nix::Error::EINVAL)
}

/// An arena, mapped where its pointers say.
pub(crate) struct Memory {
    bytes: usize,
    /// The programs that were loaded with it. libbpf has mapped the arena, and unmaps it when they
    /// are closed; they go on in the kernel.
    object: Option<Object>,
}

impl Memory {
    /// Maps an arena of so many bytes.
    ///
    /// # Errors
    /// The kernel's: something else is there in this process, or another process mapped another
    /// size.
    pub fn map(arena: impl AsFd, bytes: u64) -> nix::Result<Self> {
        let (start, length) = range(bytes)?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let flags = MapFlags::MAP_SHARED | MapFlags::MAP_FIXED_NOREPLACE;
        // SAFETY: the kernel replaces nothing that is mapped already.
        let at = unsafe { mmap(Some(start), length, access, flags, arena, 0)? };
        let memory = Self {
            bytes: length.get(),
            object: None,
        };
        if at.as_ptr() as u64 == START {
            Ok(memory)
        } else {
            Err(nix::Error::EEXIST)
        }
    }

    /// Returns the arena of programs that libbpf has loaded at [`START`].
    pub fn of_loaded(object: Object, bytes: u64) -> Self {
        Self {
            bytes: usize::try_from(bytes).unwrap_or(0),
            object: Some(object),
        }
    }

    /// Returns the programs that were loaded with the arena.
    pub fn object(&mut self) -> Option<&mut Object> {
        self.object.as_mut()
    }

    /// Returns whether so many bytes are all in the arena.
    pub fn holds(&self, address: u64, bytes: u64) -> bool {
        let offset = address.checked_sub(START);
        let end = offset.and_then(|offset| offset.checked_add(bytes));
        end.is_some_and(|end| end <= self.bytes as u64)
    }

    /// Returns where a number is, which is aligned to its size.
    fn at<T>(&self, address: u64) -> *mut T {
        let bytes = size_of::<T>() as u64;
        assert!(
            self.holds(address, bytes) && address % bytes == 0,
            "{address:#x} is not a number of the arena"
        );
        ptr::with_exposed_provenance_mut(address as usize)
    }

    pub fn u32(&self, address: u64) -> u32 {
        // SAFETY: at() has checked that it is within the mapping, and aligned.
        unsafe { self.at::<u32>(address).read_volatile() }
    }

    pub fn u64(&self, address: u64) -> u64 {
        // SAFETY: as above.
        unsafe { self.at::<u64>(address).read_volatile() }
    }

    pub fn set_u32(&self, address: u64, value: u32) {
        // SAFETY: as above.
        unsafe { self.at::<u32>(address).write_volatile(value) }
    }

    pub fn set_u64(&self, address: u64, value: u64) {
        // SAFETY: as above.
        unsafe { self.at::<u64>(address).write_volatile(value) }
    }

    /// All that was written before is seen by who sees what is written after.
    pub fn publish(&self) {
        fence(Ordering::SeqCst);
    }

    /// Returns numbers that follow each other.
    pub fn words<const N: usize>(&self, address: u64) -> [u64; N] {
        std::array::from_fn(|number| self.u64(address + 8 * number as u64))
    }

    /// Writes bytes where nobody reads.
    pub fn set_bytes(&self, address: u64, bytes: &[u8]) {
        for (at, eight) in (address..).step_by(8).zip(bytes.chunks(8)) {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(eight) {
                *to = *from;
            }
            self.set_u64(at, u64::from_ne_bytes(word));
        }
    }

    pub fn bytes(&self, address: u64, length: usize) -> Vec<u8> {
        let words = (address..).step_by(8).take(length.div_ceil(8));
        let mut bytes: Vec<u8> = words.flat_map(|at| self.u64(at).to_ne_bytes()).collect();
        bytes.truncate(length);
        bytes
    }

    /// Zeroes bytes that nobody uses.
    pub fn zero(&self, address: u64, bytes: u64) {
        for at in (address..address + bytes).step_by(8) {
            self.set_u64(at, 0);
        }
    }

    /// Lays out a scheduler in an image that no program uses, which is zeroed.
    pub fn place(
        &self,
        parts: ImageParts,
        slots: u32,
        config: &Config,
        now_ns: u64,
    ) -> Result<Core<'_>, pace::Error> {
        // SAFETY: the layout gives both parts the size that they need; nobody else uses them
        // until the image is published; the mapping lasts as long as `Core`, and the arena as
        // long as the programs.
        let placed = unsafe {
            Placed::new(
                self.at(parts.image),
                self.at(parts.storage),
                slots,
                config,
                now_ns,
            )?
        };
        Ok(Core {
            placed,
            memory: self,
        })
    }
}

/// A scheduler that is laid out.
pub(crate) struct Core<'a> {
    placed: Placed,
    memory: &'a Memory,
}

impl Core<'_> {
    /// Adds the class whose memory is at `address`, and that of its reservation; both are zeroed.
    pub fn add_class(
        &mut self,
        address: u64,
        reservation: u64,
        config: &ClassConfig,
    ) -> Result<(), pace::Error> {
        let (class, reservation) = (self.memory.at(address), self.memory.at(reservation));
        // SAFETY: as of Memory::place.
        unsafe { self.placed.add_class(class, reservation, config) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.object.is_some() {
            return;
        }
        let start: *mut std::ffi::c_void = ptr::with_exposed_provenance_mut(START as usize);
        if let Some(start) = NonNull::new(start) {
            // SAFETY: this value mapped it; nothing refers to it any more. The result says
            // nothing that could be done.
            let _ = unsafe { munmap(start, self.bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;

    #[test]
    fn what_is_in_the_place_of_an_arena_stays_there() {
        check_free(8192).unwrap();
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let memory = Memory::map(&file, 4096).unwrap();
        memory.set_u64(START + 8, 7);
        memory.set_bytes(START + 16, b"more than eight");
        assert_eq!(memory.bytes(START + 16, 15), b"more than eight");
        assert!(memory.holds(START, 4096) && !memory.holds(START + 1, 4096));
        assert!(!memory.holds(START - 1, 1) && !memory.holds(u64::MAX, 2));
        assert_eq!(check_free(8192), Err(nix::Error::EEXIST));
        assert_eq!(Memory::map(&file, 4096).err(), Some(nix::Error::EEXIST));
        assert_eq!(memory.u64(START + 8), 7);
        drop(memory);
        check_free(8192).unwrap();
    }
}
