// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how long datagrams waited in hosts: from the sender's system call to the first bit
//! on the wire where they are measured. The laboratory's sender writes the instant of the call
//! into each datagram (`lab/send`), and the cable keeps the first bytes of each frame.

use capture::record::{Kind, Record};
use scenario::result::FlowMetrics;
use units::rounding::thousandths;
use units::time::PS_PER_NS;

use crate::gaps::Distribution;

/// Offset of the timestamp in a frame: after Ethernet, IPv4 without options and UDP headers,
/// and the sequence number.
const TIMESTAMP_AT: usize = 14 + 20 + 8 + 8;
/// The line rate at which a byte time is a microsecond.
pub(crate) const BYTE_A_MICROSECOND_BPS: u64 = 8_000_000;

/// Returns the timestamps of data frames, ps, from `snap`, which holds the first `snap_bytes`
/// of each; 0 where a frame cannot hold one. The caller must know whether a frame holds a
/// timestamp, because the bytes of any other datagram look alike.
pub fn timestamps_ps(snap: &[u8], snap_bytes: usize) -> Vec<u64> {
    if snap_bytes < TIMESTAMP_AT + 8 {
        return Vec::new();
    }
    let of = |frame: &[u8]| {
        let is_udp = frame.get(12..15) == Some(&[8, 0, 0x45]) && frame.get(23) == Some(&17);
        let bytes = frame
            .get(TIMESTAMP_AT..TIMESTAMP_AT + 8)
            .filter(|_| is_udp)?;
        Some(u64::from_be_bytes(bytes.try_into().ok()?).saturating_mul(PS_PER_NS))
    };
    snap.chunks_exact(snap_bytes)
        .map(|frame| of(frame).unwrap_or(0))
        .collect()
}

/// Returns the timestamps by index of the record in a timeline instead of by data frame; empty
/// if there are none.
pub(crate) fn by_record(records: &[Record], timestamps_ps: &[u64]) -> Vec<u64> {
    if timestamps_ps.is_empty() {
        return Vec::new();
    }
    let mut timestamps = timestamps_ps.iter().copied();
    let of = |r: &Record| (r.kind == Kind::Data).then(|| timestamps.next()).flatten();
    let mut of = of;
    records.iter().map(|r| of(r).unwrap_or(0)).collect()
}

/// Returns the waits of frames that start within the span.
pub(crate) fn all<'a>(
    frames: impl Iterator<Item = (&'a Record, u64)>,
    span_ps: (u64, u64),
) -> Distribution {
    let mut waits = Distribution::default();
    for (record, timestamp_ps) in frames {
        if timestamp_ps > 0 && (span_ps.0..span_ps.1).contains(&record.start_ps) {
            waits.push(record.start_ps.saturating_sub(timestamp_ps));
        }
    }
    waits
}

/// Fills in the waits of frames that start within the span.
pub(crate) fn measure<'a>(
    metrics: &mut FlowMetrics,
    frames: impl Iterator<Item = (&'a Record, u64)>,
    span_ps: (u64, u64),
) {
    let mut waits = all(frames, span_ps);
    let mut wait = |percent| {
        let ps = waits.percentile_ps(percent);
        ps.map(|ps| thousandths(ps.into(), 1_000_000))
    };
    metrics.wait_p50_us = wait(50);
    metrics.wait_p99_us = wait(99);
    metrics.wait_max_us = wait(100);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(protocol: u8, timestamp_ns: u64) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
        bytes[23] = protocol;
        bytes[TIMESTAMP_AT..TIMESTAMP_AT + 8].copy_from_slice(&timestamp_ns.to_be_bytes());
        bytes
    }

    fn record(kind: Kind, start_ps: u64) -> Record {
        Record {
            start_ps,
            kind,
            ..Record::default()
        }
    }

    #[test]
    fn only_datagrams_have_timestamps() {
        let snap = [frame(17, 5), frame(6, 6), vec![0; 64], frame(17, u64::MAX)].concat();
        assert_eq!(timestamps_ps(&snap, 64), [5000, 0, 0, u64::MAX]);
        assert!(timestamps_ps(&snap, 57).is_empty());
        assert!(timestamps_ps(&snap[..63], 64).is_empty());
    }

    #[test]
    fn gap_frames_have_no_waits() {
        let records = [Kind::Data, Kind::Pause, Kind::Data].map(|kind| record(kind, 9));
        assert_eq!(by_record(&records, &[7, 8]), [7, 0, 8]);
        assert_eq!(by_record(&records, &[7]), [7, 0, 0]);
        assert!(by_record(&records, &[]).is_empty());
    }

    #[test]
    fn waits_run_from_the_timestamp_to_the_first_bit() {
        let frames = [(3_000_000, 1_000_000), (5_000_000, 0), (9_000_000, 1)];
        let frames = frames.map(|(start, timestamp)| (record(Kind::Data, start), timestamp));
        let mut metrics = FlowMetrics::default();
        let all = frames
            .iter()
            .map(|(record, timestamp)| (record, *timestamp));
        measure(&mut metrics, all, (0, 9_000_000));
        assert_eq!(metrics.wait_p50_us, Some(2.0));
        assert_eq!(metrics.wait_max_us, Some(2.0));
        let all = super::all(
            frames.iter().map(|(r, timestamp)| (r, *timestamp)),
            (0, 9_000_000),
        );
        let bins = { all }.histogram(BYTE_A_MICROSECOND_BPS);
        // 10^0.30 are 1.995 microseconds.
        assert_eq!(bins.len(), 1);
        assert_eq!((bins[0].bin, bins[0].count), (30, 1));
        measure(&mut metrics, [].into_iter(), (0, 1));
        assert_eq!(metrics.wait_max_us, None);
    }
}
