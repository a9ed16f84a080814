// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device, and how the router exchanges frames with it.

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

use linux_io::packet::{PacketSocket, VNET_BYTES, mac_address};

use super::error::RunError;
use super::frame::{FRAME_BYTES, Frame};
use crate::afxdp::{Chunk, Pool, XdpSocket};
use crate::config::{Device, Io};
use crate::counters::Counters;
use crate::ebox::EventBox;
use crate::ethernet::Mac;

/// Frames that a receiving thread takes with AF_PACKET before it lets other threads run.
const BATCH: usize = 64;

/// A device, and the queue of frames that leave through it.
pub(super) struct Port {
    pub mac: Mac,
    /// Frames from the IP and the RT-IP thread.
    pub routed: EventBox<Frame>,
    socket: Socket,
}

enum Socket {
    Xdp(Box<XdpSocket>),
    /// AF_PACKET, with the reason why it is not AF_XDP if that was preferred.
    Packet(PacketSocket, Option<crate::afxdp::Error>),
}

impl Port {
    /// Opens a device as its configuration says; up to `queue` packets may wait.
    pub fn open(
        device: &Device,
        own: &[Ipv4Addr],
        pool: &Pool,
        queue: usize,
    ) -> Result<Self, RunError> {
        let failed = |error| RunError::Device {
            name: device.name.clone(),
            error,
        };
        let mac = mac_address(&device.name).map_err(failed)?;
        let xdp = || XdpSocket::open(&device.name, mac, own, pool).map(Box::new);
        let packet = |why_not| {
            let socket = PacketSocket::open(&device.name).map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => RunError::Rights {
                    name: device.name.clone(),
                    error,
                },
                _ => failed(error),
            })?;
            forwards_alone(&device.name)?;
            Ok::<_, RunError>(Socket::Packet(socket, why_not))
        };
        let socket = match device.io {
            Io::Packet => packet(None)?,
            Io::Auto => xdp().map(Socket::Xdp).or_else(|why| packet(Some(why)))?,
            Io::Xdp => xdp().map(Socket::Xdp).map_err(|error| RunError::NoXdp {
                name: device.name.clone(),
                error,
            })?,
        };
        Ok(Self {
            mac,
            routed: EventBox::new(queue),
            socket,
        })
    }

    /// Passes on the frames that the device received, some tens of them at most.
    pub fn receive(
        &self,
        pool: &Pool,
        counters: &Counters,
        mut take: impl FnMut(Frame),
    ) -> io::Result<()> {
        let socket = match &self.socket {
            Socket::Xdp(socket) => {
                socket.receive(|chunk| {
                    counters.received.add(1);
                    let mut frame = Frame::from(chunk);
                    frame.fill_checksum();
                    take(frame);
                });
                return Ok(());
            }
            Socket::Packet(socket, _) => socket,
        };
        for _ in 0..BATCH {
            let mut chunk = pool.take();
            let Some(length) = receive_into(socket, chunk.as_mut())? else {
                break;
            };
            counters.received.add(1);
            match chunk {
                None => counters.no_buffer.add(1),
                Some(_) if length > VNET_BYTES + FRAME_BYTES => counters.oversize.add(1),
                Some(mut chunk) => {
                    chunk.set_length(length);
                    take(Frame::from(chunk));
                }
            }
        }
        Ok(())
    }

    /// Sends a frame; with AF_XDP it leaves at the next [`Self::flush`] at the latest.
    pub fn send(&self, frame: Frame) -> io::Result<()> {
        match &self.socket {
            Socket::Xdp(socket) => socket.send(frame.into_chunk()),
            Socket::Packet(socket, _) => socket.send(frame.with_vnet()),
        }
    }

    /// Lets the kernel send, and returns the number of frames that have not left yet.
    pub fn flush(&self) -> usize {
        match &self.socket {
            Socket::Xdp(socket) => socket.flush(),
            Socket::Packet(..) => 0,
        }
    }

    /// Replaces the addresses of this host.
    pub fn set_own(&self, own: &[Ipv4Addr]) {
        if let Socket::Xdp(socket) = &self.socket {
            // If the kernel did not accept an address, its packets are refused when they are
            // routed.
            let _ = socket.set_own(own);
        }
    }

    /// Counts the frames that the kernel dropped before the receiving thread got them.
    pub fn count_dropped(&self, counters: &Counters) {
        if let Socket::Xdp(socket) = &self.socket {
            // Without statistics of the kernel no drop is counted.
            let dropped = socket.dropped().unwrap_or(0);
            counters.received.add(dropped);
            counters.no_buffer.add(dropped);
        }
    }
}

/// Returns an error if the kernel forwards: a frame that AF_PACKET delivers goes to the kernel too,
/// and would be sent twice.
fn forwards_alone(device: &str) -> Result<(), RunError> {
    let path = format!("/proc/sys/net/ipv4/conf/{device}/forwarding");
    // A host without this file does not forward IPv4.
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim() != "0" => Err(RunError::Forwards {
            name: device.to_owned(),
            path,
        }),
        _ => Ok(()),
    }
}

/// Receives a frame. Without a chunk the frame is discarded: left in the socket, it would keep the
/// socket readable, and the thread would not wait.
fn receive_into(socket: &PacketSocket, chunk: Option<&mut Chunk>) -> io::Result<Option<usize>> {
    let Some(chunk) = chunk else {
        return socket.receive(&mut [0; 64]);
    };
    chunk.set_length(VNET_BYTES + FRAME_BYTES);
    socket.receive(chunk.bytes_mut())
}

impl AsFd for Port {
    /// Returns the descriptor, which is readable when a frame has arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Xdp(socket) => socket.as_fd(),
            Socket::Packet(socket, _) => socket.as_fd(),
        }
    }
}

/// Prints how the port exchanges frames, and why not otherwise.
impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Socket::Xdp(socket) if socket.is_zero_copy() => f.write_str("AF_XDP, zero copy"),
            Socket::Xdp(_) => f.write_str("AF_XDP, copied in the driver"),
            Socket::Packet(_, None) => f.write_str("AF_PACKET"),
            Socket::Packet(_, Some(why)) => write!(f, "AF_PACKET (AF_XDP: {why})"),
        }
    }
}
