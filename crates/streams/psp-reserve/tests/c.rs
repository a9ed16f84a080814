// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program in C, compiled here, reserves at a manager: with the shared library and the static one.

#![allow(clippy::unwrap_used, reason = "tests fail that way")]

#[path = "../../agent/tests/service.rs"]
mod service;

use std::path::{Path, PathBuf};
use std::process::Command;

use manager::access::Access;
use service::manager;

/// What the static library needs of the system.
const SYSTEM: [&str; 5] = ["-lpthread", "-ldl", "-lm", "-lgcc_s", "-lc"];

/// Compiles the program with these words after its source.
fn compile(program: &Path, words: &[String]) {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]);
    compiler
        .arg(program)
        .arg(own.join("tests/use.c"))
        .args(words);
    assert!(compiler.status().unwrap().success(), "{words:?}");
}

/// Runs the program with a manager; the loader looks for libraries in this folder.
fn reserves(program: &Path, loaded: &Path) {
    let mut command = Command::new(program);
    command
        .arg(manager(Access::Open))
        .env("LD_LIBRARY_PATH", loaded);
    let out = command.output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{}: {said}", program.display());
}

/// Returns the folder in which cargo puts the libraries: beside the test.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

/// Runs a script of the repository.
fn script(name: &str, words: &[&str], variables: &[(&str, &Path)]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut command = Command::new(root.join(name));
    command.args(words).envs(variables.iter().copied());
    let out = command.output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{name}: {said}");
}

/// Returns what pkg-config says of the library; what it has to say, if this machine has none.
fn flags(folder: &Path, include: &Path, lib: &Path, sysroot: bool) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(["--cflags", "--libs", "psp_reserve"]);
    command.env("PKG_CONFIG_LIBDIR", lib.join("pkgconfig"));
    command.env_remove("PKG_CONFIG_PATH");
    if sysroot {
        command.env("PKG_CONFIG_SYSROOT_DIR", folder);
    }
    let Ok(out) = command.output() else {
        let words = [
            format!("-I{}", include.display()),
            format!("-L{}", lib.display()),
            "-lpsp_reserve".to_owned(),
        ];
        return words.into();
    };
    assert!(out.status.success(), "{out:?}");
    let said = String::from_utf8(out.stdout).unwrap();
    let mut words: Vec<String> = said.split_whitespace().map(str::to_owned).collect();
    assert!(words.contains(&"-lpsp_reserve".to_owned()), "{said}");
    if sysroot {
        // The system's own folder of headers is left out there.
        words.push(format!("-I{}", include.display()));
    }
    words
}

#[test]
fn a_program_in_c_reserves() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    // The loader finds the shared library by the version of its interface alone.
    let loaded = folder.path().join("loaded");
    std::fs::create_dir(&loaded).unwrap();
    let shared = libraries().join("libpsp_reserve.so");
    std::os::unix::fs::symlink(shared, loaded.join("libpsp_reserve.so.0")).unwrap();
    for kind in ["so", "a"] {
        let program = folder.path().join(kind);
        let mut words = vec![
            format!("-I{}", own.join("include").display()),
            // By name, not by path: a path would be what the loader looks for.
            format!("-L{}", libraries().display()),
            format!("-l:libpsp_reserve.{kind}"),
        ];
        words.extend(SYSTEM.map(str::to_owned));
        compile(&program, &words);
        reserves(&program, &loaded);
    }
}

/// As docs/use/reservations.md says it: installed from the sources.
#[test]
fn an_installed_library_links_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("prefix");
    let built = libraries();
    let variables: [(&str, &Path); 2] = [("PREFIX", &prefix), ("RESERVE", &built)];
    script("tools/install.sh", &["install-reserve"], &variables);
    let (include, lib) = (prefix.join("include"), prefix.join("lib"));
    let program = folder.path().join("program");
    compile(&program, &flags(folder.path(), &include, &lib, false));
    reserves(&program, &lib);
    let mut words = vec![format!("-I{}", include.display())];
    words.push(format!("-L{}", lib.display()));
    words.push("-l:libpsp_reserve.a".to_owned());
    words.extend(SYSTEM.map(str::to_owned));
    compile(&program, &words);
    reserves(&program, folder.path());
    script("tools/install.sh", &["uninstall-reserve"], &variables);
    for left in [lib, include] {
        let files = std::fs::read_dir(left).unwrap();
        let files = files.filter(|of| !of.as_ref().unwrap().path().is_dir());
        assert_eq!(files.count(), 0);
    }
}

/// The files of the packages, in a folder that stands for /.
#[test]
fn the_packages_link_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let [packaged, root] = ["packaged", "root"].map(|name| folder.path().join(name));
    std::fs::create_dir(&packaged).unwrap();
    let shared = libraries().join("libpsp_reserve.so");
    std::fs::copy(shared, packaged.join("libpsp_reserve.so.0")).unwrap();
    std::fs::write(packaged.join("third-party"), "none").unwrap();
    let lib = "/usr/lib/x86_64-linux-gnu";
    for part in ["reserve", "reserve-dev"] {
        let words = [part, root.to_str().unwrap(), lib];
        script("packaging/install.sh", &words, &[("PACKAGED", &packaged)]);
    }
    let (include, lib) = (root.join("usr/include"), root.join(&lib[1..]));
    let program = folder.path().join("program");
    compile(&program, &flags(&root, &include, &lib, true));
    reserves(&program, &lib);
}
