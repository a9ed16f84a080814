// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core needs nothing but its contract file: no library, no floats, no
//! 64-bit division helper, no symbols that others might have.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn core() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../core")
}

/// What a compiler may call for on its own.
const MEMORY: [&str; 3] = ["memcpy", "memmove", "memset"];

fn cc(args: &[&str]) -> Output {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    Command::new(compiler).args(args).output().unwrap()
}

/// Compiles the core; `Err` is what the compiler said.
fn object(name: &str, deps: &Path, extra: &[&str]) -> Result<PathBuf, String> {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.o"));
    let core = core();
    let include = format!("-I{}", core.join("include").display());
    let deps = format!("-I{}", deps.display());
    let unit = core.join("pace.c");
    let mut args = vec![
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O2",
        "-ffreestanding",
    ];
    args.extend([
        "-nostdlib",
        "-r",
        "-fno-pic",
        "-no-pie",
        &include,
        &deps,
        "-o",
    ]);
    args.push(out.to_str().unwrap());
    args.extend(extra);
    args.push(unit.to_str().unwrap());
    let output = cc(&args);
    if output.status.success() {
        Ok(out)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Symbols of an object that others can see: undefined, or defined for them.
fn symbols(object: &Path, which: &str) -> BTreeSet<String> {
    let nm = Command::new("nm")
        .args([which, "--extern-only", "--format=posix"])
        .arg(object)
        .output()
        .unwrap();
    assert!(
        nm.status.success(),
        "{}",
        String::from_utf8_lossy(&nm.stderr)
    );
    let text = String::from_utf8(nm.stdout).unwrap();
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// No floating-point or vector register may be needed, on the processors whose
/// compilers can promise that.
fn integers_only() -> &'static [&'static str] {
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        &["-mgeneral-regs-only"]
    } else {
        &[]
    }
}

#[test]
fn a_host_gives_memory_functions_and_no_more() {
    let object = object("host", &core().join("deps/host"), integers_only()).unwrap();
    let mut undefined = symbols(&object, "--undefined-only");
    undefined.retain(|name| !MEMORY.contains(&name.as_str()));
    assert_eq!(undefined, BTreeSet::new());
}

fn assert_only_the_contract(object: &Path) {
    let mut undefined = symbols(object, "--undefined-only");
    undefined.retain(|name| !MEMORY.contains(&name.as_str()));
    let contract = [
        "pace_atomic_add",
        "pace_atomic_cmpxchg",
        "pace_atomic_read",
        "pace_atomic_xchg",
        "pace_div_rem",
        "pace_mul_div",
    ];
    let contract = contract.map(str::to_owned);
    assert_eq!(undefined, BTreeSet::from(contract));
}

#[test]
fn all_division_goes_through_the_contract() {
    let open = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/freestanding");
    assert_only_the_contract(&object("open", &open, integers_only()).unwrap());
}

#[test]
fn all_division_goes_through_the_contract_on_32_bits() {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: -m32 is an option of x86-64 compilers");
        return;
    }
    let probe = Path::new(env!("CARGO_TARGET_TMPDIR")).join("probe.c");
    std::fs::write(&probe, "#include <stdint.h>\nint nothing;\n").unwrap();
    let [source, out] = [probe.clone(), probe.with_extension("o")];
    let [source, out] = [source.to_str().unwrap(), out.to_str().unwrap()];
    let able = cc(&[
        "-m32",
        "-ffreestanding",
        "-r",
        "-nostdlib",
        source,
        "-o",
        out,
    ]);
    if !able.status.success() {
        let why = String::from_utf8_lossy(&able.stderr).into_owned();
        eprintln!("skipped: no 32-bit code from this compiler: {why}");
        return;
    }
    let open = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/freestanding");
    assert_only_the_contract(&object("open32", &open, &["-m32", "-mgeneral-regs-only"]).unwrap());
}

