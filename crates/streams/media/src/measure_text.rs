// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of measured streams: a table of video, one of audio, and sentences.

use draw::Style;
use draw::table::{Table, Tone, Value};
use draw::terminal::{paragraph, table};
use st2110::ancillary::AncillaryResult;
use st2110::audio::{AudioResult, Evenness};
use st2110::format::Scan;
use st2110::known::{By, Kind};
use st2110::limits::SenderType;
use st2110::list::Check;
use st2110::range::Range;
use st2110::rate::Rate;
use st2110::video::{Datum, VideoResult};
use units::display::{NONE, count, number};

use crate::measure_report::{Measured, Report, StreamReport};

pub fn text(report: &Report, style: Style) -> String {
    let mut out = String::new();
    for overview in overviews(report) {
        out.push_str(&table(&overview, style));
        out.push('\n');
    }
    for stream in &report.streams {
        let lines = sentences(stream);
        if !lines.is_empty() {
            out.push_str(&format!("{}\n", stream.key));
        }
        for line in lines {
            let words = paragraph(&line, style);
            out.extend(words.lines().map(|line| format!("  {line}\n")));
        }
    }
    for note in notes(report) {
        out.push_str(&paragraph(&note, style));
    }
    out
}

/// Returns what a reader of any stream's results should know.
pub fn notes(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    if report.resolution_ps >= 1_000_000 {
        notes.push(format!(
            "Time stamps are {} µs apart at best: packets of fast streams share them, and VRX, Cinst \
             and lateness are no finer than that.",
            report.resolution_ps / 1_000_000
        ));
    }
    if report.others > 0 {
        notes.push(format!(
            "{} UDP datagrams are no RTP, or too few to tell.",
            count(report.others)
        ));
    }
    notes.extend(report.missing.iter().cloned());
    notes
}

/// Returns the tables of all streams: video, and audio, as far as there is any.
pub fn overviews(report: &Report) -> Vec<Table> {
    let mut video = Table::default();
    for title in ["stream", "carries"] {
        video.text(title);
    }
    for (title, unit) in [
        ("packets", ""),
        ("lost", ""),
        ("frames", ""),
        ("Cinst", "of Cmax"),
        ("VRX", "of VRXfull"),
        ("late", ""),
        ("FPT", "µs"),
    ] {
        video.number(title, unit);
    }
    video.text("type");
    let mut audio = Table::default();
    for title in ["stream", "carries"] {
        audio.text(title);
    }
    for (title, unit) in [
        ("packets", ""),
        ("lost", ""),
        ("TS-DF", "µs"),
        ("delay", "µs"),
        ("interval", "µs"),
    ] {
        audio.number(title, unit);
    }
    audio.text("even to");
    let mut ancillary = Table::default();
    for title in ["stream", "carries"] {
        ancillary.text(title);
    }
    for (title, unit) in [
        ("packets", ""),
        ("lost", ""),
        ("empty", ""),
        ("FPT", "µs"),
        ("delay", "µs"),
    ] {
        ancillary.number(title, unit);
    }
    for stream in &report.streams {
        let name = stream.key.to_string();
        match &stream.measured {
            Measured::Video(result) => video.rows.push(video_row(name, result)),
            Measured::Audio(result) => audio.rows.push(audio_row(name, result)),
            Measured::Ancillary(result) => ancillary.rows.push(ancillary_row(name, result)),
            Measured::Problem(_) => {}
        }
    }
    [video, audio, ancillary, pairs(report), list(report)]
        .into_iter()
        .filter(|table| !table.rows.is_empty())
        .collect()
}

/// Returns what EBU's LIST expects of the streams' timestamps.
fn list(report: &Report) -> Table {
    let mut table = Table::default();
    table.text("stream");
    table.text("EBU LIST");
    for title in ["least", "mean", "largest", "expected"] {
        table.number(title, "");
    }
    table.text("is met");
    for stream in &report.streams {
        let checks = match &stream.measured {
            Measured::Video(result) => &result.list,
            Measured::Audio(result) => &result.list,
            Measured::Ancillary(result) => &result.list,
            Measured::Problem(_) => continue,
        };
        for check in checks {
            table.rows.push(list_row(stream.key.to_string(), check));
        }
    }
    table
}

