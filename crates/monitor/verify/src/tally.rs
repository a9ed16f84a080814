// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts frames by the class that the file gives them, and by what is special about them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::frame::Frame;
use crate::matcher::{Matcher, Verdict};
use crate::tap::Shown;

/// What about a frame may keep a classifier from claiming it. In the order in which they are named
/// if several explain the same frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trait {
    /// Of a session of PPPoE.
    Pppoe,
    /// A fragment that is not its datagram's first.
    Fragment,
    /// A fragment, the first too.
    Fragments,
    /// Two tags or more.
    Tags,
    Tag,
    /// Options of IPv4, or extension headers of IPv6.
    Options,
    /// Forwarded: the rule names the interface that it came in through.
    Interface,
    /// A packet that the device segments.
    Gso,
}

impl Trait {
    pub const ALL: [Self; 8] = [
        Self::Pppoe,
        Self::Fragment,
        Self::Fragments,
        Self::Tags,
        Self::Tag,
        Self::Options,
        Self::Interface,
        Self::Gso,
    ];

    /// Returns what is said of frames that have it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Pppoe => "they are of a PPPoE session",
            Self::Fragment => "they are later fragments, which have no ports",
            Self::Fragments => "they are fragments of longer datagrams",
            Self::Tags => "they have two tags or more (QinQ)",
            Self::Tag => "they have a VLAN tag",
            Self::Options => "they have options or extension headers",
            Self::Interface => "their rule names an interface",
            Self::Gso => "they are GSO packets, which the device segments",
        }
    }
}

/// Frames, estimated from those that were shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sum {
    /// Frames on the wire.
    pub frames: u64,
    /// Their bytes, without FCS.
    pub bytes: u64,
    /// Variance of the estimate of frames, by the sampling.
    #[serde(skip)]
    pub variance: f64,
}

impl Sum {
    fn add(&mut self, of: &Counted) {
        self.frames += of.frames;
        self.bytes += of.bytes;
        self.variance += of.variance;
    }
}

/// What one frame that was shown stands for.
struct Counted {
    frames: u64,
    bytes: u64,
    variance: f64,
}

impl Counted {
    fn new(shown: &Shown<'_>, frame: &Frame) -> Self {
        let (weight, segments) = (u64::from(shown.weight), u64::from(shown.segments));
        let len = u64::from(shown.len_bytes);
        // Each further segment repeats the headers.
        let headers = segments.saturating_sub(1) * headers_of(shown, frame);
        let (w, s) = (f64::from(shown.weight), f64::from(shown.segments));
        Self {
            frames: weight * segments,
            bytes: weight * (len + headers),
            variance: w * (w - 1.0) * s * s,
        }
    }
}

/// Returns the bytes of all headers of a packet that is segmented.
fn headers_of(shown: &Shown<'_>, frame: &Frame) -> u64 {
    let Some(ip) = frame.ip else { return 0 };
    let at = frame.link_bytes + ip.header_bytes;
    let transport = match ip.protocol {
        Some(6) => shown
            .bytes
            .get(at + 12)
            .map_or(20, |byte| usize::from(byte >> 4) * 4),
        _ => 8,
    };
    (at + transport) as u64
}

/// One frame, for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Example {
    /// Addresses and ports.
    pub what: String,
    /// VLANs, from the outermost on.
    pub vlans: Vec<u16>,
    /// Whether it is of a session of PPPoE.
    pub is_pppoe: bool,
    /// Whether it is a later fragment.
    pub is_fragment: bool,
    /// The tunnel whose outermost header was looked at.
    pub tunnel: Option<&'static str>,
    pub len_bytes: u32,
}

impl Example {
    fn new(shown: &Shown<'_>, frame: &Frame) -> Self {
        let what = frame.ip.map_or_else(
            || format!("EtherType {:#06x}", shown.ethertype),
            |ip| {
                let name = match ip.protocol {
                    Some(1) => "icmp".to_owned(),
                    Some(6) => "tcp".to_owned(),
                    Some(17) => "udp".to_owned(),
                    Some(58) => "icmpv6".to_owned(),
                    Some(132) => "sctp".to_owned(),
                    Some(number) => format!("protocol {number}"),
                    None => "IP".to_owned(),
                };
                match ip.ports {
                    Some((from, to)) => {
                        format!("{name} {} port {from} to {} port {to}", ip.from, ip.to)
                    }
                    None => format!("{name} {} to {}", ip.from, ip.to),
                }
            },
        );
        let fragment = frame.ip.and_then(|ip| ip.fragment);
        Self {
            what,
            vlans: frame.vlans.clone(),
            is_pppoe: frame.is_pppoe,
            is_fragment: fragment.is_some_and(|part| !part.is_first),
            tunnel: frame.ip.and_then(|ip| ip.tunnel()),
            len_bytes: shown.len_bytes,
        }
    }

    pub fn words(&self) -> String {
        let mut text = self.what.clone();
        for vlan in &self.vlans {
            text += &format!(", VLAN {vlan}");
        }
        for (is, word) in [
            (self.is_pppoe, "PPPoE"),
            (self.is_fragment, "later fragment"),
        ] {
            if is {
                text += &format!(", {word}");
            }
        }
        if let Some(tunnel) = self.tunnel {
            text += &format!(", {tunnel}");
        }
        text + &format!(", {} bytes", self.len_bytes)
    }
}

