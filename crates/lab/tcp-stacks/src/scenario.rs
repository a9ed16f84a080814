// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections by chance: a behaviour, two stacks, a path and two applications for each number.
//! The ranges are those of networks and applications as they are, not those of any analysis.

use crate::app::{App, Reader, Step};
use crate::chance::Chance;
use crate::draw::{Kind, draw_kind, draw_path};
use crate::ground_truth::{End, Pause};
use crate::packet::Ids;
use crate::path::{Nature, Path};
use crate::profile::{MS, Profile, S};
use crate::world::{Run, Setup, run};

/// What a connection is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Behaviour {
    /// A transfer without any trouble.
    Clean,
    /// Single packets lost by errors.
    LinkErrors,
    /// Bursts of packets lost by errors.
    BurstErrors,
    Policer,
    /// A queue that runs full.
    FullQueue,
    /// Both directions down for a time.
    Outage,
    /// Only the way back down for a time.
    BackOutage,
    /// Acknowledgements lost.
    AckErrors,
    /// Everything held up at times.
    DelaySpikes,
    /// Packets that overtake each other.
    Reordering,
    /// The end of a write lost.
    TailLoss,
    /// A receiver that reads slowly.
    SlowReader,
    /// A receiver that does not read for a time.
    ClosedWindow,
    /// The same, on a way back that loses.
    UpdateLoss,
    /// A sender that pauses within its transfer.
    AppPauses,
    /// Requests and answers, a person's pauses between them.
    RequestResponse,
    /// The same with a slow server.
    SlowServer,
    /// Small writes, Nagle's rule, delayed acknowledgements.
    SmallWrites,
    /// A small message now and then.
    Messages,
    /// An idle connection with keep-alives.
    KeepAlives,
    /// A host that vanishes.
    PeerDies,
    /// One end finishes early.
    HalfClose,
    /// Losses in the handshake.
    SetupLoss,
    /// A server that accepts late.
    SlowAccept,
    /// Large packets vanish.
    BlackHole,
    /// A small window on a long path.
    SmallWindow,
    /// Both ends on one host.
    Loopback,
    /// A client that takes its time before it asks.
    SlowStart,
    /// A small send buffer on a long path.
    SmallSendBuffer,
    /// Two troubles at once.
    Mixed,
}

impl Behaviour {
    pub const ALL: [Behaviour; 30] = [
        Behaviour::Clean,
        Behaviour::LinkErrors,
        Behaviour::BurstErrors,
        Behaviour::Policer,
        Behaviour::FullQueue,
        Behaviour::Outage,
        Behaviour::BackOutage,
        Behaviour::AckErrors,
        Behaviour::DelaySpikes,
        Behaviour::Reordering,
        Behaviour::TailLoss,
        Behaviour::SlowReader,
        Behaviour::ClosedWindow,
        Behaviour::UpdateLoss,
        Behaviour::AppPauses,
        Behaviour::RequestResponse,
        Behaviour::SlowServer,
        Behaviour::SmallWrites,
        Behaviour::Messages,
        Behaviour::KeepAlives,
        Behaviour::PeerDies,
        Behaviour::HalfClose,
        Behaviour::SetupLoss,
        Behaviour::SlowAccept,
        Behaviour::BlackHole,
        Behaviour::SmallWindow,
        Behaviour::Loopback,
        Behaviour::SlowStart,
        Behaviour::SmallSendBuffer,
        Behaviour::Mixed,
    ];
}

/// A connection, before it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Seed and number: they make the case.
    pub seed: u64,
    /// The number of the case.
    pub number: u64,
    /// What it is about.
    pub behaviour: Behaviour,
    /// The client's and the server's stack.
    pub kinds: [Kind; 2],
    natures: [Nature; 2],
    steps: [Vec<Step>; 2],
    readers: [Reader; 2],
    accept_ns: u64,
    dies_ns: [Option<u64>; 2],
    until_ns: u64,
}

impl Case {
    /// Draws case `number` of `seed`.
    pub fn draw(seed: u64, number: u64) -> Self {
        let count = Behaviour::ALL.len() as u64;
        let behaviour = Behaviour::ALL[(number % count) as usize];
        let mut chance = Chance::new(seed, number * 8 + 1);
        let kinds = [draw_kind(&mut chance), draw_kind(&mut chance)];
        let natures = draw_path(&mut chance);
        let mut case = Self {
            seed,
            number,
            behaviour,
            kinds,
            natures,
            steps: [Vec::new(), Vec::new()],
            readers: [Reader::default(), Reader::default()],
            accept_ns: 0,
            dies_ns: [None; 2],
            until_ns: 120 * S,
        };
        case.fill(&mut chance);
        case
    }

