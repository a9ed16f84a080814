// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of a stream besides its packets, and by what each part of its format was decided.

use serde::Serialize;

use crate::format::Scan;
use crate::rate::Rate;

/// What a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Uncompressed video, RFC 4175 and ST 2110-20.
    Raw,
    /// Compressed video of a constant number of packets, ST 2110-22.
    Compressed,
    /// Audio, AES67, ST 2110-30 and ST 2110-31.
    Audio,
    /// Ancillary data, RFC 8331 and ST 2110-40.
    Ancillary,
}

impl Kind {
    pub fn words(self) -> &'static str {
        match self {
            Self::Raw => "raw video",
            Self::Compressed => "compressed video",
            Self::Audio => "audio",
            Self::Ancillary => "ancillary data",
        }
    }
}

/// How samples of audio are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Encoding {
    /// 16 bits.
    L16,
    /// 20 bits (RFC 3190).
    L20,
    /// 24 bits.
    L24,
    /// AES3 in 32 bits, ST 2110-31.
    #[serde(rename = "AM824")]
    Am824,
}

impl Encoding {
    /// Those of linear samples, the usual one first.
    pub const LINEAR: [Self; 3] = [Self::L24, Self::L16, Self::L20];

    pub fn name(self) -> &'static str {
        match self {
            Self::L16 => "L16",
            Self::L20 => "L20",
            Self::L24 => "L24",
            Self::Am824 => "AM824",
        }
    }

    /// Returns the encoding of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        let all = [Self::L16, Self::L20, Self::L24, Self::Am824];
        all.into_iter().find(|one| one.name() == name)
    }

    /// Returns the bits of a sample in a packet.
    pub fn bits(self) -> u32 {
        match self {
            Self::L16 => 16,
            Self::L20 => 20,
            Self::L24 => 24,
            Self::Am824 => 32,
        }
    }
}

/// What is known besides the packets, by options or by an SDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// What the stream carries.
    pub kind: Option<Kind>,
    /// Frames a second.
    pub rate: Option<Rate>,
    /// Lines of a frame.
    pub height: Option<u32>,
    /// How they are scanned.
    pub scan: Option<Scan>,
    pub packets_per_frame: Option<u32>,
    /// Samples a second of each channel.
    pub sampling_hz: Option<u32>,
    /// How samples of audio are written, and how many channels there are.
    pub encoding: Option<(Encoding, u32)>,
}

/// By what something was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    Option,
    Sdp,
    /// The headers of lines (RFC 4175).
    Lines,
    /// The headers of ancillary data (RFC 8331).
    AncillaryHeaders,
    /// The headers of JPEG XS (RFC 9134).
    JpegXsHeaders,
    /// The words of AM824 (ST 2110-31).
    Am824Words,
    /// The markers, timestamps and numbers of packets.
    Markers,
    Timestamps,
    /// The lengths of payloads beside the timestamps.
    PayloadLengths,
    /// Nothing: it is assumed.
    Assumed,
}

/// Returns what an option says, else what the SDP does.
pub(crate) fn pick<T>(option: Option<T>, sdp: Option<T>) -> Option<(T, By)> {
    option
        .map(|value| (value, By::Option))
        .or(sdp.map(|value| (value, By::Sdp)))
}

/// By what the format of video or ancillary data was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct VideoBy {
    /// What it carries.
    pub kind: By,
    /// Pictures a second.
    pub picture_rate: By,
    /// Lines of a frame.
    pub height: By,
    /// How they are scanned.
    pub scan: By,
    pub picture_packets: By,
}

/// By what the format of audio was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AudioBy {
    /// That it is audio.
    pub kind: By,
    /// Samples a second.
    pub sampling_hz: By,
    /// How samples are written, and the channels.
    pub encoding: By,
}
