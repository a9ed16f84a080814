// SPDX-License-Identifier: MIT OR Apache-2.0
//! Receives and sends the frames of a device (AF_PACKET).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, send,
    setsockopt, socket, sockopt,
};
use nix::{libc, setsockopt_impl, sockopt_impl};

sockopt_impl!(
    /// Puts a `struct virtio_net_hdr` before each frame. It says what is still to be done to the
    /// frame: checksums that the host left to its device.
    VnetHeader,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_VNET_HDR,
    bool
);

/// Bytes before each frame, which go to the sending device as they were received.
pub const VNET_BYTES: usize = 10;
/// Requested receive buffer, for bursts; the host may allow less.
const RECEIVE_BYTES: usize = 4 << 20;

/// Receives and sends a device's IPv4 frames. It never waits.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    mac: [u8; 6],
}

impl PacketSocket {
    /// Opens the device `device`. Needs CAP_NET_RAW.
    ///
    /// # Errors
    /// If there is no such device, it is no Ethernet device, or permission is missing.
    pub fn open(device: &str) -> io::Result<Self> {
        let (link, mac) = link(device)?;
        // The socket is for this protocol alone: sockets for all protocols also receive what is
        // sent.
        let socket = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
            SockProtocol::EthIp,
        )?;
        setsockopt(&socket, VnetHeader, &true)?;
        setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BYTES)?;
        // The address contains no protocol, so the socket keeps its own.
        bind(socket.as_raw_fd(), &link)?;
        Ok(Self { socket, mac })
    }

    /// Returns the device's MAC address.
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Receives the next frame, after [`VNET_BYTES`], and returns the length of both. It exceeds
    /// the buffer if the frame was truncated. `None` if there is no frame.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match recv(self.socket.as_raw_fd(), buffer, MsgFlags::MSG_TRUNC) {
            Ok(bytes) => Ok(Some(bytes)),
            // A device that is down may come up again, so that is no error.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a frame, after its [`VNET_BYTES`].
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        send(self.socket.as_raw_fd(), frame, MsgFlags::empty())?;
        Ok(())
    }
}

impl AsFd for PacketSocket {
    /// Returns the descriptor, which is readable when a frame has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Opens a socket of all frames of a device, its own too, that receives none by itself: for a
/// filter that looks at them. Needs CAP_NET_RAW.
///
/// # Errors
/// If there is no such device, or permission is missing.
pub fn observer(device: &str) -> io::Result<OwnedFd> {
    let named = |name: &str| name == device;
    let link: LinkAddr = getifaddrs()?
        .filter(|i| named(&i.interface_name))
        .find_map(|i| i.address?.as_link_addr().copied())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such device"))?;
    let socket = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
        SockProtocol::EthAll,
    )?;
    // What comes before the filter is attached is not read, and shall not take memory.
    setsockopt(&socket, sockopt::RcvBuf, &0)?;
    bind(socket.as_raw_fd(), &link)?;
    Ok(socket)
}

/// Returns the MAC address of the device `device`.
///
/// # Errors
/// If there is no such device, or it is no Ethernet device.
pub fn mac_address(device: &str) -> io::Result<[u8; 6]> {
    link(device).map(|(_, mac)| mac)
}

fn link(device: &str) -> io::Result<(LinkAddr, [u8; 6])> {
    let named = |name: &str| name == device;
    let mut links = getifaddrs()?
        .filter(|i| named(&i.interface_name))
        .filter_map(|i| i.address?.as_link_addr().copied());
    let link: LinkAddr = links
        .next()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such device"))?;
    let mac = link
        .addr()
        .filter(|_| link.halen() == 6)
        .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "no Ethernet device"))?;
    Ok((link, mac))
}

/// Returns the IPv4 addresses of this host, each with the name of its device.
pub fn own_addresses() -> io::Result<Vec<(String, std::net::Ipv4Addr)>> {
    let all = getifaddrs()?.filter_map(|i| {
        let address = i.address?.as_sockaddr_in()?.ip();
        Some((i.interface_name, address))
    });
    Ok(all.collect())
}
