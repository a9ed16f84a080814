// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads psp's periods from the options of `tc qdisc`. They are aligned to the
//! simulator's time, which is 0 at the start.

use units::clock::Span;
use units::itm;

use super::tc_tokens::Budget;

/// The options of the qdisc that concern periods.
pub(super) struct Periods {
    pub length: Span,
    pub budget: Budget,
    pub align: Option<Span>,
}

impl Default for Periods {
    /// The defaults of psp (docs/decisions/core.md, "Periods and their budget").
    fn default() -> Self {
        Periods {
            length: Span::from_ns(itm::PERIOD_NS),
            budget: Budget::Percent(itm::BUDGET_PCT),
            align: None,
        }
    }
}

impl Periods {
    /// Returns the core's configuration of these periods on a line of this rate.
    pub fn of(&self, line_rate_bps: u64) -> pace::Period {
        let length_ns = self.length.as_ns();
        let percent = match self.budget {
            Budget::Percent(percent) => percent,
            Budget::Bytes(_) => 0,
        };
        let mut period = pace::Period::percent(line_rate_bps, length_ns, percent);
        if let Budget::Bytes(bytes) = self.budget {
            period.budget_bytes = bytes;
        }
        period.align_ns = self.align.map(Span::as_ns);
        period
    }
}