    /// Runs the connection.
    pub fn run(&self) -> Run {
        let mut chance = Chance::new(self.seed, self.number * 8 + 2);
        let is_local = self.behaviour == Behaviour::Loopback;
        let host = |chance: &mut Chance, net: u8| [10, net, chance.below(200) as u8, 7];
        let mut addresses = [host(&mut chance, 1), host(&mut chance, 2)];
        if is_local {
            addresses = [[127, 0, 0, 1]; 2];
        }
        let ids = Ids {
            addresses,
            ports: [chance.between(32_768, 60_999) as u16, 5001],
            initial: [chance.below(1 << 32) as u32, chance.below(1 << 32) as u32],
        };
        let [client, server] = self.kinds.clone();
        let stacks = [
            client.stack(End::Client, &ids, 0, &mut chance),
            server.stack(End::Server, &ids, self.accept_ns, &mut chance),
        ];
        let path = |index: usize| {
            let chance = Chance::new(self.seed, self.number * 8 + 4 + index as u64);
            Path::new(self.natures[index].clone(), chance)
        };
        let app = |index: usize| App::new(&self.steps[index], self.readers[index].clone());
        let host_ns = [chance.between(3_000, 60_000), chance.between(3_000, 60_000)];
        run(Setup {
            ids,
            stacks,
            apps: [app(0), app(1)],
            paths: [path(0), path(1)],
            host_ns,
            dies_ns: self.dies_ns,
            until_ns: self.until_ns,
        })
    }

    /// Makes a transfer of `bytes` from a drawn end, in writes with pauses between them if
    /// `pauses` are given; returns the end that sends.
    fn transfer(&mut self, chance: &mut Chance, bytes: u64, pauses: &[u64]) -> End {
        let request = chance.between(80, 700);
        let mut writes = Vec::new();
        let part = bytes / (pauses.len() as u64 + 1);
        for pause in pauses {
            writes.push(Step::Write(part));
            writes.push(Step::Pause(Pause::Work, *pause));
        }
        writes.push(Step::Write(bytes - part * pauses.len() as u64));
        if chance.happens(500_000) {
            self.steps[0] = writes;
            self.steps[0].extend([Step::Close, Step::AwaitEnd]);
            self.steps[1] = vec![Step::Await(bytes), Step::AwaitEnd, Step::Close];
            return End::Client;
        }
        self.steps[0] = vec![
            Step::Write(request),
            Step::Await(bytes),
            Step::Close,
            Step::AwaitEnd,
        ];
        self.steps[1] = vec![Step::Await(request)];
        self.steps[1].extend(writes);
        self.steps[1].extend([Step::AwaitEnd, Step::Close]);
        End::Server
    }

    /// Makes `count` requests with answers; a person thinks between them, and the server works
    /// for the drawn time on each.
    fn exchange(&mut self, chance: &mut Chance, count: u64, think: (u64, u64), serve: (u64, u64)) {
        for number in 0..count {
            let request = chance.scaled(60, 1200);
            let answer = chance.scaled(200, 40_000);
            if number > 0 {
                let think_ns = chance.scaled(think.0, think.1);
                self.steps[0].push(Step::Pause(Pause::Think, think_ns));
            }
            self.steps[0].extend([Step::Write(request), Step::Await(answer)]);
            self.steps[1].push(Step::Await(request));
            if serve.1 > 0 {
                let serve_ns = chance.scaled(serve.0, serve.1);
                self.steps[1].push(Step::Pause(Pause::Serve, serve_ns));
            }
            self.steps[1].push(Step::Write(answer));
        }
        self.steps[0].extend([Step::Close, Step::AwaitEnd]);
        self.steps[1].extend([Step::AwaitEnd, Step::Close]);
    }

    /// Bytes that take the path about `least` to `most` nanoseconds, and at most 1.5 MB.
    fn volume(&self, chance: &mut Chance, least: u64, most: u64) -> u64 {
        let time_ns = chance.scaled(least, most);
        let bytes = self.natures[0].rate_bps / 8 * (time_ns / 1000) / 1_000_000;
        bytes.clamp(30_000, 1_500_000)
    }

