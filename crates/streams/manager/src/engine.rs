// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a manager: one thread that takes jobs, stores what they change, and only then answers. Jobs
//! that come while a change is being stored share the next one. Who only looks asks the [`StoredView`],
//! and waits for no decision.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::store::{Store, StoreError};
use crate::stored_view::StoredView;
use manager_proto::answer::{Answer, Command};
use manager_proto::machine::{Effects, Manager};
use manager_proto::message::{Envelope, Message, Reply};
use manager_proto::record::{Change, Update};

/// Most jobs that wait; more are refused.
const MOST_JOBS: usize = 4096;
/// Most jobs that share a change of the store.
const MOST_SHARED: usize = 512;
/// Longest time without a look at the clock.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Something for a manager to do.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "most are commands, and a full queue of them has a megabyte"
)]
pub enum Job {
    /// Carry out a command.
    Command {
        command: Command,
        /// Where the answer goes.
        reply: oneshot::Sender<Answer>,
    },
    /// Take another manager's messages.
    Messages {
        /// When they came, ns.
        came_ns: u64,
        envelope: Envelope,
        /// Where the reply goes.
        reply: oneshot::Sender<Reply>,
    },
    /// Take another manager's reply.
    Replied {
        /// The other manager.
        from: String,
        reply: Reply,
    },
    /// End, after what came before.
    Stop,
}

/// Why a job was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many wait.
    #[error("too many requests are under way; try again")]
    Busy,
    /// The manager has ended, or its store does not answer.
    #[error("the manager has no answer: it is ending, or its store is away; ask it again")]
    Ended,
    /// This one stands by.
    #[error("another manager decides{}", .0.as_ref().map(|url| format!(": ask {url}")).unwrap_or_default())]
    Elsewhere(Option<String>),
}

/// Who decides.
#[derive(Debug)]
struct Decider {
    /// Until when this manager does, by the clock of the boot.
    ends_ns: Arc<AtomicU64>,
    view: Option<StoredView>,
    /// URL of who does otherwise.
    other: Option<String>,
}

/// Takes jobs for the manager's thread, and shows what is stored.
#[derive(Clone, Debug)]
pub struct Engine {
    jobs: SyncSender<Job>,
    decider: Arc<RwLock<Decider>>,
}

/// Why a manager ended.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// What it changed could not be stored. Nothing of that was said to anybody.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The clock could not be read.
    #[error("the clock cannot be read: {0}")]
    Clock(io::Error),
}

/// Returns a queue of jobs, and its end for [`run`]. The manager stands by at first.
pub fn queue() -> (Engine, Receiver<Job>) {
    let (jobs, receiver) = sync_channel(MOST_JOBS);
    let decider = Decider {
        ends_ns: Arc::new(AtomicU64::new(0)),
        view: None,
        other: None,
    };
    let decider = Arc::new(RwLock::new(decider));
    (Engine { jobs, decider }, receiver)
}

impl Engine {
    /// The manager decides from now on, until a time of the boot's clock.
    pub fn begin(&self, manager: &Manager, ends_ns: Arc<AtomicU64>) {
        let mut decider = self.decider.write().unwrap_or_else(PoisonError::into_inner);
        *decider = Decider {
            ends_ns,
            view: Some(StoredView::of(manager)),
            other: None,
        };
    }

    /// Another manager decides, or nobody.
    pub fn stand_by(&self, other: Option<String>) {
        let mut decider = self.decider.write().unwrap_or_else(PoisonError::into_inner);
        decider.view = None;
        decider.other = other;
    }

    /// Looks at what is stored; nobody is held up but for the time of the look.
    pub fn look<T>(&self, now_ns: u64, look: impl FnOnce(&StoredView) -> T) -> Result<T, Refused> {
        let decider = self.decider.read().unwrap_or_else(PoisonError::into_inner);
        let is_over = decider.ends_ns.load(Ordering::Acquire) <= now_ns;
        match &decider.view {
            Some(view) if !is_over => Ok(look(view)),
            _ => Err(Refused::Elsewhere(decider.other.clone())),
        }
    }

    fn show(&self, updates: &[Update]) {
        if updates.is_empty() {
            return;
        }
        let mut decider = self.decider.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = &mut decider.view {
            view.apply(updates);
        }
    }

