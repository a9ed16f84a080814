// SPDX-License-Identifier: MIT OR Apache-2.0
//! The BPF programs.

fn main() {
    bpf_build::compile("edt", "backend edt");
    bpf_build::compile("classify", "one classifier for all backends");
    bpf_build::compile_with_arena("qdisc", "backend bpf");
    bpf_build::compile_with_arena("tests/port", "the test of backend bpf");
}
