// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of capture and timeline files.

use std::borrow::Cow;
use std::fmt;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The underlying reader failed.
    #[error("cannot read at byte {offset}: {source}")]
    Io {
        /// Bytes read before the failure.
        offset: u64,
        source: std::io::Error,
    },
    /// The file is not of this format.
    #[error("expected {expected}; the file starts with {}", Hex(.first))]
    Foreign {
        /// The formats that are supported here.
        expected: Cow<'static, str>,
        /// The first bytes of the file, at most 16.
        first: Vec<u8>,
    },
    /// A record that contradicts the format.
    #[error("{what} at byte {offset}")]
    Malformed {
        /// Offset of its first byte.
        offset: u64,
        /// What is wrong with the record.
        what: String,
    },
    /// The file ends inside a record.
    #[error("the file ends inside the record at byte {offset}: {have} of {want} bytes")]
    Truncated {
        /// Offset of the record's first byte.
        offset: u64,
        /// Bytes that the file has of it.
        have: u64,
        /// Bytes that the record should have.
        want: u64,
    },
    /// A wrong line of a text file.
    #[error("line {line}: {what}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with the line.
        what: String,
    },
}

/// Why a file was read only in part. Everything before `offset` was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the first byte not used; in the decompressed data if the file is compressed.
    pub offset: u64,
    /// What is wrong at that offset.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "only the first {} bytes are used: {}",
            self.offset, self.what
        )
    }
}

impl From<ReadError> for Damage {
    fn from(error: ReadError) -> Self {
        let what = error.to_string();
        let offset = match error {
            ReadError::Io { offset, .. }
            | ReadError::Malformed { offset, .. }
            | ReadError::Truncated { offset, .. } => offset,
            ReadError::Foreign { .. } | ReadError::Line { .. } => 0,
        };
        Self { offset, what }
    }
}

/// Formats bytes as `0a 1b 2c`, and an empty slice as `nothing: it is empty`.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing: it is empty");
        }
        for (i, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if i == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}
