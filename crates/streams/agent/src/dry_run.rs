// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--dry-run`: says what the agent would change at its ports, and changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use linux_io::clock::boottime_ns;
use manager_proto::client::Client;
use tcpsp::Tc;

use crate::args::AgentArgs;
use crate::enforce::{Way, changes};
use crate::event::Event;
use crate::known::{ManagerAnswer, ManagerAnswers};
use crate::routes::routes;

/// Asks each manager once, and gives `say` each change and each fault. No port is changed, no
/// manager is told anything, and no file is written.
///
/// # Errors
/// If a manager does not answer, or a port cannot be as it shall be.
pub(crate) fn dry_run(
    args: &AgentArgs,
    ports: &BTreeMap<String, String>,
    clients: &BTreeMap<String, Arc<Client>>,
    say: &mut dyn FnMut(&Event) -> Result<()>,
) -> Result<()> {
    let mut known = ManagerAnswers::default();
    let mut away = Vec::new();
    for (url, client) in clients {
        let asked_ns = boottime_ns()?;
        match client.duty(&args.node) {
            Ok(duty) => drop(
                known
                    .0
                    .insert(url.clone(), ManagerAnswer { asked_ns, duty }),
            ),
            Err(error) => away.push(format!("manager {url} does not answer: {error}")),
        }
    }
    // Without one of them the changes would be those of another network.
    if !away.is_empty() {
        bail!("{}", away.join("; "));
    }
    let mut faults = known.faults(ports);
    if args.follow_routes {
        let astray = known.astray(ports, &routes(known.destinations())?);
        faults.extend(astray.into_values().map(|detour| detour.problem));
    }
    for problem in faults {
        say(&Event::Fault { problem })?;
    }
    let (mut tc, way) = (Tc::open()?, Way::new(args)?);
    let mut refused = 0;
    let demands = known.demands();
    for (segment, device) in ports {
        let Some(demand) = demands.get(segment) else {
            continue;
        };
        match changes(&mut tc, demand, device, way) {
            Ok(lines) => {
                for change in lines {
                    say(&Event::Change { change })?;
                }
            }
            Err(error) => {
                refused += 1;
                let problem = format!("{error:#}");
                say(&Event::Fault { problem })?;
            }
        }
    }
    if refused > 0 {
        bail!("{refused} of {} ports cannot be set", ports.len());
    }
    Ok(())
}
