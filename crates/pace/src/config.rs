// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of a port and its classes, and the errors of its checks.

use crate::layout::{self, ErrorCode, RawClassConfig, RawConfig};

/// What a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// The frame as the host holds it: link header, no FCS.
    Link,
    /// Padded, plus overhead: what the wire carries.
    Wire,
    /// Without the link header.
    Ip,
}

/// Which of several eligible classes goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The smallest class clock (paper 002, 2.2).
    Clock,
    /// The highest rate (paper 000, 3.4).
    Rate,
    /// The smallest virtual finish time: the class clock moved on by one longest burst
    /// (WF2Q+). Precise for any rates that the line carries: docs/decisions/core.md, "Smallest
    /// virtual finish time first".
    Next,
}

/// What the host does while no class is eligible, and what the clock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Gap frames fill the wire; sent bytes are the clock.
    Gap,
    /// The host's timer; real time is the clock.
    Timer,
    /// The host's timer until a measured lead before the instant, gap frames
    /// from there on: sent bytes are the clock while the wire is busy, real
    /// time while it idles.
    Hybrid,
}

/// A port and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// 8 kbit/s to 1 Tbit/s.
    pub line_rate_bps: u64,
    /// Per frame on the wire; at most 256.
    pub overhead_bytes: u32,
    /// Shorter frames are padded.
    pub min_frame_bytes: u32,
    /// Link header included; also the largest gap frame.
    pub max_frame_bytes: u32,
    /// Most bytes of one burst, headers of every frame counted; 0: no bursts.
    pub max_burst_bytes: u32,
    /// What [`Layer::Ip`] does not count.
    pub link_header_bytes: u32,
    /// What rates count.
    pub layer: Layer,
    /// Who goes first.
    pub order: Order,
    /// How to wait.
    pub mode: Mode,
    /// A normal or nrt frame is sent only if it ends before a paced one is due.
    pub guard_band: bool,
    /// Periods of [`ClassConfig::Rt`] and [`ClassConfig::Nrt`], in force while there is
    /// such a class. With `None` such a class is refused.
    pub period: Option<Period>,
}

/// The length of a period, and what may leave in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// 125 us to 1 s.
    pub length_ns: u64,
    /// At the port's [`Layer`]; at most what a second at 1 Tbit/s has.
    pub budget_bytes: u64,
    /// An instant on the clock of `now_ns`: periods begin at it and whole periods from
    /// it. `None`: at any instant.
    pub align_ns: Option<u64>,
}

impl Period {
    /// A budget in per cent of what the line carries.
    pub fn percent(line_rate_bps: u64, length_ns: u64, percent: u32) -> Self {
        Period {
            length_ns,
            budget_bytes: crate::ffi::budget_bytes(line_rate_bps, length_ns, percent),
            align_ns: None,
        }
    }
}

impl Config {
    /// Ethernet with rates of the link layer, smallest clock first, gap frames.
    pub fn ethernet(line_rate_bps: u64, max_frame_bytes: u32) -> Self {
        Config {
            line_rate_bps,
            overhead_bytes: 24,
            min_frame_bytes: 60,
            max_frame_bytes,
            max_burst_bytes: 0,
            link_header_bytes: 14,
            layer: Layer::Link,
            order: Order::Clock,
            mode: Mode::Gap,
            guard_band: false,
            period: None,
        }
    }

    pub(crate) fn raw(&self) -> RawConfig {
        RawConfig {
            line_rate_bps: self.line_rate_bps,
            overhead_bytes: self.overhead_bytes,
            min_frame_bytes: self.min_frame_bytes,
            max_frame_bytes: self.max_frame_bytes,
            max_burst_bytes: self.max_burst_bytes,
            link_header_bytes: self.link_header_bytes,
            layer: match self.layer {
                Layer::Link => layout::LAYER_LINK,
                Layer::Wire => layout::LAYER_WIRE,
                Layer::Ip => layout::LAYER_IP,
            },
            order: match self.order {
                Order::Clock => layout::ORDER_CLOCK,
                Order::Rate => layout::ORDER_RATE,
                Order::Next => layout::ORDER_NEXT,
            },
            mode: match self.mode {
                Mode::Gap => layout::MODE_GAP,
                Mode::Timer => layout::MODE_TIMER,
                Mode::Hybrid => layout::MODE_HYBRID,
            },
            guard_band: self.guard_band,
            aligned: self.period.is_some_and(|period| period.align_ns.is_some()),
            period_ns: self.period.map_or(0, |period| period.length_ns.max(1)),
            budget_bytes: self.period.map_or(0, |period| period.budget_bytes),
            align_ns: self.period.and_then(|period| period.align_ns).unwrap_or(0),
        }
    }
}

