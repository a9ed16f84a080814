// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decisions whose numbers are computed by hand.

use admission::{
    Fault, FrameSpecification, IpTuple, Ledger, Medium, Refusal, SegmentSpec, StreamRequest,
    Topology, admit, nrt_shares, plan,
};
use predict::bounds::{RateLatency, TokenBucket, bounds, isochronous_ns};

use crate::nets::{FAST, frames, nodes, payload, row, within};

const PERIOD_NS: u64 = 10_000_000;
/// A slot, and 70 % of a period: the streams of a link, and one longest frame.
const SLOT_NS: u64 = 8_000_000;

/// Admits a stream and records it.
fn reserve(topology: &Topology, ledger: &mut Ledger, request: &StreamRequest) {
    let plan = admit(topology, ledger, request).unwrap();
    ledger
        .insert(topology, &request.stream_id, plan.uses)
        .unwrap();
}

/// Paper 004, 4.3: (routers + 1) x (period + slot), as `pspacer predict` has it, of a slot that all
/// that may go in it fits into.
#[test]
fn the_bound_is_a_period_a_slot_and_the_share_of_streams_a_hop() {
    for routers in 0..=4 {
        let topology = row(routers);
        let plan = plan(&topology, &frames("x", "a", &["b"], 2, 1000)).unwrap();
        assert_eq!(
            plan.grant.bound_ns(),
            isochronous_ns(routers, PERIOD_NS, SLOT_NS)
        );
        assert_eq!(plan.uses.len(), routers + 1);
        assert!(plan.uses.iter().all(|used| used.bytes == 2 * 1038));
        let senders = plan.grant.senders();
        assert_eq!((senders[0], senders.len()), ("a", routers + 1));
    }
}

/// What senders need more than their streams' bytes is in the bound, too.
#[test]
fn threads_take_a_slot_and_a_shared_medium_carries_what_others_send() {
    let bound_ns = |medium: Medium, change: fn(&mut SegmentSpec)| {
        let mut segment = SegmentSpec::new("s", medium, FAST, &["a", "b"]);
        change(&mut segment);
        let topology = Topology::new(&nodes(&["a", "b"]), &[segment]).unwrap();
        let plan = plan(&topology, &frames("x", "a", &["b"], 1, 100)).unwrap();
        plan.grant.bound_ns()
    };
    for medium in [Medium::Shared, Medium::Switched] {
        assert_eq!(bound_ns(medium, |_| ()), 18_000_000);
        assert_eq!(bound_ns(medium, |s| s.slot_ns = 0), 17_000_000);
    }
    let more = |s: &mut SegmentSpec| (s.rt_percent, s.total_percent) = (20, 90);
    assert_eq!(bound_ns(Medium::Switched, more), 13_000_000);
    assert_eq!(bound_ns(Medium::Shared, more), 20_000_000);
}

/// Without spreading, a burst of an interval of 10 periods would cost 10 times the bytes. With
/// it, the bound is network calculus's for the chain as one server, less the period by which a
/// staircase is better than the rate-latency curve below it.
#[test]
fn a_long_interval_is_spread_and_its_burst_paid_once() {
    for routers in 0..=3 {
        let topology = row(routers);
        // 40 frames of 1538 bytes in 100 ms: 4 in each period.
        let request = payload("x", "a", &["b"], 40 * 1472, 10 * PERIOD_NS);
        let plan = plan(&topology, &request).unwrap();
        assert_eq!(plan.grant.spread_periods, 10);
        assert!(plan.uses.iter().all(|used| used.bytes == 4 * 1538));
        let server = RateLatency {
            latency_ns: (PERIOD_NS + SLOT_NS) as f64,
            ..RateLatency::periodic(4.0 * 1538.0, PERIOD_NS as f64)
        };
        let stream = TokenBucket {
            burst_bytes: 40.0 * 1538.0,
            rate_bps: server.rate_bps,
        };
        let calculus = bounds(stream, &vec![server; routers + 1]).unwrap();
        let expected = calculus.pay_bursts_only_once_ns - PERIOD_NS as f64;
        assert!((plan.grant.bound_ns() as f64 - expected).abs() < 1.0);
        assert!(plan.grant.bound_ns() as f64 <= calculus.per_hop_sum_ns);
    }
}

