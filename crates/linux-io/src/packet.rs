// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of a device (AF_PACKET).

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
    /// Before each frame stands what is still to be done to it (`struct
    /// virtio_net_hdr`): check sums that the host left to its device.
    VnetHeader,
    SetOnly,
    libc::SOL_PACKET,
    libc::PACKET_VNET_HDR,
    bool
);

/// Bytes before each frame, given to the device as they came.
pub const VNET_BYTES: usize = 10;
/// Asked for, for bursts; the host may allow less.
const RECEIVE_BYTES: usize = 4 << 20;

/// A device's IPv4 frames, received and sent. It never waits.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    mac: [u8; 6],
}

impl PacketSocket {
    /// Of a device by its name. Needs CAP_NET_RAW.
    ///
    /// # Errors
    /// No such device, no Ethernet, or no permission.
    pub fn open(device: &str) -> io::Result<Self> {
        let (link, mac) = link(device)?;
        // Of this protocol alone: sockets for all protocols see what is sent too.
        let socket = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
            SockProtocol::EthIp,
        )?;
        setsockopt(&socket, VnetHeader, &true)?;
        setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BYTES)?;
        // The address bears no protocol, so the socket keeps its own.
        bind(socket.as_raw_fd(), &link)?;
        Ok(Self { socket, mac })
    }

    /// The device's MAC address.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// The next frame, after [`VNET_BYTES`]: how long both are, which is more
    /// than the buffer if they were cut. `None` if there is none.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match recv(self.socket.as_raw_fd(), buffer, MsgFlags::MSG_TRUNC) {
            Ok(bytes) => Ok(Some(bytes)),
            // A device that was down for a moment is no error for ever.
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a frame, after its [`VNET_BYTES`].
    ///
    /// # Errors
    /// When the device does not take it.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        send(self.socket.as_raw_fd(), frame, MsgFlags::empty())?;
        Ok(())
    }
}

impl AsFd for PacketSocket {
    /// Readable when a frame has come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The MAC address of a device, by its name.
///
/// # Errors
/// No such device, or no Ethernet.
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

/// IPv4 addresses of this host, each with the name of its device.
///
/// # Errors
/// When they cannot be listed.
pub fn own_addresses() -> io::Result<Vec<(String, std::net::Ipv4Addr)>> {
    let all = getifaddrs()?.filter_map(|i| {
        let address = i.address?.as_sockaddr_in()?.ip();
        Some((i.interface_name, address))
    });
    Ok(all.collect())
}
