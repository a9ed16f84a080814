// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the records that the BPF program writes (`bpf/records.h`).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use units::printable::printable;

/// A record, in the units of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The ends of a connection. This record precedes the connection's first reading.
    Connection(Ends),
    /// The variables of a socket at a moment.
    Reading(Reading),
    /// This host dropped segments of a socket.
    Dropped(Dropped),
}

/// Segments of a socket that this host dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// When, by `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The socket's cookie, as `SO_COOKIE` returns it.
    pub cookie: u64,
    /// The kernel's `enum skb_drop_reason`.
    pub reason: u32,
    pub segments: u32,
}

/// What the kernel knows of whose socket it is. Zeros: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketIds {
    /// Id of the cgroup in which the socket was made.
    pub cgroup: u64,
    /// Inode number of the socket's file.
    pub inode: u64,
    /// Number of the process that connected the socket.
    pub pid: u32,
    /// Name of that process, filled up with zeros.
    pub comm: [u8; 16],
}

impl SocketIds {
    /// Returns the number of the process that connected the socket.
    pub fn pid(&self) -> Option<u32> {
        (self.pid != 0).then_some(self.pid)
    }

    /// Returns the name of that process.
    pub fn comm(&self) -> Option<String> {
        let name = self.comm.split(|byte| *byte == 0).next()?;
        (!name.is_empty()).then(|| printable(&String::from_utf8_lossy(name)))
    }
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// When the connection was first seen, by `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The socket's cookie, as `SO_COOKIE` returns it.
    pub cookie: u64,
    /// The end on this host.
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Whose socket it is.
    pub socket: SocketIds,
}

/// What happened when a socket's variables were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// An acknowledgement arrived; the variables are those before it.
    Ack,
    /// A segment was retransmitted.
    Retransmit,
    /// Congestion control enters the state [`Reading::ca_state`]; the other variables are those
    /// before.
    CaState,
    /// The connection enters the state [`Reading::tcp_state`].
    State,
    /// The socket is destroyed.
    End,
    /// A segment arrived while this host's window was closed, or the first one after that.
    Receive,
}

/// States of congestion control and loss recovery (the kernel's `tcp_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaState {
    /// Nothing is wrong.
    Open,
    /// Segments are reported as out of order, or as received twice.
    Disorder,
    /// The congestion window is being reduced, for another reason than a loss.
    Cwr,
    /// Losses are being repaired on acknowledgements.
    Recovery,
    /// The retransmission timer expired.
    Loss,
}

impl CaState {
    /// Returns the name that views and records use.
    pub const fn name(self) -> &'static str {
        match self {
            CaState::Open => "open",
            CaState::Disorder => "disorder",
            CaState::Cwr => "cwr",
            CaState::Recovery => "recovery",
            CaState::Loss => "loss",
        }
    }
}

/// The states of a connection that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    /// The SYN was sent and not answered.
    SynSent,
    /// Any state between the others.
    Connected,
    /// This host sends no more: its FIN is to be sent, is sent, or was acknowledged.
    Finishing,
    /// The connection is closed.
    Closed,
}

/// Time with something to send since the connection began, and the parts of it spent waiting
/// for one thing. The kernel counts whole ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Time in which something was outstanding or waited to be sent.
    pub busy_ns: u64,
    /// Part of the busy time in which the peer's window had no room.
    pub window_ns: u64,
    /// Part of the busy time in which the send buffer was full and too small.
    pub buffer_ns: u64,
}