fn list_row(name: String, check: &Check) -> Vec<Value> {
    let (words, unit) = check.quantity.words();
    let shown = |value: f64, digits: usize| match unit {
        "µs" => number(value / 1e3, digits),
        _ => number(value, digits),
    };
    let verdict = Value {
        text: if check.is_met { "yes" } else { "no" }.to_owned(),
        tone: if check.is_met { Tone::Good } else { Tone::Bad },
    };
    vec![
        name.into(),
        format!("{words}, {unit}").into(),
        shown(check.range.min, 1).into(),
        shown(check.range.mean, 1).into(),
        shown(check.range.max, 1).into(),
        format!("{} to {}", shown(check.least, 0), shown(check.most, 0)).into(),
        verdict,
    ]
}

fn video_row(name: String, result: &VideoResult) -> Vec<Value> {
    // The type that is met, else the widest.
    let shown = result
        .types
        .iter()
        .find(|v| v.is_met)
        .or(result.types.last());
    let of = |value: String, most: u64, is_over: bool| Value {
        text: format!("{value} / {most}"),
        tone: if is_over { Tone::Bad } else { Tone::Plain },
    };
    let (cinst, vrx, late) = match shown {
        Some(v) => (
            of(
                v.cinst_max.to_string(),
                v.limits.cmax,
                v.cinst_max > v.limits.cmax,
            ),
            of(
                v.vrx_max.to_string(),
                v.limits.vrx_full,
                u64::try_from(v.vrx_max).is_ok_and(|vrx| vrx > v.limits.vrx_full),
            ),
            v.late,
        ),
        None => (NONE.to_owned().into(), NONE.to_owned().into(), 0),
    };
    let fpt = range_us(result.fpt_ns);
    let verdict = match result.sender_type {
        Some(met) => Value {
            text: met.words().to_owned(),
            tone: Tone::Good,
        },
        None => Value {
            text: "none".to_owned(),
            tone: Tone::Bad,
        },
    };
    vec![
        name.into(),
        video_format(result).into(),
        count(result.packets).into(),
        bad_if(result.lost),
        count(result.pictures.len() as u64).into(),
        cinst,
        vrx,
        bad_if(late),
        fpt,
        verdict,
    ]
}

fn bad_if(number: u64) -> Value {
    Value {
        text: count(number),
        tone: if number > 0 { Tone::Bad } else { Tone::Plain },
    }
}

/// Returns what a stream carries, as people write it.
pub fn carries(measured: &Measured) -> Option<String> {
    match measured {
        Measured::Video(result) => Some(video_format(result)),
        Measured::Audio(result) => Some(audio_format(result)),
        Measured::Ancillary(result) => {
            let packets = result.picture_packets;
            let of = scan_and_rate(result.scan, result.picture_rate);
            Some(format!("ancillary, {of}, {packets} a picture"))
        }
        Measured::Problem(_) => None,
    }
}

/// Returns p or i and the rate of frames.
fn scan_and_rate(scan: Scan, picture_rate: Rate) -> String {
    let (scan, rate) = match scan {
        Scan::Progressive => ("p", Some(picture_rate)),
        Scan::Interlaced => ("i", picture_rate.half()),
    };
    format!("{scan}{}", rate.unwrap_or(picture_rate))
}

/// Returns a video format as people write it; the rate is that of frames. A height that is assumed is left out.
fn video_format(result: &VideoResult) -> String {
    let kind = match result.kind {
        Kind::Raw => "raw",
        _ if result.is_jpeg_xs => "JPEG XS",
        _ => "compressed",
    };
    let size = match (result.width, result.decided_by.height) {
        (_, By::Assumed) => String::new(),
        (Some(width), _) => format!("{width}x{}", result.raster.height),
        (None, _) => result.raster.height.to_string(),
    };
    let rate = scan_and_rate(result.raster.scan, result.picture_rate);
    let sampling = result
        .sampling
        .map(|of| format!(", {of}"))
        .unwrap_or_default();
    format!(
        "{kind} {size}{rate}{sampling}, {} packets",
        result.picture_packets
    )
}

/// Returns an audio format as people write it.
fn audio_format(result: &AudioResult) -> String {
    format!(
        "{} x {}, {} kHz, {} ms",
        result.channels,
        result.encoding.name(),
        f64::from(result.sampling_hz) / 1e3,
        number(result.packet_time_ns / 1e6, 3)
    )
}

