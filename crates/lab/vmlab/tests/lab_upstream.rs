// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first patch series for the kernel's tree: its qdisc, as a module for the newest kernel,
//! passes its selftest in a guest.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use scenario::Kernel;
use vmlab::{Lab, Quiet, ScriptSpec, Sources, run_script};

use crate::common::{LONG, check_tap, console};

/// Makes sources of which the laboratory compiles the series' qdisc where psp is.
fn sources_of_the_series(first: &Path, folder: &Path) -> Sources {
    let root = first.join("../../..");
    for name in ["lab", "tc", "uapi", "core"] {
        symlink(root.join(name), folder.join(name)).unwrap();
    }
    let kernel = folder.join("kernel");
    fs::create_dir(&kernel).unwrap();
    let module = "obj-m := sch_psp.o\nsch_psp-y := sch_pspacer.o\n";
    fs::write(kernel.join("Kbuild"), module).unwrap();
    let made = Command::new("perl")
        .arg(first.join("take.pl"))
        .arg(root.join("core"))
        .stdin(fs::File::open(first.join("sch_pspacer.c.in")).unwrap())
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let qdisc = String::from_utf8(made.stdout).unwrap();
    // What the series adds to a header of the kernel.
    let attributes = fs::read_to_string(first.join("pkt_sched.h.in")).unwrap();
    let behind = "#include <net/sch_generic.h>\n";
    assert!(qdisc.contains(behind));
    let qdisc = qdisc.replace(behind, &format!("{behind}{attributes}"));
    fs::write(kernel.join("sch_pspacer.c"), qdisc).unwrap();
    Sources::at(folder.to_owned()).unwrap()
}

#[test]
fn the_selftest_passes_v7() {
    let first = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging/upstream/first");
    let first = first.canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("q_pspacer.so");
    let compiled = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .arg(&plugin)
        .arg("-I")
        .arg(first.join("../../../tc/compat"))
        .arg("-I")
        .arg(&first)
        .arg(first.join("q_pspacer.c"))
        .status()
        .unwrap();
    assert!(compiled.success());
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let mut lab = Lab::find().unwrap();
    lab.sources = sources_of_the_series(&first, &tree);
    let out = folder.path().join("out");
    let spec = ScriptSpec {
        kernel: Kernel::V7,
        modules: &["sch_psp", "dummy", "pktgen", "sch_tbf", "cls_matchall"],
        files: &[
            (&plugin, "/tests/q_pspacer.so"),
            (&first.join("sch_pspacer.sh"), "/tests/sch_pspacer.sh"),
        ],
        // The guest's shell has a tc and an ip of its own.
        command: r#"export TC_LIB_DIR=/tests
            tc() { /usr/sbin/tc "$@"; }
            ip() { /usr/sbin/ip "$@"; }
            . /tests/sch_pspacer.sh"#,
        seed: 1,
        timeout: LONG,
        out_dir: &out,
    };
    let ran =
        run_script(&lab, &spec, &Quiet).unwrap_or_else(|error| panic!("{error}\n{}", console(&out)));
    check_tap(Kernel::V7, "sch_pspacer.sh", ran.status, &ran.output);
}
