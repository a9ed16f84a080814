// SPDX-License-Identifier: MIT OR Apache-2.0
//! A finding: what is wrong, why it matters, and the command that mends it.

use serde::Serialize;

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// psp cannot pace, or paces wrongly.
    Fault,
    /// Pacing is less exact than this host could have it, or frames are lost.
    Warning,
    /// Good to know.
    Note,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the rule, which does not change.
    pub id: &'static str,
    /// The device; `None`: the host.
    pub device: Option<String>,
    /// How much it matters.
    pub severity: Severity,
    /// What was found, with its values.
    pub what: String,
    pub why: &'static str,
    /// The command that mends it, or shows more where none can.
    pub command: String,
}
