// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks managers for their reservations over and over, in a thread of its own: who shows them waits
//! for no manager.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, sleep};
use std::time::Duration;

use crate::client::{Client, ClientError};
use crate::overview::{ManagerAnswer, Overview};

/// Returns what managers say now, each with its URL. Takes as long as their answers.
pub fn ask(managers: &[(String, Client)]) -> Overview {
    let one = |client: &Client| -> Result<_, ClientError> {
        Ok((client.reservations()?, client.links()?))
    };
    let said = managers.iter().map(|(url, client)| ManagerAnswer {
        manager: url.clone(),
        answer: one(client).map_err(|error| error.to_string()),
    });
    Overview::of(said.collect())
}

/// The last answers.
#[derive(Clone, Debug)]
pub struct Poll(Arc<Mutex<Overview>>);

impl Poll {
    /// Asks once, and then in a thread until the program ends, `every` after the last answer.
    pub fn start(managers: Vec<(String, Client)>, every: Duration) -> io::Result<Self> {
        let latest = Arc::new(Mutex::new(ask(&managers)));
        let kept = Arc::clone(&latest);
        Builder::new()
            .name("managers".to_owned())
            .spawn(move || {
                loop {
                    sleep(every);
                    let overview = ask(&managers);
                    *kept.lock().unwrap_or_else(PoisonError::into_inner) = overview;
                }
            })
            .map(|_| Self(latest))
    }

    /// Returns the last answers.
    pub fn latest(&self) -> Overview {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.clone()
    }
}
