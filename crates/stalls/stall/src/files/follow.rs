// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads captures while they are written, and gives each stall as a line of JSON when it is
//! over (`docs/use/formats.md`, "Followed stalls").

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use capture::choice::Choice;
use capture::segments::following::{Following, Next};
use serde::Serialize;

use super::ring::Ring;
use crate::captures::confidence_most;
use crate::follow::{Because, ConnectionReport, Follower, Limits, Report, StallReport};
use crate::{Cause, Options, Side, Stall};

/// How long the follower waits before it looks again for more.
const PAUSE: Duration = Duration::from_millis(50);
/// With nothing new for so long, what followed a pause is taken for known.
const QUIET: Duration = Duration::from_secs(1);
/// With no file of the name for so long, it is said.
const NO_FILE: Duration = Duration::from_secs(3);
/// Segments between two looks at whether to go on.
const LOOK_EVERY: u32 = 4096;
/// Bytes of standard input that are read at a time, and chunks that wait.
const CHUNK_BYTES: usize = 1 << 16;
const CHUNKS: usize = 16;

/// What is followed.
pub enum Input {
    /// Standard input or a pipe of this name, to its end.
    Pipe(String, Option<Chunks>),
    /// Files, until the caller ends it.
    Files(Ring),
}

impl Input {
    /// Returns the input that a path names: "-", a named pipe, a file, a folder, or the files of a
    /// ring.
    pub fn new(path: &Path) -> Self {
        if path.as_os_str() == "-" {
            let stdin = || Ok(Box::new(io::stdin()) as Box<dyn Read>);
            Self::Pipe("standard input".to_owned(), Some(Chunks::of(stdin)))
        } else if fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo()) {
            // The thread waits for its writer, too.
            let opened = path.to_owned();
            let open = move || Ok(Box::new(File::open(opened)?) as Box<dyn Read>);
            Self::Pipe(path.display().to_string(), Some(Chunks::of(open)))
        } else {
            Self::Files(Ring::new(path))
        }
    }

    /// Returns the next capture and its name; `None` if there is none yet.
    fn next(&mut self) -> io::Result<Option<(String, Box<dyn Read>)>> {
        Ok(match self {
            Self::Pipe(name, chunks) => {
                let chunks = chunks.take();
                chunks.map(|chunks| (name.clone(), Box::new(chunks) as Box<dyn Read>))
            }
            Self::Files(ring) => ring
                .advance()?
                .map(|tail| (ring.name(), Box::new(tail) as Box<dyn Read>)),
        })
    }

    /// Returns whether nothing more can come.
    fn is_over(&self) -> bool {
        matches!(self, Self::Pipe(_, None))
    }
}

/// A pipe, read by a thread of its own so that nothing waits for it.
pub struct Chunks {
    from: Receiver<io::Result<Vec<u8>>>,
    rest: io::Cursor<Vec<u8>>,
}

impl Chunks {
    fn of(open: impl FnOnce() -> io::Result<Box<dyn Read>> + Send + 'static) -> Self {
        let (to, from) = sync_channel(CHUNKS);
        thread::spawn(move || {
            let mut pipe = match open() {
                Ok(pipe) => pipe,
                // An error is that the follower has ended.
                Err(error) => return drop(to.send(Err(error))),
            };
            loop {
                let mut chunk = vec![0; CHUNK_BYTES];
                let read = pipe.read(&mut chunk);
                let is_last = !matches!(read, Ok(1..));
                let chunk = read.map(|read| {
                    chunk.truncate(read);
                    chunk
                });
                if to.send(chunk).is_err() || is_last {
                    return;
                }
            }
        });
        let rest = io::Cursor::default();
        Self { from, rest }
    }
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.rest.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        match self.from.recv_timeout(PAUSE) {
            Ok(chunk) => {
                self.rest = io::Cursor::new(chunk?);
                self.rest.read(buffer)
            }
            Err(RecvTimeoutError::Timeout) => Err(io::ErrorKind::WouldBlock.into()),
            Err(RecvTimeoutError::Disconnected) => Ok(0),
        }
    }
}

