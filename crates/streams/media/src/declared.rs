// SPDX-License-Identifier: MIT OR Apache-2.0
//! SDPs beside a capture: which medium a stream is, and where its packets show something else.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use st2110::format::Scan;
use st2110::infer::{Audio, Contents, Given, contents};
use st2110::known::Kind;
use st2110::limits::SenderType;
use st2110::pairs::Pair;
use st2110::sdp::{self, MOST_BYTES, Media, Session};
use st2110::stream::Stream;

use crate::measure_report::Measured;

/// Bytes of UDP's header.
const UDP_BYTES: u32 = 8;

/// The SDPs, by name.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    sessions: Vec<(String, Session)>,
}

impl Declared {
    /// Reads SDPs.
    ///
    /// # Errors
    /// Names the file, and what is wrong.
    pub fn read(files: &[PathBuf]) -> Result<Self> {
        let one = |file: &PathBuf| {
            let name = file.display().to_string();
            let size = fs::metadata(file).with_context(|| name.clone())?.len();
            ensure!(
                size <= MOST_BYTES as u64,
                "{name}: expected at most {MOST_BYTES} bytes"
            );
            let text = fs::read(file).with_context(|| name.clone())?;
            let session = sdp::parse(&String::from_utf8_lossy(&text));
            let session = session.map_err(|what| anyhow::anyhow!("{name}: {what}"))?;
            Ok((name, session))
        };
        Ok(Self {
            sessions: files.iter().map(one).collect::<Result<_>>()?,
        })
    }

    /// Returns the medium that a stream is, and its name.
    pub fn of(&self, stream: &Stream) -> Option<(String, &Media)> {
        let all = self
            .sessions
            .iter()
            .flat_map(|(name, session)| session.media.iter().map(move |medium| (name, medium)));
        let mut fitting = all.filter(|(_, medium)| is_of(stream, medium));
        let named = |(name, medium): (&String, _)| -> (String, &Media) {
            let medium: &Media = medium;
            (format!("{name}, line {}", medium.line), medium)
        };
        fitting.next().map(named)
    }

    /// Says which media are not in the capture, and which are not sent twice.
    pub fn missing(&self, streams: &[Stream], pairs: &[Pair]) -> Vec<String> {
        let mut out = Vec::new();
        for (name, session) in &self.sessions {
            let found = |medium: &Media| streams.iter().position(|stream| is_of(stream, medium));
            for medium in session
                .media
                .iter()
                .filter(|medium| found(medium).is_none())
            {
                out.push(format!(
                    "{name}, line {}: no stream of payload type {} to port {}{} is in the capture.",
                    medium.line,
                    medium.payload_type,
                    medium.port,
                    medium
                        .address
                        .map(|address| format!(" of {address}"))
                        .unwrap_or_default()
                ));
            }
            for group in &session.duplicates {
                let media = group.iter().filter_map(|id| {
                    session
                        .media
                        .iter()
                        .find(|medium| medium.id.as_ref() == Some(id))
                });
                let legs: Option<Vec<_>> = media.map(found).collect();
                let are_one = |legs: &[usize]| {
                    let has =
                        |pair: &Pair, leg: &usize| pair.legs.iter().any(|of| of.stream == *leg);
                    pairs
                        .iter()
                        .any(|pair| legs.iter().all(|leg| has(pair, leg)))
                };
                if legs.is_some_and(|legs| !are_one(&legs)) {
                    out.push(format!(
                        "{name}: group:DUP {} says that they are one stream; their packets are not the same.",
                        group.join(" ")
                    ));
                }
            }
        }
        out
    }
}

fn is_of(stream: &Stream, medium: &Media) -> bool {
    let to = stream.key.to;
    medium.port == to.port()
        && medium.payload_type == stream.key.payload_type
        && medium
            .address
            .is_none_or(|address| address == to.ip() || address.is_unspecified())
}

/// Says where a stream's packets show something else than its medium says.
pub fn contradictions(stream: &Stream, medium: &Media, measured: &Measured) -> Vec<String> {
    let none = Given::default();
    let said = medium.given();
    let mut out = Vec::new();
    let mut differ = |what: &str, said: String, shown: String| {
        if said != shown {
            out.push(format!(
                "The SDP says {what} {said}; the packets show {shown}."
            ));
        }
    };
    match contents(stream, &none, &none) {
        Ok(Contents::Video(shown) | Contents::Ancillary(shown)) => {
            let kind = said.kind.map(Kind::words);
            differ_if(kind.zip(Some(shown.kind.words())), |a, b| {
                differ("that it carries", a, b)
            });
            if said.kind == Some(shown.kind) {
                let is_lined = shown.kind == Kind::Raw;
                let height = said.height.filter(|_| is_lined);
                differ_if(height.zip(Some(shown.raster.height)), |a, b| {
                    differ("lines:", a, b)
                });
                differ_if(medium.width().zip(shown.width), |a, b| {
                    differ("pixels of a line:", a, b)
                });
                let scan = |scan: Scan| match scan {
                    Scan::Progressive => "progressive",
                    Scan::Interlaced => "interlaced",
                };
                let shown_scan = (is_lined || shown.is_jpeg_xs).then_some(shown.raster.scan);
                differ_if(said.scan.map(scan).zip(shown_scan.map(scan)), |a, b| {
                    differ("that frames are", a, b);
                });
                let frames = match shown.raster.scan {
                    Scan::Progressive => Some(shown.rate),
                    Scan::Interlaced => shown.rate.half(),
                };
                differ_if(said.rate.zip(frames), |a, b| {
                    differ("frames a second:", a, b)
                });
                let sampling = sampling(medium).filter(|_| is_lined);
                if let Some((said, shown)) = sampling.zip(shown.sampling) {
                    // What shares its pixel groups is not told apart.
                    if !shown.split(" or ").any(|one| one == said) {
                        differ("sampling", said, shown.to_owned());
                    }
                }
            }
        }
        Ok(Contents::Audio(shown)) => of_audio(medium, &shown, &mut differ),
        // What is not known contradicts nothing.
        Err(_) => {}
    }
    out.extend(of_sender(stream, medium, measured));
    out
}

