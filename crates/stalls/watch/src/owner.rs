// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inspects a process whose sockets are watched: the sockets that it has open, found by its
//! file descriptors, and whether it still runs. Sockets that were open before watching began
//! were opened in no tracepoint's context, so the BPF program does not know them.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use rustix::net::{SocketAddrAny, getsockname};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::error::Error;

/// The TCP sockets that a process has open.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sockets {
    /// Cookies of the connected sockets.
    pub(crate) connected: Vec<u64>,
    /// Cookies and ports of the listening sockets, in the process's network namespace.
    pub(crate) listening: Vec<(u64, u16)>,
    /// Inode number of the process's network namespace.
    pub(crate) network: u32,
}

/// Returns device and inode number of this program's own PID namespace: process numbers are
/// those of this namespace.
pub(crate) fn pid_space() -> io::Result<(u64, u64)> {
    let meta = fs::metadata("/proc/self/ns/pid")?;
    Ok((meta.dev(), meta.ino()))
}

/// A process, held by a descriptor, because its number may be given to another process.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    handle: OwnedFd,
}

impl Process {
    /// Opens the process with this number.
    ///
    /// # Errors
    /// When there is none, or this user may not inspect it.
    pub(crate) fn open(pid: u32) -> Result<Self, Error> {
        let open = || {
            let raw = i32::try_from(pid).map_err(io::Error::other)?;
            let process = Pid::from_raw(raw).ok_or(io::ErrorKind::InvalidInput)?;
            Ok(pidfd_open(process, PidfdFlags::empty())?)
        };
        let handle = open().map_err(|source| Error::Process { pid, source })?;
        Ok(Self { pid, handle })
    }

    /// Returns the TCP sockets that the process has open now.
    ///
    /// # Errors
    /// When the process has ended or may not be inspected.
    pub(crate) fn sockets(&self) -> Result<Sockets, Error> {
        let pid = self.pid;
        look(pid, &self.handle).map_err(|source| Error::Process { pid, source })
    }

    /// Returns whether the process has ended.
    pub(crate) fn has_ended(&self) -> Result<bool, Error> {
        let mut handle = [PollFd::new(&self.handle, PollFlags::IN)];
        let pid = self.pid;
        let ready = poll(&mut handle, Some(&Timespec::default()));
        let ready = ready.map_err(|error| Error::Process {
            pid,
            source: error.into(),
        })?;
        Ok(ready > 0)
    }
}

fn look(pid: u32, handle: &OwnedFd) -> io::Result<Sockets> {
    let network = fs::metadata(format!("/proc/{pid}/ns/net"))?.ino();
    let mut sockets = Sockets {
        network: u32::try_from(network).map_err(io::Error::other)?,
        ..Sockets::default()
    };
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let entry = entry?;
        let Ok(target) = fs::read_link(entry.path()) else {
            continue; // closed meanwhile
        };
        if !target.to_string_lossy().starts_with("socket:[") {
            continue;
        }
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<RawFd>().ok()) else {
            continue;
        };
        match pidfd_getfd(handle, number, PidfdGetfdFlags::empty()) {
            Ok(socket) => sockets.add(&socket)?,
            Err(rustix::io::Errno::BADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sockets)
}

impl Sockets {
    fn add(&mut self, socket: impl AsFd) -> io::Result<()> {
        if sockopt::socket_protocol(&socket)? != Some(rustix::net::ipproto::TCP) {
            return Ok(());
        }
        if !sockopt::socket_acceptconn(&socket)? {
            self.connected.push(sockopt::socket_cookie(&socket)?);
            return Ok(());
        }
        if let Some(port) = port(getsockname(&socket)?) {
            self.listening
                .push((sockopt::socket_cookie(&socket)?, port));
        }
        Ok(())
    }
}

fn port(address: SocketAddrAny) -> Option<u16> {
    std::net::SocketAddr::try_from(address)
        .ok()
        .map(|address| address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn this_process_has_the_sockets_it_opened() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let process = Process::open(std::process::id()).unwrap();
        let found = process.sockets().unwrap();
        let cookie = |socket: &dyn AsFd| sockopt::socket_cookie(socket.as_fd()).unwrap();
        assert!(found.connected.contains(&cookie(&stream)));
        let listening = (cookie(&listener), address.port());
        assert!(found.listening.contains(&listening));
        assert!(!found.connected.contains(&cookie(&other)));
        assert!(!found.connected.contains(&cookie(&listener)));
        assert!(!process.has_ended().unwrap());
    }

    #[test]
    fn a_process_that_has_ended_says_so() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = Process::open(child.id()).unwrap();
        child.wait().unwrap();
        assert!(process.has_ended().unwrap());
        assert!(matches!(process.sockets(), Err(Error::Process { .. })));
    }

    #[test]
    fn a_process_that_does_not_exist_is_an_error() {
        let error = Process::open(u32::MAX).unwrap_err();
        assert!(
            matches!(error, Error::Process { pid: u32::MAX, .. }),
            "{error}"
        );
    }
}
