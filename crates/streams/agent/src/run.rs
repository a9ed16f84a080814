// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop of an agent: a thread asks each manager over and over, another one reports to it, and one
//! thread sets the ports whenever a manager has answered or a lease has ended. What is said of a manager
//! waits for no other.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use host_apply::{Io, Lock, folder};
use linux_io::clock::{boot_id, boottime_ns};
use linux_io::links::{links, named};
use linux_io::signals::Signals;
use linux_io::wait::readable;
use manager::commands::Usage;
use manager_proto::client::{Client, ClientError, Reserved};
use tcpsp::Tc;

use crate::args::AgentArgs;
use crate::ask::{Heard, ask, report};
use crate::dry_run::dry_run;
use crate::enforce::{Way, enforce};
use crate::event::Event;
use crate::faults::{FaultChanges, Faults};
use crate::known::{Astray, ManagerAnswer, ManagerAnswers, Report};
use crate::memory::Memory;
use crate::routes::{Changes, routes};
use crate::threads::{spawn_needed, spawn_short};

/// Longest wait without a look at the clock.
const LONGEST_WAIT_NS: u64 = 60_000_000_000;

/// What the agent waits for.
enum Input {
    /// A manager has answered, or has not.
    Answer { manager: String, heard: Heard },
    /// A manager has taken a report.
    Reported(Report),
    /// A manager has answered to a new route, or has not.
    Rerouted {
        id: String,
        segment: String,
        answer: Result<Reserved, ClientError>,
    },
    /// Routes, rules or devices have changed.
    Routes,
    /// A signal came, or waiting for one failed.
    Stop(io::Result<()>),
    /// A thread that the agent cannot do without has ended.
    Ended(String),
}

/// Returns what tells the agent that a thread has ended.
fn ended_to(inputs: &Sender<Input>) -> impl FnOnce(String) + Send + 'static {
    let inputs = inputs.clone();
    move |what| {
        // The agent may have ended.
        let _ = inputs.send(Input::Ended(what));
    }
}

/// Returns the devices by segment.
fn ports(args: &AgentArgs) -> Result<BTreeMap<String, String>> {
    let mut ports = BTreeMap::new();
    let links = links()?;
    for (segment, device) in &args.ports {
        // Routes have the first name of a device.
        let device = named(&links, device).map_or(device, |link| &link.name);
        let is_twice = ports.values().any(|of| of == device) || ports.contains_key(segment);
        if is_twice {
            let problem =
                format!("--port {segment}={device}: expected each segment and each device once");
            return Err(anyhow!(Usage(problem)));
        }
        ports.insert(segment.clone(), device.clone());
    }
    Ok(ports)
}

/// Keeps a node's ports as its managers say, until SIGINT or SIGTERM. They stay as they are then.
///
/// # Errors
/// When the command line or a file is wrong, or the system lacks what is needed. What goes wrong
/// later is told, and tried again.
pub fn run(args: &AgentArgs, io: &mut Io<'_>) -> Result<()> {
    let ports = ports(args)?;
    let mut clients = BTreeMap::new();
    for url in &args.managers {
        clients.insert(url.clone(), Arc::new(args.credentials.client(url)?));
    }
    if args.dry_run {
        let mut say = |event: &Event| say(event, args.json, io);
        return dry_run(args, &ports, &clients, &mut say);
    }
    let folder = folder()?;
    let memory = Memory::new(
        &folder,
        &args.node,
        boot_id().context("the id of the boot")?,
    );
    let mut agent = Agent::new(args, ports, folder, io)?;
    // Without it the agent begins as on its first day.
    match memory.load() {
        Ok(known) => agent.known = known,
        Err(error) => agent.fault(format!("{error:#}"))?,
    }
    agent
        .known
        .0
        .retain(|manager, _| args.managers.contains(manager));
    // Before threads start, so that none of them is ended by a signal.
    let signals = Signals::block()?;
    let (sender, inputs) = channel();
    let mut talks = BTreeMap::new();
    for (url, client) in &clients {
        let poll = Duration::from_nanos(args.poll);
        talks.insert(url.clone(), talk(url, client, &args.node, poll, &sender));
    }
    if args.follow_routes {
        let changes = Changes::open().context("changes of routes")?;
        let (inputs, sender) = (sender.clone(), sender.clone());
        let what = "the thread that follows routes".to_owned();
        spawn_needed(what, ended_to(&inputs), move || {
            loop {
                let changed = match changes.wait() {
                    Ok(()) => Input::Routes,
                    Err(error) => Input::Stop(Err(error)),
                };
                // The agent may have ended.
                if sender.send(changed).is_err() {
                    return;
                }
            }
        });
    }
    let reroutes = Reroutes {
        clients,
        sender: sender.clone(),
    };
    let of_signals = sender.clone();
    let what = "the thread that waits for signals".to_owned();
    spawn_needed(what, ended_to(&of_signals), move || {
        let came = loop {
            match readable(&[signals.as_fd()], LONGEST_WAIT_NS).and_then(|()| signals.came()) {
                Ok(false) => {}
                came => break came,
            }
        };
        // The agent may have ended.
        let _ = sender.send(Input::Stop(came.map(|_| ())));
    });
    agent.say(&Event::Ready {
        node: args.node.clone(),
        kept: agent
            .known
            .0
            .values()
            .map(ManagerAnswer::reservations)
            .sum(),
    })?;
    agent.work(&memory, &inputs, &talks, &reroutes)
}

