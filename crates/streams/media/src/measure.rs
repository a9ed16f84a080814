// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer measure --st2110`: reads captures and measures each RTP stream in them.

use std::fs::File;
use std::io::{Read, stdin};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capture::datagrams::{Datagram, Summary, read_datagrams};
use capture::flows::{FlowKey, Proto};
use capture::frame::BEYOND_SECOND;
use capture::selector::Selector;
use clap::Args;
use draw::Style;
use st2110::audio::{self, Evenness};
use st2110::format::{Scan, Schedule};
use st2110::infer::{Contents, Given, Kind, contents};
use st2110::limits::SenderType;
use st2110::rate::Rate;
use st2110::sdp::Media;
use st2110::stream::{self, FoundStreams, Stream, Streams};
use st2110::video::{self, Datum, Options};
use st2110::{ancillary, pairs};

use crate::declared::{Declared, contradictions};
use crate::measure_report::{Measured, Report, StreamReport};
use crate::{measure_page, measure_text, values};

/// Heading of the options in the help.
const MEDIA: &str = "Media streams";

/// Options of `pspacer measure --st2110`.
#[derive(Clone, Debug, Args)]
pub struct StreamArgs {
    /// Measure RTP streams instead: video by SMPTE ST 2110-21, audio by EBU's TS-DF
    #[arg(long, help_heading = MEDIA, conflicts_with_all = ["line", "mtu", "from", "to", "interval"])]
    pub st2110: bool,
    /// With --st2110: more captures, all of which are read as one
    #[arg(value_name = "FILE", requires = "st2110")]
    pub more: Vec<PathBuf>,
    /// Exit status 1 unless each video stream is of this type: N, NL or W (any). Audio must be even to
    /// a packet time, or to 17 of them for W
    #[arg(long, value_name = "TYPE", requires = "st2110", help_heading = MEDIA,
        value_parser = values::sender_type)]
    pub expect: Option<SenderType>,
    /// SDP that describes the streams: their formats are as it says, and what their packets show otherwise is
    /// named; may be repeated
    #[arg(long, value_name = "SDP", requires = "st2110", help_heading = MEDIA)]
    pub sdp: Vec<PathBuf>,
    /// What the streams carry: raw, compressed, audio or ancillary [default: what their packets show]
    #[arg(long, value_name = "KIND", requires = "st2110", help_heading = MEDIA,
        value_parser = values::kind)]
    pub carry: Option<Kind>,
    /// Frames a second, such as 59.94 [default: by the timestamps]
    #[arg(long, value_name = "RATE", requires = "st2110", help_heading = MEDIA,
        value_parser = values::rate)]
    pub frame_rate: Option<Rate>,
    /// Lines of a frame [default: by the packets of raw video, else 1080]
    #[arg(long, value_name = "LINES", requires = "st2110", help_heading = MEDIA,
        value_parser = values::positive)]
    pub height: Option<u32>,
    /// Frames have two fields, or segments (PsF) [default: by the packets of raw video]
    #[arg(long, requires = "st2110", help_heading = MEDIA)]
    pub interlaced: bool,
    /// Packets of a frame [default: what most have]
    #[arg(long, value_name = "N", requires = "st2110", help_heading = MEDIA,
        value_parser = values::positive)]
    pub packets_per_frame: Option<u32>,
    /// Samples a second of audio [default: 44100, 48000 or 96000, by the timestamps]
    #[arg(long, value_name = "HZ", requires = "st2110", help_heading = MEDIA,
        value_parser = values::positive)]
    pub sampling: Option<u32>,
    /// TR_OFFSET, from a frame's time to the first read [default: the standard's for the format]
    #[arg(long, value_name = "TIME", requires = "st2110", help_heading = MEDIA,
        value_parser = values::offset)]
    pub troffset: Option<u64>,
    /// Read by this schedule only: gapped or linear [default: both]
    #[arg(long, value_name = "SCHEDULE", requires = "st2110", help_heading = MEDIA,
        value_parser = values::schedule)]
    pub schedule: Option<Schedule>,
    /// Where reading begins: epoch (the standard's, with one clock for sender and capture), first (the
    /// first packet) or fit (the earliest with no packet late)
    #[arg(long, value_name = "DATUM", requires = "st2110", help_heading = MEDIA,
        default_value = "epoch", value_parser = values::datum)]
    pub datum: Datum,
    /// How far TAI is ahead of the capture's clock: 37s if that is UTC, as tcpdump's is
    #[arg(long, value_name = "TIME", requires = "st2110", help_heading = MEDIA,
        default_value = "0s", value_parser = values::time)]
    pub tai_ahead: u64,
}

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The first capture; `-` is standard input.
    pub file: &'a Path,
    pub args: &'a StreamArgs,
    /// Only these flows; all, if there are none.
    pub flows: &'a [Selector],
    /// What the terminal can show.
    pub style: Style,
}

