// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about files that configure a device: the host's own, and those of other programs.

use crate::facts::{Device, Facts};
use crate::finding::Severity;
use crate::rules::found::{Found, found};

/// It is as the host's file says.
pub fn differs(_: &Facts, device: &Device) -> Option<Found> {
    let changes = device.file_changes.as_ref()?;
    let first = changes.first()?;
    let more = match changes.len() {
        1 => String::new(),
        count => format!(" (1 of {count})"),
    };
    found(
        Severity::Warning,
        format!("It is not what the host's file says. apply would: {first}{more}."),
        "Something has changed it since, such as tc, another number of transmit queues, or the file itself.",
        format!("pspacer apply --device {}", device.name),
    )
}

/// No other program gives it a qdisc.
pub fn other_manager(_: &Facts, device: &Device) -> Option<Found> {
    let file = device.manager_file.as_ref()?;
    if device.psp.is_empty() && device.file_changes.is_none() {
        return None;
    }
    found(
        Severity::Warning,
        format!(
            "{} gives it a qdisc of its own: {} in {}.",
            file.manager, file.setting, file.file
        ),
        "When that program configures the device again, after a lost link or an update, its qdisc \
         replaces psp.",
        format!("$EDITOR {}", file.file),
    )
}
