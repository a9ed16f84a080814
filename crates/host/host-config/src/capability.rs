// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each backend cannot do, by key and value of the host's file.

use tcpsp::{ClassOptions, Match, Mode, QdiscOptions, SplitGso, TypeOptions};
use units::display;

use crate::backend::{Backend, Queues};
use crate::bursts::burst_note;
use crate::error::Refusal;
use crate::file::{Class, Device, MOST_RULES};
use crate::limits::{EDT_RATE_BPS_MIN, EDT_WAIT_NS_MAX};
use crate::match_lists::{listed, lists};

/// Most matches of a device without the module that are in tables, by prefixes of one length.
const ADDRESSES_MAX: usize = 65_536;

/// Refuses what a device's table wants and the backend cannot do.
///
/// # Errors
/// The first such thing, by key and value. O(classes + rules).
pub fn check_backend(device: &Device, backend: Backend, is_ethernet: bool) -> Result<(), Refusal> {
    let matches = device.rules.iter().map(|rule| &rule.matching);
    let (in_list, in_tables) = listed(matches.clone());
    let (most, count) = if backend == Backend::Module {
        (MOST_RULES, lists(matches).len())
    } else if in_list > MOST_RULES {
        (MOST_RULES, in_list)
    } else {
        (ADDRESSES_MAX, in_tables)
    };
    if count > most {
        return Err(Refusal::Wrong(format!(
            "{count} filters of a device, expected at most {most} by backend \"{}\"; one of ports \
             without protocol and address takes four{}",
            backend.word(),
            if backend == Backend::Module {
                ", addresses of one length that follow each other take one together"
            } else {
                ""
            }
        )));
    }
    let by = By(backend);
    device.classes.iter().try_for_each(|class| by.mark(class))?;
    if device.queues == Queues::Mq {
        by.queues(device)?;
    }
    if backend == Backend::Bpf && device.options.default_minor == 0 && !device.classes.is_empty() {
        let why = "it drops what no match claims, ARP and ssh too";
        return by.refuse(
            "`default` is not set".to_owned(),
            "the name of a class",
            Some(why),
        );
    }
    if backend == Backend::Module {
        return Ok(());
    }
    if let Some(bytes) = device.byte_queue_limit_min_bytes {
        let value = format!("`byte_queue_limit_min` is {bytes} bytes");
        return by.refuse(value, "none", Some("it sends no gap frames"));
    }
    by.options(&device.options, is_ethernet)?;
    device.classes.iter().try_for_each(|class| by.class(class))
}

/// Returns what a person should know about the backend of a device.
pub fn backend_notes(device: &Device, backend: Backend, burst_bytes: u64) -> Vec<String> {
    let mut notes = Vec::new();
    let mut classes = device.classes.iter();
    let has_launch_times = |class: &&Class| {
        let by_type = &class.options.by_type;
        matches!(
            by_type,
            TypeOptions::Paced {
                launch: Some(_),
                ..
            }
        )
    };
    let default = classes.find(|class| class.minor == device.options.default_minor);
    if let Some(class) = default.filter(has_launch_times) {
        notes.push(format!(
            "`default` is class {}, which has `txtime`: packets that no match claims and that have \
             no launch time (ARP, PTP, ssh) are dropped",
            class.name
        ));
    }
    if backend == Backend::Edt {
        notes.push(
            "the device has no line here: classes do not borrow, and nothing holds packets back \
             when all classes together want more than the device sends"
                .to_owned(),
        );
        let mut classes = device.classes.iter();
        if classes.any(|class| matches!(class.options.by_type, TypeOptions::Normal { .. })) {
            notes.push(
                "packets of normal classes leave at once, in fq's order, also before paced ones \
                 that are due"
                    .to_owned(),
            );
        }
    }
    if backend != Backend::Module {
        let paced = device.classes.iter().filter_map(|class| {
            let TypeOptions::Paced { rate_bps, .. } = class.options.by_type else {
                return None;
            };
            Some((class.name.as_str(), rate_bps))
        });
        notes.extend(burst_note(&device.name, burst_bytes, paced));
    }
    notes
}

/// Who refuses.
struct By(Backend);

impl By {
    fn refuse<T>(&self, value: String, expected: &str, why: Option<&str>) -> Result<T, Refusal> {
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        let word = self.0.word();
        Err(Refusal::Wrong(format!(
            "{value}, expected {expected} by backend \"{word}\"{why}"
        )))
    }

    fn options(&self, options: &QdiscOptions, is_ethernet: bool) -> Result<(), Refusal> {
        let is_edt = self.0 == Backend::Edt;
        if let (Some(line_bps), true) = (options.line_rate_bps, is_edt) {
            let value = format!("`line` is {}", display::rate(line_bps as f64));
            let why = "nothing limits all classes together";
            return self.refuse(value, "\"auto\"", Some(why));
        }
        if !matches!(options.mode, Mode::Auto | Mode::Timer) {
            let value = format!("`mode` is \"{}\"", options.mode.word());
            let expected = "\"auto\" or \"timer\"";
            return self.refuse(value, expected, Some("it sends no gap frames"));
        }
        if options.split_gso == SplitGso::On {
            let value = "`split_gso` is \"on\"".to_owned();
            let why = if is_edt {
                "a burst of GSO gets one departure time"
            } else {
                "nothing in BPF cuts a burst of GSO"
            };
            return self.refuse(value, "\"auto\" or \"off\"", Some(why));
        }
        let none = QdiscOptions::default_of(is_ethernet);
        let others = [
            ("gap", options.gap != none.gap),
            ("order", is_edt && options.order != none.order),
            ("guard", is_edt && options.guard != none.guard),
            ("period", is_edt && options.period_ns != none.period_ns),
            ("budget", is_edt && options.budget != none.budget),
            ("align", is_edt && options.align_ns != none.align_ns),
        ];
        match others.iter().find(|(_, differs)| *differs) {
            Some((key, _)) => self.refuse(format!("`{key}` is set"), "nothing", None),
            None => Ok(()),
        }
    }

