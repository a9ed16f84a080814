// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a rule has found: a finding without the rule's name and the device's.

use crate::finding::Severity;

/// What a rule has found.
pub(super) struct Found {
    pub(super) severity: Severity,
    pub(super) what: String,
    pub(super) why: &'static str,
    pub(super) command: String,
}

/// Makes what a rule returns that has found something.
pub(super) fn found(
    severity: Severity,
    what: String,
    why: &'static str,
    command: impl Into<String>,
) -> Option<Found> {
    let command = command.into();
    Some(Found {
        severity,
        what,
        why,
        command,
    })
}
