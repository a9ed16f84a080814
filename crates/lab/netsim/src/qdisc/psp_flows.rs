// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flows of psp's dynamic classes (paper 003, docs/decisions/qdisc.md, "The
//! rate of a flow in a dynamic class"). Each flow has a class of its own in the
//! core, at a rate that its packets carry.

use std::collections::HashMap;

use super::fifo::Limit;
use super::psp_core::{Core, PspClass, PspType};
use crate::packet::Packet;

/// A new rate is passed to the core when it has changed by more than one part in
/// `RATE_STEP`.
const RATE_STEP: u64 = 64;
/// Limit of the packets of one flow; its socket limits itself to fewer.
const FLOW_PACKETS: u32 = 10_000;

#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Index of its queue.
    queue: usize,
    rate_bps: u64,
}

/// Flows by class, flow number and direction. None is ever removed: a network has a
/// fixed number of them.
#[derive(Debug, Default)]
pub(super) struct Flows(HashMap<(u32, u32, bool), Flow>);

impl Flows {
    /// Returns the index of the queue of the packet's flow; `None` if it has none:
    /// its class is not dynamic, its socket gives no rate, or it carries no data.
    pub(super) fn queue(
        &mut self,
        class: &PspClass,
        packet: &Packet,
        core: &mut Core,
    ) -> Option<usize> {
        let rate_bps = rate(&class.kind, packet)?;
        let key = (class.minor, packet.flow, packet.reverse);
        if let Some(flow) = self.0.get_mut(&key) {
            let moved = flow.rate_bps.abs_diff(rate_bps);
            // If the core refuses the rate, the old one stays.
            let is_new = moved > flow.rate_bps / RATE_STEP;
            if is_new && core.set_rate(flow.queue, rate_bps, packet.queued).is_ok() {
                flow.rate_bps = rate_bps;
            }
            return Some(flow.queue);
        }
        let kind = pace::ClassConfig::Paced { rate_bps };
        let limit = Limit::Packets(FLOW_PACKETS);
        let queue = core.add(&kind, limit, class.deadline).ok()?;
        self.0.insert(key, Flow { queue, rate_bps });
        Some(queue)
    }
}

/// Returns the rate of a packet's flow: the formula of paper 003, at least the
/// floor, but never above what the socket allows or above the ceil.
fn rate(kind: &PspType, packet: &Packet) -> Option<u64> {
    let PspType::Dynamic {
        rate_bps,
        floor_bps,
        ceil_bps,
    } = *kind
    else {
        return None;
    };
    let allowed = match packet.pacing_bps {
        0 => ceil_bps,
        pacing_bps => pacing_bps.min(ceil_bps),
    };
    match (packet.window_bps, packet.pacing_bps) {
        (0, 0) => None,
        (0, _) => Some(rate_bps.min(allowed)),
        (window_bps, _) => Some(window_bps.max(floor_bps).min(allowed)),
    }
}
