// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tc qdisc`, and from all lines of a device its queue.

use capture::record::Kind;
use pace::ClassConfig;
use scenario::topology::leaving;
use scenario::{Cell, Direction, Place, TcLine};
use units::clock::{Span, Time};
use units::ethernet::HEADER_BYTES;

use super::class::{self, Port};
use super::cqf::CqfQueue;
use super::period::Periods;
use super::words::Words;
use super::{Refusal, device, filters};
use crate::filter::Filter;
use crate::qdisc::{
    Fifo, Fq, FqConfig, Htb, HtbClass, HtbConfig, Limit, Netem, NetemConfig, Psp, PspClass,
    PspConfig, PspKind, Qdisc, Tbf, TbfConfig,
};
use crate::rng::{Chance, Rng};

/// A device's transmit queue length, `txqueuelen`.
const TX_QUEUE_PACKETS: u32 = 1000;
/// Random streams of devices begin here; flows have the lower ones.
const NETEM_STREAM: u64 = 1 << 32;
/// The major number of a qdisc without a handle is of the kernel's choice.
const NO_HANDLE: u32 = 0x8001;
const KINDS: &str = "pfifo, bfifo, pfifo_fast, tbf, htb, fq, netem, cqf and psp";

/// A class of psp that changes while the network runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at: Time,
    /// Number of the device.
    pub device: usize,
    /// Minor number of the class.
    pub minor: u32,
    /// What it becomes.
    pub kind: ClassConfig,
}

/// What a device's lines say.
#[derive(Debug)]
pub(super) enum Queue {
    Plain(Limit),
    Tbf(TbfConfig),
    Fq(FqConfig),
    Netem(NetemConfig),
    Htb {
        handle: u32,
        default: u32,
        r2q: u32,
        classes: Vec<HtbClass>,
        filters: Vec<(u32, Filter)>,
    },
    Cqf(Box<CqfQueue>),
    Psp(Box<PspQueue>),
}

#[derive(Debug)]
pub(super) struct PspQueue {
    handle: u32,
    default: u32,
    port: pace::Config,
    gap: Kind,
    classes: Vec<PspClass>,
    filters: Vec<(u32, Filter)>,
    /// Where it stands, and each class.
    place: Place,
    places: Vec<Place>,
}

/// The queue of every device, and what changes later.
pub(super) fn read(cell: &Cell) -> Result<(Vec<Queue>, Vec<Change>), Refusal> {
    let usual = || Queue::Plain(Limit::Packets(TX_QUEUE_PACKETS));
    let mut queues: Vec<Queue> = (0..2 * cell.cables.len()).map(|_| usual()).collect();
    let mut changes = Vec::new();
    for line in &cell.tc {
        let mut words = Words::new(line);
        let object = words.word("an object")?;
        let verb = words.word("a verb")?;
        let direction = of_device(cell, line, &mut words)?;
        let mut reader = Reader {
            cell,
            direction,
            queue: &mut queues[device(direction)],
        };
        match (object, verb, line.at_ns) {
            ("qdisc", "add" | "replace", None) => reader.qdisc(&mut words)?,
            ("class", "add" | "replace", None) => reader.class(&mut words, line)?,
            ("filter", "add" | "replace", None) => reader.filter(&mut words)?,
            ("class", "change" | "replace", Some(at_ns)) => {
                let (minor, kind) = reader.change(&mut words)?;
                changes.push(Change {
                    at: Time::START + Span::from_ns(at_ns),
                    device: device(direction),
                    minor,
                    kind,
                });
            }
            (_, _, Some(_)) => {
                let known = "class change of psp";
                return Err(words.unknown("a line with `at`", &format!("{object} {verb}"), known));
            }
            _ => {
                let known = "qdisc, class and filter with add and replace";
                return Err(words.unknown("tc", &format!("{object} {verb}"), known));
            }
        }
    }
    Ok((queues, changes))
}

/// `dev DEV`: the direction that leaves by it.
fn of_device(cell: &Cell, line: &TcLine, words: &mut Words<'_>) -> Result<Direction, Refusal> {
    words.one_of("what comes before the device", &[("dev", ())])?;
    let name = words.word("a device")?;
    let device = |hop: &Direction| &cell.cables[hop.cable].ends[hop.end.index()];
    let mut hops = leaving(&cell.cables, line.host).filter(|hop| device(hop).name == name);
    hops.next().ok_or_else(|| {
        let host = &cell.hosts[line.host].name;
        words.refuse(format!("tc: host `{host}` has no device `{name}`"))
    })
}

