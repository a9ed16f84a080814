// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each thread does.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linux_io::clock::{monotonic_ns, sleep_until};
use linux_io::priority::{Scheduling, schedule};
use linux_io::wait::readable;

use crate::config::Device;
use crate::ebox::{Listen, Notify};
use crate::fragments::Fragments;
use crate::itm::Itm;

use super::frame::Frame;
use super::shared::{QUEUE, Router};

/// Above the periodic threads, as the papers' second level interrupt handler.
const RECEIVE_PRIORITY: u8 = 75;
/// Of the periodic threads where SCHED_DEADLINE is refused.
const PERIODIC_PRIORITY: u8 = 70;
/// Best effort must not delay streams.
const IP_PRIORITY: u8 = 60;
/// Periodic threads have a slot of a tenth of the period, as the paper's 1 ms of
/// 10 ms; the ITM thread's is the one after the RT-IP thread's.
const SLOTS: u64 = 10;
/// How long a receiving thread waits before it looks whether it should end.
const IDLE_NS: u64 = 50_000_000;
/// Periods in which what is queued may still leave at the end.
const DRAIN_PERIODS: u32 = 200;

/// When a periodic thread runs.
struct Period {
    due_ns: u64,
    period_ns: u64,
}

impl Period {
    /// From the next whole period of the clock on, `slot` slots later: all
    /// routers of a host are in phase.
    fn new(period_ns: u64, slot: u64) -> io::Result<Self> {
        let whole = monotonic_ns()? / period_ns + 1;
        Ok(Self {
            due_ns: whole * period_ns + slot * (period_ns / SLOTS),
            period_ns,
        })
    }

    /// Waits for the next period. How many were missed meanwhile: they are left
    /// out, and what was reserved in them is late.
    fn wait(&mut self) -> io::Result<u64> {
        sleep_until(self.due_ns)?;
        let late_ns = monotonic_ns()?.saturating_sub(self.due_ns);
        let missed = late_ns / self.period_ns;
        self.due_ns += (missed + 1) * self.period_ns;
        Ok(missed)
    }
}

impl Router<'_> {
    fn begin(&self, name: &str, wishes: &[Scheduling]) {
        let granted = schedule(wishes);
        let line = format!("{name}: {granted}");
        self.threads
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line);
    }

    fn begin_periodic(&self, name: &str) {
        let period = Duration::from_nanos(self.config.period_ns);
        let runtime = period / 5;
        self.begin(
            name,
            &[
                Scheduling::Deadline { runtime, period },
                Scheduling::Fifo(PERIODIC_PRIORITY),
            ],
        );
    }

    /// Routes all frames and hands them to their ports.
    fn hand_over(&self, frames: &mut VecDeque<Frame>) {
        for mut frame in frames.drain(..) {
            let port = self.route(&mut frame).and_then(|p| self.ports.get(p));
            if port.is_some_and(|port| port.routed.notify(frame, Notify::Stay).is_err()) {
                self.counters.box_full.add(1);
            }
        }
    }
}

/// Takes what a device receives (the paper's SLIH thread).
pub(super) fn receive_thread(router: &Router<'_>, index: usize) -> io::Result<()> {
    let device = router.config.devices.get(index);
    let Some((port, device)) = router.ports.get(index).zip(device) else {
        return Ok(());
    };
    let name = format!("receive from {}", device.name);
    router.begin(&name, &[Scheduling::Fifo(RECEIVE_PRIORITY)]);
    let mut fragments = Fragments::default();
    while !router.ends.receiving.load(Ordering::Acquire) {
        readable(&[port.as_fd()], IDLE_NS)?;
        port.receive(&router.pool, &router.counters, |frame| {
            take(router, index, frame, &mut fragments);
        })?;
    }
    port.count_dropped(&router.counters);
    Ok(())
}

fn take(router: &Router<'_>, port: usize, mut frame: Frame, fragments: &mut Fragments) {
    if !router.classify(port, &mut frame, fragments) {
        return;
    }
    // This thread goes on: it waits for its device when it has no more, and a
    // yield after the first of two boxes would delay the second.
    let events = match frame.stream {
        Some(_) => &router.streams,
        None => &router.best_effort,
    };
    if events.notify(frame, Notify::Stay).is_err() {
        router.counters.box_full.add(1);
    }
}

/// Routes best effort as it comes.
pub(super) fn ip_thread(router: &Router<'_>) -> io::Result<()> {
    router.begin("IP", &[Scheduling::Fifo(IP_PRIORITY)]);
    let mut frames = VecDeque::new();
    while router.best_effort.listen(Listen::Block, &mut frames) {
        router.hand_over(&mut frames);
    }
    Ok(())
}

/// Routes streams once a period.
pub(super) fn rt_ip_thread(router: &Router<'_>) -> io::Result<()> {
    router.begin_periodic("RT-IP");
    let mut frames = VecDeque::new();
    let mut period = Period::new(router.config.period_ns, 0)?;
    while router.streams.listen(Listen::NonBlock, &mut frames) {
        router.hand_over(&mut frames);
        router.counters.periods_missed.add(period.wait()?);
    }
    Ok(())
}

/// Sends once a period what each reservation and the budget allow. Gives the
/// queues back for their counts.
pub(super) fn itm_thread(router: &Router<'_>) -> io::Result<Vec<Itm<Frame>>> {
    router.begin_periodic("ITM");
    let config = router.config;
    let queues = |device: &Device| {
        let reserve_bytes = config.reserve_bytes(device);
        Itm::new(device.budget_bytes, &reserve_bytes, QUEUE as usize)
    };
    let mut itms: Vec<_> = config.devices.iter().map(queues).collect();
    let mut frames = VecDeque::new();
    let mut period = Period::new(config.period_ns, 1)?;
    let mut draining = 0;
    loop {
        let missed = period.wait()?;
        router.counters.periods_missed.add(missed);
        itms.iter_mut().for_each(|itm| itm.missed(missed));
        let ending = router.ends.routing.load(Ordering::Acquire);
        let mut left = 0;
        for ((port, device), itm) in router.ports.iter().zip(&config.devices).zip(&mut itms) {
            port.routed.listen(Listen::NonBlock, &mut frames);
            for frame in frames.drain(..) {
                let stream = frame.stream.and_then(|s| place(&device.streams, s));
                // One that finds no room is counted there.
                let _ = itm.push(stream, frame);
            }
            itm.period(|frame| {
                if port.send(frame).is_err() {
                    router.counters.send_failed.add(1);
                }
            });
            left += itm.waiting() + port.flush();
        }
        draining += u32::from(ending);
        if ending && (left == 0 || draining > DRAIN_PERIODS) {
            router.counters.undelivered.add(left as u64);
            return Ok(itms);
        }
    }
}

/// A stream's place among those of its device. One that leaves by another
/// device, because a longer prefix leads some of its packets there, has no
/// reservation at that one and is best effort.
fn place(streams: &[usize], stream: usize) -> Option<usize> {
    streams.iter().position(|s| *s == stream)
}
