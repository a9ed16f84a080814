// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages about qdiscs, classes and filters: `struct tcmsg` and attributes.

use std::convert::Infallible;

use netlink_packet_core::{NetlinkDeserializable, NetlinkHeader, NetlinkSerializable};

use crate::attribute::{self, Attribute};
use crate::handle::Handle;

/// Types of messages (linux/rtnetlink.h).
pub(crate) const NEW_QDISC: u16 = 36;
pub(crate) const DELETE_QDISC: u16 = 37;
pub(crate) const GET_QDISC: u16 = 38;
pub(crate) const NEW_CLASS: u16 = 40;
pub(crate) const DELETE_CLASS: u16 = 41;
pub(crate) const GET_CLASS: u16 = 42;
pub(crate) const NEW_FILTER: u16 = 44;
pub(crate) const DELETE_FILTER: u16 = 45;
pub(crate) const GET_FILTER: u16 = 46;

/// Attributes of a message.
pub(crate) const KIND: u16 = 1;
pub(crate) const OPTIONS: u16 = 2;
pub(crate) const STATS2: u16 = 7;

/// Bytes of struct tcmsg.
const HEAD_BYTES: usize = 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    pub kind: u16,
    /// Interface index.
    pub device: u32,
    pub handle: Handle,
    pub parent: Handle,
    /// Of a filter its priority and protocol, of a class the handle of its qdisc.
    pub info: u32,
    pub attributes: Vec<Attribute>,
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        HEAD_BYTES + attribute::write(&self.attributes).len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        let head = [0, self.device, self.handle.0, self.parent.0, self.info];
        let head = head.into_iter().flat_map(u32::to_ne_bytes);
        let all = head.chain(attribute::write(&self.attributes));
        for (to, byte) in buffer.iter_mut().zip(all) {
            *to = byte;
        }
    }
}

impl NetlinkDeserializable for Message {
    type Error = Infallible;

    /// What is cut short is 0.
    fn deserialize(header: &NetlinkHeader, bytes: &[u8]) -> Result<Self, Infallible> {
        let number = |at: usize| {
            let number = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
            number.map_or(0, u32::from_ne_bytes)
        };
        Ok(Self {
            kind: header.message_type,
            device: number(4),
            handle: Handle(number(8)),
            parent: Handle(number(12)),
            info: number(16),
            attributes: attribute::read(bytes.get(HEAD_BYTES..).unwrap_or_default()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read() {
        let message = Message {
            kind: NEW_CLASS,
            device: 7,
            handle: Handle::new(1, 2),
            parent: Handle::ROOT,
            info: 9,
            attributes: vec![Attribute::string(KIND, "psp")],
        };
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        let mut header = NetlinkHeader::default();
        header.message_type = NEW_CLASS;
        let Ok(read) = Message::deserialize(&header, &bytes);
        assert_eq!(read, message);
        let Ok(short) = Message::deserialize(&header, &bytes[..3]);
        assert_eq!((short.device, short.attributes.len()), (0, 0));
    }
}
