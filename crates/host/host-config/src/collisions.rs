// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether launch times collide, and how late a frame leaves then at most: the admission of
//! classes with `txtime` on one port.
//!
//! Two entries with known instants on one clock collide if a frame of one is due while the other
//! still occupies the line or, within a class, what its rate allows. Instants repeat, so their
//! distance modulo the greatest common divisor of both periods decides. What is late occupies the
//! line later: the lateness found lengthens each entry's time, and they are compared again until
//! nothing changes.
//!
//! The bound. Frames of a class leave at least their cost at the class's rate apart: a frame waits
//! for the colliding ones of its class, at that rate. On the line it is due with the end of its
//! own time as its deadline, as paced frames are with their virtual finish times (ORDER_NEXT).
//! While the rates fit the line, the demand of deadlines (S. K. Baruah, L. E. Rosier, R. R.
//! Howell, "Algorithms and complexity concerning the preemptive scheduling of hard-real-time
//! tasks on one processor", 1990) leaves these to wait for: the longest frame that has begun; a
//! longest frame of each other class with launch times; its own length, if any class has a
//! deadline before its; what rt classes reserve. To it comes what a mode is off by.
//! docs/decisions/host.md, "Launch times that collide".
//!
//! Cost: O(n^2) for n entries, at most n times.

use serde::Serialize;
use tcpsp::{LaunchClock, Layer, Order, SplitGso, TypeOptions};
use units::{display, ethernet};

use crate::backend::Queues;
use crate::error::Refusal;
use crate::file::{Class, Device};
use crate::launch_times::Launches;

const NS_BITS: u128 = 8_000_000_000;
/// What a burst that is sent whole takes at most, on a line of known rate (`split-gso auto`).
const WHOLE_BURST_NS: u64 = 10_000;

/// Most entries of a device: each is compared with each.
const MOST_ITEMS: usize = 1000;

/// What a plan says of an entry of `launches`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaunchReport {
    /// Name of the class.
    pub class: String,
    /// Number of the entry in the class, from 1.
    pub entry: usize,
    /// Entries whose frames are due while a frame of this one is, as `class` or `class (entry)`.
    /// A class with `txtime` that declares nothing is one.
    pub collides_with: Vec<String>,
    /// How late a frame leaves at most because of other frames; `None`: there is no bound.
    pub late_at_most_ns: Option<u64>,
    /// Why there is none.
    pub unbounded: Option<String>,
}

/// Frames of an instant, as they occupy the port.
struct Item<'a> {
    class: usize,
    entry: usize,
    clock: LaunchClock,
    declared: Option<&'a Launches>,
    /// A frame on the line.
    wire_ns: u64,
    /// A frame at the class's rate.
    class_ns: u64,
    count: u64,
}

/// The line, and what is on it beside launches.
struct Line {
    rate_bps: u64,
    overhead_bytes: u64,
    /// The longest frame that may have begun.
    begun_ns: u64,
    /// Whether frames of paced classes may be due before.
    has_paced: bool,
    reserved_ns: u64,
}

