// SPDX-License-Identifier: MIT OR Apache-2.0
//! What devices have sent, beside what psp counted of it: metrics of each device.

use tcpsp::account::{Sent, Traffic};
use tcpsp::ports::Port;

use crate::families::{Family, Kind, Number, Sample};

/// Name, meaning, and what it is of a reading.
type Row = (&'static str, &'static str, fn(&Sent) -> Option<Traffic>);

const ROWS: [Row; 3] = [
    (
        "sent",
        "that the device sent, whoever gave them to it, as its driver counts them.",
        |sent| Some(sent.device),
    ),
    (
        "counted",
        "that psp counted: of classes, of no class, and gap frames. What was sent beyond that has bypassed psp.",
        |sent| Some(sent.counted),
    ),
    (
        "unmatched",
        "that no rule claims: of the default class, and of none. No sample where there is no other class.",
        |sent| sent.unmatched,
    ),
];

/// Returns the metrics of the devices of ports, by name. O(classes).
pub fn device_families(ports: &[Port]) -> Vec<Family> {
    let mut names: Vec<&str> = ports.iter().map(|port| port.device.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let of = |name: &str| Sent::new(ports.iter().filter(|port| port.device == name));
    let read: Vec<(&str, Sent)> = names
        .into_iter()
        .filter_map(|name| Some((name, of(name)?)))
        .collect();
    let mut all = Vec::new();
    for (word, meaning, of) in ROWS {
        let family = |name: String, what: &str, unit, number: fn(Traffic) -> u64| Family {
            name,
            help: format!("{what} {meaning}"),
            unit,
            kind: Kind::Counter,
            samples: read
                .iter()
                .filter_map(|(device, sent)| {
                    let traffic = of(sent)?;
                    Some(Sample {
                        labels: vec![("device", (*device).to_owned())],
                        number: Number::Whole(number(traffic)),
                    })
                })
                .collect(),
        };
        let name = format!("psp_device_{word}");
        all.push(family(format!("{name}_frames"), "Frames", None, |of| {
            of.frames
        }));
        all.push(family(name, "Bytes", Some("bytes"), |of| of.bytes));
    }
    all.retain(|family| !family.samples.is_empty());
    all
}
