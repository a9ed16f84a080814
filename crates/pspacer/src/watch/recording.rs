// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--out`: writes the same tables and plots that the simulator writes of its senders.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use lab_run::results_dir::{ResultsDir, Writer};
use lab_run::sim::senders;
use report::SenderRecord;
use watch::Connection;
use watch::recorder::Recorder;
use watch::session::ends;

/// Most connections that are drawn together.
const DRAWN_MOST: usize = 8;

/// The folder of `--out`, and the records to write there.
pub struct Recording {
    folder: ResultsDir,
    /// Records of the first connections, by the connections' numbers.
    drawn: BTreeMap<u64, SenderRecord>,
    /// Records that are not written yet.
    pub recorder: Recorder,
}

impl Recording {
    /// Makes the folder for the recording.
    ///
    /// # Errors
    /// When the folder cannot be made, or holds files that `pspacer` has not written.
    pub fn new(folder: &Path) -> Result<Self> {
        Ok(Self {
            folder: ResultsDir::open(folder, Writer::Watch)?,
            drawn: BTreeMap::new(),
            recorder: Recorder::default(),
        })
    }

    /// Writes the record of a connection that has ended; returns the name of its file, if it has
    /// one.
    pub fn finish(&mut self, cookie: u64, connection: &Connection) -> Result<Option<String>> {
        let Some(epool) = self.recorder.finish(cookie) else {
            return Ok(None);
        };
        let number = connection.number;
        let name = format!("flow-{number}.epool.csv");
        senders::file(&epool, &self.folder, &self.folder.path().join(&name))?;
        let ends = ends(cookie, Some(connection));
        let drawn = senders::drawn(format!("#{number}  {ends}"), &epool);
        self.drawn.insert(number, drawn);
        if self.drawn.len() > DRAWN_MOST {
            self.drawn.pop_last();
        }
        Ok(Some(name))
    }

    /// Writes the plots of the first connections.
    pub fn draw(&self) -> Result<()> {
        let drawn: Vec<SenderRecord> = self.drawn.values().cloned().collect();
        for plot in report::sender_plots(&drawn, &[]) {
            let path = self.folder.path().join(&plot.name);
            self.folder.write(&path, plot.svg.as_bytes())?;
        }
        Ok(())
    }
}