struct Reader<'a> {
    cell: &'a Cell,
    direction: Direction,
    queue: &'a mut Queue,
}

impl Reader<'_> {
    fn port(&self) -> Port {
        let cable = &self.cell.cables[self.direction.cable];
        Port {
            line_bps: cable.rate_bps,
            frame_bytes: cable.mtu + HEADER_BYTES,
            packets: TX_QUEUE_PACKETS,
        }
    }

    /// The same for a class: psp's line may be another than the cable's.
    fn class_port(&self) -> Port {
        let port = self.port();
        match &*self.queue {
            Queue::Psp(psp) => Port {
                line_bps: psp.port.line_rate_bps,
                ..port
            },
            _ => port,
        }
    }

    fn qdisc(&mut self, words: &mut Words<'_>) -> Result<(), Refusal> {
        let mut handle = NO_HANDLE;
        let mut parent = None;
        loop {
            match words.word("a kind of qdisc")? {
                "root" => {}
                "parent" => parent = Some(words.handle("parent")?),
                "handle" => handle = words.handle("handle")?.0,
                kind => {
                    let queue = self.kind(kind, handle, words)?;
                    return match parent {
                        None => {
                            *self.queue = queue;
                            Ok(())
                        }
                        Some(parent) => self.attach(parent, queue, words),
                    };
                }
            }
        }
    }

    /// A class's own queue.
    fn attach(
        &mut self,
        (major, minor): (u32, u32),
        child: Queue,
        words: &Words<'_>,
    ) -> Result<(), Refusal> {
        let Queue::Plain(limit) = child else {
            return Err(words.unknown("a class's queue", "this kind", "pfifo and bfifo"));
        };
        let slot = match self.queue {
            Queue::Htb {
                handle, classes, ..
            } if *handle == major => {
                let class = classes.iter_mut().find(|c| c.minor == minor);
                class.map(|c| &mut c.limit)
            }
            Queue::Psp(psp) if psp.handle == major => {
                let class = psp.classes.iter_mut().find(|c| c.minor == minor);
                class.map(|c| &mut c.limit)
            }
            _ => None,
        };
        match slot {
            Some(slot) => *slot = limit,
            None => return Err(words.refuse(format!("tc: no class {major:x}:{minor:x} before"))),
        }
        Ok(())
    }

    fn kind(&self, kind: &str, handle: u32, words: &mut Words<'_>) -> Result<Queue, Refusal> {
        match kind {
            "pfifo_fast" => Ok(Queue::Plain(Limit::Packets(TX_QUEUE_PACKETS))),
            "pfifo" | "bfifo" => fifo(kind, words, self.port()),
            "tbf" => tbf(words),
            "fq" => fq(words, self.port()),
            "netem" => netem(words),
            "htb" => htb(words, handle),
            "cqf" => Ok(Queue::Cqf(Box::new(CqfQueue::read(
                words,
                handle,
                self.port(),
            )?))),
            "psp" => self.psp(words, handle),
            other => Err(words.unknown("a qdisc", other, KINDS)),
        }
    }

    fn psp(&self, words: &mut Words<'_>, handle: u32) -> Result<Queue, Refusal> {
        use pace::{Layer, Mode, Order};
        const KNOWN: &str = "default, line, mode, overhead, layer, order, gap, guard, split-gso, \
            period, budget and align";
        let port = self.port();
        let mut config = pace::Config {
            mode: Mode::Hybrid,
            order: Order::Next,
            ..pace::Config::ethernet(port.line_bps, port.frame_bytes)
        };
        let (mut default, mut gap) = (0, Kind::Pause);
        let mut period = Periods::default();
        while let Some(word) = words.next() {
            match word {
                "default" => default = words.minor("default")?,
                "line" if words.peek() == Some("auto") => drop(words.next()),
                "line" => config.line_rate_bps = words.rate("line")?,
                "overhead" => config.overhead_bytes = words.size_u32("overhead")?,
                "period" => period.length = words.time("period")?,
                "budget" => period.budget = words.budget("budget")?,
                "align" if words.peek() == Some("off") => drop(words.next()),
                "align" => period.align = Some(words.time("align")?),
                "guard" => config.guard_band = words.switch("guard")?,
                "mode" => {
                    let auto = ("auto", Mode::Hybrid);
                    let known = [("gap", Mode::Gap), ("timer", Mode::Timer)];
                    let all = [known[0], known[1], ("hybrid", Mode::Hybrid), auto];
                    config.mode = words.one_of("mode", &all)?;
                }
                "layer" => {
                    let known = [
                        ("link", Layer::Link),
                        ("wire", Layer::Wire),
                        ("ip", Layer::Ip),
                    ];
                    config.layer = words.one_of("layer", &known)?;
                }
                "order" => {
                    let known = [("next", Order::Next), ("clock", Order::Clock)];
                    let all = [known[0], known[1], ("rate", Order::Rate)];
                    config.order = words.one_of("order", &all)?;
                }
                "gap" => {
                    let known = [("pause", Kind::Pause), ("multicast", Kind::Gap)];
                    gap = words.one_of("gap", &[known[0], known[1], ("self", Kind::Gap)])?;
                }
                "split-gso" => {
                    words
                        .one_of("split-gso", &[("on", ()), ("auto", ())])
                        .map_err(|_| {
                            let known = "on and auto: it has no trains of segments";
                            words.unknown("psp", "split-gso off", known)
                        })?;
                }
                other => return Err(words.unknown("psp", other, KNOWN)),
            }
        }
        config.period = Some(period.of(config.line_rate_bps));
        Ok(Queue::Psp(Box::new(PspQueue {
            handle,
            default,
            port: config,
            gap,
            classes: Vec::new(),
            filters: Vec::new(),
            place: words.place(),
            places: Vec::new(),
        })))
    }

    fn class(&mut self, words: &mut Words<'_>, line: &TcLine) -> Result<(), Refusal> {
        let port = self.class_port();
        let (parent, (major, minor), kind) = class_head(words)?;
        match self.queue {
            Queue::Htb {
                handle,
                r2q,
                classes,
                ..
            } if *handle == major && kind == "htb" => {
                let parent = (parent.1 > 0).then_some(parent.1);
                if parent.is_some_and(|minor| classes.iter().all(|c| c.minor != minor)) {
                    return Err(words.refuse("tc: the class's parent does not come before it"));
                }
                let class = class::htb(words, (minor, parent), *r2q, port)?;
                classes.retain(|c| c.minor != minor);
                classes.push(class);
            }
            Queue::Psp(psp) if psp.handle == major && kind == "psp" => {
                let class = class::psp(words, minor, port)?;
                match psp.classes.iter().position(|c| c.minor == minor) {
                    Some(at) => psp.classes[at] = class,
                    None => {
                        psp.classes.push(class);
                        psp.places.push(line.place.clone());
                    }
                }
            }
            _ => return Err(words.refuse(format!("tc: no {kind} with handle {major:x}: before"))),
        }
        Ok(())
    }

    /// A class of psp, later.
    fn change(&mut self, words: &mut Words<'_>) -> Result<(u32, ClassConfig), Refusal> {
        let (_, (_, minor), _) = class_head(words)?;
        let is_there = match self.queue {
            Queue::Psp(psp) => psp.classes.iter().any(|c| c.minor == minor),
            _ => false,
        };
        match class::psp(words, minor, self.class_port())?.kind {
            PspKind::Static(kind) if is_there => Ok((minor, kind)),
            _ => Err(words.unknown("a later change", "this class", "classes of psp with a rate")),
        }
    }

    fn filter(&mut self, words: &mut Words<'_>) -> Result<(), Refusal> {
        words.one_of("what comes before the parent", &[("parent", ())])?;
        let (major, _) = words.handle("parent")?;
        let filters = match self.queue {
            Queue::Htb {
                handle, filters, ..
            } if *handle == major => filters,
            Queue::Psp(psp) if psp.handle == major => &mut psp.filters,
            Queue::Cqf(cqf) if cqf.handle() == major => &mut cqf.filters,
            _ => return Err(words.refuse(format!("tc: no qdisc with handle {major:x}: before"))),
        };
        filters.push(filters::read(words, major)?);
        // Among equals, in the order of the file.
        filters.sort_by_key(|(pref, _)| *pref);
        Ok(())
    }
}

