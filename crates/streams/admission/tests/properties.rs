// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of decisions on random small networks, beside a search that tries every path.

use admission::{
    Interval, Ledger, LinkUse, Medium, NodeId, NodeSpec, Refusal, Requirements, SegmentId,
    SegmentSpec, StreamRequest, Topology, TrafficSpecification, admit, nrt_shares, plan,
};
use proptest::prelude::*;

use crate::nets;
use crate::nets::{request, within};

/// What is drawn of a segment: rate, whether it is shared, period, MTU, and members with the least
/// best effort.
type Drawn = (usize, bool, u64, usize, (u8, u64));

/// A network of up to six nodes and six segments; some are not connected.
fn network() -> impl Strategy<Value = Topology> {
    let segment = (
        0..4_usize,
        any::<bool>(),
        1..4_u64,
        0..3_usize,
        (0b11_u8..0b11_1111, 0..4_u64),
    );
    (2..6_usize, 0b1_u8.., prop::collection::vec(segment, 1..6)).prop_map(
        |(count, routers, segments)| {
            let nodes: Vec<_> = (0..count)
                .map(|n| NodeSpec {
                    name: format!("n{n}"),
                    is_router: (routers >> n) & 1 == 1,
                })
                .collect();
            let segment = |(n, of): (usize, &Drawn)| {
                let (rate, is_shared, periods, mtu, (members, nrt)) = *of;
                let mut names: Vec<_> = (0..count)
                    .filter(|at| (members >> at) & 1 == 1)
                    .map(|at| format!("n{at}"))
                    .collect();
                for at in [0, 1] {
                    let name = format!("n{at}");
                    if names.len() < 2 && !names.contains(&name) {
                        names.push(name);
                    }
                }
                let medium = if is_shared {
                    Medium::Shared
                } else {
                    Medium::Switched
                };
                let rates = [10_000_000, 20_000_000, 100_000_000, 1_000_000_000];
                let mut spec = SegmentSpec::new(&format!("s{n}"), medium, rates[rate], &[]);
                spec.members = names;
                // Alike more often than not.
                spec.period_ns = if periods == 3 { 5_000_000 } else { 10_000_000 };
                spec.slot_ns = spec.period_ns / 10;
                spec.mtu_bytes = [1500, 1500, 576][mtu];
                spec.nrt_bytes = nrt_bytes(&spec, nrt);
                spec
            };
            let segments: Vec<_> = segments.iter().enumerate().map(segment).collect();
            Topology::new(&nodes, &segments).unwrap()
        },
    )
}

/// Returns what best effort keeps: nothing, frames, or nearly all.
fn nrt_bytes(spec: &SegmentSpec, frames: u64) -> u64 {
    let period_bytes = spec.rate_bps * spec.period_ns / 8_000_000_000;
    let (share, percent) = match spec.medium {
        Medium::Shared => (spec.members.len() as u64, 70),
        Medium::Switched => (1, 100),
    };
    let most_bytes = (period_bytes * percent / 100 - 1) / share;
    match frames {
        3 => most_bytes,
        frames => most_bytes.min(frames * 1538),
    }
}

/// A request between two of the nodes, if there are so many.
fn stream() -> impl Strategy<Value = (usize, usize, TrafficSpecification, u64)> {
    let load = prop_oneof![
        (1..40_u16, 21..3000_u16).prop_map(|(count, size)| (Some(count), Some(size), None)),
        (1..40_000_u32).prop_map(|bytes| (None, None, Some(bytes))),
    ];
    let interval_ms = prop_oneof![Just(10_u64), 1..60_u64];
    let latency_ms = prop_oneof![Just(0_u64), 5..120_u64];
    (0..6_usize, 0..6_usize, load, interval_ms, latency_ms).prop_map(
        |(from, to, load, interval_ms, latency_ms)| {
            let specification = TrafficSpecification {
                interval: Interval::from_ns(interval_ms * 1_000_000).unwrap(),
                max_frames_per_interval: load.0,
                max_frame_size: load.1,
                bytes_per_interval: load.2,
            };
            (from, to, specification, latency_ms * 1_000_000)
        },
    )
}

fn requests() -> impl Strategy<Value = Vec<(usize, usize, TrafficSpecification, u64)>> {
    prop::collection::vec(stream(), 1..30)
}

fn named(
    n: usize,
    topology: &Topology,
    of: &(usize, usize, TrafficSpecification, u64),
) -> Option<StreamRequest> {
    let count = topology.nodes().len();
    let (from, to) = (of.0 % count, of.1 % count);
    let name = |at: usize| format!("n{at}");
    let stream = request(&format!("x{n}"), &name(from), &[&name(to)], of.2.clone());
    (from != to).then(|| within(stream, of.3))
}

