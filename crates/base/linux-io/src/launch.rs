// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UDP socket whose datagrams leave at given times (SO_TXTIME), at a given rate
//! (SO_MAX_PACING_RATE), or as they are sent.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, getsockopt, recvmsg, sendmsg,
    setsockopt, sockopt,
};

use crate::clock;

/// Room for an extended error with its address.
const CONTROL_BYTES: usize = 256;
/// SO_MAX_PACING_RATE of asm-generic/socket.h, which most architectures have.
const SO_MAX_PACING_RATE: libc::c_int = 47;
/// Errors of earlier datagrams before one is sent: there is at most one at a time, unless they come
/// as fast as datagrams are sent.
const MOST_REFUSED: usize = 16;
/// SO_EE_ORIGIN_TXTIME and its codes, linux/errqueue.h.
const ORIGIN_TXTIME: u8 = 6;
const CODE_INVALID: u8 = 1;
const CODE_MISSED: u8 = 2;
/// A launch time missed, and errors instead of silence: SOF_TXTIME_REPORT_ERRORS.
const REPORT_ERRORS: u32 = libc::SOF_TXTIME_REPORT_ERRORS;

/// The option SO_MAX_PACING_RATE, in bytes a second.
#[derive(Clone, Copy, Debug)]
struct MaxPacingRate;

nix::setsockopt_impl!(
    MaxPacingRate,
    libc::SOL_SOCKET,
    SO_MAX_PACING_RATE,
    libc::c_ulong,
    sockopt::SetStruct<libc::c_ulong>
);

nix::getsockopt_impl!(
    MaxPacingRate,
    libc::SOL_SOCKET,
    SO_MAX_PACING_RATE,
    libc::c_ulong,
    sockopt::GetStruct<libc::c_ulong>
);

/// The option SO_TXTIME, to be read.
#[derive(Clone, Copy, Debug)]
struct TxTime;

nix::getsockopt_impl!(
    TxTime,
    libc::SOL_SOCKET,
    libc::SO_TXTIME,
    libc::sock_txtime,
    sockopt::GetStruct<libc::sock_txtime>
);

/// Returns whether any socket has SO_TXTIME. It is not said; but one without has the clock 0, of
/// which nobody wants launch times.
pub(crate) fn has_launch_times(socket: &impl AsFd) -> io::Result<bool> {
    Ok(getsockopt(socket, TxTime)?.clockid != libc::CLOCK_REALTIME)
}

/// Returns SO_MAX_PACING_RATE of any socket, in bytes a second.
pub(crate) fn max_pacing_rate(socket: &impl AsFd) -> io::Result<libc::c_ulong> {
    Ok(getsockopt(socket, MaxPacingRate)?)
}

/// The clock of launch times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchClock {
    /// CLOCK_TAI: what etf and taprio take. Setting it needs CAP_NET_ADMIN.
    Tai,
    /// CLOCK_MONOTONIC: what fq takes.
    Monotonic,
}

impl LaunchClock {
    /// Returns the clock's time.
    pub fn now_ns(self) -> io::Result<u64> {
        match self {
            Self::Tai => clock::tai_ns(),
            Self::Monotonic => clock::monotonic_ns(),
        }
    }

    fn id(self) -> libc::clockid_t {
        match self {
            Self::Tai => libc::CLOCK_TAI,
            Self::Monotonic => libc::CLOCK_MONOTONIC,
        }
    }
}

/// Why the kernel reports a datagram that had a launch time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// It was dropped because its time had passed.
    Late,
    /// The qdisc refused its time: it had passed already, or is of another clock.
    Refused,
}

/// A report of the error queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchReport {
    /// What became of the datagram.
    pub missed: Missed,
    pub launch_ns: u64,
}

/// A connected UDP socket.
#[derive(Debug)]
pub struct LaunchSocket {
    socket: UdpSocket,
}

