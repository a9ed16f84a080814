// SPDX-License-Identifier: MIT OR Apache-2.0
//! The controls of docs/contribute/tcp-oracle.md: what happens to one kernel's sender is replayed to the
//! senders of wrong kernels, and the runs are counted in which a wrong kernel is found out.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::path::Path;

use netsim::rng::{Chance, Rng};
use netsim::tcp::variant::{
    BicParameters, LostRetransmission, SackHint, SackSort, V2_6_11, V2_6_14, V2_6_17, V2_6_22,
    V2_6_24, Variant,
};
use netsim::tcp::{Congestion, Receiver, ReceiverConfig, Segment, Sender, SenderConfig};
use units::clock::{Span, Time};

const RUNS: u64 = 10;
const MSS: u64 = 1448;
/// The page whose tables this test computes.
const PAGE: &str = "../../../docs/contribute/tcp-oracle.md";

/// What a mode does to the packets; the numbers that a range has are drawn for each run.
#[derive(Clone, Copy)]
struct Mode {
    name: &'static str,
    /// Lost packets in a million, least and most.
    loss_ppm: (u64, u64),
    /// Acknowledgements are lost, too: 10 %.
    loses_acks: bool,
    late_ppm: (u64, u64),
    /// Packets that are late are so by up to as many round trips.
    late_round_trips: u64,
    /// The most packets that a policer's bucket holds.
    bucket_most: u64,
    no_dsack: bool,
    no_sack: bool,
    /// The application writes pieces.
    pieces: bool,
    /// Acknowledgements are late like the data, too, and arrive in clumps.
    mixed: bool,
    /// The policer, line, delay and sender of paper 001.
    is_paper: bool,
    events: u32,
}

const LOSS: (u64, u64) = (500, 30_000);
const LATE: (u64, u64) = (2_000, 50_000);
const PLAIN: Mode = Mode {
    name: "plain",
    loss_ppm: LOSS,
    loses_acks: false,
    late_ppm: (0, 0),
    late_round_trips: 2,
    bucket_most: 0,
    no_dsack: false,
    no_sack: false,
    pieces: false,
    mixed: false,
    is_paper: false,
    events: 20_000,
};

fn modes() -> [Mode; 11] {
    let named = |name| Mode { name, ..PLAIN };
    let lossless = |name| Mode {
        loss_ppm: (0, 0),
        ..named(name)
    };
    [
        PLAIN,
        Mode {
            no_dsack: true,
            ..named("nodsack")
        },
        Mode {
            loses_acks: true,
            ..named("ackloss")
        },
        Mode {
            bucket_most: 100,
            ..lossless("policer")
        },
        Mode {
            bucket_most: 5_000,
            events: 60_000,
            ..lossless("bigpolicer")
        },
        Mode {
            is_paper: true,
            events: 60_000,
            ..lossless("paper")
        },
        Mode {
            late_ppm: LATE,
            ..lossless("reorder")
        },
        Mode {
            late_ppm: LATE,
            ..named("reorderloss")
        },
        Mode {
            pieces: true,
            ..named("app")
        },
        Mode {
            late_ppm: LATE,
            no_sack: true,
            ..named("nosack")
        },
        Mode {
            mixed: true,
            late_ppm: LATE,
            late_round_trips: 6,
            ..named("mix")
        },
    ]
}

/// Tokens in thousandths of a packet.
struct Bucket {
    tokens: u64,
    most: u64,
    per_ms: u64,
}

/// The path of one run.
struct Network {
    rng: Rng,
    one_way_ms: u64,
    per_ms: u64,
    queue: VecDeque<Segment>,
    queue_most: usize,
    loss: Chance,
    ack_loss: Chance,
    late: Chance,
    late_ms: u64,
    bucket: Option<Bucket>,
    mixed: bool,
    /// By the millisecond of their arrival, in the order of their sending.
    data: BTreeMap<u64, Vec<Segment>>,
    acks: BTreeMap<u64, Vec<Segment>>,
}

impl Network {
    fn passes(&mut self) -> bool {
        let bucket = self.bucket.as_mut().is_none_or(|bucket| {
            let passes = bucket.tokens >= 1000;
            bucket.tokens -= if passes { 1000 } else { 0 };
            passes
        });
        bucket && !self.rng.happens(self.loss)
    }

    fn delay_ms(&mut self, may_be_late: bool) -> u64 {
        let late = may_be_late && self.rng.happens(self.late);
        self.one_way_ms
            + if late {
                1 + self.rng.below(self.late_ms)
            } else {
                0
            }
    }

