// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts what a simulated cell recorded for the measurements.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use capture::timeline::write_timeline;
use metrics::waits::timestamps_ps;
use netsim::record::Recorder;
use netsim::run::{FlowReport, Ran};
use scenario::Cell;
use serde_json::{Value, json};

use crate::measure_cell::Sent;
use crate::results_dir::ResultsDir;

/// Converts the contents of a recorder for the measurements, and writes it to files if there is a
/// folder for it.
pub fn recorded(
    cell: &Cell,
    recorder: Recorder,
    folder: Option<(&ResultsDir, &Path)>,
) -> Result<(Vec<Sent>, Vec<Vec<sender_log::sample::TcpSample>>)> {
    let mut sent = vec![];
    for (index, of) in recorder.sent.into_iter().enumerate() {
        let direction = Recorder::direction(index);
        let cable = &cell.cables[direction.cable];
        let name = format!("{}.{}", cable.name, direction.end);
        if let Some((out, dir)) = folder {
            let mut bytes = vec![];
            write_timeline(&mut bytes, &of.records)?;
            out.write(&dir.join(format!("timeline.{name}")), &bytes)?;
            let flows = of.flows.to_text();
            out.write(&dir.join(format!("flows.{name}")), flows.as_bytes())?;
            if cable.snap_bytes > 0 {
                out.write(&dir.join(format!("snap.{name}")), &of.snap)?;
            }
        }
        sent.push(Sent {
            direction,
            name,
            records: of.records,
            flows: of.flows,
            timestamps_ps: timestamps_ps(&of.snap, cable.snap_bytes as usize),
            snap: of.snap,
        });
    }
    let mut tcp = vec![];
    for (flow, of) in cell.flows.iter().zip(recorder.tcp) {
        if let (Some((out, dir)), false) = (folder, of.csv.is_empty()) {
            let path = dir.join(format!("flow-{}.tcp", flow.name));
            out.write(&path, of.csv.as_bytes())?;
        }
        tcp.push(of.samples);
    }
    Ok((sent, tcp))
}

/// Returns what the ends of each flow report themselves.
pub fn reports(cell: &Cell, ran: &Ran) -> BTreeMap<String, Value> {
    let of = |report: &FlowReport| match &report.stream {
        None => json!({ "refused": report.refused }),
        Some(stream) => {
            let (sender, counters) = (&stream.sender, &stream.sender.counters);
            let mut value = json!({
                "refused": report.refused,
                "acked_bytes": sender.acked_bytes,
                "sent_bytes": sender.sent_bytes,
                "received_bytes": stream.received_bytes,
                "retransmits": counters.retransmits,
                "timeouts": counters.timeouts,
                "recoveries": counters.recoveries,
                "lost_retransmits": counters.lost_retransmits,
                "loss_probes": counters.loss_probes,
                "local_drops": counters.local_drops,
            });
            if let (Some(transfer), Some(fields)) = (stream.transfer, value.as_object_mut()) {
                let bps = sender.acked_bytes as f64 * 8.0 / transfer.as_s();
                fields.insert("transfer_s".into(), json!(transfer.as_s()));
                fields.insert("transfer_bps".into(), json!(bps.round()));
            }
            value
        }
    };
    let names = cell.flows.iter().map(|flow| flow.name.clone());
    names.zip(ran.flows.iter().map(of)).collect()
}
