// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of a running router.

mod forward;
mod neighbours;
mod port;
mod threads;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;

use afxdp::Pool;
use linux_io::clock::monotonic_ns;
use linux_io::packet::own_addresses;
use linux_io::signals::Signals;
use linux_io::wait::readable;

use crate::config::Config;
use crate::counters::{Counters, DeviceReport, Report, StreamReport};
use crate::ebox::EventBox;
use crate::icmp::Limit;
use crate::itm::Itm;
use forward::Frame;
use neighbours::Neighbours;
use port::Port;
use threads::{Ends, ip_thread, itm_thread, receive_thread, rt_ip_thread};

/// Chunks for each device: what a burst of a period at 1 Gbit/s needs, and as
/// many that wait to be received into by AF_XDP.
const CHUNKS: u32 = 2048;
/// Packets in one queue of a port.
const QUEUE: u32 = 1024;
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
    /// What AF_PACKET asks for.
    #[error(
        "device {name}: {error}: AF_PACKET needs CAP_NET_RAW (of the network namespace's \
         owner); run it as root, or: setcap cap_net_raw,cap_sys_nice+ep on pspacer"
    )]
    Rights {
        /// Its name.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// Each packet would be sent twice.
    #[error(
        "device {name}: the kernel forwards its IPv4 packets too, and by AF_PACKET both would \
         send each: expected 0 in {path}, as by: sysctl -w net.ipv4.ip_forward=0"
    )]
    Forwards {
        /// Its name.
        name: String,
        /// Where the kernel says so.
        path: String,
    },
    /// A device that is to be used by AF_XDP alone.
    #[error("device {name}: no AF_XDP (`io` is \"xdp\"): {error}")]
    NoXdp {
        /// Its name.
        name: String,
        /// Why not.
        error: afxdp::Error,
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
    /// Each with its device.
    own_addresses: RwLock<Vec<(String, Ipv4Addr)>>,
    /// How many errors senders are told.
    errors: Limit,
    neighbours: RwLock<Neighbours>,
    /// Received packets of streams, and of best effort.
    streams: EventBox<Frame>,
    best_effort: EventBox<Frame>,
    /// Where all frames are.
    pool: Pool,
    counters: Counters,
    ends: Ends,
    threads: Mutex<Vec<String>>,
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

fn addresses(own: &[(String, Ipv4Addr)]) -> Vec<Ipv4Addr> {
    own.iter().map(|(_, address)| *address).collect()
}

impl<'a> Router<'a> {
    fn open(config: &'a Config) -> Result<Self, RunError> {
        let devices = u32::try_from(config.devices.len()).unwrap_or(u32::MAX);
        let streams = u32::try_from(config.streams.len()).unwrap_or(u32::MAX);
        // Streams that send too much fill their queues, and no others.
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

    fn wait_for_end(&self, signals: &Signals) -> io::Result<()> {
        let mut asked_ns = monotonic_ns()?;
        loop {
            readable(&[signals.as_fd()], NEIGHBOURS_NS)?;
            if signals.came()? || self.ends.failed.load(Ordering::Acquire) {
                return Ok(());
            }
            if monotonic_ns()?.saturating_sub(asked_ns) >= NEIGHBOURS_NS {
                self.take_own_addresses()?;
                self.ask_neighbours();
                asked_ns = monotonic_ns()?;
            }
        }
    }

    /// Addresses come and go while the router runs.
    fn take_own_addresses(&self) -> io::Result<()> {
        let own = own_addresses()?;
        let addresses = addresses(&own);
        self.ports.iter().for_each(|port| port.set_own(&addresses));
        *self
            .own_addresses
            .write()
            .unwrap_or_else(PoisonError::into_inner) = own;
        Ok(())
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

    fn report(&self, itms: &[Itm<Frame>]) -> Report {
        let mut streams = Vec::new();
        let mut devices = Vec::new();
        let ports = self.config.devices.iter().zip(&self.ports);
        for ((device, port), itm) in ports.zip(itms) {
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
                io: port.to_string(),
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
