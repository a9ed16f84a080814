// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a port agree with what it shall send.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use host_apply::{Observed, check, make, observe};
use host_config::{Root, Slot, line, plan};
use tcpsp::Tc;

use crate::known::PortDemand;
use crate::target::{self, is_in_force, steps, target};

/// Longest wait until a class that goes has sent its frames; the next round goes on with it.
const DRAIN: Duration = Duration::from_secs(1);

/// Makes the changes, each after `say` was given its line, and reads back whether the port keeps to
/// its streams.
pub(crate) fn enforce(
    tc: &mut Tc,
    demand: &PortDemand,
    device: &str,
    take_over: bool,
    say: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<()> {
    let observed = observe(tc, device)?;
    let wanted = target(demand, &observed.port);
    let whole = plan(&wanted, &observed.port, take_over)?;
    if whole.changes.is_empty() {
        return Ok(());
    }
    check_whole(demand, &observed)?;
    let mut made = Ok(());
    for step in steps(demand, &observed.port) {
        let observed = observe(tc, device)?;
        let changes = plan(&target(&step, &observed.port), &observed.port, take_over)?;
        check(&observed, &changes)?;
        // A class that still has frames to send does not keep others from coming.
        made = made.and(make(tc, &observed, &changes, DRAIN, say));
    }
    let port = observe(tc, device)?.port;
    let left = plan(&wanted, &port, take_over)?;
    if is_in_force(&wanted, &port, &left.changes) {
        Ok(())
    } else {
        made?;
        bail!("{device}: the kernel's tables are not as they were set")
    }
}

/// Returns the changes that would make a port agree, in a line each.
pub(crate) fn changes(
    tc: &mut Tc,
    demand: &PortDemand,
    device: &str,
    take_over: bool,
) -> Result<Vec<String>> {
    let observed = observe(tc, device)?;
    check_whole(demand, &observed)?;
    let plan = plan(&target(demand, &observed.port), &observed.port, take_over)?;
    check(&observed, &plan)?;
    let mut model = observed.port;
    let mut lines = Vec::new();
    for change in &plan.changes {
        lines.push(format!("{device}: {}", line(change, &model, &plan)));
        // It was checked above.
        let _ = model.apply(change);
    }
    Ok(lines)
}

/// Refuses what the kernel or the core would refuse of a port with nothing: no step is made then.
fn check_whole(demand: &PortDemand, observed: &Observed) -> Result<()> {
    let device = &observed.facts.name;
    target::check(demand).map_err(|refusal| anyhow!("{device}: {refusal}"))?;
    let mut untouched = observed.clone();
    untouched.port.root = Root::One(Slot::Default {
        kind: "default".to_owned(),
        waiting: 0,
    });
    let wanted = target(demand, &untouched.port);
    check(&untouched, &plan(&wanted, &untouched.port, false)?)
}
