// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tc qdisc add ... cqf`, the simulator's own.

use units::clock::Span;

use super::Refusal;
use super::class::Port;
use super::words::Words;
use crate::filter::Filter;
use crate::qdisc::{Cqf, CqfConfig};

/// What the lines of a device say.
#[derive(Debug)]
pub(super) struct CqfQueue {
    config: CqfConfig,
    pub filters: Vec<(u32, Filter)>,
}

impl CqfQueue {
    /// Reads the words after `cqf`.
    pub fn read(words: &mut Words<'_>, handle: u32, port: Port) -> Result<Self, Refusal> {
        let (mut cycle, mut budget_bytes) = (Span::ZERO, 0);
        while let Some(word) = words.next() {
            match word {
                "cycle" => cycle = words.time("cycle")?,
                "budget" => budget_bytes = words.size("budget")?,
                other => return Err(words.unknown("cqf", other, "cycle and budget")),
            }
        }
        let holds_bytes = u128::from(cycle.as_ns()) * u128::from(port.line_bps) / 8_000_000_000;
        if cycle == Span::ZERO || budget_bytes == 0 || u128::from(budget_bytes) > holds_bytes {
            return Err(words.refuse(format!(
                "tc: cqf: budget is {budget_bytes} bytes, expected 1 to {holds_bytes}, what the \
                 line sends in a cycle of {} ns",
                cycle.as_ns()
            )));
        }
        let config = CqfConfig {
            cycle,
            budget_bytes,
            line_bps: port.line_bps,
            major: handle,
            filters: Vec::new(),
            others_packets: port.packets,
        };
        Ok(Self {
            config,
            filters: Vec::new(),
        })
    }

    /// Major number of its class.
    pub fn handle(&self) -> u32 {
        self.config.major
    }

    /// The queue, with all its filters.
    pub fn qdisc(self) -> Cqf {
        Cqf::new(CqfConfig {
            filters: super::queues::plain(self.filters),
            ..self.config
        })
    }
}
