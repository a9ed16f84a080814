// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles what C under test calls at each of its branches, and puts it in the
//! place of libFuzzer's own, which only says that it is no longer supported.

fn main() {
    for object in cc::Build::new().file("trace.c").compile_intermediates() {
        println!("cargo:rustc-link-arg-bins={}", object.display());
    }
    println!("cargo:rustc-link-arg-bins=-Wl,--wrap=__sanitizer_cov_trace_pc");
    println!("cargo:rerun-if-changed=trace.c");
}
