// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans, tried on the model of the kernel's tables: every change is accepted, every frame goes at
//! every moment where it went before or goes afterwards, and a plan that was cut short is made up
//! for by the next.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use host_config::{
    Amiss, Backend, Beside, Host, Made, Port, Psp, Root, Saved, Slot, Target, TargetPsp,
    TargetRoot, TargetRule, minor, plan,
};
use proptest::prelude::*;
use tcpsp::{
    Budget, Change, ClassOptions, Family, Flower, Handle, Match, Prefix, QdiscOptions, TypeOptions,
};

/// Addresses 10.0.0.0 to 10.0.0.7, with marks 0 to 2.
fn frames() -> impl Iterator<Item = (u8, u32)> {
    (0..8).flat_map(|address| (0..3).map(move |mark| (address, mark)))
}

fn is_matched(matching: &Match, (address, mark): (u8, u32)) -> bool {
    match matching {
        Match::Mark(wanted) => *wanted == mark,
        Match::Flower(flower) => {
            let address = IpAddr::from([10, 0, 0, address]);
            flower.destination.is_none_or(|to| to.contains(address))
        }
        Match::Cgroup | Match::Sender(_) => false,
    }
}

/// The class of a frame; 0: best effort.
fn class_of(psp: &Psp, frame: (u8, u32)) -> u16 {
    let mut filters = psp.filters.iter();
    let first = filters.find(|f| f.matching.as_ref().is_some_and(|m| is_matched(m, frame)));
    let class = first.and_then(|filter| filter.class);
    let class = class.unwrap_or(psp.options.default_minor);
    if psp.classes.contains_key(&class) {
        class
    } else {
        0
    }
}

/// The class of each frame at each queue; none of a queue without psp.
fn classes_of(port: &Port) -> Vec<Vec<u16>> {
    let of = |slot: &Slot| match slot {
        Slot::Psp(psp) => frames().map(|frame| class_of(psp, frame)).collect(),
        _ => frames().map(|_| 0).collect(),
    };
    match &port.root {
        Root::One(slot) => vec![of(slot)],
        Root::Mq(slots) => slots.iter().map(of).collect(),
    }
}

fn matches() -> impl Strategy<Value = Match> {
    let prefix = (0..8u8, 29..=32u8).prop_map(|(address, bits)| {
        let address = address & (0xffu32 << (32 - bits)) as u8;
        Match::Flower(Flower {
            family: Some(Family::Ipv4),
            destination: Some(Prefix {
                address: [10, 0, 0, address].into(),
                bits,
            }),
            ..Flower::default()
        })
    });
    prop_oneof![4 => prefix, 1 => (1..3u32).prop_map(Match::Mark)]
}

fn options() -> impl Strategy<Value = ClassOptions> {
    let by_type = prop_oneof![
        proptest::option::of(256..300u32)
            .prop_map(|quantum_bytes| TypeOptions::Normal { quantum_bytes }),
        (1..9u64).prop_map(|mbit| TypeOptions::Paced {
            rate_bps: mbit * 1_000_000,
            ceil_bps: None,
            launch: None
        }),
        (1..9u64).prop_map(|kb| TypeOptions::Rt {
            reserve_bytes: kb * 1000,
        }),
    ];
    by_type.prop_map(ClassOptions::new)
}

/// Puts classes into groups, by their numbers, as far as a group is there that takes them. Class 0
/// and class 3 become groups if their own number is even.
fn put_into_groups(classes: &mut BTreeMap<u16, ClassOptions>, members: &[(u16, u16)]) {
    for (i, choice) in members
        .iter()
        .filter(|(i, choice)| i % 3 == 0 && choice % 2 == 0)
    {
        let ceil_bps = 1_000_000 * u64::from(4 + choice);
        classes.insert(
            minor::FIRST_MINOR + i,
            ClassOptions::new(TypeOptions::Group {
                rate_bps: 1_000_000,
                ceil_bps: Some(ceil_bps),
            }),
        );
    }
    for (i, choice) in members {
        let group = minor::FIRST_MINOR + 3 * (choice % 3);
        let ceil = match classes.get(&group).map(|group| &group.by_type) {
            Some(TypeOptions::Group { ceil_bps, .. }) => ceil_bps.unwrap(),
            _ => continue,
        };
        let class = classes.get_mut(&(minor::FIRST_MINOR + i)).unwrap();
        let fits = match class.by_type {
            TypeOptions::Normal { .. } => true,
            TypeOptions::Paced { rate_bps, .. } => rate_bps <= ceil,
            _ => false,
        };
        class.group = Some(group).filter(|_| fits);
    }
}

