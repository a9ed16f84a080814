// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks the API server of Kubernetes, with the token of the pod's service account. Token and
//! certificate are read for each request, as the kubelet writes them anew.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;
use ureq::http::{Method, Request, StatusCode};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::claim::shown;

/// Longest answer.
const MOST_BYTES: u64 = 1 << 20;
/// Where a pod finds what it has.
pub const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The API server.
#[derive(Clone, Debug)]
pub struct Api {
    pub url: String,
    /// The folder with `token` and `ca.crt`.
    pub account: PathBuf,
    /// Longest time for one request.
    pub timeout: Duration,
}

/// Returns the URL of the server of this pod's cluster.
pub fn url(variable: impl Fn(&str) -> Option<String>) -> Result<String> {
    let get = |name: &str| {
        let value = variable(name).filter(|value| !value.is_empty());
        value.with_context(|| format!("{name} is not set, expected it in a pod; or give --api"))
    };
    let (host, port) = (
        get("KUBERNETES_SERVICE_HOST")?,
        get("KUBERNETES_SERVICE_PORT")?,
    );
    Ok(if host.contains(':') {
        format!("https://[{host}]:{port}")
    } else {
        format!("https://{host}:{port}")
    })
}

impl Api {
    /// Gets an object; `None`: there is none.
    ///
    /// # Errors
    /// No answer, or one that is no object.
    pub fn get(&self, path: &str) -> Result<Option<Value>> {
        self.ask(Method::GET, path, None)
    }

    /// Makes an object, or puts it in the place of one. Returns it as the server has it.
    pub fn send(&self, method: Method, path: &str, object: &Value) -> Result<Value> {
        let answer = self.ask(method, path, Some(object))?;
        answer.with_context(|| format!("{path}: not found"))
    }

    fn ask(&self, method: Method, path: &str, object: Option<&Value>) -> Result<Option<Value>> {
        let url = format!("{}{path}", self.url);
        let ask = || -> Result<Option<Value>> {
            let body = object.map(Value::to_string).unwrap_or_default();
            let request = Request::builder()
                .method(&method)
                .uri(&url)
                .header("Accept", "application/json")
                .header("Content-Type", "application/json");
            let request = match self.file("token")? {
                Some(token) => {
                    let token = String::from_utf8(token).context("token")?;
                    request.header("Authorization", format!("Bearer {}", token.trim()))
                }
                None => request,
            };
            let mut answer = match object {
                Some(_) => self.agent()?.run(request.body(body)?)?,
                None => self.agent()?.run(request.body(())?)?,
            };
            let status = answer.status();
            if object.is_none() && status == StatusCode::NOT_FOUND {
                return Ok(None);
            }
            let body = answer.body_mut().with_config().limit(MOST_BYTES);
            let read = body.read_to_vec()?;
            let found: Option<Value> = serde_json::from_slice(&read).ok();
            if !status.is_success() {
                let said = found.as_ref().and_then(|found| found["message"].as_str());
                bail!("{status}: {}", shown_line(said.unwrap_or("no reason")));
            }
            let found = found.filter(Value::is_object);
            let found = found.with_context(|| {
                let begin = String::from_utf8_lossy(&read);
                let begin = shown_line(&begin);
                format!("the answer is \"{begin}\", expected an object of JSON")
            })?;
            Ok(Some(found))
        };
        ask().with_context(|| format!("{method} {url}"))
    }

    fn agent(&self) -> Result<ureq::Agent> {
        let mut config = TlsConfig::builder();
        if let Some(pem) = self.file("ca.crt")? {
            let mut roots = Vec::new();
            for item in parse_pem(&pem) {
                if let PemItem::Certificate(one) =
                    item.map_err(|error| anyhow!("ca.crt: {error}"))?
                {
                    roots.push(one);
                }
            }
            ensure!(!roots.is_empty(), "ca.crt has no certificate, expected PEM");
            config = config.root_certs(RootCerts::new_with_certs(&roots));
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(self.timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .tls_config(config.build());
        Ok(config.build().into())
    }

    /// Returns a file of the service account. In a pod it is there; a server of a laboratory may
    /// want none, and is not asked by HTTPS.
    fn file(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.account.join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(_) if !self.url.starts_with("https:") => Ok(None),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }
}

fn shown_line(text: &str) -> String {
    let is_plain = |c: &char| !c.is_control();
    shown(&text.chars().filter(is_plain).take(200).collect::<String>())
}
