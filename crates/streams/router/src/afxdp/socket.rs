// SPDX-License-Identifier: MIT OR Apache-2.0
//! The AF_XDP socket of a device, with its four rings.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ffi::CString;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, send, setsockopt, sockopt};
use xdp::nic::NicIndex;
use xdp::slab::Slab;
use xdp::socket::XdpSocketBuilder;
use xdp::{
    CompletionRing, Packet, RingConfigBuilder, RxRing, WakableFillRing, WakableRings, WakableTxRing,
};

use super::error::{Error, refused};
use super::pool::{Chunk, Pool};
use super::program::Program;

/// Entries of each ring, a power of two.
const RING: u32 = 2048;
/// Chunks that a device holds to receive into.
const TO_FILL: usize = 1024;
/// Most frames that one call receives, so that other threads get to run.
const BATCH: usize = 64;
/// Most requests to send in a row: in copy mode the kernel sends 32 frames in each, so these empty
/// the ring.
const KICKS: u32 = RING / 32;
/// Copies that may be in flight, in bytes of the kernel's memory.
const SEND_BYTES: usize = 4 << 20;

/// Receives and sends a device's frames. It never waits. Dropping it returns the device to its
/// earlier state.
pub struct XdpSocket {
    // The program is dropped first, so that no frame goes to a ring that no longer exists.
    program: Mutex<Program>,
    receiving: Mutex<Receiving>,
    sending: Mutex<Sending>,
    socket: xdp::socket::XdpSocket,
    pool: Pool,
    is_zero_copy: bool,
}

struct Receiving {
    ring: RxRing,
    to_fill: WakableFillRing,
    /// Chunks that `to_fill` still lacks.
    lacking: usize,
    received: VecDeque<Chunk>,
}

struct Sending {
    ring: WakableTxRing,
    sent: CompletionRing,
    /// Frames in the hands of the kernel.
    under_way: usize,
}

impl XdpSocket {
    /// Opens the device `device`, whose MAC address is `mac`; `own` are this host's addresses. Uses
    /// zero-copy mode if the driver has it. Needs CAP_BPF (or CAP_SYS_ADMIN), CAP_NET_ADMIN and
    /// CAP_NET_RAW in the initial user namespace.
    ///
    /// # Errors
    /// The step that failed and its reason. Then nothing stays attached.
    pub fn open(device: &str, mac: [u8; 6], own: &[Ipv4Addr], pool: &Pool) -> Result<Self, Error> {
        let name = CString::new(device).map_err(|error| refused("device", &error))?;
        let index = NicIndex::lookup_by_name(&name);
        let index = index.map_err(|error| refused("device", &error))?;
        let index = index.ok_or_else(|| refused("device", &Errno::ENODEV))?;
        let queues = index
            .queue_count()
            .map_err(|error| refused("queues", &error))?;
        if queues.rx_current != 1 {
            return Err(Error::Queues(queues.rx_current));
        }
        let mut program = Program::load(mac, own)?;
        let (is_zero_copy, (socket, rings)) = match bind(index, pool, true) {
            Ok(bound) => (true, bound),
            Err(_) => (
                false,
                bind(index, pool, false).map_err(|error| refused("AF_XDP socket", &error))?,
            ),
        };
        let WakableRings {
            fill_ring,
            rx_ring,
            completion_ring,
            tx_ring,
        } = rings;
        let (Some(rx_ring), Some(tx_ring)) = (rx_ring, tx_ring) else {
            return Err(refused("rings", &Errno::ENOBUFS));
        };
        program.attach(index.0, as_fd(&socket))?;
        let socket = Self {
            program: Mutex::new(program),
            receiving: Mutex::new(Receiving {
                ring: rx_ring,
                to_fill: fill_ring,
                lacking: TO_FILL,
                received: VecDeque::with_capacity(BATCH),
            }),
            sending: Mutex::new(Sending {
                ring: tx_ring,
                sent: completion_ring,
                under_way: 0,
            }),
            socket,
            pool: pool.clone(),
            is_zero_copy,
        };
        // The host may allow less; then the kernel needs more requests to send.
        let _ = setsockopt(&socket, sockopt::SndBufForce, &SEND_BYTES);
        locked(&socket.receiving).refill(pool);
        Ok(socket)
    }

    /// Returns whether the device reads and writes the chunks itself; if not, the kernel copies.
    pub fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Passes received frames to `take`, some tens of them at most. O(frames).
    pub fn receive(&self, take: impl FnMut(Chunk)) {
        let mut receiving = locked(&self.receiving);
        let Receiving {
            ring,
            lacking,
            received,
            ..
        } = &mut *receiving;
        let mut chunks = Received {
            chunks: received,
            pool: &self.pool,
        };
        // SAFETY: each packet becomes a chunk at once, and the chunk holds the pool.
        *lacking += unsafe { ring.recv(&self.pool.lock(), &mut chunks) };
        receiving.refill(&self.pool);
        receiving.received.drain(..).for_each(take);
    }

