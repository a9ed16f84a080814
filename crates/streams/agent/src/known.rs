// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the managers said of a node, until when it holds, what that asks of each port, and the
//! reports that the managers are due. All of it is pure: the time is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use admission::FrameSpecification;
use manager_proto::enforce::{NodeDuty, StreamDuty};
use serde::{Deserialize, Serialize};

/// What a manager said last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagerAnswer {
    /// When it was asked, CLOCK_BOOTTIME, and the time that the manager waited for a change: leases are
    /// counted from then, so that none ends here later than at the manager.
    pub asked_ns: u64,
    pub duty: NodeDuty,
}

/// What all managers said last, by URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagerAnswers(pub BTreeMap<String, ManagerAnswer>);

/// What a port shall send in each period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortDemand {
    /// Length of a period, ns.
    pub period_ns: u64,
    /// Rate of the segment, bit/s.
    pub rate_bps: u64,
    /// Most wire bytes of best effort.
    pub nrt_bytes: u64,
    /// Whether frames have an IEEE 802.1Q tag.
    pub is_tagged: bool,
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

/// The device by which packets to an address leave; `None`: there is no route.
pub type Routes = BTreeMap<IpAddr, Option<String>>;

/// Streams whose frames the kernel does not send by the device of their segment, by id of the
/// reservation and segment.
pub type Astray = BTreeMap<(String, String), Detour>;

/// Where the frames of a stream go instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detour {
    /// The segment, if it is one of this node's ports for all of them.
    pub segment: Option<String>,
    /// What is wrong, in a sentence.
    pub problem: String,
}

/// Returns the address that frames are sent to.
fn destination(frames: &FrameSpecification) -> IpAddr {
    match frames {
        FrameSpecification::Ipv4Tuple(tuple) => tuple.destination_ip_address.into(),
        FrameSpecification::Ipv6Tuple(tuple) => tuple.destination_ip_address.into(),
    }
}

impl ManagerAnswer {
    fn end_ns(&self, stream: &StreamDuty) -> u64 {
        self.asked_ns.saturating_add(stream.expires_in_ns)
    }

    pub fn reservations(&self) -> usize {
        let streams = self.duty.ports.values().flat_map(|port| &port.streams);
        streams
            .map(|stream| &stream.id)
            .collect::<BTreeSet<_>>()
            .len()
    }

    /// Returns the manager's reservations that it shall negotiate anew, each with the segment that
    /// its frames go into.
    pub fn reroutes(&self, astray: &Astray) -> Vec<(String, String)> {
        let own = self.duty.ports.values().flat_map(|of| &of.streams);
        let own: BTreeSet<_> = own.map(|stream| &stream.id).collect();
        let detours = astray.iter().filter(|((id, _), _)| own.contains(id));
        detours
            .filter_map(|((id, _), detour)| Some((id.clone(), detour.segment.clone()?)))
            .collect()
    }

    /// Returns the reports that the manager is due if the ports of these segments are in force.
    /// A reservation is in force if all ports that send it are, its frames are known, and none of
    /// its ports is astray.
    pub fn reports(&self, in_force: &BTreeSet<String>, astray: &Astray) -> Vec<Report> {
        let mut found: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
        for (segment, port) in &self.duty.ports {
            for stream in &port.streams {
                let is_astray = astray.contains_key(&(stream.id.clone(), segment.clone()));
                let is_here = in_force.contains(segment) && !stream.frames.is_empty() && !is_astray;
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

impl ManagerAnswers {
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

    /// Returns the ids of all reservations.
    pub fn ids(&self) -> BTreeSet<String> {
        let ports = self.0.values().flat_map(|heard| heard.duty.ports.values());
        let streams = ports.flat_map(|port| &port.streams);
        streams.map(|stream| stream.id.clone()).collect()
    }

    /// Returns when the next lease ends.
    pub fn next_end_ns(&self) -> Option<u64> {
        let heard = self.0.values();
        let ends = heard.flat_map(|heard| {
            let streams = heard.duty.ports.values().flat_map(|port| &port.streams);
            streams.map(|stream| heard.end_ns(stream))
        });
        ends.min()
    }

    /// Returns where the frames of all streams are sent to.
    pub fn destinations(&self) -> BTreeSet<IpAddr> {
        let ports = self.0.values().flat_map(|heard| heard.duty.ports.values());
        let frames = ports.flat_map(|port| port.streams.iter().flat_map(|stream| &stream.frames));
        frames.map(destination).collect()
    }

    /// Returns the streams that go astray at a node with these devices, by segment. A stream may go
    /// to several listeners by several ports, so one destination that leaves by a port is enough for
    /// that port. O(destinations of all streams).
    pub fn astray(&self, ports: &BTreeMap<String, String>, routes: &Routes) -> Astray {
        let mut astray = Astray::new();
        let heard = self.0.values().flat_map(|heard| &heard.duty.ports);
        for (here, port) in heard {
            let Some(device) = ports.get(here) else {
                continue;
            };
            for stream in &port.streams {
                let leave = |to: &IpAddr| routes.get(to).and_then(Option::as_deref);
                let to: Vec<_> = stream.frames.iter().map(destination).collect();
                if to.is_empty() || to.iter().any(|to| leave(to) == Some(device)) {
                    continue;
                }
                let found = to.iter().map(|to| match leave(to) {
                    Some(other) => format!("to {to} by {other}"),
                    None => format!("to {to} by no route"),
                });
                let found: Vec<_> = found.collect();
                let problem = format!(
                    "reservation {} is not in force: its frames go {}, expected {device} of \
                     segment {here}",
                    stream.id,
                    found.join(", ")
                );
                let by = |of: &str| {
                    let mut ports = ports.iter();
                    ports
                        .find(|(_, device)| *device == of)
                        .map(|(name, _)| name.clone())
                };
                let others: BTreeSet<_> = to.iter().map(|to| leave(to).and_then(by)).collect();
                let segment = match others.len() {
                    1 => others.into_iter().next().flatten(),
                    _ => None,
                };
                let detour = Detour { segment, problem };
                astray.insert((stream.id.clone(), here.clone()), detour);
            }
        }
        astray
    }

    /// Returns what keeps reservations from being in force at a node with these devices, by segment.
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
    pub fn demands(&self) -> BTreeMap<String, PortDemand> {
        let mut demands: BTreeMap<String, PortDemand> = BTreeMap::new();
        let heard = self.0.values().flat_map(|heard| &heard.duty.ports);
        for (segment, port) in heard {
            let demand = demands.entry(segment.clone()).or_insert(PortDemand {
                period_ns: port.period_ns,
                rate_bps: port.rate_bps,
                nrt_bytes: port.nrt_bytes,
                is_tagged: port.is_tagged,
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
