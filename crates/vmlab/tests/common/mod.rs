// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests that boot guests share.

#![allow(dead_code, reason = "not every test uses everything")]

use std::path::Path;
use std::time::Duration;

use scenario::{Kernel, Options, Scenario, parse};
use vmlab::{Error, Lab, Quiet, RunOutput, RunSpec};

/// Two hosts, one cable, one datagram flow for 20 ms; `more` begins with
/// further keys of the cable.
pub fn scenario(more: &str) -> Scenario {
    let text = format!(
        r#"
name = "test"
title = "A test"
duration = "20ms"
settle = "5ms"
memory = "512mb"
[[host]]
name = "tx"
[[host]]
name = "rx"
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "100mbit"
{more}
[[flow]]
name = "bulk"
type = "udp"
from = "tx"
to = "rx"
"#
    );
    parse("test.toml", &text, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a scenario on 6.1.
pub fn run(scenario: &Scenario, out_dir: &Path, timeout: Duration) -> Result<RunOutput, Error> {
    run_on(Kernel::V6_1, scenario, out_dir, timeout)
}

/// Runs a scenario on a kernel.
pub fn run_on(
    kernel: Kernel,
    scenario: &Scenario,
    out_dir: &Path,
    timeout: Duration,
) -> Result<RunOutput, Error> {
    let spec = RunSpec {
        cells: &scenario.cells,
        per_boot: scenario.per_boot,
        kernel,
        seed: scenario.seed,
        out_dir,
        jobs: None,
        timeout: Some(timeout),
    };
    vmlab::run(&Lab::find()?, &spec, &Quiet)
}

/// Long enough for any guest of these tests on a busy machine.
pub const LONG: Duration = Duration::from_secs(300);
