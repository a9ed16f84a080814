// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a port shall have for its streams: a class of type rt for each, and one of type nrt for all
//! other frames. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;

use admission::{FrameSpecification, IpTuple};
use host_config::limits::{PERIOD_EXPECTED, PERIODS_NS, line_expected};
use host_config::{Made, Port, Target, TargetPsp, TargetRoot, TargetRule, minor};
use tcpsp::{
    Budget, Change, ClassOptions, Family, Flower, Layer, Match, Ports, Prefix, Protocol,
    QdiscOptions, TypeOptions,
};

use crate::known::PortDemand;

/// Name of the class of best effort. Names of reservations have no blanks.
const BEST_EFFORT: &str = "best effort";
/// Fewest bytes of a reservation that the kernel takes.
const LEAST_BYTES: u64 = 1;

/// Refuses what no port keeps to, in the words of a host's file.
///
/// # Errors
/// The segment's key, its value, and what was expected.
pub fn check(demand: &PortDemand) -> Result<(), String> {
    let PortDemand {
        period_ns,
        rate_bps,
        ..
    } = demand;
    if !PERIODS_NS.contains(period_ns) {
        return Err(format!(
            "the segment's `period` is {period_ns} ns, expected {PERIOD_EXPECTED}"
        ));
    }
    match line_expected(*rate_bps) {
        Some(expected) => Err(format!(
            "the segment's `rate` is {rate_bps} bit/s, expected {expected}"
        )),
        None => Ok(()),
    }
}

/// Refuses a link that has become slower than its segment: no bound holds on it.
///
/// # Errors
/// Both rates.
pub fn check_speed(demand: &PortDemand, port: &Port) -> Result<(), String> {
    match port.speed_bps {
        Some(speed_bps) if speed_bps < demand.rate_bps => Err(format!(
            "the link has {speed_bps} bit/s, expected at least the segment's {} bit/s",
            demand.rate_bps
        )),
        _ => Ok(()),
    }
}

/// Kinds of devices whose frames have no tag yet, as far as anybody knows.
const UNTAGGED_KINDS: [&str; 6] = ["vlan", "macvlan", "ipvlan", "macvtap", "veth", "bridge"];

/// Refuses a device whose frames have their tag already where the module's filters look: they see
/// no addresses behind one. `kind` is the kernel's; a NIC has none.
///
/// # Errors
/// What was expected.
pub fn check_tag(demand: &PortDemand, made: Made, kind: Option<&str>) -> Result<(), String> {
    let has_no_tag = kind.is_some_and(|kind| UNTAGGED_KINDS.contains(&kind));
    if !demand.is_tagged || made != Made::Module || has_no_tag {
        return Ok(());
    }
    Err(
        "the segment is `tagged`, and the module's filters see no frame behind a tag: expected a \
         VLAN device, or `--backend bpf`"
            .to_owned(),
    )
}

/// Returns what a port shall have. Bytes are on the wire, and all classes have their share of each
/// period: the budget is no more than their sum. `made` is of one queue.
pub fn target(demand: &PortDemand, port: &Port, made: Made) -> Target {
    let streams = demand.streams.iter();
    let streams = streams.filter(|(_, stream)| !stream.frames.is_empty());
    let named: Vec<_> = streams
        .map(|(id, stream)| (format!("stream {id}"), stream))
        .collect();
    let mut names: Vec<_> = named
        .iter()
        .map(|(name, _)| (name.as_str(), None))
        .collect();
    names.push((BEST_EFFORT, None));
    let minors = minor::minors(&names);
    let nrt_bytes = demand.nrt_bytes.max(LEAST_BYTES);
    let mut psp = TargetPsp {
        options: QdiscOptions::default_of(port.is_ethernet),
        classes: BTreeMap::new(),
        rules: Vec::new(),
    };
    let mut budget_bytes = nrt_bytes;
    for ((_, stream), minor) in named.iter().zip(&minors) {
        let reserve_bytes = stream.bytes.max(LEAST_BYTES);
        budget_bytes = budget_bytes.saturating_add(reserve_bytes);
        let options = ClassOptions::new(TypeOptions::Rt { reserve_bytes });
        psp.classes.insert(*minor, options);
        psp.rules.extend(stream.frames.iter().filter_map(|frames| {
            Some(TargetRule {
                matching: matching(frames)?,
                class: *minor,
                place: None,
            })
        }));
    }
    let best_effort = minors.last().copied().unwrap_or(minor::FIRST_MINOR);
    let reserve_bytes = nrt_bytes;
    let options = ClassOptions::new(TypeOptions::Nrt { reserve_bytes });
    psp.classes.insert(best_effort, options);
    psp.options.default_minor = best_effort;
    psp.options.layer = Layer::Wire;
    psp.options.period_ns = demand.period_ns;
    psp.options.budget = Budget::Bytes(budget_bytes);
    if port.speed_bps.is_none() {
        psp.options.line_rate_bps = Some(demand.rate_bps);
    }
    let names = names.iter().zip(&minors);
    Target {
        made,
        names: names
            .map(|((name, _), minor)| (*minor, (*name).to_owned()))
            .collect(),
        root: TargetRoot::Psp(psp),
    }
}

