// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads one cell: every section with the cell's parameters, and its references resolved.
//! [`crate::flow`] reads the flows.

use toml_reader::{Error, quote};

use crate::cable::{also, bottleneck, cable, ends};
use crate::closeup;
use crate::expr::Env;
use crate::flow_kind::FlowKind;
use crate::model::{
    Backend, Bottleneck, Bound, Cell, Host, Noise, Subject, Sysctl, TcLine, Window,
};
use crate::reader::{Fill, Section};
use crate::result::{FlowMetrics, TransferRow};
use crate::tables::{
    Names, Reading, WORD, direction, host, is_word, reference, required, span, within,
};
use crate::topology::CABLES_MAX;
use crate::{flow, freeze, ground_truth, host_program, impairment, isochronous, offload};

const HOST: &[&str] = &["name", "addresses", "offloads"];
const CABLE: &[&str] = &[
    "name",
    "ends",
    "rate",
    "mtu",
    "delay",
    "queues",
    "ring",
    "bql_min",
    "coalesce_frames",
    "coalesce_time",
    "sink",
    "snap",
];
const BOTTLENECK: &[&str] = &[
    "cable", "from", "rate", "fifo", "burst", "refresh", "delay", "also", "when", "each",
];
const TC: &[&str] = &["host", "at", "backend", "lines", "when", "each"];
const SYSCTL: &[&str] = &["host", "set", "when", "each"];
const WINDOW: &[&str] = &["name", "from", "to"];
const BOUND: &[&str] = &["flow", "window", "metric", "min", "max", "when", "each"];
/// Reads what makes the psp of a table's lines.
fn backend(section: &Section<'_, '_>, at_ns: Option<u64>) -> Result<Backend, Error> {
    let Some(item) = section.get("backend") else {
        return Ok(Backend::Module);
    };
    let expected = "\"module\" or \"bpf\"";
    let text = item.filled(section.env, expected)?;
    match &*text {
        "module" => Ok(Backend::Module),
        "bpf" if at_ns.is_none() => Ok(Backend::Bpf),
        "bpf" => Err(item.fault("\"bpf\" only without `at`")),
        _ => Err(item.fault_of(&quote(&text), expected)),
    }
}

impl<'a> Reading<'a> {
    /// Reads one cell; `top` is the top level with the cell's parameters.
    pub fn cell(&self, index: usize, top: &Section<'a, '_>) -> Result<Cell, Error> {
        let expected = "a time above 0, such as \"1s\"";
        let duration_ns = match top.time("duration")? {
            None => return Err(top.missing("duration", expected)),
            Some(0) => return Err(top.require("duration", expected)?.fault(expected)),
            Some(duration_ns) => duration_ns,
        };
        let mut cell = Cell {
            index,
            params: top.env.clone(),
            duration_ns,
            settle_ns: top.time("settle")?.unwrap_or(50_000_000),
            memory_bytes: self.memory(top)?,
            cpus: top
                .number("cpus", 1..9)?
                .and_then(|cpus| u32::try_from(cpus).ok())
                .unwrap_or(1),
            hosts: Vec::new(),
            cables: Vec::new(),
            tc: Vec::new(),
            sysctls: Vec::new(),
            offloads: Vec::new(),
            host_programs: Vec::new(),
            noise: self.noise(top)?,
            flows: Vec::new(),
            freezes: Vec::new(),
            impairments: Vec::new(),
            captures: Vec::new(),
            stops: Vec::new(),
            windows: Vec::new(),
            closeups: Vec::new(),
            bounds: Vec::new(),
            isochronous: None,
            transfer_bounds: Vec::new(),
        };
        let env = top.env;
        self.hosts(&mut cell, top)?;
        // If [quick] or --set shortens the cell, the times within it are shortened too.
        let clamp = top.overrides.contains_key("duration")
            || top
                .shadow
                .is_some_and(|quick| quick.get("duration").is_some());
        if isochronous::is_meant(self)? {
            isochronous::read(self, &mut cell, env, clamp)?;
            self.windows(&mut cell, env, clamp)?;
            self.bounds(&mut cell, env)?;
            return Ok(cell);
        }
        self.cables(&mut cell, top)?;
        self.bottlenecks(&mut cell, env)?;
        self.tc(&mut cell, env)?;
        self.sysctls(&mut cell, env)?;
        host_program::read(self, &mut cell, env, clamp)?;
        flow::read(self, &mut cell, env, clamp)?;
        freeze::read(self, &mut cell, env, clamp)?;
        impairment::read(self, &mut cell, env, clamp)?;
        ground_truth::captures(self, &mut cell, env)?;
        ground_truth::stops(self, &mut cell, env, clamp)?;
        self.windows(&mut cell, env, clamp)?;
        closeup::read(self, &mut cell, env, clamp)?;
        self.bounds(&mut cell, env)?;
        Ok(cell)
    }

