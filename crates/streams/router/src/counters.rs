// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of the router: every cause has its own.

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

        /// Counts of frames by what happened to them before they reached a port's queues.
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
    /// IPv4 frames that devices received; with AF_PACKET these include the frames that this host
    /// itself receives.
    received,
    /// Frames to other MAC addresses, to multicast or broadcast addresses, or to this host.
    not_ours,
    /// Frames without a valid IPv4 header.
    invalid,
    /// Packets longer than a frame: switch segmentation off at the host that sends them.
    oversize,
    /// Frames that found no free chunk; with AF_XDP also frames that are longer than a chunk.
    no_buffer,
    /// Packets whose TTL ended here.
    ttl,
    /// Packets that exceed the MTU of the device towards the next hop.
    too_long,
    /// Packets without a route.
    no_route,
    /// Packets whose next hop did not report its MAC address.
    no_neighbour,
    /// ICMP errors sent to the senders of packets that could not be forwarded.
    icmp_sent,
    /// ICMP errors not sent, because the rate limit was reached.
    icmp_limited,
    /// Packets that found an event box between threads full.
    box_full,
    /// Frames that the device did not accept.
    send_failed,
    /// Periods at which the RT-IP or the ITM thread woke a period late or more.
    periods_missed,
    /// Packets that were still queued when the router ended.
    undelivered,
}

/// A number that several threads increment.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, count: u64) {
        // Only the number matters: it needs no order with other memory accesses.
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Results of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    pub name: String,
    /// Device through which it leaves.
    pub device: String,
    /// Counts of its packets.
    #[serde(flatten)]
    pub counts: StreamCounts,
}

/// Results of a device and its best effort.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceReport {
    pub name: String,
    /// How frames were exchanged with it: AF_XDP or AF_PACKET, and why.
    pub io: String,
    #[serde(flatten)]
    pub counts: BestEffortCounts,
}

/// Results of a router's run; as JSON, `docs/use/formats.md`, "Router".
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How each thread was scheduled.
    pub threads: Vec<String>,
    #[serde(flatten)]
    pub counts: Counts,
    /// Results of the streams.
    pub streams: Vec<StreamReport>,
    /// Results of the devices.
    pub devices: Vec<DeviceReport>,
}
