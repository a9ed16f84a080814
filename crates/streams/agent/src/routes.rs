// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks the kernel by which device it sends packets to an address, and waits for changes of devices, routes
//! and rules that may change the answer.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use linux_io::links::links;
use linux_io::rtnetlink::Socket;
use linux_io::wait::readable;
use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket as NetlinkSocket, SocketAddr};
use nix::errno::Errno;
use nix::libc;

use crate::known::Routes;

/// Groups of rtnetlink that report changes of devices, and of IPv4's and IPv6's routes and rules.
const GROUPS: [u32; 5] = [
    libc::RTNLGRP_LINK,
    libc::RTNLGRP_IPV4_ROUTE,
    libc::RTNLGRP_IPV4_RULE,
    libc::RTNLGRP_IPV6_ROUTE,
    libc::RTNLGRP_IPV6_RULE,
];
/// Errors of an address without a usable route: two of no route, then two of a route that refuses
/// packets (prohibit, black hole).
const NO_ROUTE: [Errno; 4] = [
    Errno::ENETUNREACH,
    Errno::EHOSTUNREACH,
    Errno::EACCES,
    Errno::EINVAL,
];
/// Time after a change in which further changes belong to it.
const SETTLE: Duration = Duration::from_millis(100);
/// Longest wait before the socket is read again.
const LONGEST_WAIT_NS: u64 = 60_000_000_000;
/// Bytes of a message that are read. Its content is not used: the caller asks for the routes anew.
const READ_BYTES: usize = 4096;

/// Returns, for each address, the device by which the kernel sends packets of this host to it.
pub fn routes(to: impl IntoIterator<Item = IpAddr>) -> io::Result<Routes> {
    let mut socket = Socket::open()?;
    let names = links()?.into_iter().map(|link| (link.index, link.name));
    let names: BTreeMap<_, _> = names.collect();
    let device = |to: IpAddr| {
        let index = device_to(&mut socket, to)?;
        Ok((to, index.and_then(|index| names.get(&index).cloned())))
    };
    to.into_iter().map(device).collect()
}

fn device_to(socket: &mut Socket, to: IpAddr) -> io::Result<Option<u32>> {
    let mut ask = RouteMessage::default();
    (
        ask.header.address_family,
        ask.header.destination_prefix_length,
    ) = match to {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    ask.attributes.push(RouteAttribute::Destination(to.into()));
    let answers = match socket.ask(RouteNetlinkMessage::GetRoute(ask)) {
        Ok(answers) => answers,
        Err(error) => {
            let errno = error.cause.raw_os_error();
            return if errno.is_some_and(|errno| NO_ROUTE.contains(&Errno::from_raw(errno))) {
                Ok(None)
            } else {
                Err(error.into())
            };
        }
    };
    let mut attributes = answers.into_iter().flat_map(|answer| match answer {
        RouteNetlinkMessage::NewRoute(route) => route.attributes,
        _ => Vec::new(),
    });
    Ok(attributes.find_map(|attribute| match attribute {
        RouteAttribute::Oif(index) => Some(index),
        _ => None,
    }))
}

/// A socket on which the kernel reports changes of devices, routes and rules.
#[derive(Debug)]
pub struct Changes(NetlinkSocket);

impl Changes {
    /// Listens from now on.
    pub fn open() -> io::Result<Self> {
        let mut socket = NetlinkSocket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, 0))?;
        for group in GROUPS {
            socket.add_membership(group)?;
        }
        socket.set_non_blocking(true)?;
        Ok(Self(socket))
    }

    /// Waits for a change. Changes that follow each other within `SETTLE` count as one.
    pub fn wait(&self) -> io::Result<()> {
        while !self.has_changed()? {
            readable(&[self.0.as_fd()], LONGEST_WAIT_NS)?;
        }
        std::thread::sleep(SETTLE);
        while self.has_changed()? {}
        Ok(())
    }

    fn has_changed(&self) -> io::Result<bool> {
        let mut buffer = Vec::with_capacity(READ_BYTES);
        match self.0.recv(&mut buffer, 0) {
            Ok(_) => Ok(true),
            // The socket's buffer was full, and the kernel dropped messages.
            Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => Ok(true),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(false),
                _ => Err(error),
            },
        }
    }
}
