// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures of transfers, byte by byte: headers of 10.1.1.1 to 10.1.2.1, the first
//! addresses that a scenario has.

const MSS: u32 = 1000;
const RTT_US: u64 = 10_000;

/// A pcap under way.
pub struct Capture(pub Vec<u8>);

impl Capture {
    pub fn new() -> Self {
        let mut out = Vec::new();
        for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 96, 1u32] {
            out.extend(word.to_le_bytes());
        }
        Self(out)
    }

    /// A segment of the connection from `port` to port 80.
    #[allow(clippy::too_many_arguments)]
    pub fn segment(
        &mut self,
        time_us: u64,
        port: u16,
        out: bool,
        seq: u32,
        ack: u32,
        window: u16,
        payload: u32,
    ) {
        let flags: u8 = match (seq, ack) {
            (0, 0) => 2,
            (0, _) => 18,
            _ => 16,
        };
        let syn = flags & 2 != 0;
        let options: &[u8] = if syn {
            &[2, 4, 3, 0xe8, 4, 2, 1, 1, 1, 3, 3, 0]
        } else {
            &[]
        };
        let total = 40 + options.len() as u32 + payload;
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
        bytes.extend((total as u16).to_be_bytes());
        bytes.extend(((self.0.len() / 70) as u16).to_be_bytes());
        bytes.extend([0x40, 0, 64, 6, 0, 0]);
        let (client, server) = ([10, 1, 1, 1], [10, 1, 2, 1]);
        let ends = if out {
            [(client, port), (server, 80)]
        } else {
            [(server, 80), (client, port)]
        };
        bytes.extend(ends[0].0);
        bytes.extend(ends[1].0);
        for (_, port) in ends {
            bytes.extend(port.to_be_bytes());
        }
        bytes.extend(seq.to_be_bytes());
        bytes.extend(ack.to_be_bytes());
        bytes.extend([(20 + options.len() as u8) * 4, flags]);
        bytes.extend(window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(options);
        for word in [
            (time_us / 1_000_000) as u32,
            (time_us % 1_000_000) as u32,
            bytes.len() as u32,
            14 + total,
        ] {
            self.0.extend(word.to_le_bytes());
        }
        self.0.extend(bytes);
    }

    /// A transfer in rounds of ten segments, as its sender sees it; before the
    /// round `closed_at` the receiver's window is closed for half a second.
    pub fn transfer(
        &mut self,
        start_us: u64,
        port: u16,
        rounds: u32,
        closed_at: Option<u32>,
    ) -> u64 {
        let mut now = start_us;
        self.segment(now, port, true, 0, 0, 60_000, 0);
        self.segment(now + RTT_US, port, false, 0, 1, 60_000, 0);
        now += RTT_US;
        self.segment(now, port, true, 1, 1, 60_000, 0);
        for round in 0..rounds {
            let first = 1 + round * 10 * MSS;
            if closed_at == Some(round) {
                self.segment(now, port, false, 1, first, 0, 0);
                now += 500_000;
                self.segment(now, port, false, 1, first, 60_000, 0);
            }
            for i in 0..10 {
                self.segment(
                    now + u64::from(i) * 20,
                    port,
                    true,
                    first + i * MSS,
                    1,
                    60_000,
                    MSS,
                );
            }
            now += RTT_US;
            for i in [2, 4, 6, 8, 10] {
                self.segment(
                    now + u64::from(i) * 20,
                    port,
                    false,
                    1,
                    first + i * MSS,
                    60_000,
                    0,
                );
            }
            now += 300;
        }
        now
    }
}
