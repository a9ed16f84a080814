// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of psp's qdisc and classes: read from and written as the kernel's attributes, as
//! `uapi/sch_psp.h` describes them. The meaning of each is in tc-psp(8).

use serde::Serialize;
use units::ethernet;

use crate::attribute::{self, Attribute, Attributes};
use crate::choices::{ClassType, Gap, LaunchClock, Layer, Mode, Order, SplitGso};
use crate::mark::Mark;
use crate::uapi::*;

/// Default period: paper 004's.
const PERIOD_NS: u64 = units::itm::PERIOD_NS;
/// Default of [`Budget`]: paper 004's share of the line.
const BUDGET_PERCENT: u32 = 70;
/// Defaults of a dynamic class, as `kernel/sch_psp.c` has them.
const FLOWS: u32 = 16_384;
const LIMIT_FRAMES: u32 = 32_768;
const FLOW_LIMIT_FRAMES: u32 = 4_096;
const HORIZON_NS: u64 = 10_000_000_000;

/// What a port sends in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    Bytes(u64),
    /// So much of what the line carries in a period.
    Percent(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QdiscOptions {
    /// Minor of the class for frames that no filter claims; 0: none.
    pub default_minor: u16,
    /// Line rate; `None`: the device's.
    pub line_rate_bps: Option<u64>,
    /// How time passes.
    pub mode: Mode,
    /// Bytes a frame takes on the wire beyond what the host holds.
    pub overhead_bytes: u32,
    /// What rates count.
    pub layer: Layer,
    /// Which of several due classes goes first.
    pub order: Order,
    /// Type of gap frame.
    pub gap: Gap,
    /// Whether normal frames are sent only where they fit before the next paced one.
    pub guard: bool,
    /// Whether bursts are cut.
    pub split_gso: SplitGso,
    /// Length of a period.
    pub period_ns: u64,
    /// What the port sends in a period.
    pub budget: Budget,
    /// Time from a multiple of the period on CLOCK_TAI to the beginning of a period; `None`: any.
    pub align_ns: Option<u64>,
    /// Below mq: classes are the device's, by minor number.
    pub shared: bool,
}

impl QdiscOptions {
    /// Returns what the kernel takes where nothing is said.
    pub fn default_of(is_ethernet: bool) -> Self {
        Self {
            default_minor: 0,
            line_rate_bps: None,
            mode: Mode::Auto,
            overhead_bytes: if is_ethernet {
                ethernet::WIRE_OVERHEAD_BYTES
            } else {
                0
            },
            layer: Layer::Link,
            order: Order::Next,
            gap: Gap::Multicast,
            guard: false,
            split_gso: SplitGso::Auto,
            period_ns: PERIOD_NS,
            budget: Budget::Percent(BUDGET_PERCENT),
            align_ns: None,
            shared: false,
        }
    }

    /// Reads what the kernel dumps.
    pub fn read(options: &[u8]) -> Self {
        let attributes = attribute::read(options);
        let found = Attributes(&attributes);
        let none = Self::default_of(true);
        let number = |kind| found.number(kind);
        Self {
            default_minor: number(TCA_PSP_DEFAULT)
                .and_then(|minor| minor.try_into().ok())
                .unwrap_or(none.default_minor),
            line_rate_bps: number(TCA_PSP_LINE_RATE).filter(|rate| *rate != 0),
            mode: number(TCA_PSP_MODE)
                .and_then(Mode::from_number)
                .unwrap_or(none.mode),
            overhead_bytes: found.u32(TCA_PSP_OVERHEAD).unwrap_or(none.overhead_bytes),
            layer: number(TCA_PSP_LAYER)
                .and_then(Layer::from_number)
                .unwrap_or(none.layer),
            order: number(TCA_PSP_ORDER)
                .and_then(Order::from_number)
                .unwrap_or(none.order),
            gap: number(TCA_PSP_GAP)
                .and_then(Gap::from_number)
                .unwrap_or(none.gap),
            guard: number(TCA_PSP_GUARD).is_some_and(|guard| guard != 0),
            split_gso: number(TCA_PSP_SPLIT_GSO)
                .and_then(SplitGso::from_number)
                .unwrap_or(none.split_gso),
            period_ns: number(TCA_PSP_PERIOD).unwrap_or(none.period_ns),
            budget: match number(TCA_PSP_BUDGET).filter(|bytes| *bytes != 0) {
                Some(bytes) => Budget::Bytes(bytes),
                None => found
                    .u32(TCA_PSP_BUDGET_PERCENT)
                    .map_or(none.budget, Budget::Percent),
            },
            align_ns: number(TCA_PSP_ALIGN).filter(|align| *align != TC_PSP_ALIGN_OFF),
            shared: number(TCA_PSP_SHARED).is_some_and(|shared| shared != 0),
        }
    }

    /// Returns the attributes that set all options.
    pub fn write(&self) -> Vec<Attribute> {
        let word = |kind, number| Attribute::u8(kind, u8::try_from(number).unwrap_or(u8::MAX));
        let mut all = vec![
            Attribute::u32(TCA_PSP_DEFAULT, self.default_minor.into()),
            Attribute::u64(TCA_PSP_LINE_RATE, self.line_rate_bps.unwrap_or(0)),
            word(TCA_PSP_MODE, self.mode.number()),
            Attribute::u32(TCA_PSP_OVERHEAD, self.overhead_bytes),
            word(TCA_PSP_LAYER, self.layer.number()),
            word(TCA_PSP_ORDER, self.order.number()),
            word(TCA_PSP_GAP, self.gap.number()),
            word(TCA_PSP_GUARD, self.guard.into()),
            word(TCA_PSP_SPLIT_GSO, self.split_gso.number()),
            Attribute::u64(TCA_PSP_PERIOD, self.period_ns),
            Attribute::u64(TCA_PSP_ALIGN, self.align_ns.unwrap_or(TC_PSP_ALIGN_OFF)),
        ];
        // A module of before this option does not know it.
        if self.shared {
            all.push(word(TCA_PSP_SHARED, 1));
        }
        match self.budget {
            Budget::Bytes(bytes) => all.push(Attribute::u64(TCA_PSP_BUDGET, bytes)),
            Budget::Percent(percent) => {
                all.push(Attribute::u64(TCA_PSP_BUDGET, 0));
                all.push(Attribute::u32(TCA_PSP_BUDGET_PERCENT, percent));
            }
        }
        all
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassOptions {
    #[serde(flatten)]
    pub by_type: TypeOptions,
    /// Minor of the class of type group that it is below; `None`: it is below the qdisc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<u16>,
    /// Frames that have waited for longer are dropped; `None`: never.
    pub deadline_ns: Option<u64>,
    /// When its packets are CE-marked, if it says so. Only departure times do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark_ns: Option<Mark>,
}

/// A type of class, with its options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TypeOptions {
    /// Best effort.
    Normal {
        /// Bytes of a turn; `None`: one largest frame.
        quantum_bytes: Option<u32>,
    },
    /// Has a rate.
    Paced {
        rate_bps: u64,
        /// Borrows up to this rate; `None`: never.
        ceil_bps: Option<u64>,
        /// Frames leave at the time that their sockets say; `None`: at the rate.
        launch: Option<Launch>,
    },
    /// Each TCP flow at packet size x cwnd / RTT.
    Dynamic(Dynamic),
    /// Frames that arrived before a period leave in it.
    Rt {
        /// Bytes of a period.
        reserve_bytes: u64,
    },
    /// A share of each period.
    Nrt {
        /// Bytes of a period.
        reserve_bytes: u64,
    },
    /// Classes below it share its rate and its ceil.
    Group {
        /// Guaranteed to all of them together.
        rate_bps: u64,
        /// What they share of what others leave; `None`: the rate.
        ceil_bps: Option<u64>,
    },
}

/// Options of a class whose frames have launch times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Launch {
    pub clock: LaunchClock,
    /// They are deadlines: frames may leave earlier.
    pub is_deadline: bool,
    /// A frame that would leave so much later is dropped; `None`: 1 ms, or of deadlines none.
    pub late_ns: Option<u64>,
    /// A frame that would wait for longer is refused.
    pub horizon_ns: u64,
}

impl Launch {
    /// Returns the kernel's defaults.
    pub fn new(clock: LaunchClock) -> Self {
        Self {
            clock,
            is_deadline: false,
            late_ns: None,
            horizon_ns: HORIZON_NS,
        }
    }

    fn read(found: Attributes<'_>) -> Option<Self> {
        let clock = LaunchClock::from_number(found.number(TCA_PSP_CLASS_TXTIME)?)?;
        let some = |kind| found.number(kind).filter(|number| *number != 0);
        Some(Self {
            is_deadline: some(TCA_PSP_CLASS_TXTIME_DEADLINE).is_some(),
            late_ns: some(TCA_PSP_CLASS_TXTIME_LATE),
            horizon_ns: some(TCA_PSP_CLASS_HORIZON).unwrap_or(HORIZON_NS),
            ..Self::new(clock)
        })
    }

    /// The kernel refuses the others without the first.
    fn write(launch: Option<&Self>, all: &mut Vec<Attribute>) {
        let word = |number: u64| u8::try_from(number).unwrap_or(u8::MAX);
        let Some(launch) = launch else {
            all.push(Attribute::u8(TCA_PSP_CLASS_TXTIME, 0));
            return;
        };
        all.extend([
            Attribute::u8(TCA_PSP_CLASS_TXTIME, word(launch.clock.number())),
            Attribute::u8(TCA_PSP_CLASS_TXTIME_DEADLINE, launch.is_deadline.into()),
            Attribute::u64(TCA_PSP_CLASS_TXTIME_LATE, launch.late_ns.unwrap_or(0)),
            Attribute::u64(TCA_PSP_CLASS_HORIZON, launch.horizon_ns),
        ]);
    }
}

/// Options of a dynamic class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dynamic {
    /// Rate of frames without a socket, all together; `None`: the ceil.
    pub rate_bps: Option<u64>,
    /// No flow is faster; `None`: than the line.
    pub ceil_bps: Option<u64>,
    /// All flows together, and frames without one, are no faster; `None`: than the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bps: Option<u64>,
    /// The formula gives no flow less; `None`: one largest frame in 200 ms.
    pub floor_bps: Option<u64>,
    /// No flow is slower, whatever its socket asks for; `None`: one largest frame in a horizon.
    pub pacing_floor_bps: Option<u64>,
    /// Most flows.
    pub flows: u32,
    /// Most frames of all flows.
    pub limit_frames: u32,
    /// Most frames of a flow.
    pub flow_limit_frames: u32,
    /// A frame that would wait for longer is dropped.
    pub horizon_ns: u64,
}

