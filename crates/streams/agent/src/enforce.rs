// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a port agree with what it shall send.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use host_apply::{Observed, check, choose, make, observe};
use host_config::{Backend, Made, Port, Queues, Root, Slot, Target, line, plan};
use tcpsp::Tc;

use crate::args::AgentArgs;
use crate::known::PortDemand;
use crate::target::{self, is_in_force, steps, target};

/// Longest wait until a class that goes has sent its frames; the next round goes on with it.
const DRAIN: Duration = Duration::from_secs(1);

/// How ports are made to agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    made: Made,
    take_over: bool,
}

impl Way {
    /// Returns what the command line asks for. Without a backend there it is the module's, but where the
    /// kernel has no module and takes qdiscs of BPF.
    pub fn new(args: &AgentArgs) -> Result<Self> {
        let backend = match choose(args.backend)? {
            // The kernel's refusal says that the module is missing.
            (Backend::Edt, _) => Backend::Module,
            (backend, _) => backend,
        };
        Ok(Self {
            made: Made::new(backend, Queues::Root),
            take_over: args.take_over,
        })
    }

    /// Reads what a port has.
    fn observe(self, tc: &mut Tc, device: &str) -> Result<Observed> {
        let mut observed = observe(tc, device)?;
        observed.port.made = self.made;
        Ok(observed)
    }

    /// Returns what a port shall have.
    fn target(self, demand: &PortDemand, port: &Port) -> Target {
        target(demand, port, self.made)
    }
}

/// Makes the changes, each after `say` was given its line, and reads back whether the port keeps to
/// its streams.
pub(crate) fn enforce(
    tc: &mut Tc,
    demand: &PortDemand,
    device: &str,
    way: Way,
    say: &mut dyn FnMut(&str),
) -> Result<()> {
    let observed = way.observe(tc, device)?;
    check_device(demand, &observed, way)?;
    let wanted = way.target(demand, &observed.port);
    let whole = plan(&wanted, &observed.port, way.take_over)?;
    if whole.changes.is_empty() {
        return Ok(());
    }
    check_whole(demand, &observed, way)?;
    let mut made = Ok(());
    for step in steps(demand, &observed.port) {
        let observed = way.observe(tc, device)?;
        let target = way.target(&step, &observed.port);
        let changes = plan(&target, &observed.port, way.take_over)?;
        check(&observed, &changes)?;
        // A class that still has frames to send does not keep others from coming.
        made = made.and(make(tc, &observed, &changes, DRAIN, say));
    }
    let port = way.observe(tc, device)?.port;
    let left = plan(&wanted, &port, way.take_over)?;
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
    way: Way,
) -> Result<Vec<String>> {
    let observed = way.observe(tc, device)?;
    check_device(demand, &observed, way)?;
    check_whole(demand, &observed, way)?;
    let target = way.target(demand, &observed.port);
    let plan = plan(&target, &observed.port, way.take_over)?;
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

/// Refuses a device that cannot keep to its segment.
fn check_device(demand: &PortDemand, observed: &Observed, way: Way) -> Result<()> {
    target::check_speed(demand, &observed.port)
        .and_then(|()| target::check_tag(demand, way.made, observed.kind.as_deref()))
        .map_err(|refusal| anyhow!("{}: {refusal}", observed.facts.name))
}

/// Refuses what the kernel or the core would refuse of a port with nothing: no step is made then.
fn check_whole(demand: &PortDemand, observed: &Observed, way: Way) -> Result<()> {
    let device = &observed.facts.name;
    target::check(demand).map_err(|refusal| anyhow!("{device}: {refusal}"))?;
    let mut untouched = observed.clone();
    untouched.port.root = Root::One(Slot::Default {
        kind: "default".to_owned(),
        waiting: 0,
    });
    let wanted = way.target(demand, &untouched.port);
    check(&untouched, &plan(&wanted, &untouched.port, false)?)
}
