// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of all frames (a "UMEM"), in chunks of one size.

#![allow(unsafe_code)]

use std::io;
use std::iter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xdp::umem::{FrameSize, UmemCfgBuilder};
use xdp::{Packet, Umem};

/// Bytes before each frame, for the `struct virtio_net_hdr` that AF_PACKET devices expect there.
pub const BEFORE_BYTES: usize = 10;
/// Usable bytes of a chunk: of 2048 the kernel keeps the first 256 (XDP_PACKET_HEADROOM).
pub const CHUNK_BYTES: usize = 2048 - 256;

/// The free chunks. A chunk returns to the pool when it is dropped or sent.
#[derive(Clone)]
pub struct Pool(Arc<Mutex<Umem>>);

impl Pool {
    /// Allocates the memory of `chunks` chunks.
    pub fn new(chunks: u32) -> io::Result<Self> {
        let layout = UmemCfgBuilder {
            frame_size: FrameSize::TwoK,
            head_room: BEFORE_BYTES as u32,
            frame_count: chunks,
            ..UmemCfgBuilder::default()
        };
        let umem = Umem::map(layout.build().map_err(io::Error::other)?)?;
        let pool = Self(Arc::new(Mutex::new(umem)));
        // Every chunk is written to once, so that the kernel allocates the memory now.
        drop(iter::from_fn(|| pool.take()).collect::<Vec<_>>());
        Ok(pool)
    }

    /// Removes a free chunk from the pool and returns it, empty; `None` if no chunk is free. O(1).
    pub fn take(&self) -> Option<Chunk> {
        // SAFETY: a `Chunk` holds the pool, so the memory lives as long as the chunk.
        let packet = unsafe { self.lock().alloc() }?;
        Some(Chunk::new(packet, self.clone()))
    }

    /// Locks the memory. A thread that panicked left it consistent, because every change is one
    /// step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Umem> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A chunk with one owner: [`BEFORE_BYTES`], then the frame.
pub struct Chunk {
    /// `None` once the packet is handed to a socket.
    packet: Option<Packet>,
    pool: Pool,
}

/// Distance from the start of a chunk to the start of its frame.
const BEFORE: i32 = BEFORE_BYTES as i32;

// SAFETY: the memory behind a `Packet` belongs to it alone until it is freed or
// sent, and is mapped for all threads as long as `pool` lives.
unsafe impl Send for Chunk {}

impl Chunk {
    /// Wraps a packet from the pool or the kernel; both begin at the frame.
    pub(crate) fn new(mut packet: Packet, pool: Pool) -> Self {
        // This cannot fail: the pool has room before each frame.
        let _ = packet.adjust_head(-BEFORE);
        let mut chunk = Self {
            packet: Some(packet),
            pool,
        };
        chunk
            .bytes_mut()
            .iter_mut()
            .take(BEFORE_BYTES)
            .for_each(|b| *b = 0);
        chunk
    }

    /// Returns its bytes: [`BEFORE_BYTES`], then the frame.
    pub fn bytes(&self) -> &[u8] {
        self.packet.as_deref().unwrap_or_default()
    }

    /// Returns its bytes, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.packet.as_deref_mut().unwrap_or_default()
    }

    /// Sets the length to `bytes`, at most [`CHUNK_BYTES`]; added bytes keep their old values.
    pub fn set_length(&mut self, bytes: usize) {
        if let Some(packet) = &mut self.packet {
            packet.clear();
            // This cannot fail: the length is at most that of a chunk.
            let _ = packet.adjust_tail(bytes.min(CHUNK_BYTES) as i32);
        }
    }

    /// Returns the frame alone, for a socket of `pool` to send. `None` if there is no frame, or the
    /// chunk belongs to another pool.
    pub(crate) fn into_packet(mut self, pool: &Pool) -> Option<Packet> {
        if !Arc::ptr_eq(&self.pool.0, &pool.0) {
            return None;
        }
        let frame = self.packet.as_mut()?.adjust_head(BEFORE);
        frame.ok().and_then(|()| self.packet.take())
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(packet) = self.packet.take() {
            self.pool.lock().free_packet(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_return_and_do_not_overlap() {
        let pool = Pool::new(2).unwrap();
        let (mut a, mut b) = (pool.take().unwrap(), pool.take().unwrap());
        assert!(pool.take().is_none());
        for (chunk, value) in [(&mut a, 1), (&mut b, 2)] {
            assert_eq!(chunk.bytes(), [0; BEFORE_BYTES]);
            chunk.set_length(usize::MAX);
            assert_eq!(chunk.bytes().len(), CHUNK_BYTES);
            chunk.bytes_mut().fill(value);
        }
        assert!(a.bytes().iter().all(|byte| *byte == 1));
        a.set_length(BEFORE_BYTES + 60);
        assert_eq!(a.bytes(), [1; BEFORE_BYTES + 60]);
        std::thread::spawn(move || drop(b)).join().unwrap();
        // The bytes before a frame are zero again, although another frame filled them.
        assert_eq!(pool.take().unwrap().bytes(), [0; BEFORE_BYTES]);
    }

    /// The kernel reads the address of a chunk relative to the socket's pool. An address of
    /// another pool would name some other frame.
    #[test]
    fn a_chunk_is_sent_by_its_own_pool_alone() {
        let (ours, theirs) = (Pool::new(1).unwrap(), Pool::new(1).unwrap());
        let mut chunk = theirs.take().unwrap();
        chunk.set_length(BEFORE_BYTES + 60);
        assert!(chunk.into_packet(&ours).is_none());
        assert!(theirs.take().is_some(), "it is back where it came from");
    }

    #[test]
    fn only_the_frame_is_sent() {
        let pool = Pool::new(1).unwrap();
        let mut chunk = pool.take().unwrap();
        chunk.set_length(BEFORE_BYTES + 60);
        let packet = chunk.into_packet(&pool).unwrap();
        assert_eq!(packet.len(), 60);
        assert!(pool.take().is_none());
        pool.lock().free_packet(packet);
        let mut chunk = pool.take().unwrap();
        chunk.set_length(BEFORE_BYTES - 1);
        assert!(chunk.into_packet(&pool).is_none());
        assert!(pool.take().is_some(), "no frame, nothing sent");
    }
}
