// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the same core files as the kernel module does.

use std::path::Path;

const CORE: &str = "../../../core";

fn main() {
    let core = Path::new(CORE);
    // It includes core/pace.c: tests of the queue reach what is static there.
    cc::Build::new()
        .file("src/shim.c")
        .include(core)
        .include(core.join("include"))
        .include(core.join("deps/host"))
        .flag("-std=gnu11")
        .flag("-ffreestanding")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .opt_level(2)
        .compile("pace");
    for watched in ["pace.c", "include", "src", "deps"] {
        println!("cargo:rerun-if-changed={}", core.join(watched).display());
    }
    println!("cargo:rerun-if-changed=src/shim.c");
}
