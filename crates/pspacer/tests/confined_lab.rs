// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of the command that have AppArmor profiles, each at its work in enforce mode and
//! refused what is outside of it, in a guest whose kernel has AppArmor.

use crate::common;

use std::process::Command;

use crate::common::{Folder, guest};
use scenario::Kernel;
use testkit::has;
use vmlab::{Cache, Quiet};

const MODULES: &[&str] = &["sch_psp", "dummy", "veth", "cls_flower", "cls_bpf"];

/// What the guest needs of AppArmor's package.
const TAKEN: &[&str] = &[
    "etc/apparmor",
    "etc/apparmor.d",
    "sbin/apparmor_parser",
    "usr/bin/aa-exec",
    "usr/share/apparmor-features",
];

fn each_part_works_and_is_confined(kernel: Kernel) {
    let folder = Folder::new("confined");
    let archive = folder.0.join("apparmor.tar");
    let package = vmlab::apparmor(&Cache::default_folder().unwrap(), &Quiet).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(&archive).arg("-C").arg(package);
    assert!(tar.args(TAKEN).status().unwrap().success());
    // The command has the name of the file of profiles.
    let profiles = folder.0.join("profiles");
    std::fs::copy(common::root().join("packaging/apparmor/pspacer"), &profiles).unwrap();
    let files = [
        "crates/pspacer/tests/confined/confined.sh",
        "kernel/tests/lib.sh",
        "crates/pspacer/tests/common/installed.sh",
        profiles.to_str().unwrap(),
        archive.to_str().unwrap(),
    ];
    let output = guest::output(kernel, "confined", MODULES, &files);
    has(&output, ["\n1.."]);
}

#[test]
fn each_part_works_and_is_confined_on_6_1() {
    each_part_works_and_is_confined(Kernel::V6_1);
}

#[test]
fn each_part_works_and_is_confined_on_6_12() {
    each_part_works_and_is_confined(Kernel::V6_12);
}
