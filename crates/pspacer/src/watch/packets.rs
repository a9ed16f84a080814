// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--packets`: saves the packets around each stall.

use std::path::Path;

use anyhow::{Context, Result};
use watch::lines::stall_line;
use watch::packets::{PacketCounts, Packets, Saved};
use watch::session::{Report, ends};

use crate::output;
use crate::watch::outputs::Session;

/// The packets that are kept, and the folder for those of stalls.
pub struct SavedPackets(Packets);

impl SavedPackets {
    /// Begins to keep packets.
    ///
    /// # Errors
    /// When the folder has files or cannot be made, or packets must not be captured.
    pub fn new(folder: &Path, memory_bytes: u64) -> Result<Self> {
        let memory = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
        let kept = Packets::keep(folder, memory);
        Ok(Self(kept.with_context(|| {
            format!("--packets {}", folder.display())
        })?))
    }

    /// Saves the packets around a stall, and notes their file in the report.
    pub fn save(&mut self, session: &Session, report: &mut Report) {
        let connection = session.connection(report.cookie);
        let of = connection.and_then(|connection| connection.ends.as_ref());
        let start_ns = session.start_ns + report.stall.start_ns;
        let after_ns = connection.map_or(0, |connection| 2 * connection.last.srtt_ns);
        let end_ns = start_ns + report.stall.duration_ns + after_ns;
        let comment = format!(
            "{}; {}; {}; {}",
            ends(report.cookie, connection),
            stall_line(&report.stall),
            report.stall.explanation,
            report.owner.words()
        );
        match self.0.save(of, (start_ns, end_ns), &comment) {
            Saved::File(path) => report.packets = Some(path.display().to_string()),
            Saved::Nothing => {}
            Saved::Failed(why) => {
                output::note(&format!("pspacer: packets of a stall are not saved: {why}"));
            }
        }
    }

    /// Returns what was saved so far.
    pub fn counts(&self) -> PacketCounts {
        self.0.counts()
    }
}
