// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a manager has stored, for those who look: a copy beside the thread that decides, with indexes
//! by node and by owner. It shares the records with the manager.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use admission::{Direction, LinkBytes, LinkId, Name, NodeId, SegmentId, Topology, nrt_bytes};
use tokio::sync::watch;

use manager_proto::api::{LinkView, PartView};
use manager_proto::enforce::{NodeDuty, PortDuty, StreamDuty, sends};
use manager_proto::machine::Manager;
use manager_proto::record::{Part, PartState, Reservation, ReservationState, Update};

/// Reservations, parts and links as they are stored.
#[derive(Debug)]
pub struct StoredView {
    topology: Arc<Topology>,
    /// Whether a link is of this manager, by link.
    own: Vec<bool>,
    reservations: BTreeMap<Name, Arc<Reservation>>,
    /// Granted reservations by owner.
    owners: BTreeMap<Name, BTreeSet<Name>>,
    parts: BTreeMap<Name, Arc<Part>>,
    /// Wire bytes of a period that are held or reserved, by link.
    reserved_bytes: Vec<u64>,
    nodes: Vec<OfNode>,
}

/// What is known of a node.
#[derive(Debug)]
struct OfNode {
    /// Granted reservations that it sends.
    ids: BTreeSet<Name>,
    /// Number of changes of what it has to send.
    changes: watch::Sender<u64>,
}

impl StoredView {
    /// Returns what a manager has now.
    pub fn of(manager: &Manager) -> Self {
        let topology = manager.shared_topology();
        let parts = manager.parts();
        let links = (0..topology.links().len()).map(LinkId);
        let mut view = Self {
            own: links.map(|link| parts.is_own(link)).collect(),
            reservations: BTreeMap::new(),
            owners: BTreeMap::new(),
            parts: BTreeMap::new(),
            reserved_bytes: vec![0; topology.links().len()],
            nodes: Vec::new(),
            topology,
        };
        for _ in view.topology.nodes() {
            view.nodes.push(OfNode {
                ids: BTreeSet::new(),
                // Another start's numbers are others; JSON's numbers are exact up to 2^53.
                changes: watch::Sender::new(manager.epoch() >> 24),
            });
        }
        view.apply(&manager.records());
        view
    }

    /// Takes changes that are stored.
    pub fn apply(&mut self, updates: &[Update]) {
        let mut changed = BTreeSet::new();
        for update in updates {
            match update {
                Update::Meta(_) => {}
                Update::Part(name, part) | Update::OwnPart(name, part) => {
                    self.set_part(name, part.as_ref(), &mut changed)
                }
                Update::Reservation(id, of) => self.set(id, of.as_ref(), &mut changed),
            }
        }
        for node in changed {
            if let Some(of) = self.nodes.get(node.0) {
                of.changes.send_modify(|count| *count += 1);
            }
        }
    }

    fn set_part(&mut self, name: &Name, part: Option<&Arc<Part>>, changed: &mut BTreeSet<NodeId>) {
        let old = match part {
            Some(part) => self.parts.insert(name.clone(), Arc::clone(part)),
            None => self.parts.remove(name),
        };
        let live = |of: Option<&Arc<Part>>| {
            let of = of.filter(|part| part.state != PartState::Dead);
            of.map(|part| part.links.clone()).unwrap_or_default()
        };
        let (before, after) = (live(old.as_ref()), live(part));
        if before == after {
            return;
        }
        self.add_bytes(&after, u64::saturating_add, changed);
        self.add_bytes(&before, u64::saturating_sub, changed);
    }

    fn add_bytes(
        &mut self,
        links: &[LinkBytes],
        change: fn(u64, u64) -> u64,
        changed: &mut BTreeSet<NodeId>,
    ) {
        for of in links {
            let Some(id) = self.topology.link_id(&of.link) else {
                continue;
            };
            if let Some(sum) = self.reserved_bytes.get_mut(id.0) {
                *sum = change(*sum, of.bytes);
            }
            // Those whose share of best effort it is.
            let link = self.topology.link(id);
            match link.direction {
                Direction::Any => changed.extend(&self.topology.segment(link.segment).members),
                Direction::Up(node) => drop(changed.insert(node)),
                Direction::Down(_) => {}
            }
        }
    }

    fn set(&mut self, id: &Name, of: Option<&Arc<Reservation>>, changed: &mut BTreeSet<NodeId>) {
        let old = match of {
            Some(of) => self.reservations.insert(id.clone(), Arc::clone(of)),
            None => self.reservations.remove(id),
        };
        let granted = |of: &&Arc<Reservation>| of.state == ReservationState::Granted;
        for old in old.iter().filter(granted) {
            if let Some(own) = self.owners.get_mut(&old.owner) {
                own.remove(id);
                if own.is_empty() {
                    self.owners.remove(&old.owner);
                }
            }
            for node in self.senders(old) {
                changed.insert(node);
                if let Some(of) = self.nodes.get_mut(node.0) {
                    of.ids.remove(id);
                }
            }
        }
        for of in of.iter().copied().filter(granted) {
            let own = self.owners.entry(of.owner.clone()).or_default();
            own.insert(id.clone());
            for node in self.senders(of) {
                changed.insert(node);
                if let Some(of) = self.nodes.get_mut(node.0) {
                    of.ids.insert(id.clone());
                }
            }
        }
    }

