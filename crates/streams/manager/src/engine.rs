// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a manager: one thread that takes jobs, stores what they change, and only then answers. Jobs
//! that come while a change is being stored share the next one.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::answer::{Answer, Command};
use crate::machine::Manager;
use crate::message::Message;
use crate::store::{Store, StoreError};

/// Most jobs that wait; more are refused.
const MOST_JOBS: usize = 1024;
/// Most jobs that share a change of the store.
const MOST_SHARED: usize = 256;
/// Longest time without a look at the clock.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Something for a manager to do.
pub enum Job {
    /// Carry out a command.
    Command {
        /// The command.
        command: Command,
        /// Where the answer goes.
        reply: oneshot::Sender<Answer>,
    },
    /// Take another manager's message.
    Message {
        /// The sender.
        from: String,
        /// The message.
        message: Message,
    },
    /// Look at the manager as it is stored.
    Query(Box<dyn FnOnce(&Manager) + Send>),
    /// Nothing: whether it is taken tells whether the manager runs.
    Nothing,
    /// End, after what came before.
    Stop,
}

/// Why a job was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too many wait.
    #[error("too many requests are under way; try again")]
    Busy,
    /// The manager has ended, or its store does not answer.
    #[error("the manager has no answer: it is ending, or its store is away; ask it again")]
    Ended,
}

/// Takes jobs for the manager's thread.
#[derive(Clone, Debug)]
pub struct Engine(SyncSender<Job>);

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

/// Returns a queue of jobs, and its end for [`run`].
#[must_use]
pub fn queue() -> (Engine, Receiver<Job>) {
    let (sender, receiver) = sync_channel(MOST_JOBS);
    (Engine(sender), receiver)
}

impl Engine {
    /// Hands a job over.
    ///
    /// # Errors
    /// If too many wait, or the manager has ended.
    pub fn submit(&self, job: Job) -> Result<(), Refused> {
        self.0.try_send(job).map_err(|error| match error {
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

    /// Looks at the manager.
    ///
    /// # Errors
    /// If too many wait, or the manager has ended.
    pub async fn query<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Manager) -> T + Send + 'static,
    ) -> Result<T, Refused> {
        let (reply, answer) = oneshot::channel();
        let look = Box::new(move |manager: &Manager| drop(reply.send(look(manager))));
        self.submit(Job::Query(look))?;
        answer.await.map_err(|_| Refused::Ended)
    }

    /// Returns whether the manager takes no more jobs.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.submit(Job::Nothing) == Err(Refused::Ended)
    }

    /// Asks the manager to end.
    pub fn stop(&self) {
        // One that takes no more jobs has ended.
        let _ = self.0.send(Job::Stop);
    }
}

/// Runs a manager until it is stopped. `post` sends a message to the manager of a name; messages
/// may be lost.
///
/// # Errors
/// If the store or the clock fails.
pub fn run(
    manager: &mut Manager,
    store: &mut dyn Store,
    jobs: &Receiver<Job>,
    clock: impl Fn() -> io::Result<u64>,
    mut post: impl FnMut(&str, Message),
) -> Result<(), EngineError> {
    let now_ns = || clock().map_err(EngineError::Clock);
    let mut replies: BTreeMap<u64, oneshot::Sender<Answer>> = BTreeMap::new();
    let mut next_ticket = 0;
    let mut is_running = true;
    while is_running {
        let mut queries = Vec::new();
        manager.advance(now_ns()?);
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
        for job in first.into_iter().chain(others) {
            match job {
                Job::Command { command, reply } => {
                    replies.insert(next_ticket, reply);
                    manager.command(now_ns()?, next_ticket, command);
                    next_ticket += 1;
                }
                Job::Message { from, message } => manager.receive(now_ns()?, &from, message),
                Job::Query(look) => queries.push(look),
                Job::Nothing => {}
                Job::Stop => is_running = false,
            }
        }
        manager.advance(now_ns()?);
        let effects = manager.take_effects();
        if !effects.changes.is_empty() {
            store.apply(&effects.changes)?;
        }
        for (to, message) in effects.messages {
            post(&to, message);
        }
        for (ticket, answer) in effects.answers {
            if let Some(reply) = replies.remove(&ticket) {
                // Whoever asked may have gone.
                let _ = reply.send(answer);
            }
        }
        for look in queries {
            look(manager);
        }
    }
    Ok(())
}
