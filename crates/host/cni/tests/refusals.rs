// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is refused, with the number and the sentence that runtimes show: key, value, and what was
//! expected.

use serde_json::{Value, json};

use crate::call::{call, variables};
use crate::config::{conf, result};

fn refused(conf: &Value, command: &str) -> (u64, String) {
    call(conf.to_string().as_bytes(), &variables(command)).error()
}

fn right() -> Value {
    conf(
        "1.1.0",
        json!({ "rate": "1mbit" }),
        json!({ "egressRate": 2501 }),
    )
}

/// A place in the configuration, a value there, and the number and the beginning of the refusal.
type Wrong = (&'static str, Value, u64, &'static str);

fn values_of_psp() -> Vec<Wrong> {
    vec![
        (
            "/psp",
            json!("fast"),
            7,
            "`psp` is \"fast\", expected a table",
        ),
        (
            "/psp/rate",
            json!(5),
            7,
            "`psp.rate` is 5, expected a rate such as",
        ),
        (
            "/psp/rate",
            json!("101gbit"),
            7,
            "`psp.rate` is \"101gbit\", expected at most 100000000000 bit/s",
        ),
        (
            "/psp/rate",
            json!("2499bit"),
            7,
            "`psp.rate` is \"2499bit\", expected at least 2500 bit/s: the rate is so low that one",
        ),
        (
            "/psp/rat",
            json!("1mbit"),
            2,
            "`psp.rat` is \"1mbit\", expected no such key; did you mean `rate`?",
        ),
        (
            "/psp/deadline",
            json!("0s"),
            7,
            "`psp.deadline` is \"0s\", expected a time above 0",
        ),
        (
            "/psp/txtime",
            json!("utc"),
            7,
            "`psp.txtime` is \"utc\", expected \"monotonic\" or \"tai\"",
        ),
        (
            "/psp/backend",
            json!("tbf"),
            7,
            "`psp.backend` is \"tbf\", expected \"module\", \"bpf\", \"edt\" or \"auto\"",
        ),
        (
            "/psp/ceil",
            json!("2500bit"),
            7,
            "`psp.ceil` is 2500 bit/s, expected at least the rate of what the pod sends, 2501 bit/s",
        ),
    ]
}

fn values_of_runtimes() -> Vec<Wrong> {
    vec![
        (
            "/runtimeConfig",
            json!([]),
            7,
            "`runtimeConfig` is [], expected a table",
        ),
        (
            "/runtimeConfig/bandwidth",
            json!(1),
            7,
            "`runtimeConfig.bandwidth` is 1, expected a table",
        ),
        (
            "/runtimeConfig/bandwidth/egressRate",
            json!(-1),
            7,
            "`runtimeConfig.bandwidth.egressRate` is -1, expected bit/s as a whole number, or 0",
        ),
        (
            "/runtimeConfig/bandwidth/ingressRate",
            json!(100_000_000_001u64),
            7,
            "`runtimeConfig.bandwidth.ingressRate` is 100000000001, expected at most 100000000000",
        ),
        (
            "/runtimeConfig/bandwidth/egressRate",
            json!(1000),
            7,
            "`runtimeConfig.bandwidth.egressRate` is 1000, expected at least 2500 bit/s: the rate is",
        ),
        (
            "/runtimeConfig/bandwidth/egressBurst",
            json!("1mb"),
            7,
            "`runtimeConfig.bandwidth.egressBurst` is \"1mb\", expected bits as a whole number",
        ),
        (
            "/runtimeConfig/bandwidth/egresRate",
            json!(1),
            2,
            "`runtimeConfig.bandwidth.egresRate` is 1, expected no such key; did you mean",
        ),
        (
            "/runtimeConfig/bandwidth/shapedSubnets",
            json!(["10.0.0.0/8"]),
            7,
            "`runtimeConfig.bandwidth.shapedSubnets` is [\"10.0.0.0/8\"], expected none",
        ),
        (
            "/egressRate",
            json!(5),
            7,
            "`egressRate` is 5, expected it as `runtimeConfig.band",
        ),
        (
            "/name",
            json!("../pods"),
            7,
            "`name` is \"../pods\", expected a name",
        ),
        (
            "/cniVersion",
            json!("0.2.0"),
            1,
            "`cniVersion` is \"0.2.0\", expected one of 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0",
        ),
        (
            "/prevResult",
            json!(null),
            7,
            "`prevResult` is missing, expected one",
        ),
        (
            "/prevResult",
            json!([]),
            7,
            "`prevResult` is [], expected a table",
        ),
    ]
}

#[test]
fn values_of_the_configuration() {
    for (place, value, code, expected) in [values_of_psp(), values_of_runtimes()].concat() {
        let mut conf = right();
        let (table, key) = place.rsplit_once('/').unwrap();
        conf.pointer_mut(table).unwrap()[key] = value;
        for command in ["ADD", "CHECK"] {
            let (found, msg) = refused(&conf, command);
            assert!(msg.starts_with(expected), "{place}: {msg}");
            assert_eq!(found, code, "{place}");
        }
    }
    let mut both = right();
    both["psp"] = json!({ "rate": "1mbit", "txtime": "tai", "deadline": "1ms" });
    let (_, msg) = refused(&both, "ADD");
    assert_eq!(
        msg,
        "`psp.deadline` is \"1ms\", expected none with `psp.txtime`"
    );
}

