// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts a psp of departure times on a device, changes it and takes it away, in an order in which
//! packets are paced as soon as they are stamped, and nothing is stamped that nobody paces.

use host_config::{Facts, Made, Psp, minor};
use linux_io::clock::monotonic_ns;
use tcpsp::attribute::Attribute;
use tcpsp::{Change, Handle, PlainFilter, PlainQdisc, Qdisc, Tc};

use super::config::Config;
use super::fqs::{fq, has};
use super::layout::{RATE, Tables};
use super::program::Loaded;
use super::running::{BPF, CLSACT, CLSACT_HANDLE, FILTER, Running, STAND_IN, is_ours, place};
use super::waiting;
use crate::error::{Error, refused};

/// A filter's attributes (linux/pkt_cls.h).
const BPF_FD: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_FLAGS: u16 = 8;
/// The program itself says what becomes of a packet.
const DIRECT_ACTION: u32 = 1;

fn plain(parent: Handle, handle: Handle, kind: &'static str) -> PlainQdisc {
    PlainQdisc {
        parent,
        handle,
        kind,
        options: Vec::new(),
    }
}

/// Puts a qdisc in its place, unless it is there as it shall be. What else stands there goes with its
/// packets; one of its own that is told otherwise keeps them.
fn put_one(tc: &mut Tc, device: u32, qdiscs: &[Qdisc], wanted: &PlainQdisc) -> Result<(), Error> {
    let (parent, handle) = (wanted.parent, wanted.handle);
    let there = qdiscs.iter().find(|qdisc| {
        qdisc.device == device && qdisc.parent == parent && qdisc.handle != Handle::NONE
    });
    let same = there.filter(|there| there.handle == handle);
    let is_kind = same.is_some_and(|same| same.kind == wanted.kind);
    if is_kind && same.is_some_and(|same| has(same, &wanted.options)) {
        return Ok(());
    }
    // The kernel takes the same id for a change of that qdisc.
    let is_in_the_way = same.is_some() && !is_kind;
    if is_in_the_way {
        tc.change(device, &Change::DeleteQdisc { parent, handle })?;
    }
    let replace = there.is_some() && !is_in_the_way;
    Ok(tc.put_qdisc(device, wanted, replace)?)
}

/// Puts a psp at a device's root, or changes the one that there is. Fqs that are not as they shall be
/// become so.
pub(crate) fn put(tc: &mut Tc, facts: &Facts, psp: &Psp) -> Result<(), Error> {
    let mut running = Running::read(tc, facts.index)?;
    let next = Next::new(facts, &running, psp)?;
    let device = facts.index;
    // A kernel without it refuses before anything has changed.
    if !running.has_clsact {
        let clsact = plain(Handle::INGRESS, CLSACT_HANDLE, CLSACT);
        tc.put_qdisc(device, &clsact, false)?;
    }
    let qdiscs = tc.qdiscs()?;
    if psp.made == Made::EdtMq {
        let mq = plain(Handle::ROOT, minor::mq(), "mq");
        put_one(tc, device, &qdiscs, &mq)?;
        let qdiscs = tc.qdiscs()?;
        for queue in 0..facts.queues {
            let fq = fq(facts, minor::mq_class(queue), minor::below_mq(queue));
            put_one(tc, device, &qdiscs, &fq)?;
        }
    } else {
        let fq = fq(facts, Handle::ROOT, minor::root());
        put_one(tc, device, &qdiscs, &fq)?;
    }
    next.put_in_force(tc, facts, &mut running)
}

/// What is to be in force.
struct Next {
    tables: Tables,
    /// A program for it, if the one that runs has no room.
    loaded: Option<Loaded>,
    /// Whether what waits is thrown away: by the rate that a class had it would wait for long.
    is_fresh: bool,
}

impl Next {
    /// Makes it ready. Nothing changes.
    fn new(facts: &Facts, running: &Running, psp: &Psp) -> Result<Self, Error> {
        let config = Config::new(psp, facts);
        let mut tables = Tables::new(&config, &running.tables.minors);
        let is_fresh = match &running.maps {
            None => false,
            Some(maps) => tables.follow(&running.tables, |slot, before, to_bps| {
                let now_ns = monotonic_ns().map_err(|error| refused("clock", &error))?;
                let lead_ns = maps.until_ns(slot)?.saturating_sub(now_ns);
                Ok(waiting::is_slow(lead_ns, before[RATE], to_bps))
            })?,
        };
        let fits = running.maps.as_ref().is_some_and(|maps| maps.hold(&tables));
        let loaded = if fits {
            None
        } else {
            let mut loaded = Loaded::new(&tables)?;
            loaded.maps.write(&tables, &Tables::default())?;
            Some(loaded)
        };
        Ok(Self {
            tables,
            loaded,
            is_fresh,
        })
    }

    /// Puts it in force with one store, or by one request.
    fn put_in_force(self, tc: &mut Tc, facts: &Facts, running: &mut Running) -> Result<(), Error> {
        let is_fresh = self.is_fresh;
        self.store(tc, running)?;
        if is_fresh {
            throw_away(tc, facts)?;
        }
        Ok(())
    }

    fn store(self, tc: &mut Tc, running: &mut Running) -> Result<(), Error> {
        let Some(mut loaded) = self.loaded else {
            return match &mut running.maps {
                Some(maps) => maps.write(&self.tables, &running.tables),
                None => Ok(()),
            };
        };
        if let Some(maps) = &running.maps {
            loaded
                .maps
                .take_clocks(&self.tables, maps, &running.tables)?;
        }
        let (device, is_there) = (running.index, running.is_attached);
        Ok(loaded.with_descriptor(|descriptor| {
            let filter = PlainFilter {
                at: FILTER,
                kind: BPF,
                protocol: PlainFilter::ANY,
                options: vec![
                    Attribute::u32(BPF_FD, descriptor),
                    Attribute::string(BPF_NAME, "pspacer-edt"),
                    Attribute::u32(BPF_FLAGS, DIRECT_ACTION),
                ],
            };
            tc.put_filter(device, &filter, is_there)
        })??)
    }
}

/// Throws away what waits in the fqs of ours. Each is replaced twice: the kernel takes its own id for
/// a change, and an fq stands there all the time.
fn throw_away(tc: &mut Tc, facts: &Facts) -> Result<(), Error> {
    let qdiscs = tc.qdiscs()?;
    let ours = qdiscs
        .iter()
        .filter(|q| q.device == facts.index && is_ours(q));
    for qdisc in ours {
        for handle in [STAND_IN, place(qdisc)] {
            tc.put_qdisc(facts.index, &fq(facts, qdisc.parent, handle), true)?;
        }
    }
    Ok(())
}

/// Takes everything of ours away. Filters of others stay, and clsact with them.
pub fn remove(tc: &mut Tc, facts: &Facts) -> Result<(), Error> {
    let running = Running::read(tc, facts.index)?;
    let device = facts.index;
    if running.is_attached {
        let change = Change::DeleteFilter {
            at: FILTER,
            kind: BPF.to_owned(),
            protocol: PlainFilter::ANY,
        };
        tc.change(device, &change)?;
    }
    let is_there = running.is_attached || running.has_fq;
    if is_there && running.has_clsact && running.other_filters == 0 {
        let (parent, handle) = (Handle::INGRESS, CLSACT_HANDLE);
        tc.change(device, &Change::DeleteQdisc { parent, handle })?;
    }
    match running.root {
        Some((_, handle)) if running.has_fq => {
            let parent = Handle::ROOT;
            Ok(tc.change(device, &Change::DeleteQdisc { parent, handle })?)
        }
        _ => Ok(()),
    }
}
