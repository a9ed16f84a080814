// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `tc qdisc`, and builds a device's queue from all lines of the device.

use capture::record::Kind;
use pace::ClassConfig;
use scenario::topology::leaving;
use scenario::{Cell, Direction, Place, TcHead, TcLine};
use units::clock::{Span, Time};
use units::ethernet::HEADER_BYTES;

use super::class::{self, Port};
use super::cqf::CqfQueue;
use super::device_number::device;
use super::filters::{self, without_preference};
use super::period::Periods;
use super::refusal::Refusal;
use super::tc_tokens::TcTokens;
use crate::filter::Filter;
use crate::qdisc::{
    CodelConfig, Fifo, Fq, FqCodel, FqCodelConfig, FqConfig, Htb, HtbClass, HtbConfig, Limit,
    Netem, NetemConfig, Psp, PspClass, PspConfig, PspType, Qdisc, Tbf, TbfConfig,
};
use crate::rng::{Chance, Rng};

/// A device's transmit queue length, `txqueuelen`.
const TX_QUEUE_PACKETS: u32 = 1000;
/// First random stream of devices; flows have the lower numbers.
const NETEM_STREAM: u64 = 1 << 32;
/// Major number of a qdisc without a handle; the kernel chooses one, too.
const NO_HANDLE: u32 = 0x8001;
const KINDS: &str =
    "pfifo, bfifo, pfifo_head_drop, pfifo_fast, tbf, htb, fq, fq_codel, netem, cqf and psp";

/// A change of a psp class while the network runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Time of the change.
    pub at: Time,
    /// Number of the device.
    pub device: usize,
    /// Minor number of the class.
    pub minor: u32,
    /// The new type of the class.
    pub kind: ClassConfig,
}

/// The configuration of a device's qdisc, from the lines of the device.
#[derive(Debug)]
pub(super) enum Queue {
    Plain(Limit),
    Tbf(TbfConfig),
    Fq(FqConfig),
    FqCodel(FqCodelConfig),
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
    /// Places of the qdisc and of each class in the file.
    place: Place,
    places: Vec<Place>,
}

/// Reads the queue of every device, and the later changes.
pub(super) fn read(cell: &Cell) -> Result<(Vec<Queue>, Vec<Change>), Refusal> {
    let usual = || Queue::Plain(Limit::Packets(TX_QUEUE_PACKETS));
    let mut queues: Vec<Queue> = (0..2 * cell.cables.len()).map(|_| usual()).collect();
    let mut changes = Vec::new();
    for line in &cell.tc {
        let (head, mut tokens) = TcTokens::of(line)?;
        let direction = of_device(cell, line, &head, &tokens)?;
        let mut reader = Reader {
            cell,
            direction,
            queue: &mut queues[device(direction)],
        };
        match (head.object, head.verb, line.at_ns) {
            ("qdisc", "add" | "replace", None) => reader.qdisc(&head, &mut tokens)?,
            ("class", "add" | "replace", None) => reader.class(&head, &mut tokens)?,
            ("filter", "add" | "replace", None) => reader.filter(&head, &mut tokens)?,
            ("class", "change" | "replace", Some(at_ns)) => {
                let (minor, kind) = reader.change(&head, &mut tokens)?;
                changes.push(Change {
                    at: Time::START + Span::from_ns(at_ns),
                    device: device(direction),
                    minor,
                    kind,
                });
            }
            (object, verb, Some(_)) => {
                let known = "class change of psp";
                return Err(tokens.unknown("a line with `at`", &format!("{object} {verb}"), known));
            }
            (object, verb, None) => {
                let known = "qdisc, class and filter with add and replace";
                return Err(tokens.unknown("tc", &format!("{object} {verb}"), known));
            }
        }
    }
    Ok((queues, changes))
}

