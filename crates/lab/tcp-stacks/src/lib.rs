// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP endpoints of different behaviour on a simulated path, and the truth about every pause of
//! their connections. Only tests, `cargo xtask calibrate`, `cargo xtask corpus` and `make bench-stalls`
//! use this crate.
//!
//! ```text
//! let run = scenario::Case::draw(seed, number).run();
//! let (pcap, first_ns) = run.pcap(Point::Middle, Cut::Snap64);
//! let facts = run.truth[0].facts(&run.truth[1], start_ns, end_ns);
//! let right = acceptable::mechanisms(&facts, kind);
//! ```

#![forbid(unsafe_code)]

pub mod acceptable;
pub mod app;
pub mod capture_file;
pub mod chance;
pub mod corpus;
pub mod draw;
pub mod ground_truth;
pub mod packet;
pub mod path;
pub mod profile;
mod receiver;
mod rtt;
pub mod scenario;
mod segment;
mod sender;
pub mod smol;
pub mod stack;
mod tcp;
pub mod witness;
pub mod world;
