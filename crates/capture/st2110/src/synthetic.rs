// SPDX-License-Identifier: MIT OR Apache-2.0
//! Synthetic streams: the bytes of each RTP packet and the instant at which it is to leave.

use units::time::PS_PER_S;

use crate::format::{Format, Scan, Schedule};
use crate::infer::VIDEO_HZ;
use crate::rate::Rate;
use crate::receiver::ReadTimes;
use crate::rfc4175::{EXTENDED_BYTES, LINE_BYTES, Line};
use crate::rtp::{HEADER_BYTES, Header};

/// Bytes and pixels of a pixel group of 4:2:2, 10 bit (SMPTE ST 2110-20, 6.2.4).
const GROUP_BYTES: u32 = 5;
const GROUP_PIXELS: u32 = 2;
/// Largest UDP datagram of the standard's usual size, its header included (SMPTE ST 2110-10, 6.3).
const UDP_BYTES: u32 = 1460;
const UDP_HEADER_BYTES: u32 = 8;
/// Payload type of both streams: the first of the dynamic ones.
pub const PAYLOAD_TYPE: u8 = 96;
/// Mid grey: the pixel group's Cb, Y, Cr, Y, of 10 bits each.
const GREY: [u16; 4] = [512, 504, 512, 504];

/// Packets that a packet leaves before its read time: half of a narrow VRX_FULL of 8, so that it may
/// come as much too early as too late.
pub const EARLY_PACKETS: u32 = 4;

/// A synthetic video stream, RFC 4175, each packet a piece of one line.
#[derive(Clone, Debug)]
pub struct Video {
    format: Format,
    rate: Rate,
    line_packets: u32,
    packets: u32,
    times: ReadTimes,
    early_packets: u32,
    samples: Vec<u8>,
    ssrc: u32,
}

impl Video {
    /// Makes a stream that keeps to a read schedule, packets leaving `early_packets` read spacings
    /// before they are read. `None`: a picture has more packets than can be measured.
    pub fn new(format: Format, schedule: Schedule, early_packets: u32, ssrc: u32) -> Option<Self> {
        let headers = UDP_HEADER_BYTES + (HEADER_BYTES + EXTENDED_BYTES + LINE_BYTES) as u32;
        let most_groups = (UDP_BYTES - headers) / GROUP_BYTES;
        let line_packets = (format.width / GROUP_PIXELS).div_ceil(most_groups);
        let rows = format.height / format.raster().pictures();
        let packets = line_packets.checked_mul(rows)?;
        if packets > crate::limits::MOST_PACKETS {
            return None;
        }
        let rate = format.picture_rate();
        Some(Self {
            format,
            rate,
            line_packets,
            packets,
            times: ReadTimes::new(rate, packets, format.raster(), schedule, None),
            early_packets,
            samples: grey(most_groups),
            ssrc,
        })
    }

    /// Returns the packets of a picture.
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Returns pictures a second: fields of an interlaced format.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the number of the first picture whose first packet leaves at or after an instant.
    pub fn first_after(&self, time_ps: i128) -> i128 {
        let near = self.times.nearest(time_ps * self.times.scale());
        (near - 1..)
            .find(|n| self.launch_ps(*n, 0) >= time_ps)
            .unwrap_or(near)
    }

    /// Returns when packet `index` of a picture leaves, since the epoch, rounded down.
    pub fn launch_ps(&self, picture: i128, index: u32) -> i128 {
        let early = i128::from(self.early_packets) * self.times.spacing();
        let read = self.times.datum(picture) + i128::from(index) * self.times.spacing();
        (read - early).div_euclid(self.times.scale())
    }

    /// Returns the bytes a second, of IP and what is above, while packets are being sent.
    pub fn active_ip_bytes_per_s(&self, ip_header_bytes: u32) -> u64 {
        let headers = (HEADER_BYTES + EXTENDED_BYTES + LINE_BYTES) as u32 + UDP_HEADER_BYTES;
        let line = self.format.width / GROUP_PIXELS * GROUP_BYTES
            + self.line_packets * (headers + ip_header_bytes);
        // A line every `line_packets` spacings, which are ps × scale.
        let top = i128::from(line) * i128::from(PS_PER_S) * self.times.scale();
        let bottom = self.times.spacing() * i128::from(self.line_packets);
        u64::try_from(top / bottom).unwrap_or(u64::MAX)
    }

