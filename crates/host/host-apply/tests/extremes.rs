// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files with extreme values, from the least to the largest that a number or a quantity can say,
//! whatever the limits are: each is refused with the key, its value and what was expected, or its
//! plan is what the kernel's attributes carry, and nothing is left to plan once it is made.

use std::fmt::Write;

use host_apply::{Observed, check};
use host_config::{Backend, Facts, Host, Port, Target, check_backend, plan};
use proptest::prelude::*;
use tcpsp::{Change, ClassOptions, QdiscKind, QdiscOptions, attribute};

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    Rate,
    Size,
    Time,
    Number,
    Percent,
}

/// A kind of class, with all that it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Paced,
    Launching,
    Normal,
    Dynamic,
    Rt,
    Nrt,
    Grouped,
}

use Kind::{Dynamic, Grouped, Launching, Normal, Nrt, Paced, Rt};
use Unit::{Number, Percent, Rate, Size, Time};

/// Where a key is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    Device,
    Group,
    Class,
}

/// Each key with a number or a quantity, of each kind of class that has it.
pub const KEYS: &[(Kind, Place, &str, Unit)] = &[
    (Paced, Place::Class, "rate", Rate),
    (Paced, Place::Class, "ceil", Rate),
    (Paced, Place::Class, "share", Percent),
    (Paced, Place::Class, "deadline", Time),
    (Paced, Place::Class, "mark", Time),
    (Paced, Place::Device, "line", Rate),
    (Paced, Place::Device, "overhead", Number),
    (Paced, Place::Device, "byte_queue_limit_min", Size),
    (Launching, Place::Class, "rate", Rate),
    (Launching, Place::Class, "txtime_late", Time),
    (Launching, Place::Class, "horizon", Time),
    (Normal, Place::Class, "quantum", Size),
    (Normal, Place::Class, "deadline", Time),
    (Dynamic, Place::Class, "rate", Rate),
    (Dynamic, Place::Class, "ceil", Rate),
    (Dynamic, Place::Class, "total", Rate),
    (Dynamic, Place::Class, "floor", Rate),
    (Dynamic, Place::Class, "pacing_floor", Rate),
    (Dynamic, Place::Class, "flows", Number),
    (Dynamic, Place::Class, "limit", Number),
    (Dynamic, Place::Class, "flow_limit", Number),
    (Dynamic, Place::Class, "horizon", Time),
    (Dynamic, Place::Class, "deadline", Time),
    (Rt, Place::Class, "reserve", Size),
    (Rt, Place::Class, "share", Percent),
    (Rt, Place::Class, "deadline", Time),
    (Rt, Place::Device, "period", Time),
    (Rt, Place::Device, "budget", Size),
    (Rt, Place::Device, "budget", Percent),
    (Rt, Place::Device, "align", Time),
    (Rt, Place::Device, "line", Rate),
    (Nrt, Place::Class, "reserve", Size),
    (Nrt, Place::Class, "share", Percent),
    (Nrt, Place::Device, "period", Time),
    (Grouped, Place::Class, "rate", Rate),
    (Grouped, Place::Class, "ceil", Rate),
    (Grouped, Place::Group, "rate", Rate),
    (Grouped, Place::Group, "ceil", Rate),
];

/// Layers that rates count.
pub const LAYERS: &[&str] = &["link", "wire", "ip"];

/// Where a file is for.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    pub backend: Backend,
    pub device: &'a str,
    pub layer: &'a str,
}

