// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps from what there is to what is wanted, in an order in which packets are paced as soon
//! as they are stamped, and nothing is stamped that nobody paces.

use std::collections::BTreeMap;
use std::fmt;

use host_config::minor;
use linux_io::links::{Link, links};
use tcpsp::attribute::Attribute;
use tcpsp::{Change, Handle, PlainFilter, PlainQdisc, Tc};
use units::display;

use super::config::Config;
use super::error::{Error, Refusal};
use super::layout::{CLASSES, Tables};
use super::program::Loaded;
use super::running::{BPF, CLSACT, CLSACT_HANDLE, FILTER, FQ, Place, Running};

/// fq's attributes (linux/pkt_sched.h).
const FQ_LIMIT: u16 = 1;
const FQ_FLOW_LIMIT: u16 = 2;
const FQ_TIMER_SLACK: u16 = 13;
/// Most packets in an fq, and of one flow. fq's own 100 of a flow would drop a class's burst.
const PACKETS_MAX: u32 = 100_000;

/// Kinds of qdiscs with our ids that make room for another: those of the module, too.
const OURS: [&str; 3] = [FQ, "mq", "psp"];

/// A filter's attributes (linux/pkt_cls.h).
const BPF_FD: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_FLAGS: u16 = 8;
/// The program itself says what becomes of a packet.
const DIRECT_ACTION: u32 = 1;

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Puts a qdisc, in the place of another if it says so.
    Qdisc(PlainQdisc, bool),
    /// Takes a qdisc away.
    DeleteQdisc {
        /// Where it is.
        parent: Handle,
        /// Its id.
        handle: Handle,
    },
    /// Puts other classes and rules in force, all with one store.
    Tables {
        /// What changes, a line each.
        lines: Vec<String>,
    },
    /// Loads the program with these classes and rules, and attaches it.
    Attach {
        /// The classes, a line each.
        lines: Vec<String>,
    },
    /// Detaches the program. Its packets keep their departure times.
    Detach,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Qdisc(qdisc, false) => {
                write!(f, "add     qdisc {} at {}", qdisc.kind, qdisc.parent)
            }
            Self::Qdisc(qdisc, true) => {
                write!(f, "replace the qdisc at {} by {}", qdisc.parent, qdisc.kind)
            }
            Self::DeleteQdisc { parent, handle } => write!(f, "delete  qdisc {handle} at {parent}"),
            Self::Tables { lines } => write!(f, "change  departure times: {}", lines.join("; ")),
            Self::Attach { lines } => write!(f, "add     departure times: {}", lines.join("; ")),
            Self::Detach => write!(f, "delete  departure times"),
        }
    }
}

/// Returns an fq. Its timer has no slack: packets leave as soon as the hardware's timer allows.
fn fq(parent: Handle, handle: Handle) -> PlainQdisc {
    PlainQdisc {
        parent,
        handle,
        kind: FQ,
        options: vec![
            Attribute::u32(FQ_LIMIT, PACKETS_MAX),
            Attribute::u32(FQ_FLOW_LIMIT, PACKETS_MAX),
            Attribute::u32(FQ_TIMER_SLACK, 0),
        ],
    }
}

/// Returns the steps that lead to what is wanted, or with `None` take everything of ours away, and
/// what a person should know. What others configured at the root is replaced only with
/// `take_over`.
///
/// # Errors
/// What of others is in the way; that a rule names a device that is not there.
pub fn steps(
    running: &Running,
    wanted: Option<&Config>,
    take_over: bool,
) -> Result<(Vec<Step>, Vec<String>), Error> {
    let mut planner = Planner {
        running,
        take_over,
        steps: Vec::new(),
        notes: Vec::new(),
    };
    match wanted {
        Some(config) => planner.apply(config)?,
        None => planner.remove(),
    }
    Ok((planner.steps, planner.notes))
}

struct Planner<'a> {
    running: &'a Running,
    take_over: bool,
    steps: Vec<Step>,
    notes: Vec<String>,
}

