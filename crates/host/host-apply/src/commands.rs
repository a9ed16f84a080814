// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the subcommands do.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use host_config::{ClassNames, Device, Saved, Target, WantedLimits};
use linux_io::links::{links, named};
use psp_files::read::text;
use serde::Serialize;
use tcpsp::Tc;
use units::nearest::hint;

use crate::args::{ApplyArgs, Chosen, PlanArgs, RemoveArgs, RestoreArgs, SaveArgs};
use crate::back::{Others, begun, nothing_waits, put_back, restored, said, saved, tried};
use crate::confirm::{LOOK, Trial, guard};
use crate::device::DeviceWork;
use crate::observe::{Observed, observe, ours};
use crate::queue_limits;
use crate::read;
use crate::rights::Untold;
use crate::run_dir::{Lock, folder};
use crate::work::{Io, Wanted, Work, all_are_there, make_all, planned, work_on};

/// Where files are if none is named.
const FOLDER: &str = "/etc/pspacer";

/// The JSON object of `plan --json`.
#[derive(Serialize)]
struct Json<'a> {
    format: &'static str,
    devices: Vec<&'a DeviceWork>,
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
    let Some(after) = confirm else {
        let made = make_all(&mut tc, &mut work, args.drain, io);
        if changes == 0 {
            (io.note)("pspacer: nothing to change");
        }
        made?;
        return all_are_there(&absent);
    };
    let (trial, mut guard) = begun(&folder, &work)?;
    // Who reads the lines may take any time; the guard's begins when all is made.
    let mut lines = Vec::new();
    let mut later = Io {
        out: &mut lines,
        note: &mut *io.note,
    };
    let made = make_all(&mut tc, &mut work, args.drain, &mut later);
    tried(
        made,
        (&trial, &mut guard, after),
        lock,
        args.drain,
        (io, &lines),
    )?;
    all_are_there(&absent)
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
    restored(&name, &text, Others::Wait, args.drain, io)
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
    /// Devices of which only root knows enough to compare them.
    pub untold: Vec<String>,
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
    let mut found = Differences {
        absent,
        ..Differences::default()
    };
    for (file, device, _) in &there {
        let work = work_on(&mut tc, device, false);
        if work.as_ref().is_err_and(|error| error.is::<Untold>()) {
            found.untold.push(device.name.clone());
            continue;
        }
        let work = work.with_context(|| format!("{}:{}", file.display(), device.line));
        let lines = work.map(|work| work.device.lines());
        let lines = lines.map_err(|error| format!("{error:#}"));
        found.changes.push((device.name.clone(), lines));
    }
    Ok(found)
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
