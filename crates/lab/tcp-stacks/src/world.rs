// SPDX-License-Identifier: MIT OR Apache-2.0
//! One connection in virtual time: two applications, two stacks, a path in each direction, three
//! capture points and the witness.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::app::App;
use crate::ground_truth::{Direction, End, Fate, Origin};
use crate::packet::{Ids, Packet};
use crate::path::{Path, Transit};
use crate::stack::Stack;
use crate::witness::{EndState, Witness};

/// Where a capture was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Point {
    /// On the client's host.
    Client,
    /// On the path, behind the lines of both hosts.
    Middle,
    /// On the server's host.
    Server,
}

/// A packet as one capture point saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub time_ns: u64,
    pub packet: Packet,
    /// Its hop limit there.
    pub hop_limit: u8,
}

/// What a connection is made of.
pub struct Setup {
    /// Addresses, ports and initial sequence numbers.
    pub ids: Ids,
    /// The client's and the server's TCP.
    pub stacks: [Box<dyn Stack>; 2],
    pub apps: [App; 2],
    /// The path from the client, and the path from the server.
    pub paths: [Path; 2],
    /// Time from a packet's arrival to the answer, of both hosts.
    pub host_ns: [u64; 2],
    /// When a host vanishes.
    pub dies_ns: [Option<u64>; 2],
    /// The end of the simulation.
    pub until_ns: u64,
}

/// A connection that ran: what was captured and what is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// What names the connection.
    pub ids: Ids,
    /// Packets at the client, in the middle, at the server; in order of time.
    pub seen: [Vec<Seen>; 3],
    /// The truth about the client's data and the server's.
    pub truth: [Direction; 2],
    /// Delay of the paths without queue, from the client and from the server.
    pub delay_ns: [u64; 2],
    /// When the last packet was captured.
    pub until_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The packet of this index arrives.
    Arrives(usize),
    /// A stack or an application is to be asked.
    Wake(End),
    /// A host vanishes.
    Dies(End),
    /// What is late by now is to be noted.
    Note,
}

struct World {
    setup: Setup,
    now_ns: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    packets: Vec<Packet>,
    woken_ns: [u64; 2],
    /// When an end's line is free for its next packet.
    free_ns: [u64; 2],
    alive: [bool; 2],
    seen: [Vec<Seen>; 3],
    witness: Witness,
}

/// Most events of a run: a guard against stacks that answer each other without end.
const EVENTS_MOST: u64 = 2_000_000;

/// Least time between two packets of a host: its own line.
const APART_NS: u64 = 1_000;

/// Runs a connection to its end.
pub fn run(setup: Setup) -> Run {
    let delay_ns = [setup.paths[0].delay_ns(), setup.paths[1].delay_ns()];
    let mut world = World {
        now_ns: 0,
        events: BinaryHeap::new(),
        count: 0,
        packets: Vec::new(),
        woken_ns: [u64::MAX; 2],
        free_ns: [0; 2],
        alive: [true; 2],
        seen: [Vec::new(), Vec::new(), Vec::new()],
        witness: Witness::default(),
        setup,
    };
    world.go();
    let mut seen = world.seen;
    for list in &mut seen {
        list.sort_by_key(|s| s.time_ns);
    }
    let last = seen
        .iter()
        .filter_map(|list| list.last())
        .map(|s| s.time_ns)
        .max();
    let until_ns = last.unwrap_or(0);
    Run {
        ids: world.setup.ids,
        seen,
        truth: world.witness.finish(until_ns.max(1)),
        delay_ns,
        until_ns,
    }
}