impl Planner<'_> {
    fn apply(&mut self, config: &Config) -> Result<(), Error> {
        self.notes.extend(config.notes.iter().cloned());
        let running = self.running;
        let root = &running.root;
        match (config.queues, running.is_mq) {
            (0, false) => self.put(root, fq(Handle::ROOT, minor::root()))?,
            (0, true) => self.put(
                &as_other(root, "mq", minor::mq()),
                fq(Handle::ROOT, minor::root()),
            )?,
            (queues, true) => self.below(queues)?,
            (queues, false) => {
                let mq = PlainQdisc {
                    parent: Handle::ROOT,
                    handle: minor::mq(),
                    kind: "mq",
                    options: Vec::new(),
                };
                self.put(&as_other(root, FQ, minor::root()), mq)?;
                self.below(queues)?;
            }
        }
        if !running.has_clsact {
            self.steps.push(Step::Qdisc(clsact(), false));
        }
        let links = links_of(config)?;
        let tables = Tables::new(config, &running.tables.minors, &links)?;
        let lines = differences(&running.tables, &tables, &config.names);
        match (running.is_attached, running.tables == tables) {
            (true, true) => {}
            (true, false) => self.steps.push(Step::Tables { lines }),
            (false, _) => self.steps.push(Step::Attach { lines }),
        }
        Ok(())
    }

    fn below(&mut self, queues: u16) -> Result<(), Error> {
        let none = Place::Default("default".to_owned(), 0);
        for queue in 0..queues {
            let place = self.running.below.get(usize::from(queue)).unwrap_or(&none);
            self.put(place, fq(minor::mq_class(queue), minor::below_mq(queue)))?;
        }
        Ok(())
    }

    /// Puts a qdisc of ours where something stands; one that is there stays.
    fn put(&mut self, place: &Place, qdisc: PlainQdisc) -> Result<(), Error> {
        let replace = match place {
            Place::Ours(_) => return Ok(()),
            Place::Default(kind, waiting) => {
                self.lose(kind, *waiting);
                false
            }
            Place::Other(kind, handle, waiting) => {
                let is_ours = [minor::root(), minor::mq(), qdisc.handle].contains(handle);
                let may_go = is_ours && OURS.contains(&kind.as_str());
                if !self.take_over && !may_go {
                    return Err(Error::Refused {
                        part: self.running.facts.name.clone(),
                        detail: format!(
                            "qdisc {kind} {handle} at {} was configured by others, expected \
                             none; --take-over replaces it",
                            qdisc.parent
                        ),
                    });
                }
                self.lose(kind, *waiting);
                // The kernel takes the same id for a change of that qdisc.
                if *handle == qdisc.handle {
                    let parent = qdisc.parent;
                    let handle = *handle;
                    self.steps.push(Step::DeleteQdisc { parent, handle });
                }
                *handle != qdisc.handle
            }
        };
        self.steps.push(Step::Qdisc(qdisc, replace));
        Ok(())
    }

    /// Notes that a qdisc goes with its packets.
    fn lose(&mut self, kind: &str, waiting: u32) {
        if waiting > 0 {
            self.notes.push(format!(
                "{waiting} packets wait in {kind}; the kernel drops them with it"
            ));
        }
    }

    fn remove(&mut self) {
        let running = self.running;
        if !running.is_there() {
            return;
        }
        if running.is_attached {
            self.steps.push(Step::Detach);
        }
        if running.has_clsact && running.other_filters == 0 {
            self.steps.push(Step::DeleteQdisc {
                parent: Handle::INGRESS,
                handle: CLSACT_HANDLE,
            });
        }
        if let Place::Ours(waiting) = running.root {
            let below = running.below.iter().map(|place| match place {
                Place::Ours(waiting) | Place::Default(_, waiting) | Place::Other(_, _, waiting) => {
                    *waiting
                }
            });
            self.lose(FQ, waiting.max(below.sum()));
            self.steps.push(Step::DeleteQdisc {
                parent: Handle::ROOT,
                handle: if running.is_mq {
                    minor::mq()
                } else {
                    minor::root()
                },
            });
        }
    }
}

/// Returns one of ours as something that has to make room.
fn as_other(place: &Place, kind: &str, handle: Handle) -> Place {
    match place {
        Place::Ours(waiting) => Place::Other(kind.to_owned(), handle, *waiting),
        other => other.clone(),
    }
}

fn clsact() -> PlainQdisc {
    PlainQdisc {
        parent: Handle::INGRESS,
        handle: CLSACT_HANDLE,
        kind: CLSACT,
        options: Vec::new(),
    }
}

fn links_of(config: &Config) -> Result<Vec<Link>, Error> {
    let names_a_device = config.rules.iter().any(|rule| match &rule.matching {
        tcpsp::Match::Flower(flower) => flower.interface.is_some(),
        _ => false,
    });
    if names_a_device {
        links().map_err(Error::Links)
    } else {
        Ok(Vec::new())
    }
}

