// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the line numbers of raw video (RFC 4175) say of its raster, and whether they agree with each other, with the
//! timestamps and with the markers. Senders number the lines of an interlaced frame within each field (ST
//! 2110-20) or through the frame (GStreamer), and those of 4:2:0 by pairs.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::Scan;
use crate::rfc4175::Lines;
use crate::stream::{Numbered, Stream};

/// Largest step of line numbers: pairs of lines of a field, numbered through the frame.
const MOST_STEP: u16 = 4;

/// A raster by its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lined {
    /// Lines of a frame.
    pub height: u32,
    /// How they are scanned.
    pub scan: Scan,
    /// Pixels of a line, where lines have several pieces.
    pub width: Option<u32>,
    /// Sampling and depth, in words, where lines have several pieces.
    pub sampling: Option<&'static str>,
}

/// How often something that should hold does.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    all: u64,
    good: u64,
}

impl Share {
    fn count(&mut self, is_good: bool) {
        self.all += 1;
        self.good += u64::from(is_good);
    }

    /// Nine of ten, of those that there are.
    fn holds(self) -> bool {
        self.good * 10 >= self.all * 9
    }
}

/// A packet of raw video.
#[derive(Clone, Copy)]
struct Piece {
    lines: Lines,
    marker: bool,
    timestamp: i64,
}

/// Returns what the lines say; numbers are in the order of `numbered`.
pub fn read(stream: &Stream, numbered: &[Numbered]) -> Result<Lined, String> {
    let mut all = Share::default();
    for packet in &stream.packets {
        all.count(packet.lines.is_some());
    }
    if !all.holds() {
        return Err("its packets have no headers of RFC 4175".to_owned());
    }
    let piece = |n: &Numbered| {
        let packet = stream.packets.get(n.at)?;
        Some(Piece {
            lines: packet.lines?,
            marker: packet.marker,
            timestamp: n.timestamp,
        })
    };
    let pairs = || {
        let next = |pair: &[Numbered]| pair[1].sequence == pair[0].sequence + 1;
        let both = move |pair: &[Numbered]| piece(&pair[0]).zip(piece(&pair[1]));
        numbered
            .windows(2)
            .filter(move |pair| next(pair))
            .filter_map(both)
    };
    let rows = Rows::of(stream)?;
    let [mut order, mut begins, mut ends, mut within] = [Share::default(); 4];
    for (a, b) in pairs() {
        let is_same_field = a.lines.last.second_field == b.lines.first.second_field;
        if a.timestamp == b.timestamp && is_same_field {
            let place = |line: crate::rfc4175::Line| (line.row, line.offset);
            order.count(place(a.lines.last) < place(b.lines.first));
            within.count(!a.marker);
        } else {
            let first = if b.lines.first.second_field {
                rows.first_of_second
            } else {
                0
            };
            begins.count((b.lines.first.row, b.lines.first.offset) == (first, 0));
            // Segments of one time may have one marker, at the frame's end.
            ends.count(a.marker || a.timestamp == b.timestamp);
        }
    }
    for (share, what) in [
        (order, "its lines do not follow each other"),
        (begins, "its frames do not begin with their first line"),
        (ends, "its markers do not end its frames"),
        (within, "its markers do not end its frames"),
    ] {
        if !share.holds() {
            return Err(format!(
                "its packets have headers like RFC 4175's, but {what}"
            ));
        }
    }
    let bits = bits_of_a_column(pairs());
    let width = match bits {
        Some(bits) => Some(width(pairs(), bits)?),
        None => None,
    };
    Ok(Lined {
        height: rows.height,
        scan: rows.scan,
        width,
        sampling: bits.and_then(|bits| sampling(bits, rows.by_pairs)),
    })
}

/// The numbers of lines.
struct Rows {
    height: u32,
    scan: Scan,
    first_of_second: u16,
    /// Whether only each second line of a frame or a field is numbered.
    by_pairs: bool,
}

