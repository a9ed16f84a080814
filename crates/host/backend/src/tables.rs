// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands on devices, whatever it is made of: the module's psp as the kernel's tables have
//! them, others as their programs keep them.

use host_config::{Facts, Made, Port, Root, Slot, minor};
use linux_io::links::{Link, links};
use tcpsp::ports::Port as PortStats;
use tcpsp::{Filter, Handle, Match, Qdisc, Tc};

use crate::classify;
use crate::edt;
use crate::error::Error;
use crate::qdisc;
use crate::seen::Seen;

/// Returns what a qdisc of the kernel's table is a part of, if it is of ours and not the module's.
fn made_of(qdisc: &Qdisc) -> Option<Made> {
    if edt::is_ours(qdisc) {
        let is_root = qdisc.parent == Handle::ROOT;
        return Some(if is_root { Made::Edt } else { Made::EdtMq });
    }
    let is_bpf = qdisc.kind == Made::Bpf.kind();
    (is_bpf && minor::is_at_its_place(qdisc.handle, qdisc.parent)).then_some(Made::Bpf)
}

/// Looks at the psp that a qdisc is a part of. Fqs of ours without a program are one that begins.
fn look(tc: &mut Tc, link: &Link, qdisc: &Qdisc, made: Made) -> Result<Seen, Error> {
    match made {
        Made::Bpf => qdisc::look(link.index, qdisc),
        _ => edt::look(tc, link, made),
    }
}

/// Returns a device's tables: those of the module as the kernel has them, others as their programs
/// keep them. That takes root. O(classes + filters).
pub fn port(tc: &mut Tc, facts: &Facts, link: &Link) -> Result<Port, Error> {
    let qdiscs = tc.qdiscs()?;
    let classes = tc.classes(facts.index)?;
    let mut filters: Vec<Filter> = Vec::new();
    for qdisc in qdiscs.iter().filter(|qdisc| qdisc.device == facts.index) {
        if qdisc.psp.is_some() && qdisc.handle != Handle::NONE {
            filters.extend(tc.filters(facts.index, qdisc.handle)?);
        }
    }
    let mut port = Port::new(facts, &qdiscs, &classes, &filters);
    for psp in port.psps_mut() {
        classify::read(psp, &filters)?;
    }
    find_interfaces(&mut port)?;
    for qdisc in qdiscs.iter().filter(|qdisc| qdisc.device == facts.index) {
        let Some(made) = made_of(qdisc) else {
            continue;
        };
        let mut psp = look(tc, link, qdisc, made)?.psp();
        if made != Made::Bpf {
            psp.amiss = edt::amiss(facts, &qdiscs, made);
        }
        let queue = minor::queue_below_mq(qdisc.handle).map(usize::from);
        match (&mut port.root, queue) {
            (root, _) if made != Made::Bpf => *root = Root::One(Slot::Psp(psp)),
            (Root::Mq(slots), Some(queue)) => {
                if let Some(slot) = slots.get_mut(queue) {
                    *slot = Slot::Psp(psp);
                }
            }
            (root, _) => *root = Root::One(Slot::Psp(psp)),
        }
        if made == Made::EdtMq {
            break;
        }
    }
    Ok(port)
}

/// Adds the indices of interfaces to filters of the kernel's kinds: its tables have their names.
fn find_interfaces(port: &mut Port) -> Result<(), Error> {
    let mut here: Option<Vec<Link>> = None;
    let filters = port.psps_mut().flat_map(|psp| &mut psp.filters);
    for filter in filters {
        let Some(Match::Flower(flower)) = &mut filter.matching else {
            continue;
        };
        let Some(interface) = &mut flower.interface else {
            continue;
        };
        if interface.index == 0 {
            let links = match &here {
                Some(links) => links,
                None => here.insert(links().map_err(Error::Links)?),
            };
            let found = links.iter().find(|link| link.name == interface.name);
            interface.index = found.map_or(0, |link| link.index);
        }
    }
    Ok(())
}

