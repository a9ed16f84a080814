// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder for what must not outlive the system's run: a lock, so that changes are made by one
//! at a time, what a change that waits to be confirmed goes back to, and what byte queue limits were
//! before.

use std::fs::{self, File, Permissions};
use std::io::{Write, read_to_string};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs4::{FileExt, TryLockError};
use units::display;

/// Where the folder is. `RUNTIME_DIRECTORY` does not move it: a plugin of a runtime that systemd
/// started has that of the runtime.
const FOLDER: &str = "/run/pspacer";
/// Names another folder: for tests.
const VARIABLE: &str = "PSPACER_RUN";

/// Returns the folder's path, also where there is none.
pub fn path() -> PathBuf {
    let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    named.map_or_else(|| PathBuf::from(FOLDER), PathBuf::from)
}

/// Returns the folder, which exists.
pub fn folder() -> Result<PathBuf> {
    let path = path();
    fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
    Ok(path)
}

/// The lock is root's alone.
const OWN: u32 = 0o600;
/// How long a person's command waits for the lock, and a call of a runtime or of the kubelet, which
/// is called again.
const WAIT: Duration = Duration::from_secs(120);
/// The same of a call.
pub const CALL_WAIT: Duration = Duration::from_secs(20);
/// Between two tries.
const TRY: Duration = Duration::from_millis(10);

/// Held while changes are made; ends with the process, however that ends.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until nobody else makes changes, for two minutes.
    ///
    /// # Errors
    /// Who holds it, or that the file cannot be locked.
    pub fn take(folder: &Path) -> Result<Self> {
        Self::take_within(folder, WAIT)
    }

    /// Waits for so long. The file is root's alone: who can open it can hold it, for ever.
    ///
    /// # Errors
    /// Who holds it, or that the file cannot be locked.
    pub fn take_within(folder: &Path, wait: Duration) -> Result<Self> {
        let path = folder.join("lock");
        let named = || path.display().to_string();
        let mut options = File::options();
        let options = options.create(true).read(true).append(true).mode(OWN);
        let file = options.custom_flags(psp_files::read::NOFOLLOW).open(&path);
        let file = file.with_context(named)?;
        if file.metadata().with_context(named)?.mode() & 0o777 != OWN {
            let own = Permissions::from_mode(OWN);
            file.set_permissions(own).with_context(named)?;
        }
        let begun = Instant::now();
        while let Err(error) = FileExt::try_lock(&file) {
            match error {
                TryLockError::WouldBlock if begun.elapsed() < wait => sleep(TRY),
                TryLockError::WouldBlock => {
                    let holder = read_to_string(&file).unwrap_or_default();
                    let (holder, waited) = (holder.trim(), display::time(wait.as_secs_f64()));
                    bail!(
                        "{}: process {holder} has made changes for more than {waited}, expected it \
                         to end",
                        path.display()
                    );
                }
                TryLockError::Error(error) => return Err(error).with_context(named),
            }
        }
        // Whoever waits says it.
        let name = std::env::args_os().next().unwrap_or_default();
        let name = Path::new(&name).file_name().unwrap_or_default();
        let name = Path::new(name).display();
        let holder = format!("{} ({name})\n", std::process::id());
        // A disk that is full keeps nobody from taking things away.
        let _ = file
            .set_len(0)
            .and_then(|()| (&file).write_all(holder.as_bytes()));
        Ok(Self { _file: file })
    }
}

/// Writes a file of the folder in one step: it is there as a whole, or as it was before.
pub fn write(path: &Path, text: &str) -> Result<()> {
    psp_files::write::replace(path, text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_its_owners_and_waiting_ends_with_the_holders_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        // One of an earlier version, which everybody could open and hold.
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let _held = Lock::take(folder.path()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, OWN);
        let refused = Lock::take_within(folder.path(), Duration::from_millis(20)).map(|_| ());
        let said = format!("{:#}", refused.unwrap_err());
        let holder = format!("process {} (", std::process::id());
        assert!(said.contains(&holder) && said.contains("20 ms"), "{said}");
    }

    #[test]
    fn a_link_in_the_place_of_the_lock_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        std::os::unix::fs::symlink(&other, folder.path().join("lock")).unwrap();
        assert!(Lock::take(folder.path()).is_err());
        assert!(!other.exists());
    }
}