    /// Hands a frame to the kernel, which sends it at the next [`Self::flush`] at the latest. O(1).
    ///
    /// # Errors
    /// If the device accepts no more frames for now, the chunk has no frame, or it belongs to
    /// another pool than this socket's.
    pub fn send(&self, chunk: Chunk) -> io::Result<()> {
        let packet = chunk.into_packet(&self.pool).ok_or(Errno::EINVAL)?;
        let mut sending = locked(&self.sending);
        let mut one = One(Some(packet));
        if sending.put(&mut one) {
            return Ok(());
        }
        self.push(&mut sending);
        if sending.put(&mut one) {
            return Ok(());
        }
        if let Some(packet) = one.0 {
            self.pool.lock().free_packet(packet);
        }
        Err(Errno::ENOBUFS.into())
    }

    /// Lets the kernel send the frames handed to it. Returns the number of those that have not left
    /// yet.
    pub fn flush(&self) -> usize {
        let mut sending = locked(&self.sending);
        self.push(&mut sending);
        sending.under_way
    }

    /// Asks the kernel to send, and returns the chunks of sent frames to the pool.
    fn push(&self, sending: &mut Sending) {
        for _ in 0..KICKS {
            sending.take_back(&self.pool);
            if sending.under_way == 0 {
                return;
            }
            let asked = send(self.socket.as_raw_fd(), &[], MsgFlags::MSG_DONTWAIT);
            // After these errors the kernel is asked again: it has more frames than one request
            // sends, or no memory for a copy. After success or any other error the rest waits for a
            // later call.
            if !matches!(asked, Err(Errno::EAGAIN | Errno::EBUSY | Errno::ENOBUFS)) {
                break;
            }
        }
        sending.take_back(&self.pool);
    }

    /// Returns the number of frames that the kernel dropped because there was no chunk or no free
    /// entry in the ring, or because they were longer than a chunk.
    pub fn dropped(&self) -> Result<u64, Error> {
        let statistics = self.socket.statistics();
        let statistics = statistics.map_err(|error| refused("statistics", &error))?;
        Ok(statistics.rx_dropped + statistics.rx_ring_full)
    }

    /// Replaces the addresses of this host; the frames to them go to the kernel.
    pub fn set_own(&self, own: &[Ipv4Addr]) -> Result<(), Error> {
        locked(&self.program).set_own(own)
    }
}

impl AsFd for XdpSocket {
    /// Returns the descriptor, which is readable when a frame has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        as_fd(&self.socket)
    }
}

fn as_fd(socket: &xdp::socket::XdpSocket) -> BorrowedFd<'_> {
    // SAFETY: the descriptor is open as long as `socket`, which is borrowed.
    unsafe { BorrowedFd::borrow_raw(socket.as_raw_fd()) }
}

impl Receiving {
    /// Gives the kernel chunks to receive into. It does not wake the kernel: poll does, which the
    /// receiving thread calls anyway.
    fn refill(&mut self, pool: &Pool) {
        let mut umem = pool.lock();
        // SAFETY: every socket holds the pool of its chunks.
        let filled = unsafe { self.to_fill.enqueue(&mut umem, self.lacking, false) };
        self.lacking -= filled.unwrap_or(0);
    }
}

impl Sending {
    fn put(&mut self, one: &mut One) -> bool {
        // SAFETY: every socket holds the pool of its chunks.
        let put = unsafe { self.ring.send(one, false) }.unwrap_or(0);
        self.under_way += put;
        put == 1
    }

    fn take_back(&mut self, pool: &Pool) {
        let sent = self.sent.dequeue(&mut pool.lock(), RING as usize);
        self.under_way = self.under_way.saturating_sub(sent);
    }
}

type Bound = (xdp::socket::XdpSocket, WakableRings);

fn bind(index: NicIndex, pool: &Pool, zero_copy: bool) -> Result<Bound, xdp::error::Error> {
    let sizes = RingConfigBuilder {
        rx_count: RING,
        tx_count: RING,
        fill_count: RING,
        completion_count: RING,
    };
    let mut builder = XdpSocketBuilder::new()?;
    let (rings, mut flags) = builder.build_wakable_rings(&pool.lock(), sizes.build()?)?;
    if zero_copy {
        flags.force_zerocopy();
    } else {
        flags.force_copy();
    }
    Ok((builder.bind(index, 0, flags)?, rings))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Collects received packets as chunks, in the order of their arrival.
struct Received<'a> {
    chunks: &'a mut VecDeque<Chunk>,
    pool: &'a Pool,
}

impl Slab for Received<'_> {
    fn available(&self) -> usize {
        BATCH.saturating_sub(self.chunks.len())
    }

    fn len(&self) -> usize {
        self.chunks.len()
    }

    fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    fn push_front(&mut self, packet: Packet) -> Option<Packet> {
        self.chunks.push_back(Chunk::new(packet, self.pool.clone()));
        None
    }

    fn pop_back(&mut self) -> Option<Packet> {
        None
    }
}

/// A packet to send; `None` once the ring has taken it.
struct One(Option<Packet>);

impl Slab for One {
    fn available(&self) -> usize {
        0
    }

    fn len(&self) -> usize {
        usize::from(self.0.is_some())
    }

    fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn push_front(&mut self, packet: Packet) -> Option<Packet> {
        Some(packet)
    }

    fn pop_back(&mut self) -> Option<Packet> {
        self.0.take()
    }
}
