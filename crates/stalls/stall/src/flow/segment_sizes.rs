// SPDX-License-Identifier: MIT OR Apache-2.0
//! How large a full segment is: by the option of the SYNs, else by what was captured.

/// Payload of a full segment, in bytes, while nothing is known of it.
const MSS_GUESS: u64 = 1448;
/// Bytes that the timestamps option takes of each segment.
const TIMESTAMPS_BYTES: u64 = 12;
/// The largest TCP payload that fits an Ethernet frame, in bytes.
const ETHERNET_PAYLOAD: u64 = 1460;
/// The largest TCP payload that fits a jumbo frame, in bytes.
const JUMBO_PAYLOAD: u64 = 8960;

/// What is known of the sizes of a flow's segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SegmentSizes {
    /// The least maximum segment size that a SYN allows.
    mss_option: Option<u16>,
    /// The largest payload captured that a device did not put together.
    mss_seen: u64,
    payload_max: u64,
    /// Largest payload that was delivered.
    pub(super) delivered_max: u64,
    pub(super) has_timestamps: bool,
}

impl SegmentSizes {
    pub(crate) fn set_mss(&mut self, mss: u16) {
        let known = self.mss_option.unwrap_or(u16::MAX);
        self.mss_option = Some(known.min(mss));
    }

    /// Notes the payload of a segment of the sender.
    pub(super) fn note_payload(&mut self, payload: u64) {
        self.payload_max = self.payload_max.max(payload);
        if payload <= ETHERNET_PAYLOAD || self.payload_max <= JUMBO_PAYLOAD {
            self.mss_seen = self.mss_seen.max(payload);
        }
        if self.payload_max > JUMBO_PAYLOAD && self.mss_seen > ETHERNET_PAYLOAD {
            self.mss_seen = ETHERNET_PAYLOAD - TIMESTAMPS_BYTES;
        }
    }

    /// Returns the payload of a full segment, as well as it is known.
    pub(crate) fn mss(&self) -> u64 {
        let timestamps = if self.has_timestamps {
            TIMESTAMPS_BYTES
        } else {
            0
        };
        match (self.mss_option, self.mss_seen) {
            (Some(option), _) => u64::from(option).saturating_sub(timestamps).max(1),
            (None, 0) => MSS_GUESS,
            (None, seen) => seen,
        }
    }
}
