// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--record`: the same tables and plots that the simulator writes of its
//! senders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use netsim::epool::Epool;
use netsim::tcp::{self, Moment, Observer, Vars};
use netsim::{Span, Time};
use watch::{CaState, Connection, Reading};

use super::session::{self, Session};
use crate::cells::write;
use crate::sim::senders;

/// Of more connections there is none: each may take 15 MB.
const CONNECTIONS_MOST: usize = 64;
/// Of each; of more readings every second goes (docs/decisions/0088).
const READINGS_MOST: usize = 100_000;
/// More of them are not drawn together.
const DRAWN_MOST: usize = 8;

/// Records in memory, until the end.
pub struct Recording {
    folder: PathBuf,
    /// By the connections' numbers.
    epools: BTreeMap<usize, Epool>,
}

impl Recording {
    /// Into this folder, which is made.
    ///
    /// # Errors
    /// When it cannot be made, or there is something in it.
    pub fn new(folder: &Path) -> Result<Self> {
        let at = || format!("--record {}", folder.display());
        fs::create_dir_all(folder).with_context(at)?;
        let is_empty = fs::read_dir(folder).with_context(at)?.next().is_none();
        ensure!(is_empty, "{}: expected a new or an empty folder", at());
        Ok(Self {
            folder: folder.to_owned(),
            epools: BTreeMap::new(),
        })
    }

    /// Takes what happened to a connection.
    pub fn reading(&mut self, number: usize, of: &Connection, reading: &Reading, start_ns: u64) {
        let moment = match (reading.moment, reading.ca_state) {
            (watch::Moment::Ack, _) => Moment::Ack,
            (watch::Moment::CaState, CaState::Loss) => Moment::Timeout,
            _ => return,
        };
        if self.epools.len() >= CONNECTIONS_MOST && !self.epools.contains_key(&number) {
            return;
        }
        let new = || Epool::new(READINGS_MOST, Moment::Ack);
        let epool = self.epools.entry(number).or_insert_with(new);
        epool.omit(u64::from(reading.lost));
        let now_ps = reading
            .time_ns
            .saturating_sub(start_ns)
            .saturating_mul(1000);
        epool.observe(Time::from_ps(now_ps), moment, &vars(of, reading));
    }

    /// The file of a connection's record.
    pub fn file_of(&self, number: usize) -> Option<String> {
        let name = || format!("flow-{number}.epool.csv");
        self.epools.contains_key(&number).then(name)
    }

    /// Writes everything.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, session: &Session) -> Result<()> {
        let mut drawn = Vec::new();
        for (number, cookie, connection) in session.connections() {
            let Some(epool) = self.epools.get(&number) else {
                continue;
            };
            senders::file(epool, &self.folder.join(format!("flow-{number}.epool.csv")))?;
            if drawn.len() < DRAWN_MOST {
                let title = format!("#{number}  {}", session::ends(cookie, Some(connection)));
                drawn.push(senders::drawn(title, epool));
            }
        }
        for plot in report::sender_plots(&drawn, &[]) {
            write(&self.folder.join(&plot.name), plot.svg.as_bytes())?;
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
            CaState::Open => tcp::State::Open,
            CaState::Disorder => tcp::State::Disorder,
            CaState::Cwr => tcp::State::Cwr,
            CaState::Recovery => tcp::State::Recovery,
            CaState::Loss => tcp::State::Loss,
        },
        srtt: Span::from_ns(reading.srtt_ns),
        rto: Span::from_ns(reading.rto_ns),
        sack: if has_sack { sack } else { (0, 0) },
    }
}
