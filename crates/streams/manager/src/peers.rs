// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends messages to the other managers, each from threads of its own: one that does not answer holds
//! nobody up. A message that cannot be sent is lost; the protocol sends it once more.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use manager_proto::bounds::MOST_MESSAGES;
use manager_proto::client::{Client, ClientError};
use manager_proto::message::{Envelope, Message, Reply};

/// Most messages that wait for one manager; more are lost.
const MOST_WAITING: usize = 4096;
/// Envelopes to a manager that wait for their replies at a time.
const MOST_IN_FLIGHT: usize = 8;
/// Longest time from a message to its answer: the protocol's deadline.
pub const WITHIN: Duration = Duration::from_secs(3);

/// Finds the way to another manager.
pub trait Way: Send + Sync {
    /// Returns a client of the manager.
    fn client(&self) -> Result<Arc<Client>, ClientError>;

    /// Tells that the manager did not answer there.
    fn lost(&self) {}
}

/// A manager that stays where it is.
#[derive(Debug)]
pub struct Fixed(pub Arc<Client>);

impl Way for Fixed {
    fn client(&self) -> Result<Arc<Client>, ClientError> {
        Ok(Arc::clone(&self.0))
    }
}

/// The other managers.
#[derive(Debug, Default)]
pub struct Peers {
    /// The manager's start.
    epoch: Arc<AtomicU64>,
    queues: BTreeMap<String, SyncSender<(Instant, Message)>>,
}

impl Peers {
    /// Starts threads for each of the others, which are named. `replied` gets their replies.
    pub fn start(
        own: &str,
        others: Vec<(String, Arc<dyn Way>)>,
        replied: &(impl Fn(&str, Reply) + Clone + Send + 'static),
    ) -> Self {
        let mut queues = BTreeMap::new();
        let epoch = Arc::new(AtomicU64::new(0));
        for (name, way) in others {
            let (sender, receiver) = sync_channel(MOST_WAITING);
            let receiver = Arc::new(Mutex::new(receiver));
            for _ in 0..MOST_IN_FLIGHT {
                let (receiver, way) = (Arc::clone(&receiver), Arc::clone(&way));
                let epoch = Arc::clone(&epoch);
                let (own, name, replied) = (own.to_owned(), name.clone(), replied.clone());
                thread::spawn(move || {
                    while let Some((epoch, messages)) = together(&receiver, &epoch) {
                        let envelope = Envelope {
                            from: own.clone(),
                            epoch,
                            within_ns: u64::try_from(WITHIN.as_nanos()).unwrap_or(u64::MAX),
                            messages,
                        };
                        // Lost, if it cannot be sent.
                        match way.client().and_then(|client| client.post(&envelope)) {
                            Ok(reply) => replied(&name, reply),
                            Err(_) => way.lost(),
                        }
                    }
                });
            }
            queues.insert(name, sender);
        }
        Self { epoch, queues }
    }

    /// Sends in the name of another start from now on.
    pub fn begin(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Sends a message; it may be lost.
    pub fn post(&self, to: &str, message: Message) {
        if let Some(queue) = self.queues.get(to) {
            // Lost, if too many wait.
            let _ = queue.try_send((Instant::now(), message));
        }
    }
}

/// Waits for messages; returns those that somebody still waits for, and the start that sends them;
/// `None` after the last.
fn together(
    receiver: &Mutex<Receiver<(Instant, Message)>>,
    epoch: &AtomicU64,
) -> Option<(u64, Vec<Message>)> {
    // Nobody holds the lock while he sends.
    let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
    let first = receiver.recv().ok()?;
    let others = receiver.try_iter().take(MOST_MESSAGES - 1);
    let all = [first].into_iter().chain(others);
    let fresh = all.filter(|(since, _)| since.elapsed() < WITHIN);
    let messages = fresh.map(|(_, message)| message).collect();
    Some((epoch.load(Ordering::Acquire), messages))
}
