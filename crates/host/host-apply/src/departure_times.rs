// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices that are paced without the module, by departure times (`backend = "edt"`), and which
//! backend a device gets.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, anyhow};
use host_config::{Backend, Device};
use serde::Serialize;
use tcpsp::Tc;

use crate::observe::Observed;
use backend::edt::{Config, Running, Step, steps};

/// Where the kernel lists the modules that are loaded, and those that it can load.
const LOADED: &str = "/sys/module/sch_psp";
const MODULES: &str = "/lib/modules";
/// Where the kernel says its release.
const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// The steps of a device, in order.
pub(crate) struct Work {
    running: Running,
    config: Option<Config>,
    /// The steps.
    pub steps: Vec<Step>,
    notes: Vec<String>,
}

/// What `plan --json` says of a device.
#[derive(Serialize)]
pub(crate) struct Json<'a> {
    device: &'a str,
    steps: Vec<String>,
    notes: &'a [String],
}

/// Returns whether a device gets departure times, and if the file leaves the choice, why.
pub(crate) fn is_chosen(device: &Device) -> Result<(bool, Option<String>)> {
    let (chosen, why) = match device.backend {
        Backend::Module => return Ok((false, None)),
        Backend::Edt => return Ok((true, None)),
        Backend::Auto => match module() {
            Some(why) => ("module", why),
            None => ("edt", "this kernel has no module sch_psp".to_owned()),
        },
    };
    Ok((
        chosen == "edt",
        Some(format!("backend auto is {chosen}: {why}")),
    ))
}

/// Returns why the module can be used, or `None` if it cannot.
fn module() -> Option<String> {
    if Path::new(LOADED).exists() {
        return Some("sch_psp is loaded".to_owned());
    }
    let release = std::fs::read_to_string(RELEASE).ok()?;
    let list = Path::new(MODULES).join(release.trim()).join("modules.dep");
    let list = std::fs::read_to_string(list).ok()?;
    let has = list.lines().any(|line| {
        let file = line.split(':').next().unwrap_or_default();
        let name = file.rsplit('/').next().unwrap_or_default();
        name.split('.').next() == Some("sch_psp")
    });
    has.then(|| "sch_psp is installed".to_owned())
}

/// Plans departure times for a device.
pub(crate) fn plan(
    tc: &mut Tc,
    observed: &Observed,
    device: &Device,
    why: Option<String>,
    take_over: bool,
) -> Result<Work> {
    let refused = |sentence: String| match &why {
        Some(why) => anyhow!("{sentence} ({why})"),
        None => anyhow!(sentence),
    };
    let config = Config::new(device, &observed.facts);
    let config = config.map_err(|refusal| refused(refusal.to_string()))?;
    let running = Running::read(tc, &observed.facts)?;
    let (steps, mut notes) = steps(&running, Some(&config), take_over)?;
    notes.splice(0..0, why);
    Ok(Work {
        running,
        config: Some(config),
        steps,
        notes,
    })
}

/// Plans that departure times go, if there are any on the device.
pub(crate) fn removal(tc: &mut Tc, observed: &Observed) -> Result<Option<Work>> {
    let running = Running::read(tc, &observed.facts)?;
    if !running.is_there() {
        return Ok(None);
    }
    let (steps, notes) = steps(&running, None, false)?;
    Ok(Some(Work {
        running,
        config: None,
        steps,
        notes,
    }))
}

impl Work {
    /// Returns whether the device has departure times already.
    pub fn is_there(&self) -> bool {
        self.running.is_there()
    }

    /// Returns the lines for a person.
    pub fn text(&self, device: &str) -> String {
        let mut out = match self.steps.len() {
            0 => format!("{device}: nothing to change\n"),
            1 => format!("{device}: 1 change\n"),
            count => format!("{device}: {count} changes\n"),
        };
        for step in &self.steps {
            // Writing to a string does not fail.
            let _ = writeln!(out, "  {step}");
        }
        for note in &self.notes {
            let _ = writeln!(out, "  note: {note}");
        }
        out
    }

    /// Returns the object for a program.
    pub fn json<'a>(&'a self, device: &'a str) -> Json<'a> {
        Json {
            device,
            steps: self.steps.iter().map(ToString::to_string).collect(),
            notes: &self.notes,
        }
    }

    /// Makes the steps, each after `say` was given its line.
    pub fn make(
        &mut self,
        tc: &mut Tc,
        device: &str,
        say: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        for note in &self.notes {
            say(&format!("{device}: note: {note}"))?;
        }
        let all = self.steps.len();
        for (made, step) in self.steps.iter().enumerate() {
            say(&format!("{device}: {step}"))?;
            let result = step.make(tc, &mut self.running, self.config.as_ref());
            result.map_err(|error| {
                anyhow!(
                    "{device}: {error}; {made} of {all} changes are made; the same command again \
                     goes on from there"
                )
            })?;
        }
        Ok(())
    }
}
