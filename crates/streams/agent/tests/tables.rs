// SPDX-License-Identifier: MIT OR Apache-2.0
//! What managers said, as tables: what it asks of each port, until when, which reports are due, and
//! the changes that it leads to on a model of the kernel's tables, also after any of them was the
//! last.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use admission::{FrameSpecification, IpTuple};
use agent::known::{Astray, ManagerAnswer, ManagerAnswers, PortDemand, Report, StreamDemand};
use agent::target::{check, check_speed, check_tag, is_in_force, steps, target};
use host_config::{Made, Port, Psp, Root, Slot, minor, plan};
use manager_proto::enforce::{NodeDuty, PortDuty, StreamDuty};
use tcpsp::{Budget, Change, Layer, TypeOptions};

const S: u64 = 1_000_000_000;

fn frames(port: u16) -> Vec<FrameSpecification> {
    vec![FrameSpecification::Ipv4Tuple(IpTuple {
        source_ip_address: None,
        destination_ip_address: [10, 0, 0, 2].into(),
        protocol: 17,
        source_port: None,
        destination_port: port,
    })]
}

fn stream(id: &str, bytes: u64, expires_s: u64, in_force: bool) -> StreamDuty {
    StreamDuty {
        id: id.to_owned(),
        stream_id: id.to_owned(),
        bytes,
        frames: frames(5004),
        in_force,
        expires_in_ns: expires_s * S,
    }
}

/// What a manager said at a second: of each segment best effort's bytes and the streams.
fn heard(asked_s: u64, ports: &[(&str, u64, &[StreamDuty])]) -> ManagerAnswer {
    let port = |(segment, nrt_bytes, streams): &(&str, u64, &[StreamDuty])| {
        let duty = PortDuty {
            period_ns: 10_000_000,
            rate_bps: 100_000_000,
            nrt_bytes: *nrt_bytes,
            is_tagged: false,
            streams: streams.to_vec(),
        };
        ((*segment).to_owned(), duty)
    };
    ManagerAnswer {
        asked_ns: asked_s * S,
        duty: NodeDuty {
            changes: 0,
            node: "r1".to_owned(),
            ports: ports.iter().map(port).collect(),
            ..NodeDuty::default()
        },
    }
}

fn known(all: &[(&str, ManagerAnswer)]) -> ManagerAnswers {
    let all = all.iter();
    ManagerAnswers(
        all.map(|(url, heard)| ((*url).to_owned(), heard.clone()))
            .collect(),
    )
}

