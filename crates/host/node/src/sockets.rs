// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two sockets of a driver, below the kubelet's folder. Each is made where nobody answers, made
//! again if somebody removes it, and removed at the end unless it is another's by then.

use std::convert::Infallible;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use host_apply::Lock;
use tokio::net::UnixListener;
use tokio::sync::mpsc::Sender;
use tokio::time::interval;

use crate::authority::OfHere;

/// Longest path of a socket (`sun_path`, without the zero at its end).
const PATH_BYTES: usize = 107;

/// Where the sockets are.
#[derive(Clone, Debug)]
pub struct Sockets {
    /// Who the driver is.
    pub registration: PathBuf,
    /// What it does.
    pub service: PathBuf,
}

impl Sockets {
    /// Returns where the kubelet looks for them. Instances of one driver, of which two serve during
    /// an upgrade, have their own.
    pub fn new(kubelet: &Path, driver: &str, instance: Option<&str>) -> Self {
        let part = instance.map_or_else(String::new, |uid| format!("-{uid}"));
        let registration = format!("plugins_registry/{driver}{part}-reg.sock");
        Self {
            registration: kubelet.join(registration),
            service: kubelet.join(format!("plugins/{driver}/dra{part}.sock")),
        }
    }
}

/// Both, made.
pub(crate) struct Made {
    pub(crate) registration: Socket,
    pub(crate) service: Socket,
}

impl Sockets {
    /// Makes them, as one of those who start at once; `run` is the folder of `pspacer`.
    ///
    /// # Errors
    /// One that cannot be made, such as that of another process.
    pub(crate) fn make(&self, run: &Path) -> Result<Made> {
        let _lock = Lock::take(run)?;
        // The kubelet calls as soon as it sees the second.
        let service = Socket::new(&self.service)?;
        let registration = Socket::new(&self.registration)?;
        Ok(Made {
            registration,
            service,
        })
    }
}

/// A socket that is made.
pub(crate) struct Socket {
    pub(crate) path: PathBuf,
    listener: UnixListener,
    /// Device and number of its file. Nobody else has them while it listens.
    file: (u64, u64),
}

impl Socket {
    /// Makes one in place of that of a process that has ended.
    fn new(path: &Path) -> Result<Self> {
        Self::make(path).with_context(|| path.display().to_string())
    }

    fn make(path: &Path) -> Result<Self> {
        let bytes = path.as_os_str().len();
        let expected = "a shorter --driver, or another --kubelet";
        ensure!(
            bytes <= PATH_BYTES,
            "{bytes} bytes, a socket's path has at most {PATH_BYTES}: expected {expected}"
        );
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => match UnixStream::connect(path) {
                Ok(_) => bail!(
                    "a process answers at this socket, expected none: end the other pspacer-node \
                     first, or give each its --instance"
                ),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    fs::remove_file(path)?;
                }
                Err(error) => return Err(error.into()),
            },
            Ok(_) => bail!("it is no socket, expected one or nothing"),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self {
            path: path.to_owned(),
            listener: UnixListener::bind(path)?,
            file: file(path)?,
        })
    }

    /// Returns whether its file is there.
    fn is_there(&self) -> bool {
        file(&self.path).is_ok_and(|file| file == self.file)
    }

    /// Passes on who connects, and looks after the file each time.
    ///
    /// # Errors
    /// A file that is gone and cannot be made again.
    pub(crate) async fn accept(
        mut self,
        every: Duration,
        into: Sender<io::Result<OfHere>>,
    ) -> Result<Infallible> {
        let mut check = interval(every);
        loop {
            tokio::select! {
                _ = check.tick() => {
                    if !self.is_there() {
                        self = Self::new(&self.path)?;
                    }
                }
                came = self.listener.accept() => {
                    let (stream, _) = came.with_context(|| self.path.display().to_string())?;
                    into.send(Ok(OfHere::new(stream))).await?;
                }
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Nobody is left to be told if it cannot be removed.
        if self.is_there() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns device and number of a file.
fn file(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}