type Head<'a> = ((u32, u32), (u32, u32), &'a str);

/// `parent P classid C KIND`.
fn class_head<'a>(words: &mut Words<'a>) -> Result<Head<'a>, Refusal> {
    let (mut parent, mut classid) = ((0, 0), None);
    loop {
        match words.word("a kind of class")? {
            "parent" => parent = words.handle("parent")?,
            "classid" => classid = Some(words.handle("classid")?),
            kind => {
                let classid = classid.ok_or_else(|| words.refuse("tc: a class needs a classid"));
                return Ok((parent, classid?, kind));
            }
        }
    }
}

fn fifo(kind: &str, words: &mut Words<'_>, port: Port) -> Result<Queue, Refusal> {
    let is_bytes = kind == "bfifo";
    let mut limit = match is_bytes {
        true => Limit::Bytes(u64::from(port.packets) * u64::from(port.frame_bytes)),
        false => Limit::Packets(port.packets),
    };
    while let Some(word) = words.next() {
        limit = match word {
            "limit" if is_bytes => Limit::Bytes(words.size("limit")?),
            "limit" => Limit::Packets(words.number("limit")?),
            other => return Err(words.unknown(kind, other, "limit")),
        };
    }
    Ok(Queue::Plain(limit))
}

fn tbf(words: &mut Words<'_>) -> Result<Queue, Refusal> {
    const KNOWN: &str = "rate, burst, limit, latency, overhead, mpu and (its own) tick";
    let (mut rate, mut burst, mut limit, mut latency) = (None, None, None, None);
    let (mut overhead, mut mpu, mut tick) = (0, 0, Span::ZERO);
    while let Some(word) = words.next() {
        match word {
            "rate" => rate = Some(words.rate("rate")?),
            "burst" | "buffer" | "maxburst" => burst = Some(words.size("burst")?),
            "limit" => limit = Some(words.size("limit")?),
            "latency" => latency = Some(words.time("latency")?),
            "overhead" => overhead = words.size_u32("overhead")?,
            "mpu" => mpu = words.size_u32("mpu")?,
            "tick" => tick = words.time("tick")?,
            other => return Err(words.unknown("tbf", other, KNOWN)),
        }
    }
    let (Some(rate_bps), Some(burst_bytes)) = (rate, burst) else {
        return Err(words.refuse("tc: tbf needs a rate and a burst"));
    };
    let by_latency = |span: Span| {
        let bytes = u128::from(span.as_ns()) * u128::from(rate_bps) / 8_000_000_000;
        u64::try_from(bytes)
            .unwrap_or(u64::MAX)
            .saturating_add(burst_bytes)
    };
    let Some(limit_bytes) = limit.or_else(|| latency.map(by_latency)) else {
        return Err(words.refuse("tc: tbf needs a limit or a latency"));
    };
    Ok(Queue::Tbf(TbfConfig {
        rate_bps,
        burst_bytes,
        limit_bytes,
        overhead_bytes: overhead,
        mpu_bytes: mpu,
        tick,
    }))
}

