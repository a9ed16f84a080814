// SPDX-License-Identifier: MIT OR Apache-2.0
//! What configurations and results say, of all versions; random ones are refused, and nothing more.

use cni::config::{Class, Config, Rates, VERSIONS};
use cni::previous::check;
use host_config::Backend;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::call::{call, variables};

/// A table of a conflist as runtimes give it, with these keys.
pub fn conf(version: &str, psp: Value, bandwidth: Value) -> Value {
    json!({
        "cniVersion": version,
        "name": "pods",
        "type": "pspacer-cni",
        "capabilities": { "bandwidth": true },
        "psp": psp,
        "runtimeConfig": { "bandwidth": bandwidth },
        "prevResult": result(version),
    })
}

/// What the bridge plugin says.
pub fn result(version: &str) -> Value {
    json!({
        "cniVersion": version,
        "interfaces": [
            { "name": "cni0", "mac": "02:00:00:00:00:01" },
            { "name": "veth1", "mac": "02:00:00:00:00:02" },
            { "name": "eth0", "mac": "02:00:00:00:00:03", "sandbox": "/run/netns/one", "mtu": 1500 },
        ],
        "ips": [{ "interface": 2, "address": "10.1.0.5/16", "gateway": "10.1.0.1" }],
        "routes": [{ "dst": "0.0.0.0/0" }, { "dst": "2001:db8::/32", "gw": "2001:db8::1", "mtu": 1400 }],
        "dns": { "nameservers": ["10.1.0.1"] },
        "of others": [1, { "a": null }],
    })
}

fn read(conf: &Value) -> Config {
    Config::read(conf.to_string().as_bytes()).unwrap()
}

fn class(rate_bps: u64) -> Class {
    Class {
        rate_bps,
        ceil_bps: None,
        deadline_ns: None,
        txtime: None,
    }
}

#[test]
fn both_directions_of_each_version() {
    for version in VERSIONS {
        let bandwidth = json!({
            "ingressRate": 50_000_000, "ingressBurst": 2_147_483_647,
            "egressRate": 100_000_000, "egressBurst": 2_147_483_647,
        });
        let wanted = read(&conf(version, json!(null), bandwidth))
            .wanted(Rates::default())
            .unwrap();
        assert_eq!(wanted.egress, Some(class(100_000_000)));
        assert_eq!(wanted.ingress, Some(class(50_000_000)));
        assert_eq!(wanted.backend, None);
        let [note] = &wanted.notes[..] else {
            panic!("{:?}", wanted.notes);
        };
        assert!(note.contains("egressBurst 2147483647") && note.contains("are ignored"));
    }
}

/// containerd 1.6 writes the keys so, and the stock plugin takes them: readers in Go do not tell
/// capitals from small letters.
#[test]
fn a_key_may_have_capitals() {
    let bandwidth = json!({
        "IngressRate": 50_000_000, "IngressBurst": 4_294_967_295_u64,
        "EgressRate": 100_000_000, "EgressBurst": 4_294_967_295_u64,
    });
    let wanted = read(&conf("1.0.0", json!(null), bandwidth)).wanted(Rates::default());
    let wanted = wanted.unwrap();
    assert_eq!(wanted.egress, Some(class(100_000_000)));
    assert_eq!(wanted.ingress, Some(class(50_000_000)));
    assert_eq!(wanted.notes.len(), 1, "{:?}", wanted.notes);
    for (bandwidth, text) in [
        (
            json!({ "EgressRate": "fast" }),
            "`runtimeConfig.bandwidth.EgressRate` is \"fast\"",
        ),
        (json!({ "EgressRates": 1 }), "expected no such key"),
        (
            json!({ "EgressRate": 1, "egressRate": 2 }),
            "expected it once",
        ),
        (
            json!({ "ShapedSubnets": ["10.0.0.0/8"] }),
            "a pod has one rate",
        ),
    ] {
        let wanted = read(&conf("1.0.0", json!(null), bandwidth)).wanted(Rates::default());
        let error = wanted.unwrap_err();
        assert!(error.msg.contains(text), "{}", error.msg);
    }
}

#[test]
fn keys_of_the_plugin() {
    let psp = json!({
        "rate": "20mbit", "ceil": "30mbit", "deadline": "50ms", "backend": "edt",
    });
    // What the runtime says goes before the plugin's rate; 0 is no limit.
    for (bandwidth, egress_bps, ingress_bps) in [
        (json!(null), 20_000_000, None),
        (json!({ "egressRate": 0 }), 20_000_000, None),
        (
            json!({ "egressRate": 25_000_000, "ingressRate": 0 }),
            25_000_000,
            None,
        ),
        (
            json!({ "ingressRate": 7000, "unshapedSubnets": [] }),
            20_000_000,
            Some(7000),
        ),
    ] {
        let wanted = read(&conf("1.1.0", psp.clone(), bandwidth))
            .wanted(Rates::default())
            .unwrap();
        let egress = wanted.egress.unwrap();
        assert_eq!(egress.rate_bps, egress_bps);
        assert_eq!(egress.ceil_bps, Some(30_000_000));
        assert_eq!(egress.deadline_ns, Some(50_000_000));
        let ingress = wanted.ingress.as_ref();
        assert_eq!(ingress.map(|class| class.rate_bps), ingress_bps);
        assert!(ingress.is_none_or(|class| class.ceil_bps.is_none()));
        assert_eq!(wanted.backend, Some(Backend::Edt));
        assert!(wanted.notes.is_empty());
    }
    let launch = json!({ "rate": "1mbit", "txtime": "tai" });
    let wanted = read(&conf("1.0.0", launch, json!(null)))
        .wanted(Rates::default())
        .unwrap();
    assert_eq!(wanted.egress.unwrap().txtime.as_deref(), Some("tai"));
    let nothing = read(&conf("1.0.0", json!({}), json!({})))
        .wanted(Rates::default())
        .unwrap();
    assert_eq!((nothing.egress, nothing.ingress), (None, None));
}

