// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks the kernel by rtnetlink: reads its tables and requests changes. The libraries encode the
//! messages and own the socket (docs/decisions/isochronous.md, "Neighbours and devices by
//! netlink").

use std::{error, fmt, io};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST,
    NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
    NlasIterator,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::{NETLINK_GENERIC, NETLINK_ROUTE, NETLINK_SOCK_DIAG};
use netlink_sys::{Socket as NetlinkSocket, SocketAddr};

/// Bytes of the receive buffer; the kernel fills at most 32 KiB at once.
const ANSWER_BYTES: usize = 64 << 10;
/// Messages begin at multiples of this number of bytes (NLMSG_ALIGNTO).
const ALIGNED: usize = 4;
/// Bytes of an error's code, and of a message's header (struct nlmsghdr).
const CODE_BYTES: usize = 4;
const HEADER_BYTES: usize = 16;
/// Attribute of an answer that says why (NLMSGERR_ATTR_MSG).
const REASON: u16 = 1;
/// Readings of a table that changes meanwhile.
const READINGS: u32 = 16;

/// An error, with what the kernel says about it.
#[derive(Debug)]
pub struct Error {
    pub cause: io::Error,
    /// The kernel's text, if it gave one (extack).
    pub reason: Option<String>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "{reason} ({})", self.cause),
            None => self.cause.fmt(f),
        }
    }
}

impl error::Error for Error {}

impl From<io::Error> for Error {
    fn from(cause: io::Error) -> Self {
        Self {
            cause,
            reason: None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error.reason {
            Some(_) => Self::new(error.cause.kind(), error),
            None => error.cause,
        }
    }
}

/// A socket of rtnetlink. One request is under way at a time.
#[derive(Debug)]
pub struct Socket {
    socket: NetlinkSocket,
    sequence: u32,
    buffer: Vec<u8>,
}

/// What an answer has of a request: entries of a table, and whether it goes on.
enum Part {
    More,
    End,
    /// The table changed while it was read.
    Inconsistent,
}

impl Socket {
    /// Opens a socket whose answers tell reasons.
    pub fn open() -> io::Result<Self> {
        Self::open_of(NETLINK_ROUTE)
    }

    /// Opens a socket of generic netlink, whose messages have the same frame.
    pub fn generic() -> io::Result<Self> {
        Self::open_of(NETLINK_GENERIC)
    }

    /// Opens a socket that tells of the host's sockets (sock_diag), in messages of the same frame.
    pub fn sock_diag() -> io::Result<Self> {
        Self::open_of(NETLINK_SOCK_DIAG)
    }

    fn open_of(family: isize) -> io::Result<Self> {
        let socket = NetlinkSocket::new(family)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.set_ext_ack(true)?;
        socket.set_cap_ack(true)?;
        Ok(Self {
            socket,
            sequence: 0,
            buffer: Vec::with_capacity(ANSWER_BYTES),
        })
    }

    /// Returns all entries of a table. A table that changes meanwhile is read again.
    ///
    /// # Errors
    /// The kernel's; [`io::ErrorKind::Interrupted`] if the table changed in each reading.
    pub fn dump<M>(&mut self, what: M) -> Result<Vec<M>, Error>
    where
        M: NetlinkSerializable + NetlinkDeserializable + Clone,
    {
        for _ in 0..READINGS {
            self.send(what.clone(), NLM_F_DUMP)?;
            let mut all = Vec::new();
            let mut is_consistent = true;
            loop {
                match self.receive(|entry| all.push(entry))? {
                    Part::More => {}
                    Part::Inconsistent => is_consistent = false,
                    Part::End => break,
                }
            }
            if is_consistent {
                return Ok(all);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::Interrupted,
            "the kernel's table changes faster than it can be read",
        )
        .into())
    }

    /// Requests a change, with flags beside those of a request, and waits until it is made.
    ///
    /// # Errors
    /// The kernel's: nothing is changed.
    pub fn request<M>(&mut self, what: M, flags: u16) -> Result<(), Error>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
    {
        self.send(what, flags | NLM_F_ACK)?;
        loop {
            if let Part::End = self.receive(|_: M| ())? {
                return Ok(());
            }
        }
    }

    /// Asks for something that is no table, and returns the answers.
    pub fn ask<M>(&mut self, what: M) -> Result<Vec<M>, Error>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
    {
        self.send(what, NLM_F_ACK)?;
        let mut all = Vec::new();
        loop {
            if let Part::End = self.receive(|entry| all.push(entry))? {
                return Ok(all);
            }
        }
    }