fn fq(words: &mut Words<'_>, port: Port) -> Result<Queue, Refusal> {
    const KNOWN: &str = "limit, flow_limit, quantum, initial_quantum, maxrate and pacing";
    let mut config = FqConfig {
        limit: 10_000,
        flow_limit: 100,
        quantum_bytes: 2 * port.frame_bytes,
        initial_quantum_bytes: 10 * port.frame_bytes,
        maxrate_bps: 0,
    };
    while let Some(word) = words.next() {
        match word {
            "limit" => config.limit = words.number("limit")?,
            "flow_limit" => config.flow_limit = words.number("flow_limit")?,
            "quantum" => config.quantum_bytes = words.size_u32("quantum")?.max(1),
            "initial_quantum" => config.initial_quantum_bytes = words.size_u32(word)?,
            "maxrate" => config.maxrate_bps = words.rate("maxrate")?,
            "pacing" => {}
            other => return Err(words.unknown("fq", other, KNOWN)),
        }
    }
    Ok(Queue::Fq(config))
}

fn netem(words: &mut Words<'_>) -> Result<Queue, Refusal> {
    const KNOWN: &str =
        "limit, delay TIME [JITTER], loss [random] PERCENT, reorder PERCENT and gap";
    let mut config = NetemConfig {
        delay: Span::ZERO,
        jitter: Span::ZERO,
        loss: Chance::NEVER,
        reorder: Chance::NEVER,
        gap: 1,
        limit: 1000,
    };
    let is_number = |word: Option<&str>| {
        word.is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    };
    while let Some(word) = words.next() {
        match word {
            "limit" => config.limit = words.number("limit")?,
            "delay" => {
                config.delay = words.time("delay")?;
                if is_number(words.peek()) {
                    config.jitter = words.time("jitter")?;
                }
            }
            "loss" => {
                if words.peek() == Some("random") {
                    words.next();
                }
                config.loss = Chance::per_million(words.per_million("loss")?);
            }
            "reorder" => config.reorder = Chance::per_million(words.per_million("reorder")?),
            "gap" => config.gap = words.number("gap")?,
            other => return Err(words.unknown("netem", other, KNOWN)),
        }
        if matches!(word, "loss" | "reorder" | "delay") && is_number(words.peek()) {
            return Err(words.unknown("netem", "a correlation", KNOWN));
        }
    }
    Ok(Queue::Netem(config))
}

