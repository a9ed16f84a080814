// SPDX-License-Identifier: MIT OR Apache-2.0
//! A frame's buffer, from the device that received it to the one that sends it.

use linux_io::packet::VNET_BYTES;

use crate::afxdp::{BEFORE_BYTES, Chunk};
use crate::ethernet::{self, ETHERNET, Header, fill_checksum};
use crate::itm::WireLength;

/// Bytes of a full frame with two VLAN tags.
pub(super) const FRAME_BYTES: usize = 1522;

const _: () = assert!(
    BEFORE_BYTES == VNET_BYTES && VNET_BYTES + FRAME_BYTES <= crate::afxdp::CHUNK_BYTES,
    "a chunk has a frame and what AF_PACKET has before it"
);

/// VIRTIO_NET_HDR_F_NEEDS_CSUM, a flag in the first byte before a frame.
const NEEDS_SUM: u8 = 1;

/// A frame in the chunk that it was received into, with what is known of it. The chunk is passed
/// from queue to queue and never copied.
pub(super) struct Frame {
    chunk: Chunk,
    /// Index of the port that received it.
    pub from: usize,
    /// Its headers, once they are read.
    pub header: Option<Header>,
    /// Index of its stream, if it belongs to one.
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
    /// Returns the bytes for a device with AF_PACKET.
    pub fn with_vnet(&self) -> &[u8] {
        self.chunk.bytes()
    }

    /// Returns the chunk for a device with AF_XDP.
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

    /// Fills the checksum that the sender left to its device: no later host knows that it is
    /// missing.
    pub fn fill_checksum(&mut self) {
        fill_checksum(self.bytes_mut());
    }

    /// Returns the bytes of the frame.
    pub fn bytes(&self) -> &[u8] {
        self.chunk.bytes().get(VNET_BYTES..).unwrap_or_default()
    }

    /// Returns the bytes after the Ethernet header.
    pub fn packet(&self) -> &[u8] {
        self.bytes().get(ETHERNET..).unwrap_or_default()
    }

    /// Returns the bytes of the frame, mutable.
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
