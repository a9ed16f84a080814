// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sockets that pace: those of other programs that leave it to a qdisc, and TCP's own, from the kernel's table of TCP connections (sock_diag). Numbers are
//! those of linux/inet_diag.h, linux/sock_diag.h and linux/tcp.h.

use std::io;

use linux_io::rtnetlink::{Error, Socket};
use tcpsp::attribute::Attribute;

use super::netlink::{Message, value};
use crate::facts::Program;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const FAMILIES: [u8; 2] = [2, 10];
const TCP: u8 = 6;
/// Bit of the attribute that has struct tcp_info, and its number.
const WANT_INFO: u8 = 1 << 1;
const INFO: u16 = 2;
/// Bit of established connections.
const ESTABLISHED: u32 = 1 << 1;
/// Where struct tcp_info has the most that the socket may send, bytes/s.
const MAX_PACING_RATE: usize = 112;
/// Where it has the shortest round trip, us.
const MIN_RTT: usize = 148;
/// Over shorter ones TCP makes longer bursts: half of a millisecond, about 2^9 us.
const NEAR_US: u32 = 500;
/// Where an answer's head has both addresses.
const ADDRESSES: [std::ops::Range<usize>; 2] = [8..24, 24..40];
/// What it is without the option.
const UNLIMITED: u64 = u64::MAX;

/// A request has struct inet_diag_req_v2 as its head, an answer struct inet_diag_msg.
type Diagnosis = Message<56, 72>;

/// Returns the programs whose sockets leave pacing to a qdisc.
pub fn programs() -> io::Result<Vec<Program>> {
    let of = |(name, sockets): (String, linux_io::sockets::OfProgram)| Program {
        name,
        with_launch_times: sockets.with_launch_times,
        with_rate: sockets.with_rate,
    };
    let all = linux_io::sockets::paced_by_qdisc()?;
    Ok(all.into_iter().map(of).collect())
}

/// How many established TCP connections there are of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// With SO_MAX_PACING_RATE.
    pub paced: u64,
    /// With another host, whose shortest round trip is below half a millisecond.
    pub near: u64,
}

/// Counts the established TCP connections.
///
/// # Errors
/// The kernel's, for example if it has no such table.
pub fn connections() -> Result<Connections, Error> {
    let mut socket = Socket::sock_diag()?;
    let mut all = Connections::default();
    for family in FAMILIES {
        let mut head = [0; 56];
        let [first, protocol, extensions, _, states @ ..] = &mut head;
        (*first, *protocol, *extensions) = (family, TCP, WANT_INFO);
        for (to, byte) in states.iter_mut().zip(ESTABLISHED.to_ne_bytes()) {
            *to = byte;
        }
        let answers = socket.dump(Diagnosis {
            kind: SOCK_DIAG_BY_FAMILY,
            head,
            attributes: Vec::new(),
        })?;
        for answer in &answers {
            all.paced += u64::from(is_paced(&answer.attributes));
            all.near += u64::from(is_near(&answer.head, &answer.attributes));
        }
    }
    Ok(all)
}

/// Returns whether a connection is with another host, over a short round trip. What stays on this host
/// has the same address twice.
fn is_near(head: &[u8; 56], attributes: &[Attribute]) -> bool {
    let [from, to] = ADDRESSES.map(|at| head.get(at));
    let info = value(attributes, INFO).unwrap_or_default();
    let rtt_us = info.get(MIN_RTT..MIN_RTT + 4);
    let rtt_us = rtt_us
        .and_then(|bytes| bytes.try_into().ok())
        .map(u32::from_ne_bytes);
    from != to && rtt_us.is_some_and(|rtt_us| rtt_us < NEAR_US)
}

fn is_paced(attributes: &[Attribute]) -> bool {
    let info = value(attributes, INFO).unwrap_or_default();
    let rate = info.get(MAX_PACING_RATE..MAX_PACING_RATE + 8);
    let rate = rate
        .and_then(|bytes| bytes.try_into().ok())
        .map(u64::from_ne_bytes);
    rate.is_some_and(|rate| rate != UNLIMITED)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_limit_is_found_where_the_kernel_has_it() {
        let info = |rate: u64| {
            let mut info = vec![0; MAX_PACING_RATE];
            info.extend(rate.to_ne_bytes());
            [Attribute::new(INFO, info)]
        };
        assert!(is_paced(&info(1_000_000)));
        assert!(!is_paced(&info(UNLIMITED)));
        assert!(!is_paced(&[]) && !is_paced(&[Attribute::new(INFO, [0; 100])]));
    }

    #[test]
    fn a_near_host_is_found_where_the_kernel_has_it() {
        let mut head = [0; 56];
        head[24..28].copy_from_slice(&[192, 0, 2, 1]);
        let info = |rtt_us: u32| {
            let mut info = vec![0; MIN_RTT];
            info.extend(rtt_us.to_ne_bytes());
            [Attribute::new(INFO, info)]
        };
        for (rtt_us, expected) in [(0, true), (499, true), (500, false), (u32::MAX, false)] {
            assert_eq!(is_near(&head, &info(rtt_us)), expected, "{rtt_us}");
        }
        assert!(!is_near(&[0; 56], &info(100)) && !is_near(&head, &[]));
    }

    #[test]
    fn connections_of_this_host_without_a_limit_are_not_counted() {
        let Ok(before) = connections() else {
            // A kernel without the table.
            return;
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(connections().unwrap(), before);
    }
}