/// Returns the direction in which a line's device sends.
fn of_device(
    cell: &Cell,
    line: &TcLine,
    head: &TcHead<'_>,
    tokens: &TcTokens<'_>,
) -> Result<Direction, Refusal> {
    let name = |hop: &Direction| &cell.cables[hop.cable].ends[hop.end.index()].name;
    let mut hops = leaving(&cell.cables, line.host).filter(|hop| name(hop) == head.device);
    hops.next().ok_or_else(|| {
        let host = &cell.hosts[line.host].name;
        tokens.refuse(format!("tc: host `{host}` has no device `{}`", head.device))
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

    /// Returns the properties of the device that a class uses: psp's line rate may
    /// differ from the cable's.
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

    fn qdisc(&mut self, head: &TcHead<'_>, tokens: &mut TcTokens<'_>) -> Result<(), Refusal> {
        let queue = self.kind(head.kind, head.handle.unwrap_or(NO_HANDLE), tokens)?;
        match head.parent {
            None => {
                *self.queue = queue;
                Ok(())
            }
            Some(parent) => self.attach(parent, (head.kind, queue), tokens),
        }
    }

    /// Attaches a queue to a class.
    fn attach(
        &mut self,
        (major, minor): (u32, u32),
        (kind, child): (&str, Queue),
        tokens: &TcTokens<'_>,
    ) -> Result<(), Refusal> {
        let Queue::Plain(limit) = child else {
            let known = "pfifo, bfifo and pfifo_head_drop";
            return Err(tokens.unknown("a class's queue", kind, known));
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
            None => return Err(tokens.refuse(format!("tc: no class {major:x}:{minor:x} before"))),
        }
        Ok(())
    }

    fn kind(&self, kind: &str, handle: u32, tokens: &mut TcTokens<'_>) -> Result<Queue, Refusal> {
        match kind {
            "pfifo_fast" => Ok(Queue::Plain(Limit::Packets(TX_QUEUE_PACKETS))),
            "pfifo" | "bfifo" | "pfifo_head_drop" => fifo(kind, tokens, self.port()),
            "tbf" => tbf(tokens),
            "fq" => fq(tokens, self.port()),
            "fq_codel" => fq_codel(tokens, self.port()),
            "netem" => netem(tokens),
            "htb" => htb(tokens, handle),
            "cqf" => Ok(Queue::Cqf(Box::new(CqfQueue::read(
                tokens,
                handle,
                self.port(),
            )?))),
            "psp" => self.psp(tokens, handle),
            other => Err(tokens.unknown("a qdisc", other, KINDS)),
        }
    }

    fn psp(&self, tokens: &mut TcTokens<'_>, handle: u32) -> Result<Queue, Refusal> {
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
        while let Some(word) = tokens.next() {
            match word {
                "default" => default = tokens.minor("default")?,
                "line" if tokens.peek() == Some("auto") => drop(tokens.next()),
                "line" => config.line_rate_bps = tokens.rate("line")?,
                "overhead" => config.overhead_bytes = tokens.size_u32("overhead")?,
                "period" => period.length = tokens.time("period")?,
                "budget" => period.budget = tokens.budget("budget")?,
                "align" if tokens.peek() == Some("off") => drop(tokens.next()),
                "align" => period.align = Some(tokens.time("align")?),
                "guard" => config.guard_band = tokens.switch("guard")?,
                "mode" => {
                    let auto = ("auto", Mode::Hybrid);
                    let known = [("gap", Mode::Gap), ("timer", Mode::Timer)];
                    let all = [known[0], known[1], ("hybrid", Mode::Hybrid), auto];
                    config.mode = tokens.one_of("mode", &all)?;
                }
                "layer" => {
                    let known = [
                        ("link", Layer::Link),
                        ("wire", Layer::Wire),
                        ("ip", Layer::Ip),
                    ];
                    config.layer = tokens.one_of("layer", &known)?;
                }
                "order" => {
                    let known = [("next", Order::Next), ("clock", Order::Clock)];
                    let all = [known[0], known[1], ("rate", Order::Rate)];
                    config.order = tokens.one_of("order", &all)?;
                }
                "gap" => {
                    let known = [("pause", Kind::Pause), ("multicast", Kind::Gap)];
                    gap = tokens.one_of("gap", &known)?;
                }
                "split-gso" => {
                    tokens
                        .one_of("split-gso", &[("on", ()), ("auto", ())])
                        .map_err(|_| {
                            let known = "on and auto: it has no GSO packets";
                            tokens.unknown("psp", "split-gso off", known)
                        })?;
                }
                other => return Err(tokens.unknown("psp", other, KNOWN)),
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
            place: tokens.place(),
            places: Vec::new(),
        })))
    }

    fn class(&mut self, head: &TcHead<'_>, tokens: &mut TcTokens<'_>) -> Result<(), Refusal> {
        let port = self.class_port();
        let (major, minor) = classid(head, tokens)?;
        let kind = head.kind;
        match self.queue {
            Queue::Htb {
                handle,
                r2q,
                classes,
                ..
            } if *handle == major && kind == "htb" => {
                let parent = head
                    .parent
                    .map(|(_, minor)| minor)
                    .filter(|minor| *minor > 0);
                if parent.is_some_and(|minor| classes.iter().all(|c| c.minor != minor)) {
                    return Err(tokens.refuse("tc: the class's parent does not come before it"));
                }
                let class = class::htb(tokens, (minor, parent), *r2q, port)?;
                classes.retain(|c| c.minor != minor);
                classes.push(class);
            }
            Queue::Psp(psp) if psp.handle == major && kind == "psp" => {
                let class = class::psp(tokens, minor, port)?;
                match psp.classes.iter().position(|c| c.minor == minor) {
                    Some(at) => psp.classes[at] = class,
                    None => {
                        psp.classes.push(class);
                        psp.places.push(tokens.place());
                    }
                }
            }
            _ => return Err(tokens.refuse(format!("tc: no {kind} with handle {major:x}: before"))),
        }
        Ok(())
    }

    /// A class of psp, later.
    fn change(
        &mut self,
        head: &TcHead<'_>,
        tokens: &mut TcTokens<'_>,
    ) -> Result<(u32, ClassConfig), Refusal> {
        let (_, minor) = classid(head, tokens)?;
        let is_there = match self.queue {
            Queue::Psp(psp) => psp.classes.iter().any(|c| c.minor == minor),
            _ => false,
        };
        match class::psp(tokens, minor, self.class_port())?.kind {
            PspType::Static(kind) if is_there => Ok((minor, kind)),
            _ => Err(tokens.unknown("a later change", "this class", "classes of psp with a rate")),
        }
    }

    fn filter(&mut self, head: &TcHead<'_>, tokens: &mut TcTokens<'_>) -> Result<(), Refusal> {
        let named = head.parent.map(|(major, _)| major);
        let (major, filters) = match self.queue {
            Queue::Htb {
                handle, filters, ..
            } => (*handle, filters),
            Queue::Psp(psp) => (psp.handle, &mut psp.filters),
            Queue::Cqf(cqf) => (cqf.handle(), &mut cqf.filters),
            _ => return Err(tokens.refuse("tc: the device's qdisc has no classes for a filter")),
        };
        if let Some(other) = named.filter(|named| *named != major) {
            return Err(tokens.refuse(format!("tc: no qdisc with handle {other:x}: before")));
        }
        let filter = filters::read(head.kind, tokens, major)?;
        let pref = head.pref.unwrap_or_else(|| filters::allocated(filters));
        filters.push((pref, filter));
        // Among equals, in the order of the file.
        filters.sort_by_key(|(pref, _)| *pref);
        Ok(())
    }
}

