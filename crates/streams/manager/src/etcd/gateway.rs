// SPDX-License-Identifier: MIT OR Apache-2.0
//! etcd's JSON gateway: reads, transactions, leases, and room. It knows nothing of reservations.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use manager_proto::client::{ClientError, Tls, http_agent};

/// Longest time for one request to the only member.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Longest time before another member is asked, of several: one that is silent costs no seat.
const PATIENCE: Duration = Duration::from_millis(400);
/// Longest time for the last of them: what was asked without a leader has no answer later either.
const LAST: Duration = Duration::from_secs(1);
/// Longest time until a member has made room.
const ROOM: Duration = Duration::from_secs(10);
const MOST_ANSWER_BYTES: u64 = 64 << 20;
/// gRPC's numbers of errors.
const DEADLINE_EXCEEDED: i64 = 4;
const NOT_FOUND: i64 = 5;
const RESOURCE_EXHAUSTED: i64 = 8;
const UNAVAILABLE: i64 = 14;
/// etcd's number of the alarm that its database is full.
const NO_SPACE: i64 = 1;

/// Why etcd did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// No member answers, or none can at present. What was asked for may have happened.
    #[error("etcd does not answer: {0}")]
    Away(String),
    /// The lease has ended.
    #[error("the lease has ended")]
    NoLease,
    /// Its database is full.
    #[error("etcd's database is full: {0}")]
    Full(String),
    /// It refuses, or its answer is none of etcd's.
    #[error("etcd: {0}")]
    Refused(String),
}

/// What has to be true for a transaction to change anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// There is no such key.
    Absent(String),
    /// A key was made at this revision, and hangs on this lease. An etcd that was brought back from a
    /// backup counts revisions once more; a lease has another number each time.
    MadeAt(String, i64, i64),
    /// A key has a value.
    ValueIs(String, String),
}

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// A value, which goes with a lease; 0: with none.
    Put {
        key: String,
        value: Vec<u8>,
        lease: i64,
    },
    /// No value.
    Delete(String),
}

