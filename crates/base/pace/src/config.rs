// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of a port and its classes, and the errors of its checks.

use crate::layout::{self, ErrorCode, RawClassConfig, RawConfig};

/// Which bytes of a frame a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// The frame as the host holds it: with link header, without FCS.
    Link,
    /// The frame as the wire carries it: padded, plus overhead.
    Wire,
    /// The frame without the link header.
    Ip,
}

/// Which of several eligible classes is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The one with the smallest class clock (paper 002, 2.2).
    Clock,
    /// The one with the highest rate (paper 000, 3.4).
    Rate,
    /// The one with the smallest virtual finish time: the class clock plus one longest burst
    /// at the class's rate (WF2Q+). It is precise for any rates that the line carries:
    /// docs/decisions/core.md, "Smallest virtual finish time first".
    Next,
}

/// How the host waits while no class is eligible, and what the clock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The host fills the wire with gap frames; the bytes sent are the clock.
    Gap,
    /// The host sets a timer; real time is the clock.
    Timer,
    /// The host sets a timer that expires a measured lead before the instant, and sends gap
    /// frames from there on. The bytes sent are the clock while the wire is busy, real time
    /// while it idles.
    Hybrid,
}

/// Configuration of a port and its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Line rate, 8 kbit/s to 1 Tbit/s.
    pub line_rate_bps: u64,
    /// Overhead of each frame on the wire; at most 256.
    pub overhead_bytes: u32,
    /// Shortest frame; shorter ones are padded.
    pub min_frame_bytes: u32,
    /// Longest frame, link header included; also the longest gap frame.
    pub max_frame_bytes: u32,
    /// Most bytes of one burst, with the headers of every frame; 0: no bursts.
    pub max_burst_bytes: u32,
    /// Bytes of the link header, which [`Layer::Ip`] does not count.
    pub link_header_bytes: u32,
    /// Which bytes rates count.
    pub layer: Layer,
    /// Which eligible class is served first.
    pub order: Order,
    /// How the host waits.
    pub mode: Mode,
    /// Whether a normal or nrt frame is sent only if it ends before a paced one is due.
    pub guard_band: bool,
    /// Period of [`ClassConfig::Rt`] and [`ClassConfig::Nrt`], in force while there is such a
    /// class. With `None` such a class is refused.
    pub period: Option<Period>,
}

/// The length of a period, and how many bytes may leave in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Length, 125 us to 1 s.
    pub length_ns: u64,
    /// Budget in bytes at the port's [`Layer`]; at most the bytes of one second at 1 Tbit/s.
    pub budget_bytes: u64,
    /// An instant on the clock of `now_ns` at which a period begins; the others begin whole
    /// periods before and after it. `None`: periods begin at any instant.
    pub align_ns: Option<u64>,
}

impl Period {
    /// Creates a period whose budget is a percentage of the bytes that the line carries in it.
    pub fn percent(line_rate_bps: u64, length_ns: u64, percent: u32) -> Self {
        Period {
            length_ns,
            budget_bytes: crate::ffi::budget_bytes(line_rate_bps, length_ns, percent),
            align_ns: None,
        }
    }
}

impl Config {
    /// Configures an Ethernet port: link-layer rates, smallest clock first, gap frames.
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

/// Type and parameters of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassConfig {
    /// A class with a rate and a clock.
    Paced {
        /// Rate at the port's [`Layer`].
        rate_bps: u64,
    },
    /// A paced class that also borrows time which would be a gap. Borrowing classes share it
    /// in proportion to their rates.
    Borrowing {
        /// Guaranteed rate at the port's [`Layer`].
        rate_bps: u64,
        /// Most that the class may send, borrowed frames included.
        ceil_bps: u64,
    },
    /// A paced class whose first frame leaves at an instant: [`crate::Scheduler::activate_at`].
    Launching {
        /// Most that the class may send, at the port's [`Layer`].
        rate_bps: u64,
    },
    /// Best effort, served round robin by wire bytes.
    Normal {
        /// Wire bytes per round, 256 to 2^20; `None` is one longest frame.
        quantum_bytes: Option<u32>,
    },
    /// A real-time class: frames that arrived before a period leave in it (paper 004).
    Rt {
        /// Bytes reserved in each period, at the port's [`Layer`].
        reserve_bytes: u64,
    },
    /// A class that sends its share of each period; its other frames wait.
    Nrt {
        /// Bytes reserved in each period, at the port's [`Layer`].
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
                // The core writes "no ceiling" as 0. An explicit 0 becomes 1: it is below
                // every rate except 0, which is refused first.
                ceil_bps: ceil_bps.max(1),
                ..none
            },
            ClassConfig::Launching { rate_bps } => RawClassConfig {
                launches: true,
                rate_bps,
                ..none
            },
            ClassConfig::Normal { quantum_bytes } => RawClassConfig {
                class_type: layout::TYPE_NORMAL,
                // The core writes `None` as 0. An explicit 0 becomes 1, which is below every
                // valid quantum.
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

/// Why a call was refused. The port is unchanged then.
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
    #[error("the rate is so low that one frame would take 240 s")]
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
    /// The class was removed or belongs to another scheduler.
    #[error("there is no such class")]
    UnknownClass,
    /// The scheduler cannot be, or is not, that queue of a device.
    #[error("not possible for a scheduler that is not, or cannot become, that queue of a device")]
    Device,
    /// The class is inactive: only an active class sends.
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