    /// Hands a job over.
    ///
    /// # Errors
    /// If too many wait, another manager decides, or this one has ended.
    pub fn submit(&self, job: Job) -> Result<(), Refused> {
        {
            let decider = self.decider.read().unwrap_or_else(PoisonError::into_inner);
            if decider.view.is_none() {
                return Err(Refused::Elsewhere(decider.other.clone()));
            }
        }
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => Refused::Busy,
            TrySendError::Disconnected(_) => Refused::Ended,
        })
    }

    /// Carries out a command and waits for its answer.
    ///
    /// # Errors
    /// If too many wait, or the manager has ended.
    pub async fn command(&self, command: Command) -> Result<Answer, Refused> {
        let (reply, answer) = oneshot::channel();
        self.submit(Job::Command { command, reply })?;
        answer.await.map_err(|_| Refused::Ended)
    }

    /// Hands another manager's messages over and waits for the reply.
    ///
    /// # Errors
    /// If too many wait, or the manager has ended.
    pub async fn messages(&self, came_ns: u64, envelope: Envelope) -> Result<Reply, Refused> {
        let (reply, answer) = oneshot::channel();
        self.submit(Job::Messages {
            came_ns,
            envelope,
            reply,
        })?;
        answer.await.map_err(|_| Refused::Ended)
    }

    /// Asks the manager to end.
    pub fn stop(&self) {
        // One that takes no more jobs has ended.
        let _ = self.jobs.send(Job::Stop);
    }
}

/// Whoever waits for an answer.
#[derive(Default)]
struct Waiting {
    next_ticket: u64,
    commands: BTreeMap<u64, oneshot::Sender<Answer>>,
    envelopes: BTreeMap<u64, oneshot::Sender<Reply>>,
}

impl Waiting {
    /// Hands a job to the manager; returns whether the manager ends.
    fn take(&mut self, manager: &mut Manager, job: Job, now_ns: u64) -> bool {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        match job {
            Job::Command { command, reply } => {
                self.commands.insert(ticket, reply);
                manager.command(now_ns, ticket, command);
            }
            Job::Messages {
                came_ns,
                envelope,
                reply,
            } => {
                // Nobody waits for the answers any more.
                if now_ns.saturating_sub(came_ns) <= envelope.within_ns {
                    self.envelopes.insert(ticket, reply);
                    manager.receive(now_ns, ticket, envelope);
                }
            }
            Job::Replied { from, reply } => manager.replied(now_ns, &from, reply),
            Job::Stop => return true,
        }
        false
    }

    fn tell(&mut self, effects: Effects, post: &mut impl FnMut(&str, Message)) {
        for (to, message) in effects.messages {
            post(&to, message);
        }
        // Whoever asked may have gone.
        for (ticket, answer) in effects.answers {
            if let Some(reply) = self.commands.remove(&ticket) {
                let _ = reply.send(answer);
            }
        }
        for (ticket, answer) in effects.replies {
            if let Some(reply) = self.envelopes.remove(&ticket) {
                let _ = reply.send(answer);
            }
        }
    }
}

/// Stores changes of a manager, and shows them.
fn keep(
    manager: &Manager,
    store: &mut dyn Store,
    engine: &Engine,
    updates: &[Update],
) -> Result<(), StoreError> {
    let changes: Vec<Change> = updates.iter().filter_map(Update::change).collect();
    if changes.is_empty() {
        // What changes nothing would be told by a manager that no longer decides.
        if !store.is_ours() {
            return Err(StoreError::deposed());
        }
    } else {
        store.apply(&changes)?;
        if store.has_forgotten() {
            let all = manager.records();
            let all: Vec<Change> = all.iter().filter_map(Update::change).collect();
            store.rewrite(&all)?;
        }
    }
    engine.show(updates);
    Ok(())
}

/// Runs a manager until it is stopped. `post` sends a message to the manager of a name; messages
/// may be lost.
///
/// # Errors
/// If the store or the clock fails, or another manager has the seat.
pub fn run(
    manager: &mut Manager,
    store: &mut dyn Store,
    (engine, jobs): (&Engine, &Receiver<Job>),
    clock: impl Fn() -> io::Result<u64>,
    mut post: impl FnMut(&str, Message),
) -> Result<(), EngineError> {
    let now_ns = || clock().map_err(EngineError::Clock);
    let mut waiting = Waiting::default();
    let mut is_over = false;
    while !is_over {
        manager.advance(now_ns()?);
        let effects = manager.take_effects();
        keep(manager, store, engine, &effects.updates)?;
        waiting.tell(effects, &mut post);
        let sleep = match manager.next_wakeup_ns() {
            Some(at_ns) => Duration::from_nanos(at_ns.saturating_sub(now_ns()?)),
            None => LONGEST_SLEEP,
        };
        let first = match jobs.recv_timeout(sleep.min(LONGEST_SLEEP)) {
            Ok(job) => Some(job),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Job::Stop),
        };
        let others = jobs.try_iter().take(MOST_SHARED);
        let others = first.is_some().then_some(others).into_iter().flatten();
        manager.set_full(store.full());
        for job in first.into_iter().chain(others) {
            is_over |= waiting.take(manager, job, now_ns()?);
        }
    }
    let effects = manager.take_effects();
    keep(manager, store, engine, &effects.updates)?;
    waiting.tell(effects, &mut post);
    Ok(())
}