    /// Writes packet `index` of a picture, whose number in the stream is `sequence`, to `out`, which
    /// is cleared first.
    pub fn write(&self, picture: i128, index: u32, sequence: u32, out: &mut Vec<u8>) {
        out.clear();
        let header = Header {
            marker: index + 1 == self.packets,
            payload_type: PAYLOAD_TYPE,
            sequence: sequence as u16,
            timestamp: self.timestamp(picture),
            ssrc: self.ssrc,
        };
        out.extend(header.to_bytes());
        out.extend(((sequence >> 16) as u16).to_be_bytes());
        let groups = self.format.width / GROUP_PIXELS;
        let piece = index % self.line_packets;
        // Pieces of equal length, up to a pixel group.
        let begin = |piece: u32| {
            let share = u64::from(groups) * u64::from(piece) / u64::from(self.line_packets);
            share as u32
        };
        let (from, to) = (begin(piece), begin(piece + 1));
        let bytes = (to - from) * GROUP_BYTES;
        let line = Line {
            length: bytes as u16,
            second_field: self.format.scan == Scan::Interlaced && picture.rem_euclid(2) == 1,
            row: (index / self.line_packets) as u16,
            offset: (from * GROUP_PIXELS) as u16,
        };
        out.extend(line.to_bytes(false));
        out.extend(self.samples.iter().take(bytes as usize));
    }

    /// Returns the timestamp of a picture: N T in ticks of 90 kHz, rounded down (ST 2110-10, 7.3).
    fn timestamp(&self, picture: i128) -> u32 {
        let ticks = picture * i128::from(VIDEO_HZ) * i128::from(self.rate.den());
        ticks.div_euclid(i128::from(self.rate.num())) as u32
    }
}

/// Returns so many pixel groups of grey.
fn grey(groups: u32) -> Vec<u8> {
    let bits = GREY
        .iter()
        .fold(0u64, |bits, sample| (bits << 10) | u64::from(*sample));
    bits.to_be_bytes()[3..].repeat(groups as usize)
}

/// A synthetic audio stream, AES67: silence in 24 bits, 48 kHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audio {
    channels: u32,
    samples: u32,
    ssrc: u32,
}

/// Sampling rate of synthetic audio.
pub const AUDIO_HZ: u32 = 48_000;
const SAMPLE_BYTES: u32 = 3;

impl Audio {
    /// Makes a stream of so many channels, whose packets have the samples of `packet_time_ns`.
    ///
    /// # Errors
    /// Says which packet times there are, or how many channels fit.
    pub fn new(channels: u32, packet_time_ns: u64, ssrc: u32) -> Result<Self, String> {
        // AES67, 7.2.1.
        let samples = match packet_time_ns {
            125_000 => 6,
            250_000 => 12,
            333_000..=333_334 => 16,
            1_000_000 => 48,
            4_000_000 => 192,
            _ => return Err("expected a packet time of 125us, 250us, 333us, 1ms or 4ms".to_owned()),
        };
        let most = (UDP_BYTES - UDP_HEADER_BYTES - HEADER_BYTES as u32) / SAMPLE_BYTES / samples;
        if channels == 0 || channels > most {
            return Err(format!(
                "expected 1 to {most} channels with this packet time"
            ));
        }
        Ok(Self {
            channels,
            samples,
            ssrc,
        })
    }

    /// Returns the number of the first packet that leaves at or after an instant.
    pub fn first_after(&self, time_ps: i128) -> i128 {
        let ticks = (time_ps * i128::from(AUDIO_HZ)).div_euclid(i128::from(PS_PER_S));
        let near = ticks.div_euclid(i128::from(self.samples));
        (near - 2..)
            .find(|n| self.launch_ps(*n) >= time_ps)
            .unwrap_or(near)
    }

    /// Returns when a packet leaves, since the epoch, rounded up: when its last sample has been
    /// taken.
    pub fn launch_ps(&self, packet: i128) -> i128 {
        let samples = (packet + 1) * i128::from(self.samples);
        let (ps, hz) = (samples * i128::from(PS_PER_S), i128::from(AUDIO_HZ));
        ps.div_euclid(hz) + i128::from(ps.rem_euclid(hz) > 0)
    }

    /// Returns the bytes a second, of IP and what is above.
    pub fn ip_bytes_per_s(&self, ip_header_bytes: u32) -> u64 {
        let packet = self.channels * self.samples * SAMPLE_BYTES
            + HEADER_BYTES as u32
            + UDP_HEADER_BYTES
            + ip_header_bytes;
        u64::from(packet) * u64::from(AUDIO_HZ) / u64::from(self.samples)
    }

    /// Writes a packet, whose number in the stream is `sequence`, to `out`, which is cleared first.
    pub fn write(&self, packet: i128, sequence: u32, out: &mut Vec<u8>) {
        out.clear();
        let header = Header {
            marker: false,
            payload_type: PAYLOAD_TYPE,
            sequence: sequence as u16,
            timestamp: (packet * i128::from(self.samples)) as u32,
            ssrc: self.ssrc,
        };
        out.extend(header.to_bytes());
        let bytes = self.channels * self.samples * SAMPLE_BYTES;
        out.resize(HEADER_BYTES + bytes as usize, 0);
    }
}
