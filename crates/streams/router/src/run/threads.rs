// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of a running router.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linux_io::clock::{monotonic_ns, sleep_until};
use linux_io::priority::{Scheduling, schedule};
use linux_io::wait::readable;

use super::frame::Frame;
use super::shared::{QUEUE, Router};
use crate::config::Device;
use crate::ebox::{Listen, Notify};
use crate::fragments::Fragments;
use crate::itm::Itm;

/// Priority of the receiving threads: above the periodic threads, as the papers' second level
/// interrupt handler.
const RECEIVE_PRIORITY: u8 = 75;
/// Priority of the periodic threads where SCHED_DEADLINE is refused.
const PERIODIC_PRIORITY: u8 = 70;
/// Priority of the IP thread, the lowest: best effort must not delay streams.
const IP_PRIORITY: u8 = 60;
/// Slots of a period. A periodic thread has a slot of a tenth of the period, as the paper's 1 ms of
/// 10 ms; the ITM thread's slot follows the RT-IP thread's.
const SLOTS: u64 = 10;
/// Longest wait of a receiving thread before it checks whether it should end.
const IDLE_NS: u64 = 50_000_000;
/// Periods for which queued packets may still leave at the end.
const DRAIN_PERIODS: u32 = 200;

/// The times at which a periodic thread runs.
struct Period {
    due_ns: u64,
    period_ns: u64,
}

impl Period {
    /// Begins `slot` slots after the next multiple of the period on the clock: all routers of a
    /// host are in phase.
    fn new(period_ns: u64, slot: u64) -> io::Result<Self> {
        let whole = monotonic_ns()? / period_ns + 1;
        Ok(Self {
            due_ns: whole * period_ns + slot * (period_ns / SLOTS),
            period_ns,
        })
    }

    /// Waits for the next period. Returns how many were missed meanwhile: they are skipped, and
    /// their reservations are late.
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

/// Receives the frames of a device (the paper's SLIH thread).
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
    // The thread does not yield: it waits for its device when it has no more frames, and a yield
    // after the first of two boxes would delay the second.
    let events = match frame.stream {
        Some(_) => &router.streams,
        None => &router.best_effort,
    };
    if events.notify(frame, Notify::Stay).is_err() {
        router.counters.box_full.add(1);
    }
}

/// Routes best effort packets as they arrive.
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

/// Sends once a period what each reservation and the budget allow. Returns the queues, for their
/// counts.
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
                // The queue itself counts a frame that finds it full.
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

/// Returns a stream's index among the streams of a device. If a longer prefix leads some packets of
/// a stream to another device, the stream has no reservation there: those packets are best effort.
fn place(streams: &[usize], stream: usize) -> Option<usize> {
    streams.iter().position(|s| *s == stream)
}
