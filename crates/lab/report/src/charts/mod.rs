// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plots. Each is drawn twice: for wide and for narrow pages.

mod bandwidth;
mod burstiness;
mod by_flow;
mod closeup;
mod compare;
mod distribution;
mod gaps;
mod sender;
mod sweep;
mod transfer;
mod waits;

pub use bandwidth::bandwidth;
pub use burstiness::burstiness;
pub use by_flow::{FRAMES, by_flow};
pub use closeup::closeups;
pub use compare::compare;
pub use distribution::{Distribution, delays, lateness, retries};
pub use gaps::gaps;
pub use sender::{SenderRecord, Variables, sender_scoreboard, sender_sequence, sender_window};
pub use sweep::sweep;
pub use transfer::{transfer, transfers};
pub use waits::waits;