/// One path: who sends into which segment, for whom.
type Path = Vec<(NodeId, SegmentId, NodeId)>;

/// Every path from a node to another that enters no node and no segment twice.
fn all_paths(topology: &Topology, at: NodeId, to: NodeId, path: &Path, found: &mut Vec<Path>) {
    if at == to {
        found.push(path.clone());
        return;
    }
    if !path.is_empty() && !topology.node(at).is_router {
        return;
    }
    for segment in &topology.node(at).segments {
        if path.iter().any(|step| step.1 == *segment) {
            continue;
        }
        for next in &topology.segment(*segment).members {
            let is_new = *next != at && path.iter().all(|step| step.0 != *next);
            if is_new {
                let mut longer = path.clone();
                longer.push((at, *segment, *next));
                all_paths(topology, *next, to, &longer, found);
            }
        }
    }
}

fn latency_ns(topology: &Topology, path: &Path) -> u64 {
    let specs = path.iter().map(|step| &topology.segment(step.1).spec);
    let hop_ns = |spec: &SegmentSpec| {
        let percent = if spec.medium == Medium::Shared {
            spec.total_percent
        } else {
            spec.rt_percent
        };
        let share_ns = (spec.period_ns * u64::from(percent)).div_ceil(100);
        spec.period_ns + spec.slot_ns + share_ns
    };
    specs.map(hop_ns).sum()
}

/// The packets that leave for an MTU, one by one.
fn split(packets: &[u64], mtu_bytes: u64) -> Vec<u64> {
    let mut out = vec![];
    for packet in packets {
        let mut data_bytes = packet - 20;
        while data_bytes + 20 > mtu_bytes {
            let piece_bytes = (mtu_bytes - 20) / 8 * 8;
            out.push(piece_bytes + 20);
            data_bytes -= piece_bytes;
        }
        out.push(data_bytes + 20);
    }
    out
}

/// The bytes of each link of a path, counted packet by packet, and the periods of the spreading:
/// the most that the delay allows.
fn needs(topology: &Topology, path: &Path, request: &StreamRequest) -> (Vec<LinkUse>, u64) {
    let specs: Vec<_> = path.iter().map(|s| &topology.segment(s.1).spec).collect();
    let traffic = &request.talker.traffic_specification;
    let interval_ns = traffic.interval.as_ns().unwrap();
    let mtu_bytes = u64::from(specs[0].mtu_bytes);
    let mut packets = vec![];
    if let Some(bytes) = traffic.bytes_per_interval {
        let mut left = u64::from(bytes);
        while left > 0 {
            let now = left.min(mtu_bytes - 28);
            packets.push(now + 28);
            left -= now;
        }
    } else {
        let count = traffic.max_frames_per_interval.unwrap();
        let size = traffic.max_frame_size.unwrap();
        packets = vec![u64::from(size); count.into()];
    }
    packets = split(&packets, mtu_bytes);
    packets.sort_unstable_by(|a, b| b.cmp(a));
    let all = packets.len() as u64;
    let wanted_ns = request.talker.user_to_network_requirements.max_latency;
    let period_ns = specs[0].period_ns;
    let mut best = (all, 1);
    // Tries every number of packets in a period.
    for count in 1..=all {
        let periods = all.div_ceil(count);
        let delay_ns = latency_ns(topology, path) + (periods - 1) * period_ns;
        let is_alike = specs.iter().all(|spec| spec.period_ns == period_ns);
        let ends = periods * period_ns <= interval_ns && is_alike;
        if ends && (wanted_ns == 0 || delay_ns <= wanted_ns) {
            best = (count, periods);
            break;
        }
    }
    packets.truncate(usize::try_from(best.0).unwrap());
    let mut uses = vec![];
    for ((sender, segment, receiver), spec) in path.iter().zip(specs) {
        packets = split(&packets, spec.mtu_bytes.into());
        let once: u64 = packets.iter().map(|p| (p + 14).max(60) + 24).sum();
        let mut begins = 0;
        while begins * interval_ns < spec.period_ns {
            begins += 1;
        }
        for link in topology.links_of_hop(*segment, *sender, &[*receiver]) {
            let bytes = once * begins;
            uses.push(LinkUse { link, bytes });
        }
    }
    (uses, best.1)
}

/// What is above its budget.
fn overfull(topology: &Topology, ledger: &Ledger) -> Vec<String> {
    let mut sums = vec![0_u128; topology.links().len()];
    for (_, uses) in ledger.holders() {
        for used in uses {
            sums[used.link.0] += u128::from(used.bytes);
        }
    }
    let links = topology.links().iter().zip(sums);
    links
        .filter(|(link, sum)| *sum > u128::from(link.budget_bytes))
        .map(|(link, sum)| format!("{}: {sum} of {}", link.name, link.budget_bytes))
        .collect()
}

