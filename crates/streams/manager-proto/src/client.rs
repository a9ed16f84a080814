// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks a manager over HTTP, blocking: what the command uses, and what other programs may.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use units::printable::printable;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use crate::answer::{Misfit, View};
use crate::api::{
    ErrorView, InForceBody, LeaseBody, LinkView, PartView, RefusedView, ReleasedView, ReserveBody,
    RouteBody, TopologyBody,
};
use crate::certificates;
use crate::enforce::NodeDuty;
use crate::message::{Envelope, Reply};
use crate::record::Measured;

/// Longest time for one request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Status of an answer to a request that is not valid.
const BAD_REQUEST: u16 = 400;
/// Status of an answer of a manager that stands by.
const MISDIRECTED: u16 = 421;
/// Times that a question follows to another manager.
const MOST_HOPS: u32 = 3;
/// Entries of a list that are asked for at a time.
const PAGE: usize = 250;
/// Longest answer, bytes: a page of a list.
const MOST_ANSWER_BYTES: u64 = 256 << 20;

/// Certificates of a client.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// PEM of the authorities whose managers are trusted; `None`: those that the web trusts.
    pub ca: Option<Vec<u8>>,
    /// PEM of the client's certificate, and of its key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The certificates or the key cannot be used; nothing was sent.
    #[error("{0}")]
    Certificate(String),
    /// The manager cannot be reached, or its answer is none of a manager's.
    #[error("{url}: {problem}")]
    Transport { url: String, problem: String },
    /// The manager refuses the request.
    #[error("{message}")]
    Refused {
        /// Status of HTTP.
        status: u16,
        message: String,
    },
}

/// Returns a name that is part of a path. Anything else would be another path.
///
/// # Errors
/// What a manager would say of it; nothing is sent.
fn name<'a>(what: &str, name: &'a str) -> Result<&'a str, ClientError> {
    if admission::is_name(name) {
        return Ok(name);
    }
    Err(ClientError::Refused {
        status: BAD_REQUEST,
        message: format!("`{what}` is \"{name}\", expected {}", admission::NAME),
    })
}

/// Returns a value whose texts steer no terminal: a manager may lie.
fn plain(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(printable(&text)),
        Value::Array(all) => all.into_iter().map(plain).collect(),
        Value::Object(all) => {
            let all = all.into_iter();
            all.map(|(key, of)| (printable(&key), plain(of))).collect()
        }
        other => other,
    }
}

fn read<A: DeserializeOwned>(answer: &[u8]) -> serde_json::Result<A> {
    serde_json::from_slice(answer).and_then(|value| serde_json::from_value(plain(value)))
}

/// A manager, as its clients see it.
#[derive(Debug)]
pub struct Client {
    agent: ureq::Agent,
    /// URL that it was given.
    home: String,
    /// URL of the manager that decides, as far as this client knows.
    base: Mutex<String>,
    token: Option<String>,
    /// Longest time for one request that the manager answers at once.
    within: Duration,
}

/// The answer to a request to reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reserved {
    Granted(Box<View>),
    /// It does not fit.
    Refused(Box<RefusedView>),
}

fn pem_certificates(pem: &[u8], what: &str) -> Result<Vec<Certificate<'static>>, ClientError> {
    let wrong = |problem: String| ClientError::Certificate(format!("{what}: {problem}"));
    let mut found = Vec::new();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(one) = item.map_err(|error| wrong(error.to_string()))? {
            found.push(one);
        }
    }
    if found.is_empty() {
        Err(wrong("no certificate in it, expected PEM".to_owned()))
    } else {
        Ok(found)
    }
}

/// Returns what asks over HTTP and trusts these certificates.
pub fn http_agent(tls: &Tls, timeout: Duration) -> Result<ureq::Agent, ClientError> {
    let identity = tls.identity.as_ref();
    let identity = identity.map(|(certificate, key)| (certificate.as_slice(), key.as_slice()));
    certificates::check(tls.ca.as_deref(), identity).map_err(ClientError::Certificate)?;
    let mut config = TlsConfig::builder();
    if let Some(ca) = &tls.ca {
        let roots = pem_certificates(ca, "the authority's certificate")?;
        config = config.root_certs(RootCerts::new_with_certs(&roots));
    }
    if let Some((certificate, key)) = &tls.identity {
        let chain = pem_certificates(certificate, "the client's certificate")?;
        let key = PrivateKey::from_pem(key)
            .map_err(|error| ClientError::Certificate(format!("the key: {error}")))?;
        config = config.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
    }
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .tls_config(config.build())
        .build();
    Ok(agent.into())
}

impl Client {
    /// Returns a client of the manager at a URL. Nothing is sent yet.
    pub fn new(url: &str, token: Option<String>, tls: &Tls) -> Result<Self, ClientError> {
        Self::within(url, token, tls, TIMEOUT)
    }

    /// Returns a client that waits no longer than this for an answer.
    pub fn within(
        url: &str,
        token: Option<String>,
        tls: &Tls,
        within: Duration,
    ) -> Result<Self, ClientError> {
        let home = url.trim_end_matches('/').to_owned();
        Ok(Self {
            agent: http_agent(tls, within)?,
            base: Mutex::new(home.clone()),
            home,
            token,
            within,
        })
    }

