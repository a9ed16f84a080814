// SPDX-License-Identifier: MIT OR Apache-2.0
//! One cause, one counter.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::itm::{BestEffortCounts, StreamCounts};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of the running threads.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub $name: Counter,)*
        }

        /// What became of frames, before they were in a port's queues.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            pub fn counts(&self) -> Counts {
                Counts { $($name: self.$name.get(),)* }
            }
        }
    };
}

counters! {
    /// Frames of IPv4 that devices received; by AF_PACKET our host's own among
    /// them.
    received,
    /// To other MAC addresses, to many, or to this host.
    not_ours,
    /// No sound IPv4 header.
    invalid,
    /// Longer than a frame: switch segmentation off where it comes from.
    oversize,
    /// All chunks were in use; by AF_XDP also what was longer than one.
    no_buffer,
    /// No hop left.
    ttl,
    /// Longer than the next hop's network takes (the MTU of the device towards it).
    too_long,
    /// No route.
    no_route,
    /// The next hop did not report its MAC address.
    no_neighbour,
    /// ICMP errors sent: to senders of packets that could not be forwarded.
    icmp_sent,
    /// ICMP errors not sent, because there were too many.
    icmp_limited,
    /// No room in a box between threads.
    box_full,
    /// The device did not take a frame.
    send_failed,
    /// Periods at which the RT-IP or the ITM thread woke a period late or more.
    periods_missed,
    /// Packets that were still queued when the router ended.
    undelivered,
}

/// A number that threads count up.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, count: u64) {
        // Only the number matters, no order with anything else.
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    /// Its name.
    pub name: String,
    /// Device that it leaves by.
    pub device: String,
    /// What became of it.
    #[serde(flatten)]
    pub counts: StreamCounts,
}

/// Of a device and its best effort.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceReport {
    /// Its name.
    pub name: String,
    /// How it was used: AF_XDP or AF_PACKET, and why.
    pub io: String,
    /// What became of it.
    #[serde(flatten)]
    pub counts: BestEffortCounts,
}

/// Everything; as JSON, `docs/formats.md`, "Router".
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How each thread was scheduled.
    pub threads: Vec<String>,
    /// Of frames.
    #[serde(flatten)]
    pub counts: Counts,
    /// Of streams.
    pub streams: Vec<StreamReport>,
    /// Of devices.
    pub devices: Vec<DeviceReport>,
}
