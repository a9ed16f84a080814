// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's systemd in a guest: `pspacer@.service` paces a device at boot, before the network is
//! online, and again when the device comes back; `pspacer-manager.service` grants a
//! reservation, and `pspacer-agent.service` puts it into force. Each has the rights of its unit alone.
//! Without the module the package's unit paces by the kernel's BPF, and a service by its unit.

use std::process::Command;

use crate::common::{Folder, guest};
use scenario::Kernel;
use testkit::has;
use vmlab::{Cache, Quiet};

/// Pages, hardware's names and other languages, which a guest does not need.
const LEFT_OUT: &[&str] = &[
    "./lib/udev/hwdb.d",
    "./usr/lib/udev/hwdb.d",
    "./usr/share/doc",
    "./usr/share/locale",
    "./usr/share/man",
];

/// Boots systemd with the units, and these files beside those that each boot has.
fn boot(kernel: Kernel, modules: &[&str], files: &[&str]) {
    let folder = Folder::new("systemd");
    let archive = folder.0.join("root.tar");
    let root = vmlab::systemd(&Cache::default_folder().unwrap(), &Quiet).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(&archive).arg("-C").arg(root);
    tar.args(LEFT_OUT.iter().map(|path| format!("--exclude={path}")));
    assert!(tar.arg(".").status().unwrap().success());
    let mut all = vec![
        "crates/pspacer/tests/systemd/boot.sh",
        "kernel/tests/lib.sh",
        "packaging/systemd/pspacer@.service",
        "packaging/systemd/pspacer-follow.service",
        "packaging/systemd/pspacer-agent.service",
        "packaging/systemd/pspacer-manager.service",
        archive.to_str().unwrap(),
    ];
    all.extend(files);
    let output = guest::output(kernel, "systemd", modules, &all);
    has(&output, ["\n1.."]);
}

#[test]
fn systemd_paces_a_device_at_boot_and_keeps_reservations() {
    boot(
        Kernel::V6_12,
        &["sch_psp", "wire"],
        &["crates/pspacer/tests/systemd/inside.sh"],
    );
}

#[test]
fn systemd_paces_a_device_without_the_module_and_a_service_by_its_unit() {
    let here = "crates/pspacer/tests/systemd/without-module";
    let files = [format!("{here}/inside.sh"), format!("{here}/c1a.toml")];
    boot(Kernel::V7, &["wire"], &files.each_ref().map(String::as_str));
}