fn htb(words: &mut Words<'_>, handle: u32) -> Result<Queue, Refusal> {
    let (mut default, mut r2q) = (0, 10);
    while let Some(word) = words.next() {
        match word {
            "default" => default = words.minor("default")?,
            "r2q" => r2q = words.number("r2q")?,
            other => return Err(words.unknown("htb", other, "default and r2q")),
        }
    }
    Ok(Queue::Htb {
        handle,
        default,
        r2q,
        classes: Vec::new(),
        filters: Vec::new(),
    })
}

pub(super) fn plain(filters: Vec<(u32, Filter)>) -> Vec<Filter> {
    filters.into_iter().map(|(_, filter)| filter).collect()
}

impl Queue {
    /// Packets of a flow leave at the rate that its socket asks for.
    pub fn paces_flows(&self) -> bool {
        match self {
            Self::Fq(_) => true,
            Self::Psp(psp) => {
                let is_dynamic = |c: &PspClass| matches!(c.kind, PspKind::Dynamic { .. });
                psp.classes.iter().any(is_dynamic)
            }
            _ => false,
        }
    }

    /// The queue of the device of a direction.
    pub fn qdisc(self, cell: &Cell, direction: Direction, seed: u64) -> Result<Qdisc, Refusal> {
        Ok(match self {
            Self::Plain(limit) => Qdisc::Fifo(Fifo::new(limit)),
            Self::Tbf(config) => Qdisc::Tbf(Box::new(Tbf::new(config))),
            Self::Fq(config) => Qdisc::Fq(Box::new(Fq::new(config))),
            Self::Netem(config) => {
                let rng = Rng::new(seed, NETEM_STREAM + device(direction) as u64);
                Qdisc::Netem(Box::new(Netem::new(config, rng)))
            }
            Self::Htb {
                handle,
                default,
                classes,
                filters,
                ..
            } => Qdisc::Htb(Box::new(Htb::new(HtbConfig {
                major: handle,
                default,
                classes,
                filters: plain(filters),
                direct_packets: TX_QUEUE_PACKETS,
            }))),
            Self::Cqf(cqf) => Qdisc::Cqf(Box::new(cqf.qdisc())),
            Self::Psp(psp) => Qdisc::Psp(Box::new(psp.qdisc(cell, direction)?)),
        })
    }
}

impl PspQueue {
    fn qdisc(self, cell: &Cell, direction: Direction) -> Result<Psp, Refusal> {
        let line_bps = cell.cables[direction.cable].rate_bps;
        let minors: Vec<u32> = self.classes.iter().map(|c| c.minor).collect();
        let config = PspConfig {
            port: self.port,
            gap: self.gap,
            major: self.handle,
            default: self.default,
            classes: self.classes,
            filters: plain(self.filters),
            unclassified_packets: TX_QUEUE_PACKETS,
        };
        Psp::new(config, Time::START).map_err(|(minor, error)| {
            let at = minor.and_then(|minor| minors.iter().position(|m| *m == minor));
            let place = at.and_then(|at| self.places.get(at)).unwrap_or(&self.place);
            Refusal {
                place: place.clone(),
                reason: format!("tc: psp on a line of {line_bps} bit/s: {error}"),
            }
        })
    }
}
