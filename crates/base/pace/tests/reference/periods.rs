// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of periods: of a port, and of a class with a reservation.

use std::collections::VecDeque;

use num_bigint::BigInt;
use pace::ReservationStats;

/// Periods whose reservations an rt class may have as credit.
pub(super) const SAVED_AND_OWN: i128 = 8 + 1;

pub struct Periods {
    pub running: bool,
    /// Of the current period, those of an idle port included; 0: none yet.
    pub number: u64,
    /// Periods begun, as the core counts them.
    pub begun: u64,
    pub end: BigInt,
    /// Aligned: the instant of `end` on the host's clock.
    pub end_ns: Option<u64>,
    pub budget_left: i128,
    /// Classes in turn: within the reservation, late, excess, in the next period.
    pub rt: VecDeque<u32>,
    pub late: VecDeque<u32>,
    pub excess: VecDeque<u32>,
    pub rt_next: VecDeque<u32>,
    pub nrt: VecDeque<u32>,
    pub nrt_next: VecDeque<u32>,
    pub spent: u64,
    /// Sums over all rt classes.
    pub all_rt: ReservationStats,
    pub nrt_deferred: u64,
}

#[derive(Default)]
pub(super) struct Reservation {
    /// Wire bytes of a frame, and the period in which it arrived.
    pub frames: VecDeque<(u64, u64)>,
    /// Left of the period's reservation; nrt: below 0, owed.
    pub left: i128,
    /// Rt: late bytes that may still go before others.
    pub late_left: i128,
    /// Rt: reserved and not sent.
    pub credit: i128,
    pub stats: ReservationStats,
}

impl Periods {
    pub fn new() -> Self {
        Periods {
            running: false,
            end_ns: None,
            number: 0,
            begun: 0,
            end: BigInt::from(0),
            budget_left: 0,
            rt: VecDeque::new(),
            late: VecDeque::new(),
            excess: VecDeque::new(),
            rt_next: VecDeque::new(),
            nrt: VecDeque::new(),
            nrt_next: VecDeque::new(),
            spent: 0,
            all_rt: ReservationStats::default(),
            nrt_deferred: 0,
        }
    }
}

impl Reservation {
    /// Of a class that reserves so much of a period, or nothing.
    pub fn new(reserve_bytes: Option<u64>) -> Self {
        let left = i128::from(reserve_bytes.unwrap_or(0));
        Reservation {
            left,
            late_left: left,
            credit: SAVED_AND_OWN * left,
            ..Reservation::default()
        }
    }

    /// Changes the type of its class. Counters stay until a reservation counts anew.
    pub fn change(&mut self, reserve_bytes: Option<u64>) {
        let stats = match reserve_bytes {
            Some(_) => ReservationStats::default(),
            None => self.stats,
        };
        *self = Reservation {
            stats,
            ..Reservation::new(reserve_bytes)
        };
    }
}