fn names(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn leases_end_when_they_were_asked_for_and_last() {
    let mut known = known(&[
        (
            "m1",
            heard(
                100,
                &[(
                    "s",
                    9,
                    &[stream("x", 1, 10, true), stream("y", 2, 20, true)],
                )],
            ),
        ),
        (
            "m2",
            heard(105, &[("s", 5, &[stream("z", 3, 10, true)]), ("t", 7, &[])]),
        ),
    ]);
    // Of best effort the least holds; streams are everybody's.
    let demands = known.demands();
    assert_eq!((demands["s"].nrt_bytes, demands["t"].nrt_bytes), (5, 7));
    assert_eq!(
        demands["s"].streams.keys().collect::<Vec<_>>(),
        ["x", "y", "z"]
    );
    assert_eq!(demands["s"].streams["z"].bytes, 3);
    for (now_s, ended, left, next_s) in [
        (109, &[][..], &["x", "y", "z"][..], Some(110)),
        (110, &[("x", "m1")], &["y", "z"], Some(115)),
        (119, &[("z", "m2")], &["y"], Some(120)),
        (500, &[("y", "m1")], &[], None),
    ] {
        let found = known.expire(now_s * S);
        let found: Vec<_> = found
            .iter()
            .map(|(id, of)| (id.as_str(), of.as_str()))
            .collect();
        assert_eq!(found, ended, "{now_s}");
        let demands = known.demands();
        assert_eq!(
            demands["s"].streams.keys().collect::<Vec<_>>(),
            left,
            "{now_s}"
        );
        assert_eq!(known.next_end_ns(), next_s.map(|s| s * S), "{now_s}");
        // Best effort keeps to what was said.
        assert_eq!(demands["s"].nrt_bytes, 5);
    }
}

#[test]
fn what_is_in_force_is_reported_once_and_what_is_not_any_more() {
    let mut unclaimed = stream("y", 1, 9, false);
    unclaimed.frames.clear();
    for (reported, in_force, due) in [
        (false, &["s", "t"][..], Some(true)),
        (true, &["s", "t"], None),
        // A stream that two ports send is in force when both are.
        (false, &["s"], None),
        (true, &["s"], Some(false)),
        (true, &[], Some(false)),
        (false, &[], None),
    ] {
        let streams = [stream("x", 1, 9, reported), unclaimed.clone()];
        let heard = heard(1, &[("s", 1, &streams), ("t", 1, &streams[..1])]);
        assert_eq!(heard.reservations(), 2);
        let expected = due.map(|in_force| Report {
            id: "x".to_owned(),
            in_force,
        });
        let found = heard.reports(&names(in_force), &Astray::new());
        assert_eq!(found, Vec::from_iter(expected), "{reported} {in_force:?}");
    }
}

/// A host whose routes lead a stream's frames elsewhere does not keep to its reservation.
#[test]
fn a_stream_whose_frames_leave_elsewhere_is_not_in_force() {
    let to: IpAddr = [10, 0, 0, 2].into();
    let other: IpAddr = [10, 0, 0, 3].into();
    let mut two = stream("two", 1, 9, true);
    let FrameSpecification::Ipv4Tuple(mut second) = frames(5004)[0] else {
        panic!("IPv4")
    };
    second.destination_ip_address = [10, 0, 0, 3].into();
    two.frames.push(FrameSpecification::Ipv4Tuple(second));
    let streams = [stream("one", 1, 9, true), two];
    let heard = heard(1, &[("s", 1, &streams), ("t", 1, &streams[1..])]);
    let known = known(&[("m", heard.clone())]);
    assert_eq!(known.destinations(), [to, other].into());
    let port = |(segment, device): (&str, &str)| (segment.to_owned(), device.to_owned());
    let ports: BTreeMap<_, _> = [("s", "eth0"), ("t", "eth1")].map(port).into();
    let astray = |by: Option<&str>, other_by: Option<&str>| {
        let routes = [
            (to, by.map(str::to_owned)),
            (other, other_by.map(str::to_owned)),
        ];
        known.astray(&ports, &routes.into())
    };
    let names = |astray: &Astray| -> Vec<String> {
        astray
            .keys()
            .map(|(id, segment)| format!("{id} {segment}"))
            .collect()
    };
    let in_force = ["s", "t"].map(str::to_owned).into();
    let lost = |astray: &Astray| -> Vec<String> {
        let reports = heard.reports(&in_force, astray);
        assert!(reports.iter().all(|of| !of.in_force));
        reports.into_iter().map(|of| of.id).collect()
    };
    // Each port has a destination.
    let none = astray(Some("eth0"), Some("eth1"));
    assert!(none.is_empty() && lost(&none).is_empty(), "{none:?}");
    // The only destination of one, and one of two's.
    let found = astray(Some("eth2"), Some("eth1"));
    assert_eq!(names(&found), ["one s", "two s"]);
    assert_eq!(lost(&found), ["one", "two"]);
    let detour = &found[&("one".to_owned(), "s".to_owned())];
    let expected = "reservation one is not in force: its frames go to 10.0.0.2 by eth2, expected \
                    eth0 of segment s";
    assert_eq!(
        (detour.problem.as_str(), &detour.segment),
        (expected, &None)
    );
    assert_eq!(heard.reroutes(&found), []);
    // By another port of this node: then its manager is asked for that way. Both destinations of two
    // have to go there.
    let found = astray(Some("eth1"), Some("eth1"));
    assert_eq!(names(&found), ["one s", "two s"]);
    let segment = |id: &str| (id.to_owned(), "t".to_owned());
    assert_eq!(heard.reroutes(&found), [segment("one"), segment("two")]);
    let found = astray(Some("eth1"), None);
    assert_eq!(heard.reroutes(&found), [segment("one")]);
    // No route at all.
    let found = astray(None, Some("eth1"));
    assert_eq!(names(&found), ["one s", "two s"]);
    assert!(
        found
            .values()
            .all(|detour| detour.problem.contains("to 10.0.0.2 by no route"))
    );
    let found = astray(Some("eth0"), Some("eth0"));
    assert_eq!(names(&found), ["two t"]);
    // What the kernel was not asked about is not known to be elsewhere, but not known to be here either.
    assert_eq!(names(&known.astray(&ports, &BTreeMap::new())).len(), 3);
    // A port that the agent was not given is another fault's.
    assert!(known.astray(&BTreeMap::new(), &BTreeMap::new()).is_empty());
}

#[test]
fn what_keeps_a_reservation_from_being_in_force_is_said() {
    let mut unclaimed = stream("y", 1, 9, false);
    unclaimed.frames.clear();
    let streams = [stream("x", 1, 9, false), unclaimed];
    let known = known(&[(
        "m",
        heard(1, &[("s", 1, &streams[1..]), ("t", 1, &streams[..1])]),
    )]);
    let port = |segment: &str| (segment.to_owned(), "eth0".to_owned());
    let said = known.faults(&[port("s"), port("u")].into_iter().collect());
    let said: Vec<_> = said.into_iter().collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said[0].starts_with("--port u: expected a segment of r1: s, t"),
        "{}",
        said[0]
    );
    assert!(
        said[1].contains("x sends into t: expected --port t=DEVICE"),
        "{}",
        said[1]
    );
    assert!(
        said[2].contains("y does not say which frames"),
        "{}",
        said[2]
    );
    assert_eq!(
        known
            .faults(&[port("s"), port("t")].into_iter().collect())
            .len(),
        1
    );
}

