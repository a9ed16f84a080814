// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core as BPF and the core in the kernel against the same core in user space: on random traffic
//! with a seed all three give the same answers, and their clocks and counters are the same to the
//! byte. The calls are a list that one program runs (bpf/tests/port.bpf.c), and a module (lab/core),
//! so that no packet's time is left to chance.
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
use std::time::{Duration, Instant};

use self::layout::{Layout, PAGE, Room, SLOT_BYTES, START, STAYS, at};
use self::memory::Memory;
use self::ports::{Image, MapIds, Place, PortClass, Ports};
use libbpf_rs::{ObjectBuilder, ProgramInput};
use pace::placed::{reservation_stats, stats};
use pace::{ClassConfig, Config, Mode};
use scenario::Kernel;
use testkit::guest::test_program;

use crate::guest::run_in_guest;

use crate::core_calls::{
    ANSWER, CALL_BYTES, CLASSES_MAX, Call, ClassState, FIRST_NS, Kind, Outcome, Scenario, WAIT,
    answer,
};
use crate::core_module;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/port.bpf.o"));

/// Seeds that are compared, and those of `make test-all`.
const SEEDS: u64 = 40;
const SEEDS_ALL: u64 = 1_000;
/// Calls of a scenario.
const CALLS_MIN: usize = 50;
const CALLS_MAX: usize = 550;
/// A longest frame, in bytes, and on the wire.
const FRAME_BYTES: u64 = 1514;
const WIRE_BYTES: u64 = 1538;
/// Calls that may follow the last but one.
const CALLS_MORE: usize = 3;
/// Members of `struct pace_sched` and `struct pace_class`.
const OFFSET: u64 = 80;
const TYPE_AND_ACTIVE: u64 = 4;
const CLOCK: u64 = 8;

/// What a port is configured as.
struct PortConfig {
    config: Config,
    classes: Vec<PortClass>,
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

/// Ports of one program, on which calls run, and where the calls are.
struct Bpf {
    ports: Ports,
    calls_at: u64,
}

impl Bpf {
    /// Loads the program, with room for so many classes and calls.
    fn new(slots: u32, calls: usize) -> Self {
        let layout = Layout {
            ports: 1,
            room: room(slots),
        };
        let calls_at = START + layout.pages() * PAGE;
        let pages = layout.pages() + (calls as u64 * CALL_BYTES).div_ceil(PAGE);
        let ports = load(layout, pages);
        Self { ports, calls_at }
    }

    fn begin(&mut self) {
        assert_eq!(run(&mut self.ports, "begin", &mut [0; 16]), 0);
    }

    /// Runs calls, and returns the answers of those that ask.
    fn call(&mut self, calls: &[Call]) -> Vec<(u64, u64)> {
        let places = || (self.calls_at..).step_by(CALL_BYTES as usize);
        for (at, call) in places().zip(calls) {
            for (at, word) in (at..).step_by(8).zip(call.words()) {
                self.ports.memory.set_u64(at, word);
            }
        }
        let context = [self.calls_at, calls.len() as u64].map(u64::to_ne_bytes);
        assert_eq!(run(&mut self.ports, "run", &mut context.concat()), 0);
        let memory = &self.ports.memory;
        let asked = places().zip(calls).filter(|(_, call)| call.asks());
        let answers =
            asked.map(|(at, _)| answer(memory.u64(at + ANSWER), memory.u64(at + ANSWER + 8)));
        answers.collect()
    }

    /// Lays the port out anew. Nothing but the core looks at the rest of an image.
    fn lay_out(&mut self, scenario: &Scenario) {
        let Ports { memory, layout } = &self.ports;
        let (port, parts) = (layout.port(0), layout.image(0, 0));
        memory.zero(parts.image, parts.slots - parts.image);
        memory.zero(parts.storage, layout.image(0, 1).image - parts.storage);
        memory.zero(layout.slot(0, 0), SLOT_BYTES * u64::from(CLASSES_MAX));
        let placed = memory.place(parts, CLASSES_MAX, &scenario.config, FIRST_NS);
        let mut core = placed.unwrap();
        for (slot, class) in (0..).zip(&scenario.classes) {
            let address = layout.class(parts, slot);
            let reservation = address + at::CLASS_RESERVATION;
            core.add_class(address, reservation, class).unwrap();
        }
        memory.set_u64(parts.image + at::IMAGE_CLASSES, parts.classes);
        memory.set_u64(parts.image + at::IMAGE_READY, 1);
        memory.set_u32(port + at::PORT_WANTED, STAYS);
        memory.set_u32(port + at::PORT_IN_USE, 0);
        self.begin();
    }