/// A psp whose rates and reservations fit.
fn targets() -> impl Strategy<Value = TargetPsp> {
    let classes = proptest::collection::btree_map(0..6u16, (options(), 0..9u16), 0..6);
    let rules = proptest::collection::vec((matches(), any::<prop::sample::Index>()), 0..9);
    let numbers = (0..6u16, 0..3u64, 0..4u64);
    (classes, rules, numbers).prop_map(|(classes, rules, (default, line, slack))| {
        let members: Vec<(u16, u16)> = classes.iter().map(|(i, (_, group))| (*i, *group)).collect();
        let mut classes: BTreeMap<u16, ClassOptions> = classes
            .into_iter()
            .map(|(i, (options, _))| (minor::FIRST_MINOR + i, options))
            .collect();
        put_into_groups(&mut classes, &members);
        let is_class =
            |options: &ClassOptions| !matches!(options.by_type, TypeOptions::Group { .. });
        let minors = classes.iter().filter(|(_, options)| is_class(options));
        let minors: Vec<u16> = minors.map(|(minor, _)| *minor).collect();
        let rules = rules.into_iter().filter(|_| !minors.is_empty());
        let rules = rules.map(|(matching, class)| TargetRule {
            matching,
            class: *class.get(&minors),
            place: None,
        });
        let highest = classes.values().map(|options| match options.by_type {
            TypeOptions::Paced { rate_bps, .. } => rate_bps,
            TypeOptions::Group { ceil_bps, .. } => ceil_bps.unwrap(),
            _ => 0,
        });
        let highest = highest.max().unwrap_or(0);
        let reserved: u64 = classes.values().map(ClassOptions::reserve_bytes).sum();
        let mut options = QdiscOptions::default_of(true);
        let default = minor::FIRST_MINOR + default;
        options.default_minor = if minors.contains(&default) {
            default
        } else {
            0
        };
        options.line_rate_bps = (line > 0).then_some(highest + line * 1_000_000);
        options.budget = Budget::Bytes(reserved.max(1) + slack * 1000);
        TargetPsp {
            options,
            rules: rules.collect(),
            classes,
        }
    })
}

/// What is wanted of a device, one time after the other; all as root or all below mq, or mixed.
fn wishes() -> impl Strategy<Value = Vec<Target>> {
    let all = [Made::Module, Made::Bpf, Made::Edt, Made::EdtMq];
    let one = (targets(), any::<bool>(), prop::sample::select(all.to_vec()));
    let one = one.prop_map(|(psp, is_mq, made)| Target {
        made,
        root: if is_mq && made.is_of_each_queue() {
            TargetRoot::Mq(vec![psp.clone(), psp])
        } else {
            TargetRoot::Psp(psp)
        },
        names: BTreeMap::new(),
    });
    let same = (proptest::collection::vec(targets(), 2..5)).prop_map(|all| {
        let roots = all.into_iter().map(|psp| Target {
            made: Made::Bpf,
            root: TargetRoot::Psp(psp),
            names: BTreeMap::new(),
        });
        roots.collect()
    });
    prop_oneof![1 => proptest::collection::vec(one, 2..4), 3 => same]
}

fn device() -> Port {
    Port {
        name: "eth0".to_owned(),
        is_ethernet: true,
        queues: 2,
        speed_bps: Some(100_000_000),
        has_made_up_speed: false,
        max_frame_bytes: 1514,
        made: Made::Module,
        can_classify: false,
        root: Root::One(Slot::Default {
            kind: "fq_codel".to_owned(),
            waiting: 0,
        }),
    }
}

/// Plans; what is put at the device is made of what the target says.
fn planned(target: &Target, port: &mut Port) -> Vec<Change> {
    port.made = target.made;
    plan(target, port, false).unwrap().changes
}

/// Returns the device with a class by the module, as a file with these keys of the device has it.
fn applied(keys: &str) -> Port {
    let class = "[[device.class]]\nname = \"a\"\nrate = \"9mbit\"\n";
    let text = format!("[[device]]\nname = \"eth0\"\n{keys}\n{class}");
    let host = Host::read("f", &text).unwrap();
    let mut port = device();
    let target = Target::new(&host.devices[0], Backend::Module, &port);
    let changes = planned(&target, &mut port);
    make(&mut port, &changes);
    port
}

