// SPDX-License-Identifier: MIT OR Apache-2.0
//! Schedules the packets of one port, on a clock of what was sent: a safe binding over
//! `core/`, the same files that the kernel module compiles.
//!
//! [`Scheduler`] owns its classes and names them by [`ClassId`]. The host owns
//! the packets: it activates a class that has one, asks [`Scheduler::next`] which
//! class may send, and reports the length of each frame that it sends.
//!
//! ```
//! use pace::{ClassConfig, Config, Decision, Scheduler};
//!
//! let mut port = Scheduler::new(&Config::ethernet(1_000_000_000, 1514), 0)?;
//! let class = port.add_class(&ClassConfig::Paced { rate_bps: 500_000_000 })?;
//! port.activate(class, 0)?;
//! assert_eq!(port.next(0), Decision::Send(class));
//! port.sent(class, 1514, true, 0)?;
//! // 1514 bytes at half the line rate: the next may leave 3028 bytes later,
//! // and the frame itself took 1538 of them.
//! assert_eq!(port.next(0), Decision::Gap { wire_bytes: 1490 });
//! # Ok::<(), pace::Error>(())
//! ```

mod config;
mod device;
mod ffi;
mod grouping;
mod groups;
mod launch;
mod layout;
mod memory;
pub mod placed;

pub use config::{ClassConfig, Config, Error, Layer, Mode, Order, Period};
pub use device::{Device, DeviceClass};
use ffi::Port;
pub use groups::{GROUP_CLASSES_MAX, GroupId};
use layout::{ERR_FULL, GAP, RawReservation, RawStats, SEND, WAIT};

/// The largest frame: `PACE_FRAME_MAX`.
pub const FRAME_MAX_BYTES: u32 = 1 << 18;
/// The most classes in one scheduler: `PACE_CLASSES_MAX`.
pub const CLASSES_MAX: u32 = 1 << 20;
/// Limit of how far a class clock can be ahead of the port's: `PACE_LEAD_MAX_PS`.
pub const LEAD_MAX_PS: u64 = 240_000_000_000_000;

/// The most wire bytes of a burst: `PACE_BURST_WIRE_MAX`.
pub const BURST_WIRE_MAX_BYTES: u32 = 1 << 21;

/// The first capacity of the storage; it doubles when it is full.
const CAPACITY_FIRST: u32 = 16;

/// Identifies a class of one [`Scheduler`]. The id of a removed class never identifies a class
/// that reuses its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId {
    slot: u32,
    generation: u32,
}

impl ClassId {
    /// Returns the slot: a small, dense index, reused after the class is removed. It breaks
    /// ties between classes.
    pub fn index(self) -> u32 {
        self.slot
    }
}

/// Frames that the host hands over as one packet and that leave back to back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Total length, with the headers of every frame; 1 to [`FRAME_MAX_BYTES`].
    pub len_bytes: u32,
    /// Total length on the wire, with padding and overhead of every frame; at most
    /// [`BURST_WIRE_MAX_BYTES`].
    pub wire_bytes: u32,
    pub frames: u32,
}

/// What the host must do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing: no class has a packet.
    Idle,
    /// Send the first packet of this class, then call [`Scheduler::sent`].
    Send(ClassId),
    /// Fill this much of the wire, overhead included, then call [`Scheduler::gap_sent`].
    /// [`Mode::Timer`] never returns it.
    Gap { wire_bytes: u32 },
    /// Wait: no packet may leave before this instant. [`Mode::Gap`] never returns it.
    Wait {
        /// Instant on the clock of the `now_ns` that all calls pass.
        until_ns: u64,
    },
}