impl Default for Dynamic {
    fn default() -> Self {
        Self {
            rate_bps: None,
            ceil_bps: None,
            total_bps: None,
            floor_bps: None,
            pacing_floor_bps: None,
            flows: FLOWS,
            limit_frames: LIMIT_FRAMES,
            flow_limit_frames: FLOW_LIMIT_FRAMES,
            horizon_ns: HORIZON_NS,
        }
    }
}

impl ClassOptions {
    /// Returns a class of this type without a deadline.
    pub fn new(by_type: TypeOptions) -> Self {
        Self {
            by_type,
            group: None,
            deadline_ns: None,
            mark_ns: None,
        }
    }

    pub fn class_type(&self) -> ClassType {
        match self.by_type {
            TypeOptions::Normal { .. } => ClassType::Normal,
            TypeOptions::Paced { .. } => ClassType::Paced,
            TypeOptions::Dynamic(_) => ClassType::Dynamic,
            TypeOptions::Rt { .. } => ClassType::Rt,
            TypeOptions::Nrt { .. } => ClassType::Nrt,
            TypeOptions::Group { .. } => ClassType::Group,
        }
    }

    /// Returns the bytes of a period that the class reserves.
    pub fn reserve_bytes(&self) -> u64 {
        match self.by_type {
            TypeOptions::Rt { reserve_bytes } | TypeOptions::Nrt { reserve_bytes } => reserve_bytes,
            _ => 0,
        }
    }

