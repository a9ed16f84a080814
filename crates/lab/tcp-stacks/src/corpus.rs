// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the cases of `tests/stalls-corpus`: packets as text, with the truth about them. Its README
//! has the form.

use std::net::SocketAddr;

use serde::Deserialize;

use crate::capture_file::{ethernet, header, push_frame};
use crate::ground_truth::{End, Why};
use crate::packet::{Ids, Packet, checksum};

/// Wall clock of a capture's time 0: the first second of 2026, in nanoseconds since 1970.
const EPOCH_NS: u64 = 1_767_225_600_000_000_000;
/// Bytes kept of each frame, unless a case says so.
const SNAP_BYTES: usize = 96;
/// Letters of the flags, from the lowest bit.
const FLAGS: &str = "FSRPAUEC";
const IPV4_BYTES: usize = 20;

/// A capture with its truth.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Cases of one theme belong together.
    pub theme: String,
    /// Where the capture was made.
    pub point: String,
    /// Whether there is no other stall.
    pub complete: bool,
    /// Why nothing stalled, or what the whole capture is about.
    pub why: Option<String>,
    /// What happened, how the packets show it, what it looks like.
    pub about: Vec<String>,
    #[serde(default)]
    pub stall: Vec<Stall>,
    pub capture: Capture,
}

/// A stall that happened.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    pub direction: String,
    /// The silence, in seconds after the first packet.
    pub start_s: f64,
    pub end_s: f64,
    /// Whether an analyser has to report it.
    #[serde(default = "is_required")]
    pub required: bool,
    /// Right answers, the best first.
    pub causes: Vec<String>,
    pub sides: Vec<String>,
    /// Causes that are wrong.
    pub not: Vec<String>,
    pub why: String,
}

/// The packets of a case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    pub snap_bytes: Option<usize>,
    pub connections: Vec<Connection>,
    /// One in each line.
    packets: String,
    /// What they are as frames, with their times.
    #[serde(skip)]
    frames: Vec<(u64, Vec<u8>)>,
}

/// What names a connection.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    pub client: SocketAddr,
    pub server: SocketAddr,
    /// Initial sequence numbers of client and server.
    initial: [u32; 2],
}

/// A line of packets.
struct Line {
    time_ns: u64,
    packet: Packet,
    connection: usize,
    vlan: Option<u16>,
    /// The byte of IPv4 that carries ECN.
    tos: u8,
    /// The IPv4 length is 0, as some captures of large sends have it.
    is_length_0: bool,
    /// The bytes behind the Ethernet header, where they are no TCP of the connection.
    raw: Option<Vec<u8>>,
}

fn is_required() -> bool {
    true
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// A text that says what was expected, and in which line of the packets.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut case: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        case.capture.frames = case.capture.read()?;
        Ok(case)
    }

    /// Returns what a case's own truth has against the rules of the corpus.
    pub fn faults(&self) -> Vec<&'static str> {
        let mut faults = Vec::new();
        let mut fault = |is_bad: bool, what| faults.extend(is_bad.then_some(what));
        fault(
            self.stall.is_empty() && self.why.is_none(),
            "neither stall nor why",
        );
        fault(
            !(3..=8).contains(&self.about.len()),
            "three to eight lines of about",
        );
        for stall in &self.stall {
            fault(
                stall.end_s <= stall.start_s,
                "a stall without beginning or end",
            );
            fault(stall.why.is_empty(), "a stall without why");
            fault(
                stall.causes.is_empty() || stall.sides.is_empty(),
                "no answer",
            );
            let is_both = stall.not.iter().any(|not| stall.causes.contains(not));
            fault(is_both, "a cause is both right and wrong");
        }
        faults
    }
}

impl Capture {
    /// Returns the capture as a pcap file with timestamps in nanoseconds: Ethernet frames.
    pub fn pcap(&self) -> Vec<u8> {
        let snap = self.snap_bytes.unwrap_or(SNAP_BYTES);
        let mut file = header(snap).to_vec();
        for (time_ns, frame) in &self.frames {
            push_frame(&mut file, EPOCH_NS + time_ns, frame, snap);
        }
        file
    }

    /// Reads the packets.
    fn read(&self) -> Result<Vec<(u64, Vec<u8>)>, String> {
        let lines = self.packets.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        lines
            .map(|(number, text)| {
                let fault = |expected| {
                    format!(
                        "packets, line {}: `{text}`: expected {expected}",
                        number + 1
                    )
                };
                let line = Line::parse(text).map_err(fault)?;
                let Some(connection) = self.connections.get(line.connection) else {
                    return Err(fault("one of `connections`"));
                };
                Ok((line.time_ns, line.frame(connection)))
            })
            .collect()
    }
}