/// Says of each entry what it collides with, and how late its frames are at most. `speed_bps` is
/// the device's, `max_frame_bytes` its longest frame.
///
/// # Errors
/// An entry whose frames may be later than it says, or a class whose launches exceed its rate.
pub fn launches(
    device: &Device,
    speed_bps: Option<u64>,
    max_frame_bytes: u32,
) -> Result<Vec<LaunchReport>, Refusal> {
    let refuse = |sentence: String| Err(Refusal::Wrong(format!("{}: {sentence}", device.name)));
    if device.classes.iter().all(|class| class.launches.is_empty()) {
        return Ok(Vec::new());
    }
    let Some(rate_bps) = device.options.line_rate_bps.or(speed_bps) else {
        return refuse(
            "`line` is \"auto\", and the device names no rate; `launches` expect one".to_owned(),
        );
    };
    let line = Line::new(device, rate_bps, max_frame_bytes);
    let items = items(device, &line, max_frame_bytes);
    if items.len() > MOST_ITEMS {
        return refuse(format!(
            "{} entries of `launches`, expected at most {MOST_ITEMS}",
            items.len()
        ));
    }
    for (number, class) in device.classes.iter().enumerate() {
        let load: f64 = items
            .iter()
            .filter(|item| item.class == number)
            .filter_map(Item::load)
            .sum();
        if load > 1.0 {
            return refuse(format!(
                "class {}: `launches` take {:.1} % of its rate, expected at most 100 %",
                class.name,
                load * 100.0
            ));
        }
    }
    let unbounded = unbounded(device, &line, max_frame_bytes);
    let (late_ns, collides) = settle(&items, &line);
    let mut reports = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let Some(declared) = item.declared else {
            continue;
        };
        let others = (0..items.len()).filter(|j| *j != i && collides[i][*j]);
        let report = LaunchReport {
            class: device.classes[item.class].name.clone(),
            entry: item.entry + 1,
            collides_with: others.map(|j| items[j].label(&device.classes)).collect(),
            late_at_most_ns: unbounded.is_none().then_some(late_ns[i]),
            unbounded: unbounded.clone(),
        };
        if let Some(most_ns) = declared.late_at_most_ns {
            let time = |ns: u64| display::time(ns as f64 / 1e9);
            let may = match (&report.unbounded, report.late_at_most_ns) {
                (None, Some(late_ns)) if late_ns <= most_ns => None,
                (None, Some(late_ns)) => Some(format!("may leave {} late", time(late_ns))),
                (why, _) => Some(format!(
                    "may leave late without a bound: {}",
                    why.as_deref().unwrap_or_default()
                )),
            };
            if let Some(may) = may {
                let with = if report.collides_with.is_empty() {
                    "no other launch".to_owned()
                } else {
                    report.collides_with.join(", ")
                };
                return refuse(format!(
                    "{}: frames {may}, expected at most {}; collides with {with}",
                    item.label(&device.classes),
                    time(most_ns)
                ));
            }
        }
        reports.push(report);
    }
    Ok(reports)
}

impl Line {
    fn new(device: &Device, rate_bps: u64, max_frame_bytes: u32) -> Self {
        let options = &device.options;
        let overhead_bytes = u64::from(options.overhead_bytes);
        let has_paced = device.classes.iter().any(|class| {
            let by_type = &class.options.by_type;
            matches!(by_type, TypeOptions::Paced { .. }) && launch_clock(by_type).is_none()
        });
        let reserved: u64 = device
            .classes
            .iter()
            .map(|class| match class.options.by_type {
                TypeOptions::Rt { reserve_bytes } => reserve_bytes,
                _ => 0,
            })
            .fold(0, u64::saturating_add);
        // Frames as short as can be cost most on the wire.
        let short = u64::from(ethernet::FRAME_MIN_BYTES);
        let reserved =
            u128::from(reserved) * u128::from(short + overhead_bytes) / u128::from(short);
        let mut line = Self {
            rate_bps,
            overhead_bytes,
            begun_ns: 0,
            has_paced,
            reserved_ns: ns_of(u64::try_from(reserved).unwrap_or(u64::MAX), rate_bps),
        };
        // Best effort is there without a class; the guard band sends none that ends too late.
        let longest_ns = line.wire_ns(max_frame_bytes);
        line.begun_ns = match (options.guard, options.split_gso) {
            (true, _) if !has_paced && reserved == 0 => 0,
            (true, _) | (false, SplitGso::On) => longest_ns,
            (false, SplitGso::Auto) => longest_ns.max(WHOLE_BURST_NS),
            (false, SplitGso::Off) => ns_of(256 * 1024, rate_bps).max(longest_ns),
        };
        line
    }

    fn wire_ns(&self, frame_bytes: u32) -> u64 {
        let bytes = u64::from(frame_bytes.max(ethernet::FRAME_MIN_BYTES)) + self.overhead_bytes;
        ns_of(bytes, self.rate_bps)
    }
}