    /// Reads what the kernel dumps. A type that is not known here is best effort.
    pub fn read(options: &[u8]) -> Self {
        let attributes = attribute::read(options);
        let found = Attributes(&attributes);
        let some = |kind| found.number(kind).filter(|number| *number != 0);
        let class_type = found
            .number(TCA_PSP_CLASS_TYPE)
            .and_then(ClassType::from_number);
        let reserve_bytes = some(TCA_PSP_CLASS_RESERVE).unwrap_or(0);
        let by_type = match class_type.unwrap_or(ClassType::Normal) {
            ClassType::Normal => TypeOptions::Normal {
                quantum_bytes: found.u32(TCA_PSP_CLASS_QUANTUM).filter(|q| *q != 0),
            },
            ClassType::Paced => TypeOptions::Paced {
                rate_bps: some(TCA_PSP_CLASS_RATE).unwrap_or(0),
                ceil_bps: some(TCA_PSP_CLASS_CEIL),
                launch: Launch::read(found),
            },
            ClassType::Dynamic => TypeOptions::Dynamic(Dynamic::read(found)),
            ClassType::Rt => TypeOptions::Rt { reserve_bytes },
            ClassType::Nrt => TypeOptions::Nrt { reserve_bytes },
            ClassType::Group => TypeOptions::Group {
                rate_bps: some(TCA_PSP_CLASS_RATE).unwrap_or(0),
                ceil_bps: some(TCA_PSP_CLASS_CEIL),
            },
        };
        Self {
            by_type,
            group: None,
            deadline_ns: some(TCA_PSP_CLASS_DEADLINE),
            mark_ns: Mark::read(&found),
        }
    }