/// Keys with their values, a page of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The moment at which they were read.
    pub revision: i64,
    /// The pairs, by key.
    pub pairs: Vec<(String, Vec<u8>)>,
    /// Whether there are more.
    pub has_more: bool,
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
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KeyValue {
    key: String,
    value: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RangeAnswer {
    header: Header,
    kvs: Vec<KeyValue>,
    more: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TxnAnswer {
    header: Header,
    succeeded: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LeaseAnswer {
    #[serde(rename = "ID", deserialize_with = "number")]
    id: i64,
    #[serde(rename = "TTL", deserialize_with = "number")]
    left_s: i64,
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
    fn json(&self) -> Vec<Value> {
        let made = |key: &str, revision: i64| {
            json!({
                "key": encoded(key), "target": "CREATE", "result": "EQUAL",
                "create_revision": revision.to_string(),
            })
        };
        match self {
            Self::Absent(key) => vec![made(key, 0)],
            Self::MadeAt(key, revision, lease) => {
                let hangs = json!({
                    "key": encoded(key), "target": "LEASE", "result": "EQUAL",
                    "lease": lease.to_string(),
                });
                vec![made(key, *revision), hangs]
            }
            Self::ValueIs(key, value) => vec![json!({
                "key": encoded(key), "target": "VALUE", "result": "EQUAL", "value": encoded(value),
            })],
        }
    }
}

impl Write {
    fn json(&self) -> Value {
        match self {
            Self::Put { key, value, lease } => json!({"request_put": {
                "key": encoded(key), "value": encoded(value), "lease": lease.to_string(),
            }}),
            Self::Delete(key) => json!({"request_delete_range": {"key": encoded(key)}}),
        }
    }
}

fn pair(of: &KeyValue) -> Result<(String, Vec<u8>), EtcdError> {
    let wrong = |what: &str| EtcdError::Refused(format!("{what} in its answer is not valid"));
    let key = BASE64_STANDARD.decode(&of.key).ok();
    let key = key.and_then(|key| String::from_utf8(key).ok());
    let value = BASE64_STANDARD.decode(&of.value);
    Ok((
        key.ok_or_else(|| wrong("a key"))?,
        value.map_err(|_| wrong("a value"))?,
    ))
}

impl Gateway {
    /// Returns the members at these URLs. Nothing is sent yet.
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
            let within = match self.urls.len() - n {
                1 if n == 0 => TIMEOUT,
                1 => LAST,
                _ => PATIENCE,
            };
            match self.ask_one(&self.urls[at], path, (body, within)) {
                Err(EtcdError::Away(problem)) => {
                    away = EtcdError::Away(problem);
                    self.first.store(at + 1, Ordering::Relaxed);
                }
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
        (body, within): (&Value, Duration),
    ) -> Result<A, EtcdError> {
        let away = |error: ureq::Error| EtcdError::Away(format!("{url}: {error}"));
        let asked = self.agent.post(format!("{url}/v3/{path}")).config();
        let asked = asked.timeout_global(Some(within)).build().send_json(body);
        let mut answer = asked.map_err(away)?;
        let status = answer.status();
        let read = answer.body_mut().with_config().limit(MOST_ANSWER_BYTES);
        let bytes = read.read_to_vec().map_err(away)?;
        if status.is_success() {
            let read = serde_json::from_slice(&bytes);
            // A stream may begin with an error although its status is good, while there is no leader.
            return read.map_err(|error| match refusal(&bytes) {
                Some(found) => refused(url, found),
                None => EtcdError::Refused(format!("{url}: this is no answer of etcd's: {error}")),
            });
        }
        Err(match refusal(&bytes) {
            Some(found) => refused(url, found),
            None => EtcdError::Refused(format!(
                "{url}: it answered with status {status}, expected etcd's /v3"
            )),
        })
    }

    /// Reads keys that begin with a prefix, from the one behind `after` on, as a majority of the
    /// members knows them; at a revision, if it is not 0.
    pub fn read(
        &self,
        prefix: &str,
        after: Option<&str>,
        (limit, revision): (u64, i64),
    ) -> Result<Page, EtcdError> {
        // A zero byte behind a key makes the next one.
        let first = after.map_or_else(|| prefix.to_owned(), |after| format!("{after}\0"));
        let answer: RangeAnswer = self.ask(
            "kv/range",
            &json!({
                "key": encoded(first), "range_end": encoded(behind(prefix)),
                "limit": limit.to_string(), "revision": revision.to_string(),
            }),
        )?;
        Ok(Page {
            revision: answer.header.revision,
            pairs: answer.kvs.iter().map(pair).collect::<Result<_, _>>()?,
            has_more: answer.more,
        })
    }

    /// Writes all, if all conditions hold, or nothing; returns the revision if it wrote. It may have
    /// been carried out twice.
    ///
    /// # Errors
    /// If etcd does not answer, or refuses: then it may have been written.
    pub fn transact(&self, when: &[Condition], then: &[Write]) -> Result<Option<i64>, EtcdError> {
        let when: Vec<_> = when.iter().flat_map(Condition::json).collect();
        let then: Vec<_> = then.iter().map(Write::json).collect();
        let answer: TxnAnswer = self.ask("kv/txn", &json!({"compare": when, "success": then}))?;
        Ok(answer.succeeded.then_some(answer.header.revision))
    }

    /// Begins a lease; returns its number, and its length in seconds, which may be longer.
    pub fn grant(&self, length_s: u64) -> Result<(i64, u64), EtcdError> {
        let body = json!({"TTL": length_s.to_string()});
        let answer: LeaseAnswer = self.ask("lease/grant", &body)?;
        match answer.id {
            0 => Err(EtcdError::Refused("its lease has no number".to_owned())),
            id => Ok((id, answer.left_s.unsigned_abs())),
        }
    }

    /// Begins a lease anew, with the length that it has, which it returns, s. A leader of etcd's that
    /// has been voted out and does not know it may answer (etcd-io/etcd#15247).
    ///
    /// # Errors
    /// If the lease has ended, or etcd does not answer.
    pub fn keep_alive(&self, lease: i64) -> Result<u64, EtcdError> {
        let body = json!({"ID": lease.to_string()});
        let Streamed { result } = self.ask("lease/keepalive", &body)?;
        // Of one that has ended it says that nothing is left.
        match result.left_s {
            0 => Err(EtcdError::NoLease),
            length_s => Ok(length_s.unsigned_abs()),
        }
    }

    /// Ends a lease, and all keys that hang on it.
    ///
    /// # Errors
    /// If the lease has ended, or etcd does not answer.
    pub fn revoke(&self, lease: i64) -> Result<(), EtcdError> {
        let body = json!({"ID": lease.to_string()});
        self.ask::<Value>("lease/revoke", &body).map(|_| ())
    }

    /// Lets etcd forget what was before a revision. Without that its database grows with each change.
    pub fn compact(&self, revision: i64) -> Result<(), EtcdError> {
        let body = json!({"revision": revision.to_string()});
        self.ask::<Value>("kv/compaction", &body).map(|_| ())
    }

    /// Removes a key: etcd does that even if its database is full.
    pub fn delete(&self, key: &str) -> Result<(), EtcdError> {
        let body = json!({"key": encoded(key)});
        self.ask::<Value>("kv/deleterange", &body).map(|_| ())
    }

    /// Makes room in a database that is full: etcd forgets what was before, each member gives back
    /// what that took, and the alarm ends. It comes back if there is no room still.
    pub fn make_room(&self) -> Result<(), EtcdError> {
        let now = self.read("pspacer/", None, (1, 0))?;
        // Each member, and to the end: what is still being forgotten takes room.
        let compact = json!({"revision": now.revision.to_string(), "physical": true});
        let steps = [
            ("kv/compaction", compact),
            ("maintenance/defragment", json!({})),
        ];
        for (path, body) in steps {
            for url in &self.urls {
                // One that is away makes room when it is asked the next time; what was compacted before
                // cannot be once more.
                let _: Result<Value, _> = self.ask_one(url, path, (&body, ROOM));
            }
        }
        let all = json!({"action": "GET", "memberID": "0", "alarm": NO_SPACE});
        let found: Value = self.ask("maintenance/alarm", &all)?;
        let alarms = found.get("alarms").and_then(Value::as_array);
        for alarm in alarms.into_iter().flatten() {
            let member = alarm.get("memberID").cloned().unwrap_or(json!("0"));
            let end = json!({"action": "DEACTIVATE", "memberID": member, "alarm": NO_SPACE});
            self.ask::<Value>("maintenance/alarm", &end)?;
        }
        Ok(())
    }
}

fn refused(url: &str, refusal: Refusal) -> EtcdError {
    let Refusal { code, message } = refusal;
    let said = format!("{url}: {message}");
    match code {
        NOT_FOUND if message.contains("lease") => EtcdError::NoLease,
        RESOURCE_EXHAUSTED if message.contains("space") => EtcdError::Full(said),
        DEADLINE_EXCEEDED | RESOURCE_EXHAUSTED | UNAVAILABLE => EtcdError::Away(said),
        _ => EtcdError::Refused(said),
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