/// Returns the ends of a range, µs.
fn range_us(range: Option<Range<f64>>) -> Value {
    let us = |ns: f64| number(ns / 1e3, 1);
    let text = range.map_or(NONE.to_owned(), |range| {
        match (us(range.min), us(range.max)) {
            (least, most) if least == most => least,
            (least, most) => format!("{least} to {most}"),
        }
    });
    text.into()
}

fn ancillary_row(name: String, result: &AncillaryResult) -> Vec<Value> {
    let carries = carries(&Measured::Ancillary(result.clone())).unwrap_or_default();
    vec![
        name.into(),
        carries.into(),
        count(result.packets).into(),
        bad_if(result.lost),
        count(result.empty_packets).into(),
        range_us(result.fpt_ns),
        range_us(result.delay_ns),
    ]
}

/// Returns the streams that are one, a row for each leg.
fn pairs(report: &Report) -> Table {
    let mut table = Table::default();
    table.text("2022-7 leg");
    for (title, unit) in [
        ("packets", "of both"),
        ("lost", "here"),
        ("lost", "of both"),
        ("only here", ""),
        ("first here", ""),
        ("skew", "µs"),
    ] {
        table.number(title, unit);
    }
    for pair in &report.pairs {
        for leg in &pair.legs {
            let name = report
                .streams
                .get(leg.stream)
                .map(|stream| stream.key.to_string());
            table.rows.push(vec![
                name.unwrap_or_default().into(),
                count(pair.packets).into(),
                bad_if(leg.lost),
                bad_if(pair.lost),
                count(leg.alone).into(),
                count(leg.first).into(),
                range_us(leg.skew_ns),
            ]);
        }
    }
    table
}

fn audio_row(name: String, result: &AudioResult) -> Vec<Value> {
    let tone = match result.evenness {
        Evenness::WithinPacketTime => Tone::Good,
        Evenness::Within17PacketTimes => Tone::Plain,
        Evenness::Beyond => Tone::Bad,
    };
    let evenness = Value {
        text: result.evenness.words().to_owned(),
        tone,
    };
    vec![
        name.into(),
        audio_format(result).into(),
        count(result.packets).into(),
        bad_if(result.lost),
        number(result.tsdf_max_ns / 1e3, 1).into(),
        range_us(result.delay_ns),
        range_us(result.interval_ns),
        evenness,
    ]
}

/// Returns what there is to say of a stream beyond its row.
pub fn sentences(stream: &StreamReport) -> Vec<String> {
    let mut all = match &stream.measured {
        Measured::Video(video) => video_sentences(video),
        Measured::Audio(audio) => audio.notes.clone(),
        Measured::Ancillary(data) => {
            let judged =
                "It has no type: SMPTE ST 2110-21's are those of video (--expect leaves it out).";
            data.notes
                .iter()
                .cloned()
                .chain([judged.to_owned()])
                .collect()
        }
        Measured::Problem(why) => vec![format!("It is not measured: {why}.")],
    };
    all.extend(stream.contradictions.iter().cloned());
    all
}

fn video_sentences(result: &VideoResult) -> Vec<String> {
    let mut out = Vec::new();
    // A stream of a narrow type is not meant to be of the other.
    let is_narrow = matches!(
        result.sender_type,
        Some(SenderType::Narrow | SenderType::NarrowLinear)
    );
    for verdict in result.types.iter().filter(|v| !v.is_met && !is_narrow) {
        out.push(format!(
            "Not {} ({} schedule): {}",
            verdict.sender_type.words(),
            verdict.schedule,
            verdict.why_not.join(" ")
        ));
    }
    let all_late = result
        .types
        .iter()
        .all(|verdict| verdict.late * 2 > result.packets);
    if all_late && result.datum == Datum::Epoch {
        out.push(
            "Most packets are late by every schedule: the clock of the capture may not be the \
             sender's (--datum fit, --tai-ahead)."
                .to_owned(),
        );
    }
    if result.lost > 0 {
        out.push(format!(
            "{} packets are lost: VRX counts them with the next that came.",
            count(result.lost)
        ));
    }
    if result.duplicates + result.reordered > 0 {
        out.push(format!(
            "{} packets came twice, {} after one with a higher number.",
            count(result.duplicates),
            count(result.reordered)
        ));
    }
    out.extend(result.notes.iter().cloned());
    out
}
