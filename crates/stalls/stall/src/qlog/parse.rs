// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the events of a qlog one by one: a JSON document with traces, or a sequence of JSON
//! texts (RFC 7464, or one a line) of which the first describes the trace.
//!
//! Memory: one event, which may have [`EVENT_BYTES_MOST`].

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::connection::Vantage;
use super::event::{Event, event};

/// Most bytes between the ends of two events.
pub const EVENT_BYTES_MOST: u64 = 1 << 20;
/// Most characters of a trace's name.
const NAME_MOST: usize = 256;
/// Separates the texts of a sequence.
const RECORD_SEPARATOR: u8 = 0x1e;

/// What a qlog says of a trace, besides its events.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// Title, or original destination connection ID; empty if there is neither.
    pub name: String,
    /// Who logged it.
    pub vantage: Vantage,
    /// Whether each time counts from the event before.
    is_delta: bool,
}

/// Takes what is read.
pub trait Sink {
    /// A trace begins.
    fn begin(&mut self);
    /// The trace's next event.
    fn event(&mut self, event: Event);
    /// The trace is over, or what can be read of it.
    fn end(&mut self, head: &Head);
}

/// Counts lines and the bytes since the last event, and makes spaces of record separators.
struct Counted<R> {
    source: R,
    count: Rc<Count>,
}

#[derive(Default)]
struct Count {
    lines: Cell<u64>,
    bytes: Cell<u64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        for byte in buffer.iter_mut().take(read) {
            match *byte {
                b'\n' => self.count.lines.set(self.count.lines.get() + 1),
                RECORD_SEPARATOR => *byte = b' ',
                _ => {}
            }
        }
        self.count.bytes.set(self.count.bytes.get() + read as u64);
        if self.count.bytes.get() > EVENT_BYTES_MOST {
            let what = format!("an event of more than {EVENT_BYTES_MOST} bytes");
            return Err(io::Error::other(what));
        }
        Ok(read)
    }
}

/// The state of reading a file.
struct Reader<'a> {
    sink: &'a mut dyn Sink,
    count: Rc<Count>,
    /// What is wrong, in place of serde's words.
    problem: Option<String>,
    /// The trace that was begun, and its events so far.
    trace: Option<Head>,
    events: u64,
    traces: usize,
    /// Whether the head's document has the traces itself.
    has_traces: bool,
    first_ms: Option<f64>,
    last_ns: u64,
}

impl Reader<'_> {
    fn line(&self) -> u64 {
        self.count.lines.get() + 1
    }

    fn begin(&mut self, head: Head) {
        self.trace = Some(head);
        (self.events, self.first_ms, self.last_ns) = (0, None, 0);
        self.sink.begin();
    }

    fn end(&mut self) {
        if let Some(head) = self.trace.take() {
            self.sink.end(&head);
        }
    }

    /// Passes on an event.
    fn event(&mut self, value: &Value) -> Result<(), String> {
        self.count.bytes.set(0);
        let number = self.events + 1;
        let read = event(value).map_err(|problem| {
            let place = if self.has_traces {
                format!("traces[{}].events[{}]", self.traces, self.events)
            } else {
                format!("event {number}")
            };
            format!("line {}: {place}{problem}", self.line())
        });
        let (time_ms, what) = read?;
        let own = value.get("time_format").and_then(Value::as_str);
        let is_delta = match own {
            Some(format) => is_delta(format),
            None => self.trace.as_ref().is_some_and(|head| head.is_delta),
        };
        let first_ms = *self.first_ms.get_or_insert(time_ms);
        let ns = |ms: f64| (ms * 1e6).round().max(0.0) as u64;
        let time_ns = if !is_delta {
            ns(time_ms - first_ms)
        } else if self.events == 0 {
            0
        } else {
            self.last_ns.saturating_add(ns(time_ms))
        };
        self.last_ns = time_ns.max(self.last_ns);
        self.events = number;
        self.sink.event(Event {
            number,
            time_ns: self.last_ns,
            group: value.get("group_id").and_then(Value::as_str).map(name),
            what,
        });
        Ok(())
    }

    /// Keeps what is wrong, and returns an error that ends serde's reading.
    fn stop<E: serde::de::Error>(&mut self, problem: String) -> E {
        self.problem = Some(problem);
        E::custom("")
    }
}

/// Reads a qlog to its end, or to the first thing that is wrong.
///
/// # Errors
/// In words, with line, key and what was expected. What came before was passed on.
pub fn read(source: impl Read, sink: &mut dyn Sink) -> Result<(), String> {
    let source = capture::unpacked(source).map_err(|error| error.to_string())?;
    let count = Rc::new(Count::default());
    let counted = Counted {
        source: BufReader::new(source),
        count: Rc::clone(&count),
    };
    let mut reader = Reader {
        sink,
        count,
        problem: None,
        trace: None,
        events: 0,
        traces: 0,
        has_traces: false,
        first_ms: None,
        last_ns: 0,
    };
    let outcome = texts(counted, &mut reader);
    reader.end();
    outcome
}

