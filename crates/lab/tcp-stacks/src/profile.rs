// SPDX-License-Identifier: MIT OR Apache-2.0
//! How systems differ: the figures of each stack, from RFCs and vendors' documents.

/// How a sender finds and repairs losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recovery {
    /// Duplicate acknowledgements, then slow start from the first missing byte.
    Tahoe,
    /// Duplicate acknowledgements; the first new acknowledgement ends the repair (RFC 2581).
    Reno,
    /// As Reno, but partial acknowledgements repair the next hole (RFC 6582).
    NewReno,
    /// By SACK (RFC 6675).
    Sack,
    /// By time, with tail loss probes (RFC 8985).
    Rack,
}

/// How a host fills the identification of IPv4 headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpId {
    /// One more with each packet.
    Counter,
    /// Always 0, as packets that may not be fragmented may have it (RFC 6864).
    Zero,
    /// By chance.
    Random,
}

/// The behaviour of one system's TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Name of the behaviour.
    pub name: &'static str,
    /// The maximum segment size that it announces.
    pub mss: u16,
    /// Receive buffer in bytes.
    pub receive_bytes: u64,
    /// Send buffer in bytes.
    pub send_bytes: u64,
    /// Its window scale; `None` if it does not offer the option.
    pub window_scale: Option<u8>,
    /// Tick of its timestamps; `None` if it does not offer the option.
    pub timestamp_tick_ns: Option<u64>,
    /// Whether it offers SACK.
    pub sack: bool,
    /// First congestion window, in segments.
    pub initial_window: u64,
    /// First retransmission timeout.
    pub rto_initial_ns: u64,
    /// Least retransmission timeout.
    pub rto_min_ns: u64,
    /// Whether the least timeout is added to the round trip, as Linux does, and is not a bound of
    /// the whole.
    pub rto_min_is_added: bool,
    /// Longest retransmission timeout.
    pub rto_max_ns: u64,
    /// Tick of its retransmission and persist timers; 1 if they are exact.
    pub timer_tick_ns: u64,
    /// How long it holds acknowledgements back.
    pub ack_delay_ns: u64,
    /// Whether delayed acknowledgements leave at the ticks of a clock of that period.
    pub ack_clock: bool,
    /// It acknowledges each so-many-th segment at once.
    pub ack_every: u32,
    /// Whether small segments count as segments for that.
    pub ack_counts_small: bool,
    /// It announces its window when reading let it grow by so many segments; 0 waits for half of
    /// the buffer.
    pub update_segments: u64,
    /// So many segments at the beginning are acknowledged at once.
    pub quick_acks: u32,
    /// How it repairs losses.
    pub recovery: Recovery,
    /// Duplicate acknowledgements that start a repair.
    pub duplicate_acks: u32,
    /// Least time between probes of a closed window.
    pub persist_min_ns: u64,
    /// Longest time between probes of a closed window.
    pub persist_max_ns: u64,
    /// Bytes that such a probe carries.
    pub probe_bytes: u64,
    /// Whether it waits with small segments while something is under way (RFC 896).
    pub nagle: bool,
    /// Time without traffic until keep-alives begin, and between them.
    pub keep_alive: Option<(u64, u64)>,
    /// Bytes that a keep-alive carries.
    pub keep_alive_bytes: u32,
    /// The hop limit of its packets.
    pub hop_limit: u8,
    /// How it fills the identification of its packets.
    pub ip_id: IpId,
}

/// Milliseconds in nanoseconds.
pub const MS: u64 = 1_000_000;
/// Seconds in nanoseconds.
pub const S: u64 = 1_000_000_000;

impl Profile {
    /// Linux as it is today: RACK and tail loss probes, least timeout 200 ms, acknowledgements
    /// delayed by 40 ms, probes of closed windows without data.
    pub fn linux() -> Self {
        Self {
            name: "linux",
            mss: 1460,
            receive_bytes: 131_072,
            send_bytes: 262_144,
            window_scale: Some(7),
            timestamp_tick_ns: Some(MS),
            sack: true,
            initial_window: 10,
            rto_initial_ns: S,
            rto_min_ns: 200 * MS,
            rto_min_is_added: true,
            rto_max_ns: 120 * S,
            timer_tick_ns: 4 * MS,
            ack_delay_ns: 40 * MS,
            ack_clock: false,
            ack_every: 2,
            ack_counts_small: false,
            update_segments: 0,
            quick_acks: 8,
            recovery: Recovery::Rack,
            duplicate_acks: 3,
            persist_min_ns: 200 * MS,
            persist_max_ns: 120 * S,
            probe_bytes: 0,
            nagle: true,
            keep_alive: None,
            keep_alive_bytes: 0,
            hop_limit: 64,
            ip_id: IpId::Counter,
        }
    }

    /// FreeBSD: SACK, least timeout 230 ms (30 ms and a slop of 200 ms), acknowledgements
    /// delayed by 100 ms, every second segment at once whatever its size, a persist timer of
    /// 5 s at least whose probes carry a byte.
    pub fn freebsd() -> Self {
        Self {
            name: "freebsd",
            receive_bytes: 65_536,
            send_bytes: 65_536,
            window_scale: Some(6),
            timestamp_tick_ns: Some(MS),
            rto_min_ns: 230 * MS,
            rto_min_is_added: false,
            rto_max_ns: 64 * S,
            timer_tick_ns: MS,
            ack_delay_ns: 100 * MS,
            ack_counts_small: true,
            update_segments: 2,
            quick_acks: 0,
            recovery: Recovery::Sack,
            persist_min_ns: 5 * S,
            persist_max_ns: 60 * S,
            probe_bytes: 1,
            ip_id: IpId::Zero,
            ..Self::linux()
        }
    }

