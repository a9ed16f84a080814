// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core as BPF against the same core outside it: on random traffic with a seed both give the
//! same answers, and their clocks are the same to the byte. The calls are a list that one program
//! runs (bpf/tests/port.bpf.c), so that no packet's time is left to chance.
//!
//! It reads and writes the arena as the crate does, by the same files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]
#![allow(clippy::print_stdout, reason = "the guest's log")]

#[allow(dead_code, reason = "the crate uses the rest")]
#[path = "../src/qdisc/counters.rs"]
mod counters;
#[allow(dead_code, reason = "the crate uses the rest")]
#[path = "../src/qdisc/error.rs"]
mod error;
#[allow(dead_code, reason = "the crate uses the rest")]
#[path = "../src/qdisc/layout.rs"]
mod layout;
#[allow(dead_code, reason = "the crate uses the rest")]
#[path = "../src/qdisc/memory.rs"]
mod memory;
#[allow(dead_code, reason = "the crate uses the rest")]
#[path = "../src/qdisc/ports.rs"]
mod ports;

use std::ffi::OsStr;
use std::fs;
use std::time::{Duration, Instant};

use self::layout::{Layout, PAGE, Room, START};
use self::memory::Memory;
use self::ports::{Image, MapIds, Place, PortClass, Ports};
use libbpf_rs::{ObjectBuilder, ProgramInput};
use pace::{Burst, ClassConfig, ClassId, Config, Decision, Mode, Order, Scheduler};
use scenario::Kernel;
use testkit::guest::test_program;
use vmlab::{Lab, Quiet, ScriptSpec, run_script};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/port.bpf.o"));

const SLOTS: u32 = 40;
const FIRST_NS: u64 = 1_000_000_000;
const CALLS: usize = 4_000;
/// `struct call`, and its members.
const CALL_BYTES: u64 = 48;
/// What port_next() returns.
const IDLE: u64 = u32::MAX as u64;
const WAIT: u64 = IDLE - 1;
/// Members of `struct pace_sched` and `struct pace_class`.
const OFFSET: u64 = 80;
const ACTIVE: u64 = 4;
const CLOCK: u64 = 8;

#[derive(Clone, Copy)]
enum Kind {
    Enqueued,
    Next,
    Sent,
    TakeImage,
}

#[derive(Clone, Copy)]
struct Call {
    now_ns: u64,
    kind: Kind,
    slot: u32,
    first: u64,
    second: u64,
    /// What is expected of [`Kind::Next`].
    answer: u64,
    until_ns: u64,
}

/// Numbers that look random and come from a seed (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

/// What the port is configured as.
struct PortConfig {
    config: Config,
    classes: Vec<PortClass>,
}

fn config(random: &mut Random) -> PortConfig {
    let line_rate_bps = [1_000_000_000, 999_999_937, 10_000_000_000][random.below(3) as usize];
    let order = [Order::Next, Order::Clock, Order::Rate][random.below(3) as usize];
    let config = Config {
        mode: Mode::Timer,
        order,
        max_burst_bytes: 65_536,
        ..Config::ethernet(line_rate_bps, 1514)
    };
    let classes = 1 + random.below(u64::from(SLOTS));
    let classes = (0..classes).map(|slot| {
        let rate_bps = 1_000_000 + random.below(line_rate_bps / 8);
        PortClass {
            minor: 0x8001 + slot as u16,
            limit: 1000,
            deadline_ns: None,
            config: match random.below(4) {
                0 => ClassConfig::Normal {
                    quantum_bytes: None,
                },
                1 => ClassConfig::Borrowing {
                    rate_bps,
                    ceil_bps: rate_bps + random.below(line_rate_bps - rate_bps),
                },
                _ => ClassConfig::Paced { rate_bps },
            },
        }
    });
    PortConfig {
        config,
        classes: classes.collect(),
    }
}

