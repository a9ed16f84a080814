// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads session descriptions (SDP, RFC 8866) as far as they describe media of ST 2110: `m=`, `c=`, and the attributes
//! rtpmap, fmtp, ptime, mid and group.

use std::net::IpAddr;

use crate::format::Scan;
use crate::known::{Encoding, Given, Kind};
use crate::rate::Rate;

/// Most bytes of a description.
pub const MOST_BYTES: usize = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// Its media, in order.
    pub media: Vec<Media>,
    /// Identities of media that are sent twice (`a=group:DUP`, RFC 7104; SMPTE ST 2022-7).
    pub duplicates: Vec<Vec<String>>,
}

/// A medium of a session, with one payload type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Media {
    /// Line of its `m=`, from 1.
    pub line: usize,
    /// Port to which it is sent.
    pub port: u16,
    /// Address to which it is sent.
    pub address: Option<IpAddr>,
    pub payload_type: u8,
    pub id: Option<String>,
    /// What it is encoded as, such as raw, jxsv, smpte291, L24.
    pub encoding: String,
    /// Ticks a second.
    pub clock_hz: u32,
    /// Channels of audio.
    pub channels: u32,
    /// Time of a packet of audio.
    pub packet_time_ns: Option<u64>,
    /// Parameters of the format, in order.
    pub parameters: Vec<(String, String)>,
}

impl Media {
    /// Returns a parameter; of one without a value it is empty.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut all = self.parameters.iter();
        all.find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.parameter(name)?.parse().ok()
    }

    /// Returns the pixels of a line.
    pub fn width(&self) -> Option<u32> {
        self.number("width")
    }

    /// Returns TR_OFFSET, which is stated in µs, in ps.
    pub fn offset_ps(&self) -> Option<i128> {
        let us: u32 = self.number("TROFF")?;
        Some(i128::from(us) * 1_000_000)
    }

    /// Returns the most that Cinst may reach.
    pub fn cmax(&self) -> Option<u64> {
        self.number("CMAX")
    }

    /// Returns the largest UDP datagram, its header included.
    pub fn largest_udp_bytes(&self) -> Option<u32> {
        self.number("MAXUDP")
    }

    /// Returns what it says of the stream.
    pub fn given(&self) -> Given {
        let encoding = Encoding::of_name(&self.encoding);
        let kind = match self.encoding.as_str() {
            "raw" => Some(Kind::Raw),
            "jxsv" => Some(Kind::Compressed),
            "smpte291" => Some(Kind::Ancillary),
            _ => encoding.map(|_| Kind::Audio),
        };
        let is_video = kind.is_some_and(|kind| kind != Kind::Audio);
        let scan = match self.parameter("interlace") {
            Some(_) => Scan::Interlaced,
            None => Scan::Progressive,
        };
        // Ancillary data's own parameters do not say whether there are fields.
        let has_scan = matches!(kind, Some(Kind::Raw | Kind::Compressed));
        Given {
            kind,
            rate: self.number::<Rate>("exactframerate").filter(|_| is_video),
            height: self.number("height").filter(|height| *height > 0),
            scan: has_scan.then_some(scan),
            packets_per_frame: None,
            sampling_hz: encoding.map(|_| self.clock_hz),
            encoding: encoding.map(|encoding| (encoding, self.channels)),
        }
    }
}