/// A port of which the kernel has made what it is.
fn untouched(speed_bps: Option<u64>) -> Port {
    Port {
        name: "eth0".to_owned(),
        is_ethernet: true,
        queues: 1,
        speed_bps,
        has_made_up_speed: false,
        max_frame_bytes: 1514,
        made: host_config::Made::Module,
        can_classify: false,
        root: Root::One(Slot::Default {
            kind: "fq_codel".to_owned(),
            waiting: 0,
        }),
    }
}

fn demand(nrt_bytes: u64, streams: &[(&str, u64, u16)]) -> PortDemand {
    let streams = streams.iter().map(|(id, bytes, port)| {
        let of = StreamDemand {
            bytes: *bytes,
            frames: frames(*port),
        };
        ((*id).to_owned(), of)
    });
    PortDemand {
        period_ns: 20_000_000,
        rate_bps: 100_000_000,
        nrt_bytes,
        is_tagged: false,
        streams: streams.collect(),
    }
}

#[test]
fn the_modules_filters_see_no_frame_behind_a_tag() {
    let plain = demand(1, &[]);
    let tagged = PortDemand {
        is_tagged: true,
        ..plain.clone()
    };
    for kind in [None, Some("vlan"), Some("veth"), Some("bond")] {
        for made in [Made::Module, Made::Bpf] {
            assert_eq!(check_tag(&plain, made, kind), Ok(()));
            let refused = check_tag(&tagged, made, kind).err();
            let is_seen = made == Made::Bpf || matches!(kind, Some("vlan" | "veth"));
            assert_eq!(refused.is_none(), is_seen, "{made:?} {kind:?}: {refused:?}");
        }
    }
}

#[test]
fn a_link_that_is_slower_than_its_segment_keeps_no_bound() {
    let demand = demand(1, &[]);
    for speed_bps in [None, Some(100_000_000), Some(1_000_000_000)] {
        assert_eq!(check_speed(&demand, &untouched(speed_bps)), Ok(()));
    }
    assert_eq!(
        check_speed(&demand, &untouched(Some(10_000_000))),
        Err(
            "the link has 10000000 bit/s, expected at least the segment's 100000000 bit/s"
                .to_owned()
        )
    );
}

#[test]
fn a_segment_that_no_port_keeps_to_is_refused() {
    let expected = "expected a time from \"125us\" to \"1s\"";
    for (period_ns, rate_bps, refusal) in [
        (125_000, 8_000, None),
        (S, 1_000_000_000_000, None),
        (
            100_000,
            100_000_000,
            Some(format!("the segment's `period` is 100000 ns, {expected}")),
        ),
        (
            S,
            1_000_000_000_001,
            Some(
                "the segment's `rate` is 1000000000001 bit/s, expected at most 1tbit, the fastest \
                 line"
                    .to_owned(),
            ),
        ),
        (
            S,
            7_999,
            Some(
                "the segment's `rate` is 7999 bit/s, expected at least 8kbit, the slowest line"
                    .to_owned(),
            ),
        ),
    ] {
        let demand = PortDemand {
            period_ns,
            rate_bps,
            ..demand(1, &[])
        };
        assert_eq!(check(&demand).err(), refusal);
    }
}

fn made(port: &Port, changes: &[Change]) -> Port {
    let mut port = port.clone();
    changes
        .iter()
        .for_each(|change| port.apply(change).unwrap());
    port
}

fn psp(port: &Port) -> &Psp {
    port.psp(minor::root()).unwrap()
}

/// Reservations of the classes, with the bytes of each, and of what goes where by port.
fn reserved(port: &Port) -> BTreeMap<String, u64> {
    let psp = psp(port);
    let classes = psp.classes.iter().map(|(minor, class)| {
        let name = match &class.options.by_type {
            TypeOptions::Rt { .. } => {
                let filter = psp.filters.iter().find(|f| f.class == Some(*minor));
                format!("rt {:?}", filter.and_then(|f| f.matching.clone()))
            }
            TypeOptions::Nrt { .. } => {
                assert_eq!(psp.options.default_minor, *minor);
                "nrt".to_owned()
            }
            other => panic!("{other:?}"),
        };
        (name, class.options.reserve_bytes())
    });
    classes.collect()
}