    /// Returns the attributes that set all options of the type.
    pub fn write(&self) -> Vec<Attribute> {
        let number = u8::try_from(self.class_type().number()).unwrap_or(u8::MAX);
        let mut all = vec![Attribute::u8(TCA_PSP_CLASS_TYPE, number)];
        if self.class_type() != ClassType::Group {
            let deadline_ns = self.deadline_ns.unwrap_or(0);
            all.push(Attribute::u64(TCA_PSP_CLASS_DEADLINE, deadline_ns));
        }
        all.extend(self.mark_ns.map(Mark::write));
        match &self.by_type {
            TypeOptions::Normal { quantum_bytes } => {
                all.push(Attribute::u32(
                    TCA_PSP_CLASS_QUANTUM,
                    quantum_bytes.unwrap_or(0),
                ));
            }
            TypeOptions::Paced {
                rate_bps,
                ceil_bps,
                launch,
            } => {
                all.push(Attribute::u64(TCA_PSP_CLASS_RATE, *rate_bps));
                all.push(Attribute::u64(TCA_PSP_CLASS_CEIL, ceil_bps.unwrap_or(0)));
                Launch::write(launch.as_ref(), &mut all);
            }
            TypeOptions::Dynamic(dynamic) => dynamic.write(&mut all),
            TypeOptions::Group { rate_bps, ceil_bps } => {
                all.push(Attribute::u64(TCA_PSP_CLASS_RATE, *rate_bps));
                all.push(Attribute::u64(TCA_PSP_CLASS_CEIL, ceil_bps.unwrap_or(0)));
            }
            TypeOptions::Rt { reserve_bytes } | TypeOptions::Nrt { reserve_bytes } => {
                all.push(Attribute::u64(TCA_PSP_CLASS_RESERVE, *reserve_bytes));
            }
        }
        all
    }
}

impl Dynamic {
    fn read(found: Attributes<'_>) -> Self {
        let none = Self::default();
        let some = |kind| found.number(kind).filter(|number| *number != 0);
        Self {
            rate_bps: some(TCA_PSP_CLASS_RATE),
            ceil_bps: some(TCA_PSP_CLASS_CEIL),
            total_bps: some(TCA_PSP_CLASS_TOTAL),
            floor_bps: some(TCA_PSP_CLASS_FLOOR),
            pacing_floor_bps: some(TCA_PSP_CLASS_PACING_FLOOR),
            flows: found.u32(TCA_PSP_CLASS_FLOWS).unwrap_or(none.flows),
            limit_frames: found.u32(TCA_PSP_CLASS_LIMIT).unwrap_or(none.limit_frames),
            flow_limit_frames: found
                .u32(TCA_PSP_CLASS_FLOW_LIMIT)
                .unwrap_or(none.flow_limit_frames),
            horizon_ns: some(TCA_PSP_CLASS_HORIZON).unwrap_or(none.horizon_ns),
        }
    }

    fn write(&self, all: &mut Vec<Attribute>) {
        for (kind, number) in [
            (TCA_PSP_CLASS_RATE, self.rate_bps),
            (TCA_PSP_CLASS_CEIL, self.ceil_bps),
            (TCA_PSP_CLASS_FLOOR, self.floor_bps),
            (TCA_PSP_CLASS_PACING_FLOOR, self.pacing_floor_bps),
            (TCA_PSP_CLASS_HORIZON, Some(self.horizon_ns)),
        ] {
            all.push(Attribute::u64(kind, number.unwrap_or(0)));
        }
        // A class gets it when it is made, and keeps one.
        all.extend(
            self.total_bps
                .map(|total| Attribute::u64(TCA_PSP_CLASS_TOTAL, total)),
        );
        for (kind, number) in [
            (TCA_PSP_CLASS_FLOWS, self.flows),
            (TCA_PSP_CLASS_LIMIT, self.limit_frames),
            (TCA_PSP_CLASS_FLOW_LIMIT, self.flow_limit_frames),
        ] {
            all.push(Attribute::u32(kind, number));
        }
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
