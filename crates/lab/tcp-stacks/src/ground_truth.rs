// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the simulator knows of a connection: what held each direction's data at each time, and
//! what became of every packet.

/// One end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// The end that opens the connection.
    Client,
    /// The end that accepts it.
    Server,
}

impl End {
    /// Returns 0 for the client and 1 for the server.
    pub const fn index(self) -> usize {
        match self {
            End::Client => 0,
            End::Server => 1,
        }
    }

    pub const fn other(self) -> Self {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }
}

/// What held one direction's data at a time. The data goes from "the sender" to "the receiver".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hold {
    /// Nothing: useful data, or an acknowledgement that lets the sender go on, was on the way.
    Moving,
    /// Data on the way came later than the path's own delay and queue explain.
    Late,
    /// Acknowledgements came later than that, and data, if any was on the way.
    AcksLate,
    /// Data was lost, and nothing was on the way that could repair it.
    Lost,
    /// All data had arrived, and the acknowledgement of it was lost.
    AckLost,
    /// Data had arrived, and the receiver held its acknowledgement back.
    AckHeld,
    /// As `AckHeld`, and the acknowledgement before it was lost: either would have let the
    /// sender go on.
    AckLostAndHeld,
    /// The sender had data, and the receiver's window had no room for it.
    WindowClosed,
    /// The receiver had opened its window, and the packet that says so was lost.
    UpdateLost,
    /// The sender's TCP had data and a window, and did not send.
    SenderHeld,
    /// The sender's application paused.
    Paused(Pause),
    /// The receiving host was gone.
    PeerGone,
    /// A packet of the handshake was lost.
    SetupLost,
    /// The receiving host took its time with the handshake.
    SetupSlow,
    /// The sending host took its time with the handshake.
    AcceptSlow,
}

/// Why a sender's application gave nothing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pause {
    /// It had nothing to do: a person reads, a period has not passed.
    Think,
    /// It had more to send within the same transfer, and was busy with something else.
    Work,
    /// It worked on an answer to a request that had arrived.
    Serve,
    /// It had not asked for anything yet, since the connection was set up.
    Prepare,
    /// It waited for its peer's application, which worked or sent.
    AwaitPeer,
    /// It waited for its peer's application, which had nothing to do either.
    AwaitIdle,
    /// It had written everything.
    Finished,
}

impl Pause {
    /// Returns whether neither end had anything to do.
    pub const fn is_idle(self) -> bool {
        matches!(self, Pause::Think | Pause::AwaitIdle | Pause::Finished)
    }
}

/// What limited a sender that had not stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Limit {
    Application,
    /// The receiver's window.
    Window,
    /// Its socket's buffer: the application had more, and all that fits was under way.
    SendBuffer,
    /// Both: the buffer is no larger than the window.
    WindowAndBuffer,
    /// Losses that were not repaired yet.
    Repair,
    /// Its congestion window, or the path.
    Path,
}

/// Why an end sent a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// New data or FIN.
    New,
    /// Repair, started by what the receiver reported.
    Fast,
    /// Repair, started by the retransmission timer.
    Timeout,
    /// The rest of a repair after the timer.
    AfterTimeout,
    /// A tail loss probe.
    TailProbe,
    /// A probe of a closed window.
    WindowProbe,
    KeepAlive,
    /// An acknowledgement without data.
    Ack,
    /// An acknowledgement that a timer sent.
    DelayedAck,
    /// An acknowledgement because the application read.
    WindowUpdate,
    /// A packet of the handshake.
    Handshake,
    Reset,
}

/// What dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// An error of a link.
    Error,
    Policer,
    /// A full queue.
    Queue,
    /// The path was down.
    Outage,
    /// It was too large for the path, and nothing said so.
    BlackHole,
    /// Its destination was gone.
    HostGone,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at this time.
    Arrives(u64),
    /// It was dropped.
    Dropped(Origin),
}

/// One packet as its sender sent it. Sequence numbers count from 0, the SYN's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When it was sent.
    pub time_ns: u64,
    /// First byte of the range.
    pub begin: u64,
    /// Byte after the range; `begin` if the packet carries none.
    pub end: u64,
    /// Why it was sent.
    pub why: Why,
    /// What became of it.
    pub fate: Fate,
    /// Whether the receiver had the whole range when it arrived.
    pub needless: bool,
    /// Whether another packet of the same sender overtook it.
    pub overtaken: bool,
}

/// A time in which the same thing held a direction's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub start_ns: u64,
    pub end_ns: u64,
    /// What held the data.
    pub hold: Hold,
    /// Segments above the first missing byte that the receiver had at the end.
    pub above: u32,
    /// The first byte that the receiver missed.
    pub missing: u64,
    /// What limits the sender besides.
    pub limit: Limit,
    /// Whether an acknowledgement of data that had arrived was lost as well.
    pub ack_lost: bool,
}

