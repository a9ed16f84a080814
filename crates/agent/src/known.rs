// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the managers said of a node, until when it holds, what that asks of each port, and the
//! reports that the managers are due. All of it is pure: the time is an argument.

use std::collections::{BTreeMap, BTreeSet};

use admission::FrameSpecification;
use manager::enforce::{NodeDuty, StreamDuty};
use serde::{Deserialize, Serialize};

/// What a manager said last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// When it was asked, CLOCK_BOOTTIME: leases are counted from then, so that none ends here later
    /// than at the manager.
    pub asked_ns: u64,
    /// Its answer.
    pub duty: NodeDuty,
}

/// What all managers said last, by URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known(pub BTreeMap<String, Heard>);

/// What a port shall send in each period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortDemand {
    /// Length of a period, ns.
    pub period_ns: u64,
    /// Rate of the segment, bit/s.
    pub rate_bps: u64,
    /// Most wire bytes of best effort.
    pub nrt_bytes: u64,
    /// The streams, by id of the reservation.
    pub streams: BTreeMap<String, StreamDemand>,
}

/// A stream that a port shall send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamDemand {
    /// Wire bytes in each period.
    pub bytes: u64,
    /// Which frames are the stream's: none without at least one.
    pub frames: Vec<FrameSpecification>,
}

/// A report that a manager is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Id of the reservation.
    pub id: String,
    /// Whether it is in force.
    pub in_force: bool,
}

impl Heard {
    fn end_ns(&self, stream: &StreamDuty) -> u64 {
        self.asked_ns.saturating_add(stream.expires_in_ns)
    }

    /// Returns the number of its reservations.
    #[must_use]
    pub fn reservations(&self) -> usize {
        let streams = self.duty.ports.values().flat_map(|port| &port.streams);
        streams
            .map(|stream| &stream.id)
            .collect::<BTreeSet<_>>()
            .len()
    }

    /// Returns the reports that the manager is due if the ports of these segments are in force.
    /// A reservation is in force if all ports that send it are, and its frames are known.
    #[must_use]
    pub fn reports(&self, in_force: &BTreeSet<String>) -> Vec<Report> {
        let mut found: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
        for (segment, port) in &self.duty.ports {
            for stream in &port.streams {
                let is_here = in_force.contains(segment) && !stream.frames.is_empty();
                let (is_in_force, is_reported) = found.entry(&stream.id).or_insert((true, true));
                *is_in_force &= is_here;
                *is_reported = stream.in_force;
            }
        }
        let due = found.into_iter();
        let due = due.filter(|(_, (is_in_force, is_reported))| is_in_force != is_reported);
        due.map(|(id, (in_force, _))| Report {
            id: id.to_owned(),
            in_force,
        })
        .collect()
    }
}

impl Known {
    /// Forgets the reservations whose leases have ended; returns each with its manager.
    pub fn expire(&mut self, now_ns: u64) -> BTreeSet<(String, String)> {
        let mut ended = BTreeSet::new();
        for (manager, heard) in &mut self.0 {
            let asked_ns = heard.asked_ns;
            for port in heard.duty.ports.values_mut() {
                port.streams.retain(|stream| {
                    let is_live = asked_ns.saturating_add(stream.expires_in_ns) > now_ns;
                    if !is_live {
                        ended.insert((stream.id.clone(), manager.clone()));
                    }
                    is_live
                });
            }
        }
        ended
    }

    /// Returns when the next lease ends.
    #[must_use]
    pub fn next_end_ns(&self) -> Option<u64> {
        let heard = self.0.values();
        let ends = heard.flat_map(|heard| {
            let streams = heard.duty.ports.values().flat_map(|port| &port.streams);
            streams.map(|stream| heard.end_ns(stream))
        });
        ends.min()
    }

    /// Returns what keeps reservations from being in force at a node with these devices, by segment.
    #[must_use]
    pub fn faults(&self, ports: &BTreeMap<String, String>) -> BTreeSet<String> {
        let mut faults = BTreeSet::new();
        for heard in self.0.values() {
            let (node, of_node) = (&heard.duty.node, &heard.duty.ports);
            for segment in ports
                .keys()
                .filter(|segment| !of_node.contains_key(*segment))
            {
                let known: Vec<_> = of_node.keys().map(String::as_str).collect();
                faults.insert(format!(
                    "--port {segment}: expected a segment of {node}: {}",
                    known.join(", ")
                ));
            }
            for (segment, port) in of_node {
                for StreamDuty { id, frames, .. } in &port.streams {
                    if !ports.contains_key(segment) {
                        faults.insert(format!(
                            "reservation {id} sends into {segment}: expected --port {segment}=DEVICE"
                        ));
                    }
                    if frames.is_empty() {
                        faults.insert(format!(
                            "reservation {id} does not say which frames are its stream's: expected \
                             `data-frame-specification`, or `pspacer reserve --udp-to`"
                        ));
                    }
                }
            }
        }
        faults
    }

    /// Returns what each port shall send, by segment. A manager knows what is reserved of its own
    /// segments only, so of what several say of best effort the least holds.
    #[must_use]
    pub fn demands(&self) -> BTreeMap<String, PortDemand> {
        let mut demands: BTreeMap<String, PortDemand> = BTreeMap::new();
        let heard = self.0.values().flat_map(|heard| &heard.duty.ports);
        for (segment, port) in heard {
            let demand = demands.entry(segment.clone()).or_insert(PortDemand {
                period_ns: port.period_ns,
                rate_bps: port.rate_bps,
                nrt_bytes: port.nrt_bytes,
                streams: BTreeMap::new(),
            });
            demand.nrt_bytes = demand.nrt_bytes.min(port.nrt_bytes);
            for stream in &port.streams {
                let of = StreamDemand {
                    bytes: stream.bytes,
                    frames: stream.frames.clone(),
                };
                demand.streams.insert(stream.id.clone(), of);
            }
        }
        demands
    }
}
