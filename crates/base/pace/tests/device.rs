// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device of several transmit queues, each a scheduler. Its wire takes at once what is sent, or as
//! long as a line does.

use std::collections::VecDeque;

use pace::{ClassConfig, ClassId, Config, Decision, Device, DeviceClass, GroupId, Mode, Scheduler};

use crate::wire::Random;

pub const GBIT: u64 = 1_000_000_000;
pub const MTU: u32 = 1514;
pub const STEP_NS: u64 = 50_000;
pub const SECOND_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub at_ns: u64,
    pub class: usize,
    pub len: u32,
}

/// A queue of the device: its scheduler, and the frames that wait in each class.
pub struct Queue {
    pub port: Scheduler,
    pub ids: Vec<ClassId>,
    pub groups: Vec<GroupId>,
    pub waiting: Vec<Vec<u32>>,
    pub wake_ns: Option<u64>,
}

/// A wire that takes time. The device sends a frame of each of its queues in turn, and a queue stops
/// while it holds so many bytes, as by a byte queue limit.
pub struct Wire {
    pub rate_bps: u64,
    pub limit_bytes: u32,
    /// The lengths of the frames that each queue of the device holds, the next one first.
    held: Vec<VecDeque<u32>>,
    stopped: Vec<bool>,
    /// The queue whose frame is on the wire, and when that ends.
    sends: Option<(usize, u64)>,
}

impl Wire {
    pub fn new(queues: usize, rate_bps: u64, limit_bytes: u32) -> Self {
        Wire {
            rate_bps,
            limit_bytes,
            held: vec![VecDeque::new(); queues],
            stopped: vec![false; queues],
            sends: None,
        }
    }

    /// Returns whether a queue may hand over another frame; it is told when it may again.
    fn takes(&mut self, queue: usize) -> bool {
        self.stopped[queue] = self.held[queue].iter().sum::<u32>() >= self.limit_bytes;
        !self.stopped[queue]
    }

    fn begin(&mut self, now_ns: u64, after: usize) {
        let queues = self.held.len();
        let next = (1..=queues).map(|at| (after + at) % queues);
        self.sends = next
            .filter_map(|queue| Some((queue, *self.held[queue].front()?)))
            .map(|(queue, len)| {
                (
                    queue,
                    now_ns + u64::from(len + 24) * 8_000_000_000 / self.rate_bps,
                )
            })
            .next();
    }

    fn put(&mut self, queue: usize, len: u32, now_ns: u64) {
        self.held[queue].push_back(len);
        if self.sends.is_none() {
            self.begin(now_ns, queue);
        }
    }

    /// The frame on the wire has left. Returns its queue if that was stopped.
    fn end(&mut self, queue: usize, now_ns: u64) -> Option<usize> {
        self.held[queue].pop_front();
        self.begin(now_ns, queue);
        self.stopped[queue].then_some(queue)
    }
}

/// A device.
pub struct Host {
    /// `None`: a wire that takes at once what is sent.
    pub wire: Option<Wire>,
    pub device: Device,
    pub classes: Vec<Option<DeviceClass>>,
    pub queues: Vec<Queue>,
    pub now_ns: u64,
    /// Timers are late by up to so much.
    pub late_ns: u64,
    pub random: Random,
    pub sent: Vec<Sent>,
}

impl Host {
    pub fn new(queues: u32, line_rate_bps: u64) -> Self {
        let device = Device::new(queues);
        let config = Config {
            mode: Mode::Timer,
            ..Config::ethernet(line_rate_bps, MTU)
        };
        let queues = (0..queues)
            .map(|at| {
                let mut port = Scheduler::new(&config, 0).unwrap();
                port.join(&device, at, STEP_NS).unwrap();
                Queue {
                    port,
                    ids: Vec::new(),
                    groups: Vec::new(),
                    waiting: Vec::new(),
                    wake_ns: None,
                }
            })
            .collect();
        Host {
            wire: None,
            device,
            classes: Vec::new(),
            queues,
            now_ns: 0,
            late_ns: 0,
            random: Random(11),
            sent: Vec::new(),
        }
    }

    /// Makes a group of the device.
    pub fn group(&mut self, rate_bps: u64, ceil_bps: u64) -> usize {
        let shared = self.device.class();
        for queue in &mut self.queues {
            let group = queue.port.add_group(rate_bps, ceil_bps).unwrap();
            queue.port.share_group(group, &shared).unwrap();
            queue.groups.push(group);
        }
        self.queues[0].groups.len() - 1
    }

    pub fn class(&mut self, config: ClassConfig) -> usize {
        self.class_in(None, config)
    }

