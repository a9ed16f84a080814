// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reservations end to end, in a guest: two managers on etcd, agents on a host and three routers, and
//! streams over one to four of these beside TCP on each cable. The manager that decides is killed, and
//! the kernel's route changes; no packet may be lost, or later than its bound. The etcd has three members, as
//! one has that may lose a member: they fit the guest's memory of 1 GB beside the rest.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use scenario::Kernel;
use serde_json::Value;
use vmlab::{Cache, Quiet};

use crate::common::guest::{self, Outputs};
use crate::common::root;

const MODULES: &[&str] = &["sch_psp", "wire", "veth", "cls_flower", "cls_bpf"];
const MS_NS: u64 = 1_000_000;
/// Reserved bytes of each period of 10 ms, on the wire, for each stream.
const RESERVED_BYTES: u64 = 3_076;
/// Bytes of a period for streams and best effort together: 30 % of 100 Mbit/s.
const TOTAL_BYTES: u64 = 37_500;
/// TCP carries 1,448 bytes in a full frame, which takes 1,538 on the wire.
const FRAME_BYTES: (u64, u64) = (1_448, 1_538);
/// Share of best effort that TCP has at least. The rest is for answers, for its start and for the end.
const LEAST_TCP_PERCENT: u64 = 80;

/// Writes the certificate of both managers, its key and its authority.
fn certificates(folder: &Path) {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let mut params = CertificateParams::new(vec!["managers".to_owned()]).unwrap();
    for address in ["10.1.0.1", "10.1.0.2"] {
        let name = SanType::IpAddress(address.parse().unwrap());
        params.subject_alt_names.push(name);
    }
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
    fs::write(folder.join("manager.pem"), certificate.pem()).unwrap();
    fs::write(folder.join("manager.key"), key.serialize_pem()).unwrap();
}

/// Returns the folder of the certificates, which is kept in the cache: the guest is the same the next time.
fn kept_certificates() -> PathBuf {
    let cache = Cache::default_folder().unwrap();
    let kept = cache.path().join("test-certificates");
    if !kept.exists() {
        fs::create_dir_all(cache.path()).unwrap();
        let new = tempfile::tempdir_in(cache.path()).unwrap();
        certificates(new.path());
        // Another test may have been faster.
        let _ = fs::rename(new.path(), &kept);
    }
    kept
}

/// Runs the network with so many packets of each stream, before the route changes and after.
fn said(kernel: Kernel, packets: (u64, u64)) -> Outputs {
    let folder = tempfile::tempdir().unwrap();
    let certificates = kept_certificates();
    let etcd = vmlab::etcd(&Cache::default_folder().unwrap(), &Quiet).unwrap();
    let mut files = vec![
        root().join("crates/pspacer/tests/network/reservations.sh"),
        root().join("kernel/tests/lib.sh"),
        etcd.join("usr/bin/etcd"),
        "/usr/bin/chrt".into(),
    ];
    files.extend(["ca.pem", "manager.pem", "manager.key"].map(|name| certificates.join(name)));
    let files: Vec<_> = files.iter().map(|path| path.to_str().unwrap()).collect();
    let command = |script: &str| {
        format!(
            "env PACKETS={} MOVED_PACKETS={} sh {script}",
            packets.0, packets.1
        )
    };
    let timeout = Duration::from_secs(600 + packets.0 / 50);
    let place = (folder.path(), &command as &dyn Fn(&str) -> String);
    guest::outputs(&guest::run_within(
        timeout, kernel, "network", MODULES, &files, place,
    ))
}

/// Returns what a command said, which has succeeded.
fn of<'a>(said: &'a Outputs, name: &str) -> &'a str {
    let (text, status) = said
        .get(name)
        .unwrap_or_else(|| panic!("{name}: {said:#?}"));
    assert_eq!(*status, 0, "{name}: {text}\n{}", said["logs"].0);
    text
}

fn json(said: &Outputs, name: &str) -> Value {
    let text = of(said, name);
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"))
}

/// Returns what TCP has acknowledged in a second of each cable, by the node that sends into it, Mbit/s.
fn goodput_mbps(said: &Outputs, name: &str) -> BTreeMap<String, u64> {
    let flows = of(said, name).lines();
    let flows: Vec<Value> = flows
        .map(|flow| serde_json::from_str(flow).unwrap())
        .collect();
    let numbers = |key| {
        flows
            .iter()
            .map(move |flow: &Value| flow[key].as_u64().unwrap())
    };
    let start_ns = numbers("start_ns").min().unwrap();
    let us = (numbers("end_ns").max().unwrap() - start_ns) / 1_000;
    let of_node = |node: &str| {
        let is_of = |flow: &&Value| flow["name"] == "through" || flow["name"] == node;
        let bytes = flows
            .iter()
            .filter(is_of)
            .map(|flow| flow["bytes"].as_u64());
        bytes.map(Option::unwrap).sum::<u64>() * 8 / us
    };
    let nodes = ["talker", "r1", "r2", "r3"];
    nodes.map(|node| (node.to_owned(), of_node(node))).into()
}

