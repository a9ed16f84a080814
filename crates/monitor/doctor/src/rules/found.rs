// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a rule has found: a finding without the rule's name and the device's.

use crate::facts::Qdisc;
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

/// Whether a qdisc is one that `pspacer apply` puts where the module is not: the qdisc of BPF, or an
/// fq with an id of ours.
pub(super) fn paces_without_module(qdisc: &Qdisc) -> bool {
    const BPF: &str = "psp_bpf";
    const FIRST_MAJOR: u16 = 0x7073;
    const LAST_MAJOR: u16 = 0x8000;
    let is_ours = (FIRST_MAJOR..LAST_MAJOR).contains(&qdisc.handle.major());
    qdisc.kind == BPF || qdisc.kind == "fq" && is_ours
}