/// Without the places of filters, of which only the order matters.
fn without_places(port: &Port) -> Port {
    let mut port = port.clone();
    let slots = match &mut port.root {
        Root::One(slot) => std::slice::from_mut(slot),
        Root::Mq(slots) => slots,
    };
    for slot in slots {
        if let Slot::Psp(psp) = slot {
            // In a list no two match the same frame.
            let mut lists: Vec<_> = psp
                .filters
                .chunk_by_mut(|a, b| a.priority == b.priority)
                .collect();
            for (list, place) in lists.iter_mut().zip(0..) {
                list.sort_by_key(|filter| format!("{:?}", filter.matching));
                for filter in list.iter_mut() {
                    filter.priority = place;
                    if filter.handle >= minor::FILTER {
                        filter.handle = minor::FILTER;
                    }
                }
            }
        }
    }
    port
}

/// Makes changes one by one; each is accepted, and keeps what is said above.
fn make(port: &mut Port, changes: &[Change]) {
    let before = classes_of(port);
    let mut states = vec![];
    for change in changes {
        port.apply(change)
            .unwrap_or_else(|error| panic!("{change:?}: {error}\n{changes:#?}"));
        states.push(classes_of(port));
    }
    let after = classes_of(port);
    for (state, change) in states.iter().zip(changes) {
        for (queue, classes) in state.iter().enumerate() {
            for (frame, class) in classes.iter().enumerate() {
                let at = |all: &Vec<Vec<u16>>| all.get(queue).map_or(0, |all| all[frame]);
                // A new qdisc sends all frames by best effort at first, as the old one did.
                let is_new = changes.iter().any(|change| {
                    matches!(
                        change,
                        Change::AddQdisc { .. } | Change::ReplaceQdisc { .. }
                    )
                });
                let may = [at(&before), at(&after), if is_new { 0 } else { at(&after) }];
                // Classes that are made anew have deputies: numbers from the last one down.
                let is_stand_in = *class > minor::LAST_MINOR - 12;
                assert!(
                    is_stand_in || may.contains(class),
                    "{class:x}, not {may:x?}: {change:?}\n{changes:#?}"
                );
            }
        }
    }
}

/// Returns the classes that a plan names in changes of classes.
fn touched(changes: &[Change]) -> BTreeSet<Handle> {
    let ids = changes.iter().filter_map(|change| match change {
        Change::AddClass { id, .. }
        | Change::ChangeClass { id, .. }
        | Change::DeleteClass { id } => Some(*id),
        _ => None,
    });
    ids.collect()
}

/// Of each psp whose classes all stay or come: the bytes of a period that its classes have before
/// changes, at most in between, and after them.
fn promised(port: &Port, changes: &[Change]) -> Vec<(u64, u64, u64)> {
    let bytes = |port: &Port, handle: Handle| {
        let psp = port.psp(handle);
        let classes = psp.into_iter().flat_map(|psp| psp.classes.values());
        classes
            .map(|class| class.options.reserve_bytes())
            .sum::<u64>()
    };
    let goes = |change: &Change| {
        matches!(
            change,
            Change::DeleteClass { .. } | Change::DeleteQdisc { .. } | Change::ReplaceQdisc { .. }
        )
    };
    if changes.iter().any(goes) {
        return vec![];
    }
    let handles: Vec<Handle> = port.psps().iter().map(|psp| psp.handle).collect();
    let of = |handle: &Handle| {
        let mut now = port.clone();
        let mut most = 0;
        for change in changes {
            now.apply(change).unwrap();
            most = most.max(bytes(&now, *handle));
        }
        (bytes(port, *handle), most, bytes(&now, *handle))
    };
    handles.iter().map(of).collect()
}

