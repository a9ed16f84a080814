// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connection was not answered at once.

use units::time::NS_PER_MS;

use super::in_order;
use crate::analysis::{Direction, Stop, StopKind};
use crate::cause::{Cause, Confidence, Side};
use crate::connection::Connection;
use crate::vantage::ms;

/// Nobody repeats a SYN sooner without a reason of its own.
const REPEATED_NS: u64 = 100 * NS_PER_MS;

/// A SYN, or its answer, was sent more than once.
pub(crate) fn setup(connection: &Connection, start_ns: u64) -> Option<Stop> {
    let handshake = &connection.handshake;
    let begun = handshake.syn.or(handshake.syn_ack)?;
    let (syns, answers) = (handshake.syns.count(), handshake.syn_acks.count());
    if syns < 2 && answers < 2 {
        return None;
    }
    let ended = handshake.ack.or(handshake.reset).unwrap_or(connection.last);
    let duration_ns = ended.now.saturating_sub(begun.now);
    if duration_ns < REPEATED_NS {
        return None;
    }
    let explanation = match (answers, handshake.ack) {
        (0, _) if handshake.reset.is_some() => {
            format!("{syns} SYNs, then a reset after {}", ms(duration_ns))
        }
        (0, _) => format!("{syns} SYNs in {}, and no answer", ms(duration_ns)),
        (_, Some(_)) => format!(
            "set up after {}, with {syns} SYNs and {answers} answers to them",
            ms(duration_ns)
        ),
        (_, None) => format!(
            "{syns} SYNs and {answers} answers in {}, and nothing from the client then",
            ms(duration_ns)
        ),
    };
    let mut packets: Vec<u64> = handshake
        .syns
        .iter()
        .chain(handshake.syn_acks.iter())
        .collect();
    packets.push(ended.packet);
    Some(Stop {
        direction: Direction::ToServer,
        start_ns: begun.now.saturating_sub(start_ns),
        duration_ns,
        kind: StopKind::Silence,
        bytes_cost: None,
        cause: Cause::ConnectionSetup,
        root: None,
        side: Side::Unknown,
        confidence: Confidence::High,
        evidence: in_order(packets),
        count: 1,
        explanation,
        advice: Cause::ConnectionSetup.advice().to_owned(),
    })
}
