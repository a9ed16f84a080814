// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps what is ours of devices, and puts it back: by hand, or since nobody has confirmed a change.

use std::io::{IsTerminal, stdin};
use std::path::Path;
use std::process::Child;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use host_config::{Port, QueueLimits, Saved, SavedDevice, WantedLimits};
use linux_io::links::{links, named};
use tcpsp::{Change, Tc};

use crate::applied;
use crate::confirm::{self, Outcome, Trial, left};
use crate::observe::Observed;
use crate::run_dir::{Lock, folder};
use crate::work::{Io, Wanted, Work, all_are_there, make_all, planned};

/// Refuses while changes wait to be confirmed, or are half taken back.
pub(crate) fn nothing_waits(folder: &Path) -> Result<()> {
    match left(folder) {
        None => Ok(()),
        Some(file) => bail!(
            "changes wait to be confirmed: `pspacer apply --confirmed` keeps them, `pspacer restore \
             {0}` and deleting {0} takes them back",
            file.display()
        ),
    }
}

/// Keeps the state before changes, and starts the guard.
pub(crate) fn begun(folder: &Path, work: &[Work]) -> Result<(Trial, Child)> {
    let devices = work
        .iter()
        .map(|work| (&work.device.observed, &work.limits.limits));
    for work in work {
        let device = &work.device;
        let mut changes = device.plan.changes.iter();
        if let Some(what) = changes.find_map(|change| of_others(&device.observed.port, change)) {
            bail!(
                "{}: {what} of others would go; without --confirm the change cannot be taken back",
                device.plan.device
            );
        }
    }
    let saved = saved(devices)
        .map_err(|reason| anyhow!("{reason}; without --confirm the change cannot be taken back"))?;
    let mut guard = std::process::Command::new(std::env::current_exe()?);
    guard.args(["restore", "--guard"]).arg(folder);
    Trial::begin(folder, &saved.write(), &mut guard)
}

/// Returns what of others a change takes away, which nobody has kept.
fn of_others(port: &Port, change: &Change) -> Option<String> {
    match change {
        Change::DeleteFilter { at, kind, .. } => {
            let filter = port.psp(at.qdisc)?.filter_at((at.priority, at.handle))?;
            let priority = at.priority;
            (!filter.is_ours()).then(|| format!("filter {kind} of priority {priority}"))
        }
        Change::DeleteClass { id } => {
            let class = port.psp(id.qdisc())?.classes.get(&id.minor())?;
            class.has_queue.then(|| format!("the queue of class {id}"))
        }
        _ => None,
    }
}

/// Asks whether changes that were made stay; takes back what was made of others. Their time begins
/// here.
pub(crate) fn tried(
    made: Result<()>,
    (trial, guard, after): (&Trial, &mut Child, Duration),
    lock: Lock,
    drain_ns: u64,
    (io, lines): (&mut Io<'_>, &[u8]),
) -> Result<()> {
    let mut back = |state: &str| put_back("the state before", state, drain_ns);
    let until_ns = match made.and_then(|()| confirm::made(guard, after)) {
        Ok(until_ns) => until_ns,
        Err(error) => {
            let decided = trial.decide(&lock, false, &mut back);
            // The error counts, whether or not somebody reads what was done before it.
            let _ = io.out.write_all(lines);
            return match decided {
                Ok(_) => Err(error.context("what was changed is taken back")),
                Err(left) => Err(error.context(format!("not all is taken back: {left:#}"))),
            };
        }
    };
    drop(lock);
    let written = io.out.write_all(lines);
    (io.note)(&format!(
        "pspacer: all is taken back in {} unless you confirm: Enter, or `pspacer apply --confirmed`",
        units::display::time(after.as_secs_f64())
    ));
    let input = stdin();
    if !input.is_terminal() {
        return Ok(written?);
    }
    let is_kept = trial.ask(&mut input.lock(), until_ns)?;
    let lock = Lock::take(&folder()?)?;
    said(trial.decide(&lock, is_kept, &mut back)?, io)
}

/// Says what has become of changes.
pub(crate) fn said(outcome: Outcome, io: &mut Io<'_>) -> Result<()> {
    match outcome {
        Outcome::Stay => (io.note)("pspacer: the changes stay"),
        Outcome::TakenBack => bail!("nobody confirmed the changes in time: they are taken back"),
    }
    Ok(())
}

/// Keeps what is ours of devices, and their byte queue limits.
pub(crate) fn saved<'a>(
    devices: impl Iterator<Item = (&'a Observed, &'a QueueLimits)> + Clone,
) -> Result<Saved, String> {
    let ports: Vec<_> = devices.clone().map(|(seen, _)| seen.port.clone()).collect();
    let mut saved = Saved::new(&ports)?;
    for (device, (_, limits)) in saved.devices.iter_mut().zip(devices) {
        device.byte_queue_limits_min_bytes = limits.min_bytes.clone();
        device.file = applied::text(&device.name);
    }
    Ok(saved)
}

/// What becomes of other devices where one cannot be put back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// Nothing changes before all of it is checked.
    Wait,
    /// They are put back: nobody may be there who could mend the file.
    GoOn,
}

/// Puts back a state, and says nothing.
pub(crate) fn put_back(name: &str, state: &str, drain_ns: u64) -> Result<()> {
    let mut quiet = Io {
        out: &mut std::io::sink(),
        note: &mut |_| (),
    };
    restored(name, state, Others::GoOn, drain_ns, &mut quiet)
}

/// Makes devices as a text says that they were.
pub(crate) fn restored(
    name: &str,
    text: &str,
    others: Others,
    drain_ns: u64,
    io: &mut Io<'_>,
) -> Result<()> {
    let saved = Saved::read(text).map_err(|reason| anyhow!("{name}: {reason}"))?;
    let mut tc = Tc::open()?;
    let links = links()?;
    let (mut work, mut absent, mut first) = (Vec::new(), Vec::new(), Ok(()));
    for device in &saved.devices {
        if named(&links, &device.name).is_none() {
            absent.push(device.name.clone());
            continue;
        }
        match planned_back(&mut tc, name, device) {
            Ok(planned) => work.push(planned),
            Err(error) if others == Others::Wait => return Err(error),
            Err(error) => first = first.and(Err(error)),
        }
    }
    for work in &mut work {
        let made = make_all(&mut tc, std::slice::from_mut(work), drain_ns, io);
        if others == Others::Wait {
            made?;
        } else {
            first = first.and(made);
        }
    }
    first?;
    match others {
        Others::Wait => all_are_there(&absent),
        // What has gone has nothing that could be taken back.
        Others::GoOn => Ok(()),
    }
}

/// Plans a device as it was saved.
fn planned_back(tc: &mut Tc, name: &str, device: &SavedDevice) -> Result<Work> {
    let target = device.target();
    let mut target = target.map_err(|reason| anyhow!("{name}: {reason}"))?;
    let limits = WantedLimits::Each(device.byte_queue_limits_min_bytes.clone());
    let wanted = |observed: &Observed| {
        let note = target.spread(observed.port.queues);
        let mut wanted = Wanted::only(target);
        wanted.notes.extend(note);
        Ok((wanted, limits))
    };
    let mut work = planned(tc, &device.name, wanted, false)?;
    work.text = device.file.as_deref().map(Rc::from);
    Ok(work)
}
