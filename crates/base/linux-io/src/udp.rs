// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UDP socket with the kernel's timestamps (SO_TIMESTAMPING, software).

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::str::FromStr;

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, RecvMsg, SockaddrStorage, TimestampingFlag, recvmsg, setsockopt,
    sockopt,
};
use units::time::NS_PER_S;

use crate::clock::{nanoseconds, tai_ahead_s};

/// Requested receive buffer, for datagrams that arrive while this program does not run; the host
/// may allow less.
const RECEIVE_BYTES: usize = 4 << 20;
/// Room for a timestamp, a count and an extended error with its address.
const CONTROL_BYTES: usize = 256;

/// A received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub bytes: usize,
    /// Address of its sender.
    pub from: Option<SocketAddr>,
    /// Time at which the kernel received it, on CLOCK_TAI.
    pub kernel_ns: Option<u64>,
    /// Datagrams that did not fit into this socket's buffer before this one arrived.
    pub overrun: u32,
}

/// The time at which the kernel gave a datagram to its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftAt {
    /// Number of the datagram, counted from 0 in the order of sending.
    pub number: u32,
    /// The time, on CLOCK_TAI.
    pub kernel_ns: u64,
}

/// The traffic class of sent datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// SO_PRIORITY: a band, or a class of a qdisc as major << 16 | minor.
    pub priority: Option<u32>,
    /// Differentiated services code point, 0 to 63.
    pub dscp: Option<u8>,
}

/// Largest differentiated services code point.
const MOST_DSCP: u8 = 63;

impl FromStr for Class {
    type Err = String;

    /// Parses `PRIO`, `PRIO/DSCP` or `/DSCP`, where PRIO is a number or a class `MAJOR:MINOR`, in
    /// hexadecimal as `tc` writes it.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected a priority, a class such as 1:10, and /DSCP of 0 to 63".to_owned();
        let (priority, dscp) = match text.split_once('/') {
            Some((priority, dscp)) => (priority, Some(dscp)),
            None => (text, None),
        };
        let priority = match (priority, priority.split_once(':')) {
            ("", _) => None,
            (_, Some((major, minor))) => {
                let hex = |text| u16::from_str_radix(text, 16).map_err(|_| wrong());
                Some((u32::from(hex(major)?) << 16) | u32::from(hex(minor)?))
            }
            (number, None) => Some(number.parse().map_err(|_| wrong())?),
        };
        let dscp = match dscp {
            None => None,
            Some(dscp) => Some(dscp.parse().map_err(|_| wrong())?),
        };
        if dscp.is_some_and(|d: u8| d > MOST_DSCP) || (priority, dscp) == (None, None) {
            return Err(wrong());
        }
        Ok(Class { priority, dscp })
    }
}

/// A UDP socket with timestamps; it never waits.
#[derive(Debug)]
pub struct TimestampedSocket {
    socket: UdpSocket,
    tai_ahead_ns: u64,
}