/// What the threads that talk with a manager wait for.
struct Talk {
    /// The answer is taken: ask for the next one.
    next: Sender<()>,
    /// What the manager is due.
    due: Sender<Vec<Report>>,
}

/// Starts the threads that ask a manager, and that report to it.
fn talk(
    url: &str,
    client: &Arc<Client>,
    node: &str,
    poll: Duration,
    inputs: &Sender<Input>,
) -> Talk {
    let (next, of_next) = channel();
    let (due, of_due) = channel();
    let (of, to, name) = (Arc::clone(client), inputs.clone(), node.to_owned());
    let url = url.to_owned();
    let what = format!("the thread that asks {url}");
    let reports = format!("the thread that reports to {url}");
    spawn_needed(what, ended_to(inputs), move || {
        ask(&of, &name, poll, &of_next, |heard| {
            let manager = url.clone();
            let input = match heard {
                Ok(heard) => Input::Answer { manager, heard },
                Err(error) => Input::Stop(Err(error)),
            };
            // The agent may have ended.
            to.send(input).is_ok()
        });
    });
    let (of, to, name) = (Arc::clone(client), inputs.clone(), node.to_owned());
    spawn_needed(reports, ended_to(inputs), move || {
        report(&of, &name, &of_due, |report| {
            to.send(Input::Reported(report)).is_ok()
        });
    });
    Talk { next, due }
}

/// What it takes to ask for new routes, each in a thread of its own: the answer may have to wait until
/// this agent has put it into force.
struct Reroutes {
    clients: BTreeMap<String, Arc<Client>>,
    sender: Sender<Input>,
}

impl Reroutes {
    fn ask(&self, manager: &str, node: &str, id: &str, segment: &str) {
        let Some(client) = self.clients.get(manager).map(Arc::clone) else {
            return;
        };
        let sender = self.sender.clone();
        let what = format!("the thread that asks {manager} for a route");
        let ended = ended_to(&self.sender);
        let [node, id, segment] = [node, id, segment].map(str::to_owned);
        spawn_short(what, ended, move || {
            let answer = client.reroute(&id, &node, &segment);
            // The agent may have ended.
            let _ = sender.send(Input::Rerouted {
                id,
                segment,
                answer,
            });
        });
    }
}

fn say(event: &Event, json: bool, io: &mut Io<'_>) -> Result<()> {
    if event.is_loud() {
        (io.note)(&event.to_string());
    }
    if json {
        writeln!(io.out, "{}", serde_json::to_string(event)?)?;
    } else if !event.is_loud() {
        writeln!(io.out, "{event}")?;
    }
    Ok(io.out.flush()?)
}

struct Agent<'a, 'b> {
    args: &'a AgentArgs,
    /// Devices, by segment.
    ports: BTreeMap<String, String>,
    way: Way,
    folder: PathBuf,
    tc: Tc,
    known: ManagerAnswers,
    /// Segments whose ports are as they shall be.
    in_force: BTreeSet<String>,
    /// Streams that the kernel sends elsewhere.
    astray: Astray,
    /// Reservations for which a manager is asked for a new route.
    rerouting: BTreeSet<String>,
    /// Why there was none, by reservation.
    not_rerouted: Faults,
    /// Managers that do not answer.
    away: BTreeSet<String>,
    /// What is wrong at present.
    faults: Faults,
    /// Lines of the last changes, by segment: one that has no effect is made again each time.
    changes: BTreeMap<String, BTreeSet<String>>,
    /// What the managers were told last, by reservation.
    reported: BTreeMap<String, bool>,
    io: &'a mut Io<'b>,
}

