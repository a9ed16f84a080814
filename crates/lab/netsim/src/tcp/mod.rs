// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models TCP as state machines without I/O. The caller passes in segments and the
//! time; it asks for segments to send and for the time of the next timer.
//!
//! One [`Sender`] and one [`Receiver`] are the two ends of a stream in one
//! direction; the handshake is not modelled. [`Variant`] selects the loss recovery
//! of one of several kernels.

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
pub use sender::{Internals, Sender};
pub use variant::Variant;
