// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device, and the changes that lead to what is wanted of it.

use std::time::Duration;

use anyhow::{Result, bail};
use host_config::{
    Backend, Beside, Made, Plan, Port, Target, TargetRoot, changes, plan as plan_of, text,
};
use serde::Serialize;
use tcpsp::{Change, Match, Tc};

use crate::choice::has_program_filters;
use crate::make::{check, make};
use crate::match_objects;
use crate::observe::Observed;
use crate::rights::{is_known, refused};

/// What is said where a program stamps packets and no fq keeps them.
const STRAY: &str = "delete  departure times that no fq keeps";

/// A device and its changes, tried on the model. `plan --json` has the plan, and what stands beside it.
#[derive(Serialize)]
pub struct DeviceWork {
    #[serde(skip)]
    pub observed: Observed,
    #[serde(flatten)]
    pub plan: Plan,
    #[serde(flatten)]
    pub beside: Beside,
    /// Whether departure times go that no fq keeps.
    #[serde(skip)]
    has_stray: bool,
}

/// Finds whether one program can classify for the module's psp. Returns a note if it cannot.
///
/// # Errors
/// A match that only a program can look for; that only root knows.
fn classifier(tc: &mut Tc, observed: &mut Observed, target: &Target) -> Result<Option<String>> {
    let port = &mut observed.port;
    let wanted = target.rules();
    if port.psps().iter().any(|psp| psp.is_classified) {
        port.can_classify = true;
        return Ok(None);
    }
    if target.made != Made::Module || wanted.is_empty() {
        return Ok(None);
    }
    let usable = if has_program_filters()? {
        match backend::classify::check_usable() {
            Err(error) if !is_known(tc, &error) => {
                let what = "whether one program can look for the matches is not known";
                return Err(refused(tc, error).context(format!("{}: {what}", port.name)));
            }
            usable => usable.map_err(|error| error.to_string()),
        }
    } else {
        Err("this kernel has no cls_bpf".to_owned())
    };
    port.can_classify = usable.is_ok();
    let Err(why) = usable else { return Ok(None) };
    let has_sender = wanted
        .iter()
        .any(|rule| matches!(rule.matching, Match::Sender(_)));
    if has_sender {
        bail!(
            "{}: a match names a cgroup, and no program can look for it: {why}",
            port.name
        );
    }
    Ok(Some(format!(
        "matches are filters of the kernel's own kinds, which see no ports of packets in fragments, \
         and nothing behind VLAN tags that a match does not name or behind PPPoE: {why}"
    )))
}

/// Refuses departure times where something else is asked before, which may let packets pass.
fn first_asked(tc: &mut Tc, observed: &Observed) -> Result<()> {
    let before = backend::edt::asked_before(tc, &observed.facts);
    match &before.map_err(|error| refused(tc, error))?[..] {
        [] => Ok(()),
        all => bail!(
            "{}: {}, expected none before ours: packets that it takes or lets pass get no departure \
             time; backends \"module\" and \"bpf\" see all that leaves",
            observed.port.name,
            all.join(", ")
        ),
    }
}

/// Returns a note if raising rates may throw away what waits for departure times.
fn dropped(plan: &Plan, port: &Port) -> Option<String> {
    let slow = plan.changes.iter().filter_map(|change| {
        let Change::ChangeClass { id, options } = change else {
            return None;
        };
        let psp = port.psp(id.qdisc())?;
        let had = psp.classes.get(&id.minor())?;
        let is_edt = psp.made.backend() == Backend::Edt;
        (is_edt && backend::edt::drops_what_waits(&had.options, options))
            .then(|| plan.names.get(&id.minor()).cloned())
            .flatten()
    });
    let slow: Vec<String> = slow.collect();
    (!slow.is_empty()).then(|| {
        format!(
            "packets of {} that would leave 200 ms later than by the new rate are dropped, and all \
             that wait on the device with them",
            slow.join(", ")
        )
    })
}

impl DeviceWork {
    /// Plans. `notes` are what a person should know beside. Nothing changes.
    ///
    /// # Errors
    /// What is in the way, or would be refused once some of it has changed.
    pub fn new(
        tc: &mut Tc,
        mut observed: Observed,
        mut target: Target,
        mut notes: Vec<String>,
        take_over: bool,
    ) -> Result<Self> {
        notes.extend(match_objects::resolve(&mut target)?);
        observed.port.made = target.made;
        notes.extend(classifier(tc, &mut observed, &target)?);
        if target.made.backend() == Backend::Edt && target.root != TargetRoot::Default {
            first_asked(tc, &observed)?;
        }
        let psps = observed.port.psps();
        let mut made = psps.iter().map(|psp| psp.made.backend());
        let has_stray = target.made.backend() != Backend::Edt
            && made.all(|backend| backend != Backend::Edt)
            && backend::edt::is_there(tc, &observed.facts).map_err(|error| refused(tc, error))?;
        let mut plan = plan_of(&target, &observed.port, take_over)?;
        check(&observed, &plan)?;
        if has_stray {
            plan.notes.push(STRAY.to_owned());
        }
        plan.notes.extend(dropped(&plan, &observed.port));
        plan.notes.splice(0..0, notes);
        Ok(Self {
            observed,
            plan,
            beside: Beside::default(),
            has_stray,
        })
    }

    /// Returns how many changes are left.
    pub fn changes(&self) -> usize {
        self.plan.changes.len() + usize::from(self.has_stray)
    }

    /// Returns a line for each change that is left.
    pub fn lines(&self) -> Vec<String> {
        let stray = self.has_stray.then(|| STRAY.to_owned());
        let changes = changes(&self.plan, &self.beside, &self.observed.port);
        stray.into_iter().chain(changes).collect()
    }

    /// Returns notes and changes as `plan` prints them.
    pub fn text(&self) -> String {
        text(&self.plan, &self.beside, &self.observed.port)
    }

    /// Begins to make the changes: takes departure times away that no fq keeps, and says the notes.
    pub fn begin(&self, tc: &mut Tc, say: &mut dyn FnMut(&str)) -> Result<()> {
        let device = &self.plan.device;
        if self.has_stray {
            say(&format!("{device}: {STRAY}"));
            backend::edt::remove(tc, &self.observed.facts)?;
        }
        for note in &self.plan.notes {
            say(&format!("{device}: note: {note}"));
        }
        Ok(())
    }

    /// Makes the changes, each after `say` was given its line. Classes that go have `drain` to send
    /// their frames.
    ///
    /// # Errors
    /// The kernel's refusal, with the change and what was made before it.
    pub fn make(&self, tc: &mut Tc, drain: Duration, say: &mut dyn FnMut(&str)) -> Result<()> {
        make(tc, &self.observed, &self.plan, drain, say)
    }
}
