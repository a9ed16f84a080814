// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pauses of a flow.

use crate::flow::at::At;
use crate::flow::facts::{Facts, Gap};
use crate::flow::packed::Kept;
use crate::options::Options;

/// The pause that may be in progress, and those that are over.
#[derive(Clone, Debug)]
pub(crate) struct Pauses {
    pub(in crate::flow) last_progress: Option<At>,
    /// From this length on, a time without progress is a pause.
    pub(in crate::flow) threshold_ns: u64,
    /// An answer to the last data that comes later than this is a pause as well.
    pub(in crate::flow) late_answer_ns: u64,
    /// What has happened since the last progress.
    pub(in crate::flow) gap: Gap,
    /// Bytes of new data since the last pause.
    pub(in crate::flow) burst_bytes: u64,
    pub(in crate::flow) closed: Kept<Facts>,
    /// Whether what follows the last of them is still noted.
    pub(in crate::flow) after_open: bool,
    /// Pauses that were not kept.
    pub(in crate::flow) dropped: u64,
}

impl Pauses {
    pub(in crate::flow) fn new(options: &Options) -> Self {
        Self {
            last_progress: None,
            threshold_ns: options.min_stall_blind_ns,
            late_answer_ns: options.min_stall_blind_ns,
            gap: Gap::default(),
            burst_bytes: 0,
            closed: Kept::default(),
            after_open: false,
            dropped: 0,
        }
    }
}
