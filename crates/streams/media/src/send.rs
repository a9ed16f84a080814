// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer send-stream`: its arguments, and its text and JSON.

use std::io::{self, Write};
use std::net::SocketAddr;

use anyhow::{Context, Result, anyhow};
use clap::{Args, ValueEnum};
use draw::Style;
use draw::terminal::paragraph;
use linux_io::launch::{LaunchClock, LaunchSocket};
use linux_io::priority::{Scheduling, schedule};
use linux_io::signals::Signals;
use serde::Serialize;
use st2110::format::{Format, Schedule};
use st2110::synthetic;
use units::display::{count, number};
use units::time::PS_PER_NS;

use crate::send_loop::{Handing, Plan, Source, Statistics, Stream, run};
use crate::values;

/// Headings of the options in the help.
const STREAM: &str = "Stream";
const RUN: &str = "Run";
const OUTPUT: &str = "Output";
/// Real-time priority, the same as that of the sender in ping.
const PRIORITY: u8 = 80;
/// Send buffer: a frame of 2160p as the kernel counts it, twice.
const BUFFER_BYTES: usize = 128 << 20;
/// Time from the program's start to the first packet.
const AHEAD_NS: u64 = 50_000_000;
/// Bytes of the headers below UDP that fq counts: Ethernet's and IP's.
const ETHERNET_BYTES: u64 = 14;
/// Source of the stream within its session. The value has no meaning.
const SSRC: u32 = 0x7073_7001;

/// The socket option that makes packets leave in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// None: a frame is handed over in one go when its first packet is due
    None,
    /// The same, with the rate that it is sent at in SO_MAX_PACING_RATE: for fq
    SoMaxPacingRate,
    /// Each packet has its launch time in SO_TXTIME: for etf, taprio or fq
    SoTxtime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// CLOCK_TAI, what etf and taprio take; needs CAP_NET_ADMIN
    Tai,
    /// CLOCK_MONOTONIC, what fq takes
    Monotonic,
}

/// Arguments of `pspacer send-stream`.
#[derive(Clone, Debug, Args)]
pub struct SendArgs {
    /// Address and port, such as 239.1.1.1:5004
    #[arg(value_name = "ADDRESS:PORT")]
    pub to: SocketAddr,
    /// Video, 4:2:2 in 10 bit: 1080p60, 2160p59.94, 1080i50 (50 fields, as 1080i25) or WxH@RATE [default: 1080p60]
    #[arg(long, value_name = "FORMAT", help_heading = STREAM, value_parser = values::format)]
    pub video: Option<Format>,
    /// When packets of a frame leave: gapped or linear
    #[arg(long, value_name = "SCHEDULE", help_heading = STREAM, conflicts_with = "audio",
        default_value = "gapped", value_parser = values::schedule)]
    pub schedule: Schedule,
    /// Packets of video leave so many of their distances before they are read
    #[arg(long, value_name = "N", help_heading = STREAM, conflicts_with = "audio",
        default_value_t = synthetic::EARLY_PACKETS, value_parser = clap::value_parser!(u32).range(..=1000))]
    pub early: u32,
    /// Audio of so many channels instead, 24 bit at 48 kHz
    #[arg(long, value_name = "CHANNELS", help_heading = STREAM, conflicts_with = "video",
        value_parser = values::positive)]
    pub audio: Option<u32>,
    /// Time of the samples in a packet of audio: 125us, 250us, 333us, 1ms or 4ms [default: 1ms]
    #[arg(long, value_name = "TIME", help_heading = STREAM, requires = "audio",
        value_parser = values::time)]
    pub ptime: Option<u64>,
    /// So many streams, to this port and those after it; each leaves a part of a packet's time (video: of
    /// a frame's) after the one before
    #[arg(long, value_name = "N", help_heading = STREAM, default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub streams: u16,
    /// What makes packets leave in time
    #[arg(long, value_name = "OPTION", help_heading = RUN, value_enum, default_value_t = By::None)]
    pub by: By,
    /// The clock of SO_TXTIME
    #[arg(long, value_name = "CLOCK", help_heading = RUN, value_enum, default_value_t = Clock::Tai)]
    pub clock: Clock,
    /// With SO_TXTIME packets are handed over so long before they leave
    #[arg(long, value_name = "TIME", help_heading = RUN, default_value = "2ms",
        value_parser = values::time)]
    pub lead: u64,
    /// End after this time [default: at SIGINT or SIGTERM]
    #[arg(long = "for", value_name = "TIME", help_heading = RUN, value_parser = values::time)]
    pub duration: Option<u64>,
    /// One JSON object on standard output at the end, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

/// The JSON object that `--json` prints.
#[derive(Serialize)]
struct Json<'a> {
    format: &'static str,
    stream: &'a str,
    to: SocketAddr,
    by: By,
    clock: Clock,
    scheduling: &'a str,
    #[serde(flatten)]
    statistics: &'a Statistics,
}

const FORMAT: &str = "pspacer-send-stream-1";

