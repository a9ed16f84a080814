// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a stream is JPEG XS: any four bytes can be its header, and no others' counters go on.

use crate::stream::{Numbered, Packet, Stream};

/// Returns whether the headers' counters go on from packet to packet, and markers end pictures.
pub fn agrees(stream: &Stream, numbered: &[Numbered]) -> bool {
    let header = |n: &Numbered| {
        let packet: &Packet = stream.packets.get(n.at)?;
        Some((packet.jpeg_xs?, packet.marker))
    };
    // Those within pictures and those that end them are judged apart: [all, good].
    let (mut within, mut ends) = ([0u64; 2], [0u64; 2]);
    for pair in numbered.windows(2) {
        let [before, next] = pair else { continue };
        if next.sequence != before.sequence + 1 {
            continue;
        }
        let headers = header(before).zip(header(next));
        let is_same = before.timestamp == next.timestamp
            && headers.is_none_or(|((a, _), (b, _))| a.second_field == b.second_field);
        let is_good = headers.is_some_and(|((a, marker), (b, _))| {
            if is_same {
                !marker && a.goes_on(b)
            } else {
                marker && a.is_followed_by(b)
            }
        });
        let count = if is_same { &mut within } else { &mut ends };
        count[0] += 1;
        count[1] += u64::from(is_good);
    }
    let holds = |[all, good]: [u64; 2]| good * 10 >= all * 9;
    ends[0] > 0 && holds(within) && holds(ends)
}