/// A key of a kind of class, and its value.
pub type Extreme = (Place, &'static str, Unit, u64);

fn written(unit: Unit, value: u64) -> String {
    match unit {
        Rate => format!("\"{value}bit\""),
        Size => format!("\"{value}b\""),
        Time => format!("\"{value}ns\""),
        Percent => format!("\"{value}%\""),
        Number => value.to_string(),
    }
}

/// Returns a file of a device with a class of a kind, one with a rate and the others, and these
/// values in the place of the usual ones.
pub fn file(site: Site<'_>, kind: Kind, values: &[Extreme]) -> String {
    let backend = site.backend;
    let mut text = String::new();
    let mut table = |head: &str, usual: &[(&str, &str)], place: Option<Place>| {
        writeln!(text, "{head}").unwrap();
        let here = values.iter().filter(|(of, ..)| Some(*of) == place);
        let is_given = |key: &str| here.clone().any(|(_, given, ..)| *given == key);
        // A share stands for a rate or a reservation.
        let instead = |key: &str| ["rate", "reserve"].contains(&key) && is_given("share");
        for (key, value) in usual {
            if !is_given(key) && !instead(key) {
                writeln!(text, "{key} = {value}").unwrap();
            }
        }
        for (_, key, unit, value) in here.clone() {
            writeln!(text, "{key} = {}", written(*unit, *value)).unwrap();
        }
    };
    let name = format!("\"{}\"", site.device);
    let layer = format!("\"{}\"", site.layer);
    let word = format!("\"{}\"", backend.word());
    let line = if backend == Backend::Edt {
        "\"auto\""
    } else {
        "\"1gbit\""
    };
    let usual = [
        ("name", name.as_str()),
        ("backend", &word),
        ("line", line),
        ("mode", "\"timer\""),
        ("layer", &layer),
        ("default", "\"rest\""),
    ];
    table("[[device]]", &usual, Some(Place::Device));
    if kind == Grouped {
        let usual = [("name", "\"all\""), ("rate", "\"20mbit\"")];
        table("[[device.group]]", &usual, Some(Place::Group));
    }
    let mut usual = vec![("name", "\"telemetry\"")];
    usual.extend(match kind {
        Paced => vec![("rate", "\"10mbit\"")],
        Launching => vec![("rate", "\"10mbit\""), ("txtime", "\"tai\"")],
        Normal => vec![("type", "\"normal\"")],
        Dynamic => vec![("type", "\"dynamic\"")],
        Rt => vec![("type", "\"rt\""), ("reserve", "\"2000b\"")],
        Nrt => vec![("type", "\"nrt\""), ("reserve", "\"2000b\"")],
        Grouped => vec![("group", "\"all\""), ("rate", "\"10mbit\"")],
    });
    usual.push(("match", "[{ to_port = 7, protocol = \"udp\" }]"));
    table("[[device.class]]", &usual, Some(Place::Class));
    let usual = [
        ("name", "\"backup\""),
        ("rate", "\"8kbit\""),
        ("match", "[{ to_port = 5001, protocol = \"udp\" }]"),
    ];
    table("[[device.class]]", &usual, None);
    let usual = [("name", "\"rest\""), ("type", "\"normal\"")];
    table("[[device.class]]", &usual, None);
    text
}

/// A cable of 1 Gbit/s.
fn facts() -> Facts {
    Facts {
        index: 2,
        name: "eth0".to_owned(),
        is_ethernet: true,
        queues: 1,
        speed_bps: Some(1_000_000_000),
        has_made_up_speed: false,
        max_frame_bytes: 1514,
    }
}

/// Plans a file as `pspacer plan` does, on a device that has nothing. Returns it with the changes, or
/// the refusal.
fn planned(backend: Backend, text: &str) -> Result<(Observed, Target, Vec<Change>), String> {
    let host = Host::read("f", text).map_err(|error| error.to_string())?;
    let device = &host.devices[0];
    check_backend(device, backend, true).map_err(|refusal| refusal.to_string())?;
    let facts = facts();
    let mut port = Port::new(&facts, &[], &[], &[]);
    let target = Target::new(device, backend, &port);
    port.made = target.made;
    let plan = plan(&target, &port, false).map_err(|refusal| refusal.to_string())?;
    let observed = Observed {
        kind: None,
        facts,
        dir: None,
        port,
        is_multiqueue: false,
        max_frame_bytes: 1518,
        burst_bytes: 65_536,
    };
    check(&observed, &plan).map_err(|refusal| format!("{refusal:#}"))?;
    Ok((observed, target, plan.changes))
}

/// Returns the least and the largest value of a key that `plan` takes, if it takes any.
pub fn ends(
    site: Site<'_>,
    (kind, place, key, unit): (Kind, Place, &'static str, Unit),
) -> Option<(u64, u64)> {
    let takes = |value: u64| {
        let text = file(site, kind, &[(place, key, unit, value)]);
        planned(site.backend, &text).is_ok()
    };
    let some = (0..64)
        .map(|bits| 1u64 << bits)
        .find(|value| takes(*value))?;
    // The last value that is taken, on the way from one that is to one that may not be.
    let last = |mut taken: u64, mut other: u64| {
        if takes(other) {
            return other;
        }
        while taken.abs_diff(other) > 1 {
            let middle = taken.midpoint(other);
            if takes(middle) {
                taken = middle;
            } else {
                other = middle;
            }
        }
        taken
    };
    Some((last(some, 0), last(some, u64::MAX)))
}

/// Asserts that a refusal names a key, its value, and what was expected.
pub fn assert_named(refusal: &str, text: &str) {
    let mut parts = refusal.split('`').skip(1).step_by(2);
    let is_key = |part: &str| {
        let mut keys = KEYS.iter().map(|(_, _, key, _)| *key);
        ["type", "txtime"].contains(&part) || keys.any(|key| key == part)
    };
    let is_said = refusal.contains("` is ") || refusal.contains(" lacks `");
    let is_named = is_said && refusal.contains("expected ") && parts.any(is_key);
    let is_table = refusal.contains("expected no [[device.group]]");
    assert!(is_named || is_table, "{refusal}\n{text}");
}

/// Asserts that options come back from the kernel's attributes as they were, and that a plan leaves
/// nothing to do.
fn assert_carried(observed: &Observed, target: &Target, changes: &[Change], text: &str) {
    let qdisc = |options: &QdiscOptions| {
        let bytes = attribute::write(&options.write());
        assert_eq!(QdiscOptions::read(&bytes), *options, "{text}");
    };
    let mut port = observed.port.clone();
    for change in changes {
        match change {
            Change::AddQdisc {
                kind: QdiscKind::Psp(options),
                ..
            }
            | Change::ChangeQdisc { options, .. } => qdisc(options),
            Change::AddClass { options, .. } | Change::ChangeClass { options, .. } => {
                let group = options.group;
                let bytes = attribute::write(&options.write());
                let mut read = ClassOptions::read(&bytes);
                read.group = group;
                assert_eq!(read, *options, "{text}");
            }
            _ => {}
        }
        port.apply(change).unwrap();
    }
    let again = plan(target, &port, false).unwrap();
    assert_eq!(again.changes, [], "{text}");
}

fn judge(backend: Backend, text: &str) -> bool {
    match planned(backend, text) {
        Ok((observed, target, changes)) => {
            assert_carried(&observed, &target, &changes, text);
            true
        }
        Err(refusal) => {
            assert_named(&refusal, text);
            false
        }
    }
}

/// Values of all orders of magnitude, and what is next to them.
fn values() -> impl Strategy<Value = u64> {
    let near = (0..64u32, 0..3u64).prop_map(|(bits, more)| (1u64 << bits).wrapping_add(more) - 1);
    let tens = (0..20u32, 0..3u64).prop_map(|(power, more)| {
        let value = 10u64.checked_pow(power).unwrap_or(u64::MAX);
        value.saturating_add(more).saturating_sub(1)
    });
    let any = (0..64u32, any::<u64>()).prop_map(|(bits, value)| value >> bits);
    prop_oneof![Just(0), Just(u64::MAX), near, tens, any]
}

#[test]
fn each_key_from_the_least_to_the_largest_value() {
    for backend in Backend::ALL {
        let site = Site {
            backend,
            device: "eth0",
            layer: "link",
        };
        for (kind, place, key, unit) in KEYS.iter().copied() {
            let of = |value| file(site, kind, &[(place, key, unit, value)]);
            for bits in 0..64 {
                for value in [(1u64 << bits) - 1, 1 << bits, (1u64 << bits) + 1] {
                    judge(backend, &of(value));
                }
            }
            judge(backend, &of(u64::MAX));
            if let Some((least, most)) = ends(site, (kind, place, key, unit)) {
                println!("{} {kind:?} {key}: {least} to {most}", backend.word());
                assert!(judge(backend, &of(least)) && judge(backend, &of(most)));
            }
        }
    }
}

proptest! {
    #![proptest_config(testkit::cases(4000))]

    #[test]
    fn several_keys_of_any_values(
        backend in prop::sample::select(&Backend::ALL[..]),
        layer in prop::sample::select(LAYERS),
        kind in prop::sample::select(vec![Paced, Launching, Normal, Dynamic, Rt, Nrt, Grouped]),
        of in prop::collection::vec((any::<prop::sample::Index>(), values()), 1..5),
    ) {
        let keys: Vec<_> = KEYS.iter().filter(|(known, ..)| *known == kind).collect();
        let mut given: Vec<Extreme> = Vec::new();
        for (index, value) in of {
            let (_, place, key, unit) = *index.get(&keys);
            if given.iter().all(|(at, other, ..)| (at, other) != (place, key)) {
                given.push((*place, *key, *unit, value));
            }
        }
        let site = Site { backend, device: "eth0", layer };
        judge(backend, &file(site, kind, &given));
    }
}
