// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends messages to the other managers, each from a thread of its own: one that does not answer
//! holds nobody up. A message that cannot be sent is lost; the protocol sends it once more.

use std::collections::BTreeMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use crate::client::Client;
use crate::message::{Envelope, Message};

/// Most messages that wait for one manager; more are lost.
const MOST_WAITING: usize = 1024;

/// The other managers.
#[derive(Debug, Default)]
pub struct Peers {
    own: String,
    queues: BTreeMap<String, SyncSender<Envelope>>,
}

impl Peers {
    /// Starts a thread for each of the others, which are named.
    #[must_use]
    pub fn start(own: &str, others: Vec<(String, Client)>) -> Self {
        let mut queues = BTreeMap::new();
        for (name, client) in others {
            let (sender, receiver) = sync_channel::<Envelope>(MOST_WAITING);
            thread::spawn(move || {
                for envelope in receiver {
                    // Lost, if it cannot be sent.
                    let _ = client.post(&envelope);
                }
            });
            queues.insert(name, sender);
        }
        Self {
            own: own.to_owned(),
            queues,
        }
    }

    /// Sends a message; it may be lost.
    pub fn post(&self, to: &str, message: Message) {
        if let Some(queue) = self.queues.get(to) {
            let from = self.own.clone();
            // Lost, if too many wait.
            let _ = queue.try_send(Envelope { from, message });
        }
    }
}
