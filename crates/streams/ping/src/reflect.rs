// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a reflector on a socket.

use std::os::fd::AsFd;

use anyhow::Result;
use linux_io::clock::{monotonic_ns, tai_ns};
use linux_io::signals::Signals;
use linux_io::udp::TimestampedSocket;
use linux_io::wait::{BATCH, readable};

use crate::packet::MOST_BYTES;
use crate::reflector::{Reflector, timestamp};

/// Longest wait for a datagram before the signals are checked again.
const IDLE_NS: u64 = units::time::NS_PER_S;

/// Answers probes until a signal comes. Returns the number of answers that the kernel did not
/// accept.
pub fn reflect(
    socket: &TimestampedSocket,
    reflector: &mut Reflector,
    signals: &Signals,
) -> Result<u64> {
    let mut buffer = vec![0; MOST_BYTES];
    let mut unsent = 0;
    loop {
        readable(&[socket.as_fd(), signals.as_fd()], IDLE_NS)?;
        for _ in 0..BATCH {
            let received = match socket.receive(&mut buffer) {
                Ok(Some(received)) => received,
                Ok(None) => break,
                // The error belongs to an earlier answer, for example to a closed port.
                Err(_) => continue,
            };
            let received_ns = received.kernel_ns.unwrap_or(tai_ns()?);
            let datagram = buffer.get_mut(..received.bytes).unwrap_or_default();
            let Some(from) = received.from else { continue };
            if !reflector.answer(datagram, received_ns, monotonic_ns()?) {
                continue;
            }
            timestamp(datagram, tai_ns()?);
            if socket.socket().send_to(datagram, from).is_err() {
                unsent += 1;
            }
        }
        if signals.came()? {
            return Ok(unsent);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    /// A signal ends the reflector after one batch, even if the socket is always full.
    #[test]
    fn a_signal_is_seen_while_datagrams_come() {
        let signals = Signals::block().unwrap();
        let local = (Ipv4Addr::LOCALHOST, 0);
        let socket = TimestampedSocket::new(UdpSocket::bind(local).unwrap(), false).unwrap();
        let sender = UdpSocket::bind(local).unwrap();
        let to = socket.socket().local_addr().unwrap();
        for _ in 0..200 {
            sender.send_to(b"no probe", to).unwrap();
        }
        // raise() sends the signal to this thread alone.
        nix::sys::signal::raise(nix::sys::signal::SIGTERM).unwrap();
        let mut reflector = Reflector::new(10_000);
        assert_eq!(reflect(&socket, &mut reflector, &signals).unwrap(), 0);
        let taken = reflector.counts().invalid;
        assert!((1..=BATCH as u64).contains(&taken), "{taken}");
    }
}
