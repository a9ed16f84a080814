// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the changes of a plan.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use backend::Maker;
use host_config::{Plan, line};
use tcpsp::{Change, Error, Handle, Tc};

use crate::observe::Observed;

/// Between two looks at a class that has frames.
const LOOK: Duration = Duration::from_millis(5);
/// EPERM and EBUSY.
const NOT_PERMITTED: i32 = 1;
const BUSY: i32 = 16;

/// Tries a plan on the model, so that nothing is changed if the kernel or the core would refuse a
/// part.
pub fn check(observed: &Observed, plan: &Plan) -> Result<()> {
    let mut model = observed.port.clone();
    for change in &plan.changes {
        model.apply(change).map_err(|refusal| {
            let refusal = match change {
                Change::AddClass { id, .. } | Change::ChangeClass { id, .. } => {
                    let name = plan.names.get(&id.minor());
                    name.map(|name| refusal.replace(&id.to_string(), name))
                }
                _ => None,
            }
            .unwrap_or(refusal);
            anyhow!("{}: {refusal}", plan.device)
        })?;
    }
    if plan.changes.is_empty() {
        return Ok(());
    }
    let checked = backend::check(&model, &observed.facts);
    checked.map_err(|error| match named(&error, plan) {
        Some(said) => anyhow!("{}: {said}", plan.device),
        None => anyhow!("{}: {error}", plan.device),
    })
}

/// Returns what is said of a class, by its name.
fn named(error: &backend::Error, plan: &Plan) -> Option<String> {
    let backend::Error::Qdisc(backend::qdisc::Error::Class { minor, why }) = error else {
        return None;
    };
    let name = plan.names.get(minor)?;
    Some(format!("class {name}: {why}"))
}

/// Makes the changes, each after `say` was given its line. Classes that go have `drain` to send
/// their frames.
///
/// # Errors
/// The kernel's refusal, with the change and what was made before it.
pub fn make(
    tc: &mut Tc,
    observed: &Observed,
    plan: &Plan,
    drain: Duration,
    say: &mut dyn FnMut(&str),
) -> Result<()> {
    let mut model = observed.port.clone();
    let mut maker = Maker::new(&observed.facts, drain);
    let device = observed.facts.index;
    let all = plan.changes.len();
    let mut empty = BTreeSet::new();
    for (made, change) in plan.changes.iter().enumerate() {
        let line = line(change, &model, plan);
        say(&format!("{}: {line}", plan.device));
        let rest = plan.changes.get(made..).unwrap_or_default();
        let left = || {
            format!("{made} of {all} changes are made; the same command again goes on from there")
        };
        let is_made = maker.make(tc, &model, rest);
        let is_made =
            is_made.map_err(|error| anyhow!("{}: {line}: {error}; {}", plan.device, left()))?;
        if is_made {
            // Tried before: check().
            let _ = model.apply(change);
            continue;
        }
        if let Change::DeleteClass { id } = change {
            drained(tc, device, *id, drain, &mut empty)
                .map_err(|error| anyhow!("{}: {line}: {error}; {}", plan.device, left()))?;
        }
        if matches!(
            change,
            Change::AddFilter { .. } | Change::ReplaceFilter { .. } | Change::ChangeQdisc { .. }
        ) {
            empty.clear();
        }
        request(tc, device, change, drain).map_err(|error| {
            let advice = match error.cause.raw_os_error() {
                Some(NOT_PERMITTED) => "; changes need root (CAP_NET_ADMIN)",
                _ => "",
            };
            anyhow!("{}: {line}: {error}{advice}; {}", plan.device, left())
        })?;
        // The kernel has made the change; the model only helps to tell the next ones.
        let _ = model.apply(change);
    }
    let finished = maker.finish(tc, &model);
    finished.map_err(|error| {
        anyhow!(
            "{}: {error}; nothing of classes and filters has changed",
            plan.device
        )
    })
}

/// Requests a change. A class that changes its type must have sent the frames of its flows before:
/// the kernel says that it is busy.
fn request(tc: &mut Tc, device: u32, change: &Change, most: Duration) -> Result<(), Error> {
    let start = Instant::now();
    loop {
        match tc.change(device, change) {
            Err(error)
                if error.cause.raw_os_error() == Some(BUSY)
                    && matches!(change, Change::ChangeClass { .. })
                    && start.elapsed() < most =>
            {
                sleep(LOOK);
            }
            result => return result,
        }
    }
}