/// Counters since the scheduler was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames sent by classes.
    pub sent_frames: u64,
    /// Wire bytes of those frames.
    pub sent_wire_bytes: u64,
    pub gap_frames: u64,
    /// Wire bytes of the gap frames.
    pub gap_wire_bytes: u64,
    /// Most picoseconds by which a frame left early because gap lengths are rounded.
    pub early_max_ps: u64,
    /// Most picoseconds by which a class clock was behind the port's when its frame left.
    pub late_max_ps: u64,
    /// Rebases: times that all clocks were moved forward together.
    pub rebases: u64,
    /// Sum of those moves, in picoseconds.
    pub rebased_ps: u64,
    /// Frames that borrowed: they left above the class's rate, below its ceil.
    pub borrowed_frames: u64,
    /// Decisions in which the guard band held a normal or nrt frame back.
    pub guard_band_held: u64,
    /// Timers that expired ([`Mode::Hybrid`]).
    pub waits: u64,
    /// Largest delay of such a timer past its expiry.
    pub wait_late_max_ns: u64,
    /// Current lead: how long before the instant the next timer is set to expire.
    pub lead_ns: u64,
    /// Periods that began while there was an rt or nrt class.
    pub periods: u64,
    /// Those periods that ended with frames held back by the budget.
    pub periods_spent: u64,
    /// Sum of [`ReservationStats::over`] over the classes.
    pub rt_over: u64,
    /// Sum of [`ReservationStats::deferred`] over the rt classes.
    pub rt_deferred: u64,
    /// Sum of [`ReservationStats::overrun`] over the classes.
    pub rt_overrun: u64,
    /// Sum of [`ReservationStats::catchup_bytes`] over the classes.
    pub rt_catchup_bytes: u64,
    /// Sum of [`ReservationStats::deferred`] over the nrt classes.
    pub nrt_deferred: u64,
    /// Sum of [`ReservationStats::excess`] over the rt classes.
    pub rt_excess: u64,
}

impl From<RawStats> for Stats {
    fn from(raw: RawStats) -> Self {
        Self {
            sent_frames: raw.sent_frames,
            sent_wire_bytes: raw.sent_wire_bytes,
            gap_frames: raw.gap_frames,
            gap_wire_bytes: raw.gap_wire_bytes,
            early_max_ps: raw.early_max_ps,
            late_max_ps: raw.late_max_ps,
            rebases: raw.rebases,
            rebased_ps: raw.rebased_ps,
            borrowed_frames: raw.borrowed_frames,
            guard_band_held: raw.guard_band_held,
            waits: raw.waits,
            wait_late_max_ns: raw.wait_late_max_ns,
            lead_ns: raw.lead_ns,
            periods: raw.periods,
            periods_spent: raw.periods_spent,
            rt_over: raw.rt_over,
            rt_deferred: raw.rt_deferred,
            rt_overrun: raw.rt_overrun,
            rt_catchup_bytes: raw.rt_catchup_bytes,
            nrt_deferred: raw.nrt_deferred,
            rt_excess: raw.rt_excess,
        }
    }
}

/// Counters of an rt or nrt class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservationStats {
    /// Periods in which more frames of an rt class waited than the period reserves.
    pub over: u64,
    /// Periods that ended with frames deferred: late frames of an rt class because the budget
    /// or one late reservation was spent, or frames of an nrt class because the budget or its
    /// share was spent.
    pub deferred: u64,
    /// Periods that ended with rt frames waiting although the budget was not spent.
    pub overrun: u64,
    /// Bytes that an rt class sent on the reservations of earlier periods.
    pub catchup_bytes: u64,
    /// Periods in which more frames of an rt class waited than its credit pays for.
    pub excess: u64,
}

impl From<RawReservation> for ReservationStats {
    fn from(raw: RawReservation) -> Self {
        Self {
            over: raw.over,
            deferred: raw.deferred,
            overrun: raw.overrun,
            catchup_bytes: raw.catchup_bytes,
            excess: raw.excess,
        }
    }
}

/// The exact value of a class clock: `ps - 1 + frac / rate_bps` if `frac` is not 0, else `ps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassClock {
    /// Whole picoseconds, rounded up, on the scale of [`Scheduler::global_ps`]; they wrap with
    /// it.
    pub ps: u64,
    /// Fraction, in units of a picosecond divided by the class's rate.
    pub frac: u64,
}

/// Why the new configuration of a running port was refused. The port is unchanged then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct ReconfigureError {
    /// The check that failed.
    pub error: Error,
    /// The class whose rate or reservation does not fit, if a class caused the error.
    pub class: Option<ClassId>,
}

/// The scheduler of one port.
pub struct Scheduler {
    port: Port,
    /// Number of classes that were removed from each slot.
    generations: Vec<u32>,
    mode: Mode,
    /// Which queue of a device it is.
    queue: Option<u32>,
}

impl Scheduler {
    /// Creates a port without classes whose clock is 0 at `now_ns`.
    ///
    /// # Errors
    /// [`Error::LineRate`], [`Error::Frame`], [`Error::Overhead`].
    pub fn new(config: &Config, now_ns: u64) -> Result<Self, Error> {
        let port = Port::new(&config.raw(), CAPACITY_FIRST, now_ns).map_err(Error::from_code)?;
        Ok(Scheduler {
            port,
            generations: Vec::new(),
            mode: config.mode,
            queue: None,
        })
    }

