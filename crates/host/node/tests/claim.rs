// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims as the API has them: what they give, and what is refused.

use node::claim::read;
use node::proto;
use serde_json::{Value, json};

pub const DRIVER: &str = "bandwidth.pspacer.internal";
pub const NODE: &str = "n1";

/// A claim as the kubelet names it.
pub fn asked(uid: &str) -> proto::Claim {
    proto::Claim {
        namespace: "default".to_owned(),
        uid: uid.to_owned(),
        name: format!("claim-{uid}"),
    }
}

/// A result of an allocation.
pub fn result(driver: &str, egress: &str, ingress: &str) -> Value {
    json!({
        "request": "net",
        "driver": driver,
        "pool": NODE,
        "device": "uplink",
        "shareID": "1d7b0e5e-0000-4000-8000-000000000001",
        "consumedCapacity": { "egress": egress, "ingress": ingress },
    })
}

/// An allocated claim that is reserved for a pod.
pub fn object(uid: &str, pod_uid: &str, results: &[Value]) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": { "name": format!("claim-{uid}"), "namespace": "default", "uid": uid },
        "spec": { "devices": { "requests": [{ "name": "net" }] } },
        "status": {
            "allocation": { "devices": { "results": results } },
            "reservedFor": [{ "resource": "pods", "name": "web", "uid": pod_uid }],
        },
    })
}

#[test]
fn what_a_claim_gives() {
    let mut second = result(DRIVER, "1Gi", "0");
    second["request"] = json!("more/fast");
    second["consumedCapacity"] = json!({ format!("{DRIVER}/egress"): "1Gi" });
    let other = result("gpu.example.com", "1", "1");
    let results = [result(DRIVER, "100M", "50M"), other, second];
    let claim = read(&object("c1", "p1", &results), &asked("c1"), DRIVER, NODE).unwrap();
    assert_eq!((claim.uid.as_str(), claim.pod_uid.as_str()), ("c1", "p1"));
    let rates = |at: usize| (claim.shares[at].egress_bps, claim.shares[at].ingress_bps);
    assert_eq!(claim.shares.len(), 2);
    assert_eq!(rates(0), (100_000_000, 50_000_000));
    assert_eq!(rates(1), (1 << 30, 0));
    assert!(claim.shares[0].share_id.is_some());
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn what_is_refused() {
    let right = object("c1", "p1", &[result(DRIVER, "100M", "0")]);
    let pod = |uid: Value| json!({ "resource": "pods", "name": "web", "uid": uid });
    let results = "/status/allocation/devices/results";
    for (place, value, expected) in [
        (
            "/metadata/uid",
            json!("c2"),
            "`metadata.uid` is \"c2\", expected \"c1\": another claim",
        ),
        (
            "/metadata",
            json!(null),
            "`metadata.uid` is null, expected \"c1\"",
        ),
        (
            "/status",
            json!(null),
            "`status.allocation.devices.results` is null, expected a list",
        ),
        (
            "/status/allocation",
            json!({}),
            "`status.allocation.devices.results` is null",
        ),
        (
            results,
            json!([]),
            "`status.allocation.devices.results` names no device of",
        ),
        (
            results,
            json!([result("other", "1", "1")]),
            "names no device of",
        ),
        (
            "/status/allocation/devices/results/0/pool",
            json!("n2"),
            "`status.allocation.devices.results[0].pool` is \"n2\", expected \"n1\"",
        ),
        (
            "/status/allocation/devices/results/0/device",
            json!("gpu"),
            "results[0].device` is \"gpu\", expected \"uplink\"",
        ),
        (
            "/status/allocation/devices/results/0/request",
            json!(7),
            "results[0].request` is 7, expected a name",
        ),
        (
            "/status/allocation/devices/results/0/consumedCapacity",
            json!(null),
            "results[0].consumedCapacity` is null, expected a table: the cluster needs the feature",
        ),
        (
            "/status/allocation/devices/results/0/consumedCapacity/egress",
            json!("100m"),
            "consumedCapacity.egress` is \"100m\", expected a quantity of whole bit/s",
        ),
        (
            "/status/allocation/devices/results/0/consumedCapacity/egress",
            json!(100),
            "consumedCapacity.egress` is 100, expected a quantity",
        ),
        (
            "/status/allocation/devices/results/0/consumedCapacity/egress",
            json!("101G"),
            "consumedCapacity.egress` of all results is 101000000000 bit/s, expected at most",
        ),
        (
            "/status/allocation/devices/results/0/consumedCapacity/egress",
            json!("0"),
            "`consumedCapacity` of all results is 0 bit/s, expected a rate in one direction",
        ),
        (
            "/status/allocation/devices/results/0/consumedCapacity/egress",
            json!("1k"),
            "consumedCapacity.egress` of all results is 1000 bit/s, expected at least 2500 bit/s: the",
        ),
        (
            results,
            json!([result(DRIVER, "60G", "0"), result(DRIVER, "60G", "0")]),
            "consumedCapacity.egress` of all results is 120000000000 bit/s, expected at most",
        ),
        (
            "/status/reservedFor",
            json!(null),
            "`status.reservedFor` is null, expected one pod",
        ),
        (
            "/status/reservedFor",
            json!([pod(json!("p1")), pod(json!("p2"))]),
            "expected one pod with its uid: a claim's rate is one pod's",
        ),
        (
            "/status/reservedFor",
            json!([pod(json!("../p"))]),
            "expected one pod",
        ),
        (
            "/status/reservedFor",
            json!([pod(json!(7))]),
            "expected one pod",
        ),
        (
            "/status/reservedFor/0",
            json!({ "apiGroup": "x.io", "resource": "pods", "uid": "p1" }),
            "expected one pod",
        ),
    ] {
        let mut wrong = right.clone();
        *wrong.pointer_mut(place).unwrap() = value;
        let error = read(&wrong, &asked("c1"), DRIVER, NODE).unwrap_err();
        assert!(error.contains(expected), "{place}: {error}");
        assert!(error.len() < 400, "{error}");
    }
    for (namespace, name, uid) in [
        ("default/../x", "a", "c1"),
        ("default", "", "c1"),
        ("default", "a?b", "c1"),
        ("default", "..", "c1"),
        ("default", "a", "../c1"),
        ("default", "a", ""),
    ] {
        let asked = proto::Claim {
            namespace: namespace.to_owned(),
            uid: uid.to_owned(),
            name: name.to_owned(),
        };
        read(&right, &asked, DRIVER, NODE).unwrap_err();
    }
}
