// SPDX-License-Identifier: MIT OR Apache-2.0
//! clang compiles the whole core for BPF: no function returns a structure, takes more than five
//! arguments, needs more than 512 bytes of stack, or calls a library.

use std::process::Command;

#[test]
fn the_core_compiles_for_bpf() {
    let root = testkit::root();
    let object = testkit::output_folder().join("core.bpf.o");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang-19".to_owned());
    let mut compile = Command::new(clang);
    compile.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g"]);
    compile.args(["-Wall", "-Wextra", "-Werror"]);
    for headers in ["core/include", "core/deps/bpf"] {
        compile.arg("-I").arg(root.join(headers));
    }
    compile.arg("-c").arg(root.join("bpf/tests/core.bpf.c"));
    let output = compile.arg("-o").arg(&object).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
