// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes metrics out of what managers said of reservations.

use manager_proto::overview::Overview;

use crate::families::{Family, Kind, Number, Sample};

type Labels = Vec<(&'static str, String)>;

/// Returns the metrics of reservations, of at most so many; how many have none is a metric, too. What
/// nobody measured has no sample of a measurement.
pub fn reservation_families(overview: &Overview, most: usize) -> Vec<Family> {
    let mut all = Families::default();
    for of in &overview.managers {
        let labels = vec![("manager", of.manager.clone())];
        all.whole(UP, labels, of.problem.is_none().into());
    }
    for of in &overview.links {
        let link = &of.link;
        let labels = vec![("manager", of.manager.clone()), ("link", link.link.clone())];
        all.whole(LINK_BUDGET, labels.clone(), link.budget_bytes);
        all.whole(LINK_RESERVED, labels.clone(), link.reserved_bytes);
        all.whole(LINK_FREE, labels.clone(), link.free_bytes);
        all.seconds(LINK_PERIOD, labels, link.period_ns);
    }
    let left_out = overview.reservations.len().saturating_sub(most);
    let left_out = u64::try_from(left_out).unwrap_or(u64::MAX);
    all.whole(LEFT_OUT, Vec::new(), left_out);
    for row in overview.reservations.iter().take(most) {
        let labels = vec![
            ("manager", row.manager.clone()),
            ("reservation", row.id.clone()),
            ("talker", row.talker.clone()),
        ];
        let with = |name, value: &str| {
            let mut labels: Labels = labels.clone();
            labels.push((name, value.to_owned()));
            labels
        };
        all.whole(IN_FORCE, labels.clone(), row.in_force.into());
        all.seconds(LEASE, labels.clone(), row.expires_in_ns);
        for link in &row.links {
            all.whole(BYTES, with("link", &link.link), link.bytes);
        }
        for listener in &row.listeners {
            let labels = with("listener", &listener.name);
            all.seconds(BOUND, labels.clone(), listener.bound_ns);
            if let Some(measured) = &listener.measured {
                all.seconds(WORST, labels.clone(), measured.worst_delay_ns);
                all.whole(PACKETS, labels.clone(), measured.packets);
                all.whole(LOST, labels, measured.lost_packets);
            }
        }
    }
    all.0
}

/// Name, help and unit of a metric.
type About = (&'static str, &'static str, Option<&'static str>);

const UP: About = (
    "psp_manager_up",
    "Whether the manager of reservations answers.",
    None,
);
const LINK_BUDGET: About = (
    "psp_link_budget",
    "Wire bytes that streams may take of the link in each period.",
    Some("bytes"),
);
const LINK_RESERVED: About = (
    "psp_link_reserved",
    "Wire bytes of each period that reservations have of the link.",
    Some("bytes"),
);
const LINK_FREE: About = (
    "psp_link_free",
    "Wire bytes of each period that streams may still reserve of the link.",
    Some("bytes"),
);
const LINK_PERIOD: About = (
    "psp_link_period",
    "Length of the link's period.",
    Some("seconds"),
);
const LEFT_OUT: About = (
    "psp_exporter_reservations_left_out",
    "Reservations that have no metrics of their own: --reservations.",
    None,
);
const IN_FORCE: About = (
    "psp_reservation_in_force",
    "Whether all nodes that send the stream have put it into force.",
    None,
);
const LEASE: About = (
    "psp_reservation_lease_left",
    "Time until the lease ends.",
    Some("seconds"),
);
const BYTES: About = (
    "psp_reservation_link",
    "Wire bytes of each period that the reservation has of the link.",
    Some("bytes"),
);
const BOUND: About = (
    "psp_reservation_bound",
    "Granted bound of a packet's delay to the listener.",
    Some("seconds"),
);
const WORST: About = (
    "psp_reservation_measured_delay",
    "Longest delay of a packet to the listener in the last measurement; no sample: none was reported.",
    Some("seconds"),
);
const PACKETS: About = (
    "psp_reservation_measured_packets",
    "Packets that came to the listener in the last measurement.",
    None,
);
const LOST: About = (
    "psp_reservation_measured_lost_packets",
    "Packets that did not come to the listener in the last measurement.",
    None,
);

/// Families in the order in which they were first named.
#[derive(Default)]
struct Families(Vec<Family>);

impl Families {
    fn whole(&mut self, about: About, labels: Labels, number: u64) {
        self.add(about, labels, Number::Whole(number));
    }

    fn seconds(&mut self, about: About, labels: Labels, ns: u64) {
        self.add(about, labels, Number::Seconds(ns as f64 / 1e9));
    }

    fn add(&mut self, (name, help, unit): About, labels: Labels, number: Number) {
        let sample = Sample { labels, number };
        // A dozen families: no map is needed.
        match self.0.iter_mut().find(|family| family.name == name) {
            Some(family) => family.samples.push(sample),
            None => self.0.push(Family {
                name: name.to_owned(),
                help: help.to_owned(),
                unit,
                kind: Kind::Gauge,
                samples: vec![sample],
            }),
        }
    }
}
