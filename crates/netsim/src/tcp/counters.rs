// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a sender counts.

/// What a sender has counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments with data given out, retransmissions included and what the
    /// interface refused not.
    pub segments: u64,
    /// Retransmissions of any kind.
    pub retransmits: u64,
    /// Of these, of packets not thought lost, for want of new data.
    pub forward_retransmits: u64,
    /// Of these, of packets whose retransmission was found lost.
    pub repeated_retransmits: u64,
    /// Retransmissions found lost.
    pub lost_retransmits: u64,
    /// Times the retransmission timer ran out.
    pub timeouts: u64,
    /// Tail loss probes.
    pub loss_probes: u64,
    /// Times Recovery was entered.
    pub recoveries: u64,
    /// Times a reduction of the window was taken back.
    pub undos: u64,
    /// Segments that the interface's queue refused.
    pub local_drops: u64,
    /// Times the local queue alone reduced the window.
    pub local_reductions: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Acknowledgements seen.
    pub acks: u64,
    /// Packets of the queue visited for SACK blocks and on the search for what
    /// to retransmit: what the scoreboard costs.
    pub scoreboard_steps: u64,
}