/// The variables of a socket. Windows and fields that end in `_out` count segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Time of the reading, by `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The socket's cookie, as `SO_COOKIE` returns it.
    pub cookie: u64,
    /// Readings of this socket just before this one that the ring buffer had no room for.
    pub lost: u32,
    /// What happened.
    pub moment: Moment,
    /// When data of the other side arrived last; 0: never.
    pub peer_data_ns: u64,
    /// First byte that is not acknowledged, as a sequence number.
    pub una: u32,
    /// Next new byte to send.
    pub nxt: u32,
    /// The recovery point.
    pub high_seq: u32,
    /// With [`Moment::Ack`], the acknowledgement number of the segment. Else `una`.
    pub ack: u32,
    /// With [`Moment::Retransmit`], the first byte of the segment and the byte after the last.
    /// With [`Moment::Receive`], the bytes that the application has not read, and this host's
    /// window.
    pub segment: (u32, u32),
    /// The peer's window in bytes, counted from `una`.
    pub window_bytes: u32,
    /// Congestion window.
    pub cwnd: u32,
    /// Slow start threshold.
    pub ssthresh: u32,
    /// Segments sent and not acknowledged.
    pub packets_out: u32,
    /// Outstanding segments that were reported as arrived.
    pub sacked_out: u32,
    /// Outstanding segments that are thought lost.
    pub lost_out: u32,
    /// Outstanding segments that were retransmitted and not reported since.
    pub retrans_out: u32,
    /// Reordering of up to this many segments is not taken for loss.
    pub reordering: u32,
    /// Highest SACK block of the last acknowledgement that had one; zeros before.
    pub sack: (u32, u32),
    /// Smoothed round trip; 0 before the first sample.
    pub srtt_ns: u64,
    /// Retransmission timeout, doublings included.
    pub rto_ns: u64,
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// Segments delivered since the connection began, modulo 2^32.
    pub delivered: u32,
    /// Segments that were reported as received twice.
    pub dsacks: u32,
    /// What the sender spent its time with.
    pub limits: Limits,
    /// State of congestion control and loss recovery.
    pub ca_state: CaState,
    /// State of the connection.
    pub tcp_state: TcpState,
    /// Number of times that the timeout was doubled.
    pub backoff: u8,
    /// Probes of a closed window that are not answered yet.
    pub window_probes: u8,
    /// Whether a tail loss probe is unanswered.
    pub tail_probe: bool,
}

impl Reading {
    /// Returns the segments thought to be in the network.
    pub const fn in_flight(&self) -> u32 {
        let left = self.sacked_out.saturating_add(self.lost_out);
        self.packets_out
            .saturating_sub(left)
            .saturating_add(self.retrans_out)
    }

    /// Returns whether the segment that arrived acknowledges new data.
    pub const fn advances(&self) -> bool {
        self.ack.wrapping_sub(self.una) as i32 > 0
    }
}

/// A record of unknown format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record of {bytes} bytes and kind {kind} is none of bpf/records.h")]
pub struct Malformed {
    bytes: usize,
    kind: u32,
}

const KIND_CONNECTION: u32 = 1;
const CONNECTION_BYTES: usize = 96;
const KIND_DROP: u32 = 7;
const DROP_BYTES: usize = 32;
const STATE_BYTES: usize = 136;

/// Reads fields from the front of a record. A missing field is read as 0; the caller has
/// checked the length.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().unwrap_or((&[0; N], &[]));
        self.0 = rest;
        *field
    }

    fn u8(&mut self) -> u8 {
        u8::from_ne_bytes(self.take())
    }

    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    fn address(&mut self) -> IpAddr {
        Ipv6Addr::from(self.take::<16>()).to_canonical()
    }
}