/// Returns the clock of a class's launch times. Where they are deadlines, frames leave as those of
/// any paced class do.
fn launch_clock(options: &TypeOptions) -> Option<LaunchClock> {
    match options {
        TypeOptions::Paced {
            launch: Some(launch),
            ..
        } if !launch.is_deadline => Some(launch.clock),
        _ => None,
    }
}

/// Returns how long bytes take, rounded up.
fn ns_of(bytes: u64, rate_bps: u64) -> u64 {
    let ns = (u128::from(bytes) * NS_BITS).div_ceil(u128::from(rate_bps.max(1)));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

impl Item<'_> {
    /// Returns which part of its class's rate it takes.
    fn load(&self) -> Option<f64> {
        let every_ns = self.declared?.every_ns;
        Some(self.count as f64 * self.class_ns as f64 / every_ns as f64)
    }

    fn label(&self, classes: &[Class]) -> String {
        let class = &classes[self.class];
        match class.launches.len() {
            0 | 1 => class.name.clone(),
            _ => format!("{} ({})", class.name, self.entry + 1),
        }
    }

    /// Returns whether a frame of one is due while the other occupies the port; each has so much
    /// lateness.
    fn meets(&self, other: &Self, late_ns: u64, other_late_ns: u64) -> bool {
        let instants = |item: &Self| Some((item.declared?.every_ns, item.declared?.at_ns?));
        let (Some((every, at)), Some((other_every, other_at))) = (instants(self), instants(other))
        else {
            return true;
        };
        if self.clock != other.clock {
            return true;
        }
        let occupies = |item: &Self, late_ns: u64| {
            let frame_ns = if self.class == other.class {
                item.class_ns
            } else {
                item.wire_ns
            };
            late_ns.saturating_add(frame_ns)
        };
        let both = gcd(every, other_every);
        let after = (other_at % both + both - at % both) % both;
        after < occupies(self, late_ns) || (both - after) < occupies(other, other_late_ns)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the entries, and the classes with launch times that declare nothing.
fn items<'a>(device: &'a Device, line: &Line, max_frame_bytes: u32) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    for (number, class) in device.classes.iter().enumerate() {
        let by_type = &class.options.by_type;
        let (Some(clock), TypeOptions::Paced { rate_bps, .. }) = (launch_clock(by_type), by_type)
        else {
            continue;
        };
        let item = |entry, declared: Option<&'a Launches>, size_bytes: u32| Item {
            class: number,
            entry,
            clock,
            declared,
            wire_ns: line.wire_ns(size_bytes),
            class_ns: ns_of(counted(device, size_bytes), *rate_bps),
            count: declared.map_or(1, |declared| declared.count.into()),
        };
        let entries = class.launches.iter().enumerate();
        items.extend(
            entries.map(|(entry, declared)| item(entry, Some(declared), declared.size_bytes)),
        );
        if class.launches.is_empty() {
            items.push(item(0, None, max_frame_bytes));
        }
    }
    items
}

/// Returns the bytes that a class is charged for a frame.
fn counted(device: &Device, frame_bytes: u32) -> u64 {
    let frame_bytes = u64::from(frame_bytes);
    match device.options.layer {
        Layer::Link => frame_bytes,
        Layer::Wire => frame_bytes + u64::from(device.options.overhead_bytes),
        Layer::Ip => frame_bytes.saturating_sub(ethernet::HEADER_BYTES.into()),
    }
}

