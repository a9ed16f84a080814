// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records the variables of connections at each acknowledgement, until the connections end.

use std::collections::BTreeMap;

use sender_log::epool::Epool;
use sender_log::variables::{Moment, Observer, State, Vars};
use units::clock::{Span, Time};

use crate::{CaState, Connection, Reading};

/// Connections recorded at one time: each may take 15 MB.
const OPEN_MOST: usize = 64;
/// Readings kept of each connection; of more, every second one is dropped
/// (docs/decisions/simulator.md, "A record in bounded memory").
const READINGS_MOST: usize = 100_000;
/// Rows of all files together, about 1 GB. Beyond that no further connection is recorded, so
/// that a watch of days does not fill the disk.
const ROWS_MOST: usize = 10_000_000;
/// Files, for the same reason: a file of a few rows still takes a disk block.
const FILES_MOST: usize = 100_000;

/// The records in memory; each stays until its connection ends.
#[derive(Default)]
pub struct Recorder {
    /// The record of each socket, by its cookie.
    epools: BTreeMap<u64, Epool>,
    rows: usize,
    files: usize,
    /// Connections that were not recorded because there was no room.
    pub left_out: u64,
}

impl Recorder {
    /// Records a reading of a connection; `start_ns` is when watching began.
    pub fn reading(&mut self, of: &Connection, reading: &Reading, start_ns: u64) {
        if of.readings == 1 {
            let is_full = self.epools.len() >= OPEN_MOST
                || self.rows >= ROWS_MOST
                || self.files >= FILES_MOST;
            self.left_out += u64::from(is_full);
            if !is_full {
                let epool = Epool::new(READINGS_MOST, Moment::Ack);
                self.epools.insert(reading.cookie, epool);
            }
        }
        let moment = match (reading.moment, reading.ca_state) {
            (crate::Moment::Ack, _) => Moment::Ack,
            (crate::Moment::CaState, CaState::Loss) => Moment::Timeout,
            _ => return,
        };
        let Some(epool) = self.epools.get_mut(&reading.cookie) else {
            return;
        };
        epool.omit(u64::from(reading.lost));
        let now_ps = reading
            .time_ns
            .saturating_sub(start_ns)
            .saturating_mul(1000);
        epool.observe(Time::from_ps(now_ps), moment, &vars(of, reading));
    }

    /// Removes and returns the record of a connection that has ended; `None` if nothing was
    /// recorded.
    pub fn finish(&mut self, cookie: u64) -> Option<Epool> {
        let epool = self.epools.remove(&cookie)?;
        let rows = epool.records().len();
        if rows == 0 {
            return None;
        }
        self.rows += rows;
        self.files += 1;
        Some(epool)
    }
}

/// Converts the kernel's variables to those of sender-log.
fn vars(of: &Connection, reading: &Reading) -> Vars {
    let una = of.offset(reading.una);
    // The kernel keeps the last SACK blocks that arrived, however old they are.
    let sack = (of.offset(reading.sack.0), of.offset(reading.sack.1));
    let has_sack = reading.sacked_out > 0 && sack.1 > una;
    let mss_bytes = u64::from(reading.mss_bytes.max(1));
    let fackets_out = sack.1.saturating_sub(una).div_ceil(mss_bytes);
    Vars {
        una,
        nxt: of.offset(reading.nxt),
        high_seq: of.offset(reading.high_seq),
        window_bytes: u64::from(reading.window_bytes),
        cwnd: reading.cwnd,
        ssthresh: reading.ssthresh,
        packets_out: reading.packets_out,
        sacked_out: reading.sacked_out,
        lost_out: reading.lost_out,
        retrans_out: reading.retrans_out,
        fackets_out: if has_sack {
            u32::try_from(fackets_out).unwrap_or(u32::MAX)
        } else {
            0
        },
        in_flight: reading.in_flight(),
        reordering: reading.reordering,
        state: match reading.ca_state {
            CaState::Open => State::Open,
            CaState::Disorder => State::Disorder,
            CaState::Cwr => State::Cwr,
            CaState::Recovery => State::Recovery,
            CaState::Loss => State::Loss,
        },
        srtt: Span::from_ns(reading.srtt_ns),
        rto: Span::from_ns(reading.rto_ns),
        sack: if has_sack { sack } else { (0, 0) },
    }
}
