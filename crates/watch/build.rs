// SPDX-License-Identifier: MIT OR Apache-2.0
//! The BPF program.

fn main() {
    bpfc::compile("watch", "pspacer watch");
}
