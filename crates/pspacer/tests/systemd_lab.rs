// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's systemd in a guest: `pspacer@.service` paces a device at boot, before the network is
//! online, and again when the device comes back; `pspacer-manager.service` grants a
//! reservation, and `pspacer-agent.service` puts it into force. Each has the rights of its unit alone.

use std::process::Command;

use crate::common::{Folder, guest};
use scenario::Kernel;
use vmlab::{Cache, Quiet};

/// Pages, hardware's names and other languages, which a guest does not need.
const LEFT_OUT: &[&str] = &[
    "./lib/udev/hwdb.d",
    "./usr/lib/udev/hwdb.d",
    "./usr/share/doc",
    "./usr/share/locale",
    "./usr/share/man",
];

#[test]
fn systemd_paces_a_device_at_boot_and_keeps_reservations() {
    let folder = Folder::new("systemd");
    let archive = folder.0.join("root.tar");
    let root = vmlab::systemd(&Cache::default_folder().unwrap(), &Quiet).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(&archive).arg("-C").arg(root);
    tar.args(LEFT_OUT.iter().map(|path| format!("--exclude={path}")));
    assert!(tar.arg(".").status().unwrap().success());
    let files = [
        "crates/pspacer/tests/systemd/boot.sh",
        "crates/pspacer/tests/systemd/inside.sh",
        "kernel/tests/lib.sh",
        "packaging/systemd/pspacer@.service",
        "packaging/systemd/pspacer-agent.service",
        "packaging/systemd/pspacer-manager.service",
        archive.to_str().unwrap(),
    ];
    let output = guest::output(Kernel::V6_12, "systemd", &["sch_psp", "wire"], &files);
    assert!(output.contains("\n1.."), "{output}");
}
