// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs scenarios and measures what they recorded.
//!
//! A scenario runs in the laboratory ([`lab`]) or on the simulator
//! ([`sim::run`]). Both leave a folder of the same files ([`results_dir`],
//! [`measure_cell`], [`finished`]). [`experiments`] runs all scenarios of the
//! source tree. It writes a page for each ([`results_page`]), beside the figures of the
//! sources ([`reference_figures`]), the other engine ([`engine_agreement`]) and what is
//! known of stalls ([`ground_truth`]), and an index ([`results_index`]) with a
//! [`verdict`] on each. What was measured is [`stored`] by what it was [`made_of`]; a page says that,
//! and [`freshness`] whether it has changed since. [`capture_survey`] measures a capture of any origin.

#![forbid(unsafe_code)]

pub mod capture_file;
pub mod capture_survey;
pub mod catalogue;
#[cfg(test)]
mod code_digest;
pub mod engine_agreement;
mod experiment_runs;
pub mod experiments;
pub mod finished;
pub mod freshness;
pub mod ground_truth;
pub mod lab;
pub mod made_of;
pub mod measure_cell;
pub mod measured_delays;
mod params;
pub mod progress;
pub mod reference_figures;
mod remarks;
pub mod results_dir;
pub mod results_index;
pub mod results_page;
mod runs;
pub mod sim;
pub mod stored;
pub mod verdict;
mod workers;

#[cfg(test)]
use vmlab::source_text;
