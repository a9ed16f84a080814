// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a file.

use std::fmt;

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The underlying reader failed.
    #[error("cannot read at byte {offset}: {source}")]
    Io {
        /// Bytes read before it failed.
        offset: u64,
        /// Its error.
        source: std::io::Error,
    },
    /// Not a file of this format.
    #[error("expected {expected}; the file starts with {}", Hex(.first))]
    Foreign {
        /// What would have been understood.
        expected: &'static str,
        /// The first bytes, at most 16.
        first: Vec<u8>,
    },
    /// A record that cannot be right.
    #[error("{what} at byte {offset}")]
    Malformed {
        /// Where it begins.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The file ends inside a record.
    #[error("the file ends inside the record at byte {offset}: {have} of {want} bytes")]
    Truncated {
        /// Where the record begins.
        offset: u64,
        /// Bytes there are.
        have: u64,
        /// Bytes there should be.
        want: u64,
    },
    /// A line of a text file.
    #[error("line {line}: {what}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

/// Why a file was read only in part: everything before `offset` was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// First byte not used; of the unpacked data, if the file is compressed.
    pub offset: u64,
    /// What is wrong there.
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

/// Bytes as `0a 1b 2c`, and nothing as `nothing: it is empty`.
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
