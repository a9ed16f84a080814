// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saves the packets around a stall: a thread keeps the last packets of this host in memory, and
//! those of a stalled connection are written when its stall is known.

mod files;
mod ring;

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use linux_io::clock::{monotonic_ns, realtime_ns};
use linux_io::tcp_packets::{TcpPackets, interface_name};
use linux_io::wait::readable;

use self::files::Files;
use self::ring::{KeptHead, Ring, SNAP_BYTES};
use crate::records::Ends;

pub use self::files::{PacketCounts, Saved};

/// Time before a stall whose packets are saved, too: they show how fast the sender was.
const BEFORE_NS: u64 = 2_000_000_000;
/// Longest wait for a packet, so that the thread ends soon.
const WAIT_NS: u64 = 100_000_000;
/// Packets between two readings of what was dropped.
const BATCH: usize = 4096;

/// The last packets of this host, and the folder for those of stalls.
#[derive(Debug)]
pub struct Packets {
    ring: Arc<Mutex<Ring>>,
    dropped: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    files: Files,
}

impl Packets {
    /// Begins to keep packets in at most so much memory; files go to `folder`, which is made, and
    /// must be empty.
    ///
    /// # Errors
    /// When the folder is not empty or cannot be made, or without CAP_NET_RAW.
    pub fn keep(folder: &Path, memory_bytes: usize) -> io::Result<Self> {
        let files = Files::new(folder)?;
        let mut socket = TcpPackets::open()?;
        let ring = Arc::new(Mutex::new(Ring::new(memory_bytes)));
        let dropped = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let (kept, counted, stopped) = (Arc::clone(&ring), Arc::clone(&dropped), Arc::clone(&stop));
        let run = move || {
            while !stopped.load(Ordering::Relaxed) {
                let received = receive(&mut socket, &kept);
                if let Ok(dropped) = received.and_then(|()| socket.dropped()) {
                    counted.store(dropped, Ordering::Relaxed);
                }
            }
        };
        let thread = thread::Builder::new()
            .name("packets".to_owned())
            .spawn(run)?;
        Ok(Self {
            ring,
            dropped,
            stop,
            thread: Some(thread),
            files,
        })
    }

    /// Saves the packets of a connection around a stall from one time of `CLOCK_MONOTONIC` to
    /// another; `comment` says which it is.
    pub fn save(&mut self, ends: Option<&Ends>, stall: (u64, u64), comment: &str) -> Saved {
        let Some(ends) = ends else {
            return self.files.leave_out();
        };
        // Packets have the time of the other clock.
        let ahead_ns = match (realtime_ns(), monotonic_ns()) {
            (Ok(real_ns), Ok(monotonic_ns)) => real_ns.saturating_sub(monotonic_ns),
            _ => 0,
        };
        let from_ns = (stall.0 + ahead_ns).saturating_sub(BEFORE_NS);
        let times = (from_ns, stall.1.saturating_add(ahead_ns));
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = ring.between((ends.local, ends.remote), times);
        drop(ring);
        self.files.write(comment, &kept, &interface_name)
    }

    /// Returns what was saved so far.
    pub fn counts(&self) -> PacketCounts {
        PacketCounts {
            dropped_packets: self.dropped.load(Ordering::Relaxed),
            ..self.files.counts.clone()
        }
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

/// Receives the packets that there are, or waits for one.
fn receive(socket: &mut TcpPackets, ring: &Mutex<Ring>) -> io::Result<()> {
    let mut buffer = [0; SNAP_BYTES];
    for received in 0..BATCH {
        let Some(packet) = socket.receive(&mut buffer)? else {
            if received == 0 {
                readable(&[socket.as_fd()], WAIT_NS)?;
            }
            break;
        };
        let head = KeptHead {
            time_ns: packet.time_ns,
            interface: packet.interface,
            packet_bytes: u32::try_from(packet.bytes).unwrap_or(u32::MAX),
            is_outgoing: packet.is_outgoing,
        };
        let mut ring = ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.push(head, &buffer[..packet.bytes.min(SNAP_BYTES)]);
    }
    Ok(())
}
