// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stands in for the API server: objects by path, versions, tokens, and faults on demand.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

/// What the server does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// It never ends its answer.
    Huge,
    /// It sends a byte now and then.
    Slow,
    /// It answers with something else.
    NoJson,
    /// It answers with a list.
    List,
    /// It refuses, with a long reason.
    Refusal,
    /// It closes the connection.
    Closed,
}

pub struct State {
    /// Objects by path.
    pub objects: BTreeMap<String, Value>,
    /// The token that is right.
    pub token: Option<String>,
    pub fault: Fault,
    /// How long it takes for an answer.
    pub wait: Duration,
    /// Requests so far.
    pub asked: Vec<String>,
    version: u64,
}

#[derive(Clone)]
pub struct Server {
    pub url: String,
    state: Arc<Mutex<State>>,
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

impl Server {
    /// Starts one on a port, or any.
    pub fn start(port: u16, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let state = State {
            objects: BTreeMap::from([(
                "/api/v1/nodes/n1".to_owned(),
                json!({ "metadata": { "name": "n1", "uid": "node-uid" } }),
            )]),
            token: None,
            fault: Fault::None,
            wait: Duration::ZERO,
            asked: Vec::new(),
            version: 100,
        };
        let server = Self {
            url: format!("{scheme}://127.0.0.1:{port}"),
            state: Arc::new(Mutex::new(state)),
        };
        let of_thread = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (server, tls) = (of_thread.clone(), tls.clone());
                let stream: TcpStream = stream.unwrap();
                thread::spawn(move || match tls {
                    Some(tls) => {
                        let connection = ServerConnection::new(tls).unwrap();
                        server.serve(&mut StreamOwned::new(connection, stream));
                    }
                    None => server.serve(&mut { stream }),
                });
            }
        });
        server
    }

    pub fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap())
    }

    /// Has a claim, which is at the place of its name.
    pub fn put_claim(&self, claim: &Value) {
        let text = |place: &str| claim.pointer(place).unwrap().as_str().unwrap().to_owned();
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let path = format!("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}");
        self.with(|state| state.objects.insert(path, claim.clone()));
    }

    fn serve(&self, stream: &mut dyn Stream) {
        let mut reader = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim().is_empty() => break,
                Ok(_) => lines.push(line.trim().to_owned()),
            }
        }
        let header = |name: &str| {
            let mut pairs = lines.iter().filter_map(|line| line.split_once(": "));
            let found = pairs.find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_owned())
        };
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let stream = reader.into_inner();
        let (fault, wait) = self.with(|state| {
            state.asked.push(lines[0].clone());
            (state.fault, state.wait)
        });
        thread::sleep(wait);
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n";
        let _ = match fault {
            Fault::None => {
                let mut words = lines[0].split(' ');
                let (method, path) = (words.next().unwrap(), words.next().unwrap());
                let (status, answer) =
                    self.answer(method, path, &body, header("authorization").as_deref());
                let text = answer.to_string();
                write!(
                    stream,
                    "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}",
                    text.len()
                )
            }
            Fault::Huge => write!(stream, "{head}\r\n{{\"a\":\"").and_then(|()| {
                loop {
                    stream.write_all(&[b'a'; 65536])?;
                }
            }),
            Fault::Slow => write!(stream, "{head}Content-Length: 1000\r\n\r\n").and_then(|()| {
                loop {
                    stream.write_all(b" ")?;
                    stream.flush()?;
                    thread::sleep(Duration::from_millis(20));
                }
            }),
            Fault::NoJson => write!(stream, "{head}\r\n<html>\u{1b}[31m{}", "x".repeat(500)),
            Fault::List => write!(stream, "{head}\r\n[1]"),
            Fault::Refusal => write!(
                stream,
                "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n{{\"message\":\"not allowed {}\"}}",
                "y".repeat(5000)
            ),
            Fault::Closed => Ok(()),
        };
        let _ = stream.flush();
    }

    fn answer(&self, method: &str, path: &str, body: &[u8], token: Option<&str>) -> (u16, Value) {
        let status = |code: u16, message: &str| (code, json!({ "message": message }));
        self.with(|state| {
            let right = state.token.as_ref().map(|token| format!("Bearer {token}"));
            if right.is_some() && right.as_deref() != token {
                return status(401, "Unauthorized");
            }
            if method == "GET" {
                let found = state.objects.get(path);
                return found.map_or(status(404, "not found"), |found| (200, found.clone()));
            }
            let mut object: Value = serde_json::from_slice(body).unwrap();
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            let place = match method {
                "POST" => format!("{path}/{name}"),
                _ => path.to_owned(),
            };
            match (method, state.objects.get(&place)) {
                ("POST", Some(_)) => return status(409, "already exists"),
                ("PUT", None) => return status(404, "not found"),
                ("PUT", Some(old))
                    if old["metadata"]["resourceVersion"]
                        != object["metadata"]["resourceVersion"] =>
                {
                    return status(409, "the object has been modified");
                }
                _ => {}
            }
            state.version += 1;
            object["metadata"]["resourceVersion"] = json!(state.version.to_string());
            // As the server writes quantities.
            let text = object.to_string().replace("000000000\"", "G\"");
            let object: Value = serde_json::from_str(&text).unwrap();
            state.objects.insert(place, object.clone());
            (if method == "POST" { 201 } else { 200 }, object)
        })
    }
}
