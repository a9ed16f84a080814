// SPDX-License-Identifier: MIT OR Apache-2.0
//! Says, once each, what a scenario asks for and its figures do not tell.

use scenario::Scenario;
use scenario::topology::behind_measured_cable;
use vmlab::Event;

use crate::progress::Progress;

pub fn say(progress: &dyn Progress, remarks: &[String]) {
    for remark in remarks {
        let text = &format!("pspacer: {remark}");
        progress.event(&Event::Note { text });
    }
}

/// Says what the measurements of a scenario leave out, whichever engine runs it.
pub fn say_unmeasured(progress: &dyn Progress, scenario: &Scenario) {
    let mut remarks: Vec<_> = scenario
        .cells
        .iter()
        .flat_map(behind_measured_cable)
        .collect();
    remarks.sort();
    remarks.dedup();
    say(progress, &remarks);
}
