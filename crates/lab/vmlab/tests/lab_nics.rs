// SPDX-License-Identifier: MIT OR Apache-2.0
//! psp on real drivers: Debian's generic kernel, with two of each NIC that QEMU emulates,
//! joined by a hub inside the guest.

use scenario::Kernel;
use vmlab::Lab;

use crate::common::{LONG, kernel_test_with};

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
];

#[test]
fn real_drivers() {
    let mut lab = Lab::find().unwrap();
    lab.nics = NICS.to_vec();
    kernel_test_with(&lab, Kernel::V6_1, "nics.sh", "", LONG * 2, DRIVERS);
}
