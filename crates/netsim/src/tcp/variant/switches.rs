// SPDX-License-Identifier: MIT OR Apache-2.0
//! What differs between the loss recoveries of kernels: one switch for each.

use units::clock::Span;

use crate::tcp::algorithm::Congestion;

/// How the blocks of an acknowledgement are put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SackSort {
    /// Each swap writes from a copy taken before any: some of the blocks are
    /// lost, others there twice (defect 2 of paper 001, section 4).
    LosesBlocks,
    /// As meant.
    Right,
}

/// Where the next acknowledgement goes on if only its first block grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SackHint {
    /// Where the walk for the last of the sorted blocks ended: a lower first
    /// block that grows is then not seen.
    AfterAnyBlock,
    /// Where the walk for the block that was first on the wire ended.
    AfterFirstBlock,
}

/// What the remembered `snd_nxt` of a retransmitted packet is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostRetransmission {
    /// With the end of the block during whose walk it is met: packets below
    /// the block before it are never compared with it (defect 3).
    EndOfItsBlock,
    /// With the highest end of all blocks of the acknowledgement (the paper's
    /// first way).
    HighestEndOfBlocks,
    /// With the highest sequence SACKed so far, in a walk of its own whenever
    /// that passed what any retransmitted packet remembers.
    OwnWalk,
}

/// How losses are found and what the window does meanwhile.
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
    /// As tables name it.
    pub name: &'static str,
    /// How losses are found.
    pub recovery: Recovery,
    /// Appropriate byte counting (RFC 3465): whether a window's growth waits
    /// for a segment's worth of acknowledged bytes.
    pub abc: bool,
    /// Whether bytes acknowledged after a timeout count for it. If not, slow
    /// start stands still until the timeout is recovered from (defect 1).
    pub abc_counts_in_loss: bool,
    /// Order of SACK blocks.
    pub sack_sort: SackSort,
    /// Continuation of the scoreboard's walk.
    pub sack_hint: SackHint,
    /// Detection of lost retransmissions.
    pub lost_retransmission: LostRetransmission,
    /// Whether blocks that the last acknowledgement had are passed over, so
    /// that the walk for a new one starts at the head (the paper's second way,
    /// the one it measured).
    pub skip_seen_blocks: bool,
    /// Congestion control of the kernel's default.
    pub default_congestion: Congestion,
    /// Segments of the first window.
    pub initial_cwnd: u32,
    /// Retransmission timeout before the first round trip is known.
    pub rto_initial: Span,
}
