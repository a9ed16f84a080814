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
