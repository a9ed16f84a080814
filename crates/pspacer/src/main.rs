// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `pspacer` command.

fn main() -> std::process::ExitCode {
    pspacer::main()
}
