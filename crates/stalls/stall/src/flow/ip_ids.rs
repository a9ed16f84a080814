// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells what an end's IP identifications are worth: some hosts count the packets of each
//! connection with them, some count all their packets, some always send the same number.

use capture::segment::{Flags, Segment};
use units::time::NS_PER_MS;

/// So many steps of one show a counter of the connection.
const ONES_LEAST: u32 = 16;
/// A capture has the copy of a packet within this time; no timer is shorter that repeats a SYN.
const COPY_MOST_MS: u32 = 100;
/// Of so many steps one may be another: a packet that the capture lacks.
const ONES_FOR_OTHER: u32 = 16;

/// The identifications of one end's packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IpIds {
    /// Number, fingerprint and time of the packet before, if there was one.
    last_id: u16,
    has_last: bool,
    last: u32,
    last_ms: u32,
    ones: u32,
    others: u32,
    /// Whether two packets that differ had the same number.
    is_constant: bool,
}

/// What a packet's identification tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Identified {
    /// Packets that the end has sent since the one captured before, this one included, if its
    /// numbers count the packets of the connection.
    pub(crate) sent: Option<u16>,
    /// Whether this is the packet captured before once more.
    pub(crate) is_copy: bool,
    /// Whether it is a keep-alive, which the connection tells.
    pub(crate) is_sign_of_life: bool,
    /// Whether its data was captured before, which the connection tells, too.
    pub(crate) is_repeat: bool,
}

impl IpIds {
    /// Notes the next packet of the end, captured at `now`.
    pub(crate) fn next(&mut self, segment: &Segment, now: u64) -> Identified {
        let id = segment.ip_id;
        let content = fingerprint(segment);
        let step = id.wrapping_sub(std::mem::replace(&mut self.last_id, id));
        let before = std::mem::replace(&mut self.last, content);
        let now_ms = (now / NS_PER_MS) as u32; // a copy comes long before that wraps
        let before_ms = std::mem::replace(&mut self.last_ms, now_ms);
        let mut identified = Identified::default();
        if !std::mem::replace(&mut self.has_last, true) {
            return identified;
        }
        if step == 0 {
            self.is_constant |= content != before;
            identified.is_copy = content == before
                && now_ms.wrapping_sub(before_ms) < COPY_MOST_MS
                && (self.tells(id) || segment.flags.any(Flags::SYN));
            return identified;
        }
        let counts = self.ones >= ONES_LEAST && self.ones >= self.others * ONES_FOR_OTHER;
        if step == 1 {
            self.ones += 1;
        } else {
            self.others += 1;
        }
        identified.sent = Some(step).filter(|&step| counts && step < 1 << 15);
        identified
    }

    /// Returns whether two packets with this number are one packet.
    pub(super) fn tells(&self, id: u16) -> bool {
        id != 0 && !self.is_constant
    }
}

/// Returns a number that tells one packet of an end from others, of what it carries.
fn fingerprint(segment: &Segment) -> u32 {
    let parts = [segment.ack, segment.payload_bytes, segment.window.into()];
    let mix = |sum: u32, part: u32| (sum ^ part).wrapping_mul(0x9e37_79b1).rotate_left(13);
    parts.into_iter().fold(segment.seq, mix)
}
