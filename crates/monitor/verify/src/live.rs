// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verifies a device: reads what its classes counted, taps it for a while, reads again.

use std::collections::BTreeMap;
use std::io;

use host_config::{Device, Rule};
use linux_io::clock::{monotonic_ns, sleep_until};
use linux_io::links::{Link, named};
use tcpsp::account::Reasons;
use tcpsp::ports::Port;
use tcpsp::{Match, Tc};

use crate::matcher::Matcher;
use crate::report::{ClassCounted, Report, Window, report};
use crate::tally::Tally;
use crate::tap::{self, Tap};

/// How long to look.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub time_ns: u64,
    /// Frames a second that a processor shows one by one; beyond, it shows a sample.
    pub frames_per_s: u32,
}

/// Between two looks at the ring, which holds 40,000 frames.
const LOOK_NS: u64 = 5_000_000;
/// Frames of one look.
const DRAIN_MOST: usize = 50_000;

/// Why nothing could be verified.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Tap(#[from] tap::Error),
    #[error(transparent)]
    Backend(#[from] backend::Error),
    #[error("clock: {0}")]
    Clock(#[from] io::Error),
    #[error("{0}: no psp is there; expected one, as `pspacer apply` makes it")]
    NoPsp(String),
}

/// What the classes have counted at an instant.
struct Reading {
    ports: Vec<Port>,
    before_ns: u64,
    after_ns: u64,
}

impl Reading {
    fn new(tc: &mut Tc, index: u32) -> Result<Self, Error> {
        let before_ns = monotonic_ns()?;
        let mut ports = backend::ports(tc)?;
        ports.retain(|port| port.index == index);
        Ok(Self {
            ports,
            before_ns,
            after_ns: monotonic_ns()?,
        })
    }

    /// Frames and bytes by minor number.
    fn classes(&self) -> BTreeMap<u16, (u64, u64)> {
        let mut classes = BTreeMap::new();
        for class in self.ports.iter().flat_map(|port| &port.classes) {
            let sum: &mut (u64, u64) = classes.entry(class.id.minor()).or_default();
            sum.0 += class.counters.sent_packets;
            sum.1 += class.counters.sent_bytes;
        }
        classes
    }

    /// The most that a class may send, by minor number: its ceil, else its rate.
    fn most_bps(&self) -> BTreeMap<u16, u64> {
        let mut most = BTreeMap::new();
        for class in self.ports.iter().flat_map(|port| &port.classes) {
            let (minor, stats) = (class.id.minor(), &class.psp.stats);
            let of_queue = stats.rate_bps.max(stats.ceil_bps);
            let of_class: &mut u64 = most.entry(minor).or_default();
            *of_class = of_queue.max(*of_class);
        }
        most.retain(|_, most_bps| *most_bps > 0);
        most
    }

    /// The rate of a class in force; 0: it has none.
    fn rate_bps(&self, minor: u16) -> u64 {
        let mut classes = self.ports.iter().flat_map(|port| &port.classes);
        let class = classes.find(|class| class.id.minor() == minor);
        class.map_or(0, |class| class.psp.stats.rate_bps)
    }

    /// Frames that classes have counted and that wait below: departure times are kept by fq.
    fn waiting(&self) -> u64 {
        let ports = self.ports.iter();
        ports
            .map(|port| u64::from(port.counters.waiting_packets))
            .sum()
    }
}

/// Verifies a device by what the file says of it; `reasons` is what the kernel's tables say.
pub fn verify(
    tc: &mut Tc,
    device: &Device,
    links: &[Link],
    link: &Link,
    reasons: Reasons,
    wanted: Wanted,
) -> Result<Report, Error> {
    let index_of = |name: &str| named(links, name).map(|link| link.index);
    let minors: Vec<u16> = device.classes.iter().map(|class| class.minor).collect();
    let matcher = Matcher::new(&device.rules, &minors, &index_of);
    let default = device.options.default_minor;
    let mut tap = Tap::open(&link.name, link.index, wanted.frames_per_s)?;
    let first = Reading::new(tc, link.index)?;
    let mut tally = Tally::new(matcher, link.is_ethernet, first.most_bps());
    if first.ports.is_empty() {
        return Err(Error::NoPsp(link.name.clone()));
    }
    let middle = |reading: &Reading| reading.before_ns.midpoint(reading.after_ns);
    let start_ns = middle(&first);
    let end_ns = first.after_ns + wanted.time_ns;
    let before = tap.totals()?;
    let mut due_ns = first.after_ns;
    while due_ns < end_ns {
        due_ns = (due_ns + LOOK_NS).min(end_ns);
        sleep_until(due_ns)?;
        tap.drain(DRAIN_MOST, &mut |shown| {
            if shown.time_ns >= start_ns {
                tally.take(shown, default);
            }
        });
    }
    let last = Reading::new(tc, link.index)?;
    let stop_ns = middle(&last);
    let after = tap.totals()?;
    tap.drain(usize::MAX, &mut |shown| {
        if (start_ns..stop_ns).contains(&shown.time_ns) {
            tally.take(shown, default);
        }
    });
    let window = Window {
        time_ns: stop_ns.saturating_sub(start_ns),
        waiting_frames: first.waiting() + last.waiting(),
        reading_ns: last.after_ns - last.before_ns + first.after_ns - first.before_ns,
        default,
        classes: counted(device, &first, &last),
        reasons,
        rules: device
            .rules
            .iter()
            .map(|rule| words(&rule.matching))
            .collect(),
    };
    let packets = after.frames - before.frames;
    let lost = after.lost - before.lost;
    let shown = after.shown - before.shown;
    let share = if packets == 0 {
        1.0
    } else {
        shown as f64 / packets as f64
    };
    Ok(report(
        &link.name,
        &tally.classes,
        &window,
        (lost, packets),
        share,
        after.gaps - before.gaps,
    ))
}

fn counted(device: &Device, first: &Reading, last: &Reading) -> BTreeMap<u16, ClassCounted> {
    let (before, after) = (first.classes(), last.classes());
    let classes = device.classes.iter().filter(|class| {
        // A group has no frames of its own.
        class.options.class_type() != tcpsp::ClassType::Group
    });
    let classes = classes.map(|class| {
        let then = before.get(&class.minor).copied().unwrap_or_default();
        let now = after.get(&class.minor).copied().unwrap_or_default();
        let counted = ClassCounted {
            name: class.name.clone(),
            frames: now.0.saturating_sub(then.0),
            bytes: now.1.saturating_sub(then.1),
            rate_bps: last.rate_bps(class.minor),
            has_senders: has_senders(&device.rules, class.minor),
        };
        (class.minor, counted)
    });
    classes.collect()
}

/// Returns whether frames come to a class by a rule of the sender's cgroup. By net_cls they come to any:
/// of one that other rules name this is not said.
fn has_senders(rules: &[Rule], minor: u16) -> bool {
    let mut own = rules.iter().filter(|rule| rule.class == minor).peekable();
    match own.peek() {
        None => rules.iter().any(|rule| rule.matching == Match::Cgroup),
        Some(_) => own.any(|rule| matches!(rule.matching, Match::Sender(_))),
    }
}

/// Returns a rule as words of the file.
fn words(matching: &Match) -> String {
    let flower = match matching {
        Match::Mark(mark) => return format!("mark = {mark}"),
        Match::Cgroup => return "net_cls = true".to_owned(),
        Match::Sender(sender) => return format!("cgroup = \"{}\"", sender.path),
        Match::Flower(flower) => flower,
    };
    let mut words = Vec::new();
    words.extend(flower.vlan.map(|vlan| format!("vlan = {vlan}")));
    words.extend(flower.source.map(|from| format!("from = \"{from}\"")));
    words.extend(flower.destination.map(|to| format!("to = \"{to}\"")));
    words.extend(
        flower
            .protocol
            .map(|protocol| format!("protocol = \"{}\"", protocol.word())),
    );
    words.extend(
        flower
            .source_ports
            .map(|ports| format!("from_port = \"{ports}\"")),
    );
    words.extend(
        flower
            .destination_ports
            .map(|ports| format!("to_port = \"{ports}\"")),
    );
    words.extend(flower.dscp.map(|dscp| format!("dscp = {dscp}")));
    words.extend(
        flower
            .interface
            .iter()
            .map(|interface| format!("interface = \"{}\"", interface.name)),
    );
    format!("{{ {} }}", words.join(", "))
}
