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
    /// The connection that it names: a trace may have several.
    pub group: Option<String>,
    pub what: What,
}

/// What an event tells.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Sent(Packet),
    Received(Packet),
    /// A sent packet was taken for lost.
    Lost(Packet),
    /// The probe timeout (PTO) expired.
    TimerExpired,
    /// Variables of recovery.
    Metrics(Metrics),
    /// The limits of one end's transport parameters: for all streams together, and for one.
    Parameters {
        is_peers: bool,
        all_bytes: Option<u64>,
        stream_bytes: Option<u64>,
    },
    /// Whether the sender is limited by its application.
    ApplicationLimited(bool),
    Other,
}

/// Variables of recovery; those that did not change are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    pub smoothed_rtt_ns: Option<u64>,
    pub min_rtt_ns: Option<u64>,
    /// Congestion window.
    pub cwnd_bytes: Option<u64>,
    pub in_flight_bytes: Option<u64>,
    /// Probe timeouts in a row.
    pub pto_count: Option<u64>,
    /// Packets that were taken for lost since the metrics before.
    pub lost: Option<u64>,
    /// Whether the sender is limited by its application.
    pub is_application_limited: Option<bool>,
}

/// A packet, as far as the log describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packet {
    /// Packet number space: 0 initial, 1 handshake, 2 application data.
    pub space: u8,
    /// Path whose number it is (multipath QUIC), else 0.
    pub path: u64,
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
    /// Ranges of packet numbers of a path, both ends included, and how long the receiver held the
    /// acknowledgement.
    Ack {
        path: u64,
        ranges: Vec<(u64, u64)>,
        held_ns: Option<u64>,
    },
    /// Data of a stream; offset and length.
    Stream(u64, Option<u64>, u64),
    /// Data of the handshake; offset and length.
    Crypto(Option<u64>, u64),
    /// A datagram.
    Data,
    /// A frame that only asks for an acknowledgement.
    Ping,
    /// The sender of this packet has data for which the receiver gave no credit.
    Blocked,
    /// Credit for more data: of a stream or of all together, up to an offset.
    Credit(Option<u64>, Option<u64>),
    /// A frame that is not to be acknowledged.
    Silent,
    /// The connection is closed.
    Close,
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

/// Returns an integer, which newer versions may write as a string.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Returns an integer at `key`.
fn whole(of: &Value, path: &str, key: &str) -> Result<Option<u64>, String> {
    match of.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match number(value) {
            None => Err(wrong(&format!("{path}.{key}"), "an integer", Some(value))),
            found => Ok(found),
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
    if value.is_array() {
        let what = ": events are arrays, as in draft-00 and draft-01 of qlog, which are not read; expected qlog 0.3 or later";
        return Err(what.to_owned());
    }
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
            // Others are of keys, paths, acknowledgements and idle connections.
            let text = |key: &str| data.get(key).and_then(Value::as_str);
            let is_loss = matches!(text("timer_type"), None | Some("pto" | "loss_timeout"));
            if text("event_type") == Some("expired") && is_loss {
                What::TimerExpired
            } else {
                What::Other
            }
        }
        "metrics_updated" | "recovery_metrics_updated" => What::Metrics(Metrics {
            smoothed_rtt_ns: time_ns(data, ".data", "smoothed_rtt")?,
            min_rtt_ns: time_ns(data, ".data", "min_rtt").unwrap_or(None),
            cwnd_bytes: match whole(data, ".data", "congestion_window")? {
                None => whole(data, ".data", "cwnd")?,
                found => found,
            },
            in_flight_bytes: whole(data, ".data", "bytes_in_flight")?,
            pto_count: whole(data, ".data", "pto_count")?,
            lost: match data.get("cf_lost_packets") {
                Some(lost @ Value::Object(_)) => whole(lost, ".data.cf_lost_packets", "delta")?,
                _ => None,
            },
            is_application_limited: data.get("cf_app_limited").and_then(Value::as_bool),
        }),
        "parameters_set" => {
            let of = data.get("owner").or(data.get("initiator"));
            let each = ["bidi_local", "bidi_remote", "uni"]
                .map(|of| whole(data, ".data", &format!("initial_max_stream_data_{of}")));
            let [local, remote, uni] = each;
            What::Parameters {
                is_peers: of.and_then(Value::as_str) == Some("remote"),
                all_bytes: whole(data, ".data", "initial_max_data")?,
                // Which of the three holds depends on who opened the stream.
                stream_bytes: local?.max(remote?).max(uni?),
            }
        }
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
    let kinds = [
        header.get("packet_type"),
        data.get("packet_type"),
        data.get("type"),
    ];
    let kind = kinds.into_iter().flatten().next();
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
        path: whole(header, ".data.header", "path_id")?.unwrap_or(0),
        number: match whole(header, ".data.header", "packet_number")? {
            None => whole(data, ".data", "packet_number")?,
            found => found,
        },
        bytes: whole(raw, ".data.raw", "length")?,
        frames,
        is_probe: matches!(trigger, Some("pto_probe" | "retransmit_timeout")),
    })
}

fn frame(index: usize, value: &Value) -> Result<Frame, String> {
    let path = format!(".data.frames[{index}]");
    let kind = value.get("frame_type").and_then(Value::as_str);
    Ok(match kind {
        Some("ack" | "path_ack") => Frame::Ack {
            path: whole(value, &path, "path_id")?.unwrap_or(0),
            ranges: ranges(&path, value.get("acked_ranges"))?,
            held_ns: time_ns(value, &path, "ack_delay").unwrap_or(None),
        },
        Some(kind @ ("stream" | "crypto")) => {
            let null = Value::Null;
            let raw = value.get("raw").unwrap_or(&null);
            let length = match whole(value, &path, "length")? {
                None => whole(raw, &path, "payload_length")?.or(whole(raw, &path, "length")?),
                found => found,
            };
            let (offset, length) = (whole(value, &path, "offset")?, length.unwrap_or(0));
            if kind == "crypto" {
                return Ok(Frame::Crypto(offset, length));
            }
            let id = whole(value, &path, "stream_id")?.unwrap_or(0);
            Frame::Stream(id, offset, length)
        }
        Some("datagram") => Frame::Data,
        Some("ping") => Frame::Ping,
        Some("data_blocked" | "stream_data_blocked") => Frame::Blocked,
        Some("max_data") => Frame::Credit(None, limit(value)),
        Some("max_stream_data") => Frame::Credit(whole(value, &path, "stream_id")?, limit(value)),
        Some("padding") => Frame::Silent,
        Some("connection_close") => Frame::Close,
        _ => Frame::Other,
    })
}

/// Returns the limit of a frame with credit, if it is a number.
fn limit(value: &Value) -> Option<u64> {
    whole(value, "", "maximum").unwrap_or(None)
}

/// Reads `[[1, 2], [4]]`, whose numbers may be strings.
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
            Value::Array(ends) => ends.iter().map(number).collect(),
            other => number(other).map(|one| vec![one]),
        };
        match ends.as_deref() {
            Some([one]) => Ok((*one, *one)),
            Some([first, last]) => Ok((*first.min(last), *first.max(last))),
            _ => Err(wrong(&path, expected, Some(value))),
        }
    };
    all.iter().map(range).collect()
}