/// What was found, ready to be written.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// For the terminal.
    pub text: String,
    /// One JSON object, with its line's end.
    pub json: String,
    /// What was wrong with the captures.
    pub notes: Vec<String>,
    /// Files for a folder of results: name and content.
    pub files: Vec<(String, String)>,
    /// Whether all streams are what `--expect` says.
    pub is_expected: bool,
}

const FORMAT: &str = "pspacer-st2110-1";

/// Measures the streams of captures. It needs some 100 bytes of memory for each packet.
///
/// # Errors
/// When a file cannot be read at all, or no stream is found. A file that is damaged further on is
/// measured up to the damage.
pub fn measure(request: &Request<'_>) -> Result<Outcome> {
    let args = request.args;
    let declared = Declared::read(&args.sdp)?;
    let mut streams = Streams::default();
    let mut report = Report {
        format: FORMAT,
        files: Vec::new(),
        packets: 0,
        datagrams: 0,
        others: 0,
        resolution_ps: 0,
        damage: Vec::new(),
        streams: Vec::new(),
        pairs: Vec::new(),
        missing: Vec::new(),
    };
    let ahead_ps = i128::from(args.tai_ahead) * i128::from(units::time::PS_PER_NS);
    for file in std::iter::once(request.file).chain(args.more.iter().map(PathBuf::as_path)) {
        let add = |datagram: Datagram<'_>| {
            let is_wanted = request.flows.is_empty()
                || request
                    .flows
                    .iter()
                    .any(|flow| flow.matches(&flow_key(&datagram)));
            if is_wanted {
                streams.add(&stream_datagram(&datagram, ahead_ps));
            }
        };
        let summary = read(file, add).with_context(|| file.display().to_string())?;
        let name = file.file_name().unwrap_or(file.as_os_str());
        report.files.push(name.to_string_lossy().into_owned());
        report.packets += summary.packets;
        report.datagrams += summary.datagrams;
        report.resolution_ps = report.resolution_ps.max(summary.resolution_ps);
        if summary.beyond_second > 0 {
            let count = summary.beyond_second;
            report
                .damage
                .push(format!("{}: {count} {BEYOND_SECOND}", file.display()));
        }
        let damage = summary.damage.iter();
        report
            .damage
            .extend(damage.map(|damage| format!("{}: {damage}", file.display())));
    }
    let FoundStreams { streams, others } = streams.finish();
    report.others = others;
    if streams.is_empty() {
        bail!(
            "no RTP stream in {}: {} packets, {} UDP datagrams",
            report.files.join(", "),
            report.packets,
            report.datagrams
        );
    }
    report.streams = streams
        .iter()
        .map(|stream| of_stream(stream, args, &declared))
        .collect();
    report.pairs = pairs::pairs(&streams);
    report.missing = declared.missing(&streams, &report.pairs);
    let mut json = serde_json::to_string_pretty(&report)?;
    json.push('\n');
    let mut files = measure_page::files(&report);
    files.push(("streams.json".to_owned(), json.clone()));
    Ok(Outcome {
        text: measure_text::text(&report, request.style),
        json,
        notes: report.damage.clone(),
        files,
        is_expected: args.expect.is_none_or(|wanted| {
            report
                .streams
                .iter()
                .all(|stream| is_expected(&stream.measured, wanted))
        }),
    })
}

