// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wanted of a device.

use std::collections::BTreeMap;

use tcpsp::{ClassOptions, Match, QdiscOptions};

use crate::backend::{Backend, Made, Queues};
use crate::file::Device;
use crate::limits::LINE_UNKNOWN_BPS;
use crate::port::Port;

/// What is wanted of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What its psp are made of.
    pub made: Made,
    /// What shall stand at its root.
    pub root: TargetRoot,
    /// Names of classes, by minor number.
    pub names: BTreeMap<u16, String>,
}

/// What shall stand at a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetRoot {
    /// Nothing of ours.
    Default,
    Psp(TargetPsp),
    /// psp at each transmit queue, below mq.
    Mq(Vec<TargetPsp>),
}

/// What is wanted of a psp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetPsp {
    pub options: QdiscOptions,
    /// Its classes, by minor number.
    pub classes: BTreeMap<u16, ClassOptions>,
    /// Its filters of ours, the first that matches decides.
    pub rules: Vec<TargetRule>,
}

/// A filter that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRule {
    /// What it looks at.
    pub matching: Match,
    /// Minor number of the class; 0 of [`Match::Cgroup`].
    pub class: u16,
    /// Its priority and its number there, if they must be certain ones.
    pub place: Option<(u16, u32)>,
}

impl Target {
    /// Returns what a file wants of a device.
    pub fn new(device: &Device, backend: Backend, port: &Port) -> Self {
        let made = Made::new(backend, device.queues);
        let mut options = device.options.clone();
        if !device.has_overhead {
            options.overhead_bytes = QdiscOptions::default_of(port.is_ethernet).overhead_bytes;
        }
        if made == Made::Module && port.has_made_up_speed {
            options.line_rate_bps = options.line_rate_bps.or(Some(LINE_UNKNOWN_BPS));
        }
        options.shared = made == Made::Module && device.queues == Queues::Mq;
        let classes = device.classes.iter();
        let rules = device.rules.iter().map(|rule| TargetRule {
            matching: rule.matching.clone(),
            class: rule.class,
            place: None,
        });
        let psp = TargetPsp {
            options,
            classes: classes
                .clone()
                .map(|c| (c.minor, c.options.clone()))
                .collect(),
            rules: rules.collect(),
        };
        Self {
            made,
            root: match device.queues {
                Queues::Mq if made.is_of_each_queue() => {
                    TargetRoot::Mq(vec![psp; port.queues.into()])
                }
                _ => TargetRoot::Psp(psp),
            },
            names: classes.map(|c| (c.minor, c.name.clone())).collect(),
        }
    }

    /// Returns the filters that are wanted of a psp: each transmit queue has the same.
    pub fn rules(&self) -> &[TargetRule] {
        match &self.root {
            TargetRoot::Default => &[],
            TargetRoot::Psp(psp) => &psp.rules,
            TargetRoot::Mq(psps) => psps.first().map_or(&[], |psp| &psp.rules),
        }
    }

    /// Gives transmit queues that have come what all others have. Returns what a person should know
    /// if they have not the same: then those that have come stay as they are. O(queues x classes).
    pub fn spread(&mut self, queues: u16) -> Option<String> {
        let TargetRoot::Mq(psps) = &mut self.root else {
            return None;
        };
        let (was, queues) = (psps.len(), usize::from(queues));
        let first = psps.first().filter(|_| was < queues)?.clone();
        if psps.iter().all(|psp| *psp == first) {
            psps.resize(queues, first);
            return None;
        }
        Some(format!(
            "the device has {queues} transmit queues, and had {was} of which not all had the same: \
             the others are not paced"
        ))
    }

    /// Returns that nothing of ours is wanted.
    pub fn nothing() -> Self {
        Self {
            made: Made::Module,
            root: TargetRoot::Default,
            names: BTreeMap::new(),
        }
    }
}
