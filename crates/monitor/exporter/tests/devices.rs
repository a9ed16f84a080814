// SPDX-License-Identifier: MIT OR Apache-2.0
//! What devices have sent, and what psp counted of it.

use crate::common::{all_types, rendered};
use crate::metrics::value;

#[test]
fn devices_say_what_psp_did_not_count() {
    let mut ports = all_types();
    let stats = &mut ports[0].psp.stats;
    (stats.gap_frames, stats.gap_wire_bytes) = (7, 7 * 84);
    let of_classes: u64 = ports[0]
        .classes
        .iter()
        .map(|of| of.psp.stats.sent_frames)
        .sum();
    ports[0].psp.stats.sent_frames = of_classes + 5;
    let of_classes_bytes = ports[0]
        .classes
        .iter()
        .map(|of| of.psp.stats.sent_wire_bytes);
    ports[0].psp.stats.sent_wire_bytes = of_classes_bytes.sum::<u64>() + 5 * 124;
    ports[0].psp.options.default_minor = 1;
    (ports[0].device_frames, ports[0].device_bytes) = (123, 45_678);
    let text = rendered(&ports, 10);
    let default = &ports[0].classes[0];
    let bytes: u64 = ports[0]
        .classes
        .iter()
        .map(|of| of.counters.sent_bytes)
        .sum();
    for (name, expected) in [
        ("sent_frames", 123),
        ("sent_bytes", 45_678),
        ("counted_frames", of_classes + 5 + 7),
        ("counted_bytes", bytes + 5 * 100 + 7 * 60),
        ("unmatched_frames", default.psp.stats.sent_frames + 5),
        ("unmatched_bytes", default.counters.sent_bytes + 5 * 100),
    ] {
        let sample = format!("psp_device_{name}_total{{device=\"eth0\"}} ");
        assert_eq!(value(&text, &sample), expected.to_string(), "{name}");
    }
    ports[0].classes.truncate(1);
    assert!(!rendered(&ports, 10).contains("psp_device_unmatched"));
}