#[test]
fn a_port_has_a_class_for_each_stream_and_one_for_the_rest() {
    let demand = demand(30_000, &[("x", 10_462, 5004), ("y", 0, 5005)]);
    for speed_bps in [None, Some(1_000_000_000)] {
        let port = untouched(speed_bps);
        let target = target(&demand, &port, Made::Module);
        let port = made(&port, &plan(&target, &port, false).unwrap().changes);
        let options = &psp(&port).options;
        assert_eq!(
            (options.layer, options.period_ns),
            (Layer::Wire, 20_000_000)
        );
        assert_eq!(options.budget, Budget::Bytes(30_000 + 10_462 + 1));
        // The device knows its rate best.
        let line_bps = speed_bps.is_none().then_some(100_000_000);
        assert_eq!(options.line_rate_bps, line_bps);
        let reserved = reserved(&port);
        assert_eq!(reserved["nrt"], 30_000);
        assert_eq!(reserved.values().sum::<u64>(), 30_000 + 10_462 + 1);
        let to = reserved.keys().find(|name| name.contains("5004")).unwrap();
        assert!(to.contains("10.0.0.2") && to.contains("Udp"), "{to}");
    }
    // A stream without frames has no class.
    let mut demand = demand;
    demand.streams.get_mut("y").unwrap().frames.clear();
    let port = untouched(None);
    let target = target(&demand, &port, Made::Module);
    let port = made(&port, &plan(&target, &port, false).unwrap().changes);
    assert_eq!(psp(&port).classes.len(), 2);
}

/// An agent is killed after any change and started again: the port is the same in the end, and is in
/// force exactly then.
fn any_change_may_be_the_last_by(backend: Made) {
    let steps = [
        demand(80_000, &[]),
        demand(70_000, &[("x", 10_000, 1)]),
        demand(50_000, &[("x", 10_000, 1), ("y", 20_000, 2), ("a", 300, 3)]),
        demand(60_000, &[("y", 15_000, 2), ("a", 300, 4)]),
        demand(80_000, &[]),
    ];
    let mut port = untouched(None);
    port.made = backend;
    for demand in steps {
        let target = target(&demand, &port, backend);
        let changes = plan(&target, &port, false).unwrap().changes;
        assert!(changes.len() > 1, "{demand:?}");
        let whole = made(&port, &changes);
        for count in 0..=changes.len() {
            let cut = made(&port, &changes[..count]);
            let left = plan(&target, &cut, false).unwrap().changes;
            let again = made(&cut, &left);
            assert_eq!(reserved(&again), reserved(&whole), "{count}");
            assert_eq!(psp(&again).options, psp(&whole).options, "{count}");
            assert!(plan(&target, &again, false).unwrap().changes.is_empty());
            let is_leaving = left.iter().all(|change| {
                matches!(
                    change,
                    Change::DeleteClass { .. } | Change::ChangeQdisc { .. }
                )
            });
            let is_done = left.is_empty()
                || is_leaving && left.iter().any(|c| matches!(c, Change::DeleteClass { .. }));
            assert_eq!(
                is_in_force(&target, &cut, &left),
                is_done,
                "{count} {left:?}"
            );
        }
        port = whole;
    }
    assert!(!is_in_force(
        &target(&demand(1, &[]), &untouched(None), backend),
        &untouched(None),
        &[]
    ));
}

#[test]
fn any_change_may_be_the_last() {
    any_change_may_be_the_last_by(Made::Module);
    any_change_may_be_the_last_by(Made::Bpf);
}

/// A line whose bytes are all reserved: no step has more than the line carries in a period.
fn no_step_reserves_more_than_the_line_carries_by(backend: Made) {
    const LINE_BYTES: u64 = 250_000;
    let mut port = untouched(None);
    port.made = backend;
    for demand in [
        demand(LINE_BYTES, &[]),
        demand(80_000, &[("x", 100_000, 1), ("y", 70_000, 2)]),
        demand(80_000, &[("z", 170_000, 3)]),
        demand(LINE_BYTES, &[]),
    ] {
        for step in steps(&demand, &port) {
            let target = target(&step, &port, backend);
            for change in plan(&target, &port, false).unwrap().changes {
                port = made(&port, std::slice::from_ref(&change));
                let Budget::Bytes(bytes) = psp(&port).options.budget else {
                    panic!("{change:?}");
                };
                assert!(bytes <= LINE_BYTES, "{change:?}");
            }
        }
        let target = target(&demand, &port, backend);
        assert!(plan(&target, &port, false).unwrap().changes.is_empty());
    }
}

#[test]
fn no_step_reserves_more_than_the_line_carries() {
    no_step_reserves_more_than_the_line_carries_by(Made::Module);
    no_step_reserves_more_than_the_line_carries_by(Made::Bpf);
}
