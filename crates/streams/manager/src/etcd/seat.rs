// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seat of a manager: a key that hangs on a lease of etcd's. Who made it decides, and each of his
//! transactions names the revision at which he made it: those of a predecessor change nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use linux_io::clock::boottime_ns;
use units::time::{NS_PER_MS, NS_PER_S};

use super::gateway::{Condition, EtcdError, Gateway, Write};
use crate::peers::{WITHIN, Way};
use manager_proto::client::{Client, ClientError, Tls};

/// Length of the lease, s: longer than an etcd with its default election timeout needs for another leader.
const LEASE_S: u64 = 5;
/// Between two questions for the lease to go on.
const KEEP: Duration = Duration::from_millis(500);
/// Between two looks at a seat that somebody else has.
const LOOK: Duration = Duration::from_millis(200);
/// The seat is left so long before its lease ends, ns.
const MARGIN_NS: u64 = 200 * NS_PER_MS;

/// A seat that this manager has.
#[derive(Debug)]
pub struct Seat {
    etcd: Arc<Gateway>,
    key: String,
    lease: i64,
    revision: i64,
    ends_ns: Arc<AtomicU64>,
    is_left: Arc<AtomicBool>,
}

/// Returns the key of a manager's seat.
fn seat_key(name: &str) -> String {
    format!("pspacer/{name}/seat")
}

/// Returns the key whose value is the room that is kept for what has to be written.
pub fn room_key(name: &str) -> String {
    format!("pspacer/{name}/room")
}

/// Returns the URL of who has the seat of a manager.
pub fn holder(etcd: &Gateway, name: &str) -> Result<Option<String>, EtcdError> {
    let page = etcd.read(&seat_key(name), None, (1, 0))?;
    let url = page.pairs.into_iter().next().map(|(_, value)| value);
    Ok(url.and_then(|url| String::from_utf8(url).ok()))
}

impl Seat {
    /// Stands for a seat until it is this manager's, or `stop` says so. `watch` gets the URL of who
    /// has it, and problems, whenever they may have changed.
    pub fn campaign(
        etcd: &Arc<Gateway>,
        (name, url): (&str, &str),
        mut stop: impl FnMut(Duration) -> bool,
        mut watch: impl FnMut(Result<Option<String>, EtcdError>),
    ) -> Option<Self> {
        let mut is_full = false;
        loop {
            match holder(etcd, name) {
                Ok(None) => match Self::take(etcd, name, url) {
                    Ok(Some(seat)) => return Some(seat),
                    Ok(None) => {}
                    Err(error) => {
                        // Nobody decides who could make room.
                        if matches!(error, EtcdError::Full(_)) {
                            let _ = etcd.make_room();
                            // The next time with what is kept for that.
                            if std::mem::replace(&mut is_full, true) {
                                let _ = etcd.delete(&room_key(name));
                            }
                        }
                        watch(Err(error));
                    }
                },
                found => watch(found),
            }
            if stop(LOOK) {
                return None;
            }
        }
    }

    /// Takes a seat that nobody has; `None`: somebody was faster.
    fn take(etcd: &Arc<Gateway>, name: &str, url: &str) -> Result<Option<Self>, EtcdError> {
        let since_ns = now_ns()?;
        let (lease, length_s) = etcd.grant(LEASE_S)?;
        let key = seat_key(name);
        let put = Write::Put {
            key: key.clone(),
            value: url.as_bytes().to_vec(),
            lease,
        };
        let taken = etcd.transact(&[Condition::Absent(key.clone())], &[put]);
        let Ok(Some(revision)) = taken else {
            // It ends by itself, and a seat that was taken all the same with it.
            let _ = etcd.revoke(lease);
            return taken.map(|_| None);
        };
        let seat = Self {
            etcd: Arc::clone(etcd),
            key,
            lease,
            revision,
            ends_ns: Arc::new(AtomicU64::new(end_ns(since_ns, length_s))),
            is_left: Arc::new(AtomicBool::new(false)),
        };
        seat.keep();
        Ok(Some(seat))
    }

