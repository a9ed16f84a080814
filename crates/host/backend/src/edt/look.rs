// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks at what departure times have done.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use aya::programs::{ProgramError, SchedClassifier, TcAttachType};
use host_config::{Facts, Made, Psp, minor};
use linux_io::links::Link;
use tcpsp::{ClassStats, Counters, Handle, Mode, QdiscStats, Tc};

use super::running::Running;
use crate::error::{Error, refused};
use crate::seen::{ClassSeen, Seen};

/// Returns whether our program is attached to a device.
pub fn is_there(tc: &mut Tc, facts: &Facts) -> Result<bool, Error> {
    Ok(Running::read(tc, facts.index)?.is_attached)
}

/// Returns what is asked of each packet that leaves a device before our program, or in its place,
/// and may end the search: a filter of others, or a program at tcx.
pub fn asked_before(tc: &mut Tc, facts: &Facts) -> Result<Vec<String>, Error> {
    let mut before = Running::read(tc, facts.index)?.before;
    let programs = match SchedClassifier::query_tcx(&facts.name, TcAttachType::Egress) {
        Ok((_, programs)) => programs,
        Err(ProgramError::SyscallError(error))
            if error.io_error.kind() == ErrorKind::PermissionDenied =>
        {
            return Err(refused("programs at tcx egress", &error));
        }
        // Kernels before 6.6 have no tcx.
        Err(_) => Vec::new(),
    };
    before.extend(programs.iter().map(|program| {
        let name = program.name_as_str().unwrap_or_default();
        format!("program {name} (id {}) at tcx egress", program.id())
    }));
    Ok(before)
}

/// Looks at a device whose packets fqs of ours keep. Without a program nothing has been put in
/// force yet; what a program of another version does is not known here. O(classes + filters).
///
/// # Errors
/// The kernel's; that it takes root.
pub(crate) fn look(tc: &mut Tc, link: &Link, made: Made) -> Result<Seen, Error> {
    let running = Running::read(tc, link.index)?;
    let (handle, parent) = (minor::root(), Handle::ROOT);
    let psp = if running.maps.is_some() {
        let text = std::str::from_utf8(&running.tables.text);
        let text = text.map_err(|error| Error::Text(error.to_string()))?;
        Psp::of_text(text, made, handle, parent).map_err(Error::Text)?
    } else {
        Psp {
            is_unread: running.is_attached,
            ..Psp::empty(made, handle, parent)
        }
    };
    let mut stats = QdiscStats {
        mode: Mode::Timer.number(),
        max_frame_bytes: psp.max_frame_bytes,
        drop_horizon: running.horizon_drops,
        ..QdiscStats::default()
    };
    let mut classes = BTreeMap::new();
    let (counters, without) = running.counters()?;
    stats.unclassified_frames = without.frames;
    stats.sent_frames = without.frames;
    stats.sent_wire_bytes = without.wire_bytes;
    for class in counters {
        stats.sent_frames += class.frames;
        stats.sent_wire_bytes += class.wire_bytes;
        stats.drop_late += class.dropped_frames;
        let seen = ClassSeen {
            counters: Counters {
                sent_bytes: class.bytes,
                sent_packets: class.frames,
                drops: u32::try_from(class.dropped_frames).unwrap_or(u32::MAX),
                overlimits: u32::try_from(class.marked_frames).unwrap_or(u32::MAX),
                ..Counters::default()
            },
            stats: ClassStats {
                rate_bps: class.rate_bps,
                sent_frames: class.frames,
                sent_wire_bytes: class.wire_bytes,
                drop_late: class.dropped_frames,
                ..ClassStats::default()
            },
        };
        classes.insert(class.minor, seen);
    }
    Ok(Seen {
        psp,
        stats,
        classes,
    })
}
