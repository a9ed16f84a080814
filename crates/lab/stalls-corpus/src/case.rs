// SPDX-License-Identifier: MIT OR Apache-2.0
//! A case: a capture, its truth, and the words about it.

use std::fmt::Write as _;

use crate::pcapng;
use crate::record::{Capture, Span};

/// Where data goes; the client is the end that opened the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    /// Server to client.
    Client,
    /// Client to server.
    Server,
    /// Either direction: what stalled is the exchange, or the handshake.
    Either,
}

impl Towards {
    /// Returns the name in `verdict.toml`.
    pub const fn name(self) -> &'static str {
        match self {
            Towards::Client => "server-to-client",
            Towards::Server => "client-to-server",
            Towards::Either => "either",
        }
    }
}

/// A stall that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Stall {
    towards: Towards,
    span: Span,
    causes: Vec<&'static str>,
    sides: Vec<&'static str>,
    not: Vec<&'static str>,
    why: String,
    required: bool,
}

impl Stall {
    /// Makes a stall of data in a direction, from and to these times of the capture; `causes` are
    /// the right answers, the best first.
    pub fn new(towards: Towards, span: Span, causes: &[&'static str]) -> Self {
        Self {
            towards,
            span,
            causes: causes.to_vec(),
            sides: Vec::new(),
            not: Vec::new(),
            why: String::new(),
            required: true,
        }
    }

    /// Says that an analyser need not report it.
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }

    /// Says which sides are right.
    pub fn sides(mut self, sides: &[&'static str]) -> Self {
        self.sides = sides.to_vec();
        self
    }

    /// Says what would be wrong.
    pub fn not(mut self, not: &[&'static str]) -> Self {
        self.not = not.to_vec();
        self
    }

    /// Says why the truth is what it is.
    pub fn why(mut self, why: &str) -> Self {
        self.why = why.to_owned();
        self
    }
}

/// A capture with its truth.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Name of the folder.
    pub name: String,
    /// Theme: cases of one theme belong together.
    pub theme: &'static str,
    /// Where the capture was made.
    pub point: &'static str,
    capture: Capture,
    stalls: Vec<Stall>,
    complete: bool,
    why: String,
    readme: Vec<String>,
}

impl Case {
    /// Makes a case without stalls. The truth is complete until it is said not to be.
    pub fn new(name: &str, theme: &'static str, point: &'static str, capture: Capture) -> Self {
        Self {
            name: name.to_owned(),
            theme,
            point,
            capture,
            stalls: Vec::new(),
            complete: true,
            why: String::new(),
            readme: Vec::new(),
        }
    }

    /// Adds a stall.
    pub fn stall(mut self, stall: Stall) -> Self {
        self.stalls.push(stall);
        self
    }

    /// Adds a stall for each span.
    pub fn stalls(mut self, spans: &[Span], make: impl Fn(Span) -> Stall) -> Self {
        self.stalls.extend(spans.iter().map(|span| make(*span)));
        self
    }

    /// Says that there are other stalls, too, about which the truth says nothing.
    pub fn partial(mut self) -> Self {
        self.complete = false;
        self
    }

    /// Says why nothing stalled, or what the whole capture is about.
    pub fn why(mut self, why: &str) -> Self {
        self.why = why.to_owned();
        self
    }

    /// Gives the lines of the README.
    pub fn readme(mut self, lines: &[&str]) -> Self {
        self.readme = lines.iter().map(|&line| line.to_owned()).collect();
        self
    }

    /// Returns the files of the folder: name and bytes.
    pub fn files(&self) -> [(&'static str, Vec<u8>); 3] {
        [
            ("capture.pcapng", pcapng::file(&self.capture)),
            ("verdict.toml", self.verdict().into_bytes()),
            ("README.md", self.text().into_bytes()),
        ]
    }

    /// Returns what is wrong with the case itself.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut fault = |is_bad: bool, what: &str| {
            if is_bad {
                faults.push(format!("{}: {what}", self.name));
            }
        };
        fault(self.capture.records.is_empty(), "no packets");
        fault(
            self.stalls.is_empty() && self.why.is_empty(),
            "neither stall nor why",
        );
        fault(
            !(3..=8).contains(&self.readme.len()),
            "three to eight lines of README",
        );
        for stall in &self.stalls {
            fault(
                stall.span.1 <= stall.span.0,
                "a stall without beginning or end",
            );
            fault(stall.why.is_empty(), "a stall without why");
            fault(
                stall.causes.is_empty() || stall.sides.is_empty(),
                "no answer",
            );
            let both = stall.not.iter().any(|not| stall.causes.contains(not));
            fault(both, "a cause is both right and wrong");
        }
        faults
    }

    /// Returns seconds after the first packet of the file.
    fn seconds(&self, time_ns: u64) -> String {
        let first_ns = self.capture.records.first().map_or(0, |r| r.time_ns);
        let micros = time_ns.saturating_sub(first_ns) / 1000;
        format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
    }

    /// Returns the packets as lines of text.
    pub fn packets(&self) -> String {
        let mut text = String::new();
        for (index, record) in self.capture.records.iter().enumerate() {
            let p = &record.packet;
            let _ = writeln!(
                text,
                "{:4} {:>12} {:?} seq {} +{} ack {} win {} flags {:02x} ts {:?} sack {:?} id {}",
                index + 1,
                self.seconds(record.time_ns),
                p.from,
                p.seq,
                p.payload_bytes,
                p.ack,
                p.window,
                p.flags,
                p.timestamps,
                p.sack,
                p.ip_id
            );
        }
        text
    }

    fn verdict(&self) -> String {
        let list = |names: &[&str]| {
            let quoted: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
            format!("[{}]", quoted.join(", "))
        };
        let mut text = String::from("# SPDX-License-Identifier: MIT OR Apache-2.0\n");
        let _ = writeln!(text, "theme = \"{}\"", self.theme);
        let _ = writeln!(text, "point = \"{}\"", self.point);
        let _ = writeln!(text, "complete = {}", self.complete);
        if let Some(ids) = self.capture.connections.first() {
            let end = |index: usize| {
                let [a, b, c, d] = ids.addresses[index];
                if self.capture.is_v6() {
                    format!("[2001:db8::{}]:{}", index + 1, ids.ports[index])
                } else {
                    format!("{a}.{b}.{c}.{d}:{}", ids.ports[index])
                }
            };
            let _ = writeln!(text, "client = \"{}\"", end(0));
            let _ = writeln!(text, "server = \"{}\"", end(1));
        }
        if !self.why.is_empty() {
            let _ = writeln!(text, "why = {}", toml_reader::quote(&self.why));
        }
        if self.stalls.is_empty() {
            text.push_str("stalls = []\n");
        }
        for stall in &self.stalls {
            let _ = writeln!(
                text,
                "\n[[stall]]\ndirection = \"{}\"",
                stall.towards.name()
            );
            let _ = writeln!(text, "start_s = {}", self.seconds(stall.span.0));
            let _ = writeln!(text, "end_s = {}", self.seconds(stall.span.1));
            if !stall.required {
                text.push_str("required = false\n");
            }
            let _ = writeln!(text, "causes = {}", list(&stall.causes));
            let _ = writeln!(text, "sides = {}", list(&stall.sides));
            let _ = writeln!(text, "not = {}", list(&stall.not));
            let _ = writeln!(text, "why = {}", toml_reader::quote(&stall.why));
        }
        text
    }

    fn text(&self) -> String {
        let mut text = format!(
            "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n# {}\n\n",
            self.name
        );
        for line in &self.readme {
            let _ = writeln!(text, "- {line}");
        }
        text
    }
}
