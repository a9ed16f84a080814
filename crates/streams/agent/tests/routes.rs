// SPDX-License-Identifier: MIT OR Apache-2.0
//! Routes of a real kernel, in a network namespace of its own.

use std::net::IpAddr;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread::spawn;
use std::time::Duration;

use agent::routes::{Changes, routes};

/// Set in the process that runs in a namespace.
const INSIDE: &str = "PSPACER_TEST_INSIDE";
/// Longest wait for what has to happen at some time.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Runs `ip` with these words.
fn ip(words: &str) {
    let done = Command::new("ip").args(words.split(' ')).status().unwrap();
    assert!(done.success(), "ip {words}");
}

fn device(to: &str) -> Option<String> {
    let to: IpAddr = to.parse().unwrap();
    routes([to]).unwrap().remove(&to).unwrap()
}

/// Each change is reported, and found.
fn inside() {
    let v0 = Some("v0".to_owned());
    let v1 = Some("v1".to_owned());
    ip("link set lo up");
    ip("link add v0 type veth peer name v1");
    for (link, of) in [("v0", 1), ("v1", 2)] {
        ip(&format!("link set {link} up"));
        ip(&format!("addr add 10.{of}.0.1/24 dev {link}"));
        ip(&format!("addr add 2001:db8:{of}::1/64 dev {link} nodad"));
    }
    assert_eq!(device("10.9.0.1"), None);
    let (report, changes) = channel();
    let open = Changes::open().unwrap();
    spawn(move || {
        while open.wait().is_ok() {
            let _ = report.send(());
        }
    });
    for (change, four, six) in [
        ("route add 10.9.0.0/16 via 10.1.0.2", &v0, &None),
        ("route replace 10.9.0.0/16 via 10.2.0.2", &v1, &None),
        ("-6 route add 2001:db8:9::/48 via 2001:db8:1::2", &v1, &v0),
        // The narrower route wins.
        ("route add 10.9.0.1/32 via 10.1.0.2", &v0, &v0),
        ("route add blackhole 10.9.0.1/32 metric 0 table 9", &v0, &v0),
        ("rule add to 10.9.0.1 lookup 9 priority 10", &None, &v0),
        ("rule del to 10.9.0.1 lookup 9 priority 10", &v0, &v0),
        // The routes of a device go with it.
        ("link set v0 down", &v1, &None),
    ] {
        // What came before is reported before.
        while changes.recv_timeout(Duration::from_millis(300)).is_ok() {}
        ip(change);
        let is_reported = changes.recv_timeout(LONGEST_WAIT);
        assert!(is_reported.is_ok(), "{change}");
        assert_eq!(device("10.9.0.1"), *four, "{change}");
        assert_eq!(device("2001:db8:9::1"), *six, "{change}");
    }
}

#[test]
fn changes_of_routes_are_reported_and_found() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let this = std::env::current_exe().unwrap();
    let mut there = Command::new("unshare");
    there.args(["--user", "--map-root-user", "--net"]);
    let can = there.arg("true").output();
    if !can.is_ok_and(|out| out.status.success()) {
        eprintln!("not tested: no namespaces here");
        return;
    }
    let out = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net"])
        .arg(this)
        .args([
            "--exact",
            "routes::changes_of_routes_are_reported_and_found",
            "--nocapture",
        ])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
}

/// Without any namespace: this host has a route to itself.
#[test]
fn this_host_is_behind_its_loopback() {
    assert_eq!(device("127.0.0.1").as_deref(), Some("lo"));
}