#[test]
fn the_delay_wanted_decides_how_far_a_burst_is_spread() {
    let topology = row(1);
    let request = payload("x", "a", &["b"], 40 * 1472, 10 * PERIOD_NS);
    // Two hops of 18 ms, and so many periods more.
    for (wanted_ns, periods, frames) in [
        (36_000_000, 1, 40),
        (45_999_999, 1, 40),
        (46_000_000, 2, 20),
        // In four periods no fewer frames than in three would do: 14, 14, 12.
        (56_000_000, 3, 14),
        (200_000_000, 10, 4),
    ] {
        let plan = plan(&topology, &within(request.clone(), wanted_ns)).unwrap();
        assert_eq!(plan.grant.spread_periods, periods, "{wanted_ns}");
        assert_eq!(plan.uses[0].bytes, frames * 1538, "{wanted_ns}");
        assert!(plan.grant.bound_ns() <= wanted_ns);
    }
    let refused = plan(&topology, &within(request, 35_999_999)).unwrap_err();
    assert_eq!(refused.failure_code(), Some(21));
    assert_eq!(
        refused,
        Refusal::Latency {
            listener: "b".to_owned(),
            bound_ns: 36_000_000,
            wanted_ns: 35_999_999
        }
    );
}

#[test]
fn a_short_interval_takes_bytes_of_all_that_begin_in_a_period() {
    let topology = row(0);
    // 3 ms in 10 ms: 4 intervals may begin.
    let plan = plan(&topology, &payload("x", "a", &["b"], 100, 3_000_000)).unwrap();
    assert_eq!(plan.uses[0].bytes, 4 * (100 + 28 + 38));
    assert_eq!(plan.grant.spread_periods, 1);
}

/// 70 % of 125,000 bytes less two full frames of each member: 81,348.
#[test]
fn what_does_not_fit_is_refused_with_the_numbers() {
    let topology = row(2);
    assert_eq!(topology.links()[0].budget_bytes, 87_500 - 2 * 2 * 1538);
    let mut ledger = Ledger::default();
    for n in 0..7 {
        let id = format!("x{n}");
        reserve(
            &topology,
            &mut ledger,
            &payload(&id, "a", &["b"], 10_000, PERIOD_NS),
        );
    }
    let one_bytes = 6 * 1538 + 1168 + 28 + 38;
    let refused = admit(
        &topology,
        &ledger,
        &payload("y", "a", &["b"], 10_000, PERIOD_NS),
    );
    assert_eq!(
        refused.unwrap_err(),
        Refusal::Bandwidth {
            link: "s0".to_owned(),
            needed_bytes: one_bytes,
            free_bytes: 81_348 - 7 * one_bytes
        }
    );
    // What is free in the middle does not help, and a smaller stream fits.
    let between = payload("z", "r1", &["r2"], 6000, PERIOD_NS);
    reserve(&topology, &mut ledger, &between);
    let same = admit(&topology, &ledger, &between).unwrap_err();
    assert_eq!(same.failure_code(), Some(4));
    let backwards = payload("w", "b", &["a"], 2000, PERIOD_NS);
    let refused = admit(&topology, &ledger, &backwards).unwrap_err();
    // From b the first link that lacks is s1, which the small stream uses too.
    let lacking = 81_348 - 7 * one_bytes - (6000 + 5 * 66);
    assert!(lacking < 2 * 1538, "{lacking}");
    assert_eq!(refused.failure_code(), Some(1));
}

/// Paper 004, page 12: 100 Mbit/s less 30 that nobody may use, less 10 there and 10 back. Two
/// nodes have 25 Mbit/s each for best effort, three about 16.7.
#[test]
fn best_effort_shares_what_streams_leave() {
    for (members, rate_bps) in [
        (&["a", "b"][..], 25_000_000),
        (&["a", "b", "c"], 16_666_400),
    ] {
        let segment = SegmentSpec::new("s", Medium::Shared, FAST, members);
        let topology = Topology::new(&nodes(members), &[segment]).unwrap();
        let mut ledger = Ledger::default();
        // 10 Mbit/s on the wire: 12,500 bytes in 10 ms.
        for (id, from, to) in [("there", "a", "b"), ("back", "b", "a")] {
            reserve(&topology, &mut ledger, &frames(id, from, &[to], 10, 1212));
        }
        let shares = nrt_shares(&topology, &ledger, topology.segment_id("s").unwrap());
        assert_eq!(shares.len(), members.len());
        assert!(shares.iter().all(|s| s.rate_bps == rate_bps), "{shares:?}");
    }
}

