// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how evenly media senders send, from the packets of an RTP stream, and makes the
//! packets of synthetic streams.
//!
//! [`stream`] divides datagrams into RTP streams, [`infer`] finds out what a stream carries,
//! [`video`] and [`audio`] measure it. The models are those of SMPTE ST 2110-21: [`network`] is the
//! network compatibility model (Cinst), [`receiver`] the virtual receiver buffer (VRX), [`limits`]
//! has what each sender type may reach, [`list`] what EBU's LIST expects of timestamps. [`synthetic`] builds packets of RFC 4175 video and AES67
//! audio with their launch times.
//!
//! The standard is not public. Its formulas are taken from public documents that quote them: EBU's
//! LIST (github.com/ebu/pi-list, `docs/video_timing_analysis.md` and
//! `cpp/libs/st2110/lib/src/ebu/list/st2110/d21`) names the sections that it implements; Intel's
//! Media Transport Library (`lib/src/st2110/st_rx_timing_parser.c`) has the same constants. Where
//! this crate is stricter than they are, the item says so, and docs/use/media.md lists it.
//!
//! This crate opens no file and reads no clock. Times are integers, picoseconds since the epoch of
//! the sender's clock (SMPTE ST 2059-1: 1970-01-01 TAI); comparisons are exact.

#![forbid(unsafe_code)]

pub mod am824;
pub mod ancillary;
pub mod audio;
pub mod format;
pub mod infer;
pub mod jpeg_xs;
pub mod known;
pub mod limits;
pub mod lines;
pub mod list;
pub mod network;
pub mod pairs;
pub mod pictures;
pub mod range;
pub mod rate;
pub mod receiver;
pub mod rfc4175;
pub mod rfc8331;
pub mod rfc9134;
pub mod rtp;
mod samples;
pub mod sdp;
pub mod stream;
pub mod synthetic;
pub mod video;