/// Reads a description.
///
/// # Errors
/// Names the line, and what was expected there.
pub fn parse(text: &str) -> Result<Session, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("expected at most {MOST_BYTES} bytes"));
    }
    let mut session = Session::default();
    let mut address = None;
    // The payload types of the current m=, each a medium; those of others are before.
    let mut begin = 0;
    let mut has_version = false;
    for (number, line) in (1..).zip(text.lines()) {
        let wrong = |expected: &str| {
            Err(format!(
                "line {number}, \"{}\": expected {expected}",
                shown(line)
            ))
        };
        let line = line.trim_end();
        if line.is_empty() {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            return wrong("a letter, = and a value");
        };
        if !has_version && (key, value) != ("v", "0") {
            return wrong("v=0, which begins an SDP");
        }
        has_version = true;
        let is_of_session = session.media.is_empty();
        let current = session.media.get_mut(begin..).unwrap_or_default();
        match (key, value.split_once(':').unwrap_or((value, ""))) {
            ("m", _) => {
                let Some(media) = media(number, value, address) else {
                    return wrong(
                        "a kind, a port, RTP/AVP and payload types, as in video 5004 RTP/AVP 96",
                    );
                };
                begin = session.media.len();
                session.media.extend(media);
            }
            ("c", _) => {
                let Some(found) = connection(value) else {
                    return wrong("IN IP4 or IN IP6 and an address");
                };
                if is_of_session {
                    address = Some(found);
                }
                current
                    .iter_mut()
                    .for_each(|media| media.address = Some(found));
            }
            ("a", ("rtpmap", rest)) => {
                let Some((payload_type, encoding, clock_hz, channels)) = rtpmap(rest) else {
                    return wrong(
                        "a payload type, an encoding, / and a clock rate, as in rtpmap:96 raw/90000",
                    );
                };
                for media in current
                    .iter_mut()
                    .filter(|m| m.payload_type == payload_type)
                {
                    encoding.clone_into(&mut media.encoding);
                    (media.clock_hz, media.channels) = (clock_hz, channels);
                }
            }
            ("a", ("fmtp", rest)) => {
                let Some((payload_type, parameters)) = fmtp(rest) else {
                    return wrong(
                        "a payload type and parameters, as in fmtp:96 width=1920; height=1080",
                    );
                };
                for media in current
                    .iter_mut()
                    .filter(|m| m.payload_type == payload_type)
                {
                    media.parameters.extend(parameters.iter().cloned());
                }
            }
            ("a", ("ptime", rest)) => {
                let Some(ns) = milliseconds(rest) else {
                    return wrong("a time in ms");
                };
                current
                    .iter_mut()
                    .for_each(|media| media.packet_time_ns = Some(ns));
            }
            ("a", ("mid", rest)) => {
                current
                    .iter_mut()
                    .for_each(|media| media.id = Some(rest.to_owned()));
            }
            ("a", ("group", rest)) => {
                let mut words = rest.split_whitespace();
                if words.next() == Some("DUP") {
                    session.duplicates.push(words.map(str::to_owned).collect());
                }
            }
            _ => {}
        }
    }
    checked(session)
}

/// Returns a session whose groups name its media, and which has some.
fn checked(session: Session) -> Result<Session, String> {
    let media = &session.media;
    let is_known = |id: &String| media.iter().any(|media| media.id.as_ref() == Some(id));
    if let Some(id) = session.duplicates.iter().flatten().find(|id| !is_known(id)) {
        return Err(format!(
            "a=group:DUP names {}: expected a medium with this a=mid",
            shown(id)
        ));
    }
    if media.is_empty() {
        return Err("expected at least one m= line".to_owned());
    }
    Ok(session)
}

/// The beginning of a text, for errors.
fn shown(text: &str) -> String {
    let first: String = text.chars().take(60).collect();
    first
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

fn media(line: usize, value: &str, address: Option<IpAddr>) -> Option<Vec<Media>> {
    let mut words = value.split_whitespace();
    let _kind = words.next()?;
    let port = words.next()?.split('/').next()?.parse().ok()?;
    if !words.next()?.starts_with("RTP/") {
        return None;
    }
    let of = |payload_type: &str| {
        let payload_type = payload_type.parse().ok().filter(|number| *number < 128)?;
        Some(Media {
            line,
            port,
            address,
            payload_type,
            channels: 1,
            ..Media::default()
        })
    };
    let media: Option<Vec<_>> = words.map(of).collect();
    media.filter(|media| !media.is_empty() && media.len() <= 128)
}

fn connection(value: &str) -> Option<IpAddr> {
    let mut words = value.split_whitespace();
    let family = (words.next()?, words.next()?);
    let address: IpAddr = words.next()?.split('/').next()?.parse().ok()?;
    let is_right = match address {
        IpAddr::V4(_) => family == ("IN", "IP4"),
        IpAddr::V6(_) => family == ("IN", "IP6"),
    };
    is_right.then_some(address)
}

fn rtpmap(rest: &str) -> Option<(u8, &str, u32, u32)> {
    let (payload_type, map) = rest.split_once(' ')?;
    let mut parts = map.trim().split('/');
    let (encoding, clock) = (parts.next()?, parts.next()?);
    let channels = parts.next().map_or(Ok(1), str::parse).ok()?;
    let clock_hz = clock.parse().ok().filter(|hz| *hz > 0)?;
    Some((payload_type.parse().ok()?, encoding, clock_hz, channels))
}

fn fmtp(rest: &str) -> Option<(u8, Vec<(String, String)>)> {
    let (payload_type, parameters) = rest.split_once(' ').unwrap_or((rest, ""));
    let one = |parameter: &str| {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        (key.trim().to_owned(), value.trim().to_owned())
    };
    let all = parameters.split(';').map(str::trim);
    let all = all.filter(|parameter| !parameter.is_empty()).map(one);
    Some((payload_type.parse().ok()?, all.collect()))
}

/// Reads milliseconds, such as 1, 0.125 or 0.33, as ns.
fn milliseconds(text: &str) -> Option<u64> {
    let ms: f64 = text.trim().parse().ok()?;
    (ms > 0.0 && ms <= 1000.0).then_some((ms * 1e6).round() as u64)
}