/// Runs random traffic through the core outside BPF and returns it with the calls.
fn traffic(wanted: &PortConfig, random: &mut Random) -> (Scheduler, Vec<ClassId>, Vec<Call>) {
    let mut core = Scheduler::new(&wanted.config, FIRST_NS).unwrap();
    let classes = wanted.classes.iter();
    let ids: Vec<ClassId> = classes
        .map(|class| core.add_class(&class.config).unwrap())
        .collect();
    let mut queues: Vec<Vec<Burst>> = vec![Vec::new(); ids.len()];
    let mut calls = Vec::new();
    let mut now_ns = FIRST_NS;
    while calls.len() < CALLS {
        if random.below(3) == 0 {
            let slot = random.below(ids.len() as u64) as usize;
            let frames = [1, 1, 1 + random.below(40) as u32][random.below(3) as usize];
            let len = 60 + random.below(1455) as u32;
            let burst = Burst {
                len_bytes: len * frames,
                wire_bytes: (len + 24) * frames,
                frames,
            };
            calls.push(Call {
                now_ns,
                kind: Kind::Enqueued,
                slot: slot as u32,
                first: u64::from(burst.len_bytes),
                second: 0,
                answer: 0,
                until_ns: 0,
            });
            if queues[slot].is_empty() {
                core.activate(ids[slot], now_ns).unwrap();
            }
            queues[slot].push(burst);
            continue;
        }
        let decision = core.next(now_ns);
        let (answer, until_ns) = match decision {
            Decision::Send(class) => (u64::from(class.index()), 0),
            Decision::Wait { until_ns } => (WAIT, until_ns),
            Decision::Idle => (IDLE, 0),
            Decision::Gap { .. } => panic!("a gap in mode timer"),
        };
        calls.push(Call {
            now_ns,
            kind: Kind::Next,
            slot: 0,
            first: 0,
            second: 0,
            answer,
            until_ns,
        });
        match decision {
            Decision::Send(class) => {
                let queue = &mut queues[class.index() as usize];
                let burst = queue.remove(0);
                calls.push(Call {
                    now_ns,
                    kind: Kind::Sent,
                    slot: class.index(),
                    first: (u64::from(burst.len_bytes) << 32) | u64::from(burst.wire_bytes),
                    second: (u64::from(burst.frames) << 32) | u64::from(burst.len_bytes),
                    answer: 0,
                    until_ns: 0,
                });
                let more = !queue.is_empty();
                core.sent_burst(class, burst, more, now_ns).unwrap();
            }
            // Mostly a little late, sometimes too early, and once in a while hours late.
            Decision::Wait { until_ns } => {
                now_ns = match random.below(100) {
                    0 => until_ns + random.below(10_000_000_000_000),
                    1..20 => now_ns + random.below(until_ns.saturating_sub(now_ns).max(1)),
                    _ => until_ns + random.below(20_000),
                }
            }
            _ => now_ns += random.below(1_000_000),
        }
    }
    (core, ids, calls)
}

fn room(slots: u32) -> Room {
    Room {
        slots,
        rules: 0,
        addresses: 0,
        text_bytes: 0,
    }
}

/// Loads the program that runs calls, and makes a port.
fn load(layout: Layout, pages: u64) -> Ports {
    let mut builder = ObjectBuilder::default();
    let mut open = builder.open_memory(OBJECT).unwrap();
    for mut map in open.maps_mut() {
        map.set_map_extra(START).unwrap();
        map.set_max_entries(pages as u32).unwrap();
    }
    let memory = Memory::of_loaded(open.load().unwrap(), pages * PAGE);
    let ports = Ports { memory, layout };
    let place = Place {
        netns: 1,
        ifindex: 1,
        parent: u32::MAX,
    };
    ports.begin(&[place], MapIds::default());
    ports
}

/// Asks for a configuration.
fn ask(ports: &Ports, wanted: &PortConfig, now_ns: u64) {
    let image = Image {
        config: &wanted.config,
        classes: &wanted.classes,
        default: None,
        rules: 0,
        rules_base: 0,
        addresses: 0,
        net_cls: false,
        link_bytes: 14,
        text: &[],
    };
    let free = ports.free_image(0);
    let slots = ports.slots(0, free, &wanted.classes).unwrap();
    ports.write(0, free, &image, &slots, now_ns).unwrap();
}

fn run(ports: &mut Ports, name: &str, context: &mut [u8]) -> u32 {
    let object = ports.memory.object().unwrap();
    let program = object.progs_mut().find(|p| p.name() == OsStr::new(name));
    let input = ProgramInput {
        context_in: Some(context),
        ..ProgramInput::default()
    };
    program.unwrap().test_run(input).unwrap().return_value
}

/// Takes the second image of a port of so many classes, none of which or all of which have a
/// packet that waits, and prints how long that takes.
fn time_image(slots: u32, waiting: bool) {
    let classes = (0..slots).map(|slot| PortClass {
        minor: 1 + slot as u16,
        limit: 1000,
        deadline_ns: None,
        config: ClassConfig::Paced {
            rate_bps: 1_000_000 + u64::from(slot),
        },
    });
    let wanted = PortConfig {
        config: Config {
            mode: Mode::Timer,
            ..Config::ethernet(100_000_000_000, 1514)
        },
        classes: classes.collect(),
    };
    let layout = Layout {
        ports: 1,
        room: room(slots),
    };
    let calls_at = START + layout.pages() * PAGE;
    let calls = if waiting { u64::from(slots) } else { 0 };
    let pages = layout.pages() + ((calls + 1) * CALL_BYTES).div_ceil(PAGE);
    let mut ports = load(layout, pages);
    let write = |ports: &Ports, number: u64, kind, slot: u64| {
        let at = calls_at + number * CALL_BYTES;
        ports.memory.set_u64(at, FIRST_NS + 1);
        ports.memory.set_u32(at + 8, kind as u32);
        ports.memory.set_u32(at + 12, slot as u32);
        ports.memory.set_u64(at + 16, 1514);
    };
    let context = |from: u64, count: u64| [from.to_ne_bytes(), count.to_ne_bytes()].concat();
    let began = Instant::now();
    ask(&ports, &wanted, FIRST_NS);
    let laid_out = began.elapsed();
    assert_eq!(run(&mut ports, "begin", &mut context(0, 0)), 0);
    for slot in 0..calls {
        write(&ports, slot, Kind::Enqueued, slot);
    }
    // One run may go round its loops 2^23 times: this one takes some.
    assert_eq!(run(&mut ports, "run", &mut context(calls_at, calls)), 0);
    ask(&ports, &wanted, FIRST_NS);
    let take = calls_at + calls * CALL_BYTES;
    write(&ports, calls, Kind::TakeImage, 0);
    let began = Instant::now();
    assert_eq!(run(&mut ports, "run", &mut context(take, 1)), 0);
    let took = began.elapsed();
    assert_eq!(ports.port_counters(0).images_taken, 1);
    let parts = layout.image(0, ports.in_force(0).unwrap());
    let is_active = |slot: &u32| {
        let class = layout.class(parts, *slot);
        (ports.memory.u32(class + ACTIVE) >> 8) & 1 == 1
    };
    let active = (0..slots).filter(is_active).count();
    assert_eq!(active as u64, calls);
    println!(
        "image of {slots} classes, {calls} with packets: laid out in {laid_out:?}, taken in \
         {took:?}"
    );
}

