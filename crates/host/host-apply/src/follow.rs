// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps matches in force: an interface or a cgroup that comes, or is made anew, has another number,
//! and what was applied is applied again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Result, ensure};
use host_config::Device;
use linux_io::signals::Signals;
use nix::poll::{PollFd, PollFlags, poll};
use tcpsp::{Match, Tc};

use crate::applied;
use crate::confirm::left;
use crate::match_objects::numbers;
use crate::observe::ours;
use crate::run_dir::{Lock, folder};
use crate::work::{Io, make_all, work_on};

/// Between two looks. A container's packets are best effort for so long after it comes.
const LOOK_MS: u16 = 2000;

/// What was seen of a device's objects, and what was said of it last.
#[derive(Default)]
struct Followed {
    numbers: Option<Vec<(Match, bool)>>,
    said: Option<String>,
}

/// Looks until a signal comes, and applies again what has changed. `drain_ns` is as for `apply`.
///
/// # Errors
/// If there is no folder for what was applied, or no socket to the kernel.
pub(crate) fn follow(drain_ns: u64, io: &mut Io<'_>) -> Result<()> {
    let signals = Signals::block()?;
    let run = folder()?;
    let mut all: BTreeMap<String, Followed> = BTreeMap::new();
    loop {
        is_installed()?;
        let devices = applied::devices(&run);
        let names: BTreeSet<&str> = devices
            .iter()
            .map(|(device, _)| device.name.as_str())
            .collect();
        all.retain(|name, _| names.contains(name.as_str()));
        for (device, text) in &devices {
            let followed = all.entry(device.name.clone()).or_default();
            if let Err(error) = look(&run, (device, text), followed, drain_ns, io) {
                let error = format!("{error:#}");
                if followed.said.as_ref() != Some(&error) {
                    (io.note)(&format!("pspacer: {}: {error}", device.name));
                    followed.said = Some(error);
                }
            }
        }
        poll(
            &mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)],
            LOOK_MS,
        )?;
        if signals.came()? {
            return Ok(());
        }
    }
}

/// Refuses to go on by a program that an update has replaced: it would put its own version's programs
/// in the place of the new ones.
fn is_installed() -> Result<()> {
    let program = fs::read_link("/proc/self/exe").unwrap_or_default();
    ensure!(
        !program.to_string_lossy().ends_with(" (deleted)"),
        "another version of this program was installed: expected to be started again"
    );
    Ok(())
}

/// Applies a device again if what its matches name has other numbers than before.
fn look(
    run: &Path,
    (device, text): (&Device, &Rc<str>),
    followed: &mut Followed,
    drain_ns: u64,
    io: &mut Io<'_>,
) -> Result<()> {
    let numbers = numbers(device)?;
    if numbers.is_empty() || followed.numbers.as_ref() == Some(&numbers) {
        return Ok(());
    }
    // What waits to be confirmed is not followed; it is looked at again.
    let _lock = Lock::take(run)?;
    if left(run).is_some() {
        return Ok(());
    }
    let mut tc = Tc::open()?;
    // A device that went, or whose psp was removed by hand, is not set up again here.
    if ours(&mut tc)?.contains(&device.name) {
        let mut work = work_on(&mut tc, device, false)?;
        work.text = Some(text.clone());
        if work.changes() > 0 {
            make_all(&mut tc, &mut [work], drain_ns, io)?;
        }
    }
    followed.numbers = Some(numbers);
    followed.said = None;
    Ok(())
}
