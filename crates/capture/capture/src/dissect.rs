// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a captured packet as a TCP segment.

use std::net::Ipv4Addr;

use crate::decapsulate::decapsulate;
use crate::encapsulation::Encapsulations;
use crate::frame::Frame;
use crate::headers::{Other, Outline};
use crate::link::Link;
use crate::segment::{Flags, Mptcp, Segment, Timestamps};

const TCP_BYTES: usize = 20;
/// Captured bytes of a TCP header, from ports to window, without which a segment is useless.
const TCP_NEEDED_BYTES: usize = 16;

/// Reads the segment in a packet into `segment`, whose number and time stay. Returns whether it is the first
/// of several fragments.
#[inline]
pub(crate) fn dissect(
    frame: &Frame<'_>,
    encapsulations: &mut Encapsulations,
    segment: &mut Segment,
) -> Result<bool, Other> {
    if let Some((h, tcp)) = plain(frame) {
        // Most packets: each field is written once, where it is read.
        let total = u32::from(u16::from_be_bytes([h[16], h[17]]));
        let address = |i: usize| Ipv4Addr::new(h[i], h[i + 1], h[i + 2], h[i + 3]).into();
        segment.from.address = address(26);
        segment.to.address = address(30);
        segment.encapsulation = 0;
        segment.ecn = h[15] & 3;
        segment.ip_id = u16::from_be_bytes([h[18], h[19]]);
        segment.hop_limit = h[22];
        segment.host_direction = frame.host_direction;
        let captured = (total as usize - PLAIN_IP_BYTES).min(tcp.len());
        let tcp = &tcp[..captured];
        transport(tcp, total - PLAIN_IP_BYTES as u32, segment)?;
        return Ok(false);
    }
    tunnelled(frame, encapsulations, segment)
}

/// Ethernet's header and one of IPv4 without options.
const PLAIN_BYTES: usize = PLAIN_IP_AT + PLAIN_IP_BYTES;
const PLAIN_IP_AT: usize = 14;
const PLAIN_IP_BYTES: usize = 20;

/// Returns the headers of a packet that has nothing but Ethernet, IPv4 without options and
/// fragments, and TCP; and what is behind them.
#[inline]
fn plain<'a>(frame: &Frame<'a>) -> Option<(&'a [u8; PLAIN_BYTES], &'a [u8])> {
    let (h, tcp) = frame.bytes.split_first_chunk::<PLAIN_BYTES>()?;
    let total = usize::from(u16::from_be_bytes([h[16], h[17]]));
    let is_plain = frame.link == Some(Link::Ethernet)
        && h[12..15] == [0x08, 0x00, 0x45]
        && h[23] == 6
        && h[20] & 0x3f == 0
        && h[21] == 0
        && total > PLAIN_IP_BYTES;
    is_plain.then_some((h, tcp))
}

fn tunnelled(
    frame: &Frame<'_>,
    encapsulations: &mut Encapsulations,
    segment: &mut Segment,
) -> Result<bool, Other> {
    let found = decapsulate(frame, encapsulations, &mut Outline::default())?;
    segment.from.address = found.ip.from;
    segment.to.address = found.ip.to;
    segment.encapsulation = found.encapsulation;
    segment.ecn = found.ip.ecn;
    segment.ip_id = found.ip.id;
    segment.hop_limit = found.ip.hop_limit;
    segment.host_direction = found.host_direction;
    transport(found.tcp, found.tcp_bytes, segment)?;
    Ok(found.ip.first_fragment)
}

/// Reads the TCP header; `tcp_bytes` is its length with the payload, by the IP header.
#[inline]
fn transport(tcp: &[u8], tcp_bytes: u32, segment: &mut Segment) -> Result<(), Other> {
    let Some(h) = tcp.first_chunk::<TCP_NEEDED_BYTES>() else {
        return Err(if tcp_bytes < TCP_BYTES as u32 {
            Other::Malformed
        } else {
            Other::Cut
        });
    };
    let header_bytes = usize::from(h[12] >> 4) * 4;
    let payload_bytes = tcp_bytes.checked_sub(header_bytes as u32);
    let (Some(payload_bytes), TCP_BYTES..) = (payload_bytes, header_bytes) else {
        return Err(Other::Malformed);
    };
    let word = |i: usize| u32::from_be_bytes([h[i], h[i + 1], h[i + 2], h[i + 3]]);
    let short = |i: usize| u16::from_be_bytes([h[i], h[i + 1]]);
    (segment.from.port, segment.to.port) = (short(0), short(2));
    (segment.seq, segment.ack) = (word(4), word(8));
    segment.flags = Flags(short(12) & 0x1ff);
    segment.window = short(14);
    segment.payload_bytes = payload_bytes;
    (segment.mss, segment.window_scale) = (None, None);
    segment.sack_permitted = false;
    (segment.timestamps, segment.mptcp) = (None, None);
    segment.sack.clear();
    segment.options_cut = false;
    options(tcp, header_bytes, segment);
    Ok(())
}