/// A class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassConfig {
    /// Has a rate and a clock.
    Paced {
        /// At the port's [`Layer`].
        rate_bps: u64,
    },
    /// Paced, and borrows what would be a gap, in proportion to its rate among classes
    /// like it.
    Borrowing {
        /// Guaranteed; at the port's [`Layer`].
        rate_bps: u64,
        /// The most it may send, borrowed frames included.
        ceil_bps: u64,
    },
    /// Best effort, round robin by wire bytes.
    Normal {
        /// Wire bytes a round, 256 to 2^20; `None` is one largest frame.
        quantum_bytes: Option<u32>,
    },
    /// Frames that arrived before a period leave in it (paper 004).
    Rt {
        /// Bytes of a period; at the port's [`Layer`].
        reserve_bytes: u64,
    },
    /// Sends its share of each period; the rest waits.
    Nrt {
        /// Bytes of a period; at the port's [`Layer`].
        reserve_bytes: u64,
    },
}

impl ClassConfig {
    pub(crate) fn raw(&self) -> RawClassConfig {
        let none = RawClassConfig::NONE;
        match *self {
            ClassConfig::Paced { rate_bps } => RawClassConfig { rate_bps, ..none },
            ClassConfig::Borrowing { rate_bps, ceil_bps } => RawClassConfig {
                rate_bps,
                // 0 is how the core spells no ceiling: an explicit 0 is below
                // any rate but 0, which is refused first.
                ceil_bps: ceil_bps.max(1),
                ..none
            },
            ClassConfig::Normal { quantum_bytes } => RawClassConfig {
                class_type: layout::TYPE_NORMAL,
                // 0 is how the core spells None: an explicit 0 is below any quantum.
                quantum_bytes: quantum_bytes.map_or(0, |bytes| bytes.max(1)),
                ..none
            },
            ClassConfig::Rt { reserve_bytes } => RawClassConfig {
                class_type: layout::TYPE_RT,
                reserve_bytes,
                ..none
            },
            ClassConfig::Nrt { reserve_bytes } => RawClassConfig {
                class_type: layout::TYPE_NRT,
                reserve_bytes,
                ..none
            },
        }
    }
}

/// Why something was refused. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `PACE_ERR_LINE_RATE`
    #[error("the line rate is outside 8 kbit/s to 1 Tbit/s")]
    LineRate,
    /// `PACE_ERR_RATE_ZERO`
    #[error("a paced class needs a rate")]
    RateZero,
    /// `PACE_ERR_RATE_LINE`
    #[error("the rate is above the line rate")]
    RateLine,
    /// `PACE_ERR_RATE_LOW`
    #[error("the rate is so low that one frame would take 2^42 byte times")]
    RateLow,
    /// `PACE_ERR_FRAME`
    #[error("the largest frame is 0, below the smallest one, or above 2^18 bytes")]
    Frame,
    /// `PACE_ERR_OVERHEAD`
    #[error("the overhead is above 256 bytes")]
    Overhead,
    /// `PACE_ERR_FULL`
    #[error("there are 2^20 classes already")]
    Full,
    /// `PACE_ERR_BUSY`
    #[error("not possible once there is a class")]
    Busy,
    /// `PACE_ERR_QUANTUM`
    #[error("the quantum is outside 256 to 2^20 bytes")]
    Quantum,
    /// `PACE_ERR_CEIL`
    #[error("the ceiling is below the rate or above the line rate")]
    Ceil,
    /// `PACE_ERR_BURST`
    #[error("the longest burst is shorter than the largest frame, or above 2^18 bytes")]
    Burst,
    /// `PACE_ERR_PERIOD`
    #[error("there is no period, or it is outside 125 us to 1 s or too short for a frame")]
    Period,
    /// `PACE_ERR_BUDGET`
    #[error("the budget is 0 or above 125 Gbyte a period")]
    Budget,
    /// `PACE_ERR_RESERVE`
    #[error("the reservation is 0 or above the budget")]
    Reserve,
    /// `PACE_ERR_RESERVED`
    #[error("together with the other classes' the reservation is above the budget")]
    Reserved,
    /// The class was removed, or belongs to another scheduler.
    #[error("there is no such class")]
    UnknownClass,
    /// Only an active class sends.
    #[error("the class is not active")]
    Inactive,
    /// See [`crate::FRAME_MAX_BYTES`].
    #[error("the frame is empty or longer than 2^18 bytes")]
    Length,
}

impl Error {
    pub(crate) fn from_code(code: ErrorCode) -> Self {
        match code {
            layout::ERR_LINE_RATE => Error::LineRate,
            layout::ERR_RATE_ZERO => Error::RateZero,
            layout::ERR_RATE_LINE => Error::RateLine,
            layout::ERR_RATE_LOW => Error::RateLow,
            layout::ERR_FRAME => Error::Frame,
            layout::ERR_OVERHEAD => Error::Overhead,
            layout::ERR_FULL => Error::Full,
            layout::ERR_QUANTUM => Error::Quantum,
            layout::ERR_CEIL => Error::Ceil,
            layout::ERR_BURST => Error::Burst,
            layout::ERR_PERIOD => Error::Period,
            layout::ERR_BUDGET => Error::Budget,
            layout::ERR_RESERVE => Error::Reserve,
            layout::ERR_RESERVED => Error::Reserved,
            _ => {
                debug_assert_eq!(code, layout::ERR_BUSY, "the core's errors");
                Error::Busy
            }
        }
    }
}