    /// Returns the least rate of a paced class that is not refused with [`Error::RateLow`].
    ///
    /// # Errors
    /// As [`Scheduler::new`].
    pub fn least_rate_bps(config: &Config) -> Result<u64, Error> {
        Self::new(config, 0)?;
        Ok(ffi::least_rate_bps(&config.raw()))
    }

    /// Starts the clock at another value than 0, for tests across its wrap.
    ///
    /// # Errors
    /// [`Error::Busy`] once a class has been added.
    pub fn set_global_ps(&mut self, global_ps: u64) -> Result<(), Error> {
        if !self.generations.is_empty() {
            return Err(Error::Busy);
        }
        self.port.set_global(global_ps);
        Ok(())
    }

    /// Makes room for `classes` classes at once. O(classes).
    pub fn reserve(&mut self, classes: u32) {
        if classes > self.port.capacity() {
            self.port.grow(classes);
        }
    }

    /// Sets the number of classes from which on a wheel orders them instead of a heap, if the
    /// capacity is 512 or more: 0 is always, [`u32::MAX`] never. Both give the same order.
    /// For tests and measurements.
    pub fn use_wheel_from(&mut self, classes: u32) {
        self.port.wheel_from(classes);
    }

    /// Changes the configuration of a running port. It checks all classes first; on error the
    /// port is unchanged. O(classes).
    ///
    /// # Errors
    /// Those of [`Scheduler::new`], and those of [`Scheduler::add_class`] with the class whose
    /// rate or reservation does not fit the new line; [`Error::Device`] for another mode than
    /// [`Mode::Timer`] of a queue of a device.
    pub fn reconfigure(&mut self, config: &Config, now_ns: u64) -> Result<(), ReconfigureError> {
        if self.queue.is_some() && config.mode != Mode::Timer {
            return Err(ReconfigureError {
                error: Error::Device,
                class: None,
            });
        }
        let raw = config.raw();
        self.port
            .groups
            .check_all(&raw)
            .and_then(|()| self.port.reconfigure(&raw, now_ns))
            .map_err(|(code, slot)| ReconfigureError {
                error: Error::from_code(code),
                class: slot.map(|slot| self.id(slot)),
            })?;
        self.mode = config.mode;
        self.port.configure_groups(now_ns);
        Ok(())
    }

    /// Adds an inactive class without debt. O(1), unless the storage doubles.
    ///
    /// # Errors
    /// [`Error::RateZero`], [`Error::RateLine`], [`Error::RateLow`],
    /// [`Error::Quantum`], [`Error::Period`], [`Error::Budget`],
    /// [`Error::Reserve`], [`Error::Reserved`]; [`Error::Full`] beyond [`CLASSES_MAX`].
    pub fn add_class(&mut self, config: &ClassConfig) -> Result<ClassId, Error> {
        let raw = config.raw();
        let slot = match self.port.add(&raw) {
            Err(ERR_FULL) if self.port.capacity() < CLASSES_MAX => {
                self.port.grow(self.port.capacity() * 2);
                self.port.add(&raw)
            }
            other => other,
        }
        .map_err(Error::from_code)?;
        let place = slot as usize;
        if self.generations.len() <= place {
            self.generations.resize(place + 1, 0);
        }
        Ok(self.id(slot))
    }

    /// Changes the configuration of a class, which stays active or inactive. A new rate counts
    /// from now on: what the class is ahead takes as long as those bytes take at that.
    ///
    /// # Errors
    /// Those of [`Scheduler::add_class`], or [`Error::UnknownClass`].
    pub fn change_class(
        &mut self,
        class: ClassId,
        config: &ClassConfig,
        now_ns: u64,
    ) -> Result<(), Error> {
        let slot = self.slot(class)?;
        match self.port.change(slot, &config.raw(), now_ns) {
            Some(0) => Ok(()),
            Some(code) => Err(Error::from_code(code)),
            None => Err(Error::UnknownClass),
        }
    }

    /// Removes a class, active or not. O(log n).
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn remove_class(&mut self, class: ClassId) -> Result<(), Error> {
        let slot = self.slot(class)?;
        self.port.del(slot).ok_or(Error::UnknownClass)?;
        if let Some(generation) = self.generations.get_mut(slot as usize) {
            *generation = generation.wrapping_add(1);
        }
        Ok(())
    }