    fn send<M: NetlinkSerializable>(&mut self, what: M, flags: u16) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(what));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(|_| ())
    }

    /// Receives a part of the answer to the last request.
    fn receive<M: NetlinkDeserializable>(
        &mut self,
        mut entry: impl FnMut(M),
    ) -> Result<Part, Error> {
        self.buffer.clear();
        match self.socket.recv(&mut self.buffer, 0) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Part::More),
            received => received?,
        };
        let mut part = Part::More;
        let mut rest = self.buffer.as_slice();
        while !rest.is_empty() {
            let message = NetlinkMessage::<M>::deserialize(rest).map_err(io::Error::other)?;
            let (length, flags) = (message.header.length as usize, message.header.flags);
            let body = rest.get(HEADER_BYTES..length).unwrap_or_default();
            rest = rest
                .get(length.next_multiple_of(ALIGNED)..)
                .unwrap_or_default();
            if message.header.sequence_number != self.sequence {
                continue;
            }
            if flags & NLM_F_DUMP_INTR != 0 {
                part = Part::Inconsistent;
            }
            match message.payload {
                NetlinkPayload::InnerMessage(message) => entry(message),
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Err(io::Error::from_raw_os_error(-done.code).into());
                }
                NetlinkPayload::Error(answer) if answer.code.is_some() => {
                    return Err(Error {
                        cause: answer.to_io(),
                        reason: reason(flags, body),
                    });
                }
                // Nothing follows the end in the same datagram.
                NetlinkPayload::Done(_) | NetlinkPayload::Error(_) => return Ok(Part::End),
                _ => {}
            }
        }
        Ok(part)
    }
}

/// Returns the kernel's text in the body of an error: it stands behind the code and the request,
/// of which the kernel repeats the header alone if it says so.
fn reason(flags: u16, body: &[u8]) -> Option<String> {
    if flags & NLM_F_ACK_TLVS == 0 {
        return None;
    }
    let request = body.get(CODE_BYTES..)?;
    let length = u32::from_ne_bytes(request.get(..4)?.try_into().ok()?) as usize;
    let repeated = match flags & NLM_F_CAPPED {
        0 => length.next_multiple_of(ALIGNED),
        _ => HEADER_BYTES,
    };
    let text = NlasIterator::new(request.get(repeated..)?)
        .filter_map(Result::ok)
        .find(|attribute| attribute.kind() == REASON)?;
    let text = text.value();
    let text = text.strip_suffix(&[0]).unwrap_or(text);
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Returns all entries of a table.
pub(crate) fn dump(what: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
    Ok(Socket::open()?.dump(what)?)
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::link::LinkMessage;

    use super::*;

    /// An answer as kernel 6.12 writes it: ENOENT, the request's header, a text.
    fn answer(is_capped: bool) -> Vec<u8> {
        let mut body = (-2i32).to_ne_bytes().to_vec();
        body.extend(20u32.to_ne_bytes());
        body.extend([0; 12]);
        if !is_capped {
            body.extend([0; 4]);
        }
        body.extend(8u16.to_ne_bytes());
        body.extend(REASON.to_ne_bytes());
        body.extend(b"why\0");
        body
    }

    #[test]
    fn a_reason_is_found_behind_the_request() {
        let both = NLM_F_ACK_TLVS | NLM_F_CAPPED;
        assert_eq!(reason(both, &answer(true)).as_deref(), Some("why"));
        assert_eq!(
            reason(NLM_F_ACK_TLVS, &answer(false)).as_deref(),
            Some("why")
        );
        assert_eq!(reason(NLM_F_CAPPED, &answer(true)), None);
        for bytes in 0..answer(true).len() {
            assert_eq!(reason(both, &answer(true)[..bytes]), None, "{bytes}");
        }
    }

    #[test]
    fn a_refusal_is_an_error() {
        let mut device = LinkMessage::default();
        device.header.index = u32::MAX >> 1;
        let mut socket = Socket::open().unwrap();
        let refused = socket
            .request(RouteNetlinkMessage::DelLink(device), 0)
            .unwrap_err();
        // EPERM of a user without privileges, else ENODEV.
        let errno = refused.cause.raw_os_error();
        assert!([Some(1), Some(19)].contains(&errno), "{refused}");
        // The socket goes on.
        let all = socket.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()));
        assert!(!all.unwrap().is_empty());
    }
}
