// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wanted of a device: what its table in the file says, if departure times can do it.

use std::collections::BTreeMap;

use host_config::{Class, Device, Facts, Queues, Rule};
use tcpsp::{ClassOptions, Layer, Match, Mode, QdiscOptions, SplitGso, TypeOptions};
use units::display;

use super::error::Refusal;

/// Most classes of a device.
pub(crate) const CLASSES_MAX: usize = 4096;
/// Most rules of a device.
pub(crate) const RULES_MAX: usize = 1024;
/// How long a packet may wait if its class says nothing.
const HORIZON_NS: u64 = 2_000_000_000;
/// The longest wait: fq drops packets of 10 s and more.
const HORIZON_NS_MAX: u64 = 9_000_000_000;
/// The lowest rate: the clock holds a burst of 256 KiB at it.
const RATE_BPS_MIN: u64 = 1000;
/// Ethernet's header, and its shortest frame without FCS.
const LINK_BYTES: u32 = 14;
const MIN_BYTES: u32 = 60;

/// A class with a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacedClass {
    /// Its rate.
    pub rate_bps: u64,
    /// Packets that would wait for longer are dropped when they come.
    pub horizon_ns: u64,
}

/// What is wanted of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Transmit queues that get an fq each, below mq; 0: one fq at the root.
    pub queues: u16,
    /// Its paced classes, by minor number.
    pub paced: BTreeMap<u16, PacedClass>,
    /// Minor numbers of its classes without a rate.
    pub normal: Vec<u16>,
    /// Which packets go to which class; the first that matches decides.
    pub rules: Vec<Rule>,
    /// Class of packets that no rule claims; 0: none.
    pub default_minor: u16,
    /// Whether net_cls.classid of the sender's cgroup names the class of such packets.
    pub net_cls: bool,
    /// What rates count: 0 the frame, 1 the wire, 2 IP.
    pub layer: u32,
    /// Overhead of a frame on the wire.
    pub overhead_bytes: u32,
    /// Shortest frame.
    pub min_bytes: u32,
    /// Bytes of the link header.
    pub link_bytes: u32,
    /// Names of classes, by minor number.
    pub names: BTreeMap<u16, String>,
    /// What a person should know.
    pub notes: Vec<String>,
}

impl Config {
    /// Returns what a file wants of a device.
    ///
    /// # Errors
    /// The first thing that departure times cannot do, by key and value. O(classes + rules).
    pub fn new(device: &Device, facts: &Facts) -> Result<Self, Refusal> {
        check_options(&device.options, facts)?;
        if let Some(bytes) = device.byte_queue_limit_min_bytes {
            return refuse(format!(
                "`byte_queue_limit_min` is {bytes} bytes, expected none by backend \"edt\": it \
                 sends no gap frames"
            ));
        }
        let mut paced = BTreeMap::new();
        let mut normal = Vec::new();
        for class in &device.classes {
            match paced_class(class)? {
                Some(class_paced) => drop(paced.insert(class.minor, class_paced)),
                None => normal.push(class.minor),
            }
        }
        if device.classes.len() > CLASSES_MAX {
            return refuse(format!(
                "{} classes, expected at most {CLASSES_MAX} by backend \"edt\"",
                device.classes.len()
            ));
        }
        let net_cls = device
            .rules
            .iter()
            .any(|rule| rule.matching == Match::Cgroup);
        let rules = device.rules.iter();
        let rules: Vec<Rule> = rules
            .filter(|rule| rule.matching != Match::Cgroup)
            .cloned()
            .collect();
        if rules.len() > RULES_MAX {
            return refuse(format!(
                "{} matches, expected at most {RULES_MAX} by backend \"edt\"",
                rules.len()
            ));
        }
        let overhead_bytes = if device.has_overhead {
            device.options.overhead_bytes
        } else {
            QdiscOptions::default_of(facts.is_ethernet).overhead_bytes
        };
        let mut notes = vec![
            "the device has no line here: classes do not borrow, and nothing holds packets back \
             when all classes together want more than the device sends"
                .to_owned(),
        ];
        if !normal.is_empty() {
            notes.push(
                "packets of normal classes leave at once, in fq's order, also before paced ones \
                 that are due"
                    .to_owned(),
            );
        }
        let (link_bytes, min_bytes) = if facts.is_ethernet {
            (LINK_BYTES, MIN_BYTES)
        } else {
            (0, 0)
        };
        Ok(Self {
            queues: match device.queues {
                Queues::Root => 0,
                Queues::Mq => facts.queues,
            },
            paced,
            normal,
            rules,
            default_minor: device.options.default_minor,
            net_cls,
            layer: layer_word(device.options.layer),
            overhead_bytes,
            min_bytes,
            link_bytes,
            names: device
                .classes
                .iter()
                .map(|class| (class.minor, class.name.clone()))
                .collect(),
            notes,
        })
    }
}

