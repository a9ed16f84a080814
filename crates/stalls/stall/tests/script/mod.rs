// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments from a few words each, one a line:
//!
//! ```text
//! 0     S SYN                    the client's SYN, at 0 ms
//! 10    R SYN                    the server's answer
//! 20    S ack
//! 20    S 0..1448                data by offsets, here of the sender
//! 30    R ack 1448 win 500       window in units of 128 bytes
//! 30    R ack 1448 sack 2896..4344 7240..8688
//! 99    S probe                  no data, an old number
//! 99    R 0..100                 data of the other side
//! 99    R RST
//! ```
//! `ts 40 20` sets timestamps, value and echo; `id 7` the IP identification.
//! `FIN` after data ends the stream there.

#![allow(dead_code)]

use capture::segment::{Endpoint, Flags, HostDirection, Segment, Timestamps};
use stall::{Analyser, Analysis, Connection, Options};

pub const SCALE: u8 = 7;

/// Where the numbers begin.
#[derive(Clone, Copy, Debug)]
pub struct Base {
    pub sender_isn: u32,
    pub receiver_isn: u32,
    pub start_ns: u64,
}

impl Default for Base {
    fn default() -> Base {
        Base {
            sender_isn: 1000,
            receiver_isn: 5000,
            start_ns: 1_700_000_000_000_000_000,
        }
    }
}

fn end(is_sender: bool) -> Endpoint {
    Endpoint {
        address: [192, 0, 2, if is_sender { 1 } else { 2 }].into(),
        port: if is_sender { 40_000 } else { 5001 },
    }
}

fn range(text: &str) -> Option<(u32, u32)> {
    let (start, end) = text.split_once("..")?;
    Some((start.parse().ok()?, end.parse().ok()?))
}

fn segment(line: &str, number: u64, base: Base, acked: &mut [u32; 2]) -> Segment {
    let mut words = line.split_whitespace().peekable();
    let ms: f64 = words.next().and_then(|word| word.parse().ok()).unwrap();
    let is_sender = words.next() == Some("S");
    let isn = [base.receiver_isn, base.sender_isn];
    let own = isn[usize::from(is_sender)].wrapping_add(1);
    let other = isn[usize::from(!is_sender)].wrapping_add(1);
    let mut out = Segment {
        number,
        time_ns: base.start_ns + (ms * 1e6) as u64,
        from: end(is_sender),
        to: end(!is_sender),
        encapsulation: 0,
        seq: own.wrapping_add(acked[usize::from(is_sender)]),
        ack: other.wrapping_add(acked[usize::from(!is_sender)]),
        flags: Flags(Flags::ACK),
        window: 20_000,
        payload_bytes: 0,
        mss: None,
        window_scale: None,
        sack_permitted: false,
        mptcp: None,
        timestamps: None,
        sack: Default::default(),
        options_cut: false,
        ecn: 0,
        ip_id: 0,
        hop_limit: 60,
        host_direction: HostDirection::Unknown,
    };
    while let Some(word) = words.next() {
        match word {
            "SYN" => {
                out.flags = Flags(Flags::SYN | if is_sender { 0 } else { Flags::ACK });
                out.seq = own.wrapping_sub(1);
                (out.mss, out.window_scale) = (Some(1448), Some(SCALE));
                out.sack_permitted = true;
            }
            "RST" => out.flags = Flags(Flags::RST | Flags::ACK),
            "FIN" => out.flags = Flags(out.flags.0 | Flags::FIN),
            "probe" => {
                out.seq = own
                    .wrapping_add(acked[usize::from(is_sender)])
                    .wrapping_sub(1)
            }
            "ack" => {
                if let Some(ack) = words.peek().and_then(|word| word.parse().ok()) {
                    out.ack = other.wrapping_add(ack);
                    acked[usize::from(!is_sender)] = ack;
                    words.next();
                }
            }
            "ts" => {
                let mut next = || words.next().and_then(|word| word.parse().ok());
                let (value, echo) = (next().unwrap(), next());
                out.timestamps = Some(Timestamps { value, echo });
            }
            "id" => out.ip_id = words.next().and_then(|word| word.parse().ok()).unwrap(),
            "win" => out.window = words.next().and_then(|word| word.parse().ok()).unwrap(),
            "sack" => {
                while let Some((start, end)) = words.peek().and_then(|word| range(word)) {
                    out.sack
                        .push(other.wrapping_add(start), other.wrapping_add(end));
                    words.next();
                }
            }
            data => {
                let (start, end) = range(data).unwrap();
                out.seq = own.wrapping_add(start);
                out.payload_bytes = end - start;
            }
        }
    }
    out
}

pub fn segments(script: &str, base: Base) -> Vec<Segment> {
    let lines = script
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    let lines = lines.filter(|line| !line.trim().is_empty());
    let mut acked = [0; 2];
    lines
        .zip(1u64..)
        .map(|(line, number)| segment(line, number, base, &mut acked))
        .collect()
}

/// What the analysis says of some segments.
pub fn analyse(segments: &[Segment]) -> Analysis {
    analyse_with(segments, Options::default())
}

pub fn analyse_with(segments: &[Segment], options: Options) -> Analysis {
    let mut analyser = Analyser::new(options);
    for segment in segments {
        analyser.segment(segment);
    }
    analyser.finish()
}

/// The only connection of a script.
pub fn connection(script: &str) -> Connection {
    let mut all = analyse(&segments(script, Base::default())).connections;
    assert_eq!(all.len(), 1, "{script}");
    all.pop().unwrap()
}

/// The connection whose script goes on behind [`HANDSHAKE`] and [`TEN`].
pub fn after_ten(script: &str) -> Connection {
    connection(&format!("{HANDSHAKE}{TEN}{script}"))
}

/// A handshake at the sender's side of a path of 20 ms.
pub const HANDSHAKE: &str = "
    0   S SYN
    20  R SYN
    20  S ack
";

/// Ten segments that arrived, from 20 ms on.
pub const TEN: &str = "
    20  S 0..14480
    40  R ack 2896
    40  R ack 5792
    40  R ack 8688
    40  R ack 11584
    40  R ack 14480
";

/// Captured at the receiver: the sender is 40 ms away.
pub const AT_RECEIVER: &str = "
    0    S SYN ts 0 0
    0    R SYN ts 9000 0
    40   S ack ts 40 9000
    40   S 0..1448 ts 40 9000
    40   R ack 1448 ts 9040 40
    80   S 1448..2896 ts 80 9040
    80   R ack 2896 ts 9080 80
    120  S 2896..4344 ts 120 9080
    120  R ack 4344 ts 9120 120
    160  S 4344..5792 ts 160 9120
    160  R ack 5792 ts 9160 160
";