/// What best effort keeps is taken off what streams may take, on a shared medium for each member.
#[test]
fn every_member_keeps_its_least_best_effort() {
    let budget = |medium, members: &[&str], nrt_bytes| {
        let mut segment = SegmentSpec::new("s", medium, FAST, members);
        assert_eq!(segment.nrt_bytes, 2 * 1538);
        segment.nrt_bytes = nrt_bytes;
        let cost_bytes = segment.nrt_cost_bytes();
        let topology = Topology::new(&nodes(members), &[segment])?;
        let budget_bytes = topology.links()[0].budget_bytes;
        assert_eq!(budget_bytes + cost_bytes, 87_500 - 1_538);
        Ok::<_, Fault>(budget_bytes)
    };
    let all = ["a", "b", "c", "d"];
    for (medium, count, nrt_bytes, budget_bytes) in [
        (Medium::Shared, 2, 0, 87_500 - 1_538),
        // The guard frame is more.
        (Medium::Shared, 2, 768, 87_500 - 1_538),
        (Medium::Shared, 2, 770, 87_500 - 1_540),
        (Medium::Shared, 2, 3_076, 87_500 - 2 * 3_076),
        (Medium::Shared, 4, 3_076, 87_500 - 4 * 3_076),
        (Medium::Shared, 4, 21_874, 4),
        (Medium::Switched, 4, 39_038, 87_500 - 1_538),
        (Medium::Switched, 4, 39_039, 125_000 - 39_039),
        (Medium::Switched, 4, 124_999, 1),
    ] {
        let got = budget(medium, &all[..count], nrt_bytes);
        assert_eq!(got, Ok(budget_bytes), "{medium} {count} {nrt_bytes}");
    }
    for (medium, count, nrt_bytes, most, rate_bps) in [
        (Medium::Shared, 4, 21_875, 21_874, 100_001_143),
        (Medium::Switched, 4, 125_000, 124_999, 100_000_800),
    ] {
        let fault = budget(medium, &all[..count], nrt_bytes).unwrap_err();
        assert_eq!((fault.owner.as_str(), fault.key), ("segment \"s\"", "nrt"));
        assert_eq!(fault.value, nrt_bytes.to_string());
        let words = format!("at most {most} bytes for each of {count} members");
        assert!(fault.expected.contains(&words), "{fault}");
        let words = format!("`rate` of at least {rate_bps}bit");
        assert!(fault.expected.contains(&words), "{fault}");
        // That rate is the least one.
        for (rate_bps, fits) in [(rate_bps, true), (rate_bps - 1, false)] {
            let mut segment = SegmentSpec::new("s", medium, rate_bps, &all[..count]);
            segment.nrt_bytes = nrt_bytes;
            let topology = Topology::new(&nodes(&all), &[segment]);
            assert_eq!(topology.is_ok(), fits, "{rate_bps}");
        }
    }
}

#[test]
fn a_switch_has_a_link_for_each_direction() {
    let segment = SegmentSpec::new("s", Medium::Switched, FAST, &["a", "b", "c"]);
    let topology = Topology::new(&nodes(&["a", "b", "c"]), &[segment]).unwrap();
    let mut ledger = Ledger::default();
    let half = |id: &str, from: &str, to: &[&str]| frames(id, from, to, 28, 1500);
    reserve(&topology, &mut ledger, &half("1", "a", &["b"]));
    // The other direction of the same cables is free.
    reserve(&topology, &mut ledger, &half("2", "b", &["a"]));
    // To b there is room for one more; a's cable has it, too.
    let more = admit(&topology, &ledger, &half("3", "c", &["b", "a"])).unwrap_err();
    assert!(
        matches!(&more, Refusal::Bandwidth { link, .. } if link == "s/b/down"),
        "{more}"
    );
    let fits = admit(&topology, &ledger, &frames("4", "c", &["b", "a"], 27, 1500)).unwrap();
    let names: Vec<_> = fits.grant.links.iter().map(|l| l.link.as_str()).collect();
    assert_eq!(names, ["s/c/up", "s/b/down", "s/a/down"]);
    // Best effort has the whole rest of a node's own link.
    let shares = nrt_shares(&topology, &ledger, topology.segment_id("s").unwrap());
    let bytes: Vec<_> = shares.iter().map(|share| share.bytes).collect();
    assert_eq!(bytes, [125_000 - 28 * 1538, 125_000 - 28 * 1538, 125_000]);
}

