// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads input with look-ahead and a known offset, and decompresses it.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::error::ReadError;

/// Looks ahead in a [`Read`]. It never holds more than was requested, rounded up to a chunk:
/// the caller checks a length field, which may be hostile, before it requests the bytes.
pub(crate) struct Lookahead<R> {
    source: R,
    buffer: Vec<u8>,
    /// Range of the buffer that holds data: `buffer[begin..end]`.
    begin: usize,
    end: usize,
    consumed: u64,
    ended: bool,
}

const CHUNK: usize = 256 * 1024;

impl<R: Read> Lookahead<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            begin: 0,
            end: 0,
            consumed: 0,
            ended: false,
        }
    }

    /// Returns the offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.consumed
    }

    /// Returns the next bytes: at least `want`, or all that are left if the input ends before.
    #[inline]
    pub(crate) fn peek(&mut self, want: usize) -> Result<&[u8], ReadError> {
        while self.end - self.begin < want && !self.ended {
            self.refill(want)?;
        }
        Ok(&self.buffer[self.begin..self.end])
    }

    /// Moves past `count` bytes that [`Self::peek`] returned.
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.begin);
        self.begin += count;
        self.consumed += count as u64;
    }

    #[cold]
    fn refill(&mut self, want: usize) -> Result<(), ReadError> {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        let room = want.max(self.end) + CHUNK;
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let outcome = loop {
            match self.source.read(&mut self.buffer[self.end..room]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match outcome {
            Ok(0) => self.ended = true,
            Ok(read) => self.end += read,
            // Nothing more for now: the same bytes are asked for again later.
            Err(source) if source.kind() == io::ErrorKind::WouldBlock => {
                return Err(ReadError::Io {
                    offset: self.consumed + self.end as u64,
                    source,
                });
            }
            Err(source) => {
                // The bytes before the failure can still be used.
                self.ended = true;
                return Err(ReadError::Io {
                    offset: self.consumed + self.end as u64,
                    source,
                });
            }
        }
        Ok(())
    }
}

type Replayed<R> = Chain<Cursor<Vec<u8>>, R>;

/// Returns the content of `source`: decompressed if it is gzip or zstd, else unchanged. The
/// first bytes decide, not a name. Files of several gzip members or zstd frames are read as
/// one.
///
/// # Errors
/// If the first bytes cannot be read, or a zstd header is broken.
pub fn unpacked<'a, R: Read + 'a>(mut source: R) -> io::Result<Box<dyn Read + 'a>> {
    let mut first = Vec::with_capacity(4);
    (&mut source).take(4).read_to_end(&mut first)?;
    let magic = first.clone();
    let whole: Replayed<R> = Cursor::new(first).chain(source);
    Ok(match magic.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::new(whole))),
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
            let mut frames = Frames::new(BufReader::new(whole));
            frames.begin()?;
            Box::new(frames)
        }
        _ => Box::new(whole),
    })
}

/// Reads all frames of a zstd file. The decoder itself stops after one frame, and treats a
/// skippable frame as an error.
struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
}

impl<R: BufRead> Frames<R> {
    fn new(source: R) -> Self {
        let decoder = FrameDecoder::new();
        Self { source, decoder }
    }

    /// Begins the next frame with content; returns `false` at the end of the input.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = (&mut self.source).take(length.into());
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(other) => return Err(broken(other)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let some = BlockDecodingStrategy::UptoBytes(buffer.len());
                let decoded = self.decoder.decode_blocks(&mut self.source, some);
                decoded.map_err(broken)?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() || !self.begin()? {
                return Ok(read);
            }
        }
    }
}

fn broken(error: FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Slow<'a>(&'a [u8]);
    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = usize::from(!self.0.is_empty()).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn looks_ahead_over_short_reads() {
        let bytes: Vec<u8> = (0..200).collect();
        let mut input = Lookahead::new(Slow(&bytes));
        assert_eq!(input.peek(3).unwrap()[..3], [0, 1, 2]);
        input.consume(2);
        assert_eq!(input.offset(), 2);
        assert_eq!(input.peek(150).unwrap()[..150], bytes[2..152]);
        assert_eq!(input.peek(198).unwrap().len(), 198);
        input.consume(198);
        assert!(input.peek(1).unwrap().is_empty());
        assert_eq!(input.offset(), 200);
    }

    #[test]
    fn unpacks_by_magic() {
        use std::io::Write as _;
        let text = b"the same bytes, packed or not".repeat(100);
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&text).unwrap();
        let gz = gz.finish().unwrap();
        let zst = ruzstd::encoding::compress_to_vec(
            text.as_slice(),
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        let skippable = [0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        for (packed, times) in [
            (text.clone(), 1),
            (gz.clone(), 1),
            (zst.clone(), 1),
            // As parallel packers and `cat` write them.
            ([&gz[..], &gz].concat(), 2),
            ([&zst[..], &skippable, &zst, &zst].concat(), 3),
            ([&skippable[..], &zst].concat(), 1),
        ] {
            let mut out = Vec::new();
            unpacked(packed.as_slice())
                .unwrap()
                .read_to_end(&mut out)
                .unwrap();
            assert!(out == text.repeat(times), "{} times", times);
        }
    }
}
