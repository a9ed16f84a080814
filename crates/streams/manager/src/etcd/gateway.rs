// SPDX-License-Identifier: MIT OR Apache-2.0
//! etcd's JSON gateway: reads, transactions and leases. It knows nothing of reservations.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::client::{ClientError, Tls, http_agent};

/// Longest time for one request to one member.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Longest answer, bytes.
const MOST_ANSWER_BYTES: u64 = 256 << 20;
/// gRPC's numbers of errors.
const DEADLINE_EXCEEDED: i64 = 4;
const NOT_FOUND: i64 = 5;
const RESOURCE_EXHAUSTED: i64 = 8;
const UNAVAILABLE: i64 = 14;

/// Why etcd did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// No member answers, or none can at present. What was asked for may have happened.
    #[error("etcd does not answer: {0}")]
    Away(String),
    /// The lease has ended.
    #[error("the lease has ended")]
    NoLease,
    /// It refuses, or its answer is none of etcd's.
    #[error("etcd: {0}")]
    Refused(String),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The key.
    pub key: String,
    /// Its value.
    pub value: Vec<u8>,
    /// Revision of its last change.
    pub revision: i64,
    /// The lease that it hangs on; 0: none.
    pub lease: i64,
}

/// What is read of the keys at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The moment.
    pub revision: i64,
    /// The leader's term.
    pub term: u64,
    /// What was found, for each of the keys that were asked for.
    pub found: Vec<Vec<Pair>>,
}

/// Keys to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// This one.
    One(String),
    /// All that begin like this.
    Prefix(String),
}

/// What has to be true for a transaction to change anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// A key has a value.
    ValueIs(String, String),
    /// There is no such key.
    Absent(String),
    /// There is such a key.
    Present(String),
    /// No key begins like this.
    NoneLike(String),
    /// A key was last changed at this revision.
    LastChanged(String, i64),
    /// No key that begins like this has come or changed after this revision; some may have gone.
    NoneNewer(String, i64),
}

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// A value, which goes with a lease.
    Put {
        /// The key.
        key: String,
        /// Its value.
        value: Vec<u8>,
        /// Number of the lease.
        lease: i64,
    },
    /// A value; the lease stays as it is.
    Change(String, Vec<u8>),
    /// A value without a lease.
    Keep(String, Vec<u8>),
    /// No value.
    Delete(String),
}

/// A lease as etcd tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseLeft {
    /// At least so long it goes on, s.
    pub left_s: u64,
    /// Its length, s.
    pub granted_s: u64,
    /// Term of the member that said so.
    pub term: u64,
}

/// The members of an etcd. Whoever answered last is asked first.
#[derive(Debug)]
pub struct Gateway {
    agent: ureq::Agent,
    urls: Vec<String>,
    first: AtomicUsize,
}