#[test]
fn a_result_is_passed_on_as_it_is() {
    for version in VERSIONS {
        let previous = result(version);
        assert_eq!(check(&previous, version, "eth0").unwrap(), previous);
        let mut without = previous.clone();
        without.as_object_mut().unwrap().remove("cniVersion");
        assert_eq!(check(&without, version, "eth0").unwrap(), previous);
    }
    // Calico up to 3.30 names the host's end alone; another version says the same.
    let host = json!({ "cniVersion": "0.3.1", "interfaces": [{ "name": "cali1" }] });
    let passed = check(&host, "1.0.0", "eth0").unwrap();
    assert_eq!(passed["interfaces"], host["interfaces"]);
    assert_eq!(passed["cniVersion"], "1.0.0");
    // Without devices there is nothing to compare.
    let least = json!({ "cniVersion": "1.0.0" });
    assert_eq!(check(&least, "1.0.0", "eth0").unwrap(), least);
}

#[test]
fn a_call_with_nothing_to_pace_still_needs_its_namespace() {
    let conf = conf("1.0.0", json!(null), json!(null));
    let (code, msg) = call(conf.to_string().as_bytes(), &variables("ADD")).error();
    assert_eq!(code, 4);
    assert!(
        msg.contains("CNI_NETNS is \"/nowhere/ns\", expected the path"),
        "{msg}"
    );
}

#[test]
fn versions_are_said() {
    for version in ["0.1.0", "1.0.0", "1.1.0", "9.0.0"] {
        let input = json!({ "cniVersion": version }).to_string();
        let said = call(input.as_bytes(), &[("CNI_COMMAND", "VERSION")]);
        let answer: Value = serde_json::from_str(&said.out).unwrap();
        assert!(said.is_well);
        assert_eq!(answer["cniVersion"], version);
        assert_eq!(answer["supportedVersions"], json!(VERSIONS));
    }
}

/// Any JSON, with the keys and values that matter more often than chance has them.
fn any_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "1.0.0",
        "pods",
        "eth0",
        "veth1",
        "100mbit",
        "1ms",
        "tai",
        "edt",
        "10.0.0.1/8",
        "/x",
        "\u{0}",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "cniVersion",
        "name",
        "psp",
        "rate",
        "ceil",
        "deadline",
        "txtime",
        "backend",
        "budget",
        "ingress-budget",
        "runtimeConfig",
        "bandwidth",
        "ingressRate",
        "egressRate",
        "egressBurst",
        "unshapedSubnets",
        "prevResult",
        "interfaces",
        "sandbox",
        "ips",
        "address",
        "interface",
        "routes",
        "dst",
        "cni.dev/valid-attachments",
        "containerID",
        "ifname",
    ]);
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..8).prop_map(|entries| {
                let entries = entries.into_iter();
                Value::Object(entries.map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(testkit::properties())]

    /// Whatever comes, the answer is JSON, and nothing has changed: the namespace is not there.
    #[test]
    fn random_configurations_are_answered(
        value in any_json(),
        is_like_one in any::<bool>(),
        command in prop::sample::select(vec!["ADD", "CHECK", "VERSION", ""]),
        cut in 0usize..4000,
    ) {
        let mut value = value;
        if let (true, Some(table)) = (is_like_one, value.as_object_mut()) {
            let right = conf("1.1.0", json!({ "rate": "1mbit" }), json!({ "egressRate": 10_000 }));
            let right: Map<String, Value> = right.as_object().unwrap().clone();
            for (key, value) in right {
                table.entry(key).or_insert(value);
            }
        }
        let text = value.to_string();
        let cut = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        for input in [text.as_bytes(), &text.as_bytes()[..cut.unwrap_or(0)]] {
            let said = call(input, &variables(command));
            let answer: Result<Value, _> = serde_json::from_str(&said.out);
            prop_assert!(answer.is_ok_and(|answer| answer.is_object()), "{}", said.out);
            prop_assert!(!said.is_well || command == "VERSION");
        }
    }

    /// So are results.
    #[test]
    fn random_results_are_checked(value in any_json(), key in "(interfaces|ips|routes|dns)") {
        let mut previous = result("1.0.0");
        previous[key.as_str()] = value;
        if let Ok(passed) = check(&previous, "1.0.0", "eth0") {
            prop_assert_eq!(passed, previous);
        }
    }
}
