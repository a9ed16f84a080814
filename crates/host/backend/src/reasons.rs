// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why packets may not come to the classes that a file gives them, as the kernel's tables show it.

use host_config::{Backend, Facts, Port};
use linux_io::links::{Link, named};
use tcpsp::account::{Reasons, Renewed};
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

/// Returns the interfaces that rules in force name by an index that is no longer theirs.
fn renewed(port: &Port, links: &[Link]) -> Vec<Renewed> {
    let mut all: Vec<Renewed> = Vec::new();
    let psps = port.psps();
    for filter in psps.iter().flat_map(|psp| &psp.filters) {
        let Some(Match::Flower(flower)) = &filter.matching else {
            continue;
        };
        let Some(interface) = &flower.interface else {
            continue;
        };
        let link = named(links, &interface.name);
        let renewed = Renewed {
            name: interface.name.clone(),
            index_in_force: interface.index,
            index: link.map_or(0, |link| link.index),
        };
        if renewed.index != renewed.index_in_force && !all.contains(&renewed) {
            all.push(renewed);
        }
    }
    all
}
