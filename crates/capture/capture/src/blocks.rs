// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the blocks and options of pcapng, little-endian.

use std::io::{self, Write};

pub(crate) const COMMENT: u16 = 1;
pub(crate) const IF_NAME: u16 = 2;
pub(crate) const IF_TSRESOL: u16 = 9;

/// Writes the header of a section of unknown length.
pub(crate) fn section<W: Write>(out: &mut W, comment: Option<&str>) -> io::Result<()> {
    let mut header = Vec::new();
    header.extend(0x1a2b_3c4d_u32.to_le_bytes());
    header.extend(1u16.to_le_bytes());
    header.extend(0u16.to_le_bytes());
    header.extend((-1i64).to_le_bytes());
    if let Some(comment) = comment {
        option(&mut header, COMMENT, comment.as_bytes())?;
        option(&mut header, 0, &[])?;
    }
    block(out, 0x0a0d_0d0a, &header)
}

pub(crate) fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) -> io::Result<()> {
    let length = u16::try_from(value.len()).map_err(io::Error::other)?;
    body.extend(code.to_le_bytes());
    body.extend(length.to_le_bytes());
    body.extend(value);
    pad(body);
    Ok(())
}

pub(crate) fn block<W: Write>(out: &mut W, kind: u32, body: &[u8]) -> io::Result<()> {
    let length = length_u32(body.len() + 12)?.to_le_bytes();
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&length)?;
    out.write_all(body)?;
    out.write_all(&length)
}

pub(crate) fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

pub(crate) fn length_u32(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(io::Error::other)
}
