// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names the shared library by the version of what a program in C relies on, so that a program
//! never runs with a library of another one. The number grows when `psp_reserve.h` changes in a
//! way that a compiled program would notice.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libpsp_reserve.so.0");
}