/// The functions that the headers in include/pace declare.
fn declared() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for header in ["pace.h", "pace_sched.h", "pace_group.h"] {
        let text = std::fs::read_to_string(core().join("include/pace").join(header)).unwrap();
        let lines = text.lines().filter(|l| !l.starts_with('#'));
        let code = lines.collect::<Vec<_>>().join("\n");
        for statement in code.split(';') {
            let line = statement.rsplit("\n\n").next().unwrap_or("");
            let line = line.rsplit("*/").next().unwrap_or("");
            if let Some(before) = line.trim().split_once('(').map(|(before, _)| before) {
                let name = before.rsplit([' ', '*', '\n', '\t']).next().unwrap_or("");
                if name.starts_with("pace_") && !line.contains(['{', '}']) {
                    names.insert(name.to_owned());
                }
            }
        }
    }
    names
}

#[test]
fn everything_but_the_api_is_static() {
    let object = object("names", &core().join("deps/host"), &[]).unwrap();
    assert_eq!(symbols(&object, "--defined-only"), declared());
}

/// Calls go down: pace.c includes the files from the lowest to the highest, and
/// a function that no file declares before it is defined cannot be called from
/// below.
#[test]
fn no_file_declares_a_function_before_it_is_defined() {
    let mut bad = vec![];
    for entry in std::fs::read_dir(core().join("src")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        // A definition begins in the first column and ends before its brace.
        for block in text.split("\n\n") {
            let code: Vec<&str> = block
                .lines()
                .filter(|l| !l.starts_with([' ', '/', '#', '}', '{']))
                .collect();
            let first = code.first().copied().unwrap_or("");
            let declares = !first.starts_with(['\t', '_']) && first.contains('(');
            if declares && code.iter().any(|l| l.ends_with(");")) && !block.contains("\n{") {
                bad.push(format!("{}: {first}", path.display()));
            }
        }
    }
    assert_eq!(bad, Vec::<String>::new());
}

/// The harnesses of core/proofs include files of the core by name: one that is missing there
/// would be seen only when CBMC runs. A compiler sees it, too.
#[test]
fn what_proofs_call_is_there() {
    let proofs = core().join("proofs");
    let dirs = ["", "include", "deps/host", "src", "proofs"];
    let dirs = dirs.map(|d| format!("-I{}", core().join(d).display()));
    let mut bad = String::new();
    let mut harnesses = 0;
    for entry in std::fs::read_dir(proofs).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "c") {
            continue;
        }
        harnesses += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let each = text.lines().find_map(|l| l.strip_prefix(" * @each "));
        // The first value of A=0..3.
        let words = each.unwrap_or("").split_whitespace();
        let defines: Vec<_> = words
            .map(|w| format!("-D{}", w.split("..").next().unwrap()))
            .collect();
        let mut args = vec![
            "-fsyntax-only",
            "-Werror=implicit-function-declaration",
            "-D__CPROVER_assert(a,b)=(void)(a)",
            "-D__CPROVER_assume(a)=(void)(a)",
        ];
        args.extend(dirs.iter().chain(&defines).map(String::as_str));
        args.push(path.to_str().unwrap());
        let output = cc(&args);
        if !output.status.success() {
            bad += &String::from_utf8_lossy(&output.stderr);
        }
    }
    assert!(bad.is_empty(), "{bad}");
    assert!(harnesses >= 8, "{harnesses} harnesses");
}

/// `make mutate` and break.sh take long: what no longer fits the core is seen here.
#[test]
fn each_mutant_and_break_fits_the_core() {
    let apply = core().join("../tests/mutation/apply.pl");
    let perl = |list: &Path, args: &[&str]| {
        let mut command = Command::new("perl");
        command.arg(&apply).arg(list).args(args).current_dir(core());
        command.output().unwrap()
    };
    let mut count = 0;
    for list in ["proofs/breaks.txt", "../tests/mutation/mutants.txt"] {
        let list = core().join(list);
        let fits = perl(&list, &["fits", "src"]);
        let said = String::from_utf8_lossy(&fits.stderr);
        assert!(fits.status.success() && said.is_empty(), "{said}");
        let names = perl(&list, &["names"]).stdout;
        count += String::from_utf8(names).unwrap().lines().count();
    }
    assert!(count > 200, "{count} mutants and breaks");
}
