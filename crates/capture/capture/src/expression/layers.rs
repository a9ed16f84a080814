// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outermost headers of a packet, behind so many VLAN tags.

use crate::frame::Frame;
use crate::headers::Other;
use crate::link_headers::outermost;
use crate::tunnels::is_vlan;

/// The packet was cut before what decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut;

/// What follows the tags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payload<'a> {
    pub(super) ether_type: u16,
    pub(super) bytes: &'a [u8],
}

pub(super) fn bytes<const N: usize>(from: &[u8], at: usize) -> Result<&[u8; N], Cut> {
    from.get(at..).and_then(<[u8]>::first_chunk).ok_or(Cut)
}

pub(super) fn be16(from: &[u8], at: usize) -> Result<u16, Cut> {
    bytes(from, at).map(|field| u16::from_be_bytes(*field))
}

/// Returns what follows `tags` VLAN tags; `None` if there are fewer, or the link type is not
/// supported.
pub(super) fn payload<'a>(frame: &Frame<'a>, tags: u8) -> Result<Option<Payload<'a>>, Cut> {
    let (mut ether_type, place) = match outermost(frame) {
        Ok(found) => found,
        Err(Other::Cut) => return Err(Cut),
        Err(_) => return Ok(None),
    };
    let (bytes, mut at) = (place.bytes, 0);
    for _ in 0..tags {
        if !is_vlan(ether_type) {
            return Ok(None);
        }
        ether_type = be16(bytes, at + 2)?;
        at += 4;
    }
    let bytes = bytes.get(at..).ok_or(Cut)?;
    Ok(Some(Payload { ether_type, bytes }))
}
