// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual receiver buffer (SMPTE ST 2110-21, 6.6.2): packets enter as they arrive, and packet j
//! of a picture leaves at its read time TPR_j = T_VD + j T_RS (6.3, 6.4), where T_VD = N T + TR_OFFSET
//! is the video transmission datum of picture N and T_RS = T R_ACTIVE / N_PACKETS the read spacing.
//!
//! All comparisons are exact: times are integers in a unit that divides T, T_RS and the default
//! TR_OFFSET, [`ReadTimes::scale`] of them in a picosecond.
//!
//! Unlike EBU LIST (`d21/vrx_calculator.cpp`), which begins each picture with an empty buffer, the
//! level here is that of the whole stream; and a packet that arrives after its read time is late,
//! however little: the buffer underflowed. LIST's level shows that only from one T_RS on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::time::PS_PER_S;

use crate::format::{LINES_MULTIPLE, Raster, Schedule};
use crate::limits::MOST_PACKETS;
use crate::rate::Rate;

/// Largest TR_OFFSET, of either sign: a second.
const MOST_OFFSET_PS: i128 = PS_PER_S as i128;

/// The read times of a format under a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTimes {
    scale: i128,
    period: i128,
    spacing: i128,
    offset: i128,
}

impl ReadTimes {
    /// Makes the read times of `packets` (1 to [`MOST_PACKETS`], else clamped) in each picture.
    /// `offset_ps` is TR_OFFSET, a second at most; `None`: the format's default.
    pub fn new(
        rate: Rate,
        packets: u32,
        raster: Raster,
        schedule: Schedule,
        offset_ps: Option<i128>,
    ) -> Self {
        let packets = i128::from(packets.clamp(1, MOST_PACKETS));
        let multiple = i128::from(LINES_MULTIPLE);
        let scale = i128::from(rate.num()) * packets * multiple;
        // A period is den / num seconds: in the unit, den × 10^12 × packets × multiple.
        let per_packet = i128::from(rate.den()) * i128::from(PS_PER_S) * multiple;
        let period = per_packet * packets;
        let (num, den) = raster.active(schedule);
        let spacing = per_packet / i128::from(den) * i128::from(num);
        let (num, den) = raster.default_offset();
        let default = period / i128::from(den) * i128::from(num) * i128::from(raster.pictures());
        Self {
            scale,
            period,
            spacing,
            offset: offset_ps.map_or(default, |ps| {
                ps.clamp(-MOST_OFFSET_PS, MOST_OFFSET_PS) * scale
            }),
        }
    }

    /// Returns the units of a picosecond.
    pub fn scale(&self) -> i128 {
        self.scale
    }

    /// Returns the time of a picture, T, in units.
    pub fn period(&self) -> i128 {
        self.period
    }

    /// Returns the read spacing T_RS, in units.
    pub fn spacing(&self) -> i128 {
        self.spacing
    }

    /// Returns TR_OFFSET, in units.
    pub fn offset(&self) -> i128 {
        self.offset
    }

    /// Returns the number N of the picture whose datum is nearest to a time in units.
    pub fn nearest(&self, time: i128) -> i128 {
        (2 * (time - self.offset) + self.period).div_euclid(2 * self.period)
    }

    /// Returns T_VD of picture N, in units.
    pub fn datum(&self, number: i128) -> i128 {
        number * self.period + self.offset
    }
}

/// A picture whose packets are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// T_VD, in units.
    pub datum: i128,
    /// Packets that are read, from T_VD on.
    pub packets: u32,
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, in ps.
    pub time_ps: i128,
    /// Index of its picture.
    pub picture: usize,
    /// Its place in the picture, from 0.
    pub index: u32,
    /// Packets that enter the buffer with it: itself, and those lost before it.
    pub packets: u64,
}

/// The buffer when a packet has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// VRX: packets in the buffer after the arrival, reads of the same instant done. Below 0 where
    /// reads went on without packets.
    pub vrx: i64,
    /// How long the packet came after its read time, rounded up; 0: it came in time.
    pub late_ps: i128,
}

/// Passes the buffer's state after each arrival to `each`. Arrivals are in order of time; the
/// pictures in any order. Time O(arrivals + pictures log pictures) as long as few pictures are
/// being read at a time.
pub fn follow(
    times: &ReadTimes,
    pictures: &[Reading],
    arrivals: &[Arrival],
    mut each: impl FnMut(&Arrival, State),
) {
    // The next read of each picture that is not read to its end.
    let next_reads = pictures.iter().enumerate();
    let mut waiting: BinaryHeap<_> = next_reads
        .map(|(picture, reading)| Reverse((reading.datum, picture, 0u32)))
        .collect();
    let mut level = 0i64;
    for arrival in arrivals {
        let now = arrival.time_ps * times.scale;
        while let Some(Reverse((due, picture, done))) = waiting.peek().copied() {
            if due > now {
                break;
            }
            waiting.pop();
            let Some(reading) = pictures.get(picture) else {
                continue;
            };
            let read = (now - reading.datum) / times.spacing + 1;
            let read =
                u32::try_from(read).map_or(reading.packets, |read| read.min(reading.packets));
            level -= i64::from(read) - i64::from(done);
            if read < reading.packets {
                let due = reading.datum + i128::from(read) * times.spacing;
                waiting.push(Reverse((due, picture, read)));
            }
        }
        level = level.saturating_add(i64::try_from(arrival.packets).unwrap_or(i64::MAX));
        let due = pictures.get(arrival.picture).map_or(now, |reading| {
            reading.datum + i128::from(arrival.index) * times.spacing
        });
        let late = (now - due).max(0);
        let late_ps = late / times.scale + i128::from(late % times.scale > 0);
        each(
            arrival,
            State {
                vrx: level,
                late_ps,
            },
        );
    }
}