fn of_stream(stream: &Stream, args: &StreamArgs, declared: &Declared) -> StreamReport {
    let options = Given {
        kind: args.carry,
        rate: args.frame_rate,
        height: args.height,
        scan: args.interlaced.then_some(Scan::Interlaced),
        packets_per_frame: args.packets_per_frame,
        sampling_hz: args.sampling,
        encoding: None,
    };
    let (sdp_name, medium) = declared.of(stream).unzip();
    let sdp = medium.map(Media::given).unwrap_or_default();
    let offset_ps = args
        .troffset
        .map(|ns| i128::from(ns) * i128::from(units::time::PS_PER_NS));
    let how = Options {
        offset_ps: offset_ps.or_else(|| medium.and_then(Media::offset_ps)),
        datum: args.datum,
        schedule: args.schedule,
    };
    let measured = contents(stream, &options, &sdp).and_then(|contents| match contents {
        Contents::Video(video) => {
            video::measure(stream, video, &how).map(|video| Measured::Video(Box::new(video)))
        }
        Contents::Audio(audio) => Ok(Measured::Audio(audio::measure(stream, audio))),
        Contents::Ancillary(data) => Ok(Measured::Ancillary(ancillary::measure(stream, data))),
    });
    let measured = measured.unwrap_or_else(Measured::Problem);
    StreamReport {
        key: stream.key,
        carries: measure_text::carries(&measured),
        contradictions: medium
            .map(|medium| contradictions(stream, medium, &measured))
            .unwrap_or_default(),
        measured,
        sdp: sdp_name,
    }
}

fn is_expected(measured: &Measured, wanted: SenderType) -> bool {
    match measured {
        Measured::Video(video) => {
            let met = |verdict: &st2110::video::TypeVerdict| {
                verdict.is_met && verdict.sender_type.meets(wanted)
            };
            video.types.iter().any(met)
        }
        Measured::Audio(audio) => match wanted {
            SenderType::Narrow | SenderType::NarrowLinear => {
                audio.evenness == Evenness::WithinPacketTime
            }
            SenderType::Wide => audio.evenness != Evenness::Beyond,
        },
        // It has no type.
        Measured::Ancillary(_) => true,
        Measured::Problem(_) => false,
    }
}

fn read(file: &Path, each: impl FnMut(Datagram<'_>)) -> Result<Summary> {
    if file.as_os_str() == "-" {
        return Ok(read_datagrams(stdin().lock(), each)?);
    }
    let source: Box<dyn Read> = Box::new(File::open(file)?);
    let is_timeline = file
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("timeline."));
    let found = read_datagrams(source, each);
    Ok(if is_timeline {
        found.context(
            "a timeline holds no RTP headers; measure the laboratory's wire.pcapng beside it",
        )?
    } else {
        found?
    })
}

fn flow_key(datagram: &Datagram<'_>) -> FlowKey {
    FlowKey::Ports {
        proto: Proto::Udp,
        src: datagram.from.address,
        sport: datagram.from.port,
        dst: datagram.to.address,
        dport: datagram.to.port,
    }
}

fn stream_datagram<'a>(datagram: &Datagram<'a>, ahead_ps: i128) -> stream::Datagram<'a> {
    let end = |end: capture::segment::Endpoint| SocketAddr::new(end.address, end.port);
    stream::Datagram {
        time_ps: datagram.time_ps.saturating_add(ahead_ps),
        from: end(datagram.from),
        to: end(datagram.to),
        payload: datagram.payload,
        payload_bytes: datagram.payload_bytes,
    }
}