    #[expect(clippy::too_many_lines, reason = "a table: an arm for each behaviour")]
    fn fill(&mut self, chance: &mut Chance) {
        let bytes = self.volume(chance, 300 * MS, 4 * S);
        match self.behaviour {
            Behaviour::Clean => {
                self.transfer(chance, bytes, &[]);
            }
            Behaviour::LinkErrors
            | Behaviour::BurstErrors
            | Behaviour::Policer
            | Behaviour::FullQueue
            | Behaviour::Reordering
            | Behaviour::BlackHole
            | Behaviour::Outage
            | Behaviour::BackOutage
            | Behaviour::AckErrors
            | Behaviour::DelaySpikes => {
                let end = self.transfer(chance, bytes, &[]);
                self.trouble(chance, self.behaviour, end, bytes);
            }
            Behaviour::TailLoss => self.tail_loss(chance),
            Behaviour::SlowReader | Behaviour::ClosedWindow | Behaviour::UpdateLoss => {
                self.unread(chance, bytes);
            }
            Behaviour::AppPauses => {
                let count = chance.between(1, 4);
                let pauses: Vec<u64> = (0..count).map(|_| chance.scaled(150 * MS, 5 * S)).collect();
                self.transfer(chance, bytes, &pauses);
            }
            Behaviour::RequestResponse => {
                let count = chance.between(2, 6);
                self.exchange(chance, count, (300 * MS, 10 * S), (MS, 50 * MS));
            }
            Behaviour::SlowServer => {
                let count = chance.between(1, 5);
                self.exchange(chance, count, (20 * MS, 2 * S), (200 * MS, 6 * S));
            }
            Behaviour::SmallWrites => self.small_writes(chance),
            Behaviour::Messages => self.messages(chance),
            Behaviour::KeepAlives => {
                self.exchange(chance, 2, (20 * S, 80 * S), (MS, 20 * MS));
                for kind in &mut self.kinds {
                    if let Kind::Scripted(profile) = kind {
                        profile.keep_alive = Some((chance.between(5, 15) * S, 5 * S));
                    }
                }
            }
            Behaviour::PeerDies => {
                let end = self.transfer(chance, bytes.max(400_000), &[]);
                let dies_ns = chance.scaled(100 * MS, S);
                self.dies_ns[end.other().index()] = Some(dies_ns);
                self.until_ns = dies_ns + chance.between(5, 60) * S;
            }
            Behaviour::HalfClose => {
                let request = chance.scaled(60, 30_000);
                let serve_ns = chance.scaled(50 * MS, 2 * S);
                self.steps[0] = vec![Step::Write(request), Step::Close, Step::AwaitEnd];
                self.steps[1] = vec![
                    Step::AwaitEnd,
                    Step::Pause(Pause::Serve, serve_ns),
                    Step::Write(bytes),
                    Step::Close,
                ];
            }
            Behaviour::SetupLoss => {
                self.exchange(chance, 1, (MS, MS), (MS, 20 * MS));
                let direction = chance.below(2) as usize;
                self.natures[direction].drop_acks = (0..chance.between(1, 2)).collect();
            }
            Behaviour::SlowAccept => {
                self.accept_ns = chance.scaled(150 * MS, 2 * S);
                self.exchange(chance, 1, (MS, MS), (MS, 20 * MS));
            }
            Behaviour::SmallWindow => {
                self.lengthen(chance);
                let end = self.transfer(chance, bytes.min(400_000), &[]);
                let window = chance.scaled(4 * 1460, 16 * 1460);
                match &mut self.kinds[end.other().index()] {
                    Kind::Scripted(profile) => profile.receive_bytes = window,
                    Kind::Smol(settings) => settings.receive_bytes = window as usize,
                }
            }
            Behaviour::SmallSendBuffer => {
                self.lengthen(chance);
                let end = self.transfer(chance, bytes.min(400_000), &[]);
                let room = chance.scaled(4 * 1460, 16 * 1460);
                match &mut self.kinds[end.index()] {
                    Kind::Scripted(profile) => profile.send_bytes = room,
                    Kind::Smol(settings) => settings.send_bytes = room as usize,
                }
            }
            Behaviour::Loopback => self.loopback(chance),
            Behaviour::SlowStart => {
                let wait_ns = chance.scaled(200 * MS, 5 * S);
                self.exchange(chance, 2, (300 * MS, 3 * S), (MS, 50 * MS));
                self.steps[0].insert(0, Step::Pause(Pause::Prepare, wait_ns));
            }
            Behaviour::Mixed => {
                let pause_ns = chance.scaled(150 * MS, 3 * S);
                let end = self.transfer(chance, bytes, &[pause_ns]);
                let troubles = [
                    Behaviour::LinkErrors,
                    Behaviour::BurstErrors,
                    Behaviour::FullQueue,
                    Behaviour::Outage,
                    Behaviour::AckErrors,
                    Behaviour::DelaySpikes,
                    Behaviour::Reordering,
                ];
                for _ in 0..2 {
                    let trouble = chance.pick(&troubles).unwrap_or(Behaviour::LinkErrors);
                    self.trouble(chance, trouble, end, bytes);
                }
            }
        }
    }

