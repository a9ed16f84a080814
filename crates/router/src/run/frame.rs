// SPDX-License-Identifier: MIT OR Apache-2.0
//! A frame's buffer, from the device that received it to the one that sends it.

use afxdp::{BEFORE_BYTES, Chunk};
use linux_io::packet::VNET_BYTES;

use crate::ethernet::{self, ETHERNET, Header, fill_checksum};
use crate::itm::WireLength;

/// Room for a full frame with two VLAN tags.
pub(super) const FRAME_BYTES: usize = 1522;

const _: () = assert!(
    BEFORE_BYTES == VNET_BYTES && VNET_BYTES + FRAME_BYTES <= afxdp::CHUNK_BYTES,
    "a chunk has a frame and what AF_PACKET has before it"
);

/// VIRTIO_NET_HDR_F_NEEDS_CSUM, in the first of the bytes before a frame.
const NEEDS_SUM: u8 = 1;

/// A frame in the chunk that it was received into, which is handed from queue to
/// queue and never copied; and what is known of it.
pub(super) struct Frame {
    chunk: Chunk,
    /// Index of the port that it came by.
    pub from: usize,
    /// Its headers, once they are read.
    pub header: Option<Header>,
    /// Index of its stream, if it is of one.
    pub stream: Option<usize>,
}

impl From<Chunk> for Frame {
    fn from(chunk: Chunk) -> Self {
        Self {
            chunk,
            from: 0,
            header: None,
            stream: None,
        }
    }
}

impl Frame {
    /// The bytes that a device gets by AF_PACKET.
    pub fn with_vnet(&self) -> &[u8] {
        self.chunk.bytes()
    }

    /// The chunk that a device gets by AF_XDP.
    pub fn into_chunk(mut self) -> Chunk {
        if self
            .with_vnet()
            .first()
            .is_some_and(|flags| flags & NEEDS_SUM != 0)
        {
            self.fill_checksum();
        }
        self.chunk
    }

    /// Completes the checksum that the sender left to its device: no later host
    /// knows that it is missing.
    pub fn fill_checksum(&mut self) {
        fill_checksum(self.bytes_mut());
    }

    /// The bytes of the frame.
    pub fn bytes(&self) -> &[u8] {
        self.chunk.bytes().get(VNET_BYTES..).unwrap_or_default()
    }

    /// The bytes behind the Ethernet header.
    pub fn packet(&self) -> &[u8] {
        self.bytes().get(ETHERNET..).unwrap_or_default()
    }

    /// The bytes of the frame.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.chunk
            .bytes_mut()
            .get_mut(VNET_BYTES..)
            .unwrap_or_default()
    }
}

impl WireLength for Frame {
    fn wire_bytes(&self) -> u64 {
        ethernet::wire_bytes(self.bytes().len())
    }
}
