// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims are prepared, twice and after other things, and refused one by one.

use std::path::Path;
use std::time::Duration;

use cni::claims::{Claims, of_attachment};
use cni::config::Budget;
use cni::environment::Attachment;
use node::api::Api;
use node::driver::Driver;
use node::proto;
use serde_json::json;

use crate::api_server::Server;
use crate::claim::{DRIVER, asked, object, result};
use crate::slice::owner;

pub const MBIT: u64 = 1_000_000;

pub fn driver(run: &Path, server: &Server, egress_mbit: u64) -> Driver {
    Driver {
        owner: owner(),
        run: run.to_owned(),
        budget: Budget {
            egress_bps: Some(egress_mbit * MBIT),
            ingress_bps: Some(50 * MBIT),
        },
        api: Api {
            url: server.url.clone(),
            account: run.join("no-account"),
            timeout: Duration::from_millis(600),
        },
    }
}

fn error(driver: &Driver, claim: &proto::Claim) -> String {
    let mut answer = driver.prepare(std::slice::from_ref(claim));
    let prepared = answer.remove(&claim.uid).unwrap();
    assert_eq!(prepared.error.is_empty(), !prepared.devices.is_empty());
    prepared.error
}

#[test]
fn a_claim_is_prepared_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path();
    let server = Server::start(0, None);
    let driver = driver(run, &server, 100);
    let mut second = result(DRIVER, "20M", "0");
    second["request"] = json!("more/fast");
    server.put_claim(&object("c1", "p1", &[result(DRIVER, "40M", "10M"), second]));
    // Twice, by two instances.
    for driver in [driver.clone(), driver.clone()] {
        let answer = driver.prepare(&[asked("c1")]);
        let prepared = &answer["c1"];
        assert_eq!(prepared.error, "");
        let names: Vec<_> = prepared
            .devices
            .iter()
            .map(|device| &device.request_names[..])
            .collect();
        assert_eq!(names, [["net"], ["more"]]);
        let device = &prepared.devices[0];
        assert_eq!(
            (device.pool_name.as_str(), device.device_name.as_str()),
            ("n1", "uplink")
        );
        assert!(device.cdi_device_ids.is_empty() && device.share_id.is_some());
    }
    // What ADD finds.
    let of = Attachment {
        container: "s1".to_owned(),
        device: "eth0".to_owned(),
    };
    let [claim] = &of_attachment(run, ("pods", &of), "p1").unwrap()[..] else {
        panic!("expected one claim");
    };
    assert_eq!(claim.rates().egress_bps, 60 * MBIT);
    assert_eq!(claim.rates().ingress_bps, 10 * MBIT);
    for _ in 0..2 {
        assert_eq!(driver.unprepare(&[asked("c1")])["c1"].error, "");
    }
    assert_eq!(Claims::new(run).load(None).unwrap(), []);
}

#[test]
fn each_claim_has_its_own_error() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path();
    let server = Server::start(0, None);
    let driver = driver(run, &server, 100);
    server.put_claim(&object("c1", "p1", &[result(DRIVER, "60M", "0")]));
    server.put_claim(&object("c2", "p2", &[result(DRIVER, "50M", "0")]));
    server.put_claim(&object("c3", "p3", &[result("gpu.example.com", "1", "1")]));
    let mut other = object("c4", "p4", &[result(DRIVER, "1M", "0")]);
    other["metadata"]["uid"] = json!("c5");
    server.put_claim(&other);
    server.put_claim(&object("c6", "p6", &[result(DRIVER, "1M", "51M")]));
    let claims = ["c1", "c2", "c3", "c4", "c6", "c7"].map(asked);
    let answer = driver.prepare(&claims);
    let error = |uid: &str| answer[uid].error.as_str();
    assert_eq!(answer.len(), 6);
    assert_eq!(error("c1"), "");
    assert!(
        error("c2").contains(
            "`consumedCapacity.egress` is 50000000 bit/s, expected at most 40000000 bit/s"
        )
    );
    assert!(error("c2").ends_with("(code 102)"), "{}", error("c2"));
    assert!(error("c3").contains("names no device of bandwidth.pspacer.internal"));
    assert!(error("c4").contains("`metadata.uid` is \"c5\", expected \"c4\""));
    assert!(error("c6").contains("`consumedCapacity.ingress` is 51000000 bit/s"));
    assert_eq!(
        error("c7"),
        "default/claim-c7: the API server has no such claim"
    );
    let known = Claims::new(run).load(None).unwrap();
    assert_eq!(known.len(), 1, "{known:?}");
    // Room comes back.
    let _ = driver.unprepare(&[asked("c1")]);
    assert_eq!(driver.prepare(&[asked("c2")])["c2"].error, "");
}

