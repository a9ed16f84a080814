// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about what a device sent while it was looked at, beside what psp counted.

use crate::facts::{Device, Facts};
use crate::finding::Severity;
use crate::rules::found::{Found, found};

/// What leaves the device has passed psp.
pub fn bypassed(_: &Facts, device: &Device) -> Option<Found> {
    let account = device.account?;
    let past = account.bypassed();
    if past.frames == 0 {
        return None;
    }
    found(
        Severity::Fault,
        format!(
            "It sent {} frames, psp counted {} of them; they may differ by {}.",
            account.device.frames, account.counted.frames, account.tolerance_frames
        ),
        "What leaves past psp is not paced, and takes what classes have: a packet socket with \
         PACKET_QDISC_BYPASS, XDP that redirects, or a program that was taken away.",
        format!("pspacer plan; pspacer verify {}", device.name),
    )
}

/// Rules claim what is sent.
pub fn unmatched(_: &Facts, device: &Device) -> Option<Found> {
    let account = device.account?;
    let unmatched = account.unmatched.filter(|of| of.frames > 0)?;
    let percent = unmatched.bytes as f64 * 100.0 / account.counted.bytes.max(1) as f64;
    found(
        Severity::Note,
        format!(
            "No rule claims {percent:.1} % of what it sent: {} frames of the default class, or of none.",
            unmatched.frames
        ),
        "ARP and the host's own traffic are there; a rule that misses its frames shows here, too.",
        format!("pspacer verify {}", device.name),
    )
}
