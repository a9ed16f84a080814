// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes that are taken back unless they are confirmed. A guard, a process of its own session,
//! waits and then restores the state before, even if the session of `apply` has died: that is what
//! happens when a change cuts the network that the operator came by.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};

/// What the guard says once it stands on its own.
const READY: &str = "guarding";
/// Between two looks at the file whose absence means "confirmed".
const LOOK_MS: u8 = 100;
const LOOK: Duration = Duration::from_millis(LOOK_MS as u64);
/// How long the guard may take to restore.
const GRACE: Duration = Duration::from_secs(30);

/// Starts the guard, which restores what is in the file after this time unless the file is gone.
/// Returns once the guard is there.
pub(crate) fn start_guard(file: &Path, after: Duration) -> Result<()> {
    let program = std::env::current_exe()?;
    // What it has to say is for whoever asks why nothing was restored.
    let log = File::create(file.with_extension("log"))?;
    let mut child = Command::new(program)
        .args(["restore", "--after"])
        .arg(format!("{}ns", after.as_nanos()))
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .context("the guard does not start")?;
    let mut said = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut said)?;
    }
    if said.trim() != READY {
        bail!("the guard does not start: nothing is changed");
    }
    Ok(())
}

/// The guard: leaves the session that it was started in, and waits. Returns whether the state is to
/// be restored.
pub(crate) fn guard(file: &Path, after: Duration) -> Result<bool> {
    let end = Instant::now() + after;
    // Of a process that leads a group already this fails: it was started by a person.
    let _ = nix::unistd::setsid();
    let mut out = stdout();
    let _ = writeln!(out, "{READY}").and_then(|()| out.flush());
    while Instant::now() < end {
        if !file.exists() {
            return Ok(false);
        }
        sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
    }
    Ok(file.exists())
}

/// Waits for Enter, or until the changes are confirmed or taken back elsewhere. Returns whether they
/// are confirmed here. Without a terminal it does not wait.
pub(crate) fn wait_for_key(file: &Path, within: Duration) -> Result<Option<bool>> {
    let input = stdin();
    if !input.is_terminal() {
        return Ok(None);
    }
    let start = Instant::now();
    while start.elapsed() < within + GRACE && file.exists() {
        let mut ready = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        let has_input = match poll(&mut ready, LOOK_MS) {
            Ok(count) => count > 0,
            Err(Errno::EINTR) => false,
            Err(error) => return Err(error.into()),
        };
        if has_input && start.elapsed() < within {
            // The end of the terminal, of a session that was cut, confirms nothing.
            let mut line = String::new();
            let is_line = input.lock().read_line(&mut line).is_ok() && line.ends_with('\n');
            return Ok(Some(is_line));
        }
    }
    Ok(Some(false))
}
