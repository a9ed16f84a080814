// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles a program of `bpf/` with clang, which no other part of the project needs. Build scripts
//! call it (docs/decisions/dependencies.md, "aya to load BPF, clang to compile it").

mod arena;
mod btf;
mod flow;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use arena::rewrite;

/// Names of compilers; the first that there is counts.
const CLANG: [&str; 2] = ["clang-19", "clang"];
/// Older ones know no `may_goto`, and do not say which members of a structure hold packets (BTF's
/// type tags).
const WITH_ARENAS: u32 = 19;
/// Folder of the programs, relative to a crate of the workspace.
const FOLDER: &str = "../../../bpf";
/// The core, of which programs include files, and what it needs of BPF.
const CORE: &str = "../../../core";

/// Compiles `bpf/NAME.bpf.c` to `OUT_DIR/NAME.bpf.o`, without folders in front. Without clang the file is empty, and a
/// warning says that `left_out` is left out.
pub fn compile(name: &str, left_out: &str) {
    build(name, left_out, 0, |clang, source, object| {
        run(clang, source, &["-c"], object)
    });
}

/// The same for a program whose functions in `.text` use an arena (bpf/arena.h): their assembly is
/// rewritten in between.
pub fn compile_with_arena(name: &str, left_out: &str) {
    build(name, left_out, WITH_ARENAS, |clang, source, object| {
        let assembly = object.with_extension("s");
        run(clang, source, &["-S"], &assembly)?;
        let text = std::fs::read_to_string(&assembly);
        let text = text.map_err(|error| Failure::Other(error.to_string()))?;
        let text = rewrite(&text).map_err(Failure::Other)?;
        let written = std::fs::write(&assembly, text);
        written.map_err(|error| Failure::Other(error.to_string()))?;
        run(clang, &assembly, &["-c"], object)
    });
}

/// Why there is no object.
enum Failure {
    /// There is no such compiler.
    NoClang(String),
    Other(String),
}

fn build(
    name: &str,
    left_out: &str,
    least: u32,
    make: impl FnOnce(&str, &Path, &Path) -> Result<(), Failure>,
) {
    let source = format!("{FOLDER}/{name}.bpf.c");
    let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let file = name.rsplit('/').next().unwrap_or(name);
    let out = folder.join(format!("{file}.bpf.o"));
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-changed={FOLDER}");
    println!("cargo::rerun-if-changed={CORE}");
    let made = compiler(least).and_then(|clang| make(&clang, Path::new(&source), &out));
    match made {
        Ok(()) => {}
        Err(Failure::Other(error)) => println!("cargo::error=cannot compile {source}: {error}"),
        Err(Failure::NoClang(error)) => {
            println!("cargo::warning={left_out} is left out: {error} (make build installs it)");
            // The next build looks again for a clang that is missing now.
            println!("cargo::rerun-if-changed={}", folder.join("clang").display());
            if let Err(error) = std::fs::write(&out, []) {
                println!("cargo::error=cannot write {}: {error}", out.display());
            }
        }
    }
}

/// Returns the compiler to use, of at least this version.
fn compiler(least: u32) -> Result<String, Failure> {
    let names = match env::var("CLANG") {
        Ok(name) => vec![name],
        Err(_) => CLANG.map(ToOwned::to_owned).to_vec(),
    };
    let found = names.iter().find_map(|name| {
        let said = Command::new(name).arg("--version").output().ok()?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        Some((name, version(&said)?))
    });
    match found {
        Some((name, version)) if version >= least => Ok(name.clone()),
        Some((name, version)) => Err(Failure::NoClang(format!(
            "{name} has version {version}, expected {least} or newer"
        ))),
        None => Err(Failure::NoClang(format!("no {}", names.join(" or ")))),
    }
}

/// Returns the version that clang says it has.
fn version(said: &str) -> Option<u32> {
    let (_, rest) = said.split_once("clang version ")?;
    rest.split('.').next()?.parse().ok()
}

fn run(clang: &str, source: &Path, how: &[&str], out: &Path) -> Result<(), Failure> {
    let mut command = Command::new(clang);
    command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g"]);
    command.args(how);
    if source.extension() != Some("s".as_ref()) {
        // The types that the kernel reads would name the folder of the build, so that the same
        // sources gave other bytes elsewhere.
        command.arg("-fdebug-compilation-dir=.");
        for headers in ["include", "deps/bpf"] {
            command.arg(format!("-I{CORE}/{headers}"));
        }
        command.args(["-Wall", "-Wextra", "-Werror"]);
    }
    let status = command.arg("-o").arg(out).arg(source).status();
    match status.map_err(|error| Failure::NoClang(format!("{clang}: {error}")))? {
        status if status.success() => Ok(()),
        status => Err(Failure::Other(format!("{clang}: {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn versions_are_read() {
        for (said, expected) in [
            (
                "Debian clang version 19.1.7 (3~deb12u1)\nTarget: x",
                Some(19),
            ),
            ("clang version 20.0.0git", Some(20)),
            ("gcc 12.2.0", None),
        ] {
            assert_eq!(version(said), expected, "{said}");
        }
    }
}