#[test]
fn results_of_others() {
    for (place, value, expected) in [
        (
            "/interfaces",
            json!({}),
            "`prevResult.interfaces` is {}, expected a list",
        ),
        (
            "/interfaces",
            json!([1]),
            "`prevResult.interfaces` is 1, expected a list of tables",
        ),
        (
            "/interfaces/1/name",
            json!(""),
            "`prevResult.interfaces[1].name` is \"\", expected a device's name",
        ),
        (
            "/interfaces/2/sandbox",
            json!(7),
            "`prevResult.interfaces[2].sandbox` is 7, expected a text",
        ),
        (
            "/interfaces/2/name",
            json!("net1"),
            "`prevResult.interfaces` is [",
        ),
        (
            "/ips/0/address",
            json!("10.1.0.5"),
            "`prevResult.ips[0].address` is \"10.1.0.5\", expected an address and its prefix",
        ),
        (
            "/ips/0/address",
            json!("10.1.0.5/33"),
            "`prevResult.ips[0].address` is",
        ),
        (
            "/ips/0/interface",
            json!(3),
            "`prevResult.ips[0].interface` is 3, expected an index of `prevResult.interfaces`",
        ),
        (
            "/ips/0/gateway",
            json!("here"),
            "`prevResult.ips[0].gateway` is \"here\"",
        ),
        (
            "/routes/0/dst",
            json!("any"),
            "`prevResult.routes[0].dst` is \"any\", expected",
        ),
        (
            "/routes/1/gw",
            json!(1),
            "`prevResult.routes[1].gw` is 1, expected an address",
        ),
        (
            "/dns",
            json!([]),
            "`prevResult.dns` is [], expected a table",
        ),
        (
            "/cniVersion",
            json!("0.2.0"),
            "`prevResult.cniVersion` is \"0.2.0\", expected one of 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0",
        ),
    ] {
        let mut previous = result("1.1.0");
        *previous.pointer_mut(place).unwrap() = value;
        let mut conf = right();
        conf["prevResult"] = previous;
        let (code, msg) = refused(&conf, "ADD");
        assert!(msg.starts_with(expected), "{place}: {msg}");
        assert_eq!(code, if place == "/cniVersion" { 1 } else { 7 });
    }
}

#[test]
fn variables_of_the_environment() {
    let input = right().to_string();
    let long = "x".repeat(201);
    for (name, value, expected) in [
        (
            "CNI_COMMAND",
            "add",
            "CNI_COMMAND is \"add\", expected ADD, DEL",
        ),
        (
            "CNI_CONTAINERID",
            "-x",
            "CNI_CONTAINERID is \"-x\", expected an id",
        ),
        (
            "CNI_CONTAINERID",
            "a/b",
            "CNI_CONTAINERID is \"a/b\", expected an id",
        ),
        ("CNI_CONTAINERID", &long, "CNI_CONTAINERID is \"xxx"),
        (
            "CNI_IFNAME",
            "sixteen-letters-",
            "CNI_IFNAME is \"sixteen-letters-\", expected a name",
        ),
        ("CNI_IFNAME", "..", "CNI_IFNAME is \"..\", expected a name"),
        (
            "CNI_IFNAME",
            "a b",
            "CNI_IFNAME is \"a b\", expected a name",
        ),
        ("CNI_NETNS", "", "CNI_NETNS is not set, expected the path"),
        // Of this file system, and of this thread.
        (
            "CNI_NETNS",
            "/proc/version",
            "CNI_NETNS is \"/proc/version\", expected the path",
        ),
        (
            "CNI_NETNS",
            "/proc/self/ns/net",
            "CNI_NETNS is \"/proc/self/ns/net\", expected the path of a network namespace that is \
             not the host's",
        ),
    ] {
        let mut variables = variables("ADD");
        for variable in variables.iter_mut().filter(|variable| variable.0 == name) {
            variable.1 = value;
        }
        let (code, msg) = call(input.as_bytes(), &variables).error();
        assert!(msg.starts_with(expected), "{msg}");
        assert_eq!(code, 4);
    }
    let (code, msg) = call(input.as_bytes(), &[]).error();
    assert_eq!(
        (code, msg.as_str()),
        (
            4,
            "CNI_COMMAND is not set, expected ADD, DEL, CHECK, STATUS, GC or VERSION"
        )
    );
}

#[test]
fn what_is_no_configuration() {
    let deep = "[".repeat(100_000);
    for (input, code) in [
        ("", 6),
        ("{", 6),
        ("[1]", 6),
        (deep.as_str(), 6),
        ("{}", 1),
        (r#"{"cniVersion": 1}"#, 1),
        (r#"{"cniVersion": "1.0.0"}"#, 7),
    ] {
        for command in ["ADD", "DEL", "CHECK", "GC", "STATUS"] {
            let (found, _) = call(input.as_bytes(), &variables(command)).error();
            assert_eq!(found, code, "{input:.9}");
        }
    }
}

#[test]
fn what_gc_keeps_must_be_known() {
    for (value, expected) in [
        (
            json!({}),
            "`cni.dev/valid-attachments` is {}, expected a list of tables",
        ),
        (
            json!([{ "containerID": "a" }]),
            "`cni.dev/valid-attachments` is {\"cont",
        ),
        (
            json!([{ "containerID": "../a", "ifname": "eth0" }]),
            "`cni.dev/valid-attach",
        ),
    ] {
        let mut conf = right();
        conf["cni.dev/valid-attachments"] = value;
        let (code, msg) = refused(&conf, "GC");
        assert!(msg.starts_with(expected), "{msg}");
        assert_eq!(code, 7);
    }
}