    /// Refuses what classes of all transmit queues together cannot be.
    fn queues(&self, device: &Device) -> Result<(), Refusal> {
        let value = || "`queues` is \"mq\"".to_owned();
        if self.0 == Backend::Bpf {
            let why = "each queue would have rates of its own";
            return self.refuse(value(), "\"root\"", Some(why));
        }
        if !matches!(device.options.mode, Mode::Auto | Mode::Timer) {
            let why = "no queue knows when frames of others are on the wire";
            let value = format!("`mode` is \"{}\"", device.options.mode.word());
            return Err(Refusal::Wrong(format!(
                "{value}, expected \"auto\" or \"timer\" with `queues` \"mq\": {why}"
            )));
        }
        let mut rules = device.rules.iter();
        if self.0 == Backend::Module && rules.any(|rule| rule.matching == Match::Cgroup) {
            let value = "`net_cls` is true with `queues` \"mq\"".to_owned();
            let why = "the classes of each queue have other numbers";
            return self.refuse(value, "false", Some(why));
        }
        let reserves = |class: &&Class| {
            matches!(
                class.options.by_type,
                TypeOptions::Rt { .. }
                    | TypeOptions::Nrt { .. }
                    | TypeOptions::Paced {
                        launch: Some(_),
                        ..
                    }
            )
        };
        match device.classes.iter().find(reserves) {
            Some(class) => Err(Refusal::Wrong(format!(
                "class {}: expected no period and no launch times with `queues` \"mq\": they are \
                 those of one queue",
                class.name
            ))),
            None => Ok(()),
        }
    }

    fn mark(&self, class: &Class) -> Result<(), Refusal> {
        match class.options.mark_ns {
            Some(mark) if self.0 != Backend::Edt => {
                let value = format!("class {}: `mark` is \"{mark}\"", class.name);
                self.refuse(value, "none", Some("it marks no packets"))
            }
            _ => Ok(()),
        }
    }

    fn class(&self, class: &Class) -> Result<(), Refusal> {
        let ClassOptions {
            by_type,
            deadline_ns,
            ..
        } = &class.options;
        let name = &class.name;
        let refuse = |value: String, expected: &str, why: Option<&str>| {
            self.refuse(format!("class {name}: {value}"), expected, why)
        };
        let kind = class.options.class_type().word();
        match by_type {
            TypeOptions::Paced {
                launch: Some(launch),
                ..
            } => refuse(format!("`txtime` is \"{}\"", launch.clock), "none", None),
            TypeOptions::Group { .. } => {
                let expected = "no [[device.group]]";
                let (word, why) = (self.0.word(), "only the module has groups");
                Err(Refusal::Wrong(format!(
                    "group {name}: expected {expected} by backend \"{word}\": {why}"
                )))
            }
            TypeOptions::Dynamic(_) => {
                let expected = match self.0 {
                    Backend::Edt => "\"paced\" or \"normal\"",
                    _ => "\"paced\", \"normal\", \"rt\" or \"nrt\"",
                };
                refuse(format!("`type` is \"{kind}\""), expected, None)
            }
            _ if self.0 != Backend::Edt => Ok(()),
            TypeOptions::Paced {
                rate_bps, ceil_bps, ..
            } => {
                let rate = |bps: u64| display::rate(bps as f64);
                if let Some(ceil_bps) = ceil_bps.filter(|ceil_bps| ceil_bps != rate_bps) {
                    let value = format!("`ceil` is {}", rate(ceil_bps));
                    return refuse(value, "none", Some("classes do not borrow"));
                }
                if *rate_bps < EDT_RATE_BPS_MIN {
                    let value = format!("`rate` is {}", rate(*rate_bps));
                    return refuse(value, "at least 1kbit", None);
                }
                let deadline_ns = deadline_ns.filter(|ns| *ns > EDT_WAIT_NS_MAX);
                deadline_ns.map_or(Ok(()), |deadline_ns| {
                    let time = display::time(deadline_ns as f64 / 1e9);
                    refuse(format!("`deadline` is {time}"), "at most 9s", None)
                })
            }
            TypeOptions::Normal { quantum_bytes } => {
                let key = match (quantum_bytes, deadline_ns) {
                    (Some(_), _) => "quantum",
                    (None, Some(_)) => "deadline",
                    (None, None) => return Ok(()),
                };
                let why = "packets of a normal class leave at once";
                refuse(format!("`{key}` is set"), "none", Some(why))
            }
            TypeOptions::Rt { .. } | TypeOptions::Nrt { .. } => {
                let expected = "\"paced\" or \"normal\"";
                refuse(format!("`type` is \"{kind}\""), expected, None)
            }
        }
    }
}
