// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core's queue and an ordered set, which must always agree.

#![allow(
    unsafe_code,
    reason = "a binding of its own: the queue is no public function"
)]

mod bytes;

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr;

pub use bytes::replay;

pub const WHEEL_NEVER: u32 = u32::MAX;

pub const WHEEL_CAPACITY: u32 = 2048;

const ID_BITS: u32 = 20;
const ID_NONE: u32 = u32::MAX;

/// `struct pace_queue`.
#[repr(C)]
struct RawQueue {
    min: u64,
    count: u32,
    stale: u32,
    heap: *mut u64,
    heap_keys: u32,
    has_wheel: bool,
    limit: u32,
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
    fn pace_shim_pool_init(memory: *mut u64, capacity: u32) -> *mut c_void;
    fn pace_shim_queue_bytes(capacity: u32) -> usize;
    fn pace_shim_queue_gather(q: *mut RawQueue) -> u32;
    fn pace_shim_queue_resize(
        q: *mut RawQueue,
        pool: *mut c_void,
        memory: *mut u64,
        capacity: u32,
        key: *const u64,
        keys: u32,
    );
    fn pace_shim_queue_wheel_from(q: *mut RawQueue, keys: u32);
    fn pace_shim_queue_insert(q: *mut RawQueue, key: u64);
    fn pace_shim_queue_pop(q: *mut RawQueue);
    fn pace_shim_queue_replace_min(q: *mut RawQueue, key: u64);
    fn pace_shim_queue_second(q: *const RawQueue) -> u64;
    fn pace_shim_queue_coming(q: *const RawQueue, ahead: u32) -> u32;
}

/// Links the core.
fn linked() -> u64 {
    pace::Config::ethernet(1_000_000_000, 1514).line_rate_bps
}

/// xorshift64*.
pub struct Random(pub u64);

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
                min: 0,
                count: 0,
                stale: 0,
                heap: ptr::null_mut(),
                heap_keys: 0,
                has_wheel: false,
                limit: 0,
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
            let keys = pace_shim_queue_gather(&mut self.raw);
            let from = self.raw.heap;
            let begun = pace_shim_pool_init(pool.as_mut_ptr(), ids);
            let start = memory.as_mut_ptr();
            pace_shim_queue_resize(&mut self.raw, begun, start, capacity, from, keys);
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

    /// A key is live if its id is in the set with that value, as a class says it of its key.
    fn is_live(&self, key: u64) -> bool {
        let id = (key & ((1 << ID_BITS) - 1)) as u32;
        self.value[id as usize].is_some_and(|value| Self::key(id, value) == key)
    }

    /// Makes the smallest key live again.
    fn drop_stale_head(&mut self) {
        while self.raw.stale > 0 && self.raw.count > 0 && !self.is_live(self.raw.min) {
            // SAFETY: the queue has a key.
            unsafe { pace_shim_queue_pop(&mut self.raw) };
            self.raw.stale -= 1;
        }
    }

    fn drop_all_stale(&mut self) {
        // SAFETY: the queue has its memory.
        let keys = unsafe { pace_shim_queue_gather(&mut self.raw) };
        self.raw.stale = 0;
        // SAFETY: that many keys are there.
        let keys = unsafe { std::slice::from_raw_parts(self.raw.heap, keys as usize) }.to_vec();
        let live: BTreeSet<u64> = keys.into_iter().filter(|&k| self.is_live(k)).collect();
        for key in live {
            // SAFETY: fewer keys than there were.
            unsafe { pace_shim_queue_insert(&mut self.raw, key) };
        }
    }

    pub fn insert(&mut self, id: u32, value: u64) {
        if self.raw.count == self.raw.limit {
            self.drop_all_stale();
        }
        assert!(self.set.insert((value, id)));
        self.value[id as usize] = Some(value);
        // SAFETY: the queue is not full.
        unsafe { pace_shim_queue_insert(&mut self.raw, Self::key(id, value)) };
        self.check();
    }

    /// Removes the smallest id; any other leaves its key behind.
    pub fn remove(&mut self, id: u32) {
        let smallest = self.min_id() == Some(id);
        let value = self.value[id as usize].take().unwrap();
        assert!(self.set.remove(&(value, id)));
        if smallest {
            // SAFETY: the queue has a key.
            unsafe { pace_shim_queue_pop(&mut self.raw) };
            self.drop_stale_head();
        } else {
            self.raw.stale += 1;
        }
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
        self.drop_stale_head();
        self.check();
    }

    pub fn has(&self, id: u32) -> bool {
        self.value[id as usize].is_some()
    }

    /// Returns true if keys were left behind that are still in the queue.
    pub fn has_stale(&self) -> bool {
        self.raw.stale > 0
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
        assert_eq!(self.raw.count, self.set.len() as u32 + self.raw.stale);
        assert!(self.raw.count <= self.raw.limit);
        if let Some(&(value, id)) = self.set.first() {
            assert_eq!(self.raw.min, Self::key(id, value));
        }
        if let Some(&(value, id)) = self.set.iter().nth(1) {
            // SAFETY: the queue has two keys.
            let second = unsafe { pace_shim_queue_second(&self.raw) };
            let behind_the_smallest = second.wrapping_sub(self.raw.min);
            let next = Self::key(id, value).wrapping_sub(self.raw.min);
            assert!(
                behind_the_smallest <= next,
                "a key is before the second one, {second:#x}, whose smallest is {:#x}",
                self.raw.min
            );
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
