// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fqs of ours: what each is told, where they belong, and what of that is not so.

use host_config::{Amiss, Facts, Made, minor};
use tcpsp::attribute::{self, Attribute, Attributes};
use tcpsp::{Handle, PlainQdisc, Qdisc};

use super::running::{FQ, is_ours};

/// Most packets in an fq, and of one flow. fq's own 100 of a flow would drop a class's burst.
const PACKETS_MAX: u32 = 100_000;
/// fq's own horizon.
const HORIZON_US: u32 = 10_000_000;
/// fq's own quanta, in longest frames, and the largest that it takes.
const QUANTUM_FRAMES: u32 = 2;
const FIRST_QUANTUM_FRAMES: u32 = 10;
const QUANTUM_BYTES_MAX: u32 = 1 << 20;
/// fq's own three bands, by the priority of packets, and their weights.
const BANDS: u32 = 3;
const BAND_OF_PRIORITY: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
const WEIGHTS: [u32; 3] = [9 << 16, 3 << 16, 1 << 16];
/// What stands for no limit.
const NONE: u32 = u32::MAX;

/// Returns what an fq is told: the name that tc has for it, and the attribute (linux/pkt_sched.h).
/// Its timer has no slack: packets leave as soon as the hardware's timer allows. All but that and the
/// limits is fq's own default, said so that what others have changed comes back. Kernels before 6.8
/// have no bands, and pass over them.
fn options(max_frame_bytes: u32) -> Vec<(&'static str, Attribute)> {
    let quantum = |frames: u32| {
        max_frame_bytes
            .saturating_mul(frames)
            .clamp(1, QUANTUM_BYTES_MAX)
    };
    let mut map = BANDS.to_ne_bytes().to_vec();
    map.extend(BAND_OF_PRIORITY);
    vec![
        ("limit", Attribute::u32(1, PACKETS_MAX)),
        ("flow_limit", Attribute::u32(2, PACKETS_MAX)),
        ("quantum", Attribute::u32(3, quantum(QUANTUM_FRAMES))),
        (
            "initial_quantum",
            Attribute::u32(4, quantum(FIRST_QUANTUM_FRAMES)),
        ),
        ("pacing", Attribute::u32(5, 1)),
        ("maxrate", Attribute::u32(7, NONE)),
        ("ce_threshold", Attribute::u32(12, NONE)),
        ("timer_slack", Attribute::u32(13, 0)),
        ("horizon", Attribute::u32(14, HORIZON_US)),
        ("horizon_drop", Attribute::u8(15, 1)),
        ("priomap", Attribute::new(16, map)),
        (
            "weights",
            Attribute::new(17, WEIGHTS.map(u32::to_ne_bytes).concat()),
        ),
    ]
}

pub(super) fn fq(facts: &Facts, parent: Handle, handle: Handle) -> PlainQdisc {
    let options = options(facts.max_frame_bytes);
    PlainQdisc {
        parent,
        handle,
        kind: FQ,
        options: options
            .into_iter()
            .map(|(_, attribute)| attribute)
            .collect(),
    }
}

/// Returns whether a qdisc has options; those that the kernel does not say are not asked about.
pub(super) fn has(qdisc: &Qdisc, options: &[Attribute]) -> bool {
    let said = attribute::read(&qdisc.options);
    let is_so = |wanted: &Attribute| {
        let there = Attributes(&said).bytes(wanted.kind);
        there.is_none_or(|there| there == wanted.value)
    };
    options.iter().all(is_so)
}

/// Returns a value as tc says it, or nearly.
fn words(value: &[u8]) -> String {
    match *value {
        [a] => a.to_string(),
        [a, b, c, d] => match u32::from_ne_bytes([a, b, c, d]) {
            NONE => "none".to_owned(),
            number => number.to_string(),
        },
        _ if value.len() == 4 * WEIGHTS.len() => {
            let numbers = value.chunks(4).map(words);
            numbers.collect::<Vec<_>>().join(" ")
        }
        // The number of bands comes first.
        _ => {
            let bands = value.iter().skip(4).map(u8::to_string);
            bands.collect::<Vec<_>>().join(" ")
        }
    }
}

/// Returns what of an fq of ours is not as `apply` makes it, in words; empty if all is.
fn differences(qdisc: &Qdisc, max_frame_bytes: u32) -> String {
    let said = attribute::read(&qdisc.options);
    let differ = options(max_frame_bytes)
        .into_iter()
        .filter_map(|(name, wanted)| {
            let there = Attributes(&said).bytes(wanted.kind)?;
            (there != wanted.value).then(|| {
                let (there, wanted) = (words(there), words(&wanted.value));
                format!("{name} {there}, expected {wanted}")
            })
        });
    let all: Vec<String> = differ.collect();
    if all.is_empty() {
        return String::new();
    }
    format!("fq has {}", all.join(", "))
}

