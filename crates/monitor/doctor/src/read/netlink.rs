// SPDX-License-Identifier: MIT OR Apache-2.0
//! A netlink message of any kind: a head of bytes, and attributes.

use std::convert::Infallible;

use netlink_packet_core::{NetlinkDeserializable, NetlinkHeader, NetlinkSerializable};
use tcpsp::attribute::{self, Attribute};

/// A message whose head has `HEAD` bytes, and `ANSWER` bytes in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<const HEAD: usize, const ANSWER: usize> {
    pub kind: u16,
    pub head: [u8; HEAD],
    pub attributes: Vec<Attribute>,
}

impl<const HEAD: usize, const ANSWER: usize> NetlinkSerializable for Message<HEAD, ANSWER> {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        HEAD + attribute::write(&self.attributes).len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        let all = self
            .head
            .into_iter()
            .chain(attribute::write(&self.attributes));
        for (to, byte) in buffer.iter_mut().zip(all) {
            *to = byte;
        }
    }
}

impl<const HEAD: usize, const ANSWER: usize> NetlinkDeserializable for Message<HEAD, ANSWER> {
    type Error = Infallible;

    /// What is cut short is 0; of a longer head its first part is kept.
    fn deserialize(header: &NetlinkHeader, bytes: &[u8]) -> Result<Self, Infallible> {
        let mut head = [0; HEAD];
        for (to, byte) in head.iter_mut().zip(bytes) {
            *to = *byte;
        }
        Ok(Self {
            kind: header.message_type,
            head,
            attributes: attribute::read(bytes.get(ANSWER..).unwrap_or_default()),
        })
    }
}

pub fn value(attributes: &[Attribute], kind: u16) -> Option<&[u8]> {
    let found = attributes.iter().find(|attribute| attribute.kind == kind)?;
    Some(&found.value)
}
