// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as a timeline: what is read is written again as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use capture::record::Record;
use capture::timeline::{RECORD_BYTES, TimelineReader, write_timeline};

fuzz_target!(|bytes: &[u8]| {
    let records: Vec<Record> = TimelineReader::new(bytes).map_while(Result::ok).collect();
    let mut again = Vec::new();
    let written = write_timeline(&mut again, &records);
    assert!(written.is_ok() && again == bytes[..records.len() * RECORD_BYTES]);
});
