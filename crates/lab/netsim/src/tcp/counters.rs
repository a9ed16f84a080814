// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of a sender.

/// Counters of a sender since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments with data sent. Retransmissions are included; segments that the
    /// interface's queue refused are not.
    pub segments: u64,
    /// Retransmissions of any kind.
    pub retransmits: u64,
    /// Forward retransmissions: those of packets that are not marked lost, sent for
    /// want of new data.
    pub forward_retransmits: u64,
    /// Retransmissions of packets whose earlier retransmission was found lost.
    pub repeated_retransmits: u64,
    /// Retransmissions found lost.
    pub lost_retransmits: u64,
    /// Number of retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes sent.
    pub loss_probes: u64,
    /// Number of times that the sender entered Recovery.
    pub recoveries: u64,
    /// Number of times that a reduction of the window was undone.
    pub undos: u64,
    /// Segments that the interface's queue refused.
    pub local_drops: u64,
    /// Number of times that the window was reduced only because the local queue was
    /// full.
    pub local_reductions: u64,
    /// Probes of a closed window sent.
    pub window_probes: u64,
    /// Acknowledgements received.
    pub acks: u64,
    /// Packets of the queue examined while processing SACK blocks and while
    /// searching for the next retransmission: a measure of the scoreboard's
    /// processing cost.
    pub scoreboard_steps: u64,
}
