// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes the cable's timeline: 32 bytes per frame, little endian, no header
//! (`docs/use/formats.md`, "Timeline").

use std::io::{self, Read, Write};

use crate::error::ReadError;
use crate::input::Lookahead;
use crate::record::{Fate, Kind, Record};

/// Bytes of one record in a file.
pub const RECORD_BYTES: usize = 32;

impl Record {
    /// Returns the record's bytes in a timeline.
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        let mut out = [0; RECORD_BYTES];
        out[0..8].copy_from_slice(&self.start_ps.to_le_bytes());
        out[8..16].copy_from_slice(&self.arrive_ps.to_le_bytes());
        out[16..20].copy_from_slice(&self.frame_bytes.to_le_bytes());
        out[20..24].copy_from_slice(&self.wire_bytes.to_le_bytes());
        out[24..28].copy_from_slice(&self.flow.to_le_bytes());
        out[28] = self.kind as u8;
        out[29] = self.fate as u8;
        out[30..32].copy_from_slice(&self.queue.to_le_bytes());
        out
    }

    /// Reads a record from the bytes of a timeline.
    ///
    /// # Errors
    /// Says what is wrong if the kind or fate is unknown, or the wire length is less than the
    /// frame length.
    pub fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> Result<Self, String> {
        let [a, b, c, d] = [0, 8, 16, 24].map(|i| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[i..i + 8]);
            u64::from_le_bytes(word)
        });
        // The words `c` and `d` are read as low and high half.
        let (frame_bytes, wire_bytes, flow) = (c as u32, (c >> 32) as u32, d as u32);
        let kind = Kind::try_from(bytes[28]).map_err(|k| format!("no such frame kind: {k}"))?;
        let fate = Fate::try_from(bytes[29]).map_err(|f| format!("no such fate: {f}"))?;
        if wire_bytes < frame_bytes {
            return Err(format!(
                "a frame of {frame_bytes} bytes takes {wire_bytes} on the wire"
            ));
        }
        let queue = u16::from_le_bytes([bytes[30], bytes[31]]);
        Ok(Self {
            start_ps: a,
            arrive_ps: b,
            frame_bytes,
            wire_bytes,
            flow,
            kind,
            fate,
            queue,
        })
    }
}

/// Iterates over the records of a timeline, in constant memory. It ends after an error; the
/// records before the error are valid.
pub struct TimelineReader<R> {
    input: Lookahead<R>,
    last_start_ps: u64,
    done: bool,
}

impl<R: Read> TimelineReader<R> {
    /// Creates a reader, which does its own buffering.
    pub fn new(source: R) -> Self {
        Self {
            input: Lookahead::new(source),
            last_start_ps: 0,
            done: false,
        }
    }

    fn read(&mut self) -> Result<Option<Record>, ReadError> {
        let offset = self.input.offset();
        let bytes = self.input.peek(RECORD_BYTES)?;
        let Some(bytes) = bytes.first_chunk::<RECORD_BYTES>() else {
            let have = bytes.len() as u64;
            return if have == 0 {
                Ok(None)
            } else {
                Err(ReadError::Truncated {
                    offset,
                    have,
                    want: RECORD_BYTES as u64,
                })
            };
        };
        let record =
            Record::from_bytes(bytes).map_err(|what| ReadError::Malformed { offset, what })?;
        if record.start_ps < self.last_start_ps {
            let what = format!(
                "a frame that leaves at {} ps, before the one ahead of it at {} ps",
                record.start_ps, self.last_start_ps
            );
            return Err(ReadError::Malformed { offset, what });
        }
        self.last_start_ps = record.start_ps;
        self.input.consume(RECORD_BYTES);
        Ok(Some(record))
    }
}

impl<R: Read> Iterator for TimelineReader<R> {
    type Item = Result<Record, ReadError>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self.read().transpose();
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}

/// Writes records, in order of departure.
pub fn write_timeline<'a, W: Write>(
    mut out: W,
    records: impl IntoIterator<Item = &'a Record>,
) -> io::Result<()> {
    for record in records {
        out.write_all(&record.to_bytes())?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(start_ps: u64) -> Record {
        Record {
            start_ps,
            arrive_ps: start_ps + 7,
            frame_bytes: 1514,
            wire_bytes: 1538,
            flow: 3,
            kind: Kind::Data,
            fate: Fate::Sunk,
            queue: 0x0102,
        }
    }

    #[test]
    fn layout_is_that_of_the_format() {
        let bytes = record(0x0807_0605_0403_0201).to_bytes();
        assert_eq!(bytes[..9], [1, 2, 3, 4, 5, 6, 7, 8, 8]);
        assert_eq!(
            bytes[16..],
            [0xea, 5, 0, 0, 2, 6, 0, 0, 3, 0, 0, 0, 0, 4, 2, 1]
        );
    }

    #[test]
    fn every_truncation_gives_the_whole_records() {
        let mut bytes = Vec::new();
        write_timeline(&mut bytes, &[record(1), record(2), record(2)]).unwrap();
        for end in 0..=bytes.len() {
            let items: Vec<_> = TimelineReader::new(&bytes[..end]).collect();
            let whole = end / RECORD_BYTES;
            assert!(items[..whole].iter().all(Result::is_ok));
            if end % RECORD_BYTES == 0 {
                assert_eq!(items.len(), whole);
            } else {
                let Some(Err(ReadError::Truncated { offset, have, .. })) = items.last() else {
                    panic!("{items:?}");
                };
                assert_eq!((*offset, *have), ((whole * 32) as u64, (end % 32) as u64));
            }
        }
    }

    #[test]
    fn disorder_and_nonsense_are_refused_with_their_place() {
        let mut bytes = Vec::new();
        write_timeline(&mut bytes, &[record(2), record(1)]).unwrap();
        let error = TimelineReader::new(bytes.as_slice())
            .nth(1)
            .unwrap()
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("at byte 32"), "{error}");
        bytes[28] = 9;
        let error = TimelineReader::new(bytes.as_slice())
            .next()
            .unwrap()
            .unwrap_err()
            .to_string();
        assert_eq!(error, "no such frame kind: 9 at byte 0");
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for record in TimelineReader::new(bytes.as_slice()).flatten() {
                prop_assert_eq!(Record::from_bytes(&record.to_bytes()), Ok(record));
            }
        }
    }
}