    /// Reports the arrival of a frame, before [`Scheduler::activate`]: in a period an rt class
    /// sends only the frames that arrived before it. No effect on other types. O(1).
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn arrived(&mut self, class: ClassId, wire_bytes: u32, now_ns: u64) -> Result<(), Error> {
        let slot = self.slot(class)?;
        self.port
            .arrived(slot, wire_bytes, now_ns)
            .ok_or(Error::UnknownClass)
    }

    /// Reports that the first of several waiting frames was dropped. O(1).
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn dropped(&mut self, class: ClassId, wire_bytes: u32, now_ns: u64) -> Result<(), Error> {
        let slot = self.slot(class)?;
        self.port
            .dropped(slot, wire_bytes, now_ns)
            .ok_or(Error::UnknownClass)
    }

    /// Returns the bytes of a period that all classes together reserve.
    pub fn reserved_bytes(&self) -> u64 {
        self.port.reserved_bytes()
    }

    /// Returns the counters of an rt or nrt class; 0 for other types.
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn reservation_stats(&self, class: ClassId) -> Result<ReservationStats, Error> {
        let slot = self.slot(class)?;
        let raw = self.port.reservation(slot);
        raw.map(ReservationStats::from).ok_or(Error::UnknownClass)
    }

    /// Adds a backlogged class to the schedule. No effect if it is active. O(log n).
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn activate(&mut self, class: ClassId, now_ns: u64) -> Result<(), Error> {
        let slot = self.slot(class)?;
        self.port.activate(slot, now_ns).ok_or(Error::UnknownClass)
    }

    /// Removes from the schedule a class whose packets were dropped. No effect if it is
    /// inactive. O(log n).
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn deactivate(&mut self, class: ClassId, now_ns: u64) -> Result<(), Error> {
        let slot = self.slot(class)?;
        self.port
            .deactivate(slot, now_ns)
            .ok_or(Error::UnknownClass)
    }

    /// Returns what to do next; a repeated call returns the same. O(1); O(log n) amortised
    /// with [`Order::Rate`] and [`Order::Next`].
    pub fn next(&mut self, now_ns: u64) -> Decision {
        self.next_and_lateness(now_ns).0
    }

    /// As [`Scheduler::next`], and returns the picoseconds by which the class to send at its
    /// guaranteed rate is late or, if negative, early; 0 for every other decision.
    pub fn next_and_lateness(&mut self, now_ns: u64) -> (Decision, i64) {
        let (decision, slot) = self.port.next(now_ns);
        let late_ps = decision.late_ps;
        let decision = match (decision.verdict, slot) {
            (SEND, Some(slot)) => Decision::Send(self.id(slot)),
            (GAP, _) => Decision::Gap {
                wire_bytes: decision.gap_bytes,
            },
            (WAIT, _) => Decision::Wait {
                until_ns: decision.until_ns,
            },
            _ => Decision::Idle,
        };
        (decision, late_ps)
    }

    /// Reports that a class sent a frame of `len_bytes` (link header included, FCS not);
    /// `more` says whether it has another packet. O(log n).
    ///
    /// # Errors
    /// [`Error::UnknownClass`]; [`Error::Inactive`]; [`Error::Length`] outside
    /// 1..=[`FRAME_MAX_BYTES`].
    pub fn sent(
        &mut self,
        class: ClassId,
        len_bytes: u32,
        more: bool,
        now_ns: u64,
    ) -> Result<(), Error> {
        let slot = self.active_slot(class)?;
        if len_bytes == 0 || len_bytes > FRAME_MAX_BYTES {
            return Err(Error::Length);
        }
        self.port
            .sent(slot, len_bytes, more, now_ns)
            .ok_or(Error::UnknownClass)
    }

    /// As [`Scheduler::sent`], for a burst of frames. O(log n).
    ///
    /// # Errors
    /// [`Error::UnknownClass`]; [`Error::Inactive`]; [`Error::Length`] for a
    /// burst without frames or bytes, or beyond its limits.
    pub fn sent_burst(
        &mut self,
        class: ClassId,
        burst: Burst,
        more: bool,
        now_ns: u64,
    ) -> Result<(), Error> {
        let slot = self.active_slot(class)?;
        if !(1..=FRAME_MAX_BYTES).contains(&burst.len_bytes)
            || !(1..=BURST_WIRE_MAX_BYTES).contains(&burst.wire_bytes)
            || burst.frames == 0
        {
            return Err(Error::Length);
        }
        let sizes = (burst.len_bytes, burst.wire_bytes, burst.frames);
        self.port
            .sent_burst(slot, sizes, more, now_ns)
            .ok_or(Error::UnknownClass)
    }

