// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections that the simulator of `tcp-stacks` runs: two systems, a path, two applications.

use tcp_stacks::app::{App, Reader, Step};
use tcp_stacks::chance::Chance;
use tcp_stacks::draw::Kind;
use tcp_stacks::ground_truth::{End, Pause, Why};
use tcp_stacks::packet::Ids;
use tcp_stacks::path::{Nature, Path};
use tcp_stacks::profile::{MS, Profile, S};
use tcp_stacks::world::{Point, Run, Setup, run};

use crate::record::Capture;

/// A connection before it runs.
#[derive(Clone, Debug)]
pub struct Sim {
    /// The client's and the server's system.
    pub stacks: [Profile; 2],
    /// The path from the client, and the path from the server.
    pub paths: [Nature; 2],
    /// What the applications do.
    pub steps: [Vec<Step>; 2],
    /// How they read.
    pub readers: [Reader; 2],
    /// Whether small segments wait while something is under way (RFC 896); the applications of
    /// most cases switch that off (TCP_NODELAY), as web servers and browsers do.
    pub nagle: bool,
    /// How long the server takes to answer a SYN.
    pub accept_ns: u64,
    /// When a host vanishes.
    pub dies_ns: [Option<u64>; 2],
    /// The end of the simulation.
    pub until_ns: u64,
    /// Addresses, ports and initial sequence numbers.
    pub ids: Ids,
    seed: u64,
}

/// Returns what names the connection of a case.
pub fn names(seed: u64) -> Ids {
    let mut chance = Chance::new(seed, 3);
    Ids {
        addresses: [[192, 0, 2, 7], [198, 51, 100, 9]],
        ports: [chance.between(32_768, 60_999) as u16, 443],
        initial: [chance.below(1 << 31) as u32, chance.below(1 << 31) as u32],
    }
}

impl Sim {
    /// Makes a connection of two Linux hosts on a path of `rtt_ms` and 50 Mbit/s.
    pub fn new(seed: u64, rtt_ms: u64) -> Self {
        let path = Nature {
            rate_bps: 50_000_000,
            delay_ns: rtt_ms * MS / 2,
            ..Nature::default()
        };
        Self {
            stacks: [Profile::linux(), Profile::linux()],
            paths: [path.clone(), path],
            steps: [Vec::new(), Vec::new()],
            readers: [Reader::default(), Reader::default()],
            nagle: false,
            accept_ns: 0,
            dies_ns: [None; 2],
            until_ns: 200 * S,
            ids: names(seed),
            seed,
        }
    }

    /// Gives the ends their systems.
    pub fn stacks(mut self, client: Profile, server: Profile) -> Self {
        self.stacks = [client, server];
        self
    }

    /// Changes both systems.
    pub fn both(mut self, change: impl Fn(&mut Profile)) -> Self {
        self.stacks.iter_mut().for_each(change);
        self
    }

    /// Changes one system.
    pub fn stack(mut self, end: End, change: impl Fn(&mut Profile)) -> Self {
        change(&mut self.stacks[end.index()]);
        self
    }

    /// Changes the path from an end.
    pub fn path(mut self, from: End, change: impl Fn(&mut Nature)) -> Self {
        change(&mut self.paths[from.index()]);
        self
    }

    /// Lets the server send `writes` of bytes, with pauses of milliseconds before each, to a
    /// client that asked for them.
    pub fn download(mut self, writes: &[(u64, u64)]) -> Self {
        let bytes = writes.iter().map(|w| w.1).sum();
        self.steps[0] = vec![
            Step::Write(180),
            Step::Await(bytes),
            Step::Close,
            Step::AwaitEnd,
        ];
        self.steps[1] = vec![Step::Await(180)];
        self.steps[1].extend(written(writes));
        self.steps[1].extend([Step::AwaitEnd, Step::Close]);
        self
    }

    /// Lets the client send `writes` of bytes, with pauses of milliseconds before each.
    pub fn upload(mut self, writes: &[(u64, u64)]) -> Self {
        let bytes = writes.iter().map(|w| w.1).sum();
        self.steps[0] = written(writes);
        self.steps[0].extend([Step::Close, Step::AwaitEnd]);
        self.steps[1] = vec![Step::Await(bytes), Step::AwaitEnd, Step::Close];
        self
    }

