// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `pspacer measure --st2110` and `pspacer send-stream` do with files, sockets and clocks. The
//! models and the packets are `st2110`'s (docs/use/media.md).

#![forbid(unsafe_code)]

mod declared;
mod document;
pub mod measure;
mod measure_page;
mod measure_report;
mod measure_text;
pub mod send;
mod send_loop;
mod values;