    /// Keeps the lease alive in a thread, as long as the seat is not left.
    fn keep(&self) {
        let (etcd, lease) = (Arc::clone(&self.etcd), self.lease);
        let (ends_ns, is_left) = (Arc::clone(&self.ends_ns), Arc::clone(&self.is_left));
        thread::spawn(move || {
            while !is_left.load(Ordering::Acquire) {
                let kept = now_ns().and_then(|since_ns| Ok((since_ns, etcd.keep_alive(lease)?)));
                match kept {
                    Ok((since_ns, left_s)) => {
                        ends_ns.fetch_max(end_ns(since_ns, left_s), Ordering::AcqRel);
                    }
                    Err(EtcdError::NoLease) => {
                        ends_ns.store(0, Ordering::Release);
                        return;
                    }
                    // Asked again until the lease ends, and soon: it may be a member alone that is away.
                    Err(_) => {
                        thread::sleep(KEEP / 10);
                        continue;
                    }
                }
                thread::sleep(KEEP);
            }
        });
    }

    /// Returns until when nobody else has the seat, by the clock of this boot; it may move on.
    pub fn ends_ns(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.ends_ns)
    }

    /// Returns whether the seat is this manager's still.
    pub fn is_held(&self) -> bool {
        now_ns().is_ok_and(|now_ns| now_ns < self.ends_ns.load(Ordering::Acquire))
    }

    /// Returns the condition that it is.
    pub fn condition(&self) -> Condition {
        Condition::MadeAt(self.key.clone(), self.revision, self.lease)
    }
}

impl Drop for Seat {
    /// Leaves the seat, so that another manager has it at once.
    fn drop(&mut self) {
        self.is_left.store(true, Ordering::Release);
        self.ends_ns.store(0, Ordering::Release);
        // In a thread: nobody waits for an etcd that does not answer, and the lease ends by itself.
        let (etcd, lease) = (Arc::clone(&self.etcd), self.lease);
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            let _ = etcd.revoke(lease);
            let _ = done.send(());
        });
        let _ = is_done.recv_timeout(KEEP);
    }
}

/// A manager that etcd elects: it is where its seat says.
#[derive(Debug)]
pub struct Elected {
    etcd: Arc<Gateway>,
    name: String,
    token: Option<String>,
    tls: Tls,
    known: Mutex<Option<Arc<Client>>>,
}

impl Elected {
    /// Returns the manager of a name. Nothing is sent yet.
    pub fn new((etcd, name): (Arc<Gateway>, String), (token, tls): (Option<String>, Tls)) -> Self {
        Self {
            etcd,
            name,
            token,
            tls,
            known: Mutex::new(None),
        }
    }
}

impl Way for Elected {
    fn client(&self) -> Result<Arc<Client>, ClientError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*known {
            return Ok(Arc::clone(client));
        }
        let away = |problem: String| ClientError::Transport {
            url: format!("manager {}", self.name),
            problem,
        };
        let url = holder(&self.etcd, &self.name).map_err(|error| away(error.to_string()))?;
        let url = url.ok_or_else(|| away("nobody is elected".to_owned()))?;
        let client = Client::within(&url, self.token.clone(), &self.tls, WITHIN)?;
        let client = Arc::new(client);
        *known = Some(Arc::clone(&client));
        Ok(client)
    }

    fn lost(&self) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn end_ns(since_ns: u64, length_s: u64) -> u64 {
    since_ns
        .saturating_add(length_s.saturating_mul(NS_PER_S))
        .saturating_sub(MARGIN_NS)
}

fn now_ns() -> Result<u64, EtcdError> {
    boottime_ns().map_err(|error| EtcdError::Refused(format!("the clock cannot be read: {error}")))
}