proptest! {
    #![proptest_config(testkit::cases(1500))]

    #[test]
    fn a_plan_leads_there_and_the_next_is_empty(wishes in wishes()) {
        let mut port = device();
        for wish in &wishes {
            let before = port.clone();
            let changes = planned(wish, &mut port);
            make(&mut port, &changes);
            prop_assert_eq!(planned(wish, &mut port), vec![]);
            for (before, during, after) in promised(&before, &changes) {
                prop_assert!(during <= before.max(after), "{} {} {}", before, during, after);
            }
            // Classes with the same options on both sides are not touched.
            for psp in port.psps() {
                let Some(old) = before.psp(psp.handle) else { continue };
                if old.made != psp.made {
                    continue;
                }
                if std::mem::discriminant(&before.root) != std::mem::discriminant(&port.root) {
                    continue;
                }
                for (minor, class) in &psp.classes {
                    let id = Handle::new(psp.handle.major(), *minor);
                    let is_same = old.classes.get(minor) == Some(class);
                    prop_assert!(!is_same || !touched(&changes).contains(&id));
                }
            }
        }
    }

    #[test]
    fn a_plan_that_was_cut_short_is_made_up_for(wishes in wishes(), cut in any::<prop::sample::Index>()) {
        let mut port = device();
        let mut cut_short = device();
        for wish in &wishes {
            let changes = planned(wish, &mut port);
            make(&mut port, &changes);
            let changes = planned(wish, &mut cut_short);
            let made = cut.index(changes.len() + 1);
            for change in &changes[..made] {
                cut_short.apply(change).unwrap();
            }
            let rest = planned(wish, &mut cut_short);
            make(&mut cut_short, &rest);
            prop_assert_eq!(without_places(&cut_short), without_places(&port));
        }
    }

    #[test]
    fn a_plan_that_was_cut_short_ends_in_the_same_places(
        first in targets(), second in targets(), cut in any::<prop::sample::Index>(),
    ) {
        // Of two equal matches the second is never reached, and either may have stayed.
        let wish = |mut psp: TargetPsp| {
            let mut seen = Vec::new();
            psp.rules.retain(|rule| {
                let is_new = !seen.contains(&rule.matching);
                seen.push(rule.matching.clone());
                is_new
            });
            Target { made: Made::Module, root: TargetRoot::Psp(psp), names: BTreeMap::new() }
        };
        let (first, second) = (wish(first), wish(second));
        let mut port = device();
        let changes = planned(&first, &mut port);
        make(&mut port, &changes);
        let mut cut_short = port.clone();
        let changes = planned(&second, &mut port);
        make(&mut port, &changes);
        let made = cut.index(changes.len() + 1);
        for change in &changes[..made] {
            cut_short.apply(change).unwrap();
        }
        let rest = planned(&second, &mut cut_short);
        make(&mut cut_short, &rest);
        prop_assert_eq!(cut_short, port);
    }

    #[test]
    fn what_was_saved_is_restored_to_the_place(wishes in wishes()) {
        let mut port = device();
        let mut saved = Vec::new();
        for wish in &wishes {
            let text = Saved::new(std::slice::from_ref(&port)).unwrap().write();
            saved.push((Saved::read(&text).unwrap(), port.clone()));
            let changes = planned(wish, &mut port);
            make(&mut port, &changes);
        }
        for (saved, was) in saved.iter().rev() {
            let target = saved.devices[0].target().unwrap();
            let changes = planned(&target, &mut port);
            if was.psps().is_empty() {
                prop_assert!(changes.len() == 1);
                continue;
            }
            make(&mut port, &changes);
            prop_assert_eq!(&port.root, &was.root);
        }
    }
}

/// What has met fq paces itself never again: who takes departure times away is told.
#[test]
fn leaving_departure_times_says_what_is_not_paced_then() {
    let psp = TargetPsp {
        options: QdiscOptions::default_of(true),
        rules: Vec::new(),
        classes: BTreeMap::new(),
    };
    let target = |made, root| Target {
        made,
        root,
        names: BTreeMap::new(),
    };
    let wanted = |made| target(made, TargetRoot::Psp(psp.clone()));
    let none = target(Made::Module, TargetRoot::Default);
    for (had, then, is_said) in [
        (Made::Edt, none.clone(), true),
        (Made::Edt, wanted(Made::Module), true),
        (Made::Edt, wanted(Made::Bpf), true),
        (Made::Edt, wanted(Made::Edt), false),
        (Made::Module, none, false),
        (Made::Module, wanted(Made::Edt), false),
    ] {
        let mut port = device();
        let changes = planned(&wanted(had), &mut port);
        for change in &changes {
            port.apply(change).unwrap();
        }
        port.made = then.made;
        let notes = plan(&then, &port, false).unwrap().notes;
        let said = notes
            .iter()
            .any(|note| note.contains("not pace themselves"));
        assert_eq!(said, is_said, "{had:?} to {then:?}: {notes:?}");
    }
}

