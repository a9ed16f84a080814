// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wanted of a device as the file of a host says it, and the way there: the same as
//! `pspacer apply` takes.

use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use host_apply::{DeviceWork, observe};
use host_config::{Backend, Device, Host, Target, backend_notes, check_backend};
use tcpsp::Tc;
use tcpsp::account::Sent;

use crate::config::{Class, LINE_BPS};
use crate::ends::End;
use crate::netns::Netns;

/// The name of the class.
pub const CLASS: &str = "pod";
/// How long a class may take to send the frames that it has, where that is needed.
const DRAIN: Duration = Duration::from_secs(2);

/// A device, and what leads to what is wanted of it.
pub struct Work<'a> {
    netns: Option<&'a Netns>,
    name: String,
    device: DeviceWork,
}

/// Returns the table of a device: all that it sends is of one class.
pub fn table(device: &str, class: &Class, backend: Backend) -> Result<Device> {
    // A name is a text of JSON, and such a text is one of TOML.
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let mut text = format!(
        "[[device]]\nname = {}\nbackend = \"{}\"\nmode = \"timer\"\ndefault = \"{CLASS}\"\n",
        quoted(device),
        backend.word()
    );
    // Departure times know no line, and a virtual device has none.
    if backend != Backend::Edt {
        writeln!(text, "line = \"{LINE_BPS}bit\"")?;
    }
    write!(
        text,
        "[[device.class]]\nname = \"{CLASS}\"\nrate = \"{}bit\"\n",
        class.rate_bps
    )?;
    if let Some(ceil_bps) = class.ceil_bps {
        writeln!(text, "ceil = \"{ceil_bps}bit\"")?;
    }
    if let Some(deadline_ns) = class.deadline_ns {
        writeln!(text, "deadline = \"{deadline_ns}ns\"")?;
    }
    if let Some(clock) = &class.txtime {
        writeln!(text, "txtime = {}", quoted(clock))?;
    }
    let host = Host::read("what a file of a host would say", &text)?;
    let device = host.devices.into_iter().next();
    device.context("the file has no device")
}

impl<'a> Work<'a> {
    /// Plans a device of a network namespace; `None` is that of this thread. Nothing changes.
    ///
    /// # Errors
    /// What the backend cannot do, what is in the way, or the kernel's.
    pub fn new(
        netns: Option<&'a Netns>,
        end: &End,
        wanted: Option<&Class>,
        backend: Backend,
    ) -> Result<Self> {
        let plan = || {
            let mut tc = Tc::open()?;
            let observed = observe(&mut tc, &end.name)?;
            let (target, notes) = match wanted {
                None => (Target::nothing(), Vec::new()),
                Some(class) => {
                    let device = table(&end.name, class, backend)?;
                    check_backend(&device, backend, observed.port.is_ethernet)?;
                    let target = Target::new(&device, backend, &observed.port);
                    (
                        target,
                        backend_notes(&device, backend, observed.burst_bytes),
                    )
                }
            };
            DeviceWork::new(&mut tc, observed, target, notes, false)
        };
        let device = in_netns(netns, plan)?;
        Ok(Self {
            netns,
            name: end.name.clone(),
            device,
        })
    }

    /// Returns whether all is as it is wanted.
    pub fn is_done(&self) -> bool {
        self.device.changes() == 0
    }

    /// Returns what the device has sent, and what psp counted of it; `None` without psp.
    pub fn sent(&self) -> Result<Option<Sent>> {
        in_netns(self.netns, || {
            let mut ports = backend::ports(&mut Tc::open()?)?;
            ports.retain(|port| port.device == self.name);
            Ok(Sent::new(&ports))
        })
    }

    /// Returns the device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the changes that are left, for people.
    pub fn text(&self) -> String {
        self.device.text()
    }

    /// Makes the changes, and returns what a person should know.
    pub fn make(&self) -> Result<Vec<String>> {
        in_netns(self.netns, || {
            let mut tc = Tc::open()?;
            let mut said = Vec::new();
            let mut say = |line: &str| said.push(line.to_owned());
            self.device.begin(&mut tc, &mut say)?;
            self.device.make(&mut tc, DRAIN, &mut say)?;
            said.retain(|line| line.contains(": note: "));
            Ok(said)
        })
    }
}

/// Takes all of ours away from a device of a network namespace; `None` is that of this thread. One
/// that is not there any more has nothing.
pub fn remove(netns: Option<&Netns>, end: &End) -> Result<()> {
    if let Some(end) = in_netns(netns, || end.here())? {
        Work::new(netns, &end, None, Backend::Module)?.make()?;
    }
    Ok(())
}

fn in_netns<T: Send>(netns: Option<&Netns>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    match netns {
        Some(netns) => netns.within(work),
        None => work(),
    }
}
