// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses IEEE 802.11 data frames, and the headers of receivers' radios before them.

use crate::headers::{Ahead, Other, Place};
use crate::link::Link;

/// Length of the header of a frame within one cell.
const HEADER_BYTES: usize = 24;
/// Most words that say which fields a radiotap header has.
const PRESENT_MOST: usize = 16;

/// Moves past a radiotap header. Of its fields only the flags count: they tell of padding, and of
/// frames that arrived broken.
pub(crate) fn radiotap(place: &mut Place<'_>) -> Result<Ahead, Other> {
    const FLAGS_PADDED: u8 = 0x20;
    const FLAGS_BROKEN: u8 = 0x40;
    let h = *place.head::<8>()?;
    let header_bytes = usize::from(u16::from_le_bytes([h[2], h[3]]));
    if h[0] != 0 || header_bytes < 8 {
        return Err(Other::Malformed);
    }
    let flags = radiotap_flags(place.bytes.get(..header_bytes).ok_or(Other::Cut)?);
    place.skip(header_bytes)?;
    if flags & FLAGS_BROKEN != 0 {
        return Err(Other::Malformed);
    }
    let is_padded = flags & FLAGS_PADDED != 0;
    Ok(Ahead::Wifi { is_padded })
}

/// Returns the flags of a radiotap header; 0 if it has none.
fn radiotap_flags(header: &[u8]) -> u8 {
    let word = |at: usize| {
        let word = header.get(at..).and_then(|rest| rest.first_chunk());
        word.map_or(0, |word| u32::from_le_bytes(*word))
    };
    let (has_clock, has_flags) = (word(4) & 1 != 0, word(4) & 2 != 0);
    if !has_flags {
        return 0;
    }
    // The highest bit of each word says that another follows.
    let words = (0..PRESENT_MOST).find(|i| word(4 + 4 * i) >> 31 == 0);
    let fields_at = 8 + 4 * words.unwrap_or(PRESENT_MOST);
    let flags_at = if has_clock {
        fields_at.next_multiple_of(8) + 8
    } else {
        fields_at
    };
    header.get(flags_at).copied().unwrap_or(0)
}

/// Moves past a header of per-packet information; the packet may be of any link type without a
/// variable header of its own, or 802.11.
pub(crate) fn ppi(place: &mut Place<'_>) -> Result<Ahead, Other> {
    let h = *place.head::<8>()?;
    let header_bytes = usize::from(u16::from_le_bytes([h[2], h[3]]));
    if h[0] != 0 || header_bytes < 8 {
        return Err(Other::Malformed);
    }
    let number = u32::from_le_bytes([h[4], h[5], h[6], h[7]]);
    place.skip(header_bytes)?;
    match i32::try_from(number).ok().and_then(Link::from_number) {
        Some(Link::Wifi) => Ok(Ahead::Wifi { is_padded: false }),
        Some(Link::Radiotap) => radiotap(place),
        Some(Link::Ethernet) => Ok(Ahead::Ethernet),
        Some(Link::RawIp) => Ok(Ahead::Ip),
        _ => Err(Other::UnknownLink),
    }
}

/// Moves past the header of a data frame (IEEE 802.11-2020, 9.3.2.1). Of several packets in one
/// frame (A-MSDU) only the first is found. `is_padded`: the receiver aligned what follows the
/// header to four bytes.
pub(crate) fn data_frame(is_padded: bool, place: &mut Place<'_>) -> Result<Ahead, Other> {
    let h = *place.head::<HEADER_BYTES>()?;
    data_frame_of(h[0], h[1], is_padded, place)
}

/// Moves past the header of a data frame in CAPWAP. Some devices swap the two bytes of frame
/// control: no frame has the type in the second byte and version 0 in the first one's place.
pub(crate) fn tunnelled_data_frame(place: &mut Place<'_>) -> Result<Ahead, Other> {
    let h = *place.head::<HEADER_BYTES>()?;
    let is_swapped = h[0] & 3 != 0 && h[1] & 0x0f == 0x08;
    let (first, second) = if is_swapped {
        (h[1], h[0])
    } else {
        (h[0], h[1])
    };
    data_frame_of(first, second, false, place)
}

fn data_frame_of(
    first: u8,
    second: u8,
    is_padded: bool,
    place: &mut Place<'_>,
) -> Result<Ahead, Other> {
    const DATA: u8 = 0x08;
    const NO_DATA: u8 = 0x40;
    const QOS: u8 = 0x80;
    const BETWEEN_CELLS: u8 = 0x03;
    const PROTECTED: u8 = 0x40;
    const ORDER: u8 = 0x80;
    const AGGREGATE: u8 = 0x80;
    let h = *place.head::<HEADER_BYTES>()?;
    // Management and control frames, and data frames without data.
    if first & 0x0f != DATA || first & NO_DATA != 0 {
        return Err(Other::NotTcp);
    }
    if second & PROTECTED != 0 {
        return Err(Other::Encrypted);
    }
    if h[22] & 0x0f != 0 {
        return Err(Other::LaterFragment);
    }
    let mut header_bytes = HEADER_BYTES;
    if second & BETWEEN_CELLS == BETWEEN_CELLS {
        header_bytes += 6; // a fourth address
    }
    let mut is_aggregate = false;
    if first & QOS != 0 {
        let qos = *place.bytes.get(header_bytes).ok_or(Other::Cut)?;
        is_aggregate = qos & AGGREGATE != 0;
        header_bytes += 2;
        if second & ORDER != 0 {
            header_bytes += 4; // HT control
        }
    }
    if is_padded {
        header_bytes = header_bytes.next_multiple_of(4);
    }
    place.skip(header_bytes)?;
    if is_aggregate {
        let subframe = *place.head::<14>()?;
        place.skip(14)?;
        place.limit(u16::from_be_bytes([subframe[12], subframe[13]]).into());
    }
    Ok(Ahead::Llc)
}
