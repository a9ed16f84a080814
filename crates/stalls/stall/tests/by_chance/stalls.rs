// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stalls made for a known reason.

use stall::{Cause, Side};

use super::wire::{Chance, MS, US, Wire};

/// What is true: causes that name it, whose side it is, and the time.
pub struct Truth {
    pub name: &'static str,
    pub causes: &'static [Cause],
    pub sides: &'static [Side],
    pub from_ns: u64,
    pub to_ns: u64,
}

pub type Make = fn(&mut Chance, &mut Wire, u64) -> Truth;

pub fn application(chance: &mut Chance, wire: &mut Wire, at: u64) -> Truth {
    let pause = chance.between(150, 4000) * MS;
    let size = chance.between(3, 40) * wire.habits.mss;
    wire.burst(at + pause, size);
    Truth {
        name: "application",
        causes: &[Cause::Application],
        sides: &[Side::Sender],
        from_ns: at,
        to_ns: at + pause,
    }
}

pub fn window_closed(chance: &mut Chance, wire: &mut Wire, at: u64) -> Truth {
    let path_ns = wire.one_way_ns;
    let start = wire.sent;
    let mss = wire.habits.mss;
    wire.packet(at, true, start, start + mss, &[], 100, 0);
    wire.sent += mss;
    // What is left is nothing, or less than a segment.
    let small = chance.one_in(3);
    let before = wire.window;
    wire.window = if small {
        (mss / 2) >> wire.habits.scale << wire.habits.scale
    } else {
        0
    };
    let closes = at + path_ns + 50 * US;
    wire.packet(closes, false, wire.sent, wire.sent, &[], 100, 0);
    wire.echoes(at);
    let lasts = chance.between(500, 9000) * MS;
    if wire.window == 0 {
        let mut probe_at = closes + path_ns + wire.habits.rto_min_ns;
        let mut interval = wire.habits.rto_min_ns;
        while probe_at + 2 * path_ns < closes + lasts {
            if wire.habits.probe_bytes == 1 {
                wire.packet(probe_at, true, wire.sent, wire.sent + 1, &[], 100, 0);
            } else {
                wire.packet(probe_at, true, wire.sent - 1, wire.sent - 1, &[], 100, 0);
            }
            wire.packet(probe_at + path_ns, false, wire.sent, wire.sent, &[], 100, 0);
            interval *= 2;
            probe_at += interval;
        }
    }
    wire.window = before;
    let opens = closes + lasts;
    wire.packet(opens, false, wire.sent, wire.sent, &[], 100, 0);
    wire.burst(opens + path_ns + 30 * US, 12 * mss);
    Truth {
        name: "window closed",
        causes: &[Cause::ReceiverWindowClosed],
        sides: &[Side::Receiver],
        from_ns: closes,
        to_ns: opens,
    }
}

/// The last segments of a flight are lost; a timer sends the first again.
pub fn tail(chance: &mut Chance, wire: &mut Wire, at: u64) -> Truth {
    let (path_ns, mss, start) = (wire.one_way_ns, wire.habits.mss, wire.sent);
    let lost = chance.between(1, 2);
    let reach = chance.pick(&[10, 60, 95]);
    for n in 0..lost {
        let from = start + n * mss;
        wire.packet(at + n * 120 * US, true, from, from + mss, &[], reach, 0);
    }
    wire.sent += lost * mss;
    let mut again = at + 2 * path_ns + wire.habits.rto_min_ns + 5 * MS;
    let first = again;
    for n in 0..lost {
        let from = start + n * mss;
        wire.packet(again, true, from, from + mss, &[], 100, 0);
        wire.packet(again + path_ns, false, from + mss, from + mss, &[], 100, 0);
        wire.echoes(again);
        again += 2 * path_ns + 100 * US;
    }
    wire.burst(again, 12 * mss);
    Truth {
        name: "tail",
        causes: &[Cause::RtoTail, Cause::TailLossProbe, Cause::RtoOther],
        sides: &[Side::Network],
        from_ns: at,
        to_ns: first + 2 * path_ns,
    }
}

/// A segment, its repair, and more are lost while others behind it arrive.
pub fn lost_again(chance: &mut Chance, wire: &mut Wire, at: u64) -> Truth {
    let (path_ns, mss, start) = (wire.one_way_ns, wire.habits.mss, wire.sent);
    let count = chance.between(6, 20);
    let reach = chance.pick(&[10, 60, 95]);
    wire.packet(at, true, start, start + mss, &[], reach, 0);
    for n in 1..count {
        let (from, to) = (start + n * mss, start + (n + 1) * mss);
        let leaves = at + n * 120 * US;
        wire.packet(leaves, true, from, to, &[], 100, 0);
        let sack = [(start + mss, to)];
        wire.packet(leaves + path_ns, false, start, start, &sack, 100, 0);
        wire.echoes(at - MS);
    }
    wire.sent += count * mss;
    let repair = at + 2 * path_ns + 4 * 120 * US;
    wire.packet(repair, true, start, start + mss, &[], reach, 0);
    let more = chance.below(4);
    let (mut again, mut interval) = (repair, wire.habits.rto_min_ns + 2 * path_ns + 20 * MS);
    for copy in 0..=more {
        again += interval;
        interval *= 2;
        let reach = if copy == more { 100 } else { reach };
        wire.packet(again, true, start, start + mss, &[], reach, 0);
    }
    wire.packet(again + path_ns, false, wire.sent, wire.sent, &[], 100, 0);
    wire.echoes(again);
    wire.burst(again + 2 * path_ns, 12 * mss);
    Truth {
        name: "lost again",
        causes: &[
            Cause::RtoLostRetransmission,
            Cause::RtoStorm,
            Cause::RtoOther,
            Cause::SilentPath,
        ],
        // Data that was sent behind the lost repair may have told of it.
        sides: &[Side::Network, Side::Sender],
        from_ns: repair,
        to_ns: again + 2 * path_ns,
    }
}