/// Returns the program's number of a layer, `enum edt_layer`.
fn layer_word(layer: Layer) -> u32 {
    match layer {
        Layer::Link => 0,
        Layer::Wire => 1,
        Layer::Ip => 2,
    }
}

fn refuse<T>(sentence: String) -> Result<T, Refusal> {
    Err(Refusal(sentence))
}

/// Refuses options of the device that departure times do not have.
fn check_options(options: &QdiscOptions, facts: &Facts) -> Result<(), Refusal> {
    if let Some(line_bps) = options.line_rate_bps {
        return refuse(format!(
            "`line` is {}, expected \"auto\" by backend \"edt\": nothing limits all classes \
             together",
            display::rate(line_bps as f64)
        ));
    }
    if !matches!(options.mode, Mode::Auto | Mode::Timer) {
        return refuse(format!(
            "`mode` is \"{}\", expected \"auto\" or \"timer\" by backend \"edt\": it sends no \
             gap frames",
            options.mode.word()
        ));
    }
    if options.split_gso == SplitGso::On {
        return refuse(
            "`split_gso` is \"on\", expected \"auto\" or \"off\" by backend \"edt\": a burst of \
             GSO gets one departure time"
                .to_owned(),
        );
    }
    let none = QdiscOptions::default_of(facts.is_ethernet);
    let others = [
        ("order", options.order != none.order),
        ("gap", options.gap != none.gap),
        ("guard", options.guard != none.guard),
        ("period", options.period_ns != none.period_ns),
        ("budget", options.budget != none.budget),
        ("align", options.align_ns != none.align_ns),
    ];
    match others.iter().find(|(_, differs)| *differs) {
        Some((key, _)) => refuse(format!(
            "`{key}` is set, expected nothing by backend \"edt\": departure times have none"
        )),
        None => Ok(()),
    }
}

/// Returns a class with a rate, or `None` if it has none.
fn paced_class(class: &Class) -> Result<Option<PacedClass>, Refusal> {
    let ClassOptions {
        by_type,
        deadline_ns,
    } = &class.options;
    let name = &class.name;
    match by_type {
        TypeOptions::Paced {
            launch: Some(launch),
            ..
        } => refuse(format!(
            "class {name}: `txtime` is \"{}\", expected none by backend \"edt\": frames leave \
             when the class's clock says",
            launch.clock
        )),
        TypeOptions::Paced {
            rate_bps,
            ceil_bps,
            launch: None,
        } => {
            if let Some(ceil_bps) = ceil_bps.filter(|ceil_bps| ceil_bps != rate_bps) {
                return refuse(format!(
                    "class {name}: `ceil` is {}, expected none by backend \"edt\": classes do \
                     not borrow",
                    display::rate(ceil_bps as f64)
                ));
            }
            if *rate_bps < RATE_BPS_MIN {
                return refuse(format!(
                    "class {name}: `rate` is {}, expected at least 1kbit by backend \"edt\"",
                    display::rate(*rate_bps as f64)
                ));
            }
            let horizon_ns = deadline_ns.unwrap_or(HORIZON_NS);
            if horizon_ns > HORIZON_NS_MAX {
                return refuse(format!(
                    "class {name}: `deadline` is {}, expected at most 9s by backend \"edt\"",
                    display::time(horizon_ns as f64 / 1e9)
                ));
            }
            Ok(Some(PacedClass {
                rate_bps: *rate_bps,
                horizon_ns,
            }))
        }
        TypeOptions::Normal { quantum_bytes } => {
            let key = match (quantum_bytes, deadline_ns) {
                (Some(_), _) => "quantum",
                (None, Some(_)) => "deadline",
                (None, None) => return Ok(None),
            };
            refuse(format!(
                "class {name}: `{key}` is set, expected none by backend \"edt\": packets of a \
                 normal class leave at once"
            ))
        }
        _ => refuse(format!(
            "class {name}: `type` is \"{}\", expected \"paced\" or \"normal\" by backend \"edt\"",
            class.options.class_type().word()
        )),
    }
}
