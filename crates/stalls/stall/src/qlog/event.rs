// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of a qlog that tell why a transfer stalled.

use serde_json::Value;

/// An event of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Number within the trace, from 1.
    pub number: u64,
    /// Time since the trace's first event; it never goes back.
    pub time_ns: u64,
    /// What happened.
    pub what: What,
}

/// What an event tells.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A packet was sent.
    Sent(Packet),
    /// A packet was received.
    Received(Packet),
    /// A sent packet was taken for lost.
    Lost(Packet),
    /// The probe timeout (PTO) expired.
    TimerExpired,
    /// Variables of recovery; those that did not change are `None`.
    Metrics {
        /// Smoothed round trip.
        smoothed_rtt_ns: Option<u64>,
        /// Congestion window.
        cwnd_bytes: Option<u64>,
        in_flight_bytes: Option<u64>,
        /// Probe timeouts in a row.
        pto_count: Option<u64>,
    },
    /// Whether the sender is limited by its application.
    ApplicationLimited(bool),
    /// Anything else.
    Other,
}

/// A packet, as far as the log describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packet {
    /// Packet number space: 0 initial, 1 handshake, 2 application data.
    pub space: u8,
    /// Packet number.
    pub number: Option<u64>,
    pub bytes: Option<u64>,
    /// Its frames; `None` if they were not logged.
    pub frames: Option<Vec<Frame>>,
    /// Whether the log says that it is a probe.
    pub is_probe: bool,
}

/// A frame of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Ranges of packet numbers, both ends included.
    Ack(Vec<(u64, u64)>),
    /// Data of a stream; offset and length.
    Stream(u64, Option<u64>, u64),
    /// Data of the handshake, or a datagram.
    Data,
    /// The sender of this packet has data for which the receiver gave no credit.
    Blocked,
    /// Credit for more data.
    Credit,
    /// A frame that is not to be acknowledged.
    Silent,
    /// Any other frame.
    Other,
}

/// Returns the kind of a JSON value, in words.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn wrong(key: &str, expected: &str, found: Option<&Value>) -> String {
    let found = found.map_or("nothing", kind);
    format!("{key}: expected {expected}, found {found}")
}

/// Returns an integer at `key`, which newer versions may write as a string.
fn whole(of: &Value, path: &str, key: &str) -> Result<Option<u64>, String> {
    match of.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match (value.as_u64(), value.as_str().map(str::parse)) {
            (Some(number), _) | (None, Some(Ok(number))) => Ok(Some(number)),
            _ => Err(wrong(&format!("{path}.{key}"), "an integer", Some(value))),
        },
    }
}

/// Returns milliseconds at `key` as nanoseconds.
fn time_ns(of: &Value, path: &str, key: &str) -> Result<Option<u64>, String> {
    match of.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64() {
            Some(ms) if ms >= 0.0 => Ok(Some((ms * 1e6).round() as u64)),
            _ => Err(wrong(&format!("{path}.{key}"), "milliseconds", Some(value))),
        },
    }
}

/// Returns an event's time, ms, and what it tells. The error begins with the key.
pub(super) fn event(value: &Value) -> Result<(f64, What), String> {
    if !value.is_object() {
        return Err(wrong("", "an object with time, name and data", Some(value)));
    }
    let time = value.get("time");
    let time_ms = time
        .and_then(Value::as_f64)
        .ok_or_else(|| wrong(".time", "milliseconds", time))?;
    let name = value.get("name");
    let name = name
        .and_then(Value::as_str)
        .ok_or_else(|| wrong(".name", "a string", name))?;
    // Older versions have the category before the name, such as transport and recovery.
    let short = name.rsplit(':').next().unwrap_or_default();
    let null = Value::Null;
    let data = value.get("data").unwrap_or(&null);
    let what = match short {
        "packet_sent" => What::Sent(packet(data)?),
        "packet_received" => What::Received(packet(data)?),
        "packet_lost" => What::Lost(packet(data)?),
        "loss_timer_updated" | "timer_updated" => {
            let is = |key: &str, word: &str| data.get(key).and_then(Value::as_str) == Some(word);
            if is("event_type", "expired") && !is("timer_type", "ack") {
                What::TimerExpired
            } else {
                What::Other
            }
        }
        "metrics_updated" | "recovery_metrics_updated" => What::Metrics {
            smoothed_rtt_ns: time_ns(data, ".data", "smoothed_rtt")?,
            cwnd_bytes: whole(data, ".data", "congestion_window")?,
            in_flight_bytes: whole(data, ".data", "bytes_in_flight")?,
            pto_count: whole(data, ".data", "pto_count")?,
        },
        "congestion_state_updated" => {
            let new = data.get("new").and_then(Value::as_str).unwrap_or_default();
            What::ApplicationLimited(new == "application_limited")
        }
        _ => What::Other,
    };
    Ok((time_ms, what))
}