impl Rows {
    fn of(stream: &Stream) -> Result<Self, String> {
        let wrong = |what: &str| format!("its packets have headers like RFC 4175's, but {what}");
        let mut fields = [BTreeSet::new(), BTreeSet::new()];
        for lines in stream.packets.iter().filter_map(|packet| packet.lines) {
            for line in [lines.first, lines.last] {
                fields[usize::from(line.second_field)].insert(line.row);
            }
        }
        let [first, second] = &fields;
        let (Some(low), Some(top)) = (first.first(), first.last()) else {
            return Err(wrong("all lines are of the second field"));
        };
        let step = step(first).max(1);
        if *low != 0 || first.len() < 2 {
            return Err(wrong("their line numbers do not begin at 0 and go on"));
        }
        let has_most = |rows: &BTreeSet<u16>, low: u16, top: u16| {
            rows.len() * 10 >= usize::from((top - low) / step + 1) * 9
        };
        if step > MOST_STEP || !has_most(first, *low, *top) {
            return Err(wrong("most of their line numbers do not come"));
        }
        let height = u32::from(*top) + u32::from(step);
        let (Some(low), Some(last)) = (second.first(), second.last()) else {
            return Ok(Self {
                height,
                scan: Scan::Progressive,
                first_of_second: 0,
                by_pairs: step == 2,
            });
        };
        // The lines of the second field are those between: even steps from line 1 on, or, of pairs, from 2 on.
        let is_through = *low > 0 && step % 2 == 0;
        let is_known =
            (*low == 0 || (is_through && *low * 2 <= step.max(2))) && has_most(second, *low, *last);
        if !is_known {
            return Err(wrong("the fields' line numbers do not go together"));
        }
        let of_second = u32::from(*last - *low) + u32::from(step);
        Ok(Self {
            height: if is_through {
                height.max(of_second)
            } else {
                height + of_second
            },
            scan: Scan::Interlaced,
            first_of_second: *low,
            by_pairs: step == if is_through { 4 } else { 2 },
        })
    }
}

/// The greatest common step of numbers.
fn step(rows: &BTreeSet<u16>) -> u16 {
    let gcd = |mut a: u16, mut b: u16| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let numbers: Vec<_> = rows.iter().copied().collect();
    numbers
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .fold(0, gcd)
}

/// Returns the bits of a column of pixels: of one line, or, of 4:2:0, of two. `None` where lines have one piece.
fn bits_of_a_column(pairs: impl Iterator<Item = (Piece, Piece)>) -> Option<u32> {
    let mut found: BTreeMap<u32, u64> = BTreeMap::new();
    let mut all = 0u64;
    for (a, b) in pairs {
        let (a, b) = (a.lines.last, b.lines.first);
        if a.row == b.row && a.second_field == b.second_field && a.offset < b.offset {
            all += 1;
            let (bits, pixels) = (u32::from(a.length) * 8, u32::from(b.offset - a.offset));
            if bits % pixels == 0 {
                *found.entry(bits / pixels).or_default() += 1;
            }
        }
    }
    let (bits, count) = found.into_iter().max_by_key(|(_, count)| *count)?;
    (count * 10 >= all * 9).then_some(bits)
}

/// Returns the pixels of a line by the last piece of each.
fn width(pairs: impl Iterator<Item = (Piece, Piece)>, bits: u32) -> Result<u32, String> {
    let mut found: BTreeMap<u32, u64> = BTreeMap::new();
    let mut all = 0u64;
    for (a, b) in pairs {
        let (a, b) = (a.lines.last, b.lines.first);
        if (a.row, a.second_field) != (b.row, b.second_field) && b.offset == 0 {
            all += 1;
            let end = u32::from(a.offset) + u32::from(a.length) * 8 / bits.max(1);
            *found.entry(end).or_default() += 1;
        }
    }
    match found.into_iter().max_by_key(|(_, count)| *count) {
        Some((width, count)) if count * 10 >= all * 9 => Ok(width),
        Some(_) => Err(
            "its packets have headers like RFC 4175's, but its lines end at different \
             pixels"
                .to_owned(),
        ),
        // Every packet begins within a line: its longest reach.
        None => {
            Err("its packets have headers like RFC 4175's, but no packet begins a line".to_owned())
        }
    }
}

/// Names the sampling by the pixel groups of SMPTE ST 2110-20, 6.2.4.
fn sampling(bits: u32, by_pairs: bool) -> Option<&'static str> {
    Some(match (bits, by_pairs) {
        (24, true) => "4:2:0 8 bit",
        (30, true) => "4:2:0 10 bit",
        (36, true) => "4:2:0 12 bit",
        // 4:2:0 as FFmpeg numbers it: both chroma samples of a pair divided among its lines.
        (12, false) => "4:2:0 8 bit or 4:1:1 8 bit",
        (16, false) => "4:2:2 8 bit",
        (20, false) => "4:2:2 10 bit",
        (24, false) => "4:2:2 12 bit or 4:4:4 8 bit",
        (30, false) => "4:4:4 10 bit",
        (32, false) => "4:2:2 16 bit",
        (36, false) => "4:4:4 12 bit",
        (48, false) => "4:4:4 16 bit",
        _ => return None,
    })
}
