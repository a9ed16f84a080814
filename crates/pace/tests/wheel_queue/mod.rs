// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core's queue and an ordered set, which must always agree.

mod bytes;

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr;

pub use bytes::replay;

pub const WHEEL_NEVER: u32 = u32::MAX;

/// The least capacity with a wheel.
pub const WHEEL_CAPACITY: u32 = 2048;

const ID_BITS: u32 = 20;
const ID_NONE: u32 = u32::MAX;

/// `struct pace_queue`.
#[repr(C)]
struct RawQueue {
    key: *mut u64,
    place: *mut u32,
    count: u32,
    heap_keys: u32,
    capacity: u32,
    wheel_from: u32,
    wheel: *mut c_void,
    pool: *mut c_void,
}

/// `struct pace_pool`, but for its blocks.
#[repr(C)]
struct RawPool {
    blocks: u32,
    unused: u32,
    free: u32,
    free_count: u32,
}

// SAFETY: the signatures are those of shim.c.
unsafe extern "C" {
    fn pace_shim_pool_bytes(capacity: u32) -> usize;
    fn pace_shim_pool_resize(from: *const c_void, memory: *mut u64, capacity: u32) -> *mut c_void;
    fn pace_shim_queue_bytes(capacity: u32) -> usize;
    fn pace_shim_queue_resize(q: *mut RawQueue, pool: *mut c_void, memory: *mut u64, capacity: u32);
    fn pace_shim_queue_wheel_from(q: *mut RawQueue, ids: u32);
    fn pace_shim_queue_insert(q: *mut RawQueue, key: u64);
    fn pace_shim_queue_remove(q: *mut RawQueue, id: u32);
    fn pace_shim_queue_replace_min(q: *mut RawQueue, key: u64);
    fn pace_shim_queue_coming(q: *const RawQueue, ahead: u32) -> u32;
}

/// Links the core.
fn linked() -> u64 {
    pace::Config::ethernet(1_000_000_000, 1514).line_rate_bps
}

/// xorshift64*.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// From 0 to 1.
    pub fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A queue, and what should be in it. Values do not wrap here; in keys they do.
pub struct Model {
    raw: RawQueue,
    memory: Vec<u64>,
    pool: Vec<u64>,
    set: BTreeSet<(u64, u32)>,
    value: Vec<Option<u64>>,
}

fn zeroed(bytes: usize) -> Vec<u64> {
    vec![0; bytes.div_ceil(8)]
}

impl Model {
    pub fn new(capacity: u32) -> Self {
        let capacity = capacity.max(WHEEL_CAPACITY);
        Self::with_pool_for(capacity, capacity)
    }

    /// Without a wheel, until it grows.
    pub fn small(capacity: u32) -> Self {
        Self::with_pool_for(capacity, capacity)
    }

    /// With a pool as large as that of a queue of so many ids.
    pub fn with_pool_for(capacity: u32, ids: u32) -> Self {
        assert_eq!(linked(), 1_000_000_000);
        let mut model = Model {
            raw: RawQueue {
                key: ptr::null_mut(),
                place: ptr::null_mut(),
                count: 0,
                heap_keys: 0,
                capacity: 0,
                wheel_from: 0,
                wheel: ptr::null_mut(),
                pool: ptr::null_mut(),
            },
            memory: Vec::new(),
            pool: Vec::new(),
            set: BTreeSet::new(),
            value: Vec::new(),
        };
        model.resize(capacity, ids);
        model
    }

    pub fn grow(&mut self, capacity: u32) {
        self.resize(capacity, capacity);
    }

    fn resize(&mut self, capacity: u32, ids: u32) {
        // SAFETY: the sizes are those that the core asks for; the old blocks
        // are alive until it has copied from them.
        unsafe {
            let mut pool = zeroed(pace_shim_pool_bytes(ids));
            let mut memory = zeroed(pace_shim_queue_bytes(capacity));
            let moved = pace_shim_pool_resize(self.raw.pool, pool.as_mut_ptr(), ids);
            pace_shim_queue_resize(&mut self.raw, moved, memory.as_mut_ptr(), capacity);
            self.pool = pool;
            self.memory = memory;
        }
        self.value.resize(capacity as usize, None);
        self.check();
    }

    pub fn wheel_from(&mut self, ids: u32) {
        // SAFETY: the queue has its memory.
        unsafe { pace_shim_queue_wheel_from(&mut self.raw, ids) };
        self.check();
    }

    fn key(id: u32, value: u64) -> u64 {
        (value << ID_BITS) | u64::from(id)
    }

    pub fn insert(&mut self, id: u32, value: u64) {
        assert!(self.set.insert((value, id)));
        self.value[id as usize] = Some(value);
        // SAFETY: the id is below the capacity and not in the queue.
        unsafe { pace_shim_queue_insert(&mut self.raw, Self::key(id, value)) };
        self.check();
    }

    pub fn remove(&mut self, id: u32) {
        let value = self.value[id as usize].take().unwrap();
        assert!(self.set.remove(&(value, id)));
        // SAFETY: the id is in the queue.
        unsafe { pace_shim_queue_remove(&mut self.raw, id) };
        self.check();
    }

    pub fn remove_min(&mut self) {
        if let Some(id) = self.min_id() {
            self.remove(id);
        }
    }

    pub fn replace_min(&mut self, value: u64) {
        let Some((_, id)) = self.set.pop_first() else {
            return;
        };
        self.set.insert((value, id));
        self.value[id as usize] = Some(value);
        // SAFETY: the id is the smallest in the queue.
        unsafe { pace_shim_queue_replace_min(&mut self.raw, Self::key(id, value)) };
        self.check();
    }

    pub fn has(&self, id: u32) -> bool {
        self.value[id as usize].is_some()
    }

    pub fn len(&self) -> usize {
        self.set.len()
    }

    pub fn min_id(&self) -> Option<u32> {
        self.set.first().map(|&(_, id)| id)
    }

    pub fn min_value(&self) -> Option<u64> {
        self.set.first().map(|&(value, _)| value)
    }

    pub fn coming(&self, ahead: u32) -> Option<u32> {
        // SAFETY: the queue has its memory.
        let id = unsafe { pace_shim_queue_coming(&self.raw, ahead) };
        (id != ID_NONE).then_some(id)
    }

    fn check(&self) {
        assert_eq!(self.raw.count == 0, self.set.is_empty());
        if let Some(&(value, id)) = self.set.first() {
            // SAFETY: `key` has `count` keys.
            assert_eq!(unsafe { *self.raw.key }, Self::key(id, value));
        }
    }

    /// The queue is empty: no block of the pool may be lost.
    pub fn assert_all_given_back(&self) {
        assert!(self.set.is_empty());
        if !self.raw.pool.is_null() {
            // SAFETY: a pool begins with these.
            let pool = unsafe { &*self.raw.pool.cast::<RawPool>() };
            assert_eq!(pool.free_count, pool.blocks);
            assert!(pool.unused <= pool.blocks && (pool.free == ID_NONE || pool.unused > 0));
        }
    }
}