/// A link's MTU splits packets, and they stay split.
#[test]
fn fragments_cost_what_they_take() {
    let mut segments = [
        SegmentSpec::new("s0", Medium::Shared, FAST, &["a", "r1"]),
        SegmentSpec::new("s1", Medium::Shared, FAST, &["r1", "r2"]),
        SegmentSpec::new("s2", Medium::Shared, FAST, &["r2", "b"]),
    ];
    segments[1].mtu_bytes = 576;
    segments[2].is_tagged = true;
    let topology = Topology::new(&nodes(&["a", "b", "r1", "r2"]), &segments).unwrap();
    let plan = plan(&topology, &frames("x", "a", &["b"], 2, 1500)).unwrap();
    let bytes: Vec<_> = plan.uses.iter().map(|used| used.bytes).collect();
    // 1480 bytes of data in pieces of 552: 552, 552, 376.
    let split = 2 * (1480 + 3 * (20 + 38));
    assert_eq!(bytes, [2 * 1538, split, split + 2 * 3 * 4]);
}

/// ```text
///      +- s1 - r1 -+
/// a ---+           +-- s3 --- b
///      +- s2 - r2 -+
/// ```
fn ring() -> Topology {
    let segments = [
        SegmentSpec::new("s1", Medium::Shared, FAST, &["a", "r1"]),
        SegmentSpec::new("s2", Medium::Shared, FAST, &["a", "r2"]),
        SegmentSpec::new("s3", Medium::Shared, FAST, &["r1", "r2", "b", "c"]),
    ];
    Topology::new(&nodes(&["a", "b", "c", "r1", "r2"]), &segments).unwrap()
}

#[test]
fn routes_are_the_shortest_or_those_given() {
    let topology = ring();
    let mut request = frames("x", "a", &["b", "c"], 1, 100);
    let route = |request: &StreamRequest| {
        let plan = plan(&topology, request).unwrap();
        let listeners = plan.grant.listeners.into_iter();
        (
            listeners.map(|l| l.route.join(" ")).collect::<Vec<_>>(),
            plan.grant.links.len(),
        )
    };
    // Alike: the first in the file. The tree's common part counts once.
    let shortest = ["a s1 r1 s3 b".to_owned(), "a s1 r1 s3 c".to_owned()];
    assert_eq!(route(&request), (shortest.to_vec(), 2));
    let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    request.listeners.truncate(1);
    request.listeners[0].route = names("a r2 b");
    assert_eq!(route(&request).0, ["a s2 r2 s3 b"]);
    request.listeners[0].route = names("a s2 r2 s3 b");
    assert_eq!(route(&request).0, ["a s2 r2 s3 b"]);
    for (given, words) in [
        ("a b", "a b"),
        ("a r1 c", "a r1 c"),
        ("a r1 c b", "`route` is c, expected a router"),
        (
            "a s2 r1 b",
            "`route` is a r1, expected two nodes of one segment",
        ),
        (
            "a r1 a r2 b",
            "routes that enter each segment and node once",
        ),
        ("a nobody b", "nobody"),
        ("r1 b", "from the talker"),
    ] {
        request.listeners[0].route = names(given);
        let refused = plan(&topology, &request).unwrap_err().to_string();
        assert!(refused.contains(words), "{given}: {refused}");
    }
    // Two listeners whose routes meet again make no tree.
    let mut request = frames("x", "a", &["b", "c"], 1, 100);
    request.listeners[0].route = names("a r1 b");
    request.listeners[1].route = names("a r2 c");
    assert!(plan(&topology, &request).is_err());
    // Hosts do not forward.
    let apart = [
        SegmentSpec::new("s1", Medium::Shared, FAST, &["a", "c"]),
        SegmentSpec::new("s2", Medium::Shared, FAST, &["c", "b"]),
    ];
    let apart = Topology::new(&nodes(&["a", "b", "c"]), &apart).unwrap();
    let refused = plan(&apart, &frames("x", "a", &["b"], 1, 100)).unwrap_err();
    assert_eq!(refused.to_string(), "no route leads from a to b");
}

#[test]
fn a_faster_detour_is_shorter() {
    let mut segments = vec![
        SegmentSpec::new("direct", Medium::Shared, FAST, &["a", "b"]),
        SegmentSpec::new("s1", Medium::Shared, FAST, &["a", "r1"]),
        SegmentSpec::new("s2", Medium::Shared, FAST, &["r1", "b"]),
    ];
    for segment in &mut segments[1..] {
        (segment.period_ns, segment.slot_ns) = (1_000_000, 100_000);
    }
    let topology = Topology::new(&nodes(&["a", "b", "r1"]), &segments).unwrap();
    let plan = plan(&topology, &frames("x", "a", &["b"], 1, 100)).unwrap();
    assert_eq!(plan.grant.bound_ns(), 3_600_000);
    assert_eq!(plan.grant.listeners[0].route.join(" "), "a s1 r1 s2 b");
}

