// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ResourceSlice keeps to the rules of its type.

use cni::config::Rates;
use node::slice::Owner;
use serde_json::{Value, json};

use crate::claim::{DRIVER, NODE};

pub fn owner() -> Owner {
    Owner {
        driver: DRIVER.to_owned(),
        node: NODE.to_owned(),
        interface: Some("ens1".to_owned()),
        line_mbps: Some(10_000),
    }
}

fn rates(egress_bps: u64, ingress_bps: u64) -> Rates {
    Rates {
        egress_bps,
        ingress_bps,
    }
}

#[test]
fn a_slice_as_the_api_wants_it() {
    let owner = owner();
    let name = owner.slice().unwrap();
    assert_eq!(name, "n1-bandwidth.pspacer.internal");
    let devices = owner.devices(rates(9_000_000_999, 0));
    let expected = json!({
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {
            "name": name,
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u",
                                  "controller": true }],
        },
        "spec": {
            "driver": DRIVER,
            "nodeName": "n1",
            "pool": { "name": "n1", "generation": 1, "resourceSliceCount": 1 },
            "devices": [{
                "name": "uplink",
                "allowMultipleAllocations": true,
                "attributes": { "interface": { "string": "ens1" }, "lineMbps": { "int": 10000 } },
                "capacity": {
                    "egress": {
                        "value": "9000000000",
                        "requestPolicy": {
                            "default": "0",
                            "validRange": { "min": "0", "max": "9000000000", "step": "2500" },
                        },
                    },
                    "ingress": { "value": "0" },
                },
            }],
        },
    });
    let object = owner.object(&name, &devices, None, Some("u"));
    assert_eq!(object, expected);
    // The next one takes its place.
    let mut before = object.clone();
    before["metadata"]["resourceVersion"] = json!("77");
    before["spec"]["pool"]["generation"] = json!(41);
    let next = owner.object(&name, &devices, Some(&before), None);
    assert_eq!(
        next["metadata"],
        json!({ "name": name, "resourceVersion": "77" })
    );
    assert_eq!(next["spec"]["pool"]["generation"], 42);
    // A pod has one class, of at most 100 Gbit/s.
    let fast = owner.devices(rates(400_000_000_000, 1));
    let place = "/0/capacity/egress/requestPolicy/validRange/max";
    assert_eq!(fast.pointer(place), Some(&json!("100000000000")));
}

#[test]
fn what_the_api_writes_in_its_own_way_is_the_same() {
    let owner = owner();
    let devices = owner.devices(rates(9_000_000_000, 5_000));
    let mut found = owner.object("x", &devices, None, None);
    let capacity = "/spec/devices/0/capacity";
    found.pointer_mut(capacity).unwrap()["egress"] = json!({
        "value": "9G",
        "requestPolicy": { "default": "0",
            "validRange": { "min": "0", "max": "9G", "step": "2500" } },
    });
    assert_eq!(owner.has(&found, &devices), Ok(true));
    let has = |place: &str, value: Value| {
        let mut other = found.clone();
        *other.pointer_mut(place).unwrap() = value;
        owner.has(&other, &devices)
    };
    assert_eq!(
        has(&format!("{capacity}/egress/value"), json!("8G")),
        Ok(false)
    );
    assert_eq!(
        has("/spec/devices/0/attributes/lineMbps/int", json!(1)),
        Ok(false)
    );
    assert_eq!(has("/spec/pool/resourceSliceCount", json!(2)), Ok(false));
    let error = has("/spec/driver", json!("other")).unwrap_err();
    assert!(
        error.contains("is \"other\", expected \"bandwidth"),
        "{error}"
    );
    has("/spec/nodeName", json!(null)).unwrap_err();
}

#[test]
fn names_are_checked() {
    let long = "a".repeat(64);
    for (driver, node) in [
        ("", "n1"),
        ("A.b", "n1"),
        (long.as_str(), "n1"),
        ("a/b", "n1"),
        ("a.", "n1"),
        (DRIVER, ""),
        (DRIVER, "n_1"),
    ] {
        let mut owner = owner();
        (owner.driver, owner.node) = (driver.to_owned(), node.to_owned());
        owner.slice().unwrap_err();
    }
}
