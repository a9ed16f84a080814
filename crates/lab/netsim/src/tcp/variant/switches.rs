// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences between the kernels' loss recoveries: one switch for each.

use units::clock::Span;

use super::bic::BicParameters;
use crate::tcp::algorithm::Congestion;

/// How the SACK blocks of an acknowledgement are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SackSort {
    /// Each swap writes from a copy taken before the first swap: some blocks are
    /// lost, others appear twice (defect 2 of paper 001, section 4).
    LosesBlocks,
    /// The blocks are sorted correctly.
    Right,
}

/// Which packets are examined for the SACK blocks of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SackScan {
    /// The whole queue up to the end of each block, for each block in the order of the segment
    /// (before 2.6.16).
    WholeQueue,
    /// The queue once for all the blocks, which are sorted first; and only from a remembered
    /// packet on if nothing but the end of the first block changed.
    Hints,
}

/// Where the scan for the next acknowledgement continues if only its first block
/// grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SackHint {
    /// Where the scan for the last of the sorted blocks ended: growth of a lower
    /// first block is then missed.
    AfterAnyBlock,
    /// Where the scan for the block that was first on the wire ended.
    AfterFirstBlock,
}

/// What the recorded `snd_nxt` of a retransmitted packet is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostRetransmission {
    /// The end of the block during whose scan the packet is met: packets below the
    /// block before it are never compared with it (defect 3).
    EndOfItsBlock,
    /// The highest end of all blocks of the acknowledgement (the paper's first
    /// fix).
    HighestEndOfBlocks,
    /// The highest sequence number SACKed so far, in a separate scan whenever that
    /// has passed the recorded `snd_nxt` of any retransmitted packet.
    OwnWalk,
}

/// How losses are detected and how the window is reduced during recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Forward acknowledgement with rate halving.
    FackRateHalving,
    /// RACK-TLP (RFC 8985) with proportional rate reduction (RFC 9937).
    RackPrr,
}

/// One kernel's loss recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variant {
    /// Name of the variant in tables.
    pub name: &'static str,
    /// How losses are detected and the window is reduced.
    pub recovery: Recovery,
    /// Appropriate byte counting (RFC 3465): whether growth of the window waits for
    /// a segment's worth of acknowledged bytes.
    pub abc: bool,
    /// Whether bytes acknowledged after a timeout count for it. If not, slow start
    /// makes no progress until the sender has recovered from the timeout (defect
    /// 1).
    pub abc_counts_in_loss: bool,
    /// Order of SACK blocks.
    pub sack_sort: SackSort,
    /// Which packets are examined. Without hints the next four switches and the order have no
    /// effect, except for `lost_retransmission`.
    pub sack_scan: SackScan,
    /// Where the scan of the scoreboard continues.
    pub sack_hint: SackHint,
    /// Whether a report of data received twice (D-SACK) applies to all the blocks of its
    /// acknowledgement, and not to the first alone.
    pub dsack_for_all_blocks: bool,
    /// Whether remembered blocks that an acknowledgement does not replace are kept for the
    /// comparison with the next.
    pub keeps_old_blocks: bool,
    /// Detection of lost retransmissions.
    pub lost_retransmission: LostRetransmission,
    /// Whether blocks that the last acknowledgement already had are skipped, so
    /// that the scan for a new one starts at the head (the paper's second fix, the
    /// one it measured).
    pub skip_seen_blocks: bool,
    /// Whether slow start grows the window through the counter that congestion avoidance uses,
    /// and so uses up what was counted there.
    pub slow_start_counts: bool,
    /// Least window, in segments, that counts as used when the application does not fill it; the
    /// initial window if there is none.
    pub least_used_cwnd: Option<u32>,
    /// BIC's constants and rules.
    pub bic: BicParameters,
    /// The kernel's default congestion control.
    pub default_congestion: Congestion,
    /// Initial congestion window, in segments.
    pub initial_cwnd: u32,
    /// Retransmission timeout before the first round-trip time is known.
    pub rto_initial: Span,
}

impl Variant {
    /// Returns the slow start threshold at the start with this congestion control, in segments.
    pub fn initial_ssthresh(&self, congestion: Congestion) -> u32 {
        let by_bic = self.bic.initial_ssthresh;
        by_bic
            .filter(|_| congestion == Congestion::Bic)
            .unwrap_or(u32::MAX)
    }
}