proptest! {
    #![proptest_config(testkit::cases(600))]

    /// Route, bytes and bound are the best of all paths, and a stream is refused exactly if the
    /// delay of the best path is too long or a link of it lacks bytes.
    #[test]
    fn decisions_agree_with_exhaustive_search(topology in network(), all in requests()) {
        let mut ledger = Ledger::default();
        for (n, of) in all.iter().enumerate() {
            let Some(request) = named(n, &topology, of) else { continue };
            let ends = (&request.talker.name, &request.listeners[0].name);
            let (from, to) = (topology.node_id(ends.0).unwrap(), topology.node_id(ends.1).unwrap());
            let mut paths = vec![];
            all_paths(&topology, from, to, &vec![], &mut paths);
            let cost = |path: &Path| (latency_ns(&topology, path), path.len());
            let least = paths.iter().map(cost).min();
            let decision = admit(&topology, &ledger, &request);
            let wanted_ns = request.talker.user_to_network_requirements.max_latency;
            let Some((least_ns, hops)) = least else {
                prop_assert!(matches!(decision, Err(Refusal::NoRoute { .. })), "{decision:?}");
                continue;
            };
            if wanted_ns > 0 && least_ns > wanted_ns {
                let Err(Refusal::Latency { bound_ns, .. }) = decision else {
                    return Err(TestCaseError::fail(format!("{decision:?}")));
                };
                prop_assert_eq!(bound_ns, least_ns);
                continue;
            }
            let planned = plan(&topology, &request).unwrap();
            let route = &planned.grant.listeners[0].route;
            let is_planned = |path: &&Path| {
                let names = path.iter().flat_map(|(sender, segment, _)| {
                    let segment = topology.segment(*segment).name.as_str();
                    [topology.node(*sender).name.as_str(), segment]
                });
                let route = route.iter().map(admission::Name::as_str);
                names.chain([ends.1.as_str()]).eq(route)
            };
            let path = paths.iter().find(is_planned);
            let path = path.ok_or_else(|| TestCaseError::fail(format!("no path {route:?}")))?;
            prop_assert_eq!(cost(path), (least_ns, hops));
            let (uses, periods) = needs(&topology, path, &request);
            prop_assert_eq!(&planned.uses, &uses);
            prop_assert_eq!(planned.grant.spread_periods, periods);
            let more_ns = (periods - 1) * topology.segment(path[0].1).spec.period_ns;
            prop_assert_eq!(planned.grant.bound_ns(), least_ns + more_ns);
            let lacks = uses.iter().find(|used| {
                let link = topology.link(used.link);
                ledger.reserved_bytes(used.link) + used.bytes > link.budget_bytes
            });
            match (decision, lacks) {
                (Ok(plan), None) => {
                    ledger.insert(&topology, &request.stream_id, plan.uses).unwrap();
                }
                (Err(Refusal::Bandwidth { link, needed_bytes, free_bytes }), Some(used)) => {
                    prop_assert_eq!(&link, &topology.link(used.link).name);
                    prop_assert_eq!(needed_bytes, used.bytes);
                    prop_assert_eq!(free_bytes, ledger.free_bytes(&topology, used.link));
                }
                (decision, lacks) => prop_assert!(false, "{decision:?}, {lacks:?}"),
            }
            prop_assert_eq!(overfull(&topology, &ledger), Vec::<String>::new());
        }
    }

    /// Releases restore what was there before, in any order.
    #[test]
    fn releases_restore_in_any_order(
        topology in network(),
        all in requests(),
        order in Just((0..30_usize).collect::<Vec<_>>()).prop_shuffle(),
        kept in any::<u32>(),
    ) {
        let mut ledger = Ledger::default();
        let mut only_kept = Ledger::default();
        let mut steps = vec![ledger.clone()];
        let mut granted = vec![];
        for (n, of) in all.iter().enumerate() {
            let Some(request) = named(n, &topology, of) else { continue };
            let Ok(plan) = admit(&topology, &ledger, &request) else { continue };
            ledger.insert(&topology, &request.stream_id, plan.uses.clone()).unwrap();
            if (kept >> n) & 1 == 1 {
                only_kept.insert(&topology, &request.stream_id, plan.uses).unwrap();
            }
            granted.push((n, request.stream_id));
            steps.push(ledger.clone());
        }
        // Backwards, every step is met again.
        let mut back = ledger.clone();
        for (_, id) in granted.iter().rev() {
            prop_assert_eq!(&back, &steps.pop().unwrap());
            prop_assert!(back.remove(id));
            prop_assert!(!back.remove(id));
        }
        prop_assert_eq!(&back, &Ledger::default());
        // In any order, what is left is as if only that had ever been reserved.
        let of_order = order.iter().filter_map(|at| granted.get(*at));
        for (n, id) in of_order {
            if (kept >> n) & 1 == 0 {
                prop_assert!(ledger.remove(id));
            }
        }
        prop_assert_eq!(&ledger, &only_kept);
        for segment in 0..topology.segments().len() {
            let shares = |ledger| nrt_shares(&topology, ledger, SegmentId(segment));
            prop_assert_eq!(shares(&ledger), shares(&only_kept));
        }
    }

    /// Every member keeps its least best effort, whatever is reserved.
    #[test]
    fn a_full_segment_leaves_the_least_best_effort(topology in network(), all in requests()) {
        let mut ledger = Ledger::default();
        for (n, of) in all.iter().enumerate() {
            let Some(mut request) = named(n, &topology, of) else { continue };
            request.talker.user_to_network_requirements = Requirements::default();
            // The same again until it is refused, and smaller ones until nothing fits.
            for size in [1500, 300, 21] {
                let traffic = &mut request.talker.traffic_specification;
                traffic.bytes_per_interval = None;
                (traffic.max_frames_per_interval, traffic.max_frame_size) = (Some(1), Some(size));
                for again in 0.. {
                    request.stream_id = format!("x{n}-{size}-{again}");
                    let Ok(plan) = admit(&topology, &ledger, &request) else { break };
                    ledger.insert(&topology, &request.stream_id, plan.uses).unwrap();
                    if again > 400 { break }
                }
            }
        }
        // A hop's bound has time for a full link's streams behind the longest other frame.
        for link in topology.links() {
            let spec = &topology.segment(link.segment).spec;
            let (mtu_bytes, tag_bytes) = (u64::from(spec.mtu_bytes), 4 * u64::from(spec.is_tagged));
            let before_bytes = link.budget_bytes + mtu_bytes + 38 + tag_bytes;
            let before_ns = u128::from(before_bytes) * 8_000_000_000 / u128::from(spec.rate_bps);
            prop_assert!(u128::from(spec.hop_ns() - spec.period_ns - spec.slot_ns) >= before_ns);
        }
        for n in 0..topology.segments().len() {
            let least_bytes = topology.segments()[n].spec.nrt_bytes;
            for share in nrt_shares(&topology, &ledger, SegmentId(n)) {
                prop_assert!(share.bytes >= least_bytes, "{} < {least_bytes}", share.bytes);
            }
        }
    }

    /// No number makes the arithmetic overflow or a link overfull.
    #[test]
    fn hostile_numbers_are_refused(
        rates in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 1..4),
        sizes in prop::collection::vec((any::<u32>(), any::<u32>(), any::<u32>()), 1..4),
        of in (any::<u32>(), any::<u32>(), any::<Option<u16>>(), any::<Option<u16>>()),
        more in (any::<Option<u32>>(), any::<u64>(), 0..64_u32),
    ) {
        let mut segments = vec![];
        for (n, ((rate, period, slot), (mtu, rt, total))) in rates.iter().zip(&sizes).enumerate() {
            let medium = if n % 2 == 0 { Medium::Shared } else { Medium::Switched };
            let mut spec = SegmentSpec::new(&format!("s{n}"), medium, 0, &["n0", "n1"]);
            // The whole range, and often what is valid.
            spec.rate_bps = rate >> more.2;
            spec.period_ns = period >> more.2;
            spec.slot_ns = slot >> more.2;
            spec.nrt_bytes = more.1 >> more.2;
            (spec.mtu_bytes, spec.rt_percent, spec.total_percent) = (*mtu >> (more.2 / 2), *rt, *total);
            if more.2 % 3 == 0 {
                (spec.mtu_bytes, spec.rt_percent, spec.total_percent) = (68 + mtu % 65_000, 70, 90);
            }
            segments.push(spec);
        }
        let Ok(topology) = Topology::new(&nets::nodes(&["n0", "n1"]), &segments) else {
            return Ok(());
        };
        let specification = TrafficSpecification {
            interval: Interval { numerator: of.0, denominator: of.1 },
            max_frames_per_interval: of.2,
            max_frame_size: of.3,
            bytes_per_interval: more.0,
        };
        let request = within(request("x", "n0", &["n1"], specification), more.1);
        let mut ledger = Ledger::default();
        if let Ok(plan) = admit(&topology, &ledger, &request) {
            ledger.insert(&topology, "x", plan.uses).unwrap();
        }
        prop_assert_eq!(overfull(&topology, &ledger), Vec::<String>::new());
    }
}
