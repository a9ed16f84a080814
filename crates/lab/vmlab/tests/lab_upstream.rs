// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first patch series for the kernel's tree: its qdisc, as a module for the newest kernel,
//! passes its selftest and its conformance cases in a guest.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use scenario::Kernel;
use vmlab::{Lab, Quiet, ScriptSpec, Sources, load_cases, run_script, run_tdc};

use crate::common::{LONG, check_tap, console};

fn first() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging/upstream/first");
    folder.canonicalize().unwrap()
}

/// Makes the C file of the series. Its header has what the series adds to one of the kernel's.
fn qdisc(root: &Path) -> String {
    let made = Command::new("perl")
        .arg(first().join("take.pl"))
        .arg(root.join("core"))
        .stdin(fs::File::open(first().join("sch_pspacer.c.in")).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}");
    let attributes = fs::read_to_string(first().join("pkt_sched_pspacer.h")).unwrap();
    let behind = "#include <net/sch_generic.h>\n";
    let qdisc = String::from_utf8(made.stdout).unwrap();
    assert!(qdisc.contains(behind));
    qdisc.replace(behind, &format!("{behind}{attributes}"))
}

/// Makes sources of which the laboratory compiles the series' qdisc, and its part of tc, where
/// psp and its plugin are.
fn sources_of_the_series(folder: &Path) -> Sources {
    let root = first().join("../../..");
    for name in ["lab", "uapi", "core"] {
        symlink(root.join(name), folder.join(name)).unwrap();
    }
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let module = "obj-m := sch_psp.o\nsch_psp-y := sch_pspacer.o\n";
    write("kernel/Kbuild", module);
    write("kernel/sch_pspacer.c", &qdisc(&root));
    let plugin =
        "q_psp.so: q_pspacer.c\n\t$(CC) $(CFLAGS) -shared -fPIC -Icompat -I. -o $@ q_pspacer.c\n";
    write("tc/Makefile", plugin);
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    for name in ["q_pspacer.c", "pkt_sched_pspacer.h"] {
        write(&format!("tc/{name}"), &read(first().join(name)));
    }
    let compat = "tc/compat/iproute2.h";
    write(compat, &read(root.join(compat)));
    for name in ["wire.sh", "flow.sh", "modprobe.sh"] {
        let name = format!("tests/tdc/{name}");
        write(&name, &read(root.join(&name)));
    }
    let guest = read(root.join("tests/tdc/guest.sh"));
    write("tests/tdc/guest.sh", &format!("{PLUGIN}{guest}"));
    Sources::at(folder.to_owned()).unwrap()
}

/// The guest has the plugin by another name.
const PLUGIN: &str = "
for folder in $(find / -xdev -name q_psp.so); do ln -sf q_psp.so ${folder%/*}/q_pspacer.so; done
";

#[test]
fn the_selftest_passes() {
    let folder = tempfile::tempdir().unwrap();
    let mut lab = Lab::find().unwrap();
    lab.sources = sources_of_the_series(folder.path());
    let out = folder.path().join("out");
    // The guest's shell has a tc and an ip of its own.
    let command = format!(
        r#"{PLUGIN}
            tc() {{ /usr/sbin/tc "$@"; }}
            ip() {{ /usr/sbin/ip "$@"; }}
            . /tests/sch_pspacer.sh"#
    );
    let spec = ScriptSpec {
        kernel: Kernel::V7,
        modules: &["sch_psp", "dummy", "pktgen", "sch_tbf", "cls_matchall"],
        files: &[(&first().join("sch_pspacer.sh"), "/tests/sch_pspacer.sh")],
        command: &command,
        seed: 1,
        timeout: LONG,
        out_dir: &out,
    };
    let ran = run_script(&lab, &spec, &Quiet)
        .unwrap_or_else(|error| panic!("{error}\n{}", console(&out)));
    check_tap(Kernel::V7, "sch_pspacer.sh", ran.status, &ran.output);
}

#[test]
fn the_cases_of_tdc_pass() {
    let folder = tempfile::tempdir().unwrap();
    let mut lab = Lab::find().unwrap();
    lab.sources = sources_of_the_series(folder.path());
    let cases = load_cases(&first()).unwrap();
    assert!(cases.len() >= 15, "only {} cases", cases.len());
    let out = folder.path().join("out");
    let ran = run_tdc(&lab, Kernel::V7, &cases, LONG, &out, &Quiet)
        .unwrap_or_else(|error| panic!("{error}\n{}", console(&out)));
    assert!(ran.is_ok(), "{}", ran.tap());
}