/// The receiving host is switched off.
pub fn dead_host(chance: &mut Chance, wire: &mut Wire, at: u64) -> Truth {
    let (path_ns, mss, start) = (wire.one_way_ns, wire.habits.mss, wire.sent);
    for n in 0..chance.between(1, 8) {
        let from = start + n * mss;
        wire.packet(at + n * 120 * US, true, from, from + mss, &[], 101, 0);
        wire.sent += mss;
    }
    let (mut again, mut interval) = (at + 2 * path_ns, wire.habits.rto_min_ns + 5 * MS);
    for _ in 0..chance.between(2, 6) {
        again += interval;
        interval *= 2;
        wire.packet(again, true, start, start + mss, &[], 101, 0);
    }
    Truth {
        name: "dead host",
        causes: &[Cause::SilentPath],
        sides: &[Side::Receiver, Side::Unknown],
        from_ns: at,
        to_ns: again,
    }
}

/// One segment, Nagle or a small window behind it, and a receiver's timer.
pub fn delayed_ack(chance: &mut Chance, wire: &mut Wire, at: u64) -> Truth {
    let (path_ns, start) = (wire.one_way_ns, wire.sent);
    let size = chance.between(20, wire.habits.mss);
    wire.packet(at, true, start, start + size, &[], 100, 0);
    wire.sent += size;
    let held = wire.habits.delayed_ack_ns + chance.below(2 * MS);
    let acks = at + path_ns + held;
    wire.packet(acks, false, wire.sent, wire.sent, &[], 100, 0);
    wire.echoes(at);
    wire.burst(acks + path_ns + 40 * US, 6 * wire.habits.mss);
    Truth {
        name: "delayed ack",
        causes: &[Cause::DelayedAck],
        sides: &[Side::Receiver],
        from_ns: at,
        to_ns: acks + path_ns,
    }
}

/// Acknowledgements are lost for a time; the timer's copy finds that all had arrived.
pub fn acks_lost(chance: &mut Chance, wire: &mut Wire, at: u64) -> Truth {
    let (path_ns, mss, start) = (wire.one_way_ns, wire.habits.mss, wire.sent);
    let count = chance.between(3, 12);
    let reach = chance.pick(&[10, 60, 95]);
    for n in 0..count {
        let (from, to) = (start + n * mss, start + (n + 1) * mss);
        let leaves = at + n * 120 * US;
        wire.packet(leaves, true, from, to, &[], 100, 0);
        wire.packet(leaves + path_ns, false, to, to, &[], reach, 0);
        wire.echoes(leaves);
    }
    wire.sent += count * mss;
    let again = at + 2 * path_ns + wire.habits.rto_min_ns + 5 * MS;
    wire.packet(again, true, start, start + mss, &[], 100, 0);
    let duplicate = [(start, start + mss)];
    wire.packet(
        again + path_ns,
        false,
        wire.sent,
        wire.sent,
        &duplicate,
        100,
        0,
    );
    wire.echoes(at + (count - 1) * 120 * US);
    wire.burst(again + 2 * path_ns, 12 * mss);
    Truth {
        name: "acks lost",
        causes: &[Cause::AckLoss],
        sides: &[Side::Network],
        from_ns: at,
        to_ns: again + 2 * path_ns,
    }
}

/// All data is held up on its path_ns for less than the timer.
pub fn held_up(chance: &mut Chance, wire: &mut Wire, at: u64) -> Truth {
    let (path_ns, mss, start) = (wire.one_way_ns, wire.habits.mss, wire.sent);
    let late = chance.between(80, 180) * MS;
    let count = chance.between(5, 12);
    for n in 0..count {
        let (from, to) = (start + n * mss, start + (n + 1) * mss);
        let leaves = at + n * 120 * US;
        wire.packet(leaves, true, from, to, &[], 100, late);
        wire.packet(leaves + path_ns + late, false, to, to, &[], 100, 0);
        wire.echoes(leaves);
    }
    wire.sent += count * mss;
    let next = at + 2 * path_ns + late + count * 120 * US;
    wire.burst(next, 12 * mss);
    Truth {
        name: "held up",
        causes: &[Cause::DelaySpike],
        sides: &[Side::Network],
        from_ns: at,
        to_ns: at + 2 * path_ns + late,
    }
}

pub const MAKERS: [Make; 8] = [
    application,
    window_closed,
    tail,
    lost_again,
    dead_host,
    delayed_ack,
    acks_lost,
    held_up,
];