impl Record {
    /// Parses a record; the kernel counts some times in ticks of `tick_ns`.
    ///
    /// # Errors
    /// When length and kind do not belong together: the BPF program is one of another version.
    pub fn parse(bytes: &[u8], tick_ns: u64) -> Result<Self, Malformed> {
        let fields = &mut Fields(bytes);
        let (time_ns, cookie) = (fields.u64(), fields.u64());
        let (kind, lost) = (fields.u32(), fields.u32());
        let malformed = Malformed {
            bytes: bytes.len(),
            kind,
        };
        let moment = match (kind, bytes.len()) {
            (KIND_CONNECTION, CONNECTION_BYTES) => {
                return Ok(Self::Connection(ends(fields, time_ns, cookie)));
            }
            (KIND_DROP, DROP_BYTES) => {
                return Ok(Self::Dropped(Dropped {
                    time_ns,
                    cookie,
                    reason: fields.u32(),
                    segments: fields.u32(),
                }));
            }
            (2, STATE_BYTES) => Moment::Ack,
            (3, STATE_BYTES) => Moment::Retransmit,
            (4, STATE_BYTES) => Moment::CaState,
            (5, STATE_BYTES) => Moment::State,
            (6, STATE_BYTES) => Moment::End,
            (8, STATE_BYTES) => Moment::Receive,
            _ => return Err(malformed),
        };
        let head = (time_ns, cookie, lost, moment);
        reading(fields, head, tick_ns)
            .map(Self::Reading)
            .ok_or(malformed)
    }
}

fn ends(fields: &mut Fields<'_>, time_ns: u64, cookie: u64) -> Ends {
    let (local, remote) = (fields.address(), fields.address());
    Ends {
        time_ns,
        cookie,
        local: SocketAddr::new(local, fields.u16()),
        remote: SocketAddr::new(remote, fields.u16()),
        socket: socket_ids(fields),
    }
}

fn socket_ids(fields: &mut Fields<'_>) -> SocketIds {
    let pid = fields.u32();
    SocketIds {
        cgroup: fields.u64(),
        inode: fields.u64(),
        pid,
        comm: fields.take(),
    }
}

