// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flow metrics against tables worked out by hand.

use capture::record::{Fate, Kind, Record};
use metrics::flow::{Frame, flow_metrics};
use scenario::result::FlowMetrics;
use scenario::{Layer, Target};

const GBIT: u64 = 1_000_000_000;
/// One byte time at 1 Gbit/s, ps.
const BYTE: u64 = 8_000;

fn record(start_ps: u64, frame_bytes: u32) -> Record {
    Record {
        start_ps,
        arrive_ps: start_ps + u64::from(frame_bytes + 8) * BYTE,
        frame_bytes,
        wire_bytes: frame_bytes.max(60) + 24,
        ..Record::default()
    }
}

fn frame(to_ps: u64, target: Option<Target>) -> Frame {
    Frame {
        from_ps: 0,
        to_ps,
        rate_bps: GBIT,
        mtu: 1500,
        target,
    }
}

/// A flow of 500 Mbit/s with 1514-byte frames starts one every 3028 byte times.
#[test]
fn an_evenly_paced_flow() {
    let n = 1000;
    let records: Vec<_> = (0..n).map(|i| record(i * 3028 * BYTE, 1514)).collect();
    let target = Target {
        rate_bps: 500_000_000,
        layer: Layer::Link,
    };
    let m = flow_metrics(records.iter(), &frame(n * 3028 * BYTE, Some(target)));
    assert_eq!(
        (m.frames, m.bytes, m.wire_bytes, m.dropped),
        (n, n * 1514, n * 1538, 0)
    );
    assert_eq!((m.rate_bps, m.error_pct), (500e6, Some(0.0)));
    assert_eq!(m.wire_rate_bps, 507_926_023.778);
    assert_eq!(m.ip_rate_bps, 495_376_486.129);
    for rate in [m.rate1_min_bps, m.rate1_max_bps, m.rate1_mean_bps] {
        assert_eq!(rate, Some(500e6));
    }
    for rate in [m.rate2_min_bps, m.rate2_max_bps, m.rate2_mean_bps] {
        assert_eq!(rate, Some(500e6));
    }
    for gap in [
        m.gap_min_bytes,
        m.gap_p1_bytes,
        m.gap_p50_bytes,
        m.gap_p99_bytes,
        m.gap_max_bytes,
    ] {
        assert_eq!(gap, Some(3028.0));
    }
    assert_eq!(m.gap_spread_bytes, Some(0.0));
    assert_eq!(
        (m.burstiness_bytes, m.burstiness_mtu),
        (Some(1514.0), Some(1.0))
    );
    assert_eq!(
        (m.delay_min_us, m.delay_max_us),
        (Some(12.176), Some(12.176))
    );
}

/// Two of three frames are back to back, the third comes after a pause.
#[test]
fn a_flow_by_hand() {
    let mut records = vec![
        record(0, 1514),
        record(1538 * BYTE, 1514),
        record(5000 * BYTE, 100),
    ];
    records[1].fate = Fate::DroppedFifo;
    records[1].arrive_ps = 0;
    records.insert(
        2,
        Record {
            kind: Kind::Pause,
            ..record(3076 * BYTE, 500)
        },
    );
    let target = Target {
        rate_bps: 600_000_000,
        layer: Layer::Wire,
    };
    let m = flow_metrics(records.iter(), &frame(10_000 * BYTE, Some(target)));
    assert_eq!(
        (m.frames, m.bytes, m.wire_bytes, m.dropped),
        (3, 3128, 3200, 1)
    );
    // All 3128 bytes count within 10000 byte times: the last frame counts over 5000..8462, as
    // long as the one before it.
    assert_eq!(m.rate_bps, 312_800_000.0);
    assert_eq!(m.wire_rate_bps, 320_000_000.0);
    assert_eq!(m.error_pct, Some(-46.666667));
    assert_eq!(m.rate1_max_bps, Some(984_395_318.596)); // 1514 / 1538 of the line
    assert_eq!(m.rate1_min_bps, Some(437_319_468.515)); // 1514 / 3462
    assert_eq!(m.rate1_mean_bps, Some(710_857_393.556));
    assert_eq!(m.rate2_mean_bps, Some(605_600_000.0)); // 3028 / 5000
    assert_eq!(
        (m.gap_min_bytes, m.gap_p50_bytes, m.gap_max_bytes),
        (Some(1538.0), Some(1538.0), Some(3462.0))
    );
    assert_eq!(m.gap_spread_bytes, Some(1924.0));
    // The average drains 3028 bytes in 5000 byte times: 1514 - 931.4 + 1514 stay.
    assert_eq!(m.burstiness_bytes, Some(2096.587));
    assert_eq!(m.burstiness_mtu, Some(1.385));
    assert_eq!(
        (m.delay_p50_us, m.delay_max_us),
        (Some(0.864), Some(12.176))
    );
}

#[test]
fn metrics_without_data_are_absent() {
    let none = flow_metrics([].iter(), &frame(1_000_000, None));
    assert_eq!(none, FlowMetrics::default());
    let one = flow_metrics([record(5, 1000)].iter(), &frame(8_000_000, None));
    assert_eq!((one.frames, one.rate_bps), (1, 1e9));
    assert_eq!(
        (one.rate1_min_bps, one.gap_min_bytes, one.burstiness_bytes),
        (None, None, None)
    );
    let json = serde_json::to_string(&one).unwrap();
    assert!(!json.contains("null") && !json.contains("NaN"), "{json}");
    // Two frames with the same timestamp have a gap of 0 and no rate.
    let same = flow_metrics(
        [record(5, 1000), record(5, 1000)].iter(),
        &frame(8_000_000, None),
    );
    assert_eq!(
        (same.gap_max_bytes, same.rate1_max_bps, same.burstiness_mtu),
        (Some(0.0), None, None)
    );
    // Without a line rate there are no byte times.
    let bare = Frame {
        rate_bps: 0,
        mtu: 0,
        ..frame(10_000_000_000, None)
    };
    let m = flow_metrics(
        [record(0, 1000), record(9, 500), record(99, 1)].iter(),
        &bare,
    );
    assert_eq!((m.gap_p50_bytes, m.gap_spread_bytes), (None, None));
    assert_eq!(m.burstiness_mtu, Some(1.364)); // 1363.6 bytes, in frames of 1000
}

/// Figure 5 of paper 000 from records: the flow sends at line rate half of the time.
#[test]
fn on_off_traffic() {
    // 65 frames are back to back in every 130 frame times, so t = 130 x 1538 byte times.
    let t = 130 * 1538 * BYTE;
    let records: Vec<_> = (0..20)
        .flat_map(|c| (0..65).map(move |i| record(c * t + i * 1538 * BYTE, 1514)))
        .chain([record(20 * t, 1514)])
        .collect();
    let m = flow_metrics(records.iter(), &frame(20 * t + 1, None));
    // The formula gives 65 x 1514 / 2 bytes. Half a frame comes on top, because frames come
    // whole.
    assert_eq!(m.burstiness_bytes, Some(65.0 * 1514.0 / 2.0 + 1514.0 / 2.0));
    assert_eq!(m.burstiness_mtu, Some(33.0));
    assert_eq!(m.rate1_max_bps, Some(984_395_318.596));
}
