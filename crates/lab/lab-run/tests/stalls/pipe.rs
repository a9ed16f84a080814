// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TCP transfer that stalls for a known reason, captured at three places at once. It has the
//! simulator's ends, a line, a delay, and a hook that decides the fate of each packet.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use capture::segment::{Endpoint, Flags, HostDirection, Segment, Timestamps};
use netsim::tcp::{Receiver, ReceiverConfig, Sender, SenderConfig};
use units::clock::{Span, Time};

pub const MS: u64 = 1_000_000;
const PS_PER_NS: u64 = 1000;
/// Bytes of a frame's headers, with timestamps.
const OVERHEAD_BYTES: u64 = 90;
const SCALE: u8 = 7;
const CLIENT_ISN: u32 = 0xffff_0000;
const SERVER_ISN: u32 = 77;

/// A packet that was just sent, as the hook sees it.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    pub now_ns: u64,
    /// Whether the packet goes from the sender of data to its receiver.
    pub is_data: bool,
    pub seq: u64,
    pub len: u64,
    /// How often this `seq` was sent, this time included.
    pub copy: u32,
    /// The packet's number in its direction, from 1.
    pub number: u64,
}

/// What happens to a packet on the path.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    Pass,
    /// The packet is lost after this share of the path, percent.
    Lost(u64),
    /// The packet is so many ns late; those behind it are not.
    Late(u64),
}

/// The settings of a transfer.
pub struct Setup {
    pub sender: SenderConfig,
    pub receiver: ReceiverConfig,
    pub rate_bps: u64,
    pub one_way_ns: u64,
    /// When the application writes, and how many bytes.
    pub writes: Vec<(u64, u64)>,
    /// When the receiving application reads, and how many bytes; empty if it always reads.
    pub reads: Vec<(u64, u64)>,
    pub limit_ns: u64,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            sender: SenderConfig {
                handshake_rtt: Some(Span::from_ns(20 * MS)),
                ..SenderConfig::new(netsim::tcp::variant::RACK)
            },
            receiver: ReceiverConfig {
                window_scale: SCALE,
                ..ReceiverConfig::default()
            },
            rate_bps: 100_000_000,
            one_way_ns: 10 * MS,
            writes: vec![(0, 5_000_000)],
            reads: Vec::new(),
            limit_ns: 100_000 * MS,
        }
    }
}

/// Captures at the sender, in the middle, and at the receiver.
pub struct Captures {
    pub at: [Vec<Segment>; 3],
}

pub const PLACES: [(&str, u64); 3] = [("sender", 0), ("middle", 50), ("receiver", 100)];

type TcpSegment = netsim::tcp::Segment;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Data(usize),
    Ack(usize),
    Write(u64),
    Read(u64),
}

struct World<'a> {
    setup: &'a Setup,
    hook: &'a mut dyn FnMut(Sight) -> Fate,
    queue: BinaryHeap<Reverse<(u64, u64, What)>>,
    order: u64,
    segments: Vec<TcpSegment>,
    line_free: u64,
    copies: BTreeMap<u64, u32>,
    numbers: [u64; 2],
    taps: [Vec<(u64, u64, Segment)>; 3],
}

fn end(port: u16) -> Endpoint {
    Endpoint {
        address: [10, 0, 0, if port == 5001 { 2 } else { 1 }].into(),
        port,
    }
}

fn blank(is_data: bool) -> Segment {
    let (from, to) = if is_data {
        (40_000, 5001)
    } else {
        (5001, 40_000)
    };
    Segment {
        number: 0,
        time_ns: 0,
        from: end(from),
        to: end(to),
        encapsulation: 0,
        seq: 0,
        ack: 0,
        flags: Flags(Flags::ACK),
        window: 0xffff,
        payload_bytes: 0,
        mss: None,
        window_scale: None,
        sack_permitted: false,
        mptcp: None,
        timestamps: None,
        sack: Default::default(),
        options_cut: false,
        ecn: 0,
        ip_id: 0,
        hop_limit: 60,
        host_direction: HostDirection::Unknown,
    }
}

fn wire(is_data: bool, segment: &TcpSegment) -> Segment {
    let client = |offset: u64| CLIENT_ISN.wrapping_add(1).wrapping_add(offset as u32);
    let mut out = blank(is_data);
    out.timestamps = segment.timestamps.map(|(value, echo)| Timestamps {
        value,
        echo: Some(echo),
    });
    if is_data {
        out.seq = client(segment.seq);
        out.ack = SERVER_ISN + 1;
        out.payload_bytes = segment.len_bytes;
        if segment.fin {
            out.flags = Flags(Flags::ACK | Flags::FIN);
        }
    } else {
        out.seq = SERVER_ISN + 1;
        out.ack = client(segment.ack);
        out.window = (segment.window_bytes >> SCALE).min(0xffff) as u16;
        let blocks = segment.sack_blocks().iter();
        out.sack = blocks.map(|b| (client(b.start), client(b.end))).collect();
    }
    out
}

