// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a capture of a few long connections that send round by round, each of twenty segments: a
//! pause for the analysis in nearly every round, a loss repaired by SACK in some.

use std::io::{self, Write};

use tcp_stacks::chance::Chance;

const CONNECTIONS: u16 = 50;
/// Segments of a round, and bytes of each.
const SEGMENTS: u32 = 20;
const SEGMENT_BYTES: u32 = 1448;
/// Of a thousand rounds so many lose a segment, and so many begin a quarter of a second late.
const LOSSES: u64 = 30;
const PAUSES: u64 = 2;
const SYN: u16 = 2;
const ACK: u16 = 0x10;
const PUSH: u16 = 0x18;
const SERVER_SEQ: u32 = 4999;

struct Packets<W> {
    out: W,
    now_us: u64,
    written: u64,
    /// IP identifications of the two ends of each connection.
    ids: Vec<[u16; 2]>,
}

/// What a packet says, beside who sends it.
struct Says {
    seq: u32,
    ack: u32,
    flags: u16,
    payload_bytes: u32,
    options: Vec<u8>,
}

impl<W: Write> Packets<W> {
    /// Writes a packet of a connection, of its client (0) or server (1), `after_us` later.
    fn packet(
        &mut self,
        connection: u16,
        from: usize,
        says: &Says,
        after_us: u64,
    ) -> io::Result<()> {
        let header_bytes = 20 + says.options.len() as u16;
        let ip_bytes = 20 + header_bytes + says.payload_bytes as u16;
        let id = &mut self.ids[usize::from(connection)][from];
        *id = id.wrapping_add(1);
        let ports = [40_000 + connection, 80];
        let mut packet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
        for half in [ip_bytes, *id, 0x4000, (64 << 8) | 6, 0] {
            packet.extend(half.to_be_bytes());
        }
        for end in [from, 1 - from] {
            packet.extend([10, 0, 0, end as u8 + 1]);
        }
        packet.extend(ports[from].to_be_bytes());
        packet.extend(ports[1 - from].to_be_bytes());
        packet.extend(says.seq.to_be_bytes());
        packet.extend(says.ack.to_be_bytes());
        packet.extend((((header_bytes / 4) << 12) | says.flags).to_be_bytes());
        packet.extend([0xea, 0x60, 0, 0, 0, 0]); // window, checksum, urgent pointer
        packet.extend(&says.options);
        let captured = packet.len() as u32;
        let head = [
            (self.now_us / 1_000_000) as u32,
            (self.now_us % 1_000_000) as u32,
            captured,
            captured + says.payload_bytes,
        ];
        for word in head {
            self.out.write_all(&word.to_le_bytes())?;
        }
        self.out.write_all(&packet)?;
        self.now_us += after_us;
        self.written += 1;
        Ok(())
    }

    fn timestamps(&self, behind_ms: u32) -> Vec<u8> {
        let now_ms = (self.now_us / 1000) as u32;
        let mut option = vec![1, 1, 8, 10];
        option.extend(now_ms.to_be_bytes());
        option.extend((now_ms - behind_ms).to_be_bytes());
        option
    }

    fn data(&mut self, connection: u16, seq: u32, after_us: u64) -> io::Result<()> {
        let says = Says {
            seq,
            ack: SERVER_SEQ + 1,
            flags: PUSH,
            payload_bytes: SEGMENT_BYTES,
            options: self.timestamps(20),
        };
        self.packet(connection, 0, &says, after_us)
    }

    fn ack(
        &mut self,
        connection: u16,
        ack: u32,
        sack: Option<(u32, u32)>,
        after_us: u64,
    ) -> io::Result<()> {
        let mut options = self.timestamps(0);
        if let Some((begin, end)) = sack {
            options.extend([1, 1, 5, 10]);
            options.extend(begin.to_be_bytes());
            options.extend(end.to_be_bytes());
        }
        let says = Says {
            seq: SERVER_SEQ + 1,
            ack,
            flags: ACK,
            payload_bytes: 0,
            options,
        };
        self.packet(connection, 1, &says, after_us)
    }

    fn handshake(&mut self, connection: u16, seq: u32) -> io::Result<()> {
        let options = [
            &[2, 4, 5, 0xb4, 4, 2][..],
            &self.timestamps(0)[2..],
            &[1, 3, 3, 9],
        ]
        .concat();
        let says = |seq, ack, flags, options: &[u8]| Says {
            seq,
            ack,
            flags,
            payload_bytes: 0,
            options: options.to_vec(),
        };
        self.packet(connection, 0, &says(seq - 1, 0, SYN, &options), 20_000)?;
        self.packet(
            connection,
            1,
            &says(SERVER_SEQ, seq, SYN | ACK, &options),
            10,
        )?;
        self.packet(connection, 0, &says(seq, SERVER_SEQ + 1, ACK, &[]), 10)
    }

    /// A round: all of it acknowledged, each second segment, or a hole that SACK tells of.
    fn round(&mut self, connection: u16, base: u32, lost: Option<u32>) -> io::Result<()> {
        let at = |segment: u32| base.wrapping_add(segment * SEGMENT_BYTES);
        for segment in 0..SEGMENTS {
            self.data(connection, at(segment), 1)?;
        }
        let Some(lost) = lost else {
            for segment in (2..=SEGMENTS).step_by(2) {
                self.ack(connection, at(segment), None, 1)?;
            }
            return Ok(());
        };
        for segment in lost + 1..SEGMENTS {
            self.ack(
                connection,
                at(lost),
                Some((at(lost + 1), at(segment + 1))),
                1,
            )?;
        }
        self.data(connection, at(lost), 20_000)?;
        self.ack(connection, at(SEGMENTS), None, 0)
    }
}

/// Writes at least `packets` packets.
pub fn write(out: impl Write, packets: u64) -> io::Result<()> {
    let mut chance = Chance::new(9, 0);
    let mut all = Packets {
        out,
        now_us: 1_700_000_000 * 1_000_000,
        written: 0,
        ids: vec![[0; 2]; usize::from(CONNECTIONS)],
    };
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 96, 1u32] {
        all.out.write_all(&word.to_le_bytes())?;
    }
    let mut sequence = [1000u32; CONNECTIONS as usize];
    for connection in 0..CONNECTIONS {
        all.handshake(connection, 1000)?;
    }
    while all.written < packets {
        for connection in 0..CONNECTIONS {
            all.now_us += 20;
            let is_lossy = chance.between(0, 999) < LOSSES;
            let lost = is_lossy.then(|| chance.between(0, u64::from(SEGMENTS) - 1) as u32);
            if chance.between(0, 999) < PAUSES {
                all.now_us += 250_000;
            }
            let base = &mut sequence[usize::from(connection)];
            let begin = *base;
            *base = base.wrapping_add(SEGMENTS * SEGMENT_BYTES);
            all.round(connection, begin, lost)?;
            all.now_us += 300;
        }
    }
    all.out.flush()
}
