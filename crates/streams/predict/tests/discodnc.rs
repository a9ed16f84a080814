// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bounds agree with those of another network-calculus library, in the committed table that
//! `tests/calculus/run.sh` makes.

use predict::bounds::{RateLatency, TokenBucket, bounds};

/// Relative error of the table: thousandths of a nanosecond, and the rounding of doubles.
const RELATIVE: f64 = 1e-9;

fn hop(text: &str) -> RateLatency {
    let (rate, latency) = text.split_once('@').unwrap();
    RateLatency {
        rate_bps: rate.parse().unwrap(),
        latency_ns: latency.parse().unwrap(),
    }
}

#[test]
fn bounds_are_those_of_the_discodnc() {
    let table = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../tests/calculus/bounds.csv"
    );
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_path(table)
        .unwrap();
    let mut chains = 0;
    for row in reader.records() {
        let row = row.unwrap();
        let number = |column: usize| row[column].parse::<f64>().unwrap();
        let stream = TokenBucket {
            burst_bytes: number(0),
            rate_bps: number(1),
        };
        let servers: Vec<_> = row[2].split(' ').map(hop).collect();
        let ours = bounds(stream, &servers).unwrap();
        let pairs = [
            ("per hop", ours.per_hop_sum_ns, number(3)),
            ("once", ours.pay_bursts_only_once_ns, number(4)),
        ];
        for (what, ours, theirs) in pairs {
            let error = (ours - theirs).abs();
            assert!(
                error <= theirs.max(1e6) * RELATIVE,
                "{what}: {ours} here, {theirs} there: {row:?}"
            );
        }
        chains += 1;
    }
    assert!(chains > 60, "only {chains} chains");
}