/// Returns what of a device's fqs is not as `apply` makes it. O(queues * qdiscs).
pub(crate) fn amiss(facts: &Facts, qdiscs: &[Qdisc], made: Made) -> Vec<Amiss> {
    let places: Vec<_> = match made {
        Made::EdtMq => (0..facts.queues)
            .map(|queue| (minor::mq_class(queue), minor::below_mq(queue)))
            .collect(),
        _ => vec![(Handle::ROOT, minor::root())],
    };
    // The same at several queues is said once.
    let mut all: Vec<(String, bool, Vec<String>)> = Vec::new();
    for (queue, (parent, handle)) in places.into_iter().enumerate() {
        let mut of_device = qdiscs.iter().filter(|qdisc| qdisc.device == facts.index);
        let there = of_device.find(|qdisc| qdisc.parent == parent);
        let (what, is_of_others) = match there {
            Some(there) if there.kind == FQ && there.handle == handle => {
                (differences(there, facts.max_frame_bytes), false)
            }
            Some(there) if there.handle == Handle::NONE => {
                (format!("{}, expected fq", there.kind), false)
            }
            Some(there) => {
                let what = format!("{} {}, expected fq {handle}", there.kind, there.handle);
                (what, !is_ours(there))
            }
            None => ("no qdisc, expected fq".to_owned(), false),
        };
        if what.is_empty() {
            continue;
        }
        let queue = queue.to_string();
        match all.iter_mut().find(|(had, ..)| *had == what) {
            Some((.., queues)) => queues.push(queue),
            None => all.push((what, is_of_others, vec![queue])),
        }
    }
    let said = all.into_iter().map(|(what, is_of_others, queues)| {
        let place = match (made, queues.len()) {
            (Made::EdtMq, 1) => format!("transmit queue {}", queues.join("")),
            (Made::EdtMq, _) => format!("transmit queues {}", queues.join(", ")),
            _ => "root".to_owned(),
        };
        Amiss {
            what: format!("{place}: {what}"),
            is_of_others,
        }
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use tcpsp::Counters;

    use super::*;

    const FRAME_BYTES: u32 = 1514;

    fn facts(queues: u16) -> Facts {
        Facts {
            index: 2,
            name: "eth0".to_owned(),
            is_ethernet: true,
            queues,
            speed_bps: None,
            has_made_up_speed: false,
            max_frame_bytes: FRAME_BYTES,
        }
    }

    /// Returns a qdisc as the kernel has it after a request.
    fn kernels(of: &PlainQdisc) -> Qdisc {
        Qdisc {
            device: 2,
            handle: of.handle,
            parent: of.parent,
            kind: of.kind.to_owned(),
            options: attribute::write(&of.options),
            counters: Counters::default(),
            horizon_drops: None,
            psp: None,
        }
    }

    fn said(queues: u16, qdiscs: &[Qdisc], made: Made) -> Vec<(String, bool)> {
        let all = amiss(&facts(queues), qdiscs, made).into_iter();
        all.map(|amiss| (amiss.what, amiss.is_of_others)).collect()
    }

    #[test]
    fn each_option_that_differs_is_named_and_none_that_is_not_said() {
        let ours = fq(&facts(1), Handle::ROOT, minor::root());
        assert_eq!(said(1, &[kernels(&ours)], Made::Edt), []);
        for (place, (name, wanted)) in options(FRAME_BYTES).into_iter().enumerate() {
            let mut other = ours.clone();
            let mut value = wanted.value.clone();
            *value.last_mut().unwrap() ^= 1;
            other.options[place] = Attribute::new(wanted.kind, value.clone());
            let qdisc = kernels(&other);
            let what = format!(
                "root: fq has {name} {}, expected {}",
                words(&value),
                words(&wanted.value)
            );
            let qdiscs = std::slice::from_ref(&qdisc);
            assert_eq!(said(1, qdiscs, Made::Edt), [(what, false)]);
            assert!(!has(&qdisc, &ours.options), "{name}");
            other.options.remove(place);
            let qdisc = kernels(&other);
            assert_eq!(
                said(1, std::slice::from_ref(&qdisc), Made::Edt),
                [],
                "{name}"
            );
            assert!(has(&qdisc, &ours.options), "{name}");
        }
    }

    #[test]
    fn each_queue_in_use_has_an_fq_of_ours() {
        let of = |queue| {
            let (parent, handle) = (minor::mq_class(queue), minor::below_mq(queue));
            kernels(&fq(&facts(4), parent, handle))
        };
        let mut qdiscs: Vec<Qdisc> = (0..4).map(of).collect();
        assert_eq!(said(4, &qdiscs, Made::EdtMq), []);
        assert_eq!(said(2, &qdiscs, Made::EdtMq), []);
        for qdisc in &mut qdiscs[2..] {
            (qdisc.handle, qdisc.kind) = (Handle::NONE, "pfifo_fast".to_owned());
        }
        let what = |text: &str| text.to_owned();
        let new = what("transmit queues 2, 3: pfifo_fast, expected fq");
        assert_eq!(said(4, &qdiscs, Made::EdtMq), [(new, false)]);
        assert_eq!(said(2, &qdiscs, Made::EdtMq), []);
        (qdiscs[2].handle, qdiscs[2].kind) = (Handle::new(9, 0), "pfifo".to_owned());
        qdiscs.pop();
        let theirs = what("transmit queue 2: pfifo 9:, expected fq 7077:");
        let none = what("transmit queue 3: no qdisc, expected fq");
        assert_eq!(
            said(4, &qdiscs, Made::EdtMq),
            [(theirs, true), (none, false)]
        );
    }
}
