// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last datagrams whose first fragment was seen, and what became of it.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use crate::frame::{Fragment, Ip};

/// Datagrams that are kept.
const DATAGRAMS_MAX: usize = 4096;

type Key = (IpAddr, IpAddr, u32, u8);

/// The datagrams, by what their fragments have in common. The oldest makes room.
#[derive(Clone, Debug)]
pub(crate) struct Fragments<T> {
    known: HashMap<Key, T>,
    order: VecDeque<Key>,
}

impl<T> Default for Fragments<T> {
    fn default() -> Self {
        Self {
            known: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

fn key(ip: &Ip, fragment: Fragment) -> Key {
    (ip.from, ip.to, fragment.id, fragment.protocol)
}

impl<T: Copy> Fragments<T> {
    /// Notes what became of a first fragment. O(1).
    pub fn note(&mut self, ip: &Ip, fragment: Fragment, what: T) {
        let key = key(ip, fragment);
        if self.known.insert(key, what).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > DATAGRAMS_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    /// Returns what became of the first fragment of a later one's datagram. O(1).
    pub fn find(&self, ip: &Ip, fragment: Fragment) -> Option<T> {
        self.known.get(&key(ip, fragment)).copied()
    }
}