#[test]
fn what_was_prepared_stays() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path();
    let server = Server::start(0, None);
    server.put_claim(&object("c1", "p1", &[result(DRIVER, "60M", "0")]));
    assert_eq!(error(&driver(run, &server, 100), &asked("c1")), "");
    // The budget of the next agent is smaller.
    assert_eq!(error(&driver(run, &server, 10), &asked("c1")), "");
    // A claim that outlives its pod, with another pod.
    server.put_claim(&object("c1", "p2", &[result(DRIVER, "60M", "0")]));
    assert_eq!(error(&driver(run, &server, 100), &asked("c1")), "");
    let claims = Claims::new(run);
    assert_eq!(claims.load(Some("p1")).unwrap(), []);
    assert_eq!(claims.load(Some("p2")).unwrap().len(), 1);
    // One that was cut short is written anew.
    std::fs::write(run.join("claims/p2:c1.json"), "{\"uid\":\"c1").unwrap();
    std::fs::write(run.join("claims/p2:c1.new"), "{").unwrap();
    assert_eq!(error(&driver(run, &server, 100), &asked("c1")), "");
    assert_eq!(claims.load(None).unwrap().len(), 1);
}

#[test]
fn what_is_refused_leaves_what_was_prepared() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path();
    let server = Server::start(0, None);
    let driver = driver(run, &server, 100);
    server.put_claim(&object("c1", "p1", &[result(DRIVER, "60M", "0")]));
    server.put_claim(&object("c2", "p2", &[result(DRIVER, "30M", "0")]));
    let answer = driver.prepare(&["c1", "c2"].map(asked));
    assert!(answer.values().all(|prepared| prepared.error.is_empty()));
    // The claim says something else now, of which there is not enough.
    server.put_claim(&object("c1", "p1", &[result(DRIVER, "71M", "0")]));
    let refused = error(&driver, &asked("c1"));
    assert!(
        refused.contains("expected at most 70000000 bit/s"),
        "{refused}"
    );
    let claims = Claims::new(run);
    let known = claims.load(Some("p1")).unwrap();
    assert_eq!(known[0].rates().egress_bps, 60 * MBIT);
    // What it had counts no more beside what it asks for.
    server.put_claim(&object("c1", "p1", &[result(DRIVER, "70M", "0")]));
    assert_eq!(error(&driver, &asked("c1")), "");
    // One that cannot be read stays, too, and hinders others until it is written anew.
    let path = run.join("claims/p1:c1.json");
    std::fs::write(&path, "{").unwrap();
    server.put_claim(&object("c1", "p1", &[result(DRIVER, "71M", "0")]));
    server.put_claim(&object("c3", "p3", &[result(DRIVER, "1M", "0")]));
    let answer = driver.prepare(&["c1", "c3"].map(asked));
    assert!(
        answer["c1"].error.contains("71000000"),
        "{}",
        answer["c1"].error
    );
    assert!(answer["c3"].error.contains("p1:c1.json is no claim"));
    assert_eq!(std::fs::read(&path).unwrap(), b"{");
    assert_eq!(driver.unprepare(&[asked("c2")])["c2"].error, "");
    let answer = driver.prepare(&["c1", "c3"].map(asked));
    assert!(answer.values().all(|prepared| prepared.error.is_empty()));
    // A process that was killed left it to the pod before, too.
    std::fs::copy(&path, run.join("claims/p0:c1.json")).unwrap();
    assert_eq!(error(&driver, &asked("c1")), "");
    let names = std::fs::read_dir(run.join("claims")).unwrap();
    assert_eq!(names.count(), 2);
}

/// Returns how often this thread has read something.
fn reads() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("syscr: "));
    line.unwrap().parse().unwrap()
}

/// Prepares so many claims in one call, beside as many of before, and again, and forgets them. Returns
/// how often something was read for each of the three.
fn reads_of(count: usize) -> [u64; 3] {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(0, None);
    let mut driver = driver(folder.path(), &server, 100);
    driver.api.timeout = Duration::from_secs(10);
    let claims = |name: &str| -> Vec<proto::Claim> {
        let uid = |number: usize| format!("{name}{number}");
        (0..count).map(|number| asked(&uid(number))).collect()
    };
    for claim in claims("old").into_iter().chain(claims("new")) {
        let pod = format!("p{}", claim.uid);
        server.put_claim(&object(&claim.uid, &pod, &[result(DRIVER, "10k", "0")]));
    }
    let work = |claims: &[proto::Claim]| {
        let (before, begun) = (reads(), std::time::Instant::now());
        let answer = driver.prepare(claims);
        assert!(answer.values().all(|prepared| prepared.error.is_empty()));
        println!("{count} claims: {:.2} s", begun.elapsed().as_secs_f64());
        reads() - before
    };
    let _ = work(&claims("old"));
    let (first, again) = (work(&claims("new")), work(&claims("new")));
    let before = reads();
    let answer = driver.unprepare(&claims("new"));
    assert!(answer.values().all(|one| one.error.is_empty()));
    [first, again, reads() - before]
}

#[test]
fn the_work_of_a_call_is_linear() {
    let (few, many) = (reads_of(20), reads_of(60));
    println!("read of 20 claims: {few:?}, of 60: {many:?}");
    for (few, many) in few.into_iter().zip(many) {
        assert!(many <= 3 * few + 30, "{many} of 60 claims, {few} of 20");
    }
}