    /// NetBSD and OpenBSD of some years ago: timers of 500 ms, a timestamp clock of 2 Hz,
    /// delayed acknowledgements at the ticks of a 200 ms clock, NewReno.
    pub fn old_bsd() -> Self {
        Self {
            name: "old-bsd",
            receive_bytes: 32_768,
            send_bytes: 32_768,
            window_scale: Some(0),
            timestamp_tick_ns: Some(500 * MS),
            sack: false,
            initial_window: 2,
            rto_initial_ns: 3 * S,
            rto_min_ns: S,
            rto_min_is_added: false,
            rto_max_ns: 64 * S,
            timer_tick_ns: 500 * MS,
            ack_delay_ns: 200 * MS,
            ack_clock: true,
            ack_counts_small: true,
            update_segments: 2,
            quick_acks: 0,
            recovery: Recovery::NewReno,
            persist_min_ns: 5 * S,
            persist_max_ns: 60 * S,
            probe_bytes: 1,
            ..Self::linux()
        }
    }

    /// 4.3BSD Tahoe and its children: no options at all, windows of 4 to 16 KB.
    pub fn tahoe() -> Self {
        Self {
            name: "tahoe",
            receive_bytes: 16_384,
            send_bytes: 16_384,
            window_scale: None,
            timestamp_tick_ns: None,
            initial_window: 1,
            recovery: Recovery::Tahoe,
            hop_limit: 30,
            keep_alive_bytes: 1,
            ..Self::old_bsd()
        }
    }

    /// Systems of the nineties: fast recovery without SACK, least timeout a second.
    pub fn reno() -> Self {
        Self {
            name: "reno",
            window_scale: None,
            timestamp_tick_ns: None,
            recovery: Recovery::Reno,
            hop_limit: 255,
            ..Self::old_bsd()
        }
    }

    /// Solaris: first timeout 3 s, least 400 ms, acknowledgements delayed by 100 ms and at
    /// every third segment on what its interfaces call remote, probes with a byte.
    pub fn solaris() -> Self {
        Self {
            name: "solaris",
            receive_bytes: 49_152,
            send_bytes: 49_152,
            window_scale: Some(0),
            timestamp_tick_ns: Some(10 * MS),
            initial_window: 4,
            rto_initial_ns: 3 * S,
            rto_min_ns: 400 * MS,
            rto_min_is_added: false,
            rto_max_ns: 60 * S,
            timer_tick_ns: 10 * MS,
            ack_delay_ns: 100 * MS,
            ack_every: 3,
            ack_counts_small: false,
            quick_acks: 2,
            recovery: Recovery::Sack,
            persist_min_ns: 400 * MS,
            persist_max_ns: 60 * S,
            probe_bytes: 1,
            hop_limit: 255,
            ..Self::linux()
        }
    }

    /// Windows of the last years: least timeout 300 ms, no timestamps, acknowledgements delayed
    /// by 40 ms, SACK, probes with a byte.
    pub fn windows() -> Self {
        Self {
            name: "windows",
            receive_bytes: 65_535,
            send_bytes: 131_072,
            window_scale: Some(8),
            timestamp_tick_ns: None,
            rto_min_ns: 300 * MS,
            rto_min_is_added: false,
            rto_max_ns: 60 * S,
            timer_tick_ns: 10 * MS,
            ack_counts_small: true,
            quick_acks: 0,
            recovery: Recovery::Sack,
            persist_min_ns: 300 * MS,
            persist_max_ns: 60 * S,
            probe_bytes: 1,
            keep_alive_bytes: 1,
            hop_limit: 128,
            ..Self::linux()
        }
    }

    /// Windows XP and Server 2003: two duplicate acknowledgements start a repair, and
    /// acknowledgements are delayed by 200 ms.
    pub fn windows_xp() -> Self {
        Self {
            name: "windows-xp",
            receive_bytes: 17_520,
            send_bytes: 8_192,
            window_scale: None,
            initial_window: 2,
            rto_initial_ns: 3 * S,
            ack_delay_ns: 200 * MS,
            duplicate_acks: 2,
            recovery: Recovery::Sack,
            ..Self::windows()
        }
    }

    /// lwIP: a slow timer of 500 ms and a fast one of 250 ms, a window of four segments, no
    /// SACK from the sender, no scaling.
    pub fn lwip() -> Self {
        Self {
            name: "lwip",
            receive_bytes: 4 * 1460,
            send_bytes: 4 * 1460,
            window_scale: None,
            timestamp_tick_ns: None,
            sack: false,
            initial_window: 4,
            rto_initial_ns: 3 * S,
            rto_min_ns: 500 * MS,
            rto_min_is_added: false,
            rto_max_ns: 60 * S,
            timer_tick_ns: 500 * MS,
            ack_delay_ns: 250 * MS,
            ack_clock: true,
            ack_counts_small: true,
            update_segments: 1,
            quick_acks: 0,
            recovery: Recovery::Reno,
            persist_min_ns: 1500 * MS,
            persist_max_ns: 60 * S,
            probe_bytes: 1,
            hop_limit: 255,
            ..Self::linux()
        }
    }

    pub fn all() -> [Profile; 9] {
        [
            Self::linux(),
            Self::freebsd(),
            Self::old_bsd(),
            Self::tahoe(),
            Self::reno(),
            Self::solaris(),
            Self::windows(),
            Self::windows_xp(),
            Self::lwip(),
        ]
    }
}