/// Reads the fields of `struct state_record`, in their order.
fn reading(
    fields: &mut Fields<'_>,
    (time_ns, cookie, lost, moment): (u64, u64, u32, Moment),
    tick_ns: u64,
) -> Option<Reading> {
    let ticks = |ticks: u32| u64::from(ticks).saturating_mul(tick_ns);
    Some(Reading {
        time_ns,
        cookie,
        lost,
        moment,
        peer_data_ns: fields.u64(),
        una: fields.u32(),
        nxt: fields.u32(),
        high_seq: fields.u32(),
        ack: fields.u32(),
        segment: (fields.u32(), fields.u32()),
        window_bytes: fields.u32(),
        cwnd: fields.u32(),
        ssthresh: fields.u32(),
        packets_out: fields.u32(),
        sacked_out: fields.u32(),
        lost_out: fields.u32(),
        retrans_out: fields.u32(),
        reordering: fields.u32(),
        sack: (fields.u32(), fields.u32()),
        srtt_ns: u64::from(fields.u32()) * 1000 / 8,
        rto_ns: ticks(fields.u32()),
        mss_bytes: fields.u32(),
        delivered: fields.u32(),
        dsacks: fields.u32(),
        limits: Limits {
            busy_ns: ticks(fields.u32()),
            window_ns: ticks(fields.u32()),
            buffer_ns: ticks(fields.u32()),
        },
        ca_state: match fields.u8() {
            0 => CaState::Open,
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            4 => CaState::Loss,
            _ => return None,
        },
        tcp_state: match fields.u8() {
            2 => TcpState::SynSent,
            4..=6 | 9 | 11 => TcpState::Finishing,
            7 => TcpState::Closed,
            _ => TcpState::Connected,
        },
        backoff: fields.u8(),
        window_probes: fields.u8(),
        tail_probe: fields.u32() != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(kind: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(5_000_000_000u64.to_ne_bytes());
        bytes.extend(77u64.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(3u32.to_ne_bytes());
        bytes
    }

    #[test]
    fn the_ends_of_a_connection() {
        let mut bytes = head(KIND_CONNECTION);
        bytes.extend("::ffff:10.1.0.5".parse::<Ipv6Addr>().unwrap().octets());
        bytes.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        bytes.extend(40_000u16.to_ne_bytes());
        bytes.extend(443u16.to_ne_bytes());
        bytes.extend(4711u32.to_ne_bytes());
        bytes.extend(12u64.to_ne_bytes());
        bytes.extend(34u64.to_ne_bytes());
        bytes.extend(b"a name\0\0\0\0\0\0\0\0\0\0");
        let ends = Ends {
            time_ns: 5_000_000_000,
            cookie: 77,
            local: "10.1.0.5:40000".parse().unwrap(),
            remote: "[2001:db8::1]:443".parse().unwrap(),
            socket: SocketIds {
                cgroup: 12,
                inode: 34,
                pid: 4711,
                comm: *b"a name\0\0\0\0\0\0\0\0\0\0",
            },
        };
        assert_eq!(Record::parse(&bytes, 1), Ok(Record::Connection(ends)));
        assert_eq!(ends.socket.comm().as_deref(), Some("a name"));
        assert_eq!(ends.socket.pid(), Some(4711));
    }

    #[test]
    fn dropped_segments() {
        let mut bytes = head(KIND_DROP);
        bytes.extend(48u32.to_ne_bytes());
        bytes.extend(3u32.to_ne_bytes());
        let dropped = Dropped {
            time_ns: 5_000_000_000,
            cookie: 77,
            reason: 48,
            segments: 3,
        };
        assert_eq!(Record::parse(&bytes, 1), Ok(Record::Dropped(dropped)));
    }

    #[test]
    fn a_reading_field_by_field() {
        let mut bytes = head(3);
        bytes.extend(4_900_000_000u64.to_ne_bytes());
        let words = [
            1000, 3000, 2000, 1500, 1000, 2000, 65535, 10, 20, 5, 1, 2, 1, 3, 1600, 1700, 80_000,
            50, 1448, 999, 4, 100, 20, 10u32,
        ];
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend([3, 1, 2, 6]);
        bytes.extend(9u32.to_ne_bytes());
        let Ok(Record::Reading(reading)) = Record::parse(&bytes, 4_000_000) else {
            panic!("{:?}", Record::parse(&bytes, 4_000_000));
        };
        let expected = Reading {
            time_ns: 5_000_000_000,
            cookie: 77,
            lost: 3,
            moment: Moment::Retransmit,
            peer_data_ns: 4_900_000_000,
            una: 1000,
            nxt: 3000,
            high_seq: 2000,
            ack: 1500,
            segment: (1000, 2000),
            window_bytes: 65535,
            cwnd: 10,
            ssthresh: 20,
            packets_out: 5,
            sacked_out: 1,
            lost_out: 2,
            retrans_out: 1,
            reordering: 3,
            sack: (1600, 1700),
            srtt_ns: 10_000_000,
            rto_ns: 200_000_000,
            mss_bytes: 1448,
            delivered: 999,
            dsacks: 4,
            limits: Limits {
                busy_ns: 400_000_000,
                window_ns: 80_000_000,
                buffer_ns: 40_000_000,
            },
            ca_state: CaState::Recovery,
            tcp_state: TcpState::Connected,
            backoff: 2,
            window_probes: 6,
            tail_probe: true,
        };
        assert_eq!(reading, expected);
        assert_eq!(reading.in_flight(), 3);
        assert!(reading.advances());
    }

    #[test]
    fn another_type_or_length_is_rejected() {
        for (kind, bytes) in [
            (0, 136),
            (7, 136),
            (8, 32),
            (1, 136),
            (1, 64),
            (2, 64),
            (2, 135),
            (2, 144),
        ] {
            let mut record = head(kind);
            record.resize(bytes, 0);
            assert_eq!(Record::parse(&record, 1), Err(Malformed { bytes, kind }));
        }
        let mut state = head(2);
        state.resize(128, 0);
        state.extend([5, 1, 0, 0, 0, 0, 0, 0]);
        assert!(Record::parse(&state, 1).is_err(), "no such state");
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Record::parse(&bytes, u64::MAX);
        }
    }
}