fn texts<R: Read>(source: Counted<R>, reader: &mut Reader<'_>) -> Result<(), String> {
    let mut json = serde_json::Deserializer::from_reader(source);
    let document = Document(reader).deserialize(&mut json);
    let worded = |error: serde_json::Error, reader: &mut Reader<'_>| {
        let line = reader.line();
        let problem = reader.problem.take();
        problem.unwrap_or_else(|| {
            let text = error.to_string();
            let text = text.split(" at line ").next().unwrap_or_default();
            format!("line {line}: expected a qlog in JSON: {text}")
        })
    };
    if let Err(error) = document {
        return Err(worded(error, reader));
    }
    if reader.has_traces {
        return Ok(());
    }
    if reader.trace.is_none() {
        let line = reader.line();
        return Err(format!(
            "line {line}: expected a qlog, with \"traces\" or \"trace\""
        ));
    }
    for value in json.into_iter::<Value>() {
        match value {
            Ok(value) => reader.event(&value)?,
            Err(error) => return Err(worded(error, reader)),
        }
    }
    Ok(())
}

fn name(text: &str) -> String {
    text.chars().take(NAME_MOST).collect()
}

/// Whether times of this format count from the event before.
fn is_delta(format: &str) -> bool {
    matches!(format, "delta" | "relative_to_previous_event")
}

/// Reads the value of `common_fields`.
fn common_fields(head: &mut Head, fields: &Value) {
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let format = text("time_format").unwrap_or_default();
    head.is_delta = is_delta(format);
    if let (true, Some(id)) = (head.name.is_empty(), text("ODCID").or(text("group_id"))) {
        head.name = name(id);
    }
}

fn vantage(value: &Value) -> Vantage {
    match value.get("type").and_then(Value::as_str) {
        Some("client") => Vantage::Client,
        Some("server") => Vantage::Server,
        Some("network") => Vantage::Network,
        _ => Vantage::Unknown,
    }
}

/// The document, or the first text of a sequence.
struct Document<'a, 'b>(&'a mut Reader<'b>);

impl<'de> DeserializeSeed<'de> for Document<'_, '_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with \"traces\" or \"trace\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "traces" => {
                    self.0.has_traces = true;
                    map.next_value_seed(Traces(self.0))?;
                }
                "trace" => {
                    let trace: Map<String, Value> = map.next_value()?;
                    let mut head = Head::default();
                    if let Some(title) = trace.get("title").and_then(Value::as_str) {
                        head.name = name(title);
                    }
                    if let Some(fields) = trace.get("common_fields") {
                        common_fields(&mut head, fields);
                    }
                    head.vantage = trace.get("vantage_point").map(vantage).unwrap_or_default();
                    self.0.count.bytes.set(0);
                    self.0.begin(head);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct Traces<'a, 'b>(&'a mut Reader<'b>);

impl<'de> DeserializeSeed<'de> for Traces<'_, '_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Traces<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of traces at \"traces\"")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
        while all.next_element_seed(Trace(self.0))?.is_some() {
            self.0.end();
            self.0.traces += 1;
        }
        Ok(())
    }
}

struct Trace<'a, 'b>(&'a mut Reader<'b>);

impl<'de> DeserializeSeed<'de> for Trace<'_, '_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Trace<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace, an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let reader = self.0;
        reader.begin(Head::default());
        while let Some(key) = map.next_key::<String>()? {
            let mut head = reader.trace.take().unwrap_or_default();
            let mut is_late = false;
            match key.as_str() {
                "title" => {
                    if let Some(title) = map.next_value::<Value>()?.as_str() {
                        head.name = name(title);
                    }
                }
                "vantage_point" => head.vantage = vantage(&map.next_value()?),
                "common_fields" => {
                    common_fields(&mut head, &map.next_value()?);
                    is_late = head.is_delta && reader.events > 0;
                }
                "events" => {
                    reader.trace = Some(head);
                    map.next_value_seed(Events(reader))?;
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            reader.trace = Some(head);
            if is_late {
                let problem = format!(
                    "line {}: traces[{}].common_fields.time_format: expected it before \"events\"",
                    reader.line(),
                    reader.traces
                );
                return Err(reader.stop(problem));
            }
        }
        Ok(())
    }
}

struct Events<'a, 'b>(&'a mut Reader<'b>);

impl<'de> DeserializeSeed<'de> for Events<'_, '_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events at \"events\"")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
        while let Some(value) = all.next_element::<Value>()? {
            if let Err(problem) = self.0.event(&value) {
                return Err(self.0.stop(problem));
            }
        }
        Ok(())
    }
}
