// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receives copies of this host's TCP packets (AF_PACKET), from the network header on. No interface
//! becomes promiscuous.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType,
    getsockopt, recvmsg, setsockopt, socket, sockopt,
};
use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};

use crate::clock::nanoseconds;

sockopt_impl!(
    /// A filter that the kernel applies to each packet.
    AttachFilter,
    SetOnly,
    libc::SOL_SOCKET,
    libc::SO_ATTACH_FILTER,
    libc::sock_fprog
);
sockopt_impl!(
    /// Packets that were received and dropped since the last call.
    Statistics,
    GetOnly,
    libc::SOL_PACKET,
    libc::PACKET_STATISTICS,
    libc::tpacket_stats
);

/// Requested receive buffer; the host may allow less to a process without CAP_NET_ADMIN.
const RECEIVE_BYTES: usize = 8 << 20;
/// Room for a timestamp.
const CONTROL_BYTES: usize = 64;

/// The filter, in classic BPF: keeps TCP over IPv4, or over IPv6 without extension headers.
const FILTER: [(u16, u8, u8, u32); 10] = [
    (0x30, 0, 0, 0),        // load byte 0
    (0x54, 0, 0, 0xf0),     // and 0xf0: the version
    (0x15, 0, 2, 0x40),     // IPv4, else skip 2
    (0x30, 0, 0, 9),        // load the protocol
    (0x15, 3, 4, 6),        // TCP: keep, else leave
    (0x15, 0, 3, 0x60),     // IPv6, else leave
    (0x30, 0, 0, 6),        // load the next header
    (0x15, 0, 1, 6),        // TCP: keep, else leave
    (0x06, 0, 0, u32::MAX), // keep
    (0x06, 0, 0, 0),        // leave
];

/// A received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpPacket {
    /// Its length from the network header on, which exceeds the buffer if it was cut.
    pub bytes: usize,
    /// When the kernel had it, on CLOCK_REALTIME.
    pub time_ns: u64,
    /// Index of its interface.
    pub interface: u32,
    /// Whether this host sends it.
    pub is_outgoing: bool,
}

/// A socket that receives copies of all TCP packets of this network namespace. It never waits.
#[derive(Debug)]
pub struct TcpPackets {
    socket: OwnedFd,
    dropped: u64,
}

impl TcpPackets {
    /// Opens the socket. Needs CAP_NET_RAW.
    pub fn open() -> io::Result<Self> {
        // A few packets of other protocols come before the filter is attached.
        let socket = socket(
            AddressFamily::Packet,
            SockType::Datagram,
            SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
            SockProtocol::EthAll,
        )?;
        let mut filter = FILTER.map(|(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k });
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        setsockopt(&socket, AttachFilter, &program)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BYTES).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BYTES)?;
        }
        Ok(Self { socket, dropped: 0 })
    }

    /// Receives the next packet; `None` if there is none.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<TcpPacket>> {
        let mut control = [0; CONTROL_BYTES];
        let fd = self.socket.as_raw_fd();
        loop {
            let parts = &mut [IoSliceMut::new(buffer)];
            let flags = MsgFlags::MSG_TRUNC;
            let message = match recvmsg::<LinkAddr>(fd, parts, Some(&mut control), flags) {
                Ok(message) => message,
                // An interface that goes down is no error: others are still there.
                Err(Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let Some(link) = message.address else {
                continue;
            };
            let is_outgoing = link.pkttype() == libc::PACKET_OUTGOING;
            // The loopback receives what it sends: the second copy is enough.
            if is_outgoing && link.hatype() == libc::ARPHRD_LOOPBACK {
                continue;
            }
            let time = message.cmsgs()?.find_map(|control| match control {
                ControlMessageOwned::ScmTimestampns(time) => Some(nanoseconds(time)),
                _ => None,
            });
            return Ok(Some(TcpPacket {
                bytes: message.bytes,
                time_ns: time.unwrap_or_default(),
                interface: u32::try_from(link.ifindex()).unwrap_or_default(),
                is_outgoing,
            }));
        }
    }

    /// Returns the packets for which this socket's buffer had no room so far.
    pub fn dropped(&mut self) -> io::Result<u64> {
        // The kernel begins again at 0 with each call.
        self.dropped += u64::from(getsockopt(&self.socket, Statistics)?.tp_drops);
        Ok(self.dropped)
    }
}

impl AsFd for TcpPackets {
    /// Returns the descriptor, which is readable when a packet has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the name of an interface, or its number if it is gone.
pub fn interface_name(index: u32) -> String {
    match nix::net::if_::if_indextoname(index) {
        // nix returns an empty name where there is none.
        Ok(name) if !name.is_empty() => name.to_string_lossy().into_owned(),
        _ => format!("if{index}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::time::{Duration, Instant};

    use super::*;

    /// Returns what arrives with this port within a time, until there is a segment with payload.
    fn packets_of(socket: &TcpPackets, port: u16) -> Vec<(TcpPacket, Vec<u8>)> {
        let until = Instant::now() + Duration::from_secs(5);
        let mut buffer = [0; 128];
        let mut found = Vec::new();
        while Instant::now() < until {
            let Some(packet) = socket.receive(&mut buffer).unwrap() else {
                crate::wait::readable(&[socket.as_fd()], 100_000_000).unwrap();
                continue;
            };
            let bytes = &buffer[..packet.bytes.min(128)];
            if bytes.get(22..24) == Some(&port.to_be_bytes()[..]) {
                found.push((packet, bytes.to_vec()));
                if packet.bytes > 500 {
                    break;
                }
            }
        }
        found
    }

    #[test]
    fn tcp_is_received_once_and_nothing_else() {
        let mut socket = match TcpPackets::open() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return,
            other => other.unwrap(),
        };
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        udp.send_to(&[1; 600], address).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&[7; 500]).unwrap();
        let found = packets_of(&socket, address.port());
        let lengths: Vec<usize> = found.iter().map(|(packet, _)| packet.bytes).collect();
        // SYN, the last part of the handshake, and the data: each once.
        assert_eq!(lengths, [60, 52, 552]);
        let (last, bytes) = &found[2];
        assert_eq!((bytes[9], last.is_outgoing), (6, false));
        assert_eq!(interface_name(last.interface), "lo");
        assert!(last.time_ns > 0);
        assert_eq!(socket.dropped().unwrap(), 0);
        assert_eq!(interface_name(u32::MAX), "if4294967295");
    }
}
