// SPDX-License-Identifier: MIT OR Apache-2.0
//! What histories are made of: the network, its hosts, and what talkers wish.

use std::ops::AddAssign;

use admission::{Medium, NodeSpec, SegmentSpec, StreamRequest, Topology};
use manager_proto::machine::{Effects, Limits, Manager};
use manager_proto::message::{Envelope, Message, Reply};
use manager_proto::record::Change;

use super::disk::Disk;
use crate::requests::{self, payload};

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000 * MS;

pub const LIMITS: Limits = Limits {
    deadline_ns: 3 * S,
    retry_ns: 300 * MS,
    hold_ns: 8 * S,
    tombstone_ns: 20 * S,
    heartbeat_ns: 5 * S,
    least_lease_ns: S,
    most_lease_ns: 12 * S,
    in_force_ns: None,
};

/// A fault of whoever runs the managers, or of chance, that the checker has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Answers and messages are sent before the changes are stored.
    SendsFirst,
    /// A crash loses the last changes that were stored.
    LosesLastChanges,
    /// Time does not pass for leases: `advance` comes late.
    SleepsTooLong,
    /// A manager whose store was lost is told that it is whole.
    IsSaidToBeWhole,
    /// Claims are lost on their way.
    LosesClaims,
    /// A manager forgets which bytes are taken.
    ForgetsParts,
    /// A manager forgets the ids of reservations.
    ForgetsIds,
    /// Nobody checks in whose name a message of the liar is.
    SpeaksForOthers,
    /// Nobody checks in whose name an answer of the liar is.
    AnswersForOthers,
    /// What the liar says is lost ends, wherever it goes.
    BelievesLosses,
}

/// Something that happens in a history.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    Wake(usize),
    Flush(usize),
    Restart(usize),
    Think,
    Trouble,
    Mail(usize),
    Ask(usize),
    Tell(usize),
    Lie,
}

/// Something on its way between two managers.
#[derive(Clone, Debug)]
pub enum Mail {
    Messages(Envelope),
    Reply(Reply),
}

/// A host with a manager.
pub struct Host {
    pub name: String,
    pub manager: Option<Manager>,
    pub disk: Disk,
    /// Effects that are not stored yet.
    pub waiting: Effects,
    pub boot: u64,
    /// Time of the world at which the clock of this boot was 0, minus all jumps.
    pub clock_zero_ns: i128,
    /// Number of jumps of the clock, and of boots.
    pub jumps: u64,
    pub down_by_boot: bool,
    /// The next wake-up that is on its way.
    pub wakes_at_ns: Option<u64>,
    pub last_changes: Vec<Change>,
    /// Its store as it was some time ago.
    pub backup: Disk,
    /// When it last lost its store, or had an older one back.
    pub forgot_ns: Option<u64>,
}

impl Host {
    pub fn new(n: usize) -> Self {
        Self {
            name: format!("m{n}"),
            manager: None,
            disk: Disk::default(),
            waiting: Effects::default(),
            boot: 0,
            clock_zero_ns: -(n as i128) * i128::from(S),
            jumps: 0,
            down_by_boot: false,
            wakes_at_ns: None,
            last_changes: vec![],
            backup: Disk::default(),
            forgot_ns: None,
        }
    }

    pub fn clock_ns(&self, now_ns: u64) -> u64 {
        u64::try_from(i128::from(now_ns) - self.clock_zero_ns).unwrap_or(0)
    }

    /// Whether its clock is that of the records on its disk.
    pub fn has_clock(&self) -> bool {
        !self.down_by_boot
    }
}

/// What a talker knows of one of its reservations.
#[derive(Clone, Debug)]
pub struct WantedReservation {
    pub id: String,
    pub at: usize,
    pub owner: String,
    pub request: StreamRequest,
    pub lease_ns: u64,
    /// Until when the talker was promised that it is reserved; 0: never.
    pub promised_until_ns: u64,
    /// The grant that it was told.
    pub granted: Option<(u64, Vec<admission::LinkBytes>)>,
    /// The talker has asked to release it, or was told that it has ended.
    pub is_over: bool,
    /// The managers on its way.
    pub keepers: Vec<usize>,
    /// The store of whom it asked was lost, or beside a liar one on its way: what was promised is void.
    pub is_void: bool,
    /// Jumps of all hosts when the talker was promised.
    pub jumps: u64,
    /// Jumps of all hosts when it was first asked for.
    pub first_jumps: u64,
    /// Number of questions when the talker first heard of the grant.
    pub questions: usize,
}

/// What happened, to see that histories are not idle.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub granted: u64,
    pub refused: u64,
    pub refreshed: u64,
    pub released: u64,
    pub failed: u64,
    pub kills: u64,
    pub boots: u64,
    pub jumps: u64,
    pub lost: u64,
    pub partitions: u64,
    pub same_again: u64,
    pub forgotten: u64,
    pub lies: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, of: Self) {
        self.granted += of.granted;
        self.refused += of.refused;
        self.refreshed += of.refreshed;
        self.released += of.released;
        self.failed += of.failed;
        self.kills += of.kills;
        self.boots += of.boots;
        self.jumps += of.jumps;
        self.lost += of.lost;
        self.partitions += of.partitions;
        self.same_again += of.same_again;
        self.forgotten += of.forgotten;
        self.lies += of.lies;
    }
}

/// Number of hosts with a manager; the last has no segment.
pub const MANAGERS: usize = 4;

/// A row of four segments of 10 Mbit/s with a manager each: 7212 bytes of a period for streams.
pub fn topology() -> Topology {
    let node = |name: String, is_router| NodeSpec { name, is_router };
    let mut nodes: Vec<_> = (0..MANAGERS)
        .map(|n| node(format!("h{n}"), false))
        .collect();
    nodes.extend((1..MANAGERS).map(|n| node(format!("r{n}"), true)));
    let segments: Vec<_> = (0..MANAGERS)
        .map(|n| {
            let mut members = vec![format!("h{n}")];
            members.extend((n > 0).then(|| format!("r{n}")));
            members.extend((n + 1 < MANAGERS).then(|| format!("r{}", n + 1)));
            let members: Vec<_> = members.iter().map(String::as_str).collect();
            let name = format!("s{n}");
            let mut spec = SegmentSpec::new(&name, Medium::Shared, 10_000_000, &members);
            // Streams take all: best effort is not what these histories are about.
            spec.nrt_bytes = 0;
            // The last two have one manager.
            spec.manager = Some(format!("m{}", n.min(MANAGERS - 2)));
            spec
        })
        .collect();
    Topology::new(&nodes, &segments).unwrap()
}

/// A stream from a host to another, of UDP payload in a period.
pub fn request(stream: u64, (from, to): (u64, u64), bytes: u32) -> StreamRequest {
    let [id, from, to] = [("x", stream), ("h", from), ("h", to)].map(|(of, n)| format!("{of}{n}"));
    requests::stream(&id, &from, &to, payload(bytes))
}

/// What a liar has heard.
#[derive(Default)]
pub struct Heard {
    /// Questions for the liar, with who asked whom; with a fault those for others, too.
    pub questions: Vec<(usize, usize, Message)>,
    /// All requests to hold bytes, with whom they were for.
    pub holds: Vec<(usize, Message)>,
    /// The numbers that its claims need, by host.
    pub nonces: [u64; MANAGERS],
}

/// The ticket of a command whose answer nobody waits for.
pub const NOBODY: u64 = u64::MAX;
