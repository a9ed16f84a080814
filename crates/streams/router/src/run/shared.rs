// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state that the threads of a running router share.

use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use linux_io::packet::own_addresses;

use super::error::RunError;
use super::frame::Frame;
use super::neighbours::Neighbours;
use super::port::Port;
use crate::afxdp::Pool;
use crate::config::Config;
use crate::counters::Counters;
use crate::ebox::EventBox;
use crate::icmp::Limit;

/// Chunks for each device: enough for the burst of a period at 1 Gbit/s, and as many more that
/// AF_XDP holds to receive into.
const CHUNKS: u32 = 2048;
/// Most packets in one queue of a port.
pub(super) const QUEUE: u32 = 1024;

/// The parts of the router that have ended.
#[derive(Debug)]
pub(super) struct Ends {
    /// No more frames are received.
    pub receiving: AtomicBool,
    /// No more packets are routed.
    pub routing: AtomicBool,
    pub failed: AtomicBool,
}

/// The state that the threads share.
pub(super) struct Router<'a> {
    pub config: &'a Config,
    pub ports: Vec<Port>,
    /// Addresses of this host, each with its device.
    pub own_addresses: RwLock<Vec<(String, Ipv4Addr)>>,
    /// Rate limit of the ICMP errors.
    pub errors: Limit,
    pub neighbours: RwLock<Neighbours>,
    /// Received packets of streams; below, those of best effort.
    pub streams: EventBox<Frame>,
    pub best_effort: EventBox<Frame>,
    /// The memory of all frames.
    pub pool: Pool,
    pub counters: Counters,
    pub ends: Ends,
    pub threads: Mutex<Vec<String>>,
}

fn addresses(own: &[(String, Ipv4Addr)]) -> Vec<Ipv4Addr> {
    own.iter().map(|(_, address)| *address).collect()
}

impl<'a> Router<'a> {
    /// Opens the devices that the configuration names.
    pub fn open(config: &'a Config) -> Result<Self, RunError> {
        let devices = u32::try_from(config.devices.len()).unwrap_or(u32::MAX);
        let streams = u32::try_from(config.streams.len()).unwrap_or(u32::MAX);
        // Even full queues of all streams leave `CHUNKS` for each device: streams that send too
        // much take no chunks from others.
        let chunks = CHUNKS
            .saturating_mul(devices)
            .saturating_add(QUEUE.saturating_mul(streams));
        let pool = Pool::new(chunks)?;
        let frames = chunks as usize;
        let own_addresses = own_addresses()?;
        let devices = config.devices.iter();
        let own = addresses(&own_addresses);
        let ports = devices.map(|device| Port::open(device, &own, &pool, frames));
        let ports = ports.collect::<Result<_, _>>()?;
        Ok(Self {
            config,
            ports,
            own_addresses: RwLock::new(own_addresses),
            neighbours: RwLock::new(Neighbours::new(config)),
            errors: Limit::default(),
            streams: EventBox::new(frames),
            best_effort: EventBox::new(frames),
            pool,
            counters: Counters::default(),
            ends: Ends {
                receiving: AtomicBool::new(false),
                routing: AtomicBool::new(false),
                failed: AtomicBool::new(false),
            },
            threads: Mutex::default(),
        })
    }

    /// Reads this host's addresses again, because they can change while the router runs.
    pub fn take_own_addresses(&self) -> io::Result<()> {
        let own = own_addresses()?;
        let addresses = addresses(&own);
        self.ports.iter().for_each(|port| port.set_own(&addresses));
        *self
            .own_addresses
            .write()
            .unwrap_or_else(PoisonError::into_inner) = own;
        Ok(())
    }

    /// Reads the neighbours' MAC addresses, and asks again for those that are missing.
    pub fn ask_neighbours(&self) {
        let mut found = self
            .neighbours
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        found.look(self.config);
        *self
            .neighbours
            .write()
            .unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// Runs a thread. If it fails, the router ends.
    pub fn guard<T>(&self, thread: impl FnOnce(&Self) -> io::Result<T>) -> io::Result<T> {
        let result = thread(self);
        if result.is_err() {
            self.ends.failed.store(true, Ordering::Release);
        }
        result
    }
}