/// Length of a TCP header that has timestamps and no other option.
const ALIGNED_BYTES: usize = TCP_BYTES + 12;

#[inline]
fn options(tcp: &[u8], header_bytes: usize, segment: &mut Segment) {
    if header_bytes == TCP_BYTES {
        return;
    }
    // Most segments have timestamps alone, aligned as RFC 7323, appendix A, recommends.
    if let (ALIGNED_BYTES, Some([1, 1, 8, 10, a, b, c, d, e, f, g, h])) =
        (header_bytes, tcp.get(TCP_BYTES..ALIGNED_BYTES))
    {
        segment.timestamps = Some(Timestamps {
            value: u32::from_be_bytes([*a, *b, *c, *d]),
            echo: Some(u32::from_be_bytes([*e, *f, *g, *h])),
        });
        return;
    }
    let have = header_bytes.min(tcp.len());
    let whole = have == header_bytes && {
        let options = tcp.get(TCP_BYTES..have).unwrap_or_default();
        each_option(options, segment).is_some()
    };
    if !whole {
        segment.options_cut = true;
        if have < header_bytes {
            // Read the options before the cut.
            let _ = each_option(tcp.get(TCP_BYTES..have).unwrap_or_default(), segment);
        }
    }
}

/// Reads options up to the first that is cut or broken; returns `None` at such an option. A
/// cut SACK option keeps its whole blocks, a cut timestamps option its value.
#[inline]
fn each_option(mut options: &[u8], segment: &mut Segment) -> Option<()> {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    loop {
        let (kind, length) = match *options {
            [] | [END, ..] => return Some(()),
            [NOTHING, ref rest @ ..] => {
                options = rest;
                continue;
            }
            [_] | [_, 0 | 1, ..] => return None,
            [kind, length, ..] => (kind, usize::from(length)),
        };
        let whole = options.get(..length);
        match (kind, whole) {
            (2, Some(&[_, _, high, low])) => segment.mss = Some(u16::from_be_bytes([high, low])),
            (3, Some(&[_, _, shift])) => segment.window_scale = Some(shift),
            (4, Some([_, _])) => segment.sack_permitted = true,
            (5, _) => sack(&options[2..length.min(options.len())], segment),
            (8, Some(&[_, _, a, b, c, d, e, f, g, h])) => {
                segment.timestamps = Some(Timestamps {
                    value: u32::from_be_bytes([a, b, c, d]),
                    echo: Some(u32::from_be_bytes([e, f, g, h])),
                });
            }
            (8, None) if length == 10 => {
                let value = options.get(2..).and_then(|rest| rest.first_chunk());
                segment.timestamps = value.map(|&value| Timestamps {
                    value: u32::from_be_bytes(value),
                    echo: None,
                });
            }
            (30, Some(mptcp)) => segment.mptcp = multipath(mptcp).or(segment.mptcp),
            // A known option whose length is wrong.
            (2 | 3 | 4 | 8, Some(_)) => return None,
            _ => {}
        }
        options = options.get(length..)?;
    }
}

/// Reads an option of Multipath TCP: the key of the sender (MP_CAPABLE), or the token of the receiver
/// in a SYN (MP_JOIN); others say nothing of whose subflow it is.
fn multipath(option: &[u8]) -> Option<Mptcp> {
    const JOINING_SYN_BYTES: usize = 12;
    match *option {
        [_, _, 0x00..=0x0f, _, ref key @ ..] => {
            let key = key.first_chunk()?;
            Some(Mptcp::Key(u64::from_be_bytes(*key)))
        }
        [_, _, 0x10..=0x1f, _, a, b, c, d, ..] if option.len() == JOINING_SYN_BYTES => {
            Some(Mptcp::Join(u32::from_be_bytes([a, b, c, d])))
        }
        _ => None,
    }
}

fn sack(blocks: &[u8], segment: &mut Segment) {
    let word = |b: &[u8]| b.first_chunk().map_or(0, |w| u32::from_be_bytes(*w));
    for block in blocks.chunks_exact(8) {
        segment.sack.push(word(block), word(&block[4..]));
    }
}

#[cfg(test)]
#[path = "dissect_tests.rs"]
mod tests;
