// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words for the metrics of `result.json`, as tables and pages name them.

/// Returns a metric in words, with its unit; an unknown name is returned unchanged.
pub fn in_words(metric: &str) -> &str {
    match metric {
        "frames" => "frames",
        "bytes" => "bytes, link layer",
        "wire_bytes" => "bytes on the wire",
        "rate_bps" => "rate, bit/s",
        "wire_rate_bps" => "rate on the wire, bit/s",
        "ip_rate_bps" => "rate without link header, bit/s",
        "target_bps" => "target, bit/s",
        "error_pct" => "error of the rate, %",
        "rate1_min_bps" => "least rate over 1 frame, bit/s",
        "rate1_max_bps" => "largest rate over 1 frame, bit/s",
        "rate1_mean_bps" => "mean rate over 1 frame, bit/s",
        "rate2_min_bps" => "least rate over 2 frames, bit/s",
        "rate2_max_bps" => "largest rate over 2 frames, bit/s",
        "rate2_mean_bps" => "mean rate over 2 frames, bit/s",
        "gap_min_bytes" => "least gap, byte times",
        "gap_p1_bytes" => "gap p1, byte times",
        "gap_p50_bytes" => "gap p50, byte times",
        "gap_p99_bytes" => "gap p99, byte times",
        "gap_max_bytes" => "largest gap, byte times",
        "gap_spread_bytes" => "spread of gaps (p99 less p1), byte times",
        "burstiness_bytes" => "burstiness, bytes",
        "burstiness_mtu" => "burstiness, MTU",
        "dropped" => "frames dropped",
        "delay_min_us" => "least delay, µs",
        "delay_p50_us" => "delay p50, µs",
        "delay_p90_us" => "delay p90, µs",
        "delay_p99_us" => "delay p99, µs",
        "delay_p999_us" => "delay p99.9, µs",
        "delay_max_us" => "largest delay, µs",
        "rtt_p50_us" => "round trip p50, µs",
        "rtt_p90_us" => "round trip p90, µs",
        "rtt_p99_us" => "round trip p99, µs",
        "rtt_max_us" => "largest round trip, µs",
        "worst_number" => "number of the latest packet",
        "retries_mean" => "collisions a frame, mean",
        "retries_max" => "collisions a frame, most",
        "late_pct" => "late at a node, %",
        "late_way_pct" => "late on the path, %",
        "second_peak_pct" => "round trips beyond the first peak, %",
        "second_peak_error_pct" => "standard error of that share, points",
        "over" => "packets above the expected delay",
        "over_unexplained" => "packets above the expected delay, unexplained",
        "play_s" => "first to last arrival, s",
        "fit_diff_pct" => "difference from the prediction, % points",
        "fit_p" => "probability of that difference",
        "wait_p50_us" => "delay from the system call p50, µs",
        "wait_p99_us" => "delay from the system call p99, µs",
        "wait_max_us" => "largest delay from the system call, µs",
        "launch_p50_ns" => "distance from the launch time p50, ns",
        "launch_p99_ns" => "distance from the launch time p99, ns",
        "launch_max_ns" => "largest distance from the launch time, ns",
        "launch_early_ns" => "furthest before the launch time, ns",
        "busy_ns_per_frame" => "CPU time a frame, ns",
        "goodput_bps" => "goodput, bit/s",
        "retransmits" => "segments retransmitted",
        "cwnd_max_bytes" => "largest congestion window, bytes",
        "cwnd_end_bytes" => "last congestion window, bytes",
        "unfinished" => "runs not ended",
        "time_mean_s" => "mean time, s",
        "time_sd_s" => "standard deviation of the time, s",
        "time_min_s" => "shortest time, s",
        "time_max_s" => "longest time, s",
        "goodput_mean_bps" => "mean goodput, bit/s",
        "efficiency_mean" => "mean share of the bottleneck, 0 to 1",
        "efficiency_min" => "least share of the bottleneck, 0 to 1",
        "rto_mean" => "mean timeouts",
        "retransmits_mean" => "mean segments retransmitted",
        "steps_mean" => "mean packets looked at",
        "stalled_mean_s" => "mean time stalled, s",
        "stall_max_s" => "longest stall, s",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::in_words;
    use scenario::result::{FlowMetrics, TransferRow};

    #[test]
    fn every_metric_has_a_display_name() {
        for name in FlowMetrics::NAMES.iter().chain(TransferRow::NAMES) {
            assert!(!in_words(name).contains('_'), "{name}");
        }
        assert_eq!(in_words("of_another_version"), "of_another_version");
    }
}