    fn run(&mut self, scenario: &Scenario) -> Outcome {
        self.lay_out(scenario);
        let answers = self.call(&scenario.calls);
        let memory = &self.ports.memory;
        let parts = self.ports.layout.image(0, 0);
        let classes = (0..scenario.classes.len()).map(|slot| self.class(slot as u32));
        Outcome {
            answers,
            stats: stats(memory.words(parts.image + at::SCHED_STATS)),
            classes: classes.collect(),
        }
    }

    fn class(&self, slot: u32) -> ClassState {
        let Ports { memory, layout } = &self.ports;
        let parts = layout.image(0, 0);
        let class = layout.class(parts, slot);
        let offset_ps = memory.u64(parts.image + OFFSET);
        ClassState {
            ps: memory.u64(class + CLOCK).wrapping_add(offset_ps),
            frac: memory.u64(class + CLOCK + 8),
            is_active: (memory.u32(class + TYPE_AND_ACTIVE) >> 8) & 1 == 1,
            reservation: reservation_stats(memory.words(class + at::CLASS_RESERVATION)),
        }
    }
}

/// Returns a port with these classes, on a line of such a rate.
fn port_of(line_rate_bps: u64, classes: impl Iterator<Item = ClassConfig>) -> PortConfig {
    let classes = (1..).zip(classes).map(|(minor, config)| PortClass {
        minor,
        limit: 1000,
        deadline_ns: None,
        config,
    });
    PortConfig {
        config: Config {
            mode: Mode::Timer,
            ..Config::ethernet(line_rate_bps, FRAME_BYTES as u32)
        },
        classes: classes.collect(),
    }
}

/// Takes the second image of a port of so many classes, none of which or all of which have a
/// packet that waits, and prints how long that takes.
fn time_image(slots: u32, waiting: bool) {
    let rates = (0..slots).map(|slot| ClassConfig::Paced {
        rate_bps: 1_000_000 + u64::from(slot),
    });
    let wanted = port_of(100_000_000_000, rates);
    let calls = (0..slots).filter(|_| waiting).map(|slot| Call {
        slot,
        first: FRAME_BYTES,
        ..Call::new(FIRST_NS + 1, Kind::Enqueued)
    });
    let calls: Vec<Call> = calls.collect();
    let mut bpf = Bpf::new(slots, calls.len().max(1));
    let began = Instant::now();
    ask(&bpf.ports, &wanted, FIRST_NS);
    let laid_out = began.elapsed();
    bpf.begin();
    // One run may go round its loops 2^23 times: this one takes some.
    bpf.call(&calls);
    ask(&bpf.ports, &wanted, FIRST_NS);
    let began = Instant::now();
    bpf.call(&[Call::new(FIRST_NS + 1, Kind::TakeImage)]);
    let took = began.elapsed();
    assert_eq!(bpf.ports.port_counters(0).images_taken, 1);
    let Ports { memory, layout } = &bpf.ports;
    let parts = layout.image(0, bpf.ports.in_force(0).unwrap());
    let is_active = |slot: &u32| {
        let class = layout.class(parts, *slot);
        (memory.u32(class + TYPE_AND_ACTIVE) >> 8) & 1 == 1
    };
    let active = (0..slots).filter(is_active).count();
    assert_eq!(active, calls.len());
    println!(
        "image of {slots} classes, {active} with packets: laid out in {laid_out:?}, taken in \
         {took:?}"
    );
}

/// A class that is in every image goes on where it was: over many images it sends by its rate, and
/// above that by its ceil, as without them.
fn images_earn_nothing() {
    const FRAMES: u64 = 100;
    /// Before them a class may be behind.
    const FIRST: u64 = 10;
    let rate_bps = 10_000_000;
    let ceil_bps = 25_000_000;
    for (class, sent_bps) in [
        (ClassConfig::Paced { rate_bps }, rate_bps),
        (ClassConfig::Borrowing { rate_bps, ceil_bps }, ceil_bps),
    ] {
        let wanted = port_of(200_000_000, [class].into_iter());
        let mut bpf = Bpf::new(1, FRAMES as usize);
        let next = |bpf: &mut Bpf, now_ns| bpf.call(&[Call::new(now_ns, Kind::Next)])[0];
        let mut now_ns = FIRST_NS;
        let mut begin_ns = 0;
        ask(&bpf.ports, &wanted, now_ns);
        bpf.begin();
        let comes = Call {
            first: FRAME_BYTES,
            second: WIRE_BYTES,
            ..Call::new(now_ns, Kind::Enqueued)
        };
        bpf.call(&[comes; FRAMES as usize]);
        for frame in 0..FRAMES {
            if frame % 3 == 0 {
                // An image comes while a frame waits for its time.
                if let (WAIT, until_ns) = next(&mut bpf, now_ns) {
                    now_ns += (until_ns - now_ns) / 2;
                    ask(&bpf.ports, &wanted, now_ns);
                    bpf.call(&[Call::new(now_ns, Kind::TakeImage)]);
                }
            }
            while let (WAIT, until_ns) = next(&mut bpf, now_ns) {
                now_ns = until_ns;
            }
            if frame == FIRST {
                begin_ns = now_ns;
            }
            bpf.call(&[Call {
                first: (FRAME_BYTES << 32) | WIRE_BYTES,
                second: (1 << 32) | FRAME_BYTES,
                ..Call::new(now_ns, Kind::Sent)
            }]);
        }
        let took_ns = now_ns - begin_ns;
        let taken = bpf.ports.port_counters(0).images_taken;
        let due_ns = (FRAMES - 1 - FIRST) * FRAME_BYTES * 8_000_000_000 / sent_bps;
        println!("{taken} images while {FRAMES} frames left: {took_ns} ns, {due_ns} by the rate");
        assert!(taken >= FRAMES / 3 - 1);
        // What of a wait is less than a nanosecond is lost with each image.
        assert!((due_ns..=due_ns + taken + 1).contains(&took_ns));
    }
}

/// Runs in the guest: compares both sides with user space, by so many seeds.
fn compare(seeds: u64) {
    let mut bpf = Bpf::new(CLASSES_MAX, CALLS_MAX + CALLS_MORE);
    let mut sent = 0;
    let mut periods = 0;
    for seed in 1..=seeds {
        let scenario = Scenario::new(
            seed,
            CALLS_MIN + (seed as usize * 7) % (CALLS_MAX - CALLS_MIN),
        );
        for (side, outcome) in [
            ("BPF", bpf.run(&scenario)),
            ("kernel", core_module::run(&scenario)),
        ] {
            if let Some(difference) = scenario.expected.difference(&outcome) {
                panic!("seed {seed}, user space and {side}: {difference}");
            }
        }
        sent += scenario.expected.stats.sent_frames;
        periods += scenario.expected.stats.periods;
    }
    println!("{seeds} seeds compared: {sent} frames sent, {periods} periods");
}

/// One bit a second more of one class, on one side, is found.
fn differences_are_found() {
    let mut bpf = Bpf::new(CLASSES_MAX, CALLS_MAX + CALLS_MORE);
    let mut scenario = (1..)
        .map(|seed| Scenario::new(seed, CALLS_MAX))
        .find_map(|mut scenario| {
            *scenario.first_rate()? += 1;
            Some(scenario)
        });
    let scenario = scenario.as_mut().unwrap();
    for outcome in [bpf.run(scenario), core_module::run(scenario)] {
        assert!(scenario.expected.difference(&outcome).is_some());
    }
}

#[test]
#[ignore = "runs in the guest"]
fn in_guest() {
    let seeds = std::env::var("SEEDS").unwrap().parse().unwrap();
    let began = Instant::now();
    compare(seeds);
    println!("in {:?}", began.elapsed());
    differences_are_found();
    images_earn_nothing();
    for slots in [1_000, 8_000, 32_000] {
        time_image(slots, false);
        time_image(slots, true);
    }
}

#[test]
fn all_sides_decide_the_same() {
    let seeds = if testkit::everything() {
        SEEDS_ALL
    } else {
        SEEDS
    };
    let folder = tempfile::tempdir().unwrap();
    let (files, command) = test_program(folder.path(), "core_bpf_lab::in_guest");
    let output = run_in_guest(
        (Kernel::V7, &["pace_calls"]),
        &files,
        &format!("SEEDS={seeds} {command}"),
        Duration::from_secs(600),
        folder.path(),
    );
    let compared = format!("{seeds} seeds compared");
    assert!(output.contains(&compared), "{output}");
}
