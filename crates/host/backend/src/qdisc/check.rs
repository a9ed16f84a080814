// SPDX-License-Identifier: MIT OR Apache-2.0
//! What would be refused of a psp of BPF, before there is a port for it.

use host_config::{Facts, Psp};
use pace::Period;
use tcpsp::Budget;

use super::settings::settings;
use super::{Error as QdiscError, ports};
use crate::error::Error;

/// Checks a psp.
///
/// # Errors
/// What the core refuses, a budget that the line does not carry, or a device of a filter that is
/// not there.
pub(crate) fn check(psp: &Psp, facts: &Facts) -> Result<(), Error> {
    let wanted = settings(psp, facts, &[], 0);
    if let Budget::Bytes(bytes) = psp.options.budget {
        let line_rate_bps = wanted.config.line_rate_bps;
        let most = Period::percent(line_rate_bps, psp.options.period_ns, 100).budget_bytes;
        if bytes > most {
            return Err(Error::Qdisc(QdiscError::Refused {
                part: "configuration".to_owned(),
                detail: format!("budget {bytes}: expected at most {most} (line x period)"),
            }));
        }
    }
    Ok(ports::check(&wanted.config, &wanted.classes)?)
}