impl<'a, 'b> Agent<'a, 'b> {
    /// Returns an agent as on its first day.
    fn new(
        args: &'a AgentArgs,
        ports: BTreeMap<String, String>,
        folder: PathBuf,
        io: &'a mut Io<'b>,
    ) -> Result<Self> {
        Ok(Self {
            args,
            ports,
            way: Way::new(args)?,
            folder,
            tc: Tc::open()?,
            known: ManagerAnswers::default(),
            in_force: BTreeSet::new(),
            astray: Astray::new(),
            rerouting: BTreeSet::new(),
            not_rerouted: Faults::default(),
            away: BTreeSet::new(),
            faults: Faults::default(),
            changes: BTreeMap::new(),
            reported: BTreeMap::new(),
            io,
        })
    }
}

impl Agent<'_, '_> {
    fn say(&mut self, event: &Event) -> Result<()> {
        say(event, self.args.json, self.io)
    }

    fn fault(&mut self, problem: String) -> Result<()> {
        self.say(&Event::Fault { problem })
    }

    fn work(
        &mut self,
        memory: &Memory,
        inputs: &Receiver<Input>,
        talks: &BTreeMap<String, Talk>,
        reroutes: &Reroutes,
    ) -> Result<()> {
        self.enforce()?;
        loop {
            let end_ns = self.known.next_end_ns().unwrap_or(u64::MAX);
            let wait_ns = end_ns.saturating_sub(boottime_ns()?).min(LONGEST_WAIT_NS);
            match inputs.recv_timeout(Duration::from_nanos(wait_ns)) {
                Ok(Input::Answer { manager, heard }) => {
                    self.heard(memory, &manager, heard)?;
                    self.ask_for_routes(&manager, reroutes);
                    if let Some(talk) = talks.get(&manager) {
                        // A manager's threads end with the agent only.
                        let _ = talk.due.send(self.reports(&manager));
                        let _ = talk.next.send(());
                    }
                }
                Ok(Input::Reported(report)) => self.reported(report)?,
                Ok(Input::Rerouted {
                    id,
                    segment,
                    answer,
                }) => self.rerouted(id, segment, answer)?,
                Ok(Input::Stop(stop)) => return Ok(stop?),
                Ok(Input::Routes) | Err(RecvTimeoutError::Timeout) => {
                    self.enforce()?;
                    // No answer may come for long.
                    for (manager, talk) in talks {
                        self.ask_for_routes(manager, reroutes);
                        let _ = talk.due.send(self.reports(manager));
                    }
                }
                Ok(Input::Ended(what)) => bail!("{what} has ended; the ports stay as they are"),
                Err(RecvTimeoutError::Disconnected) => bail!("all threads have ended"),
            }
        }
    }

    /// Says that a manager was told what it was not told before.
    fn reported(&mut self, Report { id, in_force }: Report) -> Result<()> {
        if self.reported.insert(id.clone(), in_force) == Some(in_force) {
            return Ok(());
        }
        self.say(&if in_force {
            Event::InForce { id }
        } else {
            Event::NotInForce { id }
        })
    }

    /// Takes a manager's answer.
    fn heard(&mut self, memory: &Memory, manager: &str, heard: Heard) -> Result<()> {
        let Heard { asked_ns, answer } = heard;
        let duty = match answer {
            Ok(duty) => duty,
            Err(error) => {
                self.is_away(manager, &error)?;
                return self.enforce();
            }
        };
        if self.away.remove(manager) {
            let manager = manager.to_owned();
            self.say(&Event::Back { manager })?;
        }
        let heard = ManagerAnswer { asked_ns, duty };
        self.known.0.insert(manager.to_owned(), heard);
        let ids = self.known.ids();
        self.reported.retain(|id, _| ids.contains(id));
        // A killed agent finds it, whatever it had changed.
        memory.store(&self.known)?;
        self.enforce()
    }

    /// Returns the reports that a manager is due; none while it does not answer.
    fn reports(&self, manager: &str) -> Vec<Report> {
        let heard = self.known.0.get(manager);
        let heard = heard.filter(|_| !self.away.contains(manager));
        heard.map_or_else(Vec::new, |heard| {
            heard.reports(&self.in_force, &self.astray)
        })
    }

    /// Asks a manager for new routes of its reservations that go astray, of each once at a time.
    fn ask_for_routes(&mut self, manager: &str, reroutes: &Reroutes) {
        let Some(heard) = self.known.0.get(manager) else {
            return;
        };
        let astray = &self.astray;
        let is_astray = |id: &str| astray.keys().any(|(of, _)| of == id);
        self.not_rerouted.keep(is_astray);
        if self.away.contains(manager) {
            return;
        }
        for (id, segment) in heard.reroutes(&self.astray) {
            if self.rerouting.insert(id.clone()) {
                reroutes.ask(manager, &self.args.node, &id, &segment);
            }
        }
    }

