// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `pspacer-cni`, which container runtimes start.

use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut variable = |name: &str| std::env::var_os(name)?.into_string().ok();
    let mut io = cni::Io {
        input: &mut io::stdin().lock(),
        out: &mut io::stdout().lock(),
        log: &mut io::stderr().lock(),
    };
    if cni::run(&args, &mut variable, &mut io) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
