// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells what the simulator can run.

use anyhow::{Context, Result, bail};
use scenario::{Cell, Flow, FlowKind, Scenario, TcLine};

use crate::sim::transfers;

/// Words of tc lines that the simulator alone has: the qdisc cqf, and the clocks of old kernels.
const OWN_WORDS: [&str; 2] = ["cqf", "tick"];

/// Returns whether the scenario has hosts on segments; either all of its cells do, or none.
pub fn has_segments(scenario: &Scenario) -> bool {
    scenario.cells.iter().any(|cell| cell.isochronous.is_some())
}

/// Returns whether only the simulator can run a scenario.
pub fn is_needed(scenario: &Scenario) -> bool {
    let mut flows = scenario.cells.iter().flat_map(|cell| &cell.flows);
    if has_segments(scenario) {
        return true;
    }
    let is_modelled = flows.any(|flow| match &flow.kind {
        FlowKind::Tcp { stack, bytes, .. } => stack.is_some() || bytes.is_some(),
        FlowKind::Udp { on_off, .. } => on_off.is_some(),
        _ => false,
    });
    is_modelled || own_tc(scenario).is_some()
}

/// Returns whether the seed decides anything in a cell: when a connection begins, what netem does,
/// and all that is periodic.
pub fn follows_seed(cell: &Cell) -> bool {
    let mut words = cell.tc.iter().flat_map(|line| &line.args);
    let is_datagrams = |flow: &Flow| !matches!(flow.kind, FlowKind::Tcp { .. });
    cell.isochronous.is_some()
        || words.any(|word| word == "netem")
        || !cell.flows.iter().all(is_datagrams)
}

/// Returns the first line of tc that no kernel takes, and the word of it that is the simulator's own.
pub fn own_tc(scenario: &Scenario) -> Option<(&TcLine, &'static str)> {
    let mut lines = scenario.cells.iter().flat_map(|cell| &cell.tc);
    lines.find_map(|line| {
        let mut own = OWN_WORDS.into_iter();
        let word = own.find(|own| line.args.iter().any(|word| word == own))?;
        Some((line, word))
    })
}

/// Returns whether the simulator models everything in a cell.
pub fn can_run(cell: &Cell) -> bool {
    check_hosts(cell).is_ok() && netsim::build::build(cell, 1).is_ok()
}

/// Refuses what hosts of the laboratory have and simulated hosts have not.
fn check_hosts(cell: &Cell) -> Result<()> {
    if let Some(offload) = cell.offloads.first() {
        bail!(
            "{}: `offloads`: {} is not modelled, because a simulated device has frames alone and no \
             segmentation: pspacer lab run has it",
            offload.place,
            offload.word
        );
    }
    if let Some(program) = cell.host_programs.first() {
        bail!(
            "{}: [[program]] is not modelled, because a simulated host has no processor: pspacer lab \
             run has it",
            program.place
        );
    }
    Ok(())
}

/// Refuses a scenario that cannot be simulated, before anything of it is run.
pub fn check(scenario: &Scenario) -> Result<()> {
    for cell in &scenario.cells {
        check_hosts(cell)?;
        netsim::build::build(cell, scenario.seed)
            .with_context(|| format!("cell {} of {}", cell.index, scenario.name))?;
    }
    transfers::check(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(host: &str, more: &str) -> Option<String> {
        let text = format!(
            "name = \"s\"\ntitle = \"\"\nduration = \"1s\"\n\
             [[host]]\nname = \"tx\"\n{host}\n[[host]]\nname = \"rx\"\n\
             [[cable]]\nname = \"wire\"\nends = [\"tx:eth0\", \"rx:eth0\"]\nrate = \"1gbit\"\n{more}"
        );
        let scenario = scenario::parse("s.toml", &text, &scenario::Options::default()).unwrap();
        let error = check(&scenario).err().map(|error| error.to_string());
        assert_eq!(can_run(&scenario.cells[0]), error.is_none());
        error
    }

    #[test]
    fn what_only_real_hosts_have_is_refused_by_its_name() {
        assert_eq!(said("", ""), None);
        assert_eq!(
            said("offloads = \"gso off\"", "").unwrap(),
            "s.toml:6: `offloads`: gso is not modelled, because a simulated device has frames alone \
             and no segmentation: pspacer lab run has it"
        );
        let program = "[[program]]\nhost = \"tx\"\nrun = \"sleep 1\"\n";
        assert_eq!(
            said("", program).unwrap(),
            "s.toml:15: [[program]] is not modelled, because a simulated host has no processor: \
             pspacer lab run has it"
        );
    }
}
