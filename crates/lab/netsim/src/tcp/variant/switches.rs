// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences between the kernels' loss recoveries: one switch for each.

use units::clock::Span;

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
    /// Where the scan of the scoreboard continues.
    pub sack_hint: SackHint,
    /// Detection of lost retransmissions.
    pub lost_retransmission: LostRetransmission,
    /// Whether blocks that the last acknowledgement already had are skipped, so
    /// that the scan for a new one starts at the head (the paper's second fix, the
    /// one it measured).
    pub skip_seen_blocks: bool,
    /// The kernel's default congestion control.
    pub default_congestion: Congestion,
    /// Initial congestion window, in segments.
    pub initial_cwnd: u32,
    /// Retransmission timeout before the first round-trip time is known.
    pub rto_initial: Span,
}