/// How stalls are followed.
pub struct Plan {
    /// Which packets are read.
    pub choice: Choice,
    /// Shortest stall that counts, if one was chosen, ns.
    pub min_stall_ns: Option<u64>,
    /// What is kept.
    pub limits: Limits,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Line<'a> {
    Start {
        format: &'static str,
    },
    Stall {
        connection: u64,
        client: String,
        server: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        tunnel: String,
        /// When it began, seconds since 1970.
        start_unix_s: f64,
        #[serde(flatten)]
        stall: &'a Stall,
    },
    Connection {
        number: u64,
        client: String,
        server: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        tunnel: String,
        because: Because,
        start_unix_s: f64,
        start_s: f64,
        duration_s: f64,
        packets: u64,
        /// Bytes to the server and to the client, and retransmitted segments.
        bytes: [u64; 2],
        retransmissions: [u64; 2],
        stalls: u64,
        time_lost_s: f64,
    },
    Note {
        text: String,
    },
    Summary {
        packets: u64,
        segments: u64,
        connections: u64,
        stalls: u64,
        notes: Vec<String>,
        by_cause: Vec<Sum>,
    },
}

#[derive(Serialize)]
struct Sum {
    cause: Cause,
    side: Side,
    stalls: u64,
    time_lost_s: f64,
}

/// Writes what is followed.
struct Lines<'a> {
    out: &'a mut dyn Write,
    stalls: u64,
    sums: BTreeMap<(Cause, Side), (u64, u64)>,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Lines<'_> {
    fn line(&mut self, line: &Line<'_>) -> Result<()> {
        serde_json::to_writer(&mut *self.out, line)?;
        writeln!(self.out)?;
        Ok(())
    }

    /// Writes what there is to report, and flushes it.
    fn reports(&mut self, follower: &mut Follower, following: &Following) -> Result<()> {
        let start_ns = follower.start_ns();
        let mut is_any = false;
        for report in follower.reports() {
            is_any = true;
            match report {
                Report::Stall(report) => self.stall(&report, start_ns, following)?,
                Report::Connection(report) => self.connection(&report, start_ns, following)?,
            }
        }
        if is_any {
            self.out.flush()?;
        }
        Ok(())
    }

    fn stall(&mut self, of: &StallReport, start_ns: u64, following: &Following) -> Result<()> {
        let stall = &of.stall;
        self.stalls += 1;
        let sum = self.sums.entry((stall.cause, stall.side)).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(stall.duration_ns));
        self.line(&Line::Stall {
            connection: of.connection,
            client: of.client.to_string(),
            server: of.server.to_string(),
            tunnel: following.encapsulations().name(of.encapsulation),
            start_unix_s: seconds(start_ns + stall.start_ns),
            stall,
        })
    }

    fn connection(
        &mut self,
        of: &ConnectionReport,
        start_ns: u64,
        following: &Following,
    ) -> Result<()> {
        let connection = &of.connection;
        let flows = &connection.flows;
        self.line(&Line::Connection {
            number: of.number,
            client: connection.client.to_string(),
            server: connection.server.to_string(),
            tunnel: following.encapsulations().name(connection.encapsulation),
            because: of.because,
            start_unix_s: seconds(start_ns + connection.start_ns),
            start_s: seconds(connection.start_ns),
            duration_s: seconds(connection.duration_ns),
            packets: connection.packets,
            bytes: [0, 1].map(|i: usize| flows[i].bytes),
            retransmissions: [0, 1].map(|i: usize| flows[i].retransmissions.total()),
            stalls: of.stalls,
            time_lost_s: seconds(of.time_lost_ns),
        })
    }

    /// Notes that no capture of the name is there.
    fn nothing_yet(&mut self, input: &Input) -> Result<()> {
        if let Input::Files(ring) = input {
            let text = format!("no capture with a packet is there yet: {}", ring.awaited());
            self.line(&Line::Note { text })?;
            self.out.flush()?;
        }
        Ok(())
    }

    /// Notes damages and files that were overwritten too soon.
    fn notes(&mut self, following: &mut Following, input: &Input) -> Result<()> {
        let damages = following.take_damages();
        let mut notes: Vec<_> = damages
            .iter()
            .map(|(name, d)| format!("{name}: {d}"))
            .collect();
        if let Input::Files(ring) = input {
            if ring.was_lost() {
                let name = ring.name();
                notes.push(format!("{name} was overwritten before all of it was read"));
            }
        }
        for text in notes {
            self.line(&Line::Note { text })?;
        }
        Ok(())
    }

    fn summary(&mut self, follower: &Follower, following: &Following) -> Result<()> {
        let counts = following.counts();
        let mut sums: Vec<_> = std::mem::take(&mut self.sums).into_iter().collect();
        sums.sort_by_key(|(_, (_, ns))| std::cmp::Reverse(*ns));
        let sum = |((cause, side), (stalls, ns))| Sum {
            cause,
            side,
            stalls,
            time_lost_s: seconds(ns),
        };
        self.line(&Line::Summary {
            packets: counts.packets,
            segments: counts.segments,
            connections: follower.opened(),
            stalls: self.stalls,
            notes: counts.notes(),
            by_cause: sums.into_iter().map(sum).collect(),
        })?;
        self.out.flush()?;
        Ok(())
    }
}