/// Of a NIC whose link is down the kernel says no speed.
#[test]
fn a_link_that_is_down_keeps_its_line() {
    let text = "[[device]]\nname = \"eth0\"\n[[device.class]]\nname = \"a\"\nrate = \"9mbit\"\n";
    let host = Host::read("f", text).unwrap();
    for (backend, made) in [(Backend::Bpf, Made::Bpf), (Backend::Module, Made::Module)] {
        let mut port = device();
        let target = Target::new(&host.devices[0], backend, &port);
        let changes = planned(&target, &mut port);
        make(&mut port, &changes);
        port.speed_bps = None;
        port.keep_known_speed();
        assert_eq!(port.speed_bps, Some(100_000_000), "{made:?}");
        assert_eq!(planned(&target, &mut port), [], "{made:?}");
    }
}

#[test]
fn a_speed_is_not_taken_from_what_is_not_the_devices() {
    for keys in ["line = \"50mbit\"", "queues = \"mq\""] {
        let mut port = applied(keys);
        port.speed_bps = None;
        port.keep_known_speed();
        assert_eq!(port.speed_bps, None, "{keys}");
    }
}

#[test]
fn queues_that_have_come_are_restored_as_all_others() {
    let port = applied("queues = \"mq\"");
    let saved = Saved::new(std::slice::from_ref(&port)).unwrap().write();
    let restored = || Saved::read(&saved).unwrap().devices[0].target().unwrap();
    let mut more = restored();
    assert_eq!(more.spread(4), None);
    let TargetRoot::Mq(psps) = &more.root else {
        panic!("{more:?}")
    };
    assert!(psps.len() == 4 && psps.iter().all(|psp| psp == &psps[0]));
    let mut differ = restored();
    let TargetRoot::Mq(psps) = &mut differ.root else {
        panic!("{differ:?}")
    };
    psps[0].classes.clear();
    assert!(differ.spread(2).is_none());
    let note = differ.spread(4).unwrap();
    assert!(note.contains("has 4 transmit queues, and had 2"), "{note}");
}

/// What keeps the packets and is not as it shall be is put right by one change, once.
#[test]
fn what_is_amiss_below_is_one_change() {
    let psp = TargetPsp {
        options: QdiscOptions::default_of(true),
        rules: Vec::new(),
        classes: BTreeMap::new(),
    };
    let target = Target {
        made: Made::EdtMq,
        root: TargetRoot::Psp(psp),
        names: BTreeMap::new(),
    };
    let mut port = device();
    let changes = planned(&target, &mut port);
    make(&mut port, &changes);
    assert_eq!(planned(&target, &mut port), vec![]);
    let amiss = |is_of_others| Amiss {
        what: "transmit queue 1: pfifo 9:, expected fq".to_owned(),
        is_of_others,
    };
    let set = |port: &mut Port, is_of_others| {
        port.psps_mut()
            .for_each(|psp| psp.amiss = vec![amiss(is_of_others)]);
    };
    set(&mut port, true);
    let refused = plan(&target, &port, false).unwrap_err().to_string();
    assert!(
        refused.contains("pfifo 9:, expected fq; it was"),
        "{refused}"
    );
    assert_eq!(plan(&target, &port, true).unwrap().changes.len(), 1);
    set(&mut port, false);
    let found = plan(&target, &port, false).unwrap();
    let said = host_config::changes(&found, &Beside::default(), &port);
    assert!(
        said.len() == 1 && said[0].contains("transmit queue 1: pfifo 9:, expected fq"),
        "{said:?}"
    );
    make(&mut port, &found.changes);
    assert_eq!(planned(&target, &mut port), vec![]);
}

#[test]
fn what_another_version_does_is_not_kept_as_nothing() {
    let mut port = applied("");
    let ports = std::slice::from_mut(&mut port);
    assert!(Saved::new(ports).is_ok());
    for psp in ports[0].psps_mut() {
        psp.is_unread = true;
    }
    let refused = Saved::new(ports).unwrap_err();
    assert!(
        refused.starts_with("eth0: what paces it is of another version"),
        "{refused}"
    );
}
