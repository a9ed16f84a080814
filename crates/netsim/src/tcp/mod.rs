// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP as state machines: told of segments and of time, asked for segments and
//! for when to be asked again.
//!
//! One [`Sender`] and one [`Receiver`] are the two ends of a stream in one
//! direction; the handshake is not modelled. [`Variant`] chooses between the
//! loss recovery of kernels of several years.

mod algorithm;
mod config;
mod congestion;
mod counters;
mod receiver;
mod segment;
mod sender;
pub mod variant;

pub use algorithm::Congestion;
pub use config::{ReceiverConfig, SenderConfig};
pub use counters::Counters;
pub use receiver::Receiver;
pub use segment::{SackBlock, Segment};
pub use sender::Sender;
pub use variant::Variant;