/// Waits until a class has no frames. No filter names it any more: classes that were `empty` when
/// the kernel listed all of them stay so.
fn drained(
    tc: &mut Tc,
    device: u32,
    id: Handle,
    most: Duration,
    empty: &mut BTreeSet<Handle>,
) -> Result<()> {
    let start = Instant::now();
    while !empty.remove(&id) {
        let classes = tc.classes(device)?;
        let class = classes.iter().find(|class| class.id == id);
        let waiting = class.map_or(0, |class| class.counters.waiting_packets);
        let are_empty = classes.iter().filter(|c| c.counters.waiting_packets == 0);
        *empty = are_empty.map(|class| class.id).collect();
        if waiting == 0 {
            empty.remove(&id);
            return Ok(());
        }
        if start.elapsed() >= most {
            bail!("{waiting} packets still wait in it, --drain gives them more time");
        }
        sleep(LOOK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;
    use host_config::{Backend, Facts, Host, Port, Target, plan};

    /// Plans a file of one device, 1 Gbit/s, which has nothing yet.
    fn said_of(classes: &str) -> Result<()> {
        said_by(Backend::Bpf, classes)
    }

    fn said_by(backend: Backend, classes: &str) -> Result<()> {
        let text = format!(
            "[[device]]\nname = \"eth0\"\nbackend = \"{}\"\n{classes}",
            backend.word()
        );
        let host = Host::read("host.toml", &text)?;
        let facts = Facts {
            index: 2,
            name: "eth0".to_owned(),
            is_ethernet: true,
            queues: 1,
            speed_bps: Some(1_000_000_000),
            has_made_up_speed: false,
            max_frame_bytes: 1514,
        };
        let mut port = Port::new(&facts, &[], &[], &[]);
        let target = Target::new(&host.devices[0], backend, &port);
        port.made = target.made;
        let plan = plan(&target, &port, false).map_err(|refusal| anyhow!("{refusal}"))?;
        let observed = Observed {
            kind: None,
            facts,
            dir: None,
            port,
            is_multiqueue: false,
            max_frame_bytes: 1518,
            burst_bytes: 65_536,
        };
        check(&observed, &plan)
    }

    #[test]
    fn a_file_that_the_core_refuses_is_refused_before_anything_changes() {
        let class = |rest: &str| format!("[[device.class]]\nname = \"one\"\n{rest}\n");
        let rt = |bytes: u64| class(&format!("type = \"rt\"\nreserve = \"{bytes}b\""));
        said_of(&class("rate = \"1gbit\"")).unwrap();
        said_of(&rt(875_000)).unwrap();
        for (classes, expected) in [
            (
                rt(875_001),
                "eth0: `budget` is 875000 bytes a period, expected at least 875001, which the classes",
            ),
            (
                class("rate = \"1kbit\""),
                "eth0: class one: `rate` is 1000 bit/s, expected at least 2458 bit/s: the rate is so \
                 low",
            ),
            (
                format!("budget = \"2mb\"\n{}", rt(1000)),
                "eth0: `budget` is 2097152 bytes, expected at most 1250000 bytes, line x period",
            ),
            (
                format!("period = \"200us\"\n{}", rt(1000)),
                "eth0: class one: `period` is 200000 ns, expected another: there is no period, or it \
                 is outside",
            ),
        ] {
            let said = said_of(&classes).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{said}");
        }
    }

    #[test]
    fn what_the_module_would_refuse_is_refused_before_anything_changes() {
        let of = |class: &str| {
            let class = format!("[[device.class]]\nname = \"one\"\n{class}\n");
            said_by(Backend::Module, &class).map_err(|error| error.to_string())
        };
        let group = |rate: &str, class: &str| {
            let group = format!("[[device.group]]\nname = \"all\"\nrate = \"{rate}\"\n");
            let class = format!("[[device.class]]\nname = \"one\"\ngroup = \"all\"\n{class}\n");
            let said = said_by(Backend::Module, &(group + &class));
            said.map_err(|error| error.to_string())
        };
        let low = |key: &str, value: u64| {
            Err(format!(
                "eth0: class one: `{key}` is {value} bit/s, expected at least 51 bit/s: the rate is \
                 so low that one frame would take 240 s"
            ))
        };
        assert_eq!(of("rate = \"51bit\""), Ok(()));
        assert_eq!(of("rate = \"50bit\""), low("rate", 50));
        assert_eq!(of("rate = \"1bit\"\nceil = \"1gbit\""), low("rate", 1));
        assert_eq!(of("type = \"dynamic\"\nceil = \"1bit\""), low("ceil", 1));
        assert_eq!(of("type = \"dynamic\"\ntotal = \"8kbit\""), Ok(()));
        for (key, class) in [
            ("rate", "rate = \"1000000001bit\""),
            ("ceil", "rate = \"1mbit\"\nceil = \"1000000001bit\""),
            ("total", "type = \"dynamic\"\ntotal = \"1000000001bit\""),
        ] {
            let refusal = format!(
                "eth0: class one: `{key}` is 1000000001 bit/s, expected at most the line's \
                 1000000000 bit/s"
            );
            assert_eq!(of(class), Err(refusal));
        }
        assert_eq!(group("8kbit", "rate = \"51bit\""), Ok(()));
        assert_eq!(group("8kbit", "rate = \"50bit\""), low("rate", 50));
        // Bursts stay whole on such a line.
        let line = |rate: &str| {
            let class = format!("[[device.class]]\nname = \"one\"\nrate = \"{rate}\"\n");
            said_by(Backend::Module, &format!("line = \"100gbit\"\n{class}"))
        };
        line("2458bit").unwrap();
        let said = line("2457bit").unwrap_err().to_string();
        let expected = "`rate` is 2457 bit/s, expected at least 2458 bit/s";
        assert!(said.contains(expected), "{said}");
    }
}