impl TimestampedSocket {
    /// Asks the kernel for timestamps of received and, with `sent`, of sent datagrams.
    pub fn new(socket: UdpSocket, sent: bool) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let mut flags = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE;
        if sent {
            flags |= TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
                | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
                | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
        }
        setsockopt(&socket, sockopt::Timestamping, &flags)?;
        // With CAP_NET_ADMIN the size may exceed the host's limit, without it may not.
        setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BYTES)
            .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BYTES))?;
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        Ok(Self {
            socket,
            tai_ahead_ns: tai_ahead_s()?.saturating_mul(NS_PER_S),
        })
    }

    /// Returns the socket itself, for sending.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Sets the class of the datagrams that are sent.
    ///
    /// # Errors
    /// If the host does not allow it: priorities above 6 need CAP_NET_ADMIN.
    pub fn set_class(&self, class: Class) -> io::Result<()> {
        // The code point comes first, because the kernel derives a priority from it.
        if let Some(dscp) = class.dscp {
            let field = i32::from(dscp) << 2;
            match self.socket.local_addr()? {
                SocketAddr::V4(_) => setsockopt(&self.socket, sockopt::Ipv4Tos, &field)?,
                SocketAddr::V6(_) => setsockopt(&self.socket, sockopt::Ipv6TClass, &field)?,
            }
        }
        if let Some(priority) = class.priority {
            // The priority is unsigned, but the call takes a signed number.
            let bits = i32::from_ne_bytes(priority.to_ne_bytes());
            setsockopt(&self.socket, sockopt::Priority, &bits)?;
        }
        Ok(())
    }

    /// Receives the next datagram; `None` if there is none.
    ///
    /// # Errors
    /// An error that the network reports for earlier datagrams (a refused port), or one of the
    /// socket.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut control = [0; CONTROL_BYTES];
        let parts = &mut [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let fd = self.socket.as_raw_fd();
        let message = match recvmsg::<SockaddrStorage>(fd, parts, Some(&mut control), flags) {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let overrun = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::RxqOvfl(count) => Some(count),
            _ => None,
        });
        Ok(Some(Received {
            overrun: overrun.unwrap_or(0),
            bytes: message.bytes,
            from: message.address.as_ref().and_then(address),
            kernel_ns: self.timestamp(&message),
        }))
    }

    /// Returns the next timestamp of a sent datagram; `None` if there is none.
    pub fn left_at(&self) -> io::Result<Option<LeftAt>> {
        let mut control = [0; CONTROL_BYTES];
        let parts = &mut [];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let fd = self.socket.as_raw_fd();
        loop {
            let message = match recvmsg::<()>(fd, parts, Some(&mut control), flags) {
                Ok(message) => message,
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let number = message.cmsgs()?.find_map(|control| match control {
                ControlMessageOwned::Ipv4RecvErr(error, _)
                | ControlMessageOwned::Ipv6RecvErr(error, _) => Some(error.ee_data),
                _ => None,
            });
            // The queue also contains other errors, which are skipped.
            if let Some((number, kernel_ns)) = number.zip(self.timestamp(&message)) {
                return Ok(Some(LeftAt { number, kernel_ns }));
            }
        }
    }

    fn timestamp<S>(&self, message: &RecvMsg<'_, '_, S>) -> Option<u64> {
        let timestamp = message.cmsgs().ok()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampsns(timestamps) => {
                Some(nanoseconds(timestamps.system))
            }
            _ => None,
        })?;
        // 0 means that the packet has no timestamp.
        (timestamp > 0).then(|| timestamp.saturating_add(self.tai_ahead_ns))
    }
}

impl AsFd for TimestampedSocket {
    /// Returns the descriptor, which is readable when a datagram or a timestamp has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage
        .as_sockaddr_in()
        .map(|a| SocketAddr::V4((*a).into()));
    v4.or_else(|| {
        storage
            .as_sockaddr_in6()
            .map(|a| SocketAddr::V6((*a).into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries for 2000 times at most: a busy machine may delay even the loopback.
    fn wait<T>(mut what: impl FnMut() -> io::Result<Option<T>>) -> T {
        for _ in 0..2000 {
            if let Some(found) = what().unwrap() {
                return found;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("nothing came in two seconds");
    }

    #[test]
    fn both_ends_have_timestamps_of_one_clock() {
        let far = TimestampedSocket::new(UdpSocket::bind("127.0.0.1:0").unwrap(), false).unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        near.connect(far.socket().local_addr().unwrap()).unwrap();
        let near = TimestampedSocket::new(near, true).unwrap();
        near.set_class(Class {
            priority: Some(6),
            dscp: Some(46),
        })
        .unwrap();
        let mut timestamped = 0;
        // The kernel begins to add timestamps some time after the request.
        for number in 0..2000 {
            let before_ns = crate::clock::tai_ns().unwrap();
            near.socket().send(b"hello").unwrap();
            let left = wait(|| near.left_at());
            assert_eq!(left.number, number);
            let mut buffer = [0; 64];
            let received = wait(|| far.receive(&mut buffer));
            assert_eq!(&buffer[..received.bytes], b"hello");
            assert_eq!(received.from, near.socket().local_addr().ok());
            if let Some(arrived_ns) = received.kernel_ns {
                assert!(
                    before_ns <= left.kernel_ns && left.kernel_ns <= arrived_ns,
                    "{before_ns} {left:?} {arrived_ns}"
                );
                timestamped += 1;
            }
            if timestamped == 3 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(timestamped, 3, "no timestamps");
        assert_eq!(near.left_at().unwrap(), None);
        assert_eq!(far.receive(&mut [0; 8]).unwrap(), None);
    }

    #[test]
    fn classes() {
        let of = |priority, dscp| Ok(Class { priority, dscp });
        let class = |text: &str| text.parse::<Class>();
        assert_eq!(class("6"), of(Some(6), None));
        assert_eq!(class("6/46"), of(Some(6), Some(46)));
        assert_eq!(class("/0"), of(None, Some(0)));
        assert_eq!(class("1:10/46"), of(Some(0x1_0010), Some(46)));
        for text in ["", "/", "x", "1/64", "1:", ":1", "1:10000", "-1", "1/2/3"] {
            assert!(class(text).is_err(), "{text}");
        }
    }
}
