// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the same core files as the kernel module does.

use std::path::Path;

const CORE: &str = "../../core";
const SOURCES: [&str; 18] = [
    "class", "guard", "heap", "hybrid", "line", "normal", "paced", "period", "pick", "queue",
    "sched", "share", "sort", "spare", "storage", "stream", "tree", "wheel",
];

fn main() {
    let core = Path::new(CORE);
    let mut build = cc::Build::new();
    for name in SOURCES {
        build.file(core.join("src").join(name).with_extension("c"));
    }
    build
        .file("src/shim.c")
        .include(core.join("include"))
        .include(core.join("deps/host"))
        .flag("-std=gnu11")
        .flag("-ffreestanding")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .opt_level(2)
        .compile("pace");
    for watched in ["include", "src", "deps/host"] {
        println!("cargo:rerun-if-changed={}", core.join(watched).display());
    }
    println!("cargo:rerun-if-changed=src/shim.c");
}
