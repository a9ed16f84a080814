// SPDX-License-Identifier: MIT OR Apache-2.0
//! NICs that launch by time, and what a trial measures.

use crate::host::{ROOT, device, fine, launches};
use doctor::facts::Lateness;
use doctor::findings;
use tcpsp::{Handle, QdiscOptions, QdiscStats};

/// Only the i210 of igb's NICs launches by time, and the newer ones of mlx5's; a NIC whose etf is
/// offloaded is used as it can be.
#[test]
fn other_nics_of_the_same_driver_launch_nothing() {
    for (driver, pci_id) in [
        ("igb", Some(0x8086_1521)),
        ("igb", Some(0x8086_1539)),
        ("igb", None),
        ("mlx5_core", Some(0x15b3_1015)),
        ("e1000e", Some(0x8086_1533)),
    ] {
        let mut facts = fine();
        device(&mut facts).driver = Some(driver.to_owned());
        device(&mut facts).pci_id = pci_id;
        assert_eq!(findings(&facts), [], "{driver} {pci_id:?}");
    }
    let mut facts = fine();
    launches(&mut facts, Some(true));
    assert_eq!(findings(&facts), []);
    // E830 since Linux 6.18, and not E810.
    for (kernel, pci_id, expected) in [
        ("6.18.2", 0x8086_12d2, Some("launch-unused")),
        ("7.3.0-amd64", 0x8086_1263, Some("launch-unused")),
        ("6.12.48", 0x8086_12d2, Some("launch-not-in-kernel")),
        ("7.3.0-amd64", 0x8086_1593, None),
    ] {
        let mut facts = fine();
        facts.kernel_release = kernel.to_owned();
        let eth0 = device(&mut facts);
        (eth0.driver, eth0.pci_id) = (Some("ice".to_owned()), Some(pci_id));
        let found: Vec<_> = findings(&facts).iter().map(|f| f.id).collect();
        assert_eq!(found, Vec::from_iter(expected), "{kernel} {pci_id:x}");
    }
    // All of stmmac's do.
    device(&mut facts).driver = Some("imx-dwmac".to_owned());
    device(&mut facts).qdiscs.pop();
    assert_eq!(findings(&facts)[0].id, "launch-unused");
}

#[test]
fn latenesses_and_a_trial() {
    use doctor::trial::{Instant, between, lateness};
    let late = lateness((0..1000).rev().collect());
    let expected = Lateness {
        timers: 1000,
        median_ns: 500,
        p99_ns: 990,
        max_ns: 999,
    };
    assert_eq!(late, expected);
    assert_eq!(lateness(Vec::new()), Lateness::default());
    let port = |frames: u64, gaps: u64| {
        let stats = QdiscStats {
            sent_frames: frames,
            gap_frames: gaps,
            ..QdiscStats::default()
        };
        tcpsp::ports::Port {
            device: "eth0".to_owned(),
            index: 2,
            device_frames: 0,
            device_bytes: 0,
            handle: ROOT,
            parent: Handle::ROOT,
            counters: tcpsp::Counters::default(),
            psp: tcpsp::PspQdisc {
                options: QdiscOptions::default_of(true),
                stats,
            },
            classes: Vec::new(),
        }
    };
    let instant = |frames, gaps, device_frames| Instant {
        ports: vec![port(frames, gaps)],
        device_frames,
    };
    let trial = between("eth0", &instant(5, 7, Some(12)), &instant(15, 27, Some(42)));
    let trial = trial.unwrap();
    assert_eq!(
        (trial.sent_frames, trial.gap_frames, trial.device_frames),
        (10, 20, 30)
    );
    // Another device, none that counts, and a psp that was made anew.
    assert_eq!(
        between("eth1", &instant(5, 7, Some(12)), &instant(15, 27, Some(42))),
        None
    );
    assert_eq!(
        between("eth0", &instant(5, 7, None), &instant(15, 27, Some(42))),
        None
    );
    assert_eq!(
        between("eth0", &instant(5, 7, Some(1)), &instant(1, 0, Some(2))),
        None
    );
}
