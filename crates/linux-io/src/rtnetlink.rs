// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the kernel's network tables (rtnetlink). The library encodes the messages, the socket is
//! `nix`'s (docs/decisions/isochronous.md, "Neighbours and devices by netlink").

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// Bytes of the receive buffer; the kernel fills at most 32 KiB at once.
const ANSWER_BYTES: usize = 64 << 10;
/// Messages begin at multiples of this number of bytes (NLMSG_ALIGNTO).
const ALIGNED: usize = 4;

/// Returns all entries of a table.
pub(crate) fn dump(what: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut request = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(what));
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    send(socket.as_raw_fd(), &bytes, MsgFlags::empty())?;
    let mut all = Vec::new();
    let mut buffer = vec![0; ANSWER_BYTES];
    while take(&socket, &mut buffer, &mut all)? {}
    Ok(all)
}

/// Receives one part of a table; returns `false` once the table has ended.
fn take(
    socket: &OwnedFd,
    buffer: &mut [u8],
    all: &mut Vec<RouteNetlinkMessage>,
) -> io::Result<bool> {
    let bytes = match recv(socket.as_raw_fd(), buffer, MsgFlags::empty()) {
        Ok(bytes) => bytes,
        Err(Errno::EINTR) => return Ok(true),
        Err(error) => return Err(error.into()),
    };
    let mut rest = buffer.get(..bytes).unwrap_or_default();
    while !rest.is_empty() {
        let message =
            NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(io::Error::other)?;
        match message.payload {
            NetlinkPayload::InnerMessage(entry) => all.push(entry),
            NetlinkPayload::Done(_) => return Ok(false),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            _ => {}
        }
        let length = message.header.length as usize;
        rest = rest
            .get(length.next_multiple_of(ALIGNED)..)
            .unwrap_or_default();
    }
    Ok(true)
}