fn packet(data: &Value) -> Result<Packet, String> {
    if !data.is_object() {
        return Err(wrong(".data", "an object", Some(data)));
    }
    let null = Value::Null;
    let header = data.get("header").unwrap_or(&null);
    let kind = header.get("packet_type").or(data.get("packet_type"));
    let space = match kind.and_then(Value::as_str) {
        Some("initial") => 0,
        Some("handshake") => 1,
        _ => 2,
    };
    let raw = data.get("raw").unwrap_or(&null);
    let frames = match data.get("frames") {
        None | Some(Value::Null) => None,
        Some(Value::Array(all)) => {
            let frames = all.iter().enumerate();
            Some(frames.map(|(i, f)| frame(i, f)).collect::<Result<_, _>>()?)
        }
        other => return Err(wrong(".data.frames", "an array", other)),
    };
    let trigger = data.get("trigger").and_then(Value::as_str);
    Ok(Packet {
        space,
        number: whole(header, ".data.header", "packet_number")?,
        bytes: whole(raw, ".data.raw", "length")?,
        frames,
        is_probe: matches!(trigger, Some("pto_probe" | "retransmit_timeout")),
    })
}

fn frame(index: usize, value: &Value) -> Result<Frame, String> {
    let path = format!(".data.frames[{index}]");
    let kind = value.get("frame_type").and_then(Value::as_str);
    Ok(match kind {
        Some("ack") => Frame::Ack(ranges(&path, value.get("acked_ranges"))?),
        Some("stream") => {
            let null = Value::Null;
            let raw = value.get("raw").unwrap_or(&null);
            let length = match whole(value, &path, "length")? {
                None => whole(raw, &path, "payload_length")?.or(whole(raw, &path, "length")?),
                found => found,
            };
            Frame::Stream(
                whole(value, &path, "stream_id")?.unwrap_or(0),
                whole(value, &path, "offset")?,
                length.unwrap_or(0),
            )
        }
        Some("crypto" | "datagram") => Frame::Data,
        Some("data_blocked" | "stream_data_blocked") => Frame::Blocked,
        Some("max_data" | "max_stream_data") => Frame::Credit,
        Some("padding" | "connection_close") => Frame::Silent,
        _ => Frame::Other,
    })
}

/// Reads `[[1, 2], [4]]`.
fn ranges(path: &str, value: Option<&Value>) -> Result<Vec<(u64, u64)>, String> {
    let path = format!("{path}.acked_ranges");
    let expected = "an array of [first, last]";
    let all = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(all)) => all,
        other => return Err(wrong(&path, expected, other)),
    };
    let range = |value: &Value| {
        let ends: Option<Vec<u64>> = match value {
            Value::Array(ends) => ends.iter().map(Value::as_u64).collect(),
            other => other.as_u64().map(|one| vec![one]),
        };
        match ends.as_deref() {
            Some([one]) => Ok((*one, *one)),
            Some([first, last]) => Ok((*first.min(last), *first.max(last))),
            _ => Err(wrong(&path, expected, Some(value))),
        }
    };
    all.iter().map(range).collect()
}