    fn senders(&self, of: &Reservation) -> Vec<NodeId> {
        let names = of.grant.senders().into_iter();
        names
            .filter_map(|name| self.topology.node_id(name))
            .collect()
    }

    /// Returns the granted reservations whose ids come behind one, at most `limit` of them: those of
    /// an owner, or all. O(limit log n).
    pub fn page(
        &self,
        owner: Option<&str>,
        after: &str,
        limit: usize,
    ) -> Vec<(Name, Arc<Reservation>)> {
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        let pair = |(id, of): (&Name, &Arc<Reservation>)| (id.clone(), Arc::clone(of));
        match owner {
            Some(owner) => {
                let own = self.owners.get(owner).into_iter();
                let own = own.flat_map(|ids| ids.range::<str, _>(behind));
                let own = own.filter_map(|id| self.reservations.get_key_value(id));
                own.take(limit).map(pair).collect()
            }
            None => {
                let all = self.reservations.range::<str, _>(behind);
                let granted = all.filter(|(_, of)| of.state == ReservationState::Granted);
                granted.take(limit).map(pair).collect()
            }
        }
    }

    pub fn reservation(&self, id: &str) -> Option<Arc<Reservation>> {
        self.reservations.get(id).map(Arc::clone)
    }

    /// Returns the live parts whose names, `COORDINATOR/ID`, come behind one, at most `limit`.
    pub fn parts(&self, after: &str, limit: usize, now_ns: u64) -> Vec<PartView> {
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        let all = self.parts.range::<str, _>(behind);
        let live = all.filter(|(_, part)| part.state != PartState::Dead);
        let view = |(name, part): (&Name, &Arc<Part>)| PartView::new(name, part, now_ns);
        live.take(limit).map(view).collect()
    }

    /// Returns the manager's own links.
    pub fn links(&self) -> Vec<LinkView> {
        let view = |(n, link): (usize, &admission::Link)| {
            let reserved_bytes = self.reserved_bytes.get(n).copied().unwrap_or(0);
            LinkView {
                link: link.name.to_string(),
                period_ns: self.topology.segment(link.segment).spec.period_ns,
                budget_bytes: link.budget_bytes,
                reserved_bytes,
                free_bytes: link.budget_bytes.saturating_sub(reserved_bytes),
            }
        };
        let all = self.topology.links().iter().enumerate();
        let own = all.filter(|(n, _)| self.own.get(*n).copied().unwrap_or(false));
        own.map(view).collect()
    }

    /// Returns what tells of changes of what a node has to send; `None` if there is no such node.
    pub fn changes(&self, node: &str) -> Option<watch::Receiver<u64>> {
        let of = self.nodes.get(self.topology.node_id(node)?.0)?;
        Some(of.changes.subscribe())
    }

    /// Returns what a node has to send of the reservations that this manager has granted; `None` if
    /// the topology has no such node. Of segments of other managers it knows what its own
    /// reservations take there. O(reservations of the node).
    pub fn duty(&self, node: &str, now_ns: u64) -> Option<NodeDuty> {
        let id = self.topology.node_id(node)?;
        let of_node = self.nodes.get(id.0)?;
        let mut duty = NodeDuty {
            node: node.to_owned(),
            changes: *of_node.changes.borrow(),
            waited_ns: 0,
            ports: BTreeMap::new(),
        };
        for segment in &self.topology.node(id).segments {
            let spec = &self.topology.segment(*segment).spec;
            let port = PortDuty {
                period_ns: spec.period_ns,
                rate_bps: spec.rate_bps,
                nrt_bytes: self.nrt_bytes(*segment, id),
                is_tagged: spec.is_tagged,
                streams: Vec::new(),
            };
            duty.ports.insert(spec.name.clone(), port);
        }
        for (name, of) in of_node
            .ids
            .iter()
            .filter_map(|id| self.reservations.get_key_value(id))
        {
            for (segment, port) in &mut duty.ports {
                if sends(&of.grant, node, segment) {
                    port.streams.push(StreamDuty {
                        id: name.to_string(),
                        stream_id: of.grant.stream_id.to_string(),
                        bytes: self.sent_bytes(of, id, segment),
                        frames: of.request.talker.data_frame_specification.clone(),
                        in_force: of.in_force.contains(node),
                        expires_in_ns: of.expires_ns.saturating_sub(now_ns),
                    });
                }
            }
        }
        Some(duty)
    }

    fn nrt_bytes(&self, segment: SegmentId, node: NodeId) -> u64 {
        let links = self.topology.links_of_hop(segment, node, &[]);
        let of = |link: &LinkId| {
            let reserved_bytes = self.reserved_bytes.get(link.0).copied().unwrap_or(0);
            nrt_bytes(&self.topology, *link, reserved_bytes)
        };
        links.first().map_or(0, of)
    }

    /// Returns the bytes of a reservation that a node sends into a segment.
    fn sent_bytes(&self, of: &Reservation, node: NodeId, segment: &str) -> u64 {
        let is_sent = |link: &&LinkBytes| {
            let known = self.topology.link_id(&link.link);
            known.map(|id| self.topology.link(id)).is_some_and(|link| {
                let is_up = [Direction::Any, Direction::Up(node)].contains(&link.direction);
                is_up && self.topology.segment(link.segment).spec.name == segment
            })
        };
        let sent = of.grant.links.iter().find(is_sent);
        sent.map_or(0, |link| link.bytes)
    }
}