/// What the rules give one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matched {
    pub all: Sum,
    /// Of them those that a rule of the sender's cgroup might claim.
    pub unsure: Sum,
    /// Of them those with a trait, and one of them.
    pub traits: BTreeMap<Trait, (Sum, Example)>,
    /// By the place of the rule in the file: frames, and one of them.
    pub rules: BTreeMap<usize, (Sum, Example)>,
    /// The same of those with a trait.
    pub rule_traits: BTreeMap<(usize, Trait), (Sum, Example)>,
    /// The queue that they would be before a bottleneck of the most that the class may send.
    pub queue: Queue,
}

/// A bottleneck that drains at a class's ceil or rate (paper 000, 4.1, where it is the flow's own average):
/// its largest queue is the burstiness. A frame that stands for others of a sample makes it unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Queue {
    bytes: f64,
    last_ns: u64,
    largest_bytes: f64,
    is_sampled: bool,
}

impl Queue {
    fn push(&mut self, time_ns: u64, bytes: u64, weight: u32, rate_bps: u64) {
        let drained = time_ns.saturating_sub(self.last_ns) as f64 * rate_bps as f64 / 8e9;
        self.bytes = (self.bytes - drained).max(0.0) + bytes as f64;
        self.last_ns = self.last_ns.max(time_ns);
        self.largest_bytes = self.largest_bytes.max(self.bytes);
        self.is_sampled |= weight > 1;
    }

    /// Returns the largest queue; `None` if only a sample was seen.
    pub fn largest_bytes(&self) -> Option<u64> {
        (!self.is_sampled).then_some(self.largest_bytes as u64)
    }
}

/// Frames of a device, by the class that the file gives them; 0: none.
#[derive(Debug)]
pub struct Tally {
    matcher: Matcher,
    is_ethernet: bool,
    /// The most that classes may send, by minor number.
    most_bps: BTreeMap<u16, u64>,
    /// By minor number.
    pub classes: BTreeMap<u16, Matched>,
}

impl Tally {
    /// Begins; classes may send so much by their minor number.
    pub fn new(matcher: Matcher, is_ethernet: bool, most_bps: BTreeMap<u16, u64>) -> Self {
        Self {
            matcher,
            is_ethernet,
            most_bps,
            classes: BTreeMap::new(),
        }
    }

    /// Counts a frame; `default` is the minor number of the default class, or 0. Frames are to come
    /// in the order in which they left. O(rules).
    pub fn take(&mut self, shown: &Shown<'_>, default: u16) {
        let frame = if self.is_ethernet {
            Frame::read(shown.bytes, shown.tag)
        } else {
            Frame::read_bare(shown.bytes, shown.ethertype)
        };
        let counted = Counted::new(shown, &frame);
        let verdict = self.matcher.ask(&frame, shown.beside);
        let later = frame
            .ip
            .and_then(|ip| ip.fragment)
            .is_some_and(|part| !part.is_first);
        let minor = verdict.class.unwrap_or(default);
        let class = self.classes.entry(minor).or_default();
        class.all.add(&counted);
        // A sample may have left out the first fragment.
        if later && !verdict.follows && shown.weight > 1 || !verdict.is_sure {
            class.unsure.add(&counted);
        }
        if let Some(most_bps) = self.most_bps.get(&minor) {
            let queue = &mut class.queue;
            queue.push(shown.time_ns, counted.bytes, shown.weight, *most_bps);
        }
        let example = || Example::new(shown, &frame);
        if let Some(rule) = verdict.rule {
            let of_rule = class.rules.entry(rule);
            of_rule
                .or_insert_with(|| (Sum::default(), example()))
                .0
                .add(&counted);
        }
        for which in traits(&frame, shown, &verdict, &self.matcher) {
            if let Some(rule) = verdict.rule {
                let of_both = class.rule_traits.entry((rule, which));
                of_both
                    .or_insert_with(|| (Sum::default(), example()))
                    .0
                    .add(&counted);
            }
            let of_trait = class.traits.entry(which);
            of_trait
                .or_insert_with(|| (Sum::default(), example()))
                .0
                .add(&counted);
        }
    }
}

fn traits(
    frame: &Frame,
    shown: &Shown<'_>,
    verdict: &Verdict,
    matcher: &Matcher,
) -> impl Iterator<Item = Trait> {
    let fragment = frame.ip.and_then(|ip| ip.fragment);
    let names_interface = verdict
        .rule
        .is_some_and(|rule| matcher.names_interface(rule));
    let has: [(Trait, bool); 8] = [
        (Trait::Pppoe, frame.is_pppoe),
        (Trait::Fragment, fragment.is_some_and(|part| !part.is_first)),
        (Trait::Fragments, fragment.is_some()),
        (Trait::Tags, frame.vlans.len() > 1),
        (Trait::Tag, frame.vlans.len() == 1),
        (Trait::Options, frame.ip.is_some_and(|ip| ip.has_options)),
        (Trait::Interface, names_interface),
        (Trait::Gso, shown.segments > 1),
    ];
    has.into_iter()
        .filter(|(_, is)| *is)
        .map(|(which, _)| which)
}
