// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which class the rules of a file give a frame. The first rule that matches decides.

use host_config::{Rule, minor};
use tcpsp::{Flower, Handle, Match};

use crate::fragments::Fragments;
use crate::frame::Frame;

/// What the kernel says beside a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Mark of the packet.
    pub mark: u32,
    /// Priority, which its socket may have set to a class's id.
    pub priority: u32,
    /// Index of the interface that it came in through; 0: this host sends it.
    pub interface: u32,
}

/// Where a frame belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Minor number of its class; `None`: no rule claims it, so the default class has it.
    pub class: Option<u16>,
    /// The rule that decided, by its place in the file.
    pub rule: Option<usize>,
    /// Whether a rule of the sender's cgroup stands before: such a rule may have claimed the frame,
    /// and the frame alone does not say.
    pub is_sure: bool,
    /// Whether it is a fragment that follows its first one.
    pub follows: bool,
}

/// The rules of a device.
#[derive(Clone, Debug)]
pub struct Matcher {
    rules: Vec<Rule>,
    /// Of each rule the index of the interface that it names, if that is there.
    interfaces: Vec<Option<u32>>,
    /// Minor numbers that there are.
    minors: Vec<u16>,
    fragments: Fragments<Verdict>,
}

/// The protocol behind a number that has ports.
const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, 6 | 17 | 132)
}

impl Matcher {
    /// Takes the rules of a device and the minor numbers of its classes; `index` returns the index
    /// of the interface of this name.
    pub fn new(rules: &[Rule], minors: &[u16], index: &dyn Fn(&str) -> Option<u32>) -> Self {
        let interface = |rule: &Rule| match &rule.matching {
            Match::Flower(Flower {
                interface: Some(interface),
                ..
            }) => index(&interface.name),
            _ => None,
        };
        Self {
            interfaces: rules.iter().map(interface).collect(),
            rules: rules.to_vec(),
            minors: minors.to_vec(),
            fragments: Fragments::default(),
        }
    }

    /// Returns whether the rule at this place names an interface.
    pub fn names_interface(&self, place: usize) -> bool {
        let rule = self.rules.get(place);
        rule.is_some_and(
            |rule| matches!(&rule.matching, Match::Flower(flower) if flower.interface.is_some()),
        )
    }

    /// Returns where a frame belongs. Fragments are to be asked about in the order in which they
    /// leave. O(rules).
    pub fn ask(&mut self, frame: &Frame, beside: Beside) -> Verdict {
        let fragment = frame.ip.as_ref().and_then(|ip| Some((ip, ip.fragment?)));
        let Some((ip, fragment)) = fragment else {
            return self.decide(frame, beside);
        };
        if !fragment.is_first {
            return match self.fragments.find(ip, fragment) {
                Some(first) => Verdict {
                    follows: true,
                    ..first
                },
                None => self.decide(frame, beside),
            };
        }
        let verdict = self.decide(frame, beside);
        self.fragments.note(ip, fragment, verdict);
        verdict
    }

    fn decide(&self, frame: &Frame, beside: Beside) -> Verdict {
        let wanted = Handle(beside.priority);
        let is_class = wanted.major() == minor::root().major();
        let mut verdict = Verdict {
            class: None,
            rule: None,
            is_sure: true,
            follows: false,
        };
        if is_class && self.minors.contains(&wanted.minor()) {
            verdict.class = Some(wanted.minor());
            return verdict;
        }
        for (place, (rule, interface)) in self.rules.iter().zip(&self.interfaces).enumerate() {
            let claims = match &rule.matching {
                Match::Flower(flower) => claims(flower, *interface, frame, beside),
                Match::Mark(mark) => *mark == beside.mark,
                Match::Cgroup | Match::Sender(_) => {
                    verdict.is_sure = false;
                    false
                }
            };
            if claims {
                verdict.class = Some(rule.class);
                verdict.rule = Some(place);
                break;
            }
        }
        verdict
    }
}

/// Whether a frame has all that is said.
fn claims(flower: &Flower, interface: Option<u32>, frame: &Frame, beside: Beside) -> bool {
    let Flower {
        vlan,
        family,
        protocol,
        source,
        destination,
        source_ports,
        destination_ports,
        dscp,
        interface: came_in,
    } = flower;
    if came_in.is_some() && interface.is_none_or(|index| index != beside.interface) {
        return false;
    }
    if vlan.is_some_and(|vlan| frame.vlans.first() != Some(&vlan)) {
        return false;
    }
    let Some(ip) = &frame.ip else {
        return family.is_none()
            && protocol.is_none()
            && source.is_none()
            && destination.is_none()
            && source_ports.is_none()
            && destination_ports.is_none()
            && dscp.is_none();
    };
    let (from_port, to_port) = match (ip.ports, ip.protocol) {
        (Some((from, to)), Some(number)) if has_ports(number) => (Some(from), Some(to)),
        _ => (None, None),
    };
    let within = |ports: &tcpsp::Ports, port: Option<u16>| {
        port.is_some_and(|port| (ports.first..=ports.last).contains(&port))
    };
    family.is_none_or(|family| family == ip.family())
        && protocol.is_none_or(|protocol| ip.protocol == Some(protocol.number()))
        && source.is_none_or(|prefix| prefix.contains(ip.from))
        && destination.is_none_or(|prefix| prefix.contains(ip.to))
        && dscp.is_none_or(|dscp| dscp == ip.dscp)
        && source_ports.is_none_or(|ports| within(&ports, from_port))
        && destination_ports.is_none_or(|ports| within(&ports, to_port))
}