fn cannot() -> &'static str {
    "cannot read the folder of the captures"
}

/// Follows the input until it is over, or `is_over` says so, which is asked at least some
/// times a second. Returns the number of stalls.
pub fn follow(
    mut input: Input,
    plan: Plan,
    out: &mut dyn Write,
    mut is_over: impl FnMut() -> Result<bool>,
) -> Result<u64> {
    let options = Options::of_stalls_from(plan.min_stall_ns);
    let mut follower = Follower::new(options, plan.limits);
    let mut following = Following::new(plan.choice);
    let mut lines = Lines {
        out,
        stalls: 0,
        sums: BTreeMap::new(),
    };
    let format = "pspacer-stalls-follow-1";
    lines.line(&Line::Start { format })?;
    lines.out.flush()?;
    let began = Instant::now();
    let mut is_said = false;
    let mut came = began;
    let mut is_quiet = true;
    let mut until_look = LOOK_EVERY;
    loop {
        match following.next() {
            Next::Segment(segment) => {
                follower.segment(&segment);
                lines.reports(&mut follower, &following)?;
                (came, is_quiet) = (Instant::now(), false);
                until_look -= 1;
                if until_look == 0 {
                    until_look = LOOK_EVERY;
                    if is_over()? {
                        break;
                    }
                }
                continue;
            }
            Next::Waiting => {
                if let Input::Files(ring) = &mut input {
                    ring.look().with_context(cannot)?;
                }
            }
            Next::End => {
                if let Some(most) = confidence_most(following.counts()) {
                    follower.believe_at_most(most);
                }
                lines.notes(&mut following, &input)?;
                if input.is_over() {
                    break;
                }
                if let Some((name, source)) = input.next().with_context(cannot)? {
                    following.begin(name, source);
                    is_said = true;
                    continue;
                }
                if !is_said && began.elapsed() >= NO_FILE {
                    is_said = true;
                    lines.nothing_yet(&input)?;
                }
            }
        }
        if !is_quiet && came.elapsed() >= QUIET {
            is_quiet = true;
            follower.settle();
            lines.reports(&mut follower, &following)?;
        }
        if is_over()? {
            break;
        }
        thread::sleep(PAUSE);
    }
    follower.finish();
    lines.reports(&mut follower, &following)?;
    lines.summary(&follower, &following)?;
    Ok(lines.stalls)
}
