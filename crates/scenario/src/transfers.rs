// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the transfers of known length came to, over all runs of a cell: the
//! rows of `table` in `result.json`.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// Declares the numbers once: as fields, as names, and as a look-up by name.
macro_rules! numbers {
    ($( $(#[$doc:meta])* $name:ident: $type:ty, )*) => {
        /// One flow with `bytes`, over all runs of its cell. Times are from the
        /// begin of the handshake to the last acknowledgement; of a run that did
        /// not end, until its flow's stop.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct TransferRow {
            /// Parameters of the cell.
            #[serde(flatten)]
            pub params: IndexMap<String, String>,
            /// The flow's name.
            pub flow: String,
            /// Runs, each with a seed of its own.
            pub runs: u64,
            /// What was to be sent.
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
            /// Names that no parameter of such a cell may have: they are columns.
            pub const TAKEN: &'static [&'static str] = &[
                "flow", "runs", "bytes", "bottleneck_bps", "burst_bytes", "fifo_bytes",
                $( stringify!($name), )*
            ];

            /// The number of this name; `None` if there is none.
            #[must_use]
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
    /// Runs that did not end in their time.
    unfinished: f64,
    /// Mean time.
    time_mean_s: f64,
    /// Longest.
    time_max_s: f64,
    /// Shortest.
    time_min_s: f64,
    /// Standard deviation, of the runs themselves.
    time_sd_s: f64,
    /// Mean over the runs of payload over time.
    goodput_mean_bps: f64,
    /// Goodput of the slowest run over the bottleneck's rate, 0 to 1.
    efficiency_min: f64,
    /// Of all runs, mean.
    efficiency_mean: f64,
    /// Mean count of retransmission timeouts.
    rto_mean: f64,
    /// Mean count of retransmissions.
    retransmits_mean: f64,
    /// Mean of the time with a window of at most two segments.
    stopped_mean_s: f64,
    /// Longest stretch of it in any run.
    stop_max_s: f64,
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