    pub fn class_in(&mut self, group: Option<usize>, config: ClassConfig) -> usize {
        let shared = (!matches!(config, ClassConfig::Normal { .. })).then(|| self.device.class());
        for queue in &mut self.queues {
            let id = match group {
                Some(at) => queue.port.add_class_in(queue.groups[at], &config),
                None => queue.port.add_class(&config),
            };
            let id = id.unwrap();
            if let Some(shared) = &shared {
                queue.port.share(id, shared).unwrap();
            }
            queue.ids.push(id);
            queue.waiting.push(Vec::new());
        }
        self.classes.push(shared);
        self.classes.len() - 1
    }

    pub fn arrive(&mut self, queue: usize, class: usize, lens: &[u32]) {
        let q = &mut self.queues[queue];
        let id = q.ids[class];
        q.waiting[class].extend(lens);
        let bytes = q.waiting[class].iter().map(|&len| u64::from(len)).sum();
        q.port.set_backlog(id, bytes).unwrap();
        q.port.activate(id, self.now_ns).unwrap();
        self.serve(queue);
    }

    pub fn serve(&mut self, queue: usize) {
        let q = &mut self.queues[queue];
        loop {
            if self.wire.as_mut().is_some_and(|wire| !wire.takes(queue)) {
                q.wake_ns = None;
                return;
            }
            match q.port.next(self.now_ns) {
                Decision::Send(id) => {
                    let class = q.ids.iter().position(|&known| known == id).unwrap();
                    let len = q.waiting[class].remove(0);
                    let bytes = q.waiting[class].iter().map(|&len| u64::from(len)).sum();
                    q.port.set_backlog(id, bytes).unwrap();
                    let more = !q.waiting[class].is_empty();
                    q.port.sent(id, len, more, self.now_ns).unwrap();
                    self.sent.push(Sent {
                        at_ns: self.now_ns,
                        class,
                        len,
                    });
                    if let Some(wire) = &mut self.wire {
                        wire.put(queue, len, self.now_ns);
                    }
                }
                Decision::Wait { until_ns } => {
                    assert!(until_ns > self.now_ns, "{until_ns} at {}", self.now_ns);
                    let late = match self.late_ns {
                        0 => 0,
                        most => self.random.below(most),
                    };
                    q.wake_ns = Some(until_ns + late);
                    return;
                }
                Decision::Idle => {
                    q.wake_ns = None;
                    return;
                }
                Decision::Gap { .. } => panic!("no gap in mode timer"),
            }
        }
    }

    pub fn run_until(&mut self, until_ns: u64) {
        while let Some((at_ns, queue, leaves)) = self
            .queues
            .iter()
            .enumerate()
            .filter_map(|(at, q)| Some((q.wake_ns?, at, false)))
            .chain(self.wire.iter().filter_map(|wire| {
                let (queue, at_ns) = wire.sends?;
                Some((at_ns, queue, true))
            }))
            .min()
            .filter(|&(at_ns, ..)| at_ns <= until_ns)
        {
            self.now_ns = self.now_ns.max(at_ns);
            let served = match &mut self.wire {
                Some(wire) if leaves => wire.end(queue, at_ns),
                _ => Some(queue),
            };
            if let Some(queue) = served {
                self.serve(queue);
            }
        }
        self.now_ns = until_ns;
    }

    pub fn waits(&self, queue: usize, class: usize) -> usize {
        self.queues[queue].waiting[class].len()
    }

    pub fn bytes(&self, class: usize, from_ns: u64, until_ns: u64) -> u64 {
        self.of(class)
            .filter(|sent| (from_ns..until_ns).contains(&sent.at_ns))
            .map(|sent| u64::from(sent.len))
            .sum()
    }

    pub fn of(&self, class: usize) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(move |sent| sent.class == class)
    }

    /// The largest queue of a bottleneck that drains at this rate, in bytes.
    pub fn burstiness(&self, class: usize, rate_bps: u64) -> u64 {
        let (mut queue, mut worst, mut last_ns) = (0.0f64, 0.0f64, 0);
        for sent in self.of(class) {
            let drained = (sent.at_ns - last_ns) as f64 * rate_bps as f64 / 8e9;
            queue = (queue - drained).max(0.0) + f64::from(sent.len);
            worst = worst.max(queue);
            last_ns = sent.at_ns;
        }
        worst as u64
    }
}

pub fn bytes_of(rate_bps: u64, ns: u64) -> u64 {
    (u128::from(rate_bps) * u128::from(ns) / 8_000_000_000) as u64
}

pub fn frame_ns(rate_bps: u64) -> u64 {
    u64::from(MTU) * 8_000_000_000 / rate_bps
}
