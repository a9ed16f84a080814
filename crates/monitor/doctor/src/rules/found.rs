// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a rule has found: a finding without the rule's name and the device's.

use host_config::Backend;

use crate::facts::{Device, Facts};
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

/// Whether something is paced without the module, which is not loaded.
pub(super) fn paces_without_module(facts: &Facts) -> bool {
    let mut backends = facts.devices.iter().flat_map(Device::backends);
    !facts.is_module_loaded && backends.any(|backend| backend != Backend::Module)
}

/// Returns the command that changes a psp without the module: what to write, and how to apply it.
pub(super) fn apply(device: &Device, key: &str) -> String {
    format!(
        "pspacer apply --device {}  # in the host's file: {key}",
        device.name
    )
}
