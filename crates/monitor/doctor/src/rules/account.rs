// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about what a device sent while it was looked at, beside what psp counted.

use crate::facts::{Device, Facts};
use crate::finding::Severity;
use crate::rules::found::{Found, found};

/// Complains unless what leaves the device has passed psp.
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

/// Fewer frames that no rule claims may be ARP of a host that sends nothing else now.
const UNMATCHED_MIN: u64 = 100;

/// Rules claim something of what is sent. Some of it is no rule's on almost every host, so only a
/// device of which they claim nothing is worth a word.
pub fn unmatched(_: &Facts, device: &Device) -> Option<Found> {
    let account = device.account?;
    let unmatched = account.unmatched?.frames;
    if unmatched < UNMATCHED_MIN || unmatched < account.counted.frames {
        return None;
    }
    found(
        Severity::Note,
        format!("No rule claims any of the {unmatched} frames that it sent meanwhile."),
        "All are of the default class, or of none: other traffic, or rules that miss their frames.",
        format!("pspacer verify {}", device.name),
    )
}