    fn memory(&self, top: &Section<'a, '_>) -> Result<u64, Error> {
        let bytes = top.size("memory")?.unwrap_or(1 << 30);
        if (1 << 27..=1 << 36).contains(&bytes) && bytes % (1 << 20) == 0 {
            return Ok(bytes);
        }
        let expected = "a size of whole megabytes, \"128mb\" to \"64gb\"";
        Err(top.require("memory", expected)?.fault(expected))
    }

    fn noise(&self, top: &Section<'a, '_>) -> Result<Option<Noise>, Error> {
        let Some(table) = self.root.table("noise", "[noise]")? else {
            return Ok(None);
        };
        let section = Section {
            prefix: Some("noise."),
            ..self.section(table, top.env)
        };
        section.allow(&["hold_max", "every"])?;
        let hold = required(
            &section,
            "hold_max",
            section.time("hold_max")?,
            "a time, 0s to 100ms",
        )?;
        let every = required(
            &section,
            "every",
            section.time("every")?,
            "a time, 1us to 10s",
        )?;
        // The ranges are those of lab/wire.
        within(&section, "hold_max", hold, 0, 100_000_000)?;
        within(&section, "every", every, 1_000, 10_000_000_000)?;
        Ok((hold > 0).then_some(Noise {
            hold_max_ns: hold,
            every_ns: every,
        }))
    }

    fn hosts(&self, cell: &mut Cell, top: &Section<'a, '_>) -> Result<(), Error> {
        let mut names = Names::default();
        let has_segments = isochronous::is_meant(self)?;
        self.each_table("host", "[[host]]", HOST, top.env, |section| {
            let name = names.take(section, WORD, |name| is_word(name, 31))?;
            let addresses = section.number("addresses", 1..255)?.unwrap_or(1);
            let addresses = u8::try_from(addresses).unwrap_or(1);
            if let (true, Some(item)) = (has_segments, section.get("offloads")) {
                return Err(item.fault("nothing: hosts on segments have no offloads"));
            }
            cell.offloads
                .extend(offload::read(section, cell.hosts.len())?);
            cell.hosts.push(Host { name, addresses });
            Ok(())
        })?;
        if cell.hosts.is_empty() {
            return Err(top.missing("host", "[[host]] tables"));
        }
        Ok(())
    }

    fn cables(&self, cell: &mut Cell, top: &Section<'a, '_>) -> Result<(), Error> {
        let mut names = Names::default();
        self.each_table("cable", "[[cable]]", CABLE, top.env, |section| {
            let taken = |name: &str| ["create", "delete", "noise", "share"].contains(&name);
            let name = names.take(section, WORD, |name| is_word(name, 31) && !taken(name))?;
            let ends = ends(section, cell)?;
            let cable = cable(section, name, ends)?;
            cell.cables.push(cable);
            if cell.cables.len() > CABLES_MAX {
                let expected = format!("at most {CABLES_MAX} cables");
                return Err(section.require("name", &expected)?.fault(&expected));
            }
            Ok(())
        })?;
        if cell.cables.is_empty() {
            return Err(top.missing("cable", "[[cable]] tables"));
        }
        Ok(())
    }

    fn bottlenecks(&self, cell: &mut Cell, env: &Env) -> Result<(), Error> {
        self.each_repetition("bottleneck", "[[bottleneck]]", BOTTLENECK, env, |section| {
            let direction = direction(section, "from", cell)?;
            let (at, end) = (direction.cable, direction.end.index());
            if cell.cables[at].bottlenecks[end].is_some() {
                let expected = "a direction without a bottleneck";
                return Err(section.require("from", expected)?.fault(expected));
            }
            let also = also(section, &cell.cables, at, end)?;
            cell.cables[at].bottlenecks[end] = Some(Bottleneck {
                also,
                ..bottleneck(section)?
            });
            Ok(())
        })
    }

    fn tc(&self, cell: &mut Cell, env: &Env) -> Result<(), Error> {
        self.each_repetition("tc", "[[tc]]", TC, env, |section| {
            let host = host(section, "host", cell)?;
            let at_ns = section.time("at")?;
            let end_ns = cell.duration_ns + cell.settle_ns;
            if at_ns.is_some_and(|at_ns| at_ns > end_ns) {
                let expected = "a time within the cell";
                return Err(section.require("at", expected)?.fault(expected));
            }
            let backend = backend(section, at_ns)?;
            let expected = "a list of strings, each the arguments of tc";
            let lines = section.require("lines", expected)?;
            for item in lines.expecting(expected).list()? {
                let line = item.filled(section.env, expected)?;
                let mut args = shlex::split(&line).unwrap_or_default();
                // As it is pasted from a shell.
                if args.first().is_some_and(|word| word == "tc") {
                    args.remove(0);
                }
                if args.is_empty() || line.contains(['\n', '\0']) {
                    return Err(item.fault_of(&quote(&line), "arguments of tc, quotes closed"));
                }
                cell.tc.push(TcLine {
                    host,
                    at_ns,
                    args,
                    backend,
                    place: item.place(),
                });
            }
            Ok(())
        })?;
        cell.tc.sort_by_key(|line| line.at_ns);
        Ok(())
    }