    /// Says what came of a new route: a failure once, although it is tried over and over.
    fn rerouted(
        &mut self,
        id: String,
        segment: String,
        answer: Result<Reserved, ClientError>,
    ) -> Result<()> {
        self.rerouting.remove(&id);
        let problem = match answer {
            Ok(Reserved::Granted(view)) => {
                self.not_rerouted.keep(|of| of != id);
                return self.say(&Event::Rerouted {
                    id,
                    segment,
                    bound_ns: view.bound_ns,
                });
            }
            Ok(Reserved::Refused(view)) => view.message,
            // Something else is under way.
            Err(ClientError::Refused { status: 503, .. }) => return Ok(()),
            Err(error) => error.to_string(),
        };
        let problem = format!("reservation {id} has no bytes by segment {segment}: {problem}");
        if self.not_rerouted.begin(&id, &problem) {
            self.fault(problem)?;
        }
        Ok(())
    }

    fn is_away(&mut self, manager: &str, error: &ClientError) -> Result<()> {
        if !self.away.insert(manager.to_owned()) {
            return Ok(());
        }
        let kept = self
            .known
            .0
            .get(manager)
            .map_or(0, ManagerAnswer::reservations);
        self.say(&Event::Away {
            manager: manager.to_owned(),
            problem: error.to_string(),
            kept,
        })
    }

    /// Ends leases, of which nobody else says so if the manager is away, and sets the ports. Each
    /// fault is said once when it begins and once when it ends.
    fn enforce(&mut self) -> Result<()> {
        for (id, manager) in self.known.expire(boottime_ns()?) {
            self.reported.remove(&id);
            if self.away.contains(&manager) {
                self.say(&Event::LeaseEnded { id, manager })?;
            }
        }
        let demands = self.known.demands();
        // Faults by what they are about.
        let of_reservations = self.known.faults(&self.ports).into_iter();
        let mut faults: BTreeMap<_, _> = of_reservations.map(|of| (of.clone(), of)).collect();
        if self.args.follow_routes {
            // Without an answer of the kernel all is as it was.
            match routes(self.known.destinations()) {
                Ok(routes) => self.astray = self.known.astray(&self.ports, &routes),
                Err(error) => {
                    faults.insert("routes".to_owned(), format!("routes: {error}"));
                }
            }
            for ((id, segment), detour) in &self.astray {
                faults.insert(format!("{id} in {segment}"), detour.problem.clone());
            }
        }
        let mut new_lines = Vec::new();
        let lock = Lock::take(&self.folder)?;
        for (segment, device) in &self.ports {
            let Some(demand) = demands.get(segment) else {
                continue;
            };
            let before = self.changes.remove(segment).unwrap_or_default();
            let mut lines = BTreeSet::new();
            let mut say = |line: &str| {
                if lines.insert(line.to_owned()) && !before.contains(line) {
                    new_lines.push(line.to_owned());
                }
            };
            match enforce(&mut self.tc, demand, device, self.way, &mut say) {
                Ok(()) => self.in_force.insert(segment.clone()),
                Err(error) => {
                    faults.insert(format!("port {segment}"), format!("{error:#}"));
                    self.in_force.remove(segment)
                }
            };
            self.changes.insert(segment.clone(), lines);
        }
        drop(lock);
        for change in new_lines {
            self.say(&Event::Change { change })?;
        }
        let FaultChanges { begun, ended } = self.faults.update(&faults);
        for problem in ended {
            self.say(&Event::FaultEnded { problem })?;
        }
        begun
            .into_iter()
            .try_for_each(|problem| self.fault(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        args: AgentArgs,
    }

    #[test]
    fn an_agent_ends_with_any_of_its_threads() {
        let folder = tempfile::tempdir().unwrap();
        let args = Words::parse_from(["agent", "--node=a", "--port=s=lo"]).args;
        let (mut out, mut warn) = (Vec::new(), |_: &str| {});
        let mut io = Io {
            out: &mut out,
            note: &mut warn,
        };
        let ports = ports(&args).unwrap();
        let folder = folder.path();
        let mut agent = Agent::new(&args, ports, folder.to_owned(), &mut io).unwrap();
        let (sender, inputs) = channel();
        spawn_needed("one".to_owned(), ended_to(&sender), || {
            std::panic::resume_unwind(Box::new("as the test wants it"));
        });
        let memory = Memory::new(folder, "a", "boot".to_owned());
        let clients = BTreeMap::new();
        let reroutes = Reroutes { clients, sender };
        let ended = agent.work(&memory, &inputs, &BTreeMap::new(), &reroutes);
        assert!(ended.unwrap_err().to_string().contains("one has ended"));
    }
}