/// The truth about one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// What held the data: disjoint, in order, without gaps.
    pub timeline: Vec<Interval>,
    /// Every packet of the sender, in order of time.
    pub sent: Vec<Sent>,
}

/// Facts about a window of time of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Length of the window that the timeline covers.
    pub total_ns: u64,
    /// Time of each hold, the longest first; `Moving` is among them.
    pub holds: Vec<(Hold, u64)>,
    /// Time of each limit, pauses left out, the longest first.
    pub limits: Vec<(Limit, u64)>,
    /// Timeouts of the sender.
    pub timeouts: u32,
    /// Timeouts of the sender before the window.
    pub timeouts_before: u32,
    /// Tail loss probes.
    pub tail_probes: u32,
    /// The most copies of one byte, missing in the window, that were dropped.
    pub copies_lost: u32,
    /// The most segments that the receiver had above a missing byte.
    pub above: u32,
    /// Data packets of the sender that were dropped, by origin, the most frequent first.
    pub drops: Vec<(Origin, u32)>,
    /// Whether an acknowledgement was lost beside data that was.
    pub ack_lost: bool,
    /// Packets that the sender sent, and how many of them were dropped.
    pub packets: (u32, u32),
    /// Packets with data that were sent.
    pub data_packets: u32,
    /// Retransmissions that the receiver did not need, behind originals that were overtaken.
    pub overtaken_needless: u32,
}

fn add<K: PartialEq, V: std::ops::AddAssign>(list: &mut Vec<(K, V)>, key: K, value: V) {
    match list.iter_mut().find(|(k, _)| *k == key) {
        Some((_, sum)) => *sum += value,
        None => list.push((key, value)),
    }
}

impl Direction {
    /// Returns the facts about `start_ns` to `end_ns`. Linear in the packets.
    pub fn facts(&self, start_ns: u64, end_ns: u64) -> Facts {
        let mut facts = Facts::default();
        let mut missing: Vec<u64> = Vec::new();
        for interval in &self.timeline {
            let from = interval.start_ns.max(start_ns);
            let to = interval.end_ns.min(end_ns);
            if from >= to {
                continue;
            }
            facts.total_ns += to - from;
            add(&mut facts.holds, interval.hold, to - from);
            if !matches!(interval.hold, Hold::Paused(_)) {
                add(&mut facts.limits, interval.limit, to - from);
            }
            if interval.hold == Hold::Lost || interval.hold == Hold::PeerGone {
                facts.above = facts.above.max(interval.above);
                facts.ack_lost |= interval.ack_lost;
                if !missing.contains(&interval.missing) {
                    missing.push(interval.missing);
                }
            }
        }
        facts.holds.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        facts.limits.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let within = |time_ns: u64| (start_ns..=end_ns).contains(&time_ns);
        for sent in self.sent.iter().filter(|s| s.time_ns <= end_ns) {
            facts.timeouts_before += u32::from(sent.why == Why::Timeout && sent.time_ns < start_ns);
            let covers = missing.iter().any(|m| (sent.begin..sent.end).contains(m));
            if let Fate::Dropped(origin) = sent.fate {
                // What was lost before the silence began is what the silence is about.
                if sent.end > sent.begin && (within(sent.time_ns) || covers) {
                    add(&mut facts.drops, origin, 1);
                }
            }
            if !within(sent.time_ns) {
                continue;
            }
            facts.packets.0 += 1;
            facts.packets.1 += u32::from(matches!(sent.fate, Fate::Dropped(_)));
            facts.timeouts += u32::from(sent.why == Why::Timeout);
            facts.tail_probes += u32::from(sent.why == Why::TailProbe);
            facts.data_packets += u32::from(sent.end > sent.begin);
            let repeats = matches!(sent.why, Why::Fast | Why::Timeout | Why::AfterTimeout);
            let overtaken = || {
                self.sent.iter().any(|o| {
                    o.overtaken
                        && o.time_ns < sent.time_ns
                        && o.begin < sent.end
                        && sent.begin < o.end
                })
            };
            facts.overtaken_needless += u32::from(repeats && sent.needless && overtaken());
        }
        facts
            .drops
            .sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for byte in missing {
            let copies = self.sent.iter().filter(|s| {
                s.time_ns <= end_ns && (s.begin..s.end).contains(&byte) && s.why != Why::WindowProbe
            });
            let lost = copies
                .filter(|s| matches!(s.fate, Fate::Dropped(_)))
                .count();
            let count = u32::try_from(lost).unwrap_or(u32::MAX);
            facts.copies_lost = facts.copies_lost.max(count);
        }
        facts
    }
}