impl World {
    fn at(&mut self, time_ns: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((time_ns, self.count, event)));
    }

    fn go(&mut self) {
        for end in [End::Client, End::Server] {
            if let Some(time_ns) = self.setup.dies_ns[end.index()] {
                self.at(time_ns, Event::Dies(end));
            }
        }
        self.setup.stacks[0].connect(0);
        self.serve(End::Client, 0);
        self.note();
        let mut handled = 0;
        while let Some(Reverse((time_ns, _, event))) = self.events.pop() {
            handled += 1;
            if time_ns > self.setup.until_ns || handled > EVENTS_MOST {
                return;
            }
            self.now_ns = time_ns;
            match event {
                Event::Arrives(index) => {
                    let packet = self.packets[index].clone();
                    let end = packet.from.other();
                    self.witness.arrived(time_ns, &packet);
                    self.setup.stacks[end.index()].receive(time_ns, &packet);
                    self.serve(end, self.setup.host_ns[end.index()]);
                }
                Event::Wake(end) => {
                    if self.woken_ns[end.index()] == time_ns {
                        self.woken_ns[end.index()] = u64::MAX;
                    }
                    if self.alive[end.index()] {
                        self.setup.stacks[end.index()].wake(time_ns);
                        self.serve(end, 0);
                    }
                }
                Event::Dies(end) => self.alive[end.index()] = false,
                Event::Note => {}
            }
            self.note();
        }
    }

    /// Lets an end's application act, sends what its stack has, and asks when to come back.
    fn serve(&mut self, end: End, host_ns: u64) {
        let index = end.index();
        if !self.alive[index] {
            return;
        }
        let now_ns = self.now_ns;
        // Reading may make room for the stack to answer, and the answer may let the
        // application write: two passes are enough for both.
        for _ in 0..2 {
            let stack = self.setup.stacks[index].as_mut();
            self.setup.apps[index].advance(now_ns, stack);
            for packet in self.setup.stacks[index].take() {
                self.send(packet, now_ns + host_ns);
            }
        }
        let stack = self.setup.stacks[index].deadline(now_ns);
        let app = self.setup.apps[index].deadline(now_ns);
        if let Some(due_ns) = [stack, app].into_iter().flatten().min() {
            let due_ns = due_ns.max(now_ns + 1);
            if due_ns < self.woken_ns[index] || self.woken_ns[index] <= now_ns {
                self.woken_ns[index] = due_ns;
                self.at(due_ns, Event::Wake(end));
            }
        }
    }

    fn send(&mut self, packet: Packet, time_ns: u64) {
        let from = packet.from.index();
        let time_ns = time_ns.max(self.free_ns[from]);
        self.free_ns[from] = time_ns + APART_NS;
        let path = &mut self.setup.paths[from];
        let mut transit: Transit =
            path.carry(time_ns, packet.wire_bytes(), packet.payload_bytes > 0);
        if let Fate::Arrives(arrives_ns) = transit.fate {
            let dies_ns = self.setup.dies_ns[packet.from.other().index()];
            if dies_ns.is_some_and(|dies_ns| dies_ns <= arrives_ns) {
                transit.fate = Fate::Dropped(Origin::HostGone);
            }
        }
        let own = if from == 0 {
            Point::Client
        } else {
            Point::Server
        };
        let far = if from == 0 {
            Point::Server
        } else {
            Point::Client
        };
        self.see(own, time_ns, &packet, 0);
        if let Some(middle_ns) = transit.middle_ns {
            self.see(Point::Middle, middle_ns, &packet, 3);
        }
        self.witness.sent(time_ns, &packet, &transit);
        if let Fate::Arrives(arrives_ns) = transit.fate {
            self.see(far, arrives_ns, &packet, 7);
            if transit.late_ns > 0 {
                self.at(arrives_ns - transit.late_ns, Event::Note);
            }
            self.packets.push(packet);
            self.at(arrives_ns, Event::Arrives(self.packets.len() - 1));
        }
    }

    fn see(&mut self, point: Point, time_ns: u64, packet: &Packet, hops: u8) {
        let is_local = self.setup.ids.addresses[0] == self.setup.ids.addresses[1];
        let hops = if is_local { 0 } else { hops };
        self.seen[point as usize].push(Seen {
            time_ns,
            packet: packet.clone(),
            hop_limit: packet.hop_limit.saturating_sub(hops),
        });
    }

    fn note(&mut self) {
        let ends = [End::Client, End::Server].map(|end| {
            let stack = &self.setup.stacks[end.index()];
            let app = &self.setup.apps[end.index()];
            EndState {
                is_established: stack.is_established(),
                is_over: stack.is_over(),
                is_alive: self.alive[end.index()],
                queued: stack.queued(),
                room: stack.room(),
                is_blocked: app.is_blocked(),
                pause: app.pause(),
            }
        });
        self.witness.note(self.now_ns, &ends);
    }
}
