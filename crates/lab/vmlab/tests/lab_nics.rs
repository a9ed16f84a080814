// SPDX-License-Identifier: MIT OR Apache-2.0
//! psp on real drivers: Debian's generic kernel, with two of each NIC that QEMU emulates,
//! joined by a hub inside the guest.

use std::path::Path;

use scenario::Kernel;
use vmlab::Lab;

use crate::common::{LONG, More, check_tap, kernel_script};

/// QEMU's devices, and Linux's drivers for them.
const NICS: &[&str] = &[
    "e1000e",
    "igb",
    "vmxnet3",
    "virtio-net-pci,speed=1000,duplex=full",
    "rtl8139",
];
const DRIVERS: &[&str] = &[
    "e1000e",
    "igb",
    "vmxnet3",
    "virtio_pci",
    "virtio_net",
    "8139cp",
    "bridge",
];

#[test]
fn real_drivers() {
    let mut lab = Lab::find().unwrap();
    lab.nics = NICS.to_vec();
    let folder = tempfile::tempdir().unwrap();
    let tap = folder.path().join("tap");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/tap.c");
    testkit::guest::compile(&source, &tap);
    let more = More {
        modules: DRIVERS,
        files: &[(&tap, "/tests/tap")],
    };
    let (kernel, name) = (Kernel::V6_1, "nics.sh");
    let command = format!("{} sh /tests/nics.sh", testkit::part());
    let ran = kernel_script(&lab, kernel, &[name], &command, LONG * 2, more);
    check_tap(kernel, name, ran.status, &ran.output);
}