    /// Sends a millisecond's worth of the queue.
    fn send(&mut self, ms: u64) {
        if let Some(bucket) = &mut self.bucket {
            bucket.tokens = (bucket.tokens + bucket.per_ms).min(bucket.most);
        }
        for _ in 0..self.per_ms {
            let Some(segment) = self.queue.pop_front() else {
                return;
            };
            if self.passes() {
                let at = ms + self.delay_ms(true);
                self.data.entry(at).or_default().push(segment);
            }
        }
    }

    fn acknowledge(&mut self, ms: u64, ack: Segment) {
        if !self.rng.happens(self.ack_loss) {
            let mut at = ms + self.delay_ms(self.mixed);
            if self.mixed {
                at = at.next_multiple_of(1 + self.one_way_ms / 4);
            }
            self.acks.entry(at).or_default().push(ack);
        }
    }
}

/// The right kernel's sender, and wrong ones that get the same events; `None` is one that was found out.
struct Beside {
    right: Sender,
    wrong: Vec<Option<Sender>>,
    events: u32,
}

fn sent(sender: &mut Sender, now: Time) -> Vec<Segment> {
    std::iter::from_fn(|| sender.poll_transmit(now)).collect()
}

impl Beside {
    /// Gives an event to all senders, and returns what the right one sends.
    fn event(&mut self, now: Time, happen: impl Fn(&mut Sender)) -> Vec<Segment> {
        let outcome = |sender: &mut Sender| {
            happen(sender);
            let segments = sent(sender, now);
            (
                segments,
                sender.vars(),
                sender.internals(),
                sender.next_timer(),
            )
        };
        self.events += 1;
        let expected = outcome(&mut self.right);
        for slot in &mut self.wrong {
            if slot
                .as_mut()
                .is_some_and(|sender| outcome(sender) != expected)
            {
                *slot = None;
            }
        }
        expected.0
    }
}

/// One run: the senders, the receiver and the path, drawn by a seed.
struct Run {
    beside: Beside,
    receiver: Receiver,
    network: Network,
    rng: Rng,
    pieces: bool,
    /// When the application writes next, ms.
    write_ms: u64,
}

impl Run {
    fn draw(mode: &Mode, seed: u64, kernels: &[Variant]) -> Run {
        let mut rng = Rng::new(seed, 0);
        let mut between = |(least, most): (u64, u64)| least + rng.below(most - least + 1);
        // The paper: 81 frames of 1,538 bytes are 1 Gbit/s, 41.667 packets of 1,500 bytes 500 Mbit/s.
        let round_trip_ms = between(if mode.is_paper { (10, 10) } else { (4, 80) });
        let per_ms = between(if mode.is_paper { (81, 81) } else { (1, 20) });
        let bucket = if mode.is_paper {
            Some((16_000_000 / 1500, 41_667))
        } else if mode.bucket_most > 0 {
            let most = between((5, mode.bucket_most));
            Some((most, between((per_ms * 300, per_ms * 900))))
        } else {
            None
        };
        let timestamps = mode.is_paper || between((0, 1)) == 1;
        let sack = !mode.no_sack && (!mode.mixed || between((0, 3)) > 0);
        let receiver = Receiver::new(&ReceiverConfig {
            sack,
            timestamps,
            dsack: !mode.no_dsack && (!mode.mixed || between((0, 2)) > 0),
            buffer_bytes: between(if mode.is_paper {
                (2_250_000, 3_000_000)
            } else {
                (20 * MSS, 1000 * MSS)
            }),
            ..ReceiverConfig::default()
        });
        let congestion = if mode.is_paper || between((0, 1)) == 1 {
            Congestion::Bic
        } else {
            Congestion::Reno
        };
        let (cwnd, ssthresh) = if mode.is_paper {
            (2, 1000)
        } else {
            (between((2, 4)), between((10, 1000)))
        };
        let sender = |variant: &Variant| {
            Sender::new(&SenderConfig {
                congestion,
                sack,
                timestamps,
                initial_window_bytes: receiver.window_bytes(),
                initial_cwnd: cwnd as u32,
                initial_ssthresh: ssthresh as u32,
                ..SenderConfig::new(*variant)
            })
        };
        let beside = Beside {
            right: sender(&kernels[0]),
            wrong: kernels.iter().map(|kernel| Some(sender(kernel))).collect(),
            events: 0,
        };
        let loses_acks = mode.loses_acks || mode.mixed && between((0, 1)) == 1;
        let network = Network {
            one_way_ms: round_trip_ms / 2,
            per_ms,
            queue: VecDeque::new(),
            queue_most: between((20, 1000)) as usize * if mode.is_paper { 1000 } else { 1 },
            loss: Chance::per_million(between(mode.loss_ppm)),
            ack_loss: Chance::per_million(if loses_acks { 100_000 } else { 0 }),
            late: Chance::per_million(between(mode.late_ppm)),
            late_ms: mode.late_round_trips * round_trip_ms,
            bucket: bucket.map(|(most, per_ms)| Bucket {
                tokens: most * 1000,
                most: most * 1000,
                per_ms,
            }),
            mixed: mode.mixed,
            data: BTreeMap::new(),
            acks: BTreeMap::new(),
            rng: Rng::new(seed, 1),
        };
        Run {
            beside,
            receiver,
            network,
            rng,
            pieces: mode.pieces || mode.mixed && seed % 2 == 0,
            write_ms: 0,
        }
    }