impl World<'_> {
    fn push(&mut self, at: u64, what: What) {
        self.order += 1;
        self.queue.push(Reverse((at, self.order, what)));
    }

    /// Records a packet at the taps that it passes, up to `until` percent of the path.
    fn tap(&mut self, is_data: bool, segment: &Segment, begin: u64, delay_ns: u64, until: u64) {
        for (tap, (_, place)) in PLACES.iter().enumerate() {
            let along = if is_data { *place } else { 100 - place };
            if along < until || until > 100 {
                self.order += 1;
                let at = begin + delay_ns * along / 100;
                self.taps[tap].push((at, self.order, *segment));
            }
        }
    }

    fn travel(&mut self, now: u64, is_data: bool, segment: TcpSegment) {
        let bytes = u64::from(segment.len_bytes) + OVERHEAD_BYTES;
        let mut begin = now;
        if is_data {
            begin = self.line_free.max(now) + bytes * 8_000_000_000 / self.setup.rate_bps;
            self.line_free = begin;
        }
        let copy = self
            .copies
            .entry(if is_data { segment.seq } else { u64::MAX })
            .or_default();
        *copy += 1;
        let number = &mut self.numbers[usize::from(is_data)];
        *number += 1;
        let sight = Sight {
            now_ns: begin,
            is_data,
            seq: segment.seq,
            len: u64::from(segment.len_bytes),
            copy: *copy,
            number: *number,
        };
        let mut delay_ns = self.setup.one_way_ns;
        let mut until = 101;
        match (self.hook)(sight) {
            Fate::Pass => {}
            Fate::Lost(at) => until = at,
            Fate::Late(by) => delay_ns += by,
        }
        let captured = wire(is_data, &segment);
        self.tap(is_data, &captured, begin, delay_ns, until);
        if until > 100 {
            self.segments.push(segment);
            let index = self.segments.len() - 1;
            let what = if is_data {
                What::Data(index)
            } else {
                What::Ack(index)
            };
            self.push(begin + delay_ns, what);
        }
    }

    fn handshake(&mut self) {
        let delay_ns = self.setup.one_way_ns;
        let mut syn = blank(true);
        syn.flags = Flags(Flags::SYN);
        syn.seq = CLIENT_ISN;
        (syn.mss, syn.window_scale) = (Some(1460), Some(SCALE));
        syn.timestamps = Some(Timestamps {
            value: 1,
            echo: Some(0),
        });
        self.tap(true, &syn, 0, delay_ns, 101);
        let mut answer = syn;
        (answer.from, answer.to) = (syn.to, syn.from);
        answer.flags = Flags(Flags::SYN | Flags::ACK);
        (answer.seq, answer.ack) = (SERVER_ISN, CLIENT_ISN.wrapping_add(1));
        self.tap(false, &answer, delay_ns, delay_ns, 101);
        let mut ack = blank(true);
        (ack.seq, ack.ack) = (CLIENT_ISN.wrapping_add(1), SERVER_ISN + 1);
        ack.timestamps = Some(Timestamps {
            value: 2,
            echo: Some(1),
        });
        self.tap(true, &ack, 2 * delay_ns, delay_ns, 101);
    }
}

/// Runs a transfer to its end.
pub fn run(setup: &Setup, hook: &mut dyn FnMut(Sight) -> Fate) -> Captures {
    let mut receiver_config = setup.receiver.clone();
    receiver_config.reads_at_once = setup.reads.is_empty();
    let mut receiver = Receiver::new(&receiver_config);
    let mut config = setup.sender.clone();
    config.initial_window_bytes = receiver.window_bytes();
    let mut sender = Sender::new(&config);
    let mut world = World {
        setup,
        hook,
        queue: BinaryHeap::new(),
        order: 0,
        segments: Vec::new(),
        line_free: 0,
        copies: BTreeMap::new(),
        numbers: [0; 2],
        taps: Default::default(),
    };
    world.handshake();
    let begin = 2 * setup.one_way_ns + MS;
    for &(at, bytes) in &setup.writes {
        world.push(begin + at, What::Write(bytes));
    }
    for &(at, bytes) in &setup.reads {
        world.push(begin + at, What::Read(bytes));
    }
    let mut writes_left = setup.writes.len();
    loop {
        let event = world.queue.peek().map(|Reverse((at, ..))| *at);
        // Timers are in ps, the taps in ns.
        let timers = [sender.next_timer(), receiver.next_timer()];
        let timer = timers.into_iter().flatten().min();
        let timer = timer.map(|at| at.as_ps().div_ceil(PS_PER_NS));
        let Some(next) = [event, timer].into_iter().flatten().min() else {
            break;
        };
        let now = next;
        let time = Time::from_ps(now * PS_PER_NS);
        if sender.is_finished() || now > setup.limit_ns {
            break;
        }
        if event == Some(now) {
            let Some(Reverse((_, _, what))) = world.queue.pop() else {
                break;
            };
            match what {
                What::Data(index) => receiver.on_segment(time, &world.segments[index]),
                What::Ack(index) => {
                    sender.on_segment(time, &world.segments[index], &mut ());
                }
                What::Write(bytes) => {
                    sender.write(bytes);
                    writes_left -= 1;
                    if writes_left == 0 {
                        sender.close();
                    }
                }
                What::Read(bytes) => {
                    receiver.read(bytes);
                }
            }
        } else {
            sender.on_timer(time, &mut ());
            receiver.on_timer(time);
        }
        while let Some(segment) = sender.poll_transmit(time) {
            world.travel(now, true, segment);
        }
        if let Some(ack) = receiver.poll_transmit(time) {
            world.travel(now, false, ack);
        }
    }
    let at = world.taps.map(|mut tap| {
        tap.sort_by_key(|(time, order, _)| (*time, *order));
        let numbered = tap.into_iter().zip(1u64..);
        let numbered = numbered.map(|((time_ns, _, segment), number)| Segment {
            time_ns: time_ns + 1_700_000_000_000_000_000,
            number,
            ..segment
        });
        numbered.collect()
    });
    Captures { at }
}

pub fn analyse(segments: &[Segment]) -> stall::Analysis {
    let mut analyser = stall::Analyser::new(stall::Options::default());
    for segment in segments {
        analyser.segment(segment);
    }
    analyser.finish()
}