impl LaunchSocket {
    /// Makes a socket that sends to `to`, and asks for a send buffer of `buffer_bytes`; the host may
    /// allow less.
    pub fn connect(to: SocketAddr, buffer_bytes: usize) -> io::Result<Self> {
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
            SocketAddr::V6(_) => ([0u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(to)?;
        // With CAP_NET_ADMIN the size may exceed the host's limit, without it may not.
        setsockopt(&socket, sockopt::SndBufForce, &buffer_bytes)
            .or_else(|_| setsockopt(&socket, sockopt::SndBuf, &buffer_bytes))?;
        Ok(Self { socket })
    }

    /// Sets SO_MAX_PACING_RATE, which fq and classes of type dynamic keep to.
    pub fn set_max_pacing_rate(&self, bytes_per_s: u64) -> io::Result<()> {
        let rate = libc::c_ulong::try_from(bytes_per_s).unwrap_or(libc::c_ulong::MAX);
        Ok(setsockopt(&self.socket, MaxPacingRate, &rate)?)
    }

    /// Sets SO_TXTIME: from now on datagrams have launch times of this clock, and the kernel reports
    /// those that miss them.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] without CAP_NET_ADMIN, if the clock is not monotonic.
    pub fn set_launch_clock(&self, clock: LaunchClock) -> io::Result<()> {
        let wanted = libc::sock_txtime {
            clockid: clock.id(),
            flags: REPORT_ERRORS,
        };
        Ok(setsockopt(&self.socket, sockopt::TxTime, &wanted)?)
    }

    /// Sends a datagram, with its launch time where SO_TXTIME is set. Waits while the send buffer is
    /// full.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if a queue below the socket is full; else those of the network. A
    /// port that refused an earlier datagram is none: nobody needs to listen.
    pub fn send(&self, bytes: &[u8], launch_ns: Option<u64>) -> io::Result<()> {
        let parts = [IoSlice::new(bytes)];
        let launch = launch_ns.as_ref().map(ControlMessage::TxTime);
        let fd = self.socket.as_raw_fd();
        let mut refused = 0;
        loop {
            let sent = sendmsg::<()>(fd, &parts, launch.as_slice(), MsgFlags::empty(), None);
            match sent {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                // The error of an earlier datagram goes in front of this one, which was not sent.
                Err(Errno::ECONNREFUSED) if refused < MOST_REFUSED => refused += 1,
                Err(Errno::ENOBUFS) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the next report of a datagram that missed its launch time; `None` if there is none.
    pub fn report(&self) -> io::Result<Option<LaunchReport>> {
        let mut control = [0; CONTROL_BYTES];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let fd = self.socket.as_raw_fd();
        loop {
            let parts = &mut [];
            let message = match recvmsg::<SockaddrStorage>(fd, parts, Some(&mut control), flags) {
                Ok(message) => message,
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let report = message.cmsgs()?.find_map(|control| match control {
                ControlMessageOwned::Ipv4RecvErr(error, _)
                | ControlMessageOwned::Ipv6RecvErr(error, _) => {
                    read_report(error.ee_origin, error.ee_code, error.ee_info, error.ee_data)
                }
                _ => None,
            });
            // The queue also contains other errors, which are skipped.
            if report.is_some() {
                return Ok(report);
            }
        }
    }
}

/// Reads the fields of an extended error: the launch time is in two of them.
fn read_report(origin: u8, code: u8, info: u32, data: u32) -> Option<LaunchReport> {
    let missed = match (origin, code) {
        (ORIGIN_TXTIME, CODE_MISSED) => Missed::Late,
        (ORIGIN_TXTIME, CODE_INVALID) => Missed::Refused,
        _ => return None,
    };
    Some(LaunchReport {
        missed,
        launch_ns: (u64::from(data) << 32) | u64::from(info),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_its_launch_time_in_two_halves() {
        let report = |origin, code| read_report(origin, code, 0x89ab_cdef, 0x0123_4567);
        let launch_ns = 0x0123_4567_89ab_cdef;
        for (code, missed) in [(2, Missed::Late), (1, Missed::Refused)] {
            let expected = LaunchReport { missed, launch_ns };
            assert_eq!(report(6, code), Some(expected));
        }
        // A timestamp, and a code that there is not.
        assert_eq!(report(4, 2), None);
        assert_eq!(report(6, 3), None);
    }

    #[test]
    fn datagrams_reach_the_loopback_by_every_option() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        far.set_read_timeout(Some(std::time::Duration::from_secs(10)))
            .unwrap();
        let to = far.local_addr().unwrap();
        let receive = || {
            let mut buffer = [0; 16];
            let bytes = far.recv(&mut buffer).unwrap();
            buffer[..bytes].to_vec()
        };
        let plain = LaunchSocket::connect(to, 1 << 16).unwrap();
        plain.send(b"plain", None).unwrap();
        assert_eq!(receive(), b"plain");
        let paced = LaunchSocket::connect(to, 1 << 16).unwrap();
        paced.set_max_pacing_rate(1_000_000).unwrap();
        paced.send(b"paced", None).unwrap();
        assert_eq!(receive(), b"paced");
        // The loopback has no qdisc: it ignores the time, and nothing is reported.
        let timed = LaunchSocket::connect(to, 1 << 16).unwrap();
        timed.set_launch_clock(LaunchClock::Monotonic).unwrap();
        let now_ns = LaunchClock::Monotonic.now_ns().unwrap();
        timed.send(b"timed", Some(now_ns + 1_000_000)).unwrap();
        assert_eq!(receive(), b"timed");
        assert_eq!(timed.report().unwrap(), None);
    }

    #[test]
    fn a_port_that_refuses_keeps_no_datagram_from_leaving() {
        let gone = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let socket = LaunchSocket::connect(gone, 1 << 16).unwrap();
        for _ in 0..20 {
            socket.send(b"x", None).unwrap();
        }
    }

    #[test]
    fn a_launch_time_needs_the_option() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = LaunchSocket::connect(far.local_addr().unwrap(), 1 << 16).unwrap();
        let error = socket.send(b"x", Some(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
