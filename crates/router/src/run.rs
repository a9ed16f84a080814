// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of a running router.

mod forward;
mod neighbours;
mod threads;

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;

use live::clock::monotonic_ns;
use live::packet::{PacketSocket, own_addresses};
use live::signals::Signals;
use live::wait::readable;

use crate::config::Config;
use crate::counters::{Counters, DeviceReport, Report, StreamReport};
use crate::ebox::EventBox;
use crate::itm::Itm;
use forward::Buffer;
use neighbours::Neighbours;
use threads::{Ends, ip_thread, itm_thread, receive_thread, rt_ip_thread};

/// Buffers for each device: what a burst of a period at 1 Gbit/s needs.
const BUFFERS: usize = 2048;
/// Packets in one queue of a port.
const QUEUE: usize = 1024;
/// How often neighbours are asked for again.
const NEIGHBOURS_NS: u64 = 1_000_000_000;

/// Why a router does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A device that cannot be used.
    #[error("device {name}: {error}")]
    Device {
        /// Its name.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// Anything else of the system's.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A bug of ours.
    #[error("the {0} thread failed")]
    Thread(&'static str),
}

/// What threads share.
struct Router<'a> {
    config: &'a Config,
    ports: Vec<Port>,
    own_addresses: Vec<std::net::Ipv4Addr>,
    neighbours: RwLock<Neighbours>,
    /// Received packets of streams, and of best effort.
    streams: EventBox<Buffer>,
    best_effort: EventBox<Buffer>,
    free: Mutex<Vec<Buffer>>,
    counters: Counters,
    ends: Ends,
    threads: Mutex<Vec<String>>,
}

/// A device and what is to leave by it.
struct Port {
    socket: PacketSocket,
    /// From the IP and the RT-IP thread.
    routed: EventBox<Buffer>,
}

/// Forwards until SIGINT or SIGTERM, then sends what it has and says what
/// became of all packets. `ready` is called once packets are forwarded.
///
/// # Errors
/// A device that is not there or not allowed, or a failure of the system.
pub fn run(config: &Config, ready: impl FnOnce()) -> Result<Report, RunError> {
    let signals = Signals::block()?;
    let router = &Router::open(config)?;
    router.ask_neighbours();
    let itms = thread::scope(|threads| {
        let receivers: Vec<_> = (0..router.ports.len())
            .map(|port| threads.spawn(move || router.guard(|r| receive_thread(r, port))))
            .collect();
        let ip = threads.spawn(|| router.guard(ip_thread));
        let rt_ip = threads.spawn(|| router.guard(rt_ip_thread));
        let itm = threads.spawn(|| router.guard(itm_thread));
        ready();
        let waited = router.wait_for_end(&signals);
        // From the front to the back, so that nothing is left between.
        router.ends.receiving.store(true, Ordering::Release);
        let received = receivers.into_iter().map(thread::ScopedJoinHandle::join);
        let received: Vec<_> = received.collect();
        router.best_effort.close();
        router.streams.close();
        let routed = [("IP", ip.join()), ("RT-IP", rt_ip.join())];
        router.ends.routing.store(true, Ordering::Release);
        let itms = itm.join().map_err(|_| RunError::Thread("ITM"))??;
        waited?;
        for (name, ended) in routed {
            ended.map_err(|_| RunError::Thread(name))??;
        }
        for ended in received {
            ended.map_err(|_| RunError::Thread("receiving"))??;
        }
        Ok::<_, RunError>(itms)
    })?;
    Ok(router.report(&itms))
}

impl<'a> Router<'a> {
    fn open(config: &'a Config) -> Result<Self, RunError> {
        let mut ports = Vec::new();
        let frames = BUFFERS * config.devices.len();
        for device in &config.devices {
            let socket = PacketSocket::open(&device.name).map_err(|error| RunError::Device {
                name: device.name.clone(),
                error,
            })?;
            let routed = EventBox::new(frames);
            ports.push(Port { socket, routed });
        }
        Ok(Self {
            config,
            ports,
            own_addresses: own_addresses()?,
            neighbours: RwLock::new(Neighbours::new(config)),
            streams: EventBox::new(frames),
            best_effort: EventBox::new(frames),
            free: Mutex::new((0..frames).map(|_| Box::default()).collect()),
            counters: Counters::default(),
            ends: Ends {
                receiving: AtomicBool::new(false),
                routing: AtomicBool::new(false),
                failed: AtomicBool::new(false),
            },
            threads: Mutex::default(),
        })
    }

    fn wait_for_end(&self, signals: &Signals) -> io::Result<()> {
        let mut asked_ns = monotonic_ns()?;
        loop {
            readable(&[signals.as_fd()], NEIGHBOURS_NS)?;
            if signals.came()? || self.ends.failed.load(Ordering::Acquire) {
                return Ok(());
            }
            if monotonic_ns()?.saturating_sub(asked_ns) >= NEIGHBOURS_NS {
                self.ask_neighbours();
                asked_ns = monotonic_ns()?;
            }
        }
    }

    /// Looks who is there, and asks again for those who are not known.
    fn ask_neighbours(&self) {
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

    fn report(&self, itms: &[Itm<Buffer>]) -> Report {
        let mut streams = Vec::new();
        let mut devices = Vec::new();
        for (device, itm) in self.config.devices.iter().zip(itms) {
            let named = device.streams.iter().zip(itm.stream_counts());
            streams.extend(named.filter_map(|(index, counts)| {
                Some(StreamReport {
                    name: self.config.streams.get(*index)?.name.clone(),
                    device: device.name.clone(),
                    counts,
                })
            }));
            devices.push(DeviceReport {
                name: device.name.clone(),
                counts: itm.best_effort_counts(),
            });
        }
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let mut threads = threads.clone();
        threads.sort();
        Report {
            threads,
            counts: self.counters.counts(),
            streams,
            devices,
        }
    }
}
