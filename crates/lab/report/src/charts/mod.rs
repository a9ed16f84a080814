// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plots. Each is drawn twice: for wide and for narrow pages.

mod bandwidth;
mod by_flow;
mod chart;
mod closeup;
mod compare;
mod distribution;
mod figure;
mod gaps;
mod grid;
mod histogram;
mod level;
mod lines;
mod one_way;
mod queue;
mod sender;
mod stalls;
mod sweep;
mod time_lost;
mod transfer;
mod waits;

pub use bandwidth::bandwidth;
pub use by_flow::{FRAMES, by_flow};
pub use chart::{Chart, ChartCurve, chart};
pub use closeup::closeups;
pub use compare::compare;
pub use distribution::{Distribution, delays, lateness, retries};
pub use figure::Figure;
pub use gaps::gaps;
pub use histogram::{Histogram, HistogramBar, delay_bars, histogram};
pub use level::{Level, level};
pub use one_way::one_way;
pub use queue::queue;
pub use sender::{SenderRecord, Variables, sender_scoreboard, sender_sequence, sender_window};
pub use stalls::{Sample, Stream, Stroke, stream};
pub use sweep::sweep;
pub use time_lost::{SIDES, TimeLost, time_lost};
pub use transfer::{transfer, transfers};
pub use waits::waits;
