// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the subcommands do.

use std::fs;
use std::io::{IsTerminal, Write, stdin};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use host_config::{
    Backend, Beside, ClassNames, Device, LaunchReport, QueueLimits, Queues, Saved, Target,
    WantedLimits, backend_notes, check_backend, launches as launches_of, limit_lines,
};
use linux_io::links::{links, named};
use psp_files::read::text;
use serde::Serialize;
use tcpsp::Tc;
use units::nearest::hint;

use crate::applied;
use crate::args::{ApplyArgs, Chosen, PlanArgs, RemoveArgs, RestoreArgs, SaveArgs};
use crate::choice::choose;
use crate::confirm::{self, LOOK, Outcome, Trial, guard, left};
use crate::device::DeviceWork;
use crate::observe::{Observed, observe, ours};
use crate::queue_limits;
use crate::read;
use crate::run_dir::{Lock, folder};

/// Where files are if none is named.
const FOLDER: &str = "/etc/pspacer";

/// Where results and notes go, of the agent's too.
pub struct Io<'a> {
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Says what a person should know.
    pub note: &'a mut dyn FnMut(&str),
}

/// The JSON object of `plan --json`.
#[derive(Serialize)]
struct Json<'a> {
    format: &'static str,
    devices: Vec<&'a DeviceWork>,
}

/// A device and its changes, byte queue limits with them.
pub(crate) struct Work {
    pub(crate) device: DeviceWork,
    limits: queue_limits::Work,
    /// The file that says so.
    pub(crate) text: Option<Rc<str>>,
}

impl Work {
    pub(crate) fn changes(&self) -> usize {
        self.device.changes() + self.device.beside.byte_queue_limits.len()
    }
}

/// What a device shall have, what is known of launch times, and what a person should know.
struct Wanted {
    target: Target,
    launches: Vec<LaunchReport>,
    notes: Vec<String>,
}

