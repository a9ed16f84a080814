// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims: what they give a pod goes before other keys, paces one of its devices, and counts once.

use std::fs;
use std::path::Path;

use cni::budget::{Asked, check, granted};
use cni::claims::{Claim, Claims, Share, of_attachment};
use cni::config::{Budget, Config, Rates};
use cni::environment::{Attachment, pod_uid};
use cni::error::Error;
use cni::record::Records;
use serde_json::json;

use crate::budget::record;
use crate::call::call;
use crate::config::conf;

const MBIT: u64 = 1_000_000;

fn rates(egress: u64, ingress: u64) -> Rates {
    Rates {
        egress_bps: egress * MBIT,
        ingress_bps: ingress * MBIT,
    }
}

/// A claim of a pod, with a share for each pair of rates in Mbit/s.
fn claim(uid: &str, pod: &str, shares: &[(u64, u64)]) -> Claim {
    let share = |(egress, ingress): &(u64, u64)| Share {
        request: "net".to_owned(),
        pool: "node".to_owned(),
        device: "uplink".to_owned(),
        share_id: None,
        egress_bps: egress * MBIT,
        ingress_bps: ingress * MBIT,
    };
    Claim {
        uid: uid.to_owned(),
        namespace: "default".to_owned(),
        name: format!("claim-{uid}"),
        pod_uid: pod.to_owned(),
        shares: shares.iter().map(share).collect(),
    }
}

fn attachment(container: &str, device: &str) -> Attachment {
    Attachment {
        container: container.to_owned(),
        device: device.to_owned(),
    }
}

/// Keeps what ADD would, for an attachment with claims.
fn keep(run: &Path, network: &str, of: &Attachment, rates: (u64, u64), claims: &[&str]) {
    let mut record = record(&of.container, rates.0, rates.1);
    record.claims = claims.iter().map(|uid| (*uid).to_owned()).collect();
    Records::new(run, network).store(of, &record).unwrap();
}

fn ask(
    run: &Path,
    attachment: Option<(&str, &Attachment)>,
    claims: &[&str],
    rates: Rates,
    budget_bps: u64,
) -> Result<(), Error> {
    let claims: Vec<String> = claims.iter().map(|uid| (*uid).to_owned()).collect();
    let asked = Asked {
        attachment,
        claims: &claims,
        rates,
        keys: ("egress", "ingress"),
    };
    let budget = Budget {
        egress_bps: Some(budget_bps),
        ingress_bps: None,
    };
    check(run, &asked, budget)
}

#[test]
fn claims_are_kept_by_pod() {
    let folder = tempfile::tempdir().unwrap();
    let claims = Claims::new(folder.path());
    assert_eq!(claims.load(None).unwrap(), []);
    assert!(!claims.delete("c1").unwrap());
    let (one, two) = (claim("c1", "p1", &[(5, 6)]), claim("c2", "p2", &[(1, 0)]));
    claims.store(&one).unwrap();
    claims.store(&one).unwrap();
    claims.store(&two).unwrap();
    assert_eq!(claims.load(Some("p1")).unwrap(), std::slice::from_ref(&one));
    assert_eq!(claims.load(None).unwrap(), [one.clone(), two.clone()]);
    // What a process that was killed leaves is none.
    let folder = folder.path().join("claims");
    fs::write(folder.join("p1:c9.new"), "{\"uid\":").unwrap();
    assert_eq!(claims.load(Some("p1")).unwrap().len(), 1);
    // One that cannot be read, or is of another name, hinders its pod, and no other.
    for text in ["{", "{}", &serde_json::to_string(&two).unwrap()] {
        fs::write(folder.join("p1:c1.json"), text).unwrap();
        let error = claims.load(Some("p1")).unwrap_err().to_string();
        assert!(error.contains("p1:c1.json is no claim of this version, expected one"));
        assert_eq!(claims.load(Some("p2")).unwrap(), std::slice::from_ref(&two));
    }
    assert!(claims.delete("c1").unwrap());
    assert!(claims.delete("c2").unwrap());
    assert_eq!(claims.load(None).unwrap(), []);
}

#[test]
fn a_claim_goes_before_other_keys() {
    let wanted = |psp, bandwidth, claimed| {
        let conf = conf("1.1.0", psp, bandwidth);
        let config = Config::read(conf.to_string().as_bytes()).unwrap();
        config.wanted(claimed)
    };
    let bandwidth = json!({ "egressRate": 9_000_000, "ingressRate": 7_000_000 });
    let psp = json!({ "rate": "1mbit", "ceil": "20mbit", "deadline": "5ms" });
    let both = wanted(psp.clone(), bandwidth.clone(), rates(30, 40)).unwrap();
    let (egress, ingress) = (both.egress.unwrap(), both.ingress.unwrap());
    assert_eq!((egress.rate_bps, ingress.rate_bps), (30 * MBIT, 40 * MBIT));
    // The ceil of all pods is none of this one's.
    assert_eq!(egress.ceil_bps, Some(30 * MBIT));
    assert_eq!(egress.deadline_ns, Some(5_000_000));
    assert_eq!(both.keys, ("the pod's claim", "the pod's claim"));
    assert_eq!(
        both.notes,
        [
            "`runtimeConfig.bandwidth.egressRate` is 9000000 bit/s, and the pod's claim of \
             30000000 bit/s goes before it",
            "`runtimeConfig.bandwidth.ingressRate` is 7000000 bit/s, and the pod's claim of \
             40000000 bit/s goes before it"
        ]
    );
    // A direction that no claim names is as it was.
    let one = wanted(psp, bandwidth, rates(0, 40)).unwrap();
    assert_eq!(one.egress.unwrap().rate_bps, 9 * MBIT);
    assert_eq!(one.keys.0, "runtimeConfig.bandwidth.egressRate");
    let alone = wanted(json!(null), json!(null), rates(3, 0)).unwrap();
    assert_eq!(alone.egress.unwrap().rate_bps, 3 * MBIT);
    assert!(alone.notes.is_empty() && alone.ingress.is_none());
    let error = wanted(json!(null), json!(null), rates(0, 100_001)).unwrap_err();
    assert_eq!(
        error.msg,
        "the claims of the pod have 100001000000 bit/s of ingress, expected at most 100000000000 \
         bit/s"
    );
}