    /// Lets the client ask and the server answer: each turn is the client's pause, the bytes of
    /// the request, the server's pause, the bytes of the answer.
    pub fn turns(mut self, turns: &[(u64, u64, u64, u64)]) -> Self {
        for &(think_ms, request, serve_ms, answer) in turns {
            if think_ms > 0 {
                self.steps[0].push(Step::Pause(Pause::Think, think_ms * MS));
            }
            self.steps[0].extend([Step::Write(request), Step::Await(answer)]);
            self.steps[1].push(Step::Await(request));
            if serve_ms > 0 {
                self.steps[1].push(Step::Pause(Pause::Serve, serve_ms * MS));
            }
            self.steps[1].push(Step::Write(answer));
        }
        self.steps[0].extend([Step::Close, Step::AwaitEnd]);
        self.steps[1].extend([Step::AwaitEnd, Step::Close]);
        self
    }

    /// Lets an end pause its reading: behind so many bytes, for so many milliseconds.
    pub fn not_reading(mut self, end: End, pauses: &[(u64, u64)]) -> Self {
        let pauses = pauses.iter().map(|&(bytes, ms)| (bytes, ms * MS));
        self.readers[end.index()].pauses = pauses.collect();
        self
    }

    /// Lets the path from an end lose the first `count` packets that it sends for these reasons,
    /// on top of what it loses already.
    pub fn lose(mut self, from: End, count: usize, reasons: &[Why]) -> Self {
        for _ in 0..count {
            let own = if from == End::Client {
                Point::Client
            } else {
                Point::Server
            };
            let run = self.run();
            let sent = run.seen[own as usize].iter().map(|seen| &seen.packet);
            let data = sent.filter(|p| p.from == from && p.payload_bytes > 0);
            let drops = &mut self.paths[from.index()].drop_data;
            let next = (0..)
                .zip(data)
                .find(|(number, p)| reasons.contains(&p.why) && !drops.contains(number));
            drops.extend(next.map(|(number, _)| number));
        }
        self
    }

    /// The same with packets that carry no data.
    pub fn lose_acks(mut self, from: End, count: usize, reasons: &[Why]) -> Self {
        for _ in 0..count {
            let own = if from == End::Client {
                Point::Client
            } else {
                Point::Server
            };
            let run = self.run();
            let sent = run.seen[own as usize].iter().map(|seen| &seen.packet);
            let acks = sent.filter(|p| p.from == from && p.payload_bytes == 0);
            let drops = &mut self.paths[from.index()].drop_acks;
            let next = (0..)
                .zip(acks)
                .find(|(number, p)| reasons.contains(&p.why) && !drops.contains(number));
            drops.extend(next.map(|(number, _)| number));
        }
        self
    }

    /// Runs the connection.
    pub fn run(&self) -> Run {
        let mut chance = Chance::new(self.seed, 2);
        let [client, server] = self.stacks.clone().map(|mut profile| {
            profile.nagle &= self.nagle;
            Kind::Scripted(profile)
        });
        let stacks = [
            client.stack(End::Client, &self.ids, 0, &mut chance),
            server.stack(End::Server, &self.ids, self.accept_ns, &mut chance),
        ];
        let path = |index: usize| {
            let chance = Chance::new(self.seed, 4 + index as u64);
            Path::new(self.paths[index].clone(), chance)
        };
        let app = |index: usize| App::new(&self.steps[index], self.readers[index].clone());
        run(Setup {
            ids: self.ids.clone(),
            stacks,
            apps: [app(0), app(1)],
            paths: [path(0), path(1)],
            host_ns: [21_000, 17_000],
            dies_ns: self.dies_ns,
            until_ns: self.until_ns,
        })
    }

    /// Runs the connection and returns what one point saw of it.
    pub fn capture(&self, point: Point) -> Capture {
        Capture::of(&self.run(), point)
    }
}

/// Returns the steps of writes with pauses.
fn written(writes: &[(u64, u64)]) -> Vec<Step> {
    let mut steps = Vec::new();
    for &(pause_ms, bytes) in writes {
        if pause_ms > 0 {
            steps.push(Step::Pause(Pause::Work, pause_ms * MS));
        }
        steps.push(Step::Write(bytes));
    }
    steps
}