/// Returns what a port shall have in between, one after the other, the last as it is demanded. First
/// classes shrink and go, then they come, then best effort grows: at no moment do both what goes and
/// what comes have to fit, which the kernel refuses on a line that is fully reserved.
pub fn steps(demand: &PortDemand, port: &Port) -> Vec<PortDemand> {
    let Some(psp) = port.psp(minor::root()) else {
        return vec![demand.clone()];
    };
    let now = psp.classes.get(&psp.options.default_minor);
    let now_bytes = now.map_or(demand.nrt_bytes, |class| class.options.reserve_bytes());
    let grown = PortDemand {
        nrt_bytes: demand.nrt_bytes.min(now_bytes),
        ..demand.clone()
    };
    let mut shrunk = grown.clone();
    let names = target(demand, port, Made::Module).names;
    let has = |id: &str| {
        let name = format!("stream {id}");
        let mut minors = names.iter().filter(|(_, of)| **of == name);
        minors.any(|(minor, _)| psp.classes.contains_key(minor))
    };
    shrunk.streams.retain(|id, _| has(id));
    vec![shrunk, grown, demand.clone()]
}

/// Returns whether all that a port shall have is there, if these changes are left: no more than
/// classes that still have frames to send before they go, and what is in force of `target` else.
pub fn is_in_force(target: &Target, port: &Port, left: &[Change]) -> bool {
    let TargetRoot::Psp(wanted) = &target.root else {
        return false;
    };
    let is_leaving = left
        .iter()
        .any(|of| matches!(of, Change::DeleteClass { .. }));
    let may_be_left = |change: &Change| match change {
        Change::DeleteClass { .. } => true,
        // The budget narrows after classes have gone.
        Change::ChangeQdisc { .. } => is_leaving,
        _ => false,
    };
    let agrees = |options: &QdiscOptions| {
        (options.period_ns, options.default_minor, options.layer)
            == (
                wanted.options.period_ns,
                wanted.options.default_minor,
                wanted.options.layer,
            )
    };
    left.iter().all(may_be_left)
        && port
            .psp(minor::root())
            .is_some_and(|psp| agrees(&psp.options))
}

/// Returns the filter that claims frames; `None` for a protocol that none knows.
fn matching(frames: &FrameSpecification) -> Option<Match> {
    match frames {
        FrameSpecification::Ipv4Tuple(tuple) => flower(tuple, Family::Ipv4),
        FrameSpecification::Ipv6Tuple(tuple) => flower(tuple, Family::Ipv6),
    }
}

fn flower<A: Copy + Into<IpAddr>>(tuple: &IpTuple<A>, family: Family) -> Option<Match> {
    let mut known = Protocol::ALL.into_iter();
    let protocol = known.find(|of| of.number() == tuple.protocol)?;
    let prefix = |address: A| {
        let address = address.into();
        let bits = match address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        Prefix { address, bits }
    };
    let port = |port| Ports {
        first: port,
        last: port,
    };
    Some(Match::Flower(Flower {
        family: Some(family),
        protocol: Some(protocol),
        source: tuple.source_ip_address.map(prefix),
        destination: Some(prefix(tuple.destination_ip_address)),
        source_ports: tuple.source_port.map(port),
        destination_ports: Some(port(tuple.destination_port)),
        ..Flower::default()
    }))
}
