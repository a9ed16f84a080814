// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stands in for crates/base/pace/build.rs in the copy that is mutated: tests load
//! the core when they start, so a mutant is compiled but nothing linked anew.

fn main() {
    let core = std::env::var("MUTATION_CORE").unwrap_or_default();
    println!("cargo:rustc-link-search=native={core}");
    println!("cargo:rustc-link-lib=dylib=pace_core");
    println!("cargo:rerun-if-env-changed=MUTATION_CORE");
}
