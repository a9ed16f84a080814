// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sockets that a process has open, by way of its file descriptors: what
//! was there before watching began is in no tracepoint's context.

use std::fs;
use std::io;
use std::os::fd::{AsFd, RawFd};
use std::os::unix::fs::MetadataExt;

use rustix::net::sockopt;
use rustix::net::{SocketAddrAny, getsockname};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::error::Error;

/// What a process has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sockets {
    /// Cookies.
    pub(crate) connected: Vec<u64>,
    /// Ports, in the process's network.
    pub(crate) listening: Vec<u16>,
    /// Its network name space.
    pub(crate) network: u32,
}

/// Device and number of this program's own PID name space, in which process
/// numbers are meant.
pub(crate) fn pid_space() -> io::Result<(u64, u64)> {
    let meta = fs::metadata("/proc/self/ns/pid")?;
    Ok((meta.dev(), meta.ino()))
}

/// TCP sockets of a process.
pub(crate) fn sockets(pid: u32) -> Result<Sockets, Error> {
    look(pid).map_err(|source| Error::Process { pid, source })
}

fn look(pid: u32) -> io::Result<Sockets> {
    let raw = i32::try_from(pid).map_err(io::Error::other)?;
    let process = Pid::from_raw(raw).ok_or(io::ErrorKind::InvalidInput)?;
    let handle = pidfd_open(process, PidfdFlags::empty())?;
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
        match pidfd_getfd(&handle, number, PidfdGetfdFlags::empty()) {
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
        let port = port(getsockname(&socket)?);
        self.listening.extend(port);
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
    fn this_process_has_what_it_opened() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let found = sockets(std::process::id()).unwrap();
        let cookie = |socket: &dyn AsFd| sockopt::socket_cookie(socket.as_fd()).unwrap();
        assert!(found.connected.contains(&cookie(&stream)));
        assert!(found.listening.contains(&address.port()));
        assert!(!found.connected.contains(&cookie(&other)));
        assert!(!found.connected.contains(&cookie(&listener)));
    }

    #[test]
    fn no_such_process() {
        let error = sockets(u32::MAX).unwrap_err();
        assert!(
            matches!(error, Error::Process { pid: u32::MAX, .. }),
            "{error}"
        );
    }
}