    fn base(&self) -> String {
        let base = self.base.lock().unwrap_or_else(PoisonError::into_inner);
        base.clone()
    }

    fn set_base(&self, url: &str) {
        let mut base = self.base.lock().unwrap_or_else(PoisonError::into_inner);
        url.trim_end_matches('/').clone_into(&mut base);
    }

    /// Sends a request; returns status and body. `wait` is how long the manager may wait before it
    /// answers.
    fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
        wait: Duration,
    ) -> Result<(u16, Vec<u8>), ClientError> {
        let url = format!("{}{path}", self.base());
        let failed = |problem: String| ClientError::Transport {
            url: url.clone(),
            problem,
        };
        let mut request = ureq::http::Request::builder().method(method).uri(&url);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let within = self.within.saturating_add(wait);
        let answer = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json");
                let request = request.body(body).map_err(|e| failed(e.to_string()))?;
                self.agent.run(request)
            }
            None => {
                let request = request.body(()).map_err(|e| failed(e.to_string()))?;
                let request = self.agent.configure_request(request);
                self.agent.run(request.timeout_global(Some(within)).build())
            }
        };
        let mut answer = answer.map_err(|error| failed(error.to_string()))?;
        let status = answer.status().as_u16();
        let read = answer.body_mut().with_config().limit(MOST_ANSWER_BYTES);
        let body = read
            .read_to_vec()
            .map_err(|error| failed(error.to_string()))?;
        Ok((status, body))
    }

    /// Sends a request; returns status and body of an answer that is no error.
    fn call<B: Serialize>(
        &self,
        method: &str,
        path: &str,
        body: Option<&B>,
    ) -> Result<(u16, Vec<u8>), ClientError> {
        self.call_and_wait(method, path, body, Duration::ZERO)
    }

    fn call_and_wait<B: Serialize>(
        &self,
        method: &str,
        path: &str,
        body: Option<&B>,
        wait: Duration,
    ) -> Result<(u16, Vec<u8>), ClientError> {
        let body = body.map(serde_json::to_vec).transpose();
        let body = body.map_err(|error| self.no_answer(path, &error))?;
        let mut left = MOST_HOPS;
        loop {
            let asked = self.ask(method, path, body.as_deref(), wait);
            if asked.is_err() {
                // Another manager may decide now: the one that was given knows.
                self.set_base(&self.home);
            }
            let (status, answer) = asked?;
            if status < 400 {
                return Ok((status, answer));
            }
            match read::<ErrorView>(&answer) {
                // Another manager decides. It is trusted as the one that says so.
                Ok(ErrorView {
                    manager: Some(url), ..
                }) if status == MISDIRECTED && left > 0 => {
                    left -= 1;
                    self.set_base(&url);
                }
                Ok(ErrorView { error: message, .. }) => {
                    return Err(ClientError::Refused { status, message });
                }
                Err(_) => return Ok((status, answer)),
            }
        }
    }

    fn no_answer(&self, path: &str, error: &dyn std::fmt::Display) -> ClientError {
        ClientError::Transport {
            url: format!("{}{path}", self.base()),
            problem: format!("this is no answer of a manager: {error}"),
        }
    }

    fn json<B: Serialize, A: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<&B>,
    ) -> Result<A, ClientError> {
        let (_, answer) = self.call(method, path, body)?;
        read(&answer).map_err(|error| self.no_answer(path, &error))
    }

    /// Asks for a reservation. After a failure the same body may be sent again: a manager that
    /// had granted it answers the same.
    ///
    /// # Errors
    /// If the manager cannot be reached, or the request is not valid.
    pub fn reserve(&self, body: &ReserveBody) -> Result<Reserved, ClientError> {
        const PATH: &str = "/v1/reservations";
        name("id", &body.id)?;
        let (status, answer) = self.call("POST", PATH, Some(body))?;
        self.reserved(PATH, status, &answer)
    }

    fn reserved(&self, path: &str, status: u16, answer: &[u8]) -> Result<Reserved, ClientError> {
        let read = match status {
            409 => read(answer).map(|view| Reserved::Refused(Box::new(view))),
            _ => read(answer).map(|view| Reserved::Granted(Box::new(view))),
        };
        read.map_err(|error| self.no_answer(path, &error))
    }

    /// Begins a lease anew.
    ///
    /// # Errors
    /// If the manager cannot be reached, or has no such reservation of this client.
    pub fn refresh(&self, id: &str, lease_ns: Option<u64>) -> Result<View, ClientError> {
        let path = format!("/v1/reservations/{}/lease", name("id", id)?);
        self.json("PUT", &path, Some(&LeaseBody { lease_ns }))
    }

    /// Frees a reservation.
    ///
    /// # Errors
    /// If the manager cannot be reached, or has no such reservation of this client.
    pub fn release(&self, id: &str) -> Result<ReleasedView, ClientError> {
        let path = format!("/v1/reservations/{}", name("id", id)?);
        self.json("DELETE", &path, None::<&()>)
    }

    /// Lists the reservations that this client may see.
    pub fn reservations(&self) -> Result<Vec<View>, ClientError> {
        self.pages("/v1/reservations", |of: &View| of.id.clone())
    }

    /// Lists what coordinators have of the manager's links.
    pub fn parts(&self) -> Result<Vec<PartView>, ClientError> {
        let key = |of: &PartView| format!("{}/{}", of.coordinator, of.id);
        self.pages("/v1/parts", key)
    }

    /// Frees what a coordinator has of the manager's links for a request.
    ///
    /// # Errors
    /// If the manager cannot be reached, or has no such part.
    pub fn free_part(&self, coordinator: &str, id: &str) -> Result<ReleasedView, ClientError> {
        let coordinator = name("coordinator", coordinator)?;
        let path = format!("/v1/parts/{coordinator}/{}", name("id", id)?);
        self.json("DELETE", &path, None::<&()>)
    }

    /// Returns what does not fit another topology, a file as text; if it is the next one, that is
    /// ended.
    ///
    /// # Errors
    /// If the manager cannot be reached, or the topology is not valid.
    pub fn fit(&self, topology: String, drain: bool) -> Result<Vec<Misfit>, ClientError> {
        let body = TopologyBody { topology, drain };
        self.json("POST", "/v1/topology", Some(&body))
    }

    /// Reads a list page by page. Names and "/" need no escapes in a query. A manager that repeats
    /// itself has no last page.
    fn pages<T: DeserializeOwned>(
        &self,
        path: &str,
        key: impl Fn(&T) -> String,
    ) -> Result<Vec<T>, ClientError> {
        let mut all: Vec<T> = Vec::new();
        loop {
            let after = all.last().map(&key).unwrap_or_default();
            let path = format!("{path}?after={after}&limit={PAGE}");
            let page: Vec<T> = self.json("GET", &path, None::<&()>)?;
            let is_last = page.len() < PAGE;
            let begin = page.first().map(&key);
            if page.len() > PAGE || begin.is_some_and(|begin| begin <= after) {
                let what = format!("a page after {after:?} that begins before it, or is longer");
                return Err(self.no_answer(&path, &what));
            }
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Lists the manager's links.
    pub fn links(&self) -> Result<Vec<LinkView>, ClientError> {
        self.json("GET", "/v1/links", None::<&()>)
    }

    /// Returns what a node has to put into force.
    ///
    /// # Errors
    /// If the manager cannot be reached, or knows no such node.
    pub fn duty(&self, node: &str) -> Result<NodeDuty, ClientError> {
        let path = format!("/v1/nodes/{}", name("node", node)?);
        self.json("GET", &path, None::<&()>)
    }

    /// Waits until it differs from what is known, but no longer than `wait_ns`, and returns it.
    ///
    /// # Errors
    /// If the manager cannot be reached, or knows no such node.
    pub fn changed_duty(&self, known: &NodeDuty, wait_ns: u64) -> Result<NodeDuty, ClientError> {
        let NodeDuty { node, changes, .. } = known;
        let node = name("node", node)?;
        let path = format!("/v1/nodes/{node}?known={changes}&wait_ns={wait_ns}");
        let wait = Duration::from_nanos(wait_ns);
        let (_, answer) = self.call_and_wait("GET", &path, None::<&()>, wait)?;
        read(&answer).map_err(|error| self.no_answer(&path, &error))
    }

    /// Reports whether a node has put a reservation into force.
    ///
    /// # Errors
    /// If the manager cannot be reached, or has no such reservation.
    pub fn report(&self, id: &str, node: &str, in_force: bool) -> Result<View, ClientError> {
        let (id, node) = (name("id", id)?, name("node", node)?);
        let path = format!("/v1/reservations/{id}/in-force/{node}");
        self.json("PUT", &path, Some(&InForceBody { in_force }))
    }

    /// Has a reservation negotiated anew, because a node sends its stream into this segment.
    ///
    /// # Errors
    /// If the manager cannot be reached, or has no such reservation of this client, node or segment.
    pub fn reroute(&self, id: &str, node: &str, segment: &str) -> Result<Reserved, ClientError> {
        let (id, node) = (name("id", id)?, name("node", node)?);
        let path = format!("/v1/reservations/{id}/route/{node}");
        let segment = segment.to_owned();
        let (status, answer) = self.call("PUT", &path, Some(&RouteBody { segment }))?;
        self.reserved(&path, status, &answer)
    }

    /// Records what was measured of a stream at a listener, in the place of what was before.
    ///
    /// # Errors
    /// If the manager cannot be reached, or has no such reservation of this client, or listener.
    pub fn measured(
        &self,
        id: &str,
        listener: &str,
        measured: &Measured,
    ) -> Result<View, ClientError> {
        let (id, listener) = (name("id", id)?, name("listener", listener)?);
        let path = format!("/v1/reservations/{id}/measured/{listener}");
        self.json("PUT", &path, Some(measured))
    }

    /// Hands messages of another manager over; returns the answers.
    pub fn post(&self, envelope: &Envelope) -> Result<Reply, ClientError> {
        self.json("POST", "/v1/peer", Some(envelope))
    }
}
