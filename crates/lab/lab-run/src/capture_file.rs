// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads packets from a capture or from one of the laboratory's timelines. The file's contents
//! decide its format, not its name.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::Path;

use anyhow::{Context, Result};
use capture::error::{Damage, ReadError};
use capture::flows::FlowTable;
use capture::frame::BEYOND_SECOND;
use capture::reader::read_capture;
use capture::record::Record;
use capture::timeline::TimelineReader;

/// The contents of a file, whatever its format.
pub struct Source {
    /// Packets, in order of time.
    pub records: Vec<Record>,
    /// The flows that the packets belong to.
    pub flows: FlowTable,
    /// Resolution of the packets' times, ps.
    pub resolution_ps: u64,
    /// Where the file is damaged: nothing after that was read.
    pub damage: Option<Damage>,
    /// Notes on packets that were left out or sorted.
    pub notes: Vec<String>,
}

/// First bytes of files that hold captures: pcap of either byte order and resolution, pcapng, gzip,
/// zstd. Timelines have no such signature.
const CAPTURES: [[u8; 4]; 6] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0x28, 0xb5, 0x2f, 0xfd],
];
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a file; `-` is standard input.
///
/// # Errors
/// When the file cannot be read at all. Of a file that is damaged further on, the packets before
/// the damage are returned.
pub fn read(path: &Path) -> Result<Source> {
    if path.as_os_str() == "-" {
        return read_packets(stdin().lock());
    }
    let mut file = BufReader::new(File::open(path)?);
    let first = file.fill_buf()?;
    let is_capture = first.starts_with(&GZIP) || CAPTURES.iter().any(|m| first.starts_with(m));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let end = name.strip_prefix("timeline.").map(str::to_owned);
    if let (Some(end), false) = (end, is_capture) {
        return read_timeline(file, &path.with_file_name(format!("flows.{end}")));
    }
    read_packets(file)
}

fn read_packets(from: impl Read) -> Result<Source> {
    let capture = read_capture(from)?;
    let mut notes = Vec::new();
    if capture.out_of_order > 0 {
        notes.push(format!(
            "{} packets were out of order and sorted",
            capture.out_of_order
        ));
    }
    if capture.cut > 0 {
        notes.push(format!(
            "{} packets have IP headers that state more than the length that the file, or the mirror, says: they were \
             cut, and count with what their IP headers state",
            capture.cut
        ));
    }
    if capture.beyond_second > 0 {
        notes.push(format!("{} {BEYOND_SECOND}", capture.beyond_second));
    }
    if capture.skipped > 0 {
        notes.push(format!(
            "{} packets of an unknown link type or interface left out",
            capture.skipped
        ));
    }
    Ok(Source {
        resolution_ps: capture
            .interfaces
            .iter()
            .map(|i| i.resolution_ps)
            .max()
            .unwrap_or(1),
        records: capture.records,
        flows: capture.flows,
        damage: capture.damage,
        notes,
    })
}

fn read_timeline(file: impl Read, flows: &Path) -> Result<Source> {
    let text = fs::read_to_string(flows)
        .with_context(|| format!("a timeline needs its flow table {}", flows.display()))?;
    let flows = FlowTable::parse(&text).with_context(|| flows.display().to_string())?;
    let mut records = Vec::new();
    let mut damage = None;
    for item in TimelineReader::new(file) {
        match item {
            Ok(record) => records.push(record),
            Err(error @ ReadError::Io { .. }) => return Err(error.into()),
            Err(error) => {
                let offset = (records.len() * capture::timeline::RECORD_BYTES) as u64;
                damage = Some(Damage {
                    offset,
                    what: error.to_string(),
                });
            }
        }
    }
    Ok(Source {
        records,
        flows,
        resolution_ps: 1,
        damage,
        notes: Vec::new(),
    })
}
