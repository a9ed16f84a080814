// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles a program of `bpf/` with clang, which no other part of the project needs. Build scripts
//! call it (docs/decisions/dependencies.md, "aya to load BPF, clang to compile it").

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Folder of the programs, relative to a crate of the workspace.
const FOLDER: &str = "../../bpf";
/// The core, of which programs include files, and what it needs of BPF.
const CORE: &str = "../../core";

/// Compiles `bpf/NAME.bpf.c` to `OUT_DIR/NAME.bpf.o`. Without clang the file is empty, and a
/// warning says that `left_out` is left out.
pub fn compile(name: &str, left_out: &str) {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let source = format!("{FOLDER}/{name}.bpf.c");
    let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let out = folder.join(format!("{name}.bpf.o"));
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-changed={CORE}");
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-c"]);
    // The types that the kernel reads would name the folder of the build, so that the same
    // sources gave other bytes elsewhere.
    command.arg("-fdebug-compilation-dir=.");
    for headers in ["include", "deps/bpf"] {
        command.arg(format!("-I{CORE}/{headers}"));
    }
    command
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&out);
    match command.arg(&source).status() {
        Ok(status) if status.success() => {}
        Ok(status) => println!("cargo::error={clang} could not compile {source}: {status}"),
        Err(error) => {
            println!(
                "cargo::warning={left_out} is left out: {clang}: {error} (make build installs it)"
            );
            // The next build looks again for a clang that is missing now.
            println!("cargo::rerun-if-changed={}", folder.join("clang").display());
            if let Err(error) = std::fs::write(&out, []) {
                println!("cargo::error=cannot write {}: {error}", out.display());
            }
        }
    }
}