#[test]
fn requests_that_mean_nothing_are_refused() {
    let topology = row(1);
    let good = frames("x", "a", &["b"], 1, 100);
    type Change = fn(&mut StreamRequest);
    fn tuple(protocol: u8, source_port: Option<u16>, destination_port: u16) -> FrameSpecification {
        FrameSpecification::Ipv4Tuple(IpTuple {
            source_ip_address: None,
            destination_ip_address: [10, 0, 0, 2].into(),
            protocol,
            source_port,
            destination_port,
        })
    }
    let changes: [(Change, &str); 14] = [
        (
            |r| r.talker.data_frame_specification = vec![tuple(1, None, 5004)],
            "`protocol` is 1, expected 6 (TCP), 17 (UDP) or 132 (SCTP)",
        ),
        (
            |r| r.talker.data_frame_specification = vec![tuple(17, None, 0)],
            "`destination-port` is 0, expected 1 to 65535",
        ),
        (
            |r| r.talker.data_frame_specification = vec![tuple(17, Some(0), 5004)],
            "`source-port` is 0",
        ),
        (
            |r| r.talker.data_frame_specification = vec![tuple(17, None, 5004); 17],
            "`data-frame-specification` is 17",
        ),
        (|r| r.stream_id = String::new(), "`stream-id`"),
        (|r| r.stream_id = "x".repeat(65), "`stream-id`"),
        (
            |r| r.talker.name = "c".to_owned(),
            "`talker` is c, expected the name",
        ),
        (|r| r.listeners[0].name = "a".to_owned(), "all different"),
        (|r| r.listeners.clear(), "1 to 256 listeners"),
        (
            |r| r.talker.traffic_specification.interval.denominator = 0,
            "`interval` is 10000000/0 s",
        ),
        (
            |r| r.talker.traffic_specification.interval.denominator = 7,
            "whole nanoseconds",
        ),
        (
            |r| r.talker.traffic_specification.max_frames_per_interval = Some(0),
            "`max-frames-per-interval` is 0",
        ),
        (
            |r| r.talker.traffic_specification.max_frame_size = Some(20),
            "`max-frame-size` is 20",
        ),
        (
            |r| r.talker.traffic_specification.bytes_per_interval = Some(1),
            "or bytes-per-interval",
        ),
    ];
    for (change, words) in changes {
        let mut bad = good.clone();
        change(&mut bad);
        let refused = plan(&topology, &bad).unwrap_err();
        assert!(matches!(refused, Refusal::Invalid { .. }), "{refused:?}");
        assert!(refused.to_string().contains(words), "{words}: {refused}");
    }
}

#[test]
fn a_request_is_json_in_the_models_words() {
    let json = r#"{
        "stream-id": "00-00-00-00-00-01:00-01",
        "talker": {
            "name": "a",
            "data-frame-specification": [
                {"ipv4-tuple": {"destination-ip-address": "10.0.0.2", "protocol": 17,
                                "destination-port": 5004}},
                {"ipv6-tuple": {"source-ip-address": "2001:db8::1", "source-port": 7,
                                "destination-ip-address": "2001:db8::2", "protocol": 17,
                                "destination-port": 5004}}
            ],
            "traffic-specification": {
                "interval": {"numerator": 1, "denominator": 100},
                "max-frames-per-interval": 2,
                "max-frame-size": 1000
            },
            "user-to-network-requirements": {"max-latency": 50000000}
        },
        "listeners": [{"name": "b"}]
    }"#;
    let request: StreamRequest = serde_json::from_str(json).unwrap();
    let plan = plan(&row(1), &request).unwrap();
    let grant = serde_json::to_value(&plan.grant).unwrap();
    // Answers have the words of this API, as all its answers.
    assert_eq!(grant["stream_id"], "00-00-00-00-00-01:00-01");
    assert_eq!(grant["spread_periods"], 1);
    assert_eq!(grant["listeners"][0]["bound_ns"], 36_000_000);
    assert_eq!(grant["links"][1]["bytes"], 2 * 1038);
    let again = serde_json::to_value(&request).unwrap();
    assert_eq!(
        serde_json::from_value::<StreamRequest>(again).unwrap(),
        request
    );
    for bad in [
        json.replace("max-frame-size", "frame-size"),
        json.replace("1000", "70000"),
        json.replace("10.0.0.2", "10.0.0.256"),
        json.replace("ipv4-tuple", "mac-addresses"),
        json.replace("\"protocol\"", "\"dscp\""),
        json.replace("\"numerator\": 1", "\"numerator\": -1"),
    ] {
        assert!(serde_json::from_str::<StreamRequest>(&bad).is_err());
    }
}
