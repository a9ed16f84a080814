// SPDX-License-Identifier: MIT OR Apache-2.0
//! Returns the UDP datagrams of a capture with their captured payload, one after the other.

use std::io::Read;

use crate::decapsulate::decapsulate;
use crate::encapsulation::Encapsulations;
use crate::error::{Damage, ReadError};
use crate::frame::Frame;
use crate::headers::Outline;
use crate::packets::Packets;
use crate::segment::Endpoint;

const UDP_BYTES: usize = 8;

/// A UDP datagram: the innermost one, if it is in a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// When it was captured, since 1970.
    pub time_ps: i128,
    pub from: Endpoint,
    pub to: Endpoint,
    /// Length of its payload, as its header states it.
    pub payload_bytes: u32,
    /// Captured bytes of its payload.
    pub payload: &'a [u8],
}

/// What a capture held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Packets of all kinds.
    pub packets: u64,
    /// UDP datagrams that were passed on.
    pub datagrams: u64,
    /// The coarsest resolution of timestamps, ps.
    pub resolution_ps: u64,
    /// Packets whose times have fractions of a second or more.
    pub beyond_second: u64,
    /// The damage, if the rest of the file could not be used.
    pub damage: Option<Damage>,
}

/// Passes each datagram to `each`, in the order of the file. First fragments and datagrams cut within
/// their UDP header are left out. Memory: one chunk of the file.
///
/// # Errors
/// If the file is no capture, or its header is incomplete. Of a file that is damaged further on, the
/// datagrams before the damage are passed.
pub fn read_datagrams<R: Read>(
    source: R,
    mut each: impl FnMut(Datagram<'_>),
) -> Result<Summary, ReadError> {
    let mut packets = Packets::open(source)?;
    let mut encapsulations = Encapsulations::default();
    let mut summary = Summary::default();
    loop {
        let next = packets.next(|frame| {
            summary.packets += 1;
            summary.beyond_second += u64::from(frame.time.is_beyond_second());
            if let Some(found) = datagram(&frame, &mut encapsulations) {
                summary.datagrams += 1;
                each(found);
            }
        });
        match next {
            Ok(Some(())) => {}
            Ok(None) => break,
            Err(error) => {
                summary.damage = Some(Damage::from(error));
                break;
            }
        }
    }
    let resolutions = packets.interfaces().iter().map(|i| i.resolution_ps);
    summary.resolution_ps = resolutions.max().unwrap_or(1);
    Ok(summary)
}

fn datagram<'a>(frame: &Frame<'a>, encapsulations: &mut Encapsulations) -> Option<Datagram<'a>> {
    let mut outline = Outline::default();
    // UDP is no TCP: what the walk passed is in the outline.
    let _ = decapsulate(frame, encapsulations, &mut outline);
    let found = outline.datagram.filter(|found| !found.ip.first_fragment)?;
    let (header, payload) = found.header.split_first_chunk::<UDP_BYTES>()?;
    let short = |i: usize| u16::from_be_bytes([header[i], header[i + 1]]);
    let payload_bytes = usize::from(short(4)).checked_sub(UDP_BYTES)?;
    Some(Datagram {
        time_ps: frame.time.ps(),
        from: Endpoint {
            address: found.ip.from,
            port: short(0),
        },
        to: Endpoint {
            address: found.ip.to,
            port: short(2),
        },
        payload_bytes: u32::try_from(payload_bytes).ok()?,
        payload: payload.get(..payload_bytes).unwrap_or(payload),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    /// A pcap with nanoseconds: packets with the time in ns and the bytes kept of them.
    fn pcap(packets: &[(u32, &[u8], usize)]) -> Vec<u8> {
        let mut out = Vec::new();
        for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, 1u32] {
            out.extend(word.to_le_bytes());
        }
        for (ns, bytes, kept) in packets {
            for word in [1_700_000_000, *ns, *kept as u32, bytes.len() as u32] {
                out.extend(word.to_le_bytes());
            }
            out.extend(&bytes[..*kept]);
        }
        out
    }

    fn udp(payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4([10, 1, 1, 1], [239, 1, 2, 3], 64)
            .udp(5000, 5004)
            .write(&mut out, payload)
            .unwrap();
        out
    }

    #[test]
    fn payloads_whole_cut_and_padded() {
        let whole = udp(b"0123456789");
        let mut padded = whole.clone();
        padded.resize(60, 0);
        let mut tcp = Vec::new();
        PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4([10, 1, 1, 1], [10, 1, 1, 2], 64)
            .tcp(1, 2, 3, 4)
            .write(&mut tcp, &[])
            .unwrap();
        let mut fragment = whole.clone();
        fragment[20] = 0x20;
        let file = pcap(&[
            (1, &whole, whole.len()),
            (2, &whole, 45),
            (3, &padded, 60),
            (4, &tcp, tcp.len()),
            (5, &fragment, fragment.len()),
            (6, &whole, 41),
        ]);
        let mut found = Vec::new();
        let summary = read_datagrams(file.as_slice(), |datagram| {
            assert_eq!(datagram.from.to_string(), "10.1.1.1:5000");
            assert_eq!(datagram.to.to_string(), "239.1.2.3:5004");
            assert_eq!(datagram.payload_bytes, 10);
            let ns = datagram.time_ps / 1000 - 1_700_000_000_000_000_000;
            found.push((ns, datagram.payload.to_vec()));
        })
        .unwrap();
        let expected = [
            (1, b"0123456789".to_vec()),
            (2, b"012".to_vec()),
            (3, b"0123456789".to_vec()),
        ];
        assert_eq!(found, expected);
        assert_eq!((summary.packets, summary.datagrams), (6, 3));
        assert_eq!((summary.resolution_ps, summary.damage), (1000, None));
        // Cut short: what is before the damage.
        let cut = read_datagrams(&file[..file.len() - 1], |_| {}).unwrap();
        assert_eq!(cut.packets, 5);
        assert!(cut.damage.is_some());
        assert!(read_datagrams(&b"no capture"[..], |_| {}).is_err());
    }
}
