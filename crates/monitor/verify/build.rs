// SPDX-License-Identifier: MIT OR Apache-2.0
//! The BPF program.

fn main() {
    bpf_build::compile("tap", "pspacer verify");
}
