// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of transfers of known length over all runs of a cell: the rows of `table` in
//! `result.json`.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Declares the columns once: as fields, as names, and as a look-up by name.
macro_rules! numbers {
    ($( $(#[$doc:meta])* $name:ident: $type:ty, )*) => {
        /// Statistics of one flow with `bytes`, over all runs of its cell. Times last from the
        /// begin of the handshake to the last acknowledgement, or to the flow's stop in a run
        /// whose transfer did not finish.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct TransferRow {
            /// Parameters of the cell.
            #[serde(flatten)]
            pub params: IndexMap<String, String>,
            /// The flow's name.
            pub flow: String,
            /// Number of runs, each with its own seed.
            pub runs: u64,
            /// Length of the transfer.
            pub bytes: u64,
            /// Rate of the slowest bottleneck on the path, or of the slowest cable.
            pub bottleneck_bps: u64,
            /// Depth of that bottleneck, if it is a policer.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub burst_bytes: Option<u64>,
            /// Size of that bottleneck, if it is a queue.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub fifo_bytes: Option<u64>,
            $( $(#[$doc])* pub $name: $type, )*
        }

        impl TransferRow {
            /// Names of the columns that a bound may give.
            pub const NAMES: &'static [&'static str] = &[$( stringify!($name), )*];
            /// Names that no parameter of such a cell may have, because they are columns.
            pub const TAKEN: &'static [&'static str] = &[
                "flow", "runs", "bytes", "bottleneck_bps", "burst_bytes", "fifo_bytes",
                $( stringify!($name), )*
            ];

            /// Returns the number of this name; `None` if there is none.
            pub fn get(&self, name: &str) -> Option<f64> {
                match name {
                    $( stringify!($name) => Some(self.$name), )*
                    _ => None,
                }
            }
        }
    };
}

numbers! {
    /// Runs whose transfer did not finish before the flow's stop.
    unfinished: f64,
    /// Mean time of the transfer.
    time_mean_s: f64,
    /// Longest time.
    time_max_s: f64,
    /// Shortest time.
    time_min_s: f64,
    /// Standard deviation of the times over the runs.
    time_sd_s: f64,
    /// Goodput, payload over time: mean over the runs.
    goodput_mean_bps: f64,
    /// Goodput of the slowest run over the bottleneck's rate, 0 to 1.
    efficiency_min: f64,
    /// Goodput over the bottleneck's rate, 0 to 1: mean over the runs.
    efficiency_mean: f64,
    /// Mean count of retransmission timeouts.
    rto_mean: f64,
    /// Mean count of retransmissions.
    retransmits_mean: f64,
    /// Mean count of packets that the scoreboard looked at, for SACK blocks and for the next
    /// retransmission: what an acknowledgement costs the processor.
    steps_mean: f64,
    /// Time with a window of at most two segments: mean over the runs.
    stalled_mean_s: f64,
    /// Longest continuous time with such a window in any run.
    stall_max_s: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_flat_object() {
        let row = TransferRow {
            params: [("variant".to_owned(), "rack".to_owned())].into(),
            flow: "bulk".into(),
            burst_bytes: Some(256_000),
            time_mean_s: 16.5,
            ..TransferRow::default()
        };
        let json = serde_json::to_value(&row).unwrap();
        assert_eq!(json["variant"], "rack");
        assert_eq!(json["burst_bytes"], 256_000);
        assert!(json.get("fifo_bytes").is_none());
        assert_eq!(
            serde_json::from_value::<TransferRow>(json.clone()).unwrap(),
            row
        );
        for name in TransferRow::NAMES {
            assert_eq!(row.get(name), json[name].as_f64(), "{name}");
        }
        for name in json.as_object().unwrap().keys().filter(|k| *k != "variant") {
            assert!(TransferRow::TAKEN.contains(&name.as_str()), "{name}");
        }
    }
}