/// Runs in the guest: compares.
fn compare(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let wanted = config(&mut random);
    let (core, ids, calls) = traffic(&wanted, &mut random);

    let layout = Layout {
        ports: 1,
        room: room(SLOTS),
    };
    let calls_at = START + layout.pages() * PAGE;
    let pages = layout.pages() + (calls.len() as u64 * CALL_BYTES).div_ceil(PAGE);
    let mut ports = load(layout, pages);
    ask(&ports, &wanted, FIRST_NS);
    let memory = &ports.memory;
    for (at, call) in (calls_at..).step_by(CALL_BYTES as usize).zip(&calls) {
        memory.set_u64(at, call.now_ns);
        memory.set_u32(at + 8, call.kind as u32);
        memory.set_u32(at + 12, call.slot);
        memory.set_u64(at + 16, call.first);
        memory.set_u64(at + 24, call.second);
    }
    let mut context = [calls_at.to_ne_bytes(), (calls.len() as u64).to_ne_bytes()].concat();
    assert_eq!(run(&mut ports, "begin", &mut context), 0);
    assert_eq!(run(&mut ports, "run", &mut context), 0);
    let memory = &ports.memory;

    for (number, call) in calls.iter().enumerate() {
        let at = calls_at + number as u64 * CALL_BYTES;
        if !matches!(call.kind, Kind::Next) {
            continue;
        }
        let what = format!("seed {seed}, call {number} at {} ns", call.now_ns);
        assert_eq!(memory.u64(at + 32), call.answer, "{what}");
        if call.answer == WAIT {
            assert_eq!(memory.u64(at + 40), call.until_ns, "{what}");
        }
    }
    // The first image that is asked for is the second of the two.
    let parts = layout.image(0, 1);
    let offset = memory.u64(parts.image + OFFSET);
    for (slot, id) in (0..).zip(&ids) {
        let class = layout.class(parts, slot);
        let clock = core.class_clock(*id).unwrap();
        let what = format!("seed {seed}, class {slot}");
        let ps = memory.u64(class + CLOCK).wrapping_add(offset);
        assert_eq!(ps, clock.ps, "{what}");
        assert_eq!(memory.u64(class + CLOCK + 8), clock.frac, "{what}");
        let is_active = (memory.u32(class + ACTIVE) >> 8) & 1 == 1;
        assert_eq!(is_active, core.is_active(*id).unwrap(), "{what}");
    }
    let sends = calls.iter().filter(|call| matches!(call.kind, Kind::Sent));
    println!(
        "seed {seed}: {:?}, {} classes, {} calls, {} sent",
        wanted.config.order,
        ids.len(),
        calls.len(),
        sends.count()
    );
}

const SEEDS: u64 = 12;

#[test]
#[ignore = "runs in the guest"]
fn in_guest() {
    for seed in 1..=SEEDS {
        compare(seed);
    }
    for slots in [1_000, 8_000, 32_000] {
        time_image(slots, false);
        time_image(slots, true);
    }
}

#[test]
fn bpf_decides_as_the_core() {
    let folder = tempfile::tempdir().unwrap();
    let (files, command) = test_program(folder.path(), "core_bpf_lab::in_guest");
    let files: Vec<_> = files
        .iter()
        .map(|(from, to)| (from.as_path(), to.as_str()))
        .collect();
    let spec = ScriptSpec {
        kernel: Kernel::V7,
        modules: &[],
        files: &files,
        command: &command,
        seed: 1,
        timeout: Duration::from_secs(600),
        out_dir: folder.path(),
    };
    let ran = run_script(&Lab::find().unwrap(), &spec, &Quiet).unwrap_or_else(|error| {
        let console = fs::read_to_string(folder.path().join("console.log"));
        panic!("{error}\n{}", console.unwrap_or_default())
    });
    println!("{}", ran.output);
    assert_eq!(ran.status, 0, "{}", ran.output);
    let compared = ran.output.lines().filter(|line| line.contains(" sent"));
    assert_eq!(compared.count() as u64, SEEDS, "{}", ran.output);
}
