// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans devices, with their byte queue limits, and makes the changes.

use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};
use host_config::{
    Backend, Beside, Device, LaunchReport, Queues, Target, WantedLimits, backend_notes,
    check_backend, launches as launches_of, limit_lines,
};
use tcpsp::Tc;

use crate::applied;
use crate::choice::choose;
use crate::device::DeviceWork;
use crate::observe::{Observed, observe};
use crate::queue_limits;

/// Where results and notes go, of the agent's too.
pub struct Io<'a> {
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Says what a person should know.
    pub note: &'a mut dyn FnMut(&str),
}

/// A device and its changes, byte queue limits with them.
pub(crate) struct Work {
    pub(crate) device: DeviceWork,
    pub(crate) limits: queue_limits::Work,
    /// The file that says so.
    pub(crate) text: Option<Rc<str>>,
}

impl Work {
    pub(crate) fn changes(&self) -> usize {
        self.device.changes() + self.device.beside.byte_queue_limits.len()
    }
}

/// What a device shall have, what is known of launch times, and what a person should know.
pub(crate) struct Wanted {
    target: Target,
    launches: Vec<LaunchReport>,
    pub(crate) notes: Vec<String>,
}

impl Wanted {
    pub(crate) fn only(target: Target) -> Self {
        Self {
            target,
            launches: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Says which devices of the files are not there, once the others are done.
pub(crate) fn all_are_there(absent: &[String]) -> Result<()> {
    ensure!(
        absent.is_empty(),
        "{}: no such device; the others are done",
        absent.join(", ")
    );
    Ok(())
}

pub(crate) fn make_all(
    tc: &mut Tc,
    work: &mut [Work],
    drain_ns: u64,
    io: &mut Io<'_>,
) -> Result<()> {
    let drain = Duration::from_nanos(drain_ns);
    let out = &mut *io.out;
    // Whoever has read enough, as `head` has, does not end changes amid them.
    let mut written = Ok(());
    let mut say = |line: &str| {
        if written.is_ok() {
            written = writeln!(out, "{line}");
        }
    };
    for work in work {
        // The plan was tried: what ends amid it goes on from there, by this file.
        applied::note(&work.device.plan.device, work.text.as_deref())?;
        work.device.begin(tc, &mut say)?;
        make_limits(work, true, &mut say)?;
        work.device.make(tc, drain, &mut say)?;
        make_limits(work, false, &mut say)?;
    }
    Ok(written?)
}

/// Raises byte queue limits, or lowers them.
fn make_limits(work: &mut Work, is_raise: bool, say: &mut dyn FnMut(&str)) -> Result<()> {
    if work.limits.has_failed {
        return Ok(());
    }
    let device = &work.device.plan.device;
    for line in limit_lines(&work.device.beside.byte_queue_limits, is_raise) {
        say(&format!("{device}: {line}"));
    }
    let made = work.limits.make(is_raise);
    let note = made.map_err(|error| {
        anyhow!("{device}: {error:#}; the same command again goes on from there")
    })?;
    if let Some(note) = note {
        say(&format!("{device}: note: {note}"));
    }
    Ok(())
}

pub(crate) fn planned(
    tc: &mut Tc,
    device: &str,
    wanted: impl FnOnce(&Observed) -> Result<(Wanted, WantedLimits)>,
    take_over: bool,
) -> Result<Work> {
    let observed = observe(tc, device)?;
    let (wanted, wanted_limits) = wanted(&observed)?;
    let (limits, limit_note) = queue_limits::Work::new(&observed, &wanted_limits)?;
    let has_none = limits.limits.min_bytes.is_empty();
    if let (WantedLimits::Bytes(bytes), true) = (&wanted_limits, has_none) {
        bail!(
            "{device}: `byte_queue_limit_min` is {bytes} bytes, expected none: the kernel shows no \
             byte queue limits of this device"
        );
    }
    let Wanted {
        target,
        launches,
        notes,
    } = wanted;
    let mut device = DeviceWork::new(tc, observed, target, notes, take_over)?;
    device.plan.notes.extend(limit_note);
    device.beside = Beside {
        launches,
        byte_queue_limits: limits.plan.changes.clone(),
    };
    Ok(Work {
        device,
        limits,
        text: None,
    })
}

/// Plans a device by its table.
pub(crate) fn work_on(tc: &mut Tc, device: &Device, take_over: bool) -> Result<Work> {
    let wanted = |observed: &Observed| {
        let (backend, why) = choose(device.backend)?;
        let check = check_backend(device, backend, observed.port.is_ethernet);
        check.map_err(|refusal| match &why {
            Some(why) => anyhow!("{refusal} ({why})"),
            None => anyhow!(refusal),
        })?;
        ensure!(
            device.queues == Queues::Root || observed.is_multiqueue,
            "{}: `queues` is \"mq\", expected \"root\": the device has one transmit queue",
            device.name
        );
        let target = Target::new(device, backend, &observed.port);
        let speed_bps = observed.port.speed_bps;
        let (launches, limits) = if backend == Backend::Module {
            (
                launches_of(device, speed_bps, observed.max_frame_bytes)?,
                WantedLimits::new(device, &observed.port),
            )
        } else {
            (Vec::new(), WantedLimits::Before)
        };
        let notes = backend_notes(device, backend, observed.burst_bytes);
        let notes = why.into_iter().chain(notes);
        let wanted = Wanted {
            notes: notes.collect(),
            launches,
            target,
        };
        Ok((wanted, limits))
    };
    planned(tc, &device.name, wanted, take_over)
}