    /// A delay of 20 to 100 ms one way, and a rate that is not the limit.
    fn lengthen(&mut self, chance: &mut Chance) {
        let delay_ns = chance.scaled(20 * MS, 100 * MS);
        for nature in &mut self.natures {
            nature.delay_ns = delay_ns;
            nature.jitter_ns = 0;
            nature.rate_bps = nature.rate_bps.max(50_000_000);
            nature.queue_bytes = 4_000_000;
        }
    }

    /// Adds a trouble to the path of `end`'s data.
    fn trouble(&mut self, chance: &mut Chance, what: Behaviour, end: End, bytes: u64) {
        let rtt_ns = self.natures[0].delay_ns * 2;
        let (data, back) = (end.index(), end.other().index());
        let starts_ns = chance.scaled(rtt_ns * 3 + 50 * MS, rtt_ns * 3 + S);
        match what {
            Behaviour::LinkErrors => self.natures[data].loss_ppm = chance.scaled(2_000, 60_000),
            Behaviour::BurstErrors => {
                self.natures[data].burst_ppm = chance.scaled(1_000, 15_000);
                self.natures[data].burst_packets = chance.between(2, 12);
            }
            Behaviour::Policer => {
                let rate_bps = self.natures[data].rate_bps;
                let bucket = chance.scaled(8_000, 64_000);
                let share = chance.between(3, 8);
                self.natures[data].policer = Some((rate_bps / 10 * share, bucket));
            }
            Behaviour::FullQueue => {
                self.natures[data].queue_bytes = chance.scaled(4_500, 30_000);
            }
            Behaviour::Outage => {
                let down_ns = chance.scaled(100 * MS, 6 * S);
                for nature in &mut self.natures {
                    nature.outages.push((starts_ns, starts_ns + down_ns));
                }
            }
            Behaviour::BackOutage => {
                let down_ns = chance.scaled(100 * MS, 3 * S);
                self.natures[back]
                    .outages
                    .push((starts_ns, starts_ns + down_ns));
            }
            Behaviour::AckErrors => self.natures[back].loss_ppm = chance.scaled(20_000, 300_000),
            Behaviour::DelaySpikes => {
                let mut at_ns = starts_ns;
                for _ in 0..chance.between(1, 3) {
                    let long_ns = chance.scaled(50 * MS, 2 * S);
                    let one_way = chance.happens(300_000);
                    self.natures[data].holds.push((at_ns, at_ns + long_ns));
                    if !one_way {
                        self.natures[back].holds.push((at_ns, at_ns + long_ns));
                    }
                    at_ns += long_ns + chance.scaled(300 * MS, 3 * S);
                }
            }
            Behaviour::Reordering => {
                self.natures[data].reorder_ppm = chance.scaled(2_000, 100_000);
                self.natures[data].reorder_ns = chance.scaled(MS, rtt_ns.max(2 * MS));
            }
            Behaviour::BlackHole => {
                // The path shrinks while the transfer runs, or was too small from the start.
                self.natures[data].black_hole_bytes = Some(chance.between(1_000, 1_480));
                self.until_ns = chance.between(10, 60) * S;
                let _ = bytes;
            }
            _ => {}
        }
    }

    /// Writes whose last packets are dropped.
    fn tail_loss(&mut self, chance: &mut Chance) {
        let count = chance.between(2, 5);
        let mut packets = 0;
        let end = if chance.happens(500_000) {
            End::Client
        } else {
            End::Server
        };
        let (own, peer) = (end.index(), end.other().index());
        for _ in 0..count {
            let bytes = chance.scaled(1_000, 30_000);
            let ack = chance.between(20, 300);
            self.steps[own].extend([Step::Write(bytes), Step::Await(ack)]);
            self.steps[peer].extend([Step::Await(bytes), Step::Write(ack)]);
            packets += bytes.div_ceil(1448);
            let lost = chance.between(1, 3);
            let last = (packets.saturating_sub(lost)..packets).collect::<Vec<_>>();
            self.natures[own].drop_data.extend(last);
            // Its repair counts as well.
            packets += lost;
            let think_ns = chance.scaled(10 * MS, S);
            self.steps[own].push(Step::Pause(Pause::Think, think_ns));
        }
        self.steps[own].push(Step::Close);
        self.steps[own].push(Step::AwaitEnd);
        self.steps[peer].extend([Step::AwaitEnd, Step::Close]);
    }