/// Checks that each stream keeps its bound beside TCP, and prints a line for each. `bounds_ms` are those
/// of x1 to x4.
fn bounds_are_kept(
    what: &str,
    said: &Outputs,
    (sent, measured, tcp): (&str, &str, &str),
    packets: u64,
    bounds_ms: [u64; 4],
) {
    let goodput = goodput_mbps(said, tcp);
    let views = json(said, measured);
    let cables = ["talker", "r1", "r2", "r3"];
    for (n, ((view, bound_ms), node)) in
        (0..).zip(views.as_array().unwrap().iter().zip(bounds_ms).zip(cables))
    {
        let id = format!("x{}", n + 1);
        assert_eq!(view["id"], *id, "{what}: {views:#}");
        assert_eq!(view["in_force"], true, "{what}: {view:#}");
        let bound_ns = view["bound_ns"].as_u64().unwrap();
        assert_eq!(bound_ns, bound_ms * MS_NS, "{what}: {view:#}");
        let measured = view["measured"].as_object().unwrap();
        let found = measured.values().next();
        let found = found.unwrap_or_else(|| panic!("{what}: nothing measured: {view:#}"));
        let worst_ns = found["worst_delay_ns"].as_u64().unwrap();
        let sender = json(said, &format!("{sent}: {id}"));
        let late_ns = sender["send_late"]["max_ns"].as_u64().unwrap();
        println!(
            "{what}: {id} over {} hosts: {} packets, {} lost, at most {} us of {}, sent at most {} us late; \
             TCP of {node} {} Mbit/s",
            n + 1,
            found["packets"],
            found["lost_packets"],
            worst_ns / 1_000,
            bound_ns / 1_000,
            late_ns / 1_000,
            goodput[node],
        );
        assert_eq!(found["packets"], packets, "{what}: {id}: {found}");
        assert_eq!(found["lost_packets"], 0, "{what}: {id}: {found}");
        assert!(worst_ns <= bound_ns, "{what}: {id}: {found}");
        let best_effort = TOTAL_BYTES - (4 - n) * RESERVED_BYTES;
        let (payload, wire) = FRAME_BYTES;
        let share_mbps = best_effort * 800 * payload / wire / 1_000_000;
        assert!(
            goodput[node] * 100 >= share_mbps * LEAST_TCP_PERCENT,
            "{what}: TCP of {node} has {} of {share_mbps} Mbit/s",
            goodput[node]
        );
    }
}

/// Returns the classes of a node's device.
fn port<'a>(classes: &'a str, name: &str) -> &'a str {
    let (_, rest) = classes.split_once(&format!("{name}\n")).unwrap();
    let end = rest.find("\nr").unwrap_or(rest.len());
    &rest[..end]
}

fn bounds_hold_end_to_end(kernel: Kernel, packets: (u64, u64)) {
    let said = said(kernel, packets);
    // Without reservations the same packets wait with TCP, in the same classes for best effort. Without any
    // class they would not have to wait for periods, and TCP keeps its own queue short.
    for (n, bound_ms) in (1..).zip([13, 26, 39, 52]) {
        let alone = json(&said, &format!("no reservations: x{n}"));
        let worst_ns = alone["one_way_with_wait"]["max_ns"].as_u64().unwrap();
        println!(
            "{kernel}, no reservations: x{n}: at most {} us",
            worst_ns / 1_000
        );
        assert!(worst_ns > bound_ms * MS_NS, "{kernel}: {alone:#}");
    }
    for n in 1..=4 {
        let view = json(&said, &format!("reserve x{n}"));
        assert_eq!(view["in_force"], true, "{kernel}: {view:#}");
    }
    // The manager is killed while the streams are sent. Another one has their reservations.
    let views = json(&said, "after the takeover");
    assert_eq!(views.as_array().unwrap().len(), 4, "{kernel}: {views:#}");
    let renewed = json(&said, "renewed");
    let lease_ns = renewed["expires_in_ns"].as_u64().unwrap();
    assert!(lease_ns > 7_000 * 1_000 * MS_NS, "{kernel}: {renewed:#}");
    let classes = of(&said, "classes");
    assert_eq!(of(&said, "classes after the takeover"), classes, "{kernel}");
    of(&said, "streams");
    let what = kernel.to_string();
    let names = ("reserved", "measured", "TCP");
    bounds_are_kept(&what, &said, names, packets.0, [13, 26, 39, 52]);
    // The route changes, and the agent of the last router has x4 negotiated anew.
    of(&said, "moved streams");
    let what = format!("{kernel}, moved");
    let names = ("moved", "measured after the move", "moved TCP");
    bounds_are_kept(&what, &said, names, packets.1, [13, 26, 39, 54]);
    let moved = of(&said, "classes after the move");
    for (name, before, after) in [("r3:c4a", true, false), ("r3:c5a", false, true)] {
        let has_stream = |classes| {
            let port = port(classes, name);
            // 10.0.9.1 in what is saved.
            port.contains("mode rt") && port.contains("0a000901")
        };
        assert_eq!(
            (has_stream(classes), has_stream(moved)),
            (before, after),
            "{kernel}: {classes}\n{moved}"
        );
    }
    let events = of(&said, "r3 events");
    let rerouted = events
        .lines()
        .filter(|line| line.contains(r#""event":"rerouted""#));
    assert_eq!(rerouted.count(), 1, "{kernel}: {events}");
}

/// With as many packets as paper 004 has of each cell where everything is tested, on one of them.
fn bounds_hold(kernel: Kernel) {
    let is_whole = testkit::everything() && kernel == Kernel::V6_12;
    let packets = if is_whole {
        (100_000, 10_000)
    } else {
        (2_000, 1_000)
    };
    bounds_hold_end_to_end(kernel, packets);
}

testkit::on_every_kernel! {
    bounds_hold_end_to_end: bounds_hold;
}
