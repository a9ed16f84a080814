// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any text as a capture filter and as a moment, and any bytes as the packets that a filter is
//! asked about.
#![no_main]

use std::io::{Cursor, Read};

use capture::choice::{Choice, Moment};
use capture::expression::Expression;
use capture::segments::{Segments, Source};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let (text, packet) = bytes.split_at(bytes.len().min(64));
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let _ = text.parse::<Moment>();
    let Ok(filter) = text.trim_end_matches('\0').parse::<Expression>() else {
        return;
    };
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1u32, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    let length = packet.len() as u32;
    file.extend([length.to_le_bytes(), length.to_le_bytes()].concat());
    file.extend(packet);
    let choice = Choice {
        filter: Some(filter),
        ..Choice::default()
    };
    let source = Source::new("any", || Ok(Box::new(Cursor::new(&file)) as Box<dyn Read + '_>));
    if let Ok(mut segments) = Segments::open_chosen(vec![source], choice) {
        while segments.next().is_some() {}
        assert_eq!(segments.counts().packets, 1);
    }
});