    fn event(&mut self, now: Time, happen: impl Fn(&mut Sender)) {
        for segment in self.beside.event(now, happen) {
            if self.network.queue.len() < self.network.queue_most {
                self.network.queue.push_back(segment);
            }
        }
    }

    fn millisecond(&mut self, ms: u64) {
        let now = Time::START + Span::from_ns(ms * 1_000_000);
        for ack in self.network.acks.remove(&ms).unwrap_or_default() {
            self.event(now, |sender| sender.on_segment(now, &ack, &mut ()));
        }
        if self.beside.right.next_timer().is_some_and(|at| at <= now) {
            self.event(now, |sender| sender.on_timer(now, &mut ()));
        }
        if self.write_ms == ms {
            let segments = if self.pieces {
                1 + self.rng.below(200)
            } else {
                1 << 30
            };
            let longest_ms = if self.rng.below(10) == 0 { 3000 } else { 100 };
            let pause = self.rng.below(longest_ms);
            self.write_ms += if self.pieces { 1 + pause } else { 1 << 40 };
            self.event(now, |sender| sender.write(segments * MSS));
        }
        self.network.send(ms);
        for segment in self.network.data.remove(&ms).unwrap_or_default() {
            self.receiver.on_segment(now, &segment);
            self.acknowledge(now, ms);
        }
        self.receiver.on_timer(now);
        self.acknowledge(now, ms);
    }

    fn acknowledge(&mut self, now: Time, ms: u64) {
        if let Some(ack) = self.receiver.poll_transmit(now) {
            self.network.acknowledge(ms, ack);
        }
    }

    /// Returns which kernels were found out.
    fn found_out(mut self, events: u32) -> Vec<bool> {
        let mut ms = 0;
        while self.beside.events < events && self.beside.wrong[1..].iter().any(Option::is_some) {
            self.millisecond(ms);
            ms += 1;
        }
        self.beside.wrong.iter().map(Option::is_none).collect()
    }
}

/// Returns the lines of a table: for each mode, in how many runs each kernel differs from the first.
/// The first itself never does.
fn table(kernels: &[Variant]) -> String {
    let mut text = String::new();
    for mode in modes() {
        let mut differ = vec![0; kernels.len()];
        for seed in 1..=RUNS {
            let found = Run::draw(&mode, seed, kernels).found_out(mode.events);
            for (count, found) in differ.iter_mut().zip(found) {
                *count += u64::from(found);
            }
        }
        assert_eq!(differ[0], 0, "{}: the right kernel", mode.name);
        let cells: Vec<_> = differ[1..].iter().map(u64::to_string).collect();
        let _ = writeln!(text, "| {} | {} |", mode.name, cells.join(" | "));
    }
    text
}

/// Compares a table with the page's.
fn is_on_page(name: &str, table: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(table), "{name}:\n{table}");
}

#[test]
fn kernels_beside_2_6_14() {
    is_on_page("2.6.14", &table(&[V2_6_14, V2_6_11, V2_6_17, V2_6_22]));
}

#[test]
fn kernels_beside_2_6_22() {
    is_on_page("2.6.22", &table(&[V2_6_22, V2_6_14, V2_6_17, V2_6_24]));
}

/// 2.6.17 beside other kernels, and beside itself with one fact wrong.
#[test]
fn kernels_and_facts_beside_2_6_17() {
    let right = V2_6_17;
    let kernels = [
        right,
        V2_6_14,
        V2_6_22,
        Variant {
            abc_counts_in_loss: true,
            ..right
        },
        Variant {
            sack_sort: SackSort::Right,
            ..right
        },
        Variant {
            lost_retransmission: LostRetransmission::HighestEndOfBlocks,
            ..right
        },
        Variant {
            sack_hint: SackHint::AfterFirstBlock,
            ..right
        },
        Variant {
            dsack_for_all_blocks: false,
            ..right
        },
        Variant {
            keeps_old_blocks: false,
            ..right
        },
        Variant {
            slow_start_counts: true,
            ..right
        },
        Variant {
            bic: BicParameters {
                max_increment: 32,
                ..right.bic
            },
            ..right
        },
    ];
    is_on_page("2.6.17", &table(&kernels));
}