impl Wanted {
    fn only(target: Target) -> Self {
        Self {
            target,
            launches: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Prints what `apply` would change.
///
/// # Errors
/// A fault in a file, or what is in the way.
pub fn plan(args: &PlanArgs, io: &mut Io<'_>) -> Result<()> {
    let (work, absent) = work(&mut Tc::open()?, &args.chosen)?;
    show(&work, args.json, io)?;
    all_are_there(&absent)
}

/// Says which devices of the files are not there, once the others are done.
fn all_are_there(absent: &[String]) -> Result<()> {
    ensure!(
        absent.is_empty(),
        "{}: no such device; the others are done",
        absent.join(", ")
    );
    Ok(())
}

fn show(work: &[Work], json: bool, io: &mut Io<'_>) -> Result<()> {
    if json {
        let json = Json {
            format: "pspacer-plan-1",
            devices: work.iter().map(|work| &work.device).collect(),
        };
        serde_json::to_writer_pretty(&mut *io.out, &json)?;
        writeln!(io.out)?;
        return Ok(());
    }
    for work in work {
        io.out.write_all(work.device.text().as_bytes())?;
    }
    Ok(())
}

/// Makes the kernel agree with the files.
///
/// # Errors
/// A fault in a file, what is in the way, or the kernel's refusal.
pub fn apply(args: &ApplyArgs, io: &mut Io<'_>) -> Result<()> {
    if args.dry_run {
        let (work, absent) = work(&mut Tc::open()?, &args.chosen)?;
        show(&work, false, io)?;
        return all_are_there(&absent);
    }
    let folder = folder()?;
    let lock = Lock::take(&folder)?;
    if args.confirmed {
        let trial = Trial::waiting(&folder)?.context("no change waits to be confirmed")?;
        return said(trial.decide(&lock, true, &mut |_| Ok(()))?, io);
    }
    let mut tc = Tc::open()?;
    nothing_waits(&folder)?;
    let (mut work, absent) = work(&mut tc, &args.chosen)?;
    let changes: usize = work.iter().map(Work::changes).sum();
    let confirm = args
        .confirm
        .filter(|_| changes > 0)
        .map(Duration::from_nanos);
    let mut trial = match confirm {
        Some(_) => Some(begun(&folder, &work)?),
        None => None,
    };
    let made = make_all(&mut tc, &mut work, args.drain, io);
    if changes == 0 {
        (io.note)("pspacer: nothing to change");
    }
    if let (Some(after), Some((trial, guard))) = (confirm, &mut trial) {
        tried(made, (trial, guard, after), lock, args.drain, io)
    } else {
        made
    }?;
    all_are_there(&absent)
}

/// Refuses while changes wait to be confirmed, or are half taken back.
fn nothing_waits(folder: &Path) -> Result<()> {
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
fn begun(folder: &Path, work: &[Work]) -> Result<(Trial, Child)> {
    let devices = work
        .iter()
        .map(|work| (&work.device.observed, &work.limits.limits));
    let saved = saved(devices)
        .map_err(|reason| anyhow!("{reason}; without --confirm the change cannot be taken back"))?;
    let mut guard = std::process::Command::new(std::env::current_exe()?);
    guard.args(["restore", "--guard"]).arg(folder);
    Trial::begin(folder, &saved.write(), &mut guard)
}

/// Asks whether changes that were made stay; takes back what was made of others. Their time begins
/// here.
fn tried(
    made: Result<()>,
    (trial, guard, after): (&Trial, &mut Child, Duration),
    lock: Lock,
    drain_ns: u64,
    io: &mut Io<'_>,
) -> Result<()> {
    let mut back = |state: &str| put_back("the state before", state, drain_ns);
    let until_ns = match made.and_then(|()| confirm::made(guard, after)) {
        Ok(until_ns) => until_ns,
        Err(error) => {
            return match trial.decide(&lock, false, &mut back) {
                Ok(_) => Err(error.context("what was changed is taken back")),
                Err(left) => Err(error.context(format!("not all is taken back: {left:#}"))),
            };
        }
    };
    drop(lock);
    (io.note)(&format!(
        "pspacer: all is taken back in {} unless you confirm: Enter, or `pspacer apply --confirmed`",
        units::display::time(after.as_secs_f64())
    ));
    let input = stdin();
    if !input.is_terminal() {
        return Ok(());
    }
    let is_kept = trial.ask(&mut input.lock(), until_ns)?;
    let lock = Lock::take(&folder()?)?;
    said(trial.decide(&lock, is_kept, &mut back)?, io)
}

/// Says what has become of changes.
fn said(outcome: Outcome, io: &mut Io<'_>) -> Result<()> {
    match outcome {
        Outcome::Stay => (io.note)("pspacer: the changes stay"),
        Outcome::TakenBack => bail!("nobody confirmed the changes in time: they are taken back"),
    }
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
    let mut say = |line: &str| Ok(writeln!(out, "{line}")?);
    for work in work {
        work.device.begin(tc, &mut say)?;
        make_limits(work, true, &mut say)?;
        work.device.make(tc, drain, &mut say)?;
        make_limits(work, false, &mut say)?;
        applied::note(&work.device.plan.device, work.text.as_deref())?;
    }
    Ok(())
}

/// Raises byte queue limits, or lowers them.
fn make_limits(
    work: &mut Work,
    is_raise: bool,
    say: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<()> {
    if work.limits.has_failed {
        return Ok(());
    }
    let device = &work.device.plan.device;
    for line in limit_lines(&work.device.beside.byte_queue_limits, is_raise) {
        say(&format!("{device}: {line}"))?;
    }
    match work.limits.make(is_raise) {
        Err(error) => Err(anyhow!(
            "{device}: {error:#}; the same command again goes on from there"
        )),
        Ok(Some(note)) => say(&format!("{device}: note: {note}")),
        Ok(None) => Ok(()),
    }
}

/// Keeps what is ours of devices, and their byte queue limits.
fn saved<'a>(
    devices: impl Iterator<Item = (&'a Observed, &'a QueueLimits)> + Clone,
) -> Result<Saved, String> {
    let ports: Vec<_> = devices.clone().map(|(seen, _)| seen.port.clone()).collect();
    let mut saved = Saved::new(&ports)?;
    for (device, (_, limits)) in saved.devices.iter_mut().zip(devices) {
        device.byte_queue_limits_min_bytes = limits.min_bytes.clone();
    }
    Ok(saved)
}

/// Writes what is ours of devices to standard output.
///
/// # Errors
/// If a device's root qdisc is of others.
pub fn save(args: &SaveArgs, io: &mut Io<'_>) -> Result<()> {
    let mut tc = Tc::open()?;
    let names = if args.devices.is_empty() {
        ours(&mut tc)?
    } else {
        args.devices.clone()
    };
    let mut devices = Vec::new();
    for name in &names {
        let observed = observe(&mut tc, name)?;
        let limits = queue_limits::read(&observed)?;
        devices.push((observed, limits));
    }
    let devices = devices.iter().map(|(observed, limits)| (observed, limits));
    let saved = saved(devices).map_err(|reason| anyhow!("{reason}"))?;
    Ok(io.out.write_all(saved.write().as_bytes())?)
}

/// Makes devices as they were when they were saved.
///
/// # Errors
/// If the file is not as `save` writes it, or the kernel refuses a change.
pub fn restore(args: &RestoreArgs, io: &mut Io<'_>) -> Result<()> {
    if args.guard {
        let Some(trial) = guard(&args.file)? else {
            return Ok(());
        };
        let lock = Lock::take(&args.file)?;
        let mut back = |state: &str| put_back("the state before", state, args.drain);
        return trial.decide(&lock, false, &mut back).map(|_| ());
    }
    let name = args.file.display().to_string();
    let text = text(&args.file).with_context(|| name.clone())?;
    Saved::read(&text).map_err(|reason| anyhow!("{name}: {reason}"))?;
    if let Some(after_ns) = args.after {
        let until = Instant::now() + Duration::from_nanos(after_ns);
        while Instant::now() < until {
            if !args.file.exists() {
                return Ok(());
            }
            sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
    }
    let _lock = Lock::take(&folder()?)?;
    // It may have been deleted while the lock was waited for.
    if args.after.is_some() && !args.file.exists() {
        return Ok(());
    }
    restored(&name, &text, args.drain, io)
}

/// Puts back a state, and says nothing.
fn put_back(name: &str, state: &str, drain_ns: u64) -> Result<()> {
    let mut quiet = Io {
        out: &mut std::io::sink(),
        note: &mut |_| (),
    };
    restored(name, state, drain_ns, &mut quiet)
}

/// Makes devices as a text says that they were.
fn restored(name: &str, text: &str, drain_ns: u64, io: &mut Io<'_>) -> Result<()> {
    let saved = Saved::read(text).map_err(|reason| anyhow!("{name}: {reason}"))?;
    let mut tc = Tc::open()?;
    let mut work = Vec::new();
    for device in &saved.devices {
        let target = device.target();
        let mut target = target.map_err(|reason| anyhow!("{name}: {reason}"))?;
        let limits = WantedLimits::Each(device.byte_queue_limits_min_bytes.clone());
        let wanted = |observed: &Observed| {
            let note = target.spread(observed.port.queues);
            let mut wanted = Wanted::only(target);
            wanted.notes.extend(note);
            Ok((wanted, limits))
        };
        work.push(planned(&mut tc, &device.name, wanted, false)?);
    }
    make_all(&mut tc, &mut work, drain_ns, io)
}

/// Takes away what `apply` has set up on a device.
pub fn remove(args: &RemoveArgs, io: &mut Io<'_>) -> Result<()> {
    let folder = folder()?;
    let _lock = Lock::take(&folder)?;
    nothing_waits(&folder)?;
    let mut tc = Tc::open()?;
    let nothing = Wanted::only(Target::nothing());
    let wanted = |_: &Observed| Ok((nothing, WantedLimits::Before));
    let work = planned(&mut tc, &args.device, wanted, false)?;
    if work.changes() == 0 {
        (io.note)(&format!(
            "pspacer: {}: nothing of ours is there",
            args.device
        ));
    }
    make_all(&mut tc, &mut [work], 0, io)
}

fn planned(
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

/// Reads the files, and plans the devices. Nothing is changed before all of it is checked.
/// Of several devices those that are not there are left out, and returned.
fn work(tc: &mut Tc, chosen: &Chosen) -> Result<(Vec<Work>, Vec<String>)> {
    let all = devices(chosen)?;
    let (there, absent) = there(all.clone())?;
    let (devices, absent) = if there.is_empty() {
        (all, Vec::new())
    } else {
        (there, absent)
    };
    let work = devices.iter().map(|(file, device, text)| {
        let work = work_on(tc, device, chosen.take_over);
        let mut work = work.with_context(|| format!("{}:{}", file.display(), device.line))?;
        work.text = Some(text.clone());
        Ok(work)
    });
    Ok((work.collect::<Result<_>>()?, absent))
}

/// Returns those of the devices that are there, and the names of the others.
fn there(mut devices: Vec<OfFile>) -> Result<(Vec<OfFile>, Vec<String>)> {
    let links = links()?;
    let is_there = |device: &Device| named(&links, &device.name).is_some();
    let absent = devices.iter().filter(|(_, device, _)| !is_there(device));
    let absent = absent.map(|(_, device, _)| device.name.clone()).collect();
    devices.retain(|(_, device, _)| is_there(device));
    Ok((devices, absent))
}

/// Plans a device by its table.
pub(crate) fn work_on(tc: &mut Tc, device: &Device, take_over: bool) -> Result<Work> {
    let wanted = |observed: &Observed| {
        let (backend, why) = choose(device.backend);
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

/// Returns the devices of these files, or of the host's own if there are none, for others who look
/// at them.
pub fn devices_of(files: &[PathBuf], device: Option<&str>) -> Result<Vec<Device>> {
    let chosen = Chosen {
        files: files.to_vec(),
        device: device.map(ToOwned::to_owned),
        take_over: false,
    };
    let all = devices(&chosen)?;
    Ok(all.into_iter().map(|(_, device, _)| device).collect())
}

/// A device, with its file and that file's text.
type OfFile = (PathBuf, Device, Rc<str>);

fn devices(chosen: &Chosen) -> Result<Vec<OfFile>> {
    let files = if chosen.files.is_empty() {
        default_files()?
    } else {
        chosen.files.clone()
    };
    let mut all: Vec<OfFile> = Vec::new();
    let links = links()?;
    for file in files {
        let name = file.display().to_string();
        let text: Rc<str> = text(&file).with_context(|| name.clone())?.into();
        for device in read::host(&name, &text, &links)?.devices {
            let before = all.iter().find(|(_, before, _)| before.name == device.name);
            if let Some((first, ..)) = before {
                bail!(
                    "{name}:{}: `name` is \"{}\", expected one not in use: {} has it already",
                    device.line,
                    device.name,
                    first.display()
                );
            }
            all.push((file.clone(), device, text.clone()));
        }
    }
    let Some(wanted) = &chosen.device else {
        return Ok(all);
    };
    let names: Vec<String> = all
        .iter()
        .map(|(_, device, _)| device.name.clone())
        .collect();
    let known = named(&links, wanted).map_or(wanted, |link| &link.name);
    all.retain(|(_, device, _)| device.name == *known);
    ensure!(
        !all.is_empty(),
        "--device {wanted}: expected a device of the files{}",
        hint(wanted, &names)
    );
    Ok(all)
}

/// What the files of this host say of its devices.
#[derive(Clone, Debug, Default)]
pub struct Differences {
    /// What `apply` would change of each device, or what is in the way.
    pub changes: Vec<(String, Result<Vec<String>, String>)>,
    /// Devices that are not there.
    pub absent: Vec<String>,
}

/// Compares the devices of this host with its files; nothing where there is no file.
pub fn differences() -> Result<Differences> {
    let folder = Path::new(FOLDER);
    if !folder.exists() || files_of(folder)?.is_empty() {
        return Ok(Differences::default());
    }
    let all = Chosen {
        files: Vec::new(),
        device: None,
        take_over: false,
    };
    let (there, absent) = there(devices(&all)?)?;
    let mut tc = Tc::open()?;
    let changes = there.iter().map(|(file, device, _)| {
        let work = work_on(&mut tc, device, false);
        let work = work.with_context(|| format!("{}:{}", file.display(), device.line));
        let lines = work.map(|work| work.device.lines());
        (
            device.name.clone(),
            lines.map_err(|error| format!("{error:#}")),
        )
    });
    Ok(Differences {
        changes: changes.collect(),
        absent,
    })
}

/// Returns the names that the files of this host give to classes; none where there is no file.
pub fn class_names() -> Result<ClassNames, String> {
    names_in(Path::new(FOLDER)).map_err(|error| format!("{error:#}"))
}

fn names_in(folder: &Path) -> Result<ClassNames> {
    let mut names = ClassNames::default();
    let links = links()?;
    if folder.exists() {
        for path in files_of(folder)? {
            let name = path.display().to_string();
            let text = text(&path).with_context(|| name.clone())?;
            let host = read::host(&name, &text, &links)?;
            host.devices.iter().for_each(|device| names.add(device));
        }
    }
    Ok(names)
}

fn default_files() -> Result<Vec<PathBuf>> {
    let files = files_of(Path::new(FOLDER))?;
    ensure!(
        !files.is_empty(),
        "{FOLDER}: expected a file that ends in .toml, or one on the command line"
    );
    Ok(files)
}

/// Returns the files of a folder that are a host's, by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let name = || folder.display().to_string();
    let entries = fs::read_dir(folder).with_context(name)?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(name)?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
