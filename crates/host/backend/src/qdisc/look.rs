// SPDX-License-Identifier: MIT OR Apache-2.0
//! Looks at a psp of BPF that stands at a device: what is kept of it, and its statistics as the
//! module has them.

use std::collections::BTreeMap;

use host_config::{Made, Psp};
use tcpsp::{ClassStats, Counters, Mode, Qdisc as Row, QdiscStats, TypeOptions};

use super::session::place;
use super::settings::LINE_UNKNOWN_BPS;
use super::{Error as QdiscError, PortCounters, Qdisc, SlotCounters};
use crate::error::Error;
use crate::seen::{ClassSeen, Seen};

/// Looks at a psp that stands at a device.
pub(crate) fn look(index: u32, row: &Row) -> Result<Seen, Error> {
    let place = place(index, row.parent)?;
    // The kernel lists no map for who is not root: it looks as if there were none.
    let gone = || Error::Refused {
        part: format!("qdisc {}", row.kind),
        detail: "reading what it keeps takes root (CAP_SYS_ADMIN)".to_owned(),
    };
    let open = match Qdisc::find(place) {
        Ok(open) => open.ok_or_else(gone)?,
        // What another version does is not known here: it makes room as a whole.
        Err(QdiscError::Version { .. }) => {
            return Ok(Seen {
                psp: Psp {
                    is_unread: true,
                    ..Psp::empty(Made::Bpf, row.handle, row.parent)
                },
                stats: QdiscStats::default(),
                classes: BTreeMap::new(),
            });
        }
        Err(error) => return Err(error.into()),
    };
    let port = open.port_of(place).ok_or_else(gone)?;
    let text = open.text(port);
    let text = std::str::from_utf8(&text).map_err(|error| Error::Text(error.to_string()))?;
    let psp = Psp::of_text(text, Made::Bpf, row.handle, row.parent).map_err(Error::Text)?;
    let mut stats = qdisc_stats(&psp, &open.port_counters(port));
    let mut classes = BTreeMap::new();
    for (minor, slot) in open.counters(port) {
        let Some(class) = psp.classes.get(&minor) else {
            continue;
        };
        let class = class_stats(&class.options.by_type, &slot);
        stats.drop_child += class.drop_child;
        stats.drop_long += class.drop_long;
        stats.drop_late += class.drop_late;
        stats.reserved_bytes += class.reserve_bytes;
        let drops = slot.dropped_full + slot.dropped_long + slot.dropped_late;
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let counters = Counters {
            sent_bytes: slot.sent_bytes,
            sent_packets: slot.sent_frames,
            drops: number(drops + slot.dropped_removed),
            waiting_packets: slot.packets,
            waiting_bytes: number(slot.bytes),
            ..Counters::default()
        };
        let seen = ClassSeen {
            counters,
            stats: class,
        };
        classes.insert(minor, seen);
    }
    if stats.reserved_bytes > 0 {
        stats.period_ns = psp.options.period_ns;
    }
    Ok(Seen {
        psp,
        stats,
        classes,
    })
}

/// Returns how many bytes the line carries in so many picoseconds.
fn line_bytes(ps: u64, line_rate_bps: u64) -> u64 {
    let bytes = u128::from(ps) * u128::from(line_rate_bps) / 8_000_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Returns what the port counts, but for drops of classes.
fn qdisc_stats(psp: &Psp, all: &PortCounters) -> QdiscStats {
    let core = &all.core;
    QdiscStats {
        mode: Mode::Timer.number(),
        line_rate_bps: psp.line_bps.unwrap_or(LINE_UNKNOWN_BPS),
        line_known: psp.line_bps.is_some().into(),
        max_frame_bytes: psp.max_frame_bytes,
        sent_frames: core.sent_frames,
        sent_wire_bytes: core.sent_wire_bytes,
        early_bytes_max: line_bytes(core.early_max_ps, all.line_rate_bps),
        late_bytes_max: line_bytes(core.late_max_ps, all.line_rate_bps),
        rebases: core.rebases,
        rebased_bytes: line_bytes(core.rebased_ps, all.line_rate_bps),
        unclassified_frames: all.dropped_unclassified,
        borrowed_frames: core.borrowed_frames,
        guard_band_held: core.guard_band_held,
        budget_bytes: all.budget_bytes,
        periods: core.periods,
        periods_spent: core.periods_spent,
        rt_over: core.rt_over,
        rt_deferred: core.rt_deferred,
        rt_overrun: core.rt_overrun,
        rt_catchup_bytes: core.rt_catchup_bytes,
        rt_excess: core.rt_excess,
        nrt_deferred: core.nrt_deferred,
        ..QdiscStats::default()
    }
}

fn class_stats(options: &TypeOptions, slot: &SlotCounters) -> ClassStats {
    let (rate_bps, ceil_bps) = match *options {
        TypeOptions::Paced {
            rate_bps, ceil_bps, ..
        } => (rate_bps, ceil_bps.unwrap_or(0)),
        _ => (0, 0),
    };
    let reserve_bytes = match *options {
        TypeOptions::Rt { reserve_bytes } | TypeOptions::Nrt { reserve_bytes } => reserve_bytes,
        _ => 0,
    };
    let reservation = slot.reservation.unwrap_or_default();
    ClassStats {
        active: u64::from(slot.packets > 0),
        rate_bps,
        ceil_bps,
        sent_frames: slot.sent_frames,
        sent_wire_bytes: slot.sent_wire_bytes,
        borrowed_frames: slot.borrowed_frames,
        throttled: slot.throttled,
        drop_child: slot.dropped_full,
        drop_long: slot.dropped_long,
        drop_late: slot.dropped_late,
        late_frames: slot.late_frames,
        reserve_bytes,
        over: reservation.over,
        deferred: reservation.deferred,
        overrun: reservation.overrun,
        rt_catchup_bytes: reservation.catchup_bytes,
        excess: reservation.excess,
        ..ClassStats::default()
    }
}