/// Numbers of 64 bits are strings in protobuf's JSON.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    match Value::deserialize(from)? {
        Value::String(text) => text.parse().map_err(serde::de::Error::custom),
        Value::Number(number) => Ok(number.as_i64().unwrap_or_default()),
        other => Err(serde::de::Error::custom(format!("{other} is no number"))),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Header {
    #[serde(deserialize_with = "number")]
    revision: i64,
    #[serde(deserialize_with = "number")]
    raft_term: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KeyValue {
    key: String,
    value: String,
    #[serde(deserialize_with = "number")]
    mod_revision: i64,
    #[serde(deserialize_with = "number")]
    lease: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ranged {
    kvs: Vec<KeyValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step {
    response_range: Ranged,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TxnAnswer {
    header: Header,
    succeeded: bool,
    responses: Vec<Step>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LeaseAnswer {
    header: Header,
    #[serde(rename = "ID", deserialize_with = "number")]
    id: i64,
    #[serde(rename = "TTL", deserialize_with = "number")]
    left_s: i64,
    #[serde(rename = "grantedTTL", deserialize_with = "number")]
    granted_s: i64,
}

#[derive(Debug, Deserialize)]
struct Streamed {
    result: LeaseAnswer,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

fn encoded(text: impl AsRef<[u8]>) -> String {
    BASE64_STANDARD.encode(text)
}

/// Returns the key behind all that begin like this. Prefixes are ASCII, so the last byte has a
/// successor.
fn behind(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    end
}

impl Condition {
    fn json(&self) -> Value {
        match self {
            Self::ValueIs(key, value) => json!({
                "key": encoded(key), "target": "VALUE", "result": "EQUAL", "value": encoded(value),
            }),
            Self::Absent(key) => json!({
                "key": encoded(key), "target": "CREATE", "result": "EQUAL", "create_revision": "0",
            }),
            Self::Present(key) => json!({
                "key": encoded(key), "target": "CREATE", "result": "GREATER",
                "create_revision": "0",
            }),
            Self::NoneLike(prefix) => json!({
                "key": encoded(prefix), "range_end": encoded(behind(prefix)),
                "target": "CREATE", "result": "EQUAL", "create_revision": "0",
            }),
            Self::LastChanged(key, revision) => json!({
                "key": encoded(key), "target": "MOD", "result": "EQUAL",
                "mod_revision": revision.to_string(),
            }),
            Self::NoneNewer(prefix, revision) => json!({
                "key": encoded(prefix), "range_end": encoded(behind(prefix)),
                "target": "MOD", "result": "LESS",
                "mod_revision": revision.saturating_add(1).to_string(),
            }),
        }
    }
}

impl Write {
    fn json(&self) -> Value {
        let put = |key: &str, value: &[u8], lease: Value| {
            let mut put = json!({"key": encoded(key), "value": encoded(value)});
            if let (Some(put), Value::Object(lease)) = (put.as_object_mut(), lease) {
                put.extend(lease);
            }
            json!({ "request_put": put })
        };
        match self {
            Self::Put { key, value, lease } => put(key, value, json!({"lease": lease.to_string()})),
            Self::Change(key, value) => put(key, value, json!({"ignore_lease": true})),
            Self::Keep(key, value) => put(key, value, Value::Null),
            Self::Delete(key) => json!({"request_delete_range": {"key": encoded(key)}}),
        }
    }
}

impl Keys {
    fn json(&self) -> Value {
        let range = match self {
            Self::One(key) => json!({"key": encoded(key)}),
            Self::Prefix(prefix) => {
                json!({"key": encoded(prefix), "range_end": encoded(behind(prefix))})
            }
        };
        json!({ "request_range": range })
    }
}

fn pair(of: KeyValue) -> Result<Pair, EtcdError> {
    let wrong = |what: &str| EtcdError::Refused(format!("{what} in its answer is not valid"));
    let key = BASE64_STANDARD.decode(of.key).map_err(|_| wrong("a key"))?;
    Ok(Pair {
        key: String::from_utf8(key).map_err(|_| wrong("a key"))?,
        value: BASE64_STANDARD
            .decode(of.value)
            .map_err(|_| wrong("a value"))?,
        revision: of.mod_revision,
        lease: of.lease,
    })
}

impl Gateway {
    /// Returns the members at these URLs. Nothing is sent yet.
    ///
    /// # Errors
    /// If a certificate cannot be read.
    pub fn new(urls: Vec<String>, tls: &Tls) -> Result<Self, ClientError> {
        Ok(Self {
            agent: http_agent(tls, TIMEOUT)?,
            urls,
            first: AtomicUsize::new(0),
        })
    }

    /// Asks one member after the other, each once, until one answers.
    fn ask<A: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<A, EtcdError> {
        let mut away = EtcdError::Away("there is no member".to_owned());
        let first = self.first.load(Ordering::Relaxed);
        for n in 0..self.urls.len() {
            let at = (first + n) % self.urls.len();
            match self.ask_one(&self.urls[at], path, body) {
                Err(EtcdError::Away(problem)) => away = EtcdError::Away(problem),
                other => {
                    self.first.store(at, Ordering::Relaxed);
                    return other;
                }
            }
        }
        Err(away)
    }

    fn ask_one<A: DeserializeOwned>(
        &self,
        url: &str,
        path: &str,
        body: &Value,
    ) -> Result<A, EtcdError> {
        let away = |error: ureq::Error| EtcdError::Away(format!("{url}: {error}"));
        let asked = self.agent.post(format!("{url}/v3/{path}")).send_json(body);
        let mut answer = asked.map_err(away)?;
        let status = answer.status();
        let read = answer.body_mut().with_config().limit(MOST_ANSWER_BYTES);
        let bytes = read.read_to_vec().map_err(away)?;
        if status.is_success() {
            let read = serde_json::from_slice(&bytes);
            // A stream may begin with an error although its status is good, while there is no leader.
            return read.map_err(|error| match refusal(&bytes) {
                Some(found) => self.refused(url, found),
                None => EtcdError::Refused(format!("{url}: this is no answer of etcd's: {error}")),
            });
        }
        Err(match refusal(&bytes) {
            Some(found) => self.refused(url, found),
            None => EtcdError::Refused(format!(
                "{url}: it answered with status {status}, expected etcd's /v3"
            )),
        })
    }

    fn refused(&self, url: &str, refusal: Refusal) -> EtcdError {
        let Refusal { code, message } = refusal;
        match code {
            NOT_FOUND if message.contains("lease") => EtcdError::NoLease,
            DEADLINE_EXCEEDED | RESOURCE_EXHAUSTED | UNAVAILABLE => {
                EtcdError::Away(format!("{url}: {message}"))
            }
            _ => EtcdError::Refused(format!("{url}: {message}")),
        }
    }

    /// Reads keys, all at the same moment, and as a majority of the members knows them.
    ///
    /// # Errors
    /// If etcd does not answer, or refuses.
    pub fn read(&self, keys: &[Keys]) -> Result<Snapshot, EtcdError> {
        let ranges: Vec<_> = keys.iter().map(Keys::json).collect();
        let answer: TxnAnswer = self.ask("kv/txn", &json!({ "success": ranges }))?;
        let steps = answer.responses.into_iter().map(|of| of.response_range.kvs);
        let found: Result<Vec<Vec<_>>, _> = steps
            .map(|kvs| kvs.into_iter().map(pair).collect())
            .collect();
        let found = found?;
        if found.len() != keys.len() {
            let problem = "its answer has not what was asked for";
            return Err(EtcdError::Refused(problem.to_owned()));
        }
        Ok(Snapshot {
            revision: answer.header.revision,
            term: answer.header.raft_term.unsigned_abs(),
            found,
        })
    }

    /// Writes all, if all conditions hold, or nothing; returns whether it wrote. It may have been
    /// carried out twice, so what it writes has to make a condition false.
    ///
    /// # Errors
    /// If etcd does not answer, or refuses: then it may have been written.
    pub fn transact(&self, when: &[Condition], then: &[Write]) -> Result<bool, EtcdError> {
        let when: Vec<_> = when.iter().map(Condition::json).collect();
        let then: Vec<_> = then.iter().map(Write::json).collect();
        let answer: TxnAnswer = self.ask("kv/txn", &json!({"compare": when, "success": then}))?;
        Ok(answer.succeeded)
    }

    /// Begins a lease; returns its number, and its length in seconds, which may be longer.
    ///
    /// # Errors
    /// If etcd does not answer, or refuses.
    pub fn grant(&self, length_s: u64) -> Result<(i64, u64), EtcdError> {
        let body = json!({"TTL": length_s.to_string()});
        let answer: LeaseAnswer = self.ask("lease/grant", &body)?;
        match answer.id {
            0 => Err(EtcdError::Refused("its lease has no number".to_owned())),
            id => Ok((id, answer.left_s.unsigned_abs())),
        }
    }

    /// Begins a lease anew, with the length that it has. A leader that has been voted out and does
    /// not know it may answer: see [`LeaseLeft::term`].
    ///
    /// # Errors
    /// If the lease has ended, or etcd does not answer.
    pub fn keep_alive(&self, lease: i64) -> Result<LeaseLeft, EtcdError> {
        let body = json!({"ID": lease.to_string()});
        let Streamed { result } = self.ask("lease/keepalive", &body)?;
        // Of one that has ended it says that nothing is left.
        match result.left_s {
            0 => Err(EtcdError::NoLease),
            length_s => left(&result, length_s),
        }
    }

    /// Returns what is left of a lease. A leader that has been voted out and does not know it may
    /// answer: see [`LeaseLeft::term`].
    ///
    /// # Errors
    /// If the lease has ended, or etcd does not answer.
    pub fn left(&self, lease: i64) -> Result<LeaseLeft, EtcdError> {
        let body = json!({"ID": lease.to_string()});
        let answer: LeaseAnswer = self.ask("lease/timetolive", &body)?;
        left(&answer, answer.granted_s)
    }

    /// Ends a lease, and all keys that hang on it.
    ///
    /// # Errors
    /// If the lease has ended, or etcd does not answer.
    pub fn revoke(&self, lease: i64) -> Result<(), EtcdError> {
        let body = json!({"ID": lease.to_string()});
        self.ask::<Value>("lease/revoke", &body).map(|_| ())
    }
}

fn left(answer: &LeaseAnswer, granted_s: i64) -> Result<LeaseLeft, EtcdError> {
    match u64::try_from(answer.left_s) {
        Ok(left_s) => Ok(LeaseLeft {
            left_s,
            granted_s: granted_s.unsigned_abs(),
            term: answer.header.raft_term.unsigned_abs(),
        }),
        Err(_) => Err(EtcdError::NoLease),
    }
}

/// Reads an error of the gateway, or of one of its streams.
fn refusal(bytes: &[u8]) -> Option<Refusal> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let inner = value.get("error").filter(|error| error.is_object());
    let inner = inner.map(|error| {
        let code = error.get("grpc_code").or_else(|| error.get("code"));
        json!({"code": code, "message": error.get("message")})
    });
    let found: Refusal = serde_json::from_value(inner.unwrap_or(value)).ok()?;
    (found.code != 0).then_some(found)
}
