// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which causes are right answers to which truth. The table follows the meanings of the causes
//! (`stall::Cause`), not the rules that find them; it was written before any capture was judged.

use stall::{Cause, Connection, Direction, Side, Stall, StallKind};

use crate::ground_truth::{End, Facts, Hold, Limit, Origin, Pause};
use crate::world::{Point, Run};

/// One row of the table: the causes that are right, the sides that are right (`unknown` is
/// never wrong), and why.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What the simulator knows.
    pub mechanism: Mechanism,
    /// The causes whose meaning it is.
    pub causes: &'static [Cause],
    /// The sides that it is on.
    pub sides: &'static [Side],
    pub reason: &'static str,
}

/// Declares the mechanisms, and the table with a row for each: causes, sides, reason.
macro_rules! table {
    ($(
        $(#[$meaning:meta])*
        $mechanism:ident: [$($cause:ident),*] [$($side:ident),*] $reason:literal;
    )*) => {
        /// What held a transfer, as far as causes tell it apart.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Mechanism {
            $($(#[$meaning])* $mechanism,)*
        }

        /// The table, in the order of the mechanisms.
        pub const TABLE: &[Row] = &[$(Row {
            mechanism: Mechanism::$mechanism,
            causes: &[$(Cause::$cause),*],
            sides: &[$(Side::$side),*],
            reason: $reason,
        }),*];
    };
}

table! {
    /// Nothing held the data: it was on its way.
    Moving: [] [] "the transfer did not stall";
    /// Nobody had anything to do.
    Idle: [] [] "nobody had anything to do: no stall at all";
    /// The client had not asked yet.
    Preparing: [Application] [Sender]
        "the client's application gave nothing to send, though nothing hindered it";
    /// The sender's application paused within a transfer.
    AppPaused: [Application] [Sender]
        "all was delivered, and the sending application supplied no more";
    /// The server worked on its answer.
    Answering: [ResponseTime, Application] [Sender]
        "the answering application has the request and works; that it supplies nothing is true of \
         it as well, and the side is the same";
    /// The sender's application waited for its peer's.
    AwaitingPeer: [WaitingForPeer] [Receiver]
        "the sending application waits for the other one; to blame the sender is wrong";
    /// The receiver's window had no room.
    WindowClosed: [ReceiverWindowClosed] [Receiver] "the receiving application does not read";
    /// The packet that told of an open window was lost.
    WindowUpdateLost: [ZeroWindowProbe, AckLoss] [Network]
        "the window was open and the update was lost, which is an acknowledgement that was lost";
    /// Each round trip the receiver's window was used up.
    WindowSmall: [ReceiverWindowSmall] [Receiver] "the window is below what the round trip needs";
    /// The receiver held an acknowledgement back.
    AckHeld: [DelayedAck] [Receiver] "the receiver had the data and held its acknowledgement back";
    /// The acknowledgement of data that had arrived was lost.
    AckLost: [AckLoss] [Network] "the data had arrived; only its acknowledgement was lost";
    /// The acknowledgement was held back, and the one before it was lost.
    AckLostAndHeld: [DelayedAck, AckLoss] [Receiver, Network]
        "without the delay or without the loss the sender would have gone on";
    /// Acknowledgements came late.
    AcksLate: [DelaySpike, AckLoss] [Network]
        "acknowledgements that come late come in a heap; both causes say so";
    /// Packets came late.
    Late: [DelaySpike] [Network] "everything was late, and nothing was lost";
    /// Lost, nothing above it arrived, and a timeout repaired it.
    TailLost: [RtoTail] [Network]
        "nothing behind the loss could report it, and the timeout repaired it";
    /// Lost, nothing above it arrived, and a tail loss probe was sent.
    TailProbed: [TailLossProbe, RtoTail] [Network]
        "the tail was lost, nothing behind could report it, and a probe was sent for it; a probe \
         of a single segment leaves when the timeout would be due";
    /// Lost, and one or two segments above it arrived.
    FewAbove: [RtoFewDupacks] [Network]
        "one or two segments behind the loss are too few to report it";
    /// A retransmission was lost as well.
    LostTwice: [RtoLostRetransmission] [Network, Sender]
        "a retransmission was lost and the timeout repaired it; a better sender would have \
         noticed, so both sides are true";
    /// A timeout repaired it.
    TimedOut: [RtoOther] []
        "a timeout repaired it, and the cause claims no more; its side is unknown";
    /// Two timeouts or more.
    TimeoutsRepeated: [RtoStorm] [Network]
        "several timeouts followed each other on a path that lost what was sent";
    /// The path was down.
    PathSilent: [SilentPath] [Network] "nothing came through while the path was down";
    /// The receiving host was gone.
    PeerGone: [SilentPath] [Receiver]
        "nothing came back, for the host was gone: the network did nothing wrong";
    /// Large packets were dropped.
    BlackHole: [PmtuBlackHole] [Network] "large packets were dropped, and small ones were not";
    /// A policer dropped.
    PolicerDrops: [Policer] [Network] "half of the losses or more were the policer's";
    /// Errors of a link dropped.
    LinkErrors: [PathLoss] [Network] "half of the losses or more were errors of a link";
    /// A full queue dropped.
    QueueDrops: [Congestion] [Network] "half of the losses or more were a full queue's";
    /// Overtaken packets were repaired needlessly.
    Overtaken: [Reordering] [Network] "what was retransmitted had only been overtaken";
    /// Repair of losses took the time.
    RepairSlow: [RecoveryCwndPinned] [Sender]
        "repair took half of the time or more, without silence";
    /// A congestion window that had collapsed grew back.
    RegrowthSlow: [SlowGrowth] [Sender]
        "a timeout had reduced the congestion window, which was the limit afterwards";
    /// The send buffer was the limit.
    SendBufferFull: [SendBuffer] [Sender]
        "the send buffer held all that it can hold, and the application had more";
    /// The sender's TCP did not send, though it could.
    SenderHeld: [SendBuffer] [Sender]
        "a limit within the sender that is neither window nor application";
    /// A packet of the handshake was lost.
    SetupLost: [ConnectionSetup] [Network] "a packet of the handshake was lost";
    /// The receiving host answered the handshake late.
    SetupSlow: [ConnectionSetup] [Receiver]
        "a host answered the handshake late; it is the receiver of the client's data";
    /// The sending host answered the handshake late.
    AcceptSlow: [ConnectionSetup] [Sender]
        "a host answered the handshake late; it is the sender of the server's data";
}

/// Returns the row of a mechanism.
pub const fn row_of(mechanism: Mechanism) -> Row {
    TABLE[mechanism as usize]
}

/// Share of a stall, in percent, that has to be held for it to be one.
const HELD_LEAST: u64 = 25;
/// Share of the held time, in percent, that a hold needs beside a longer one.
const BESIDE_LEAST: u64 = 40;

/// Returns what held the data in a window of time, the chief mechanism first. A reported stall
/// is right if its cause fits any of them.
pub fn mechanisms(facts: &Facts, kind: StallKind) -> Vec<Mechanism> {
    let mut found = Vec::new();
    let held = |(hold, _): &&(Hold, u64)| *hold != Hold::Moving;
    let held_ns: u64 = facts.holds.iter().filter(held).map(|(_, ns)| ns).sum();
    let is_held = held_ns * 100 >= facts.total_ns * HELD_LEAST && held_ns > 0;
    if is_held {
        for (at, (hold, ns)) in facts.holds.iter().filter(held).enumerate() {
            if at == 0 || ns * 100 >= held_ns * BESIDE_LEAST {
                of_hold(facts, *hold, &mut found);
            }
        }
    }
    if kind == StallKind::Slow {
        of_phase(facts, &mut found);
    }
    if facts.overtaken_needless > 0 {
        found.push(Mechanism::Overtaken);
    }
    let mut seen = Vec::new();
    found.retain(|m| {
        let is_new = !seen.contains(m);
        seen.push(*m);
        is_new
    });
    if found.is_empty() {
        found.push(Mechanism::Moving);
    }
    found
}

/// Adds what a hold means.
fn of_hold(facts: &Facts, hold: Hold, found: &mut Vec<Mechanism>) {
    match hold {
        Hold::Moving => {}
        Hold::Late => found.push(Mechanism::Late),
        Hold::AcksLate => found.push(Mechanism::AcksLate),
        Hold::AckLostAndHeld => found.push(Mechanism::AckLostAndHeld),
        Hold::Lost => of_loss(facts, found),
        Hold::AckLost => {
            let is_outage = facts.drops.first().is_some_and(|d| d.0 == Origin::Outage);
            found.push(Mechanism::AckLost);
            if is_outage {
                found.push(Mechanism::PathSilent);
            }
            if facts.timeouts >= 2 {
                found.push(Mechanism::TimeoutsRepeated);
            }
        }
        Hold::AckHeld => found.push(Mechanism::AckHeld),
        Hold::WindowClosed => found.push(Mechanism::WindowClosed),
        Hold::UpdateLost => found.push(Mechanism::WindowUpdateLost),
        Hold::SenderHeld => found.push(Mechanism::SenderHeld),
        Hold::PeerGone => found.push(Mechanism::PeerGone),
        Hold::SetupLost => found.push(Mechanism::SetupLost),
        Hold::SetupSlow => found.push(Mechanism::SetupSlow),
        Hold::AcceptSlow => found.push(Mechanism::AcceptSlow),
        Hold::Paused(pause) => found.push(match pause {
            Pause::Think | Pause::AwaitIdle | Pause::Finished => Mechanism::Idle,
            Pause::Work => Mechanism::AppPaused,
            Pause::Serve => Mechanism::Answering,
            Pause::Prepare => Mechanism::Preparing,
            Pause::AwaitPeer => Mechanism::AwaitingPeer,
        }),
    }
}

/// Adds what lost data and its repair mean: every mechanism that is literally true of it.
fn of_loss(facts: &Facts, found: &mut Vec<Mechanism>) {
    let dropped: u32 = facts.drops.iter().map(|(_, count)| count).sum();
    let chief = |origin| {
        let count = facts
            .drops
            .iter()
            .find(|d| d.0 == origin)
            .map_or(0, |d| d.1);
        count > 0 && count * 2 >= dropped
    };
    if chief(Origin::HostGone) {
        // The network did nothing wrong: none of its causes is right.
        found.push(Mechanism::PeerGone);
        return;
    }
    if chief(Origin::BlackHole) {
        found.push(Mechanism::BlackHole);
    }
    // Nothing came through: the path was down, or lost every one of several packets.
    let none_passed = facts.packets.0 >= 3 && facts.packets.0 == facts.packets.1;
    if chief(Origin::Outage) || none_passed {
        found.push(Mechanism::PathSilent);
    }
    if facts.ack_lost {
        found.push(Mechanism::AckLost);
    }
    if facts.timeouts > 0 {
        if facts.copies_lost >= 2 {
            found.push(Mechanism::LostTwice);
        }
        match facts.above {
            0 => found.push(Mechanism::TailLost),
            1 | 2 => found.push(Mechanism::FewAbove),
            _ => {}
        }
        if facts.timeouts >= 2 {
            found.push(Mechanism::TimeoutsRepeated);
        }
        found.push(Mechanism::TimedOut);
    }
    if facts.tail_probes > 0 {
        found.push(Mechanism::TailProbed);
    }
    if facts.timeouts + facts.tail_probes == 0 {
        found.push(Mechanism::RepairSlow);
    }
    of_origin(facts, found);
}

/// Adds the chief origin of the losses.
fn of_origin(facts: &Facts, found: &mut Vec<Mechanism>) {
    let dropped: u32 = facts.drops.iter().map(|(_, count)| count).sum();
    for (origin, count) in &facts.drops {
        if count * 2 < dropped {
            continue;
        }
        match origin {
            Origin::Error => found.push(Mechanism::LinkErrors),
            Origin::Policer => found.push(Mechanism::PolicerDrops),
            Origin::Queue => found.push(Mechanism::QueueDrops),
            Origin::Outage | Origin::BlackHole | Origin::HostGone => {}
        }
    }
}

/// Adds what a slow phase means.
fn of_phase(facts: &Facts, found: &mut Vec<Mechanism>) {
    let all_ns: u64 = facts.limits.iter().map(|(_, ns)| ns).sum();
    let share = |limit| {
        let ns = facts
            .limits
            .iter()
            .find(|l| l.0 == limit)
            .map_or(0, |l| l.1);
        ns > 0 && ns * 2 >= all_ns
    };
    if share(Limit::Window) || share(Limit::WindowAndBuffer) {
        found.push(Mechanism::WindowSmall);
    }
    if share(Limit::SendBuffer) || share(Limit::WindowAndBuffer) {
        found.push(Mechanism::SendBufferFull);
    }
    if share(Limit::Repair) {
        found.push(Mechanism::RepairSlow);
    }
    if share(Limit::Path) && facts.timeouts + facts.timeouts_before > 0 {
        found.push(Mechanism::RegrowthSlow);
    }
    of_origin(facts, found);
}

/// Returns whether a reported cause on a side is a right answer to what held the data.
pub fn is_right(found: &[Mechanism], cause: Cause, side: Side) -> bool {
    found.iter().map(|m| row_of(*m)).any(|row| {
        row.causes.contains(&cause) && (side == Side::Unknown || row.sides.contains(&side))
    })
}

impl Run {
    /// Returns whose data a reported stall is about, and what held that data in truth. The report
    /// is of a capture at `point` that begins at `first_ns`.
    pub fn truth_of(
        &self,
        point: Point,
        first_ns: u64,
        connection: &Connection,
        stall: &Stall,
    ) -> (End, Vec<Mechanism>) {
        // A capture without the handshake may take the server for the client.
        let is_turned = connection.client.port == self.ids.ports[1];
        let to_server = (stall.direction == Direction::ToServer) != is_turned;
        let end = if to_server { End::Client } else { End::Server };
        let path_ns = self.delay_ns[end.index()];
        let to_point_ns = match (end, point) {
            (End::Client, Point::Client) | (End::Server, Point::Server) => 0,
            (_, Point::Middle) => path_ns / 2,
            _ => path_ns,
        };
        let start_ns = first_ns + stall.start_ns;
        // What the capture point saw last had left the sender earlier.
        let left_ns = start_ns.saturating_sub(to_point_ns);
        let own = &self.truth[end.index()];
        let facts = own.facts(left_ns, start_ns + stall.duration_ns);
        (end, mechanisms(&facts, stall.kind))
    }
}