/// The same of audio.
fn of_audio(medium: &Media, shown: &Audio, differ: &mut impl FnMut(&str, String, String)) {
    let said = medium.given();
    let kind = said.kind.map(Kind::words);
    differ_if(kind.zip(Some(Kind::Audio.words())), |a, b| {
        differ("that it carries", a, b)
    });
    differ_if(said.sampling_hz.zip(Some(shown.sampling_hz)), |a, b| {
        differ("samples a second:", a, b);
    });
    let bits =
        |encoding: st2110::known::Encoding, channels: u32| encoding.bits().saturating_mul(channels);
    if let Some((encoding, channels)) = said.encoding {
        if bits(encoding, channels) != bits(shown.encoding, shown.channels) {
            let of = |encoding: st2110::known::Encoding, channels| {
                format!("{channels} x {}", encoding.name())
            };
            differ(
                "channels",
                of(encoding, channels),
                of(shown.encoding, shown.channels),
            );
        }
    }
    let ns = u64::from(shown.samples) * 1_000_000_000 / u64::from(shown.sampling_hz.max(1));
    // Times are written with two or three decimals of a millisecond.
    if let Some(said) = medium
        .packet_time_ns
        .filter(|said| said.abs_diff(ns) > 10_000)
    {
        differ(
            "a packet time of",
            format!("{} µs", said / 1000),
            format!("{} µs", ns / 1000),
        );
    }
}

/// Says where the sender does otherwise than its medium says.
fn of_sender(stream: &Stream, medium: &Media, measured: &Measured) -> Vec<String> {
    let mut out = Vec::new();
    let headers = if stream.key.to.is_ipv6() { 40 } else { 20 };
    let largest = stream.largest_ip_bytes.saturating_sub(headers);
    let most = medium.largest_udp_bytes().unwrap_or(0);
    if most >= UDP_BYTES && largest > most {
        out.push(format!(
            "The SDP says datagrams of at most {most} bytes (MAXUDP); the largest has {largest}."
        ));
    }
    if let Measured::Video(video) = measured {
        let said = match medium.parameter("TP") {
            Some("2110TPN") => Some(SenderType::Narrow),
            Some("2110TPNL") => Some(SenderType::NarrowLinear),
            Some("2110TPW") => Some(SenderType::Wide),
            _ => None,
        };
        let is_met = |of: SenderType| {
            video
                .types
                .iter()
                .any(|v| v.is_met && v.sender_type.meets(of))
        };
        if let Some(said) = said.filter(|said| !is_met(*said)) {
            let shown = video.sender_type.map_or("of no type", SenderType::words);
            out.push(format!(
                "The SDP says that the sender is {}; it is {shown}.",
                said.words()
            ));
        }
        if let Some(cmax) = medium.cmax().filter(|cmax| video.cinst_max > *cmax) {
            out.push(format!(
                "The SDP says CMAX={cmax}; Cinst reaches {}.",
                video.cinst_max
            ));
        }
    }
    out
}

/// Calls `differ` with both as text, if there are both.
fn differ_if<T: ToString>(both: Option<(T, T)>, mut differ: impl FnMut(String, String)) {
    if let Some((said, shown)) = both {
        differ(said.to_string(), shown.to_string());
    }
}

/// Returns sampling and depth as lines show them.
fn sampling(medium: &Media) -> Option<String> {
    let sampling = medium.parameter("sampling")?;
    let depth = medium.parameter("depth")?;
    let of = match sampling {
        "YCbCr-4:2:2" | "CLYCbCr-4:2:2" | "ICtCp-4:2:2" => "4:2:2",
        "YCbCr-4:2:0" | "CLYCbCr-4:2:0" | "ICtCp-4:2:0" => "4:2:0",
        "YCbCr-4:4:4" | "CLYCbCr-4:4:4" | "ICtCp-4:4:4" | "RGB" | "XYZ" => "4:4:4",
        _ => return None,
    };
    Some(format!("{of} {} bit", depth.trim_end_matches('f')))
}