impl Line {
    fn parse(text: &str) -> Result<Self, &'static str> {
        const END: &str = "TIME client|server FLAGS SEQ+BYTES ...";
        let mut words = text.split_whitespace();
        let time_ns = words
            .next()
            .and_then(nanoseconds)
            .ok_or("a time in seconds")?;
        let from = match words.next() {
            Some("client") => End::Client,
            Some("server") => End::Server,
            _ => return Err(END),
        };
        let mut line = Line {
            time_ns,
            packet: Packet {
                from,
                seq: 0,
                ack: 0,
                flags: 0,
                window: 0,
                payload_bytes: 0,
                mss: None,
                window_scale: None,
                sack_permitted: false,
                timestamps: None,
                sack: Vec::new(),
                ip_id: 0,
                hop_limit: 64,
                why: Why::New,
            },
            connection: 0,
            vlan: None,
            tos: 0,
            is_length_0: false,
            raw: None,
        };
        let first = words.next().ok_or(END)?;
        if first == "raw" {
            line.raw = Some(words.next().and_then(bytes).ok_or("raw HEX or HEX+ZEROS")?);
        } else {
            line.packet.flags = flags(first).ok_or("flags of FSRPAUEC, or -")?;
            let (seq, length) = words.next().and_then(|w| w.split_once('+')).ok_or(END)?;
            line.packet.seq = seq.parse().map_err(|_| END)?;
            line.packet.payload_bytes = length.parse().map_err(|_| END)?;
        }
        while let Some(key) = words.next() {
            line.field(key, &mut words)?;
        }
        Ok(line)
    }

    fn field<'a>(
        &mut self,
        key: &str,
        words: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), &'static str> {
        fn number<T: std::str::FromStr>(word: Option<&str>) -> Result<T, &'static str> {
            word.and_then(|word| word.parse().ok()).ok_or("a number")
        }
        let packet = &mut self.packet;
        match key {
            "sackok" => packet.sack_permitted = true,
            "iplen0" => self.is_length_0 = true,
            "ack" => packet.ack = number(words.next())?,
            "win" => packet.window = number(words.next())?,
            "mss" => packet.mss = Some(number(words.next())?),
            "scale" => packet.window_scale = Some(number(words.next())?),
            "id" => packet.ip_id = number(words.next())?,
            "ttl" => packet.hop_limit = number(words.next())?,
            "on" => self.connection = number(words.next())?,
            "vlan" => self.vlan = Some(number(words.next())?),
            "tos" => self.tos = number(words.next())?,
            "ts" => {
                let (value, echo) = words
                    .next()
                    .and_then(|w| w.split_once(','))
                    .ok_or("VALUE,ECHO")?;
                packet.timestamps = Some((number(Some(value))?, number(Some(echo))?));
            }
            "sack" => {
                for block in words.next().ok_or("BEGIN:END,...")?.split(',') {
                    let (begin, end) = block.split_once(':').ok_or("BEGIN:END,...")?;
                    packet.sack.push((number(Some(begin))?, number(Some(end))?));
                }
            }
            _ => {
                return Err(
                    "ack, win, mss, scale, sackok, ts, sack, id, ttl, on, vlan, tos or iplen0",
                );
            }
        }
        Ok(())
    }

    /// Returns the Ethernet frame.
    fn frame(&self, connection: &Connection) -> Vec<u8> {
        let mut frame = ethernet(self.packet.from).to_vec();
        if let Some(vlan) = self.vlan {
            frame.extend([0x81, 0]);
            frame.extend(vlan.to_be_bytes());
        }
        let packet = match &self.raw {
            Some(raw) => raw.clone(),
            None => self.packet(connection),
        };
        frame.extend(if packet.first().is_some_and(|byte| byte >> 4 == 6) {
            [0x86, 0xdd]
        } else {
            [8, 0]
        });
        frame.extend(packet);
        frame
    }

    fn packet(&self, connection: &Connection) -> Vec<u8> {
        let ends = [connection.client, connection.server];
        let ids = Ids {
            addresses: ends.map(|end| match end {
                SocketAddr::V4(v4) => v4.ip().octets(),
                SocketAddr::V6(_) => [0; 4],
            }),
            ports: ends.map(|end| end.port()),
            initial: connection.initial,
        };
        let mut packet = self.packet.ipv4(&ids, self.packet.hop_limit);
        let own = self.packet.from.index();
        if let [SocketAddr::V6(from), SocketAddr::V6(to)] = [ends[own], ends[1 - own]] {
            let mut tcp = packet.split_off(IPV4_BYTES);
            tcp[16..18].copy_from_slice(&[0, 0]);
            let mut v6 = vec![0x60, 0, 0, 0];
            v6.extend((tcp.len() as u16).to_be_bytes());
            v6.extend([6, self.packet.hop_limit]);
            v6.extend(from.ip().octets());
            v6.extend(to.ip().octets());
            let sum = checksum(&[&v6[8..], &tcp].concat(), tcp.len() as u32 + 6);
            tcp[16..18].copy_from_slice(&sum.to_be_bytes());
            v6.extend(tcp);
            return v6;
        }
        if self.tos > 0 {
            packet[1] = self.tos;
            packet[10..12].copy_from_slice(&[0, 0]);
            let sum = checksum(&packet[..IPV4_BYTES], 0);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        if self.is_length_0 {
            // Of a card that fills both in: the checksum is that of the length.
            packet[2..4].copy_from_slice(&[0, 0]);
        }
        packet
    }
}

/// Reads seconds with up to nine digits behind the point.
fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let part_ns: u64 = format!("{part:0<9}")
        .parse()
        .ok()
        .filter(|_| part.len() <= 9)?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(part_ns)
}

fn flags(text: &str) -> Option<u8> {
    if text == "-" {
        return Some(0);
    }
    let bit = |letter| Some(1 << FLAGS.find(letter)?);
    text.chars()
        .try_fold(0, |all, letter| Some(all | bit(letter)?))
}

/// Reads hexadecimal digits, and how many zeros follow.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let (digits, zeros) = text.split_once('+').unwrap_or((text, "0"));
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let mut bytes: Vec<u8> = pairs.map(byte).collect::<Option<_>>()?;
    let zeros = zeros.parse::<u16>().ok()?;
    bytes.resize(bytes.len() + usize::from(zeros), 0);
    Some(bytes)
}