/// Returns what changes from tables to others, for a person.
fn differences(had: &Tables, want: &Tables, names: &BTreeMap<u16, String>) -> Vec<String> {
    let name = |minor: u16| {
        let name = names.get(&minor);
        name.map_or_else(|| format!("{minor:x}"), Clone::clone)
    };
    let class = |tables: &Tables, minor: u16| {
        let slot = tables.minors.get(&minor).filter(|slot| **slot < CLASSES)?;
        tables.classes.get(slot).copied()
    };
    let mut minors: Vec<u16> = had
        .minors
        .keys()
        .chain(want.minors.keys())
        .copied()
        .collect();
    minors.sort_unstable();
    minors.dedup();
    let mut lines = Vec::new();
    for minor in minors {
        let rate = |class: [u64; 3]| display::rate(class[0] as f64);
        let wait = |class: [u64; 3]| display::time(class[1] as f64 / 1e9);
        let line = match (class(had, minor), class(want, minor)) {
            (None, Some(new)) => format!("rate {}, at most {} of waiting", rate(new), wait(new)),
            (Some(_), None) if want.minors.contains_key(&minor) => "no rate".to_owned(),
            (Some(_), None) => "goes".to_owned(),
            (Some(old), Some(new)) if old[0] != new[0] => {
                format!("rate {} -> {}", rate(old), rate(new))
            }
            (Some(old), Some(new)) if old[1] != new[1] => {
                format!("waiting {} -> {}", wait(old), wait(new))
            }
            (Some(_), Some(_)) => continue,
            (None, None) if had.minors.contains_key(&minor) == want.minors.contains_key(&minor) => {
                continue;
            }
            (None, None) if want.minors.contains_key(&minor) => "normal".to_owned(),
            (None, None) => "goes".to_owned(),
        };
        lines.push(format!("class {}: {line}", name(minor)));
    }
    if had.rules != want.rules {
        lines.push(format!(
            "matches: {} -> {}",
            had.rules.len(),
            want.rules.len()
        ));
    }
    if had.config[2..] != want.config[2..] {
        lines.push("default, layer or overhead".to_owned());
    }
    lines
}

impl Step {
    /// Makes the step. `running` is what was read before the first step.
    ///
    /// # Errors
    /// The kernel's.
    pub fn make(
        &self,
        tc: &mut Tc,
        running: &mut Running,
        config: Option<&Config>,
    ) -> Result<(), Error> {
        let device = running.facts.index;
        let result = match self {
            Self::Qdisc(qdisc, replace) => tc.put_qdisc(device, qdisc, *replace),
            Self::DeleteQdisc { parent, handle } => {
                let (parent, handle) = (*parent, *handle);
                tc.change(device, &Change::DeleteQdisc { parent, handle })
            }
            Self::Detach => {
                let change = Change::DeleteFilter {
                    at: FILTER,
                    kind: BPF.to_owned(),
                    protocol: PlainFilter::ANY,
                };
                tc.change(device, &change)
            }
            Self::Tables { .. } => {
                let tables = tables_of(running, config)?;
                let had = std::mem::take(&mut running.tables);
                if let Some(maps) = &mut running.maps {
                    maps.write(&tables, &had)?;
                }
                running.tables = tables;
                Ok(())
            }
            Self::Attach { .. } => {
                let tables = tables_of(running, config)?;
                let mut loaded = Loaded::new()?;
                loaded.maps.write(&tables, &Tables::default())?;
                let attached = loaded.with_descriptor(|descriptor| {
                    let filter = PlainFilter {
                        at: FILTER,
                        kind: BPF,
                        protocol: PlainFilter::ANY,
                        options: vec![
                            Attribute::u32(BPF_FD, descriptor),
                            Attribute::string(BPF_NAME, "pspacer-edt"),
                            Attribute::u32(BPF_FLAGS, DIRECT_ACTION),
                        ],
                    };
                    tc.put_filter(device, &filter, false)
                })?;
                running.tables = tables;
                running.maps = Some(loaded.maps);
                attached
            }
        };
        result.map_err(|source| Error::Kernel {
            step: self.to_string(),
            source,
        })
    }
}

fn tables_of(running: &Running, config: Option<&Config>) -> Result<Tables, Error> {
    match config {
        Some(config) => Tables::new(config, &running.tables.minors, &links_of(config)?),
        None => Ok(Tables::default()),
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused {
            part: "backend edt".to_owned(),
            detail: refusal.0,
        }
    }
}
