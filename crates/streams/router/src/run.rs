// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of a running router.

mod error;
mod forward;
mod frame;
mod neighbours;
mod port;
mod shared;
mod threads;

use std::io;
use std::os::fd::AsFd;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;

use frame::Frame;
use linux_io::clock::monotonic_ns;
use linux_io::signals::Signals;
use linux_io::wait::readable;
use shared::Router;
use threads::{ip_thread, itm_thread, receive_thread, rt_ip_thread};
use units::time::NS_PER_S;

use crate::config::Config;
use crate::counters::{DeviceReport, Report, StreamReport};
use crate::itm::Itm;

pub use error::RunError;

/// Time from one request for the neighbours' MAC addresses to the next.
const NEIGHBOURS_NS: u64 = NS_PER_S;

/// Forwards until SIGINT or SIGTERM, then sends the queued packets and returns the counts of all
/// packets. `ready` is called once packets are forwarded.
///
/// # Errors
/// If a device is missing or may not be used, or the system fails.
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
        // The threads end in the order of the packets' path, so that no packet is left between two.
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

impl Router<'_> {
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