/// Checks what shall stand on a device, without a kernel.
///
/// # Errors
/// What would be refused once some of it has changed.
pub fn check(port: &Port, facts: &Facts) -> Result<(), Error> {
    port.psps().into_iter().try_for_each(|psp| match psp.made {
        Made::Bpf => qdisc::check(psp, facts),
        Made::Module => qdisc::check_module(psp, facts),
        // The limits of departure times are check_backend()'s.
        Made::Edt | Made::EdtMq => Ok(()),
    })
}

/// A psp of this network namespace.
pub struct Standing {
    pub made: Made,
    /// Interface index of the device.
    pub device: u32,
    pub handle: Handle,
    pub parent: Handle,
    /// Whether its programs are another version's.
    is_unread: bool,
    /// It with its statistics, of which programs of another version show none.
    port: Result<PortStats, Error>,
}

impl Standing {
    fn of_module(port: PortStats) -> Self {
        Self {
            made: Made::Module,
            device: port.index,
            handle: port.handle,
            parent: port.parent,
            is_unread: false,
            port: Ok(port),
        }
    }

    /// Returns it with its statistics.
    ///
    /// # Errors
    /// Why they cannot be read; [`Error::Version`]: its programs are another version's.
    pub fn statistics(self) -> Result<PortStats, Error> {
        if self.is_unread {
            return Err(Error::Version);
        }
        self.port
    }
}

/// Returns the psp of this network namespace. Those of the module can be read without privilege;
/// reading others takes root.
///
/// # Errors
/// The kernel's, of the tables of devices, qdiscs and classes.
pub fn standing(tc: &mut Tc) -> Result<Vec<Standing>, Error> {
    let of_module = tcpsp::ports::read(tc).map_err(Error::Links)?;
    let mut all: Vec<_> = of_module.into_iter().map(Standing::of_module).collect();
    let qdiscs = tc.qdiscs()?;
    let mut links_here: Option<Vec<Link>> = None;
    let mut of_device: Option<u32> = None;
    for qdisc in &qdiscs {
        let Some(made) = made_of(qdisc) else {
            continue;
        };
        if made == Made::EdtMq && of_device.replace(qdisc.device) == Some(qdisc.device) {
            continue;
        }
        let links = match &mut links_here {
            Some(links) => links,
            none => none.insert(links().map_err(Error::Links)?),
        };
        // A device that went meanwhile is left out.
        let Some(link) = links.iter().find(|link| link.index == qdisc.device) else {
            continue;
        };
        let of_device = |of: &&Qdisc| of.device == qdisc.device && made_of(of) == Some(Made::EdtMq);
        let counters = if made == Made::EdtMq {
            let all = qdiscs.iter().filter(of_device);
            all.map(|of| of.counters).sum()
        } else {
            qdisc.counters
        };
        let (handle, parent) = match made {
            Made::Bpf => (qdisc.handle, qdisc.parent),
            _ => (minor::root(), Handle::ROOT),
        };
        let seen = look(tc, link, qdisc, made);
        all.push(Standing {
            made,
            device: link.index,
            handle,
            parent,
            is_unread: seen.as_ref().is_ok_and(|seen| seen.psp.is_unread),
            port: seen.map(|seen| seen.stats(link, counters)),
        });
    }
    Ok(all)
}

/// Returns the psp of this network namespace with their statistics, by device and handle.
///
/// # Errors
/// The kernel's; that looking at one without the module takes root.
pub fn ports(tc: &mut Tc) -> Result<Vec<PortStats>, Error> {
    let all = standing(tc)?.into_iter().map(|psp| psp.port);
    let mut ports = all.collect::<Result<Vec<_>, _>>()?;
    ports.sort_by(|a, b| (&a.device, a.handle).cmp(&(&b.device, b.handle)));
    Ok(ports)
}