    /// Receivers that do not read, or slowly.
    fn unread(&mut self, chance: &mut Chance, bytes: u64) {
        let bytes = bytes.max(200_000);
        let end = self.transfer(chance, bytes, &[]);
        let reader = &mut self.readers[end.other().index()];
        if self.behaviour == Behaviour::SlowReader {
            reader.chunk_bytes = chance.scaled(1_000, 16_000);
            let rate = chance.scaled(20_000, 500_000);
            reader.every_ns = reader.chunk_bytes * 1_000_000 / rate * 1000;
            self.until_ns = 30 * S;
            return;
        }
        let mut after = chance.scaled(10_000, bytes / 2);
        for _ in 0..chance.between(1, 3) {
            reader.pauses.push((after, chance.scaled(300 * MS, 12 * S)));
            after += chance.scaled(20_000, bytes / 2);
        }
        if self.behaviour == Behaviour::UpdateLoss {
            self.natures[end.other().index()].loss_ppm = chance.scaled(100_000, 500_000);
        }
    }

    /// Writes in pieces smaller than a segment, and an answer only to all of them.
    fn small_writes(&mut self, chance: &mut Chance) {
        for kind in &mut self.kinds {
            match kind {
                Kind::Scripted(profile) => {
                    profile.nagle = true;
                    profile.quick_acks = profile.quick_acks.min(2);
                }
                Kind::Smol(settings) => settings.nagle = true,
            }
        }
        for _ in 0..chance.between(3, 12) {
            let head = chance.between(40, 400);
            let body = chance.between(100, 1_200);
            let answer = chance.between(20, 400);
            self.steps[0].extend([Step::Write(head), Step::Write(body), Step::Await(answer)]);
            self.steps[1].extend([Step::Await(head + body), Step::Write(answer)]);
        }
        self.steps[0].extend([Step::Close, Step::AwaitEnd]);
        self.steps[1].extend([Step::AwaitEnd, Step::Close]);
    }

    /// A small message in each period, from one end.
    fn messages(&mut self, chance: &mut Chance) {
        let end = if chance.happens(500_000) {
            End::Client
        } else {
            End::Server
        };
        let period_ns = chance.scaled(200 * MS, 5 * S);
        let mut total = 0;
        for _ in 0..chance.between(5, 20) {
            let bytes = chance.between(20, 600);
            total += bytes;
            self.steps[end.index()].push(Step::Write(bytes));
            self.steps[end.index()].push(Step::Pause(Pause::Think, period_ns));
        }
        self.steps[end.index()].extend([Step::Close, Step::AwaitEnd]);
        self.steps[end.other().index()] = vec![Step::Await(total), Step::AwaitEnd, Step::Close];
        let direction = chance.below(2) as usize;
        if chance.happens(300_000) {
            self.natures[direction].loss_ppm = chance.scaled(5_000, 50_000);
        }
    }

    /// Two processes on one host: segments of 64 KB, microseconds of delay.
    fn loopback(&mut self, chance: &mut Chance) {
        let delay_ns = chance.scaled(5_000, 40_000);
        for nature in &mut self.natures {
            *nature = Nature {
                delay_ns,
                ..Nature::default()
            };
        }
        for kind in &mut self.kinds {
            let mut profile = Profile::linux();
            profile.mss = 65_483;
            profile.receive_bytes = chance.pick(&[65_483, 131_072, 2_000_000]).unwrap_or(65_483);
            profile.send_bytes = 2_500_000;
            *kind = Kind::Scripted(profile);
        }
        match chance.below(3) {
            0 => self.messages(chance),
            1 => {
                let count = chance.between(3, 20);
                self.exchange(chance, count, (5 * MS, 2 * S), (MS, 500 * MS));
            }
            _ => {
                let bytes = chance.scaled(1_000_000, 8_000_000);
                let end = self.transfer(chance, bytes, &[]);
                let after = chance.scaled(100_000, bytes);
                let pause = (after, chance.scaled(200 * MS, 4 * S));
                self.readers[end.other().index()].pauses = vec![pause];
            }
        }
    }
}
