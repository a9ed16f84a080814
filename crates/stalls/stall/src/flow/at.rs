// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identifies when something was captured.

use std::num::NonZeroU64;

use super::packed::fields;

/// A packet's time, in ns, and number, which counts from 1: an `Option` takes no more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) now: u64,
    pub(crate) packet: NonZeroU64,
}

impl At {
    pub(crate) fn new(now: u64, packet: u64) -> Self {
        Self {
            now,
            packet: NonZeroU64::new(packet).unwrap_or(NonZeroU64::MIN),
        }
    }
}

fields!(At { now, packet });
