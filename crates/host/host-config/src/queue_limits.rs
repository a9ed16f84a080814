// SPDX-License-Identifier: MIT OR Apache-2.0
//! Byte queue limits: `limit_min` of each transmit queue, below which the kernel does not let a
//! queue's limit shrink. A file says what it shall be; what it was before is kept until the file
//! wants nothing any more, and what others have set since then is left alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tcpsp::{Mode, QdiscOptions};
use units::queue_limit::{HELD_OFF_US, needed_bytes};

use crate::backend::Queues;
use crate::file::Device;
use crate::port::Port;

/// What `apply` has made of a transmit queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptLimit {
    /// `limit_min` before.
    pub before_bytes: u64,
    /// What it may be if nobody else has changed it: one value, or two while a change is made.
    pub set_bytes: Vec<u64>,
}

/// What `apply` has made of the transmit queues of a device, by their numbers.
pub type KeptLimits = BTreeMap<u16, KeptLimit>;

/// The byte queue limits of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueLimits {
    /// `limit_min` of each transmit queue; empty: the device has no byte queue limits.
    pub min_bytes: BTreeMap<u16, u64>,
    /// What `apply` has made of them.
    pub kept: KeptLimits,
}

/// What is wanted of the byte queue limits of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedLimits {
    /// What was there before.
    Before,
    /// This value at each queue.
    Bytes(u64),
    /// At each queue at least this value.
    AtLeast(u64),
    /// A value for each queue; others as they are.
    Each(BTreeMap<u16, u64>),
}

/// A change of `limit_min` of a transmit queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LimitChange {
    /// Number of the queue: N of `tx-N`.
    pub queue: u16,
    pub old_min_bytes: u64,
    /// What it shall be.
    pub min_bytes: u64,
}

impl LimitChange {
    /// Returns whether the queue gets longer. That comes before psp does, the opposite once psp has
    /// gone: gap frames never find a queue that is too short for them.
    pub fn is_raise(&self) -> bool {
        self.min_bytes > self.old_min_bytes
    }
}

/// The changes of the byte queue limits of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitPlan {
    pub changes: Vec<LimitChange>,
    /// What is kept before they are made, so that they can be taken back if they end in between.
    pub kept_meanwhile: KeptLimits,
    /// What is kept once they are made.
    pub kept: KeptLimits,
}

impl WantedLimits {
    /// Returns whether the file names the limits. If not, pacing does not depend on them, and goes on
    /// where they cannot be read or set.
    pub fn is_asked(&self) -> bool {
        matches!(self, Self::Bytes(_))
    }

    /// Returns what a file wants of a device. If the file says nothing, modes gap and hybrid want
    /// what the wire sends while interrupts are held off.
    pub fn new(device: &Device, port: &Port) -> Self {
        let QdiscOptions {
            mode,
            line_rate_bps,
            ..
        } = device.options;
        if let Some(bytes) = device.byte_queue_limit_min_bytes {
            return Self::Bytes(bytes);
        }
        let has_gap_frames =
            matches!(mode, Mode::Gap | Mode::Hybrid) && device.queues == Queues::Root;
        match line_rate_bps.or(port.speed_bps) {
            Some(line_bps) if has_gap_frames => Self::AtLeast(needed_bytes(line_bps, HELD_OFF_US)),
            _ => Self::Before,
        }
    }
}

impl QueueLimits {
    /// Returns the changes that lead to what is wanted. A queue that is absent, because the device
    /// uses fewer for now, comes back with the limit that it had: what is kept of it stays.
    pub fn plan(&self, wanted: &WantedLimits) -> LimitPlan {
        let mut absent = self.kept.clone();
        absent.retain(|queue, _| !self.min_bytes.contains_key(queue));
        let mut plan = LimitPlan {
            changes: Vec::new(),
            kept_meanwhile: absent.clone(),
            kept: absent,
        };
        for (queue, now) in &self.min_bytes {
            let kept = self.kept.get(queue);
            let ours = kept.filter(|kept| kept.set_bytes.contains(now));
            let before_bytes = ours.map_or(*now, |kept| kept.before_bytes);
            let min_bytes = match wanted {
                WantedLimits::Before => before_bytes,
                WantedLimits::Bytes(bytes) => *bytes,
                WantedLimits::AtLeast(bytes) => before_bytes.max(*bytes),
                WantedLimits::Each(all) => all.get(queue).copied().unwrap_or(*now),
            };
            if min_bytes != *now {
                plan.changes.push(LimitChange {
                    queue: *queue,
                    old_min_bytes: *now,
                    min_bytes,
                });
            }
            let keep = |set_bytes| KeptLimit {
                before_bytes,
                set_bytes,
            };
            if min_bytes != before_bytes {
                plan.kept.insert(*queue, keep(vec![min_bytes]));
            }
            let mut meanwhile = vec![min_bytes];
            meanwhile.extend(ours.is_some().then_some(*now));
            meanwhile.dedup();
            if min_bytes != before_bytes || ours.is_some() {
                plan.kept_meanwhile.insert(*queue, keep(meanwhile));
            }
        }
        plan
    }
}

/// Returns the lines of the changes that raise limits, or of those that lower them: one for all
/// queues with the same values.
pub fn limit_lines(changes: &[LimitChange], is_raise: bool) -> Vec<String> {
    let mut queues: BTreeMap<(u64, u64), Vec<u16>> = BTreeMap::new();
    for change in changes.iter().filter(|c| c.is_raise() == is_raise) {
        let values = (change.old_min_bytes, change.min_bytes);
        queues.entry(values).or_default().push(change.queue);
    }
    let line = |((old, new), queues): (&(u64, u64), &Vec<u16>)| {
        let queues = match &queues[..] {
            [queue] => format!("tx-{queue}"),
            all => format!("{} transmit queues", all.len()),
        };
        format!("change  byte_queue_limit_min of {queues}: {old} -> {new} bytes")
    };
    queues.iter().map(line).collect()
}
