// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes senders' own records (docs/decisions/simulator.md, "A record in bounded memory") as files
//! and as plots like those of paper 001.

use std::path::Path;

use anyhow::Result;
use netsim::record::Recorder;
use report::{SenderRecord, Variables};
use scenario::Cell;
use sender_log::epool::Epool;
use sender_log::variables::Moment;
use serde::{Deserialize, Serialize};

use crate::results_dir::ResultsDir;

/// The records of a cell's sampled flows, for plots.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Senders {
    /// Records over the whole time.
    whole: Vec<SenderRecord>,
    /// Records of each closeup, with the closeup's name.
    stretches: Vec<(String, SenderRecord)>,
}

impl Senders {
    /// Takes the records from a recorder, and writes them into the cell's folder, if there is one.
    pub fn keep(
        cell: &Cell,
        recorder: &Recorder,
        folder: Option<(&ResultsDir, &Path)>,
    ) -> Result<Self> {
        let file = |epool: &Epool, name: &str| match folder {
            Some((out, dir)) => file(epool, out, &dir.join(name)),
            None => Ok(()),
        };
        let mut senders = Self::default();
        for (flow, epool) in cell.flows.iter().zip(&recorder.epools) {
            if let Some(epool) = epool {
                file(epool, &format!("flow-{}.epool.csv", flow.name))?;
                senders.whole.push(record(cell, &flow.name, epool));
            }
        }
        // A closeup's record that had to be thinned shows no more than the record of the whole
        // time.
        let all = recorder.closeups.iter().filter(|(.., e)| e.omitted() == 0);
        for (flow, closeup, epool) in all.filter(|(.., e)| !e.records().is_empty()) {
            let name = &cell.flows[*flow].name;
            file(epool, &format!("flow-{name}.epool-{closeup}.csv"))?;
            senders.stretches.push((
                cell.closeups[*closeup].name.clone(),
                record(cell, name, epool),
            ));
        }
        Ok(senders)
    }

    /// Draws the records of several cells, with a panel for each sender.
    pub fn plots(all: Vec<Self>) -> Vec<draw::Plot> {
        let (mut whole, mut stretches) = (vec![], Vec::<(String, Vec<SenderRecord>)>::new());
        for senders in all {
            // If any cell has closeups, only the cells with closeups are drawn over the whole time,
            // too.
            whole.push((senders.whole, senders.stretches.is_empty()));
            for (name, record) in senders.stretches {
                match stretches.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, records)) => records.push(record),
                    None => stretches.push((name, vec![record])),
                }
            }
        }
        let is_close = whole.iter().any(|(_, far)| !far);
        let whole = whole.into_iter().filter(|(_, far)| !(is_close && *far));
        let whole: Vec<_> = whole.flat_map(|(records, _)| records).collect();
        match whole.len() {
            0..=MOST_PANELS => report::sender_plots(&whole, &stretches),
            _ => vec![],
        }
    }
}

/// Most senders that are drawn together.
const MOST_PANELS: usize = 8;

/// Writes a record as a table.
pub fn file(epool: &Epool, out: &ResultsDir, path: &Path) -> Result<()> {
    let mut bytes = vec![];
    epool.write_csv(&mut bytes)?;
    out.write(path, &bytes)
}

fn record(cell: &Cell, flow: &str, epool: &Epool) -> SenderRecord {
    let params: Vec<&str> = cell.params.values().map(String::as_str).collect();
    let title = match (cell.flows.len(), params.join(", ")) {
        (1, params) if !params.is_empty() => params,
        (_, params) => format!("{flow} {params}").trim_end().to_owned(),
    };
    drawn(title, epool)
}

/// Converts a record for the plots.
pub fn drawn(title: String, epool: &Epool) -> SenderRecord {
    let mut timeouts = 0;
    let readings = epool.records().iter().map(|r| {
        timeouts += u32::from(r.moment == Moment::Timeout);
        let vars = &r.vars;
        Variables {
            at_s: r.time.as_s(),
            cwnd: vars.cwnd,
            ssthresh: (vars.ssthresh < u32::MAX / 2).then_some(vars.ssthresh),
            in_flight: vars.in_flight,
            sacked_out: vars.sacked_out,
            lost_out: vars.lost_out,
            retrans_out: vars.retrans_out,
            timeouts,
            una_bytes: vars.una,
            nxt_bytes: vars.nxt,
            sack_bytes: (vars.sack.1 > 0).then_some(vars.sack),
        }
    });
    SenderRecord {
        title,
        readings: readings.collect(),
    }
}
