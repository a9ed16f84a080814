// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page and the plots of measured streams.

use draw::histogram::{Histogram, HistogramBar};
use draw::level::Level;
use draw::table::{Table, Tone, Value};
use st2110::audio::AudioResult;
use st2110::video::VideoResult;
use units::display::{count, number};

use crate::document::{StreamSection, streams_html};
use crate::measure_report::{Measured, Report};
use crate::measure_text::{notes, overviews, sentences};

/// Most streams that have a section and plots of their own.
const MOST_SECTIONS: usize = 32;

/// Returns the files of a folder of results: the page, and the plots of each stream, numbered from 1.
pub fn files(report: &Report) -> Vec<(String, String)> {
    let shown = report.streams.iter().take(MOST_SECTIONS);
    let sections: Vec<_> = shown.map(section).collect();
    let resolution = format!("to {} ns", number(report.resolution_ps as f64 / 1e3, 3));
    let mut facts = vec![
        ("Packets", count(report.packets)),
        ("Streams", count(report.streams.len() as u64)),
        ("Time stamps", resolution),
    ];
    facts.extend(
        report
            .damage
            .iter()
            .map(|damage| ("Damage", damage.clone())),
    );
    facts.extend(notes(report).into_iter().map(|note| ("Note", note)));
    let title = report.files.join(", ");
    let page = streams_html(&title, &facts, &overviews(report), &sections);
    let mut files = vec![("report.html".to_owned(), page)];
    for (number, section) in (1..).zip(&sections) {
        let levels = section
            .levels
            .iter()
            .map(|of| draw::level::level(of).plot());
        let histograms = section
            .histograms
            .iter()
            .map(|of| draw::histogram::histogram(of).plot());
        for plot in levels.chain(histograms) {
            files.push((format!("{number}-{}", plot.name), plot.svg));
        }
    }
    files
}

fn section(stream: &crate::measure_report::StreamReport) -> StreamSection {
    let mut section = StreamSection {
        heading: stream.key.to_string(),
        sentences: sentences(stream),
        ..StreamSection::default()
    };
    match &stream.measured {
        Measured::Video(video) => {
            section.table = types(video);
            section.levels.extend(vrx(video));
            section.histograms.push(cinst(video));
        }
        Measured::Audio(audio) => section.levels.push(tsdf(audio)),
        Measured::Ancillary(_) | Measured::Problem(_) => {}
    }
    section
}

/// Returns the verdict by each type.
fn types(video: &VideoResult) -> Table {
    let mut table = Table::default();
    table.text("type");
    table.text("schedule");
    for title in ["Cinst", "Cmax", "VRX", "VRXfull", "late"] {
        table.number(title, "packets");
    }
    table.text("met");
    table.rows = video
        .types
        .iter()
        .map(|verdict| {
            let (met, tone) = if verdict.is_met {
                ("yes", Tone::Good)
            } else {
                ("no", Tone::Bad)
            };
            let met = Value {
                text: met.to_owned(),
                tone,
            };
            vec![
                verdict.sender_type.words().to_owned().into(),
                verdict.schedule.to_string().into(),
                count(verdict.cinst_max).into(),
                count(verdict.limits.cmax).into(),
                number(verdict.vrx_max as f64, 0).into(),
                count(verdict.limits.vrx_full).into(),
                count(verdict.late).into(),
                met,
            ]
        })
        .collect();
    table
}

fn vrx(video: &VideoResult) -> Option<Level> {
    let buffer = video.buffers.first()?;
    let points = buffer.curve.iter().map(|(at_s, [low, high])| {
        let (low, high) = (*low as f64, *high as f64);
        (at_s * 1e3, [low, f64::midpoint(low, high), high])
    });
    let mark = |verdict: &st2110::video::TypeVerdict| {
        let full = verdict.limits.vrx_full;
        (
            full as f64,
            format!("VRXfull, {}: {full}", verdict.sender_type),
        )
    };
    let mut marks: Vec<_> = video.types.iter().map(mark).collect();
    // Both narrow types have the same.
    marks.dedup_by_key(|mark| mark.0);
    Some(Level {
        slug: "vrx",
        title: format!("VRX by the {} schedule", buffer.schedule),
        caption: "The shade reaches from the least to the largest VRX of neighbouring packets."
            .to_owned(),
        x_name: "time, ms".to_owned(),
        y_name: "packets in the buffer".to_owned(),
        points: points.collect(),
        marks,
    })
}

fn cinst(video: &VideoResult) -> Histogram {
    let bar = |(level, packets): (&u64, &u64)| HistogramBar {
        from: *level as f64,
        to: *level as f64 + 1.0,
        height: *packets as f64,
    };
    Histogram {
        slug: "cinst",
        title: "Packets by Cinst".to_owned(),
        x_name: "Cinst".to_owned(),
        y_name: "packets".to_owned(),
        log: true,
        bars: video.cinst_histogram.iter().map(bar).collect(),
        ..Histogram::default()
    }
}

fn tsdf(audio: &AudioResult) -> Level {
    let point = |window: &st2110::audio::Window| (window.at_s, [window.tsdf_ns / 1e3; 3]);
    let packet_time_us = audio.packet_time_ns / 1e3;
    Level {
        slug: "ts-df",
        title: "TS-DF".to_owned(),
        caption: "Each window of 200 ms has a point.".to_owned(),
        x_name: "time, s".to_owned(),
        y_name: "µs".to_owned(),
        points: audio.tsdf.iter().map(point).collect(),
        marks: vec![
            (packet_time_us, "a packet time".to_owned()),
            (packet_time_us * 17.0, "17 packet times".to_owned()),
        ],
    }
}