/// Returns why there is no bound.
fn unbounded(device: &Device, line: &Line, max_frame_bytes: u32) -> Option<String> {
    if device.queues == Queues::Mq {
        return Some("the queues of mq share the line, and none knows the others".to_owned());
    }
    if device.options.order != Order::Next {
        return Some("`order` is not \"next\"".to_owned());
    }
    let mut wire_bps = 0.0;
    for class in &device.classes {
        match class.options.by_type {
            TypeOptions::Paced { rate_bps, .. } => {
                let frame = counted(device, max_frame_bytes).max(1) as f64;
                let wire = f64::from(max_frame_bytes) + line.overhead_bytes as f64;
                let least = class.launches.iter().map(|l| {
                    let counted = counted(device, l.size_bytes).max(1) as f64;
                    let wire = l.size_bytes.max(ethernet::FRAME_MIN_BYTES);
                    (f64::from(wire) + line.overhead_bytes as f64) / counted
                });
                wire_bps += rate_bps as f64 * least.fold(wire / frame, f64::max);
            }
            TypeOptions::Dynamic(_) => {
                return Some(format!(
                    "the dynamic class {} paces as TCP asks",
                    class.name
                ));
            }
            // What it is guaranteed its classes are.
            TypeOptions::Group { .. }
            | TypeOptions::Normal { .. }
            | TypeOptions::Rt { .. }
            | TypeOptions::Nrt { .. } => {}
        }
    }
    wire_bps +=
        line.reserved_ns as f64 / device.options.period_ns.max(1) as f64 * line.rate_bps as f64;
    (wire_bps > line.rate_bps as f64).then(|| {
        format!(
            "the classes may take {} of the wire, which has {}",
            display::rate(wire_bps),
            display::rate(line.rate_bps as f64)
        )
    })
}

/// Returns the lateness of each entry and what it collides with.
fn settle(items: &[Item<'_>], line: &Line) -> (Vec<u64>, Vec<Vec<bool>>) {
    let mut late_ns = vec![line.begun_ns.saturating_add(line.reserved_ns); items.len()];
    loop {
        let collides = joined(items, &late_ns);
        let next: Vec<u64> = (0..items.len())
            .map(|i| lateness(items, line, &collides[i], i))
            .collect();
        if next == late_ns {
            let direct = |i: usize, j: usize| items[i].meets(&items[j], late_ns[i], late_ns[j]);
            let pairs = (0..items.len())
                .map(|i| (0..items.len()).map(|j| i != j && direct(i, j)).collect());
            let pairs = pairs.collect();
            return (late_ns, pairs);
        }
        late_ns = next;
    }
}

/// Returns which entries collide, one after the other. Sets only grow with lateness, so this ends.
fn joined(items: &[Item<'_>], late_ns: &[u64]) -> Vec<Vec<bool>> {
    let mut set: Vec<usize> = (0..items.len()).collect();
    for i in 0..items.len() {
        for j in 0..i {
            if set[i] != set[j] && items[i].meets(&items[j], late_ns[i], late_ns[j]) {
                let (keep, gone) = (set[j], set[i]);
                set.iter_mut()
                    .filter(|s| **s == gone)
                    .for_each(|s| *s = keep);
            }
        }
    }
    let same = |i: usize| set.iter().map(|s| *s == set[i]).collect();
    (0..items.len()).map(same).collect()
}

fn lateness(items: &[Item<'_>], line: &Line, collides: &[bool], i: usize) -> u64 {
    let own = &items[i];
    let mut late_ns = line.begun_ns.saturating_add(line.reserved_ns);
    let mut longest = std::collections::BTreeMap::new();
    for (item, collides) in items.iter().zip(collides) {
        if item.class == own.class {
            let frames_ns = item.class_ns.saturating_mul(item.count);
            late_ns = late_ns.saturating_add(if *collides { frames_ns } else { 0 });
        } else if *collides || line.has_paced {
            let ns: &mut u64 = longest.entry(item.class).or_default();
            *ns = item.wire_ns.max(*ns);
        }
    }
    late_ns = late_ns.saturating_sub(own.class_ns);
    let is_alone = longest.is_empty() && !line.has_paced && line.reserved_ns == 0;
    let others_ns = longest
        .values()
        .fold(0u64, |sum, ns| sum.saturating_add(*ns));
    late_ns
        .saturating_add(others_ns)
        .saturating_add(if is_alone { 0 } else { own.wire_ns })
}
