// SPDX-License-Identifier: MIT OR Apache-2.0
//! The facts about a pause: enough for every rule of [`crate::judge`].

/// What made the sender retransmit a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resent {
    Fast,
    /// The retransmission timer, or the repair that follows it.
    Timeout,
    /// A tail loss probe (TLP).
    Probe,
}

/// The first expiry of the retransmission timer in a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeout {
    pub(crate) at_ns: u64,
    /// Segments reported as arrived, behind the one that the timeout repairs.
    pub(crate) sacked_out: u32,
    /// Reason of an earlier retransmission of the segment that the timeout repairs, if there
    /// was one.
    pub(crate) resent_before: Option<Resent>,
}

/// How a pause ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// So many segments were delivered at once.
    Delivery(u32),
    /// The connection ended in the pause.
    End,
    /// The pause goes on.
    Open,
}

/// Numbers of the records that show something: the first ones and the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence(Vec<u64>);

impl Evidence {
    const MOST: usize = 16;

    pub(crate) fn push(&mut self, number: u64) {
        if self.0.last() == Some(&number) {
            return;
        }
        if self.0.len() == Self::MOST {
            self.0.pop();
        }
        self.0.push(number);
    }

    pub(crate) fn into_numbers(self) -> Vec<u64> {
        self.0
    }
}

/// What follows a pause within two round trips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct After {
    /// Segments reported as received twice.
    pub(crate) dsacks: u32,
    /// Retransmissions on acknowledgements.
    pub(crate) resent: u32,
}

/// A pause: nothing was delivered although something was waiting to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) closed: Closed,
    pub(crate) timeouts: u32,
    pub(crate) first_timeout: Option<Timeout>,
    /// Time of the first tail loss probe that was a retransmission.
    pub(crate) first_probe_ns: Option<u64>,
    /// Whether a tail loss probe was unanswered at the end.
    pub(crate) tail_probe: bool,
    /// Retransmissions on acknowledgements.
    pub(crate) fast: u32,
    /// Acknowledgements that delivered nothing.
    pub(crate) idle_acks: u32,
    /// Segments outstanding at the end, before what ended the pause.
    pub(crate) packets_out: u32,
    pub(crate) mss_bytes: u32,
    pub(crate) window_bytes: u32,
    /// Time of the pause that the sender waited for the window.
    pub(crate) window_ns: u64,
    /// Smoothed round trip before the pause.
    pub(crate) srtt_ns: u64,
    pub(crate) after: After,
    /// Rate before the pause, in bytes per second; 0: not known.
    pub(crate) rate_bytes_per_s: u64,
    pub(crate) evidence: Evidence,
}

impl Facts {
    pub(crate) fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// An idle time: there was nothing to send, and then there was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdleFacts {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// When data of the other side arrived last; 0: never.
    pub(crate) peer_data_ns: u64,
    /// Bytes sent from the pause before to this one, and the size of a full segment.
    pub(crate) sent_bytes: u64,
    pub(crate) mss_bytes: u32,
    pub(crate) srtt_ns: u64,
    pub(crate) window_bytes: u32,
    pub(crate) rate_bytes_per_s: u64,
    pub(crate) evidence: Evidence,
}

impl IdleFacts {
    pub(crate) fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_keeps_the_first_and_the_last() {
        let mut evidence = Evidence::default();
        for number in [1, 2, 2, 3].into_iter().chain(4..=40) {
            evidence.push(number);
        }
        let numbers = evidence.into_numbers();
        assert_eq!(numbers.len(), Evidence::MOST);
        assert_eq!(numbers[..3], [1, 2, 3]);
        assert_eq!(numbers.last(), Some(&40));
    }
}