    /// Sets the wire bytes of the class's first frame, by which the guard band decides whether
    /// the frame ends in time. The value is forgotten when the frame is sent; 0 means unknown
    /// and counts as the longest frame.
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn set_head(&mut self, class: ClassId, wire_bytes: u32) -> Result<(), Error> {
        let slot = self.slot(class)?;
        self.port
            .set_head(slot, wire_bytes)
            .ok_or(Error::UnknownClass)
    }

    /// Returns whether the class is active and paced and waits for its clock. While
    /// [`Scheduler::is_quiet`], the result is that of the last decision.
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn is_throttled(&self, class: ClassId) -> Result<bool, Error> {
        let slot = self.slot(class)?;
        self.port.is_throttled(slot).ok_or(Error::UnknownClass)
    }

    /// Returns by how much the class's clock is ahead of the port's, rounded up. At 0 the class
    /// does not differ from a new one.
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn debt_ns(&self, class: ClassId, now_ns: u64) -> Result<u64, Error> {
        let slot = self.slot(class)?;
        self.port.debt_ns(slot, now_ns).ok_or(Error::UnknownClass)
    }

    /// Returns until when [`Scheduler::next`] is expected to wait after the frame for which it
    /// waits now. `None`: unknown, as it is but in [`Mode::Timer`].
    pub fn after_ns(&self) -> Option<u64> {
        Some(self.port.after_ns()).filter(|&ns| ns != 0)
    }

    /// Reports that a gap of `wire_bytes` went to the wire. O(1).
    pub fn gap_sent(&mut self, wire_bytes: u32) {
        self.port.gap_sent(wire_bytes);
    }

    pub fn stats(&self) -> Stats {
        self.port.stats().into()
    }

    /// Returns the port's clock in picoseconds, which wraps at 2^64. It does not advance while
    /// [`Scheduler::is_quiet`].
    pub fn global_ps(&self) -> u64 {
        self.port.global()
    }

    /// Returns whether the last decision was [`Decision::Wait`] and nothing has changed since.
    pub fn is_quiet(&self) -> bool {
        self.port.is_quiet()
    }

    /// Returns when the class may send, on the port's clock, which does not advance while
    /// [`Scheduler::is_quiet`].
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn class_clock(&self, class: ClassId) -> Result<ClassClock, Error> {
        let slot = self.slot(class)?;
        let (ps, frac) = self.port.clock(slot).ok_or(Error::UnknownClass)?;
        Ok(ClassClock { ps, frac })
    }

    /// Returns whether the class is in the schedule.
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn is_active(&self, class: ClassId) -> Result<bool, Error> {
        let slot = self.slot(class)?;
        self.port.is_active(slot).ok_or(Error::UnknownClass)
    }

    /// Returns the wire length of a frame of `len_bytes`.
    ///
    /// # Errors
    /// [`Error::Length`] above [`FRAME_MAX_BYTES`].
    pub fn wire_bytes(&self, len_bytes: u32) -> Result<u32, Error> {
        if len_bytes > FRAME_MAX_BYTES {
            return Err(Error::Length);
        }
        Ok(self.port.wire_bytes(len_bytes))
    }

    /// Returns the length of the smallest gap that can be sent, in wire bytes.
    pub fn min_gap_bytes(&self) -> u32 {
        self.port.min_gap_bytes()
    }

    fn id(&self, slot: u32) -> ClassId {
        let generation = self.generations.get(slot as usize).copied();
        ClassId {
            slot,
            generation: generation.unwrap_or(0),
        }
    }

    fn active_slot(&self, class: ClassId) -> Result<u32, Error> {
        let slot = self.slot(class)?;
        match self.port.is_active(slot) {
            Some(true) => Ok(slot),
            Some(false) => Err(Error::Inactive),
            None => Err(Error::UnknownClass),
        }
    }

    fn slot(&self, class: ClassId) -> Result<u32, Error> {
        if self.port.groups.class(class.slot).is_some() {
            return Ok(class.slot);
        }
        match self.generations.get(class.slot as usize) {
            Some(&generation) if generation == class.generation => Ok(class.slot),
            _ => Err(Error::UnknownClass),
        }
    }
}
