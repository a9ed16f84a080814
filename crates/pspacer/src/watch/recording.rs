// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--out`: the same tables and plots that the simulator writes of its
//! senders.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use report::SenderRecord;
use sender_log::epool::Epool;
use sender_log::variables::{Moment, Observer, State, Vars};
use units::clock::{Span, Time};
use watch::{CaState, Connection, Reading};

use super::session;
use crate::results_dir::{ResultsDir, Writer};
use crate::sim::senders;

/// Connections recorded at one time: each may take 15 MB.
const OPEN_MOST: usize = 64;
/// Readings kept of each; of more every second goes (docs/decisions/0088).
const READINGS_MOST: usize = 100_000;
/// Rows of all files together, about 1 GB. No connection is recorded anew beyond
/// that: a disk is not filled by a watch of days.
const ROWS_MOST: usize = 10_000_000;
/// Files, for the same reason: one of a few rows takes a block.
const FILES_MOST: usize = 100_000;
/// More of them are not drawn together.
const DRAWN_MOST: usize = 8;

/// Records in memory, each until its connection ends.
pub struct Recording {
    folder: ResultsDir,
    /// By the sockets.
    epools: BTreeMap<u64, Epool>,
    /// Of the first connections, by their numbers.
    drawn: BTreeMap<u64, SenderRecord>,
    rows: usize,
    files: usize,
    /// Connections that there was no room for.
    pub left_out: u64,
}

impl Recording {
    /// Into this folder, which is made.
    ///
    /// # Errors
    /// When it cannot be made, or there are files in it that are not ours.
    pub fn new(folder: &Path) -> Result<Self> {
        Ok(Self {
            folder: ResultsDir::open(folder, Writer::Watch)?,
            epools: BTreeMap::new(),
            drawn: BTreeMap::new(),
            rows: 0,
            files: 0,
            left_out: 0,
        })
    }

    /// Takes what happened to a connection.
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
            (watch::Moment::Ack, _) => Moment::Ack,
            (watch::Moment::CaState, CaState::Loss) => Moment::Timeout,
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

    /// Writes the record of a connection that is over, and lets go of it; gives the
    /// name of its file, if it has one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(&mut self, cookie: u64, connection: &Connection) -> Result<Option<String>> {
        let Some(epool) = self.epools.remove(&cookie) else {
            return Ok(None);
        };
        if epool.records().is_empty() {
            return Ok(None);
        }
        let number = connection.number;
        let name = format!("flow-{number}.epool.csv");
        senders::file(&epool, &self.folder, &self.folder.path().join(&name))?;
        self.rows += epool.records().len();
        self.files += 1;
        let ends = session::ends(cookie, Some(connection));
        let drawn = senders::drawn(format!("#{number}  {ends}"), &epool);
        self.drawn.insert(number, drawn);
        if self.drawn.len() > DRAWN_MOST {
            self.drawn.pop_last();
        }
        Ok(Some(name))
    }

    /// Writes the pictures of the first connections.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn draw(&self) -> Result<()> {
        let drawn: Vec<SenderRecord> = self.drawn.values().cloned().collect();
        for plot in report::sender_plots(&drawn, &[]) {
            let path = self.folder.path().join(&plot.name);
            self.folder.write(&path, plot.svg.as_bytes())?;
        }
        Ok(())
    }
}

/// The kernel's variables under the simulator's names.
fn vars(of: &Connection, reading: &Reading) -> Vars {
    let una = of.offset(reading.una);
    // The kernel keeps the last blocks that came, however old.
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