/// Sends until the time is over or a signal comes, and prints what became of the packets. `note`
/// gets a line when sending begins.
///
/// # Errors
/// When there is no such stream, or the socket fails.
pub fn main(
    args: &SendArgs,
    style: Style,
    out: &mut impl Write,
    note: impl FnOnce(&str),
) -> Result<()> {
    let (streams, name) = streams(args)?;
    let signals = Signals::block()?;
    let sockets = (0..args.streams)
        .map(|number| {
            let mut to = args.to;
            to.set_port(to.port() + number);
            LaunchSocket::connect(to, BUFFER_BYTES).with_context(|| to.to_string())
        })
        .collect::<Result<Vec<_>>>()?;
    let clock = match args.clock {
        Clock::Tai => LaunchClock::Tai,
        Clock::Monotonic => LaunchClock::Monotonic,
    };
    let handing = match args.by {
        By::None => Handing::Frame,
        By::SoMaxPacingRate => {
            for (socket, stream) in sockets.iter().zip(&streams) {
                socket.set_max_pacing_rate(pacing_rate(&stream.source, args.to))?;
            }
            Handing::Frame
        }
        By::SoTxtime => {
            for socket in &sockets {
                socket
                    .set_launch_clock(clock)
                    .map_err(|error| launch_error(error, args.clock))?;
            }
            Handing::Launch {
                clock,
                lead_ns: args.lead,
            }
        }
    };
    // A launch time does not depend on the sender. On kernels before 6.5 a real-time thread keeps ksoftirqd
    // from the processor, and with it the frames and gap frames that it hands to the NIC.
    let wishes: &[Scheduling] = match handing {
        Handing::Frame => &[Scheduling::Fifo(PRIORITY)],
        Handing::Launch { .. } => &[],
    };
    let granted = schedule(wishes).to_string();
    note(&format!(
        "pspacer: sending {name} to {}; {granted}",
        args.to
    ));
    let plan = Plan {
        streams,
        handing,
        ahead_ns: AHEAD_NS,
        duration_ns: args.duration,
    };
    let statistics = run(&plan, &sockets, &signals)?;
    if args.json {
        let json = Json {
            format: FORMAT,
            stream: &name,
            to: args.to,
            by: args.by,
            clock: args.clock,
            scheduling: &granted,
            statistics: &statistics,
        };
        serde_json::to_writer_pretty(&mut *out, &json)?;
        writeln!(out)?;
    } else {
        out.write_all(text(&statistics, style).as_bytes())?;
    }
    Ok(())
}

/// Returns the streams and their name.
fn streams(args: &SendArgs) -> Result<(Vec<Stream>, String)> {
    const PACKET_TIME_NS: u64 = 1_000_000;
    let streams = args.streams;
    if args.to.port().checked_add(streams - 1).is_none() {
        return Err(anyhow!(
            "--streams {streams}: the ports from {} on are {}, expected that many",
            args.to.port(),
            u16::MAX - args.to.port() + 1
        ));
    }
    let several = |name: String| match streams {
        1 => name,
        _ => format!("{streams} streams of {name}"),
    };
    // The time of a packet or a frame, divided among the streams.
    let offset_ns = |time_ns: u64, number: u32| time_ns * u64::from(number) / u64::from(streams);
    if let Some(channels) = args.audio {
        let packet_time_ns = args.ptime.unwrap_or(PACKET_TIME_NS);
        let stream = |number: u32| {
            let audio = synthetic::Audio::new(channels, packet_time_ns, SSRC + number);
            Ok(Stream {
                source: Source::Audio(audio.map_err(|what| anyhow!("--audio {channels}: {what}"))?),
                offset_ns: offset_ns(packet_time_ns, number),
            })
        };
        let all = (0..streams.into()).map(stream).collect::<Result<_>>()?;
        return Ok((all, several(format!("{channels} channels of audio"))));
    }
    let usual = || values::format("1080p60").map_err(anyhow::Error::msg);
    let format = args.video.map_or_else(usual, Ok)?;
    let stream = |number: u32| {
        let video = synthetic::Video::new(format, args.schedule, args.early, SSRC + number);
        let video = video.ok_or_else(|| {
            anyhow!(
                "--video {format}: expected at most {} packets in a frame",
                st2110::limits::MOST_PACKETS
            )
        })?;
        let frame_ns = (video.launch_ps(1, 0) - video.launch_ps(0, 0)) / i128::from(PS_PER_NS);
        Ok(Stream {
            offset_ns: offset_ns(u64::try_from(frame_ns).unwrap_or(0), number),
            source: Source::Video(video),
        })
    };
    let all = (0..streams.into()).map(stream).collect::<Result<_>>()?;
    Ok((all, several(format!("{format}, {}", args.schedule))))
}

/// Returns SO_MAX_PACING_RATE: bytes a second as fq counts them, with Ethernet's header.
fn pacing_rate(source: &Source, to: SocketAddr) -> u64 {
    let ip_bytes = if to.is_ipv6() { 40 } else { 20 };
    let below_udp = ip_bytes + ETHERNET_BYTES as u32;
    match source {
        Source::Video(video) => video.active_ip_bytes_per_s(below_udp),
        Source::Audio(audio) => audio.ip_bytes_per_s(below_udp),
    }
}

fn launch_error(error: io::Error, clock: Clock) -> anyhow::Error {
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    let text = match clock {
        Clock::Tai if is_denied => {
            "--by so-txtime with --clock tai needs CAP_NET_ADMIN; --clock monotonic does not"
        }
        _ => "--by so-txtime: the kernel refuses SO_TXTIME",
    };
    anyhow::Error::from(error).context(text)
}

fn text(statistics: &Statistics, style: Style) -> String {
    let seconds = number(statistics.sent_for_ns as f64 / 1e9, 3);
    let mut words = format!(
        "{} packets in {seconds} s, {} not taken by the network.",
        count(statistics.sent),
        count(statistics.unsent),
    );
    words += &match statistics.late {
        0 => " All were handed over before they were due.".to_owned(),
        late => format!(
            " {} were handed over after they were due, the latest by {} µs.",
            count(late),
            number(statistics.latest_ns as f64 / 1e3, 1)
        ),
    };
    if let Some(missed) = statistics.missed {
        words += &format!(
            " Launch times: {} missed, {} refused.",
            count(missed),
            count(statistics.refused.unwrap_or(0))
        );
    }
    paragraph(&words, style)
}
