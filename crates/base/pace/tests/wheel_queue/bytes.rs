// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as what happens to a queue: what a fuzzer changes
//! (docs/contribute/fuzzing.md).

use arbitrary::{Result, Unstructured};

use super::{Model, WHEEL_CAPACITY};

const OPS_MAX: usize = 200;
/// Keys put and taken in all, so that no input takes long.
const MOVES_MAX: u32 = 30_000;
/// Values are less than half their circle apart: src/heap.c.
const SPREAD_BITS: u32 = 42;

/// Does to the queue and to a set what the bytes say; panics where they do not
/// agree.
pub fn replay(bytes: &[u8]) {
    let mut source = Unstructured::new(bytes);
    // Where they end in the middle of something, that is not done.
    let _ = play(&mut source);
}

struct Play {
    model: Model,
    /// The smallest value that was ever the smallest, or near it.
    floor: u64,
    next_id: u32,
    moves: u32,
}

fn play(source: &mut Unstructured) -> Result<()> {
    // A pool as large as it should be, or one that runs out.
    let ids = if source.arbitrary()? {
        0
    } else {
        WHEEL_CAPACITY
    };
    let mut model = Model::with_pool_for(WHEEL_CAPACITY * 2, WHEEL_CAPACITY + ids);
    model.wheel_from(wheel_from(source)?);
    let mut play = Play {
        model,
        floor: start(source)?,
        next_id: 0,
        moves: 0,
    };
    for _ in 0..OPS_MAX {
        if source.is_empty() || play.moves > MOVES_MAX {
            break;
        }
        play.step(source)?;
    }
    while play.model.min_id().is_some() {
        play.model.remove_min();
    }
    play.model.assert_all_given_back();
    Ok(())
}

impl Play {
    /// The smallest there is, which never goes back by much.
    fn now(&mut self) -> u64 {
        self.floor = self.floor.max(self.model.min_value().unwrap_or(0));
        self.floor
    }

    fn free_id(&mut self) -> Option<u32> {
        let ids = WHEEL_CAPACITY * 2;
        let id = (0..ids)
            .map(|more| (self.next_id + more) % ids)
            .find(|&id| !self.model.has(id))?;
        self.next_id = id + 1;
        Some(id)
    }

    /// Puts so many keys, each so far behind the last.
    fn insert(&mut self, count: u32, from: u64, stride: u64) {
        let now = self.now();
        for i in 0..count {
            let ahead = (from + u64::from(i) * stride) % (1 << SPREAD_BITS);
            if let Some(id) = self.free_id() {
                self.model.insert(id, now + ahead);
            }
        }
    }

    fn replace(&mut self, count: u32, from: u64, stride: u64) {
        for i in 0..count {
            let now = self.now();
            let ahead = (from + u64::from(i) * stride) % (1 << SPREAD_BITS);
            self.model.replace_min(now + ahead);
        }
    }

    fn step(&mut self, source: &mut Unstructured) -> Result<()> {
        let what = source.int_in_range(0..=8u8)?;
        let count = count(source)?;
        self.moves += count;
        match what {
            0 => self.insert(1, distance(source)?, 0),
            1 => self.insert(count, distance(source)?, distance(source)?),
            2..=3 => self.replace(count, distance(source)?, distance(source)?),
            4 => (0..count).for_each(|_| self.model.remove_min()),
            5 => {
                let first = u32::from(source.arbitrary::<u16>()?);
                self.remove(first, count, source.int_in_range(1..=37)?);
            }
            6 => {
                // Before the smallest: a class whose clock was set back.
                let behind = distance(source)? % (1 << 40);
                if let Some(id) = self.free_id() {
                    let value = self.now().saturating_sub(behind);
                    self.model.insert(id, value);
                }
            }
            7 => self.model.wheel_from(wheel_from(source)?),
            _ => self.hints(),
        }
        Ok(())
    }

    fn remove(&mut self, first: u32, count: u32, stride: u32) {
        for i in 0..count {
            let id = (first + i * stride) % (WHEEL_CAPACITY * 2);
            if self.model.has(id) {
                self.model.remove(id);
            }
        }
    }

    /// Who is said to come is there, or has left its key behind.
    fn hints(&self) {
        for ahead in 0..32 {
            if let Some(id) = self.model.coming(ahead) {
                let known = self.model.has(id) || self.model.has_stale();
                assert!(known, "{id} is coming and not there");
            }
        }
    }
}

/// One, a few or hundreds.
fn count(source: &mut Unstructured) -> Result<u32> {
    Ok(match source.arbitrary::<u8>()? {
        few @ 0..=199 => u32::from(few % 40) + 1,
        many => (u32::from(many) - 199) * 20,
    })
}

/// Any number of bits long.
fn distance(source: &mut Unstructured) -> Result<u64> {
    let shift = source.int_in_range(0..=34u8)?;
    Ok(u64::from(source.arbitrary::<u8>()?) << shift)
}

fn wheel_from(source: &mut Unstructured) -> Result<u32> {
    Ok(match source.arbitrary::<u8>()? {
        255 => u32::MAX,
        few @ 0..=127 => few.into(),
        many => (u32::from(many) - 127) * 16,
    })
}

/// Near the wraps of a key's value (44 bits) and of its sign, or not.
fn start(source: &mut Unstructured) -> Result<u64> {
    let before = u64::from(source.arbitrary::<u16>()?) << source.int_in_range(0..=20u8)?;
    Ok(match source.int_in_range(0..=2u8)? {
        0 => 1 << 45,
        1 => (1 << 44) - before,
        _ => (1 << 43) - before.min(1 << 42),
    })
}
