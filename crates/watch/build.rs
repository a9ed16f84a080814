// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles bpf/watch.bpf.c with clang, which no other part of the project
//! needs. Where there is none the rest is still built, and watching says that
//! it was left out.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const FOLDER: &str = "../../bpf";

fn main() {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("watch.bpf.o");
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-changed={FOLDER}");
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-c"]);
    command
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&out);
    match command.arg(format!("{FOLDER}/watch.bpf.c")).status() {
        Ok(status) if status.success() => {}
        Ok(status) => {
            println!("cargo::error={clang} could not compile {FOLDER}/watch.bpf.c: {status}");
        }
        Err(error) => {
            println!(
                "cargo::warning=pspacer watch is left out: {clang}: {error} (make build installs it)"
            );
            // What is not there is looked for at the next build.
            println!(
                "cargo::rerun-if-changed={}",
                out.with_file_name("clang").display()
            );
            if let Err(error) = std::fs::write(&out, []) {
                println!("cargo::error=cannot write {}: {error}", out.display());
            }
        }
    }
}