    fn sysctls(&self, cell: &mut Cell, env: &Env) -> Result<(), Error> {
        self.each_repetition("sysctl", "[[sysctl]]", SYSCTL, env, |section| {
            let host = host(section, "host", cell)?;
            let expected = "KEY=VALUE, such as \"net.ipv4.tcp_sack=1\"";
            let item = section.require("set", expected)?;
            let text = item.filled(section.env, expected)?;
            let valid = |(key, value): &(&str, &str)| {
                is_word(key, 127) && !value.is_empty() && !value.contains(['\n', '\0'])
            };
            let (key, value) = text
                .split_once('=')
                .map(|(key, value)| (key.trim(), value.trim()))
                .filter(valid)
                .ok_or_else(|| item.fault_of(&quote(&text), expected))?;
            let (key, value) = (key.to_owned(), value.to_owned());
            cell.sysctls.push(Sysctl {
                host,
                key,
                value,
                place: item.place(),
            });
            Ok(())
        })
    }

    fn windows(&self, cell: &mut Cell, env: &Env, clamp: bool) -> Result<(), Error> {
        let mut names = Names::default();
        let end_ns = cell.duration_ns;
        self.each_table("window", "[[window]]", WINDOW, env, |section| {
            let printable = |name: &str| !name.is_empty() && !name.contains(char::is_control);
            let name = names.take(section, "a name", printable)?;
            let (from_ns, to_ns) = span(section, "from", "to", end_ns, clamp)?;
            cell.windows.push(Window {
                name,
                from_ns,
                to_ns,
            });
            Ok(())
        })?;
        if cell.windows.is_empty() {
            let name = "all".to_owned();
            cell.windows.push(Window {
                name,
                from_ns: 0,
                to_ns: end_ns,
            });
        }
        Ok(())
    }

    fn bounds(&self, cell: &mut Cell, env: &Env) -> Result<(), Error> {
        self.each_repetition("bound", "[[bound]]", BOUND, env, |section| {
            let windows: Vec<usize> = match section.get("window") {
                None => (0..cell.windows.len()).collect(),
                Some(_) => {
                    let names = cell.windows.iter().map(|window| window.name.as_str());
                    vec![reference(section, "window", "window", names)?]
                }
            };
            let names = || FlowMetrics::NAMES.iter().chain(TransferRow::NAMES).copied();
            let metric = reference(section, "metric", "metric", names())?;
            let of_transfers = metric >= FlowMetrics::NAMES.len();
            let metric = names().nth(metric).unwrap_or_default();
            let (min, max) = (section.real("min")?, section.real("max")?);
            if min.is_none() && max.is_none() {
                return Err(section.missing("max", "`min`, `max` or both, numbers"));
            }
            for subject in subjects(section, cell)? {
                let of = |window: usize| Bound {
                    subject,
                    window,
                    metric: metric.to_owned(),
                    min,
                    max,
                };
                if of_transfers {
                    let expected = "a metric of a window: only flows with `bytes` have this one, \
                                    and over all of the time";
                    if !has_end(cell, subject) || section.get("window").is_some() {
                        return Err(section.require("metric", expected)?.fault(expected));
                    }
                    cell.transfer_bounds.push(of(0));
                } else {
                    cell.bounds.extend(windows.iter().map(|window| of(*window)));
                }
            }
            Ok(())
        })
    }
}

/// Returns whether the subject is a flow with a known length.
fn has_end(cell: &Cell, subject: Subject) -> bool {
    let Subject::Flow(flow) = subject else {
        return false;
    };
    matches!(cell.flows[flow].kind, FlowKind::Tcp { bytes: Some(_), .. })
}

/// Returns the flows, streams or wire that a bound is about.
fn subjects(section: &Section<'_, '_>, cell: &Cell) -> Result<Vec<Subject>, Error> {
    if let Some(isochronous) = &cell.isochronous {
        let streams = isochronous.streams.iter().map(|s| s.name.as_str());
        let found = reference(section, "flow", "stream", streams.chain(["each"]))?;
        let count = isochronous.streams.len();
        return Ok(match found {
            at if at < count => vec![Subject::Stream(at)],
            _ => (0..count).map(Subject::Stream).collect(),
        });
    }
    let flows = || cell.flows.iter().map(|flow| flow.name.as_str());
    let found = reference(section, "flow", "flow", flows().chain(["each", "wire"]))?;
    let count = cell.flows.len();
    Ok(match found {
        at if at < count => vec![Subject::Flow(at)],
        at if at == count => (0..count).map(Subject::Flow).collect(),
        _ if count == 0 => {
            let expected = "a scenario with flows";
            return Err(section.require("flow", expected)?.fault(expected));
        }
        _ => vec![Subject::Wire],
    })
}
