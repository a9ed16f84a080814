// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `tc qdisc add ... cqf`, a qdisc that only the simulator has.

use units::clock::Span;

use super::class::Port;
use super::refusal::Refusal;
use super::tc_tokens::TcTokens;
use crate::filter::Filter;
use crate::qdisc::{Cqf, CqfConfig};

/// The configuration of a cqf qdisc, from the lines of its device.
#[derive(Debug)]
pub(super) struct CqfQueue {
    config: CqfConfig,
    pub filters: Vec<(u32, Filter)>,
}

impl CqfQueue {
    /// Reads the words after `cqf`.
    pub fn read(tokens: &mut TcTokens<'_>, handle: u32, port: Port) -> Result<Self, Refusal> {
        let (mut cycle, mut budget_bytes) = (Span::ZERO, 0);
        while let Some(word) = tokens.next() {
            match word {
                "cycle" => cycle = tokens.time("cycle")?,
                "budget" => budget_bytes = tokens.size("budget")?,
                other => return Err(tokens.unknown("cqf", other, "cycle and budget")),
            }
        }
        let holds_bytes = u128::from(cycle.as_ns()) * u128::from(port.line_bps) / 8_000_000_000;
        if cycle == Span::ZERO || budget_bytes == 0 || u128::from(budget_bytes) > holds_bytes {
            return Err(tokens.refuse(format!(
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

    /// Returns the major number of its class.
    pub fn handle(&self) -> u32 {
        self.config.major
    }

    /// Makes the qdisc, with all its filters.
    pub fn qdisc(self) -> Cqf {
        Cqf::new(CqfConfig {
            filters: super::filters::without_preference(self.filters),
            ..self.config
        })
    }
}
