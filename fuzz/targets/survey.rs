// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as a capture, and what was read of them surveyed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use capture::reader::read_capture;
use metrics::survey::{Part, Series, survey};

fuzz_target!(|bytes: &[u8]| {
    let Ok(capture) = read_capture(bytes) else { return };
    assert!(capture.records.is_sorted_by_key(|r| r.start_ps));
    let series = Series {
        name: "fuzz",
        records: &capture.records,
        flows: &capture.flows,
        rate_bps: 1_000_000_000,
        mtu: 1500,
    };
    let _ = survey(&series, Part::default(), |_| true);
});