#[test]
fn a_claim_paces_one_device() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path();
    Claims::new(run)
        .store(&claim("c1", "p1", &[(5, 0)]))
        .unwrap();
    let of = |network, of: &Attachment, pod| of_attachment(run, (network, of), pod).unwrap().len();
    let (eth0, net1) = (attachment("s1", "eth0"), attachment("s1", "net1"));
    assert_eq!(of("pods", &eth0, "p1"), 1);
    assert_eq!(of("pods", &eth0, "p2"), 0);
    keep(run, "pods", &eth0, (5, 0), &["c1"]);
    assert_eq!(of("pods", &eth0, "p1"), 1);
    assert_eq!(of("pods", &net1, "p1"), 0);
    assert_eq!(of("storage", &eth0, "p1"), 0);
    // The pod's next sandbox, while the one before is not gone yet.
    assert_eq!(of("pods", &attachment("s2", "eth0"), "p1"), 1);
    Records::new(run, "pods").delete(&eth0).unwrap();
    assert_eq!(of("storage", &net1, "p1"), 1);
}

#[test]
fn a_claim_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path();
    let claims = Claims::new(run);
    // Prepared, before its pod has a network.
    ask(run, None, &["c1"], rates(60, 0), 100 * MBIT).unwrap();
    claims
        .store(&claim("c1", "p1", &[(40, 1), (20, 1)]))
        .unwrap();
    assert_eq!(granted(run).unwrap(), rates(60, 2));
    ask(run, None, &["c1"], rates(60, 0), 100 * MBIT).unwrap();
    let error = ask(run, None, &["c2"], rates(41, 0), 100 * MBIT).unwrap_err();
    assert_eq!(error.code, 102);
    assert!(
        error
            .msg
            .contains("expected at most 40000000 bit/s, what is left")
    );
    let (one, other) = (attachment("s1", "eth0"), attachment("s9", "eth0"));
    ask(run, Some(("pods", &other)), &[], rates(41, 0), 100 * MBIT).unwrap_err();
    ask(run, Some(("pods", &other)), &[], rates(40, 0), 100 * MBIT).unwrap();
    // ADD, also where the budget has become smaller meanwhile.
    ask(run, Some(("pods", &one)), &["c1"], rates(60, 0), 50 * MBIT).unwrap();
    keep(run, "pods", &one, (60, 2), &["c1"]);
    assert_eq!(granted(run).unwrap(), rates(60, 2));
    // The next sandbox of the pod.
    let next = attachment("s2", "eth0");
    ask(run, Some(("pods", &next)), &["c1"], rates(60, 0), 60 * MBIT).unwrap();
    keep(run, "pods", &next, (60, 2), &["c1"]);
    assert_eq!(granted(run).unwrap(), rates(60, 2));
    Records::new(run, "pods").delete(&one).unwrap();
    // `set` to less keeps what is claimed, to more adds to it.
    keep(run, "pods", &next, (10, 2), &["c1"]);
    assert_eq!(granted(run).unwrap(), rates(60, 2));
    keep(run, "pods", &next, (70, 2), &["c1"]);
    assert_eq!(granted(run).unwrap(), rates(70, 2));
    // What is in force counts after the claim has gone.
    claims.delete("c1").unwrap();
    assert_eq!(granted(run).unwrap(), rates(70, 2));
    Records::new(run, "pods").delete(&next).unwrap();
    assert_eq!(granted(run).unwrap(), Rates::default());
}

#[test]
fn a_pod_is_told_by_its_uid() {
    let read = |args: &str| {
        let args = args.to_owned();
        pod_uid(&mut |name| (name == "CNI_ARGS").then(|| args.clone()))
    };
    assert_eq!(read("").unwrap(), None);
    assert_eq!(read("K8S_POD_UID=").unwrap(), None);
    let uid = read("IgnoreUnknown=1;K8S_POD_UID=0b-1").unwrap();
    assert_eq!(uid.as_deref(), Some("0b-1"));
    for wrong in ["../x", "a/b", "a:b", &"a".repeat(101)] {
        let error = read(&format!("K8S_POD_UID={wrong}")).unwrap_err();
        assert_eq!(error.code, 4);
        let conf = conf("1.1.0", json!({}), json!({}));
        let args = format!("K8S_POD_UID={wrong}");
        let variables = [
            ("CNI_COMMAND", "ADD"),
            ("CNI_CONTAINERID", "c1"),
            ("CNI_IFNAME", "eth0"),
            ("CNI_ARGS", args.as_str()),
        ];
        let (code, msg) = call(conf.to_string().as_bytes(), &variables).error();
        assert_eq!(code, 4);
        assert!(msg.starts_with("K8S_POD_UID of CNI_ARGS is "), "{msg}");
    }
}
