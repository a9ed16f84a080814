// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames as a pcapng file: a section, one Ethernet interface with nanoseconds, enhanced packet
//! blocks.

use crate::record::Capture;

/// Appends a block: type, length, body padded to words, length.
fn push_block(file: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let padded = body.len().div_ceil(4) * 4;
    let length = (padded + 12) as u32;
    file.extend(kind.to_le_bytes());
    file.extend(length.to_le_bytes());
    file.extend(body);
    file.resize(file.len() + padded - body.len(), 0);
    file.extend(length.to_le_bytes());
}

/// Returns the capture as a pcapng file.
pub fn file(capture: &Capture) -> Vec<u8> {
    let mut file = Vec::new();
    let mut section = Vec::new();
    section.extend(0x1a2b_3c4d_u32.to_le_bytes());
    section.extend([1, 0, 0, 0]);
    section.extend(u64::MAX.to_le_bytes());
    push_block(&mut file, 0x0a0d_0d0a, &section);
    let mut interface = Vec::new();
    interface.extend([1, 0, 0, 0]);
    interface.extend((capture.snap_bytes as u32).to_le_bytes());
    // if_tsresol: 10^-9 s; then the end of the options.
    interface.extend([9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    push_block(&mut file, 1, &interface);
    for record in &capture.records {
        let frame = record.frame(&capture.connections);
        let kept = &frame[..frame.len().min(capture.snap_bytes)];
        let time_ns = record.wall_ns();
        let mut body = Vec::new();
        body.extend(0_u32.to_le_bytes());
        body.extend(((time_ns >> 32) as u32).to_le_bytes());
        body.extend((time_ns as u32).to_le_bytes());
        body.extend((kept.len() as u32).to_le_bytes());
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend(kept);
        push_block(&mut file, 6, &body);
    }
    file
}
