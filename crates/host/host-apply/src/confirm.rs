// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes that are taken back unless they are confirmed. A guard, a process of its own session,
//! takes them back when their time is over, or when `apply` ends amid them: that is what happens when
//! a change cuts the network that the operator came by.
//!
//! The state before is a file. Who holds the lock decides by renaming it: to `confirmed.json`, or to
//! `taking-back.json` and, once all is as before, to `taken-back.json`. Guard, question and `apply
//! --confirmed` decide in this one way ([`Trial::decide`]), so what each says is what is in force,
//! whichever of them ends early.

use std::fs::{self, File, Metadata};
use std::io::{BufRead, BufReader, ErrorKind, Seek, Write, read_to_string, stdin, stdout};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use linux_io::clock::boottime_ns;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};

use crate::run_dir::{Lock, write};

/// Names of the file, by what has become of the changes.
const BEGINNING: &str = "beginning.json";
const WAITING: &str = "unconfirmed.json";
const CONFIRMED: &str = "confirmed.json";
const TAKING: &str = "taking-back.json";
const TAKEN: &str = "taken-back.json";

/// What the guard says once it stands on its own.
const READY: &str = "guarding";
/// Between two looks at what has become of the changes.
const LOOK_MS: u8 = 100;
pub(crate) const LOOK: Duration = Duration::from_millis(LOOK_MS as u64);

/// What has become of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// They are in force.
    Stay,
    /// What was before is.
    TakenBack,
}

/// Returns the file of changes that wait to be confirmed, or whose taking back was cut short.
pub(crate) fn left(folder: &Path) -> Option<PathBuf> {
    let mut files = [WAITING, TAKING].iter().map(|name| folder.join(name));
    files.find(|file| file.exists())
}

/// Changes that wait.
pub(crate) struct Trial {
    folder: PathBuf,
    /// Open for as long as somebody asks, so that no later file has its number.
    file: File,
}

impl Trial {
    /// Keeps the state before, and starts the guard with a command. Nothing has changed yet; the lock
    /// is held.
    ///
    /// # Errors
    /// If the file cannot be written, or there is no guard.
    pub fn begin(folder: &Path, state: &str, guard: &mut Command) -> Result<(Self, Child)> {
        write(&folder.join(BEGINNING), state)?;
        let trial = Self::open(folder, BEGINNING)?.context("the state before is gone")?;
        let child = start(guard, &folder.join("unconfirmed.log"))?;
        // Whoever ends before this has begun nothing, and after it there is a guard.
        trial.rename(BEGINNING, WAITING)?;
        Ok((trial, child))
    }

    /// Returns the changes that wait, if there are some.
    pub fn waiting(folder: &Path) -> Result<Option<Self>> {
        Self::open(folder, WAITING)
    }

    fn open(folder: &Path, name: &str) -> Result<Option<Self>> {
        let path = folder.join(name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        Ok(Some(Self {
            folder: folder.to_owned(),
            file,
        }))
    }

    fn is_at(&self, name: &str) -> bool {
        let number = |of: Metadata| (of.dev(), of.ino());
        let at = fs::symlink_metadata(self.folder.join(name)).map(number);
        let is = self.file.metadata().map(number);
        is.is_ok_and(|is| at.is_ok_and(|at| at == is))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (self.folder.join(from), self.folder.join(to));
        fs::rename(&from, &to).with_context(|| from.display().to_string())
    }

    /// Decides, unless somebody has: keeps the changes, or takes them back by `restore`, which is given
    /// the state before. Who finds that another ended amid taking back goes on.
    ///
    /// # Errors
    /// What keeps `restore` from its work, or that other changes have come since.
    pub fn decide(
        &self,
        _lock: &Lock,
        is_kept: bool,
        restore: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<Outcome> {
        if self.is_at(CONFIRMED) {
            return Ok(Outcome::Stay);
        }
        if self.is_at(TAKEN) {
            return Ok(Outcome::TakenBack);
        }
        if self.is_at(WAITING) {
            if is_kept {
                self.rename(WAITING, CONFIRMED)?;
                return Ok(Outcome::Stay);
            }
            self.rename(WAITING, TAKING)?;
        }
        if !self.is_at(TAKING) {
            bail!("others have made changes since then");
        }
        (&self.file).rewind()?;
        restore(&read_to_string(&self.file)?)?;
        self.rename(TAKING, TAKEN)?;
        Ok(Outcome::TakenBack)
    }

    /// Waits until the time is over, or somebody has decided, or Enter comes: returns whether it came.
    /// The end of a terminal, of a session that was cut, confirms nothing.
    pub fn ask(&self, input: &mut (impl BufRead + AsFd), until_ns: u64) -> Result<bool> {
        let mut is_open = true;
        while self.is_at(WAITING) && boottime_ns()? < until_ns {
            let mut ready = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
            let polled = if is_open { &mut ready[..] } else { &mut [] };
            match poll(polled, LOOK_MS) {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => {
                    let mut line = String::new();
                    is_open = input.read_line(&mut line).is_ok_and(|bytes| bytes > 0);
                    if line.ends_with('\n') {
                        return Ok(true);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }
}

/// Starts the guard, and returns once it is there.
fn start(guard: &mut Command, log: &Path) -> Result<Child> {
    // What it has to say is for whoever asks why nothing was restored.
    let mut child = guard
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(File::create(log)?)
        .spawn()
        .context("the guard does not start")?;
    let out = child.stdout.take().map(BufReader::new);
    let mut lines = out.into_iter().flat_map(BufRead::lines);
    if !lines.any(|line| line.is_ok_and(|line| line.ends_with(READY))) {
        bail!("the guard does not start: nothing is changed");
    }
    Ok(child)
}

/// Tells the guard that the changes are made, and when their time is over, on CLOCK_BOOTTIME, which
/// it returns. Until then the guard takes the end of this process for a failure.
pub(crate) fn made(guard: &mut Child, after: Duration) -> Result<u64> {
    let after_ns = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
    let until_ns = boottime_ns()?.saturating_add(after_ns);
    let told = guard.stdin.take().map(|mut to| writeln!(to, "{until_ns}"));
    told.context("the guard is not there")?
        .context("the guard has ended")?;
    Ok(until_ns)
}

/// The guard: leaves the session that it was started in, and waits until the changes are to be taken
/// back: their time is over, or `apply` has ended amid them. `None`: somebody has decided.
pub(crate) fn guard(folder: &Path) -> Result<Option<Trial>> {
    let trial = Trial::open(folder, BEGINNING)?.context("no change begins")?;
    // Of a process that leads a group already this fails: it was started by a person.
    let _ = nix::unistd::setsid();
    let mut out = stdout();
    let _ = writeln!(out, "{READY}").and_then(|()| out.flush());
    let mut told = String::new();
    stdin().read_line(&mut told)?;
    let until_ns: u64 = told.trim().parse().unwrap_or(0);
    while [WAITING, TAKING].iter().any(|name| trial.is_at(name)) {
        let left_ns = until_ns.saturating_sub(boottime_ns()?);
        if left_ns == 0 {
            return Ok(Some(trial));
        }
        sleep(LOOK.min(Duration::from_nanos(left_ns)));
    }
    Ok(None)
}
