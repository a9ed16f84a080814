// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why packets may not come to the classes that a file gives them, as the kernel's tables show it.

use host_config::{Backend, Facts, Port};
use linux_io::cgroups;
use linux_io::links::{Link, named};
use tcpsp::account::{Reasons, Renewable, Renewed};
use tcpsp::{Match, Tc};

use crate::edt;
use crate::error::Error;

/// Returns whether departure times pace a device.
fn is_edt(port: &Port) -> bool {
    let psps = port.psps();
    psps.iter().any(|psp| psp.made.backend() == Backend::Edt)
}

/// Returns what the tables of a device say. O(filters + links); takes root for departure times.
pub fn reasons(tc: &mut Tc, port: &Port, facts: &Facts, links: &[Link]) -> Result<Reasons, Error> {
    let taken_by = if is_edt(port) {
        edt::asked_before(tc, facts)?
    } else {
        Vec::new()
    };
    let psps = port.psps();
    let amiss = psps.iter().flat_map(|psp| &psp.amiss);
    Ok(Reasons {
        taken_by,
        amiss: amiss.map(|amiss| amiss.what.clone()).collect(),
        renewed: renewed(port, links),
    })
}

/// Returns the interfaces and cgroups that rules in force name by a number that is no longer theirs.
/// A cgroup that is gone is none of them: its unit or container has ended.
fn renewed(port: &Port, links: &[Link]) -> Vec<Renewed> {
    let mut all: Vec<Renewed> = Vec::new();
    let psps = port.psps();
    for filter in psps.iter().flat_map(|psp| &psp.filters) {
        let Some(renewed) = filter.matching.as_ref().and_then(|m| found(m, links)) else {
            continue;
        };
        if renewed.number != renewed.number_in_force && !all.contains(&renewed) {
            all.push(renewed);
        }
    }
    all
}

/// Returns what a match names, with both numbers.
fn found(matching: &Match, links: &[Link]) -> Option<Renewed> {
    match matching {
        Match::Flower(flower) => {
            let interface = flower.interface.as_ref()?;
            let link = named(links, &interface.name);
            Some(Renewed {
                what: Renewable::Interface,
                name: interface.name.clone(),
                number_in_force: interface.index.into(),
                number: link.map_or(0, |link| link.index.into()),
            })
        }
        Match::Sender(sender) => {
            let folder = cgroups::root()?.join(sender.path.trim_start_matches('/'));
            Some(Renewed {
                what: Renewable::Cgroup,
                name: sender.path.clone(),
                number_in_force: sender.id,
                number: cgroups::number(&folder)?,
            })
        }
        _ => None,
    }
}