fn classid(head: &TcHead<'_>, tokens: &TcTokens<'_>) -> Result<(u32, u32), Refusal> {
    head.classid
        .ok_or_else(|| tokens.refuse("tc: a class needs a classid"))
}

fn fifo(kind: &str, tokens: &mut TcTokens<'_>, port: Port) -> Result<Queue, Refusal> {
    let mut limit = match kind {
        "bfifo" => Limit::Bytes(u64::from(port.packets) * u64::from(port.frame_bytes)),
        "pfifo_head_drop" => Limit::NewestPackets(port.packets),
        _ => Limit::Packets(port.packets),
    };
    while let Some(word) = tokens.next() {
        limit = match (word, limit) {
            ("limit", Limit::Bytes(_)) => Limit::Bytes(tokens.size("limit")?),
            ("limit", Limit::Packets(_)) => Limit::Packets(tokens.number("limit")?),
            ("limit", Limit::NewestPackets(_)) => Limit::NewestPackets(tokens.number("limit")?),
            (other, _) => return Err(tokens.unknown(kind, other, "limit")),
        };
    }
    Ok(Queue::Plain(limit))
}

fn tbf(tokens: &mut TcTokens<'_>) -> Result<Queue, Refusal> {
    const KNOWN: &str = "rate, burst, limit, latency, overhead, mpu and (its own) tick";
    let (mut rate, mut burst, mut limit, mut latency) = (None, None, None, None);
    let (mut overhead, mut mpu, mut tick) = (0, 0, Span::ZERO);
    while let Some(word) = tokens.next() {
        match word {
            "rate" => rate = Some(tokens.rate("rate")?),
            "burst" | "buffer" | "maxburst" => burst = Some(tokens.size("burst")?),
            "limit" => limit = Some(tokens.size("limit")?),
            "latency" => latency = Some(tokens.time("latency")?),
            "overhead" => overhead = tokens.size_u32("overhead")?,
            "mpu" => mpu = tokens.size_u32("mpu")?,
            "tick" => tick = tokens.time("tick")?,
            other => return Err(tokens.unknown("tbf", other, KNOWN)),
        }
    }
    let (Some(rate_bps), Some(burst_bytes)) = (rate, burst) else {
        return Err(tokens.refuse("tc: tbf needs a rate and a burst"));
    };
    let by_latency = |span: Span| {
        let bytes = u128::from(span.as_ns()) * u128::from(rate_bps) / 8_000_000_000;
        u64::try_from(bytes)
            .unwrap_or(u64::MAX)
            .saturating_add(burst_bytes)
    };
    if limit.is_some() && latency.is_some() {
        return Err(tokens.refuse("tc: tbf: expected a limit or a latency, not both"));
    }
    let Some(limit_bytes) = limit.or_else(|| latency.map(by_latency)) else {
        return Err(tokens.refuse("tc: tbf needs a limit or a latency"));
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

fn fq(tokens: &mut TcTokens<'_>, port: Port) -> Result<Queue, Refusal> {
    const KNOWN: &str = "limit, flow_limit, quantum, initial_quantum, maxrate and pacing";
    let mut config = FqConfig {
        limit: 10_000,
        flow_limit: 100,
        quantum_bytes: 2 * port.frame_bytes,
        initial_quantum_bytes: 10 * port.frame_bytes,
        maxrate_bps: 0,
    };
    while let Some(word) = tokens.next() {
        match word {
            "limit" => config.limit = tokens.number("limit")?,
            "flow_limit" => config.flow_limit = tokens.number("flow_limit")?,
            "quantum" => config.quantum_bytes = tokens.size_u32("quantum")?.max(1),
            "initial_quantum" => config.initial_quantum_bytes = tokens.size_u32(word)?,
            "maxrate" => config.maxrate_bps = tokens.rate("maxrate")?,
            "pacing" => {}
            other => return Err(tokens.unknown("fq", other, KNOWN)),
        }
    }
    Ok(Queue::Fq(config))
}

fn fq_codel(tokens: &mut TcTokens<'_>, port: Port) -> Result<Queue, Refusal> {
    const KNOWN: &str = "limit, quantum, target, interval, drop_batch, ecn and noecn";
    let mut config = FqCodelConfig {
        limit: 10_240,
        quantum_bytes: port.frame_bytes,
        drop_batch: 64,
        codel: CodelConfig {
            target: Span::from_ns(5_000_000),
            interval: Span::from_ns(100_000_000),
            frame_bytes: port.frame_bytes,
        },
    };
    while let Some(word) = tokens.next() {
        match word {
            "limit" => config.limit = tokens.number("limit")?.max(1),
            "quantum" => config.quantum_bytes = tokens.size_u32("quantum")?.max(256),
            "target" => config.codel.target = tokens.time("target")?,
            "interval" => config.codel.interval = tokens.time("interval")?,
            "drop_batch" => config.drop_batch = tokens.number("drop_batch")?,
            // No packet of the simulator can be marked.
            "ecn" | "noecn" => {}
            other => return Err(tokens.unknown("fq_codel", other, KNOWN)),
        }
    }
    Ok(Queue::FqCodel(config))
}

fn netem(tokens: &mut TcTokens<'_>) -> Result<Queue, Refusal> {
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
    let mut has_gap = false;
    let is_number = |word: Option<&str>| {
        word.is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    };
    while let Some(word) = tokens.next() {
        match word {
            "limit" => config.limit = tokens.number("limit")?,
            "delay" => {
                config.delay = tokens.time("delay")?;
                if is_number(tokens.peek()) {
                    config.jitter = tokens.time("jitter")?;
                }
            }
            "loss" => {
                if tokens.peek() == Some("random") {
                    tokens.next();
                }
                config.loss = Chance::per_million(tokens.per_million("loss")?);
            }
            "reorder" => config.reorder = Chance::per_million(tokens.per_million("reorder")?),
            "gap" => {
                config.gap = tokens.number("gap")?;
                has_gap = true;
            }
            other => return Err(tokens.unknown("netem", other, KNOWN)),
        }
        if matches!(word, "loss" | "reorder" | "delay") && is_number(tokens.peek()) {
            return Err(tokens.unknown("netem", "a correlation", KNOWN));
        }
    }
    if config.reorder != Chance::NEVER && config.delay == Span::ZERO {
        return Err(tokens.refuse("tc: netem: reorder needs a delay"));
    }
    if has_gap && config.reorder == Chance::NEVER {
        return Err(tokens.refuse("tc: netem: gap needs reorder"));
    }
    Ok(Queue::Netem(config))
}

fn htb(tokens: &mut TcTokens<'_>, handle: u32) -> Result<Queue, Refusal> {
    let (mut default, mut r2q) = (0, 10);
    while let Some(word) = tokens.next() {
        match word {
            "default" => default = tokens.minor("default")?,
            "r2q" => r2q = tokens.number("r2q")?,
            other => return Err(tokens.unknown("htb", other, "default and r2q")),
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

impl Queue {
    /// Packets of a flow leave at the rate that its socket asks for.
    pub fn paces_flows(&self) -> bool {
        match self {
            Self::Fq(_) => true,
            Self::Psp(psp) => {
                let is_dynamic = |c: &PspClass| matches!(c.kind, PspType::Dynamic { .. });
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
            Self::FqCodel(config) => Qdisc::FqCodel(Box::new(FqCodel::new(config))),
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
                filters: without_preference(filters),
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
            filters: without_preference(self.filters),
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
