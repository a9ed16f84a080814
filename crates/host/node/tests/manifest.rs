// SPDX-License-Identifier: MIT OR Apache-2.0
//! The agent's manifest: its shape, as far as that can be told without a cluster, the rights that it
//! takes, and the example. Python reads the YAML.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use crate::claim::DRIVER;

const FOLDER: &str = "../../../packaging/kubernetes";
const TO_JSON: &str =
    "import json, sys, yaml\nprint(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
/// The agent's pod.
const SPEC: &str = "/spec/template/spec";
const CONTAINER: &str = "/spec/template/spec/containers/0";

fn objects(name: &str) -> Vec<Value> {
    let path = testkit::crate_folder().join(FOLDER).join(name);
    // `make test` installs python3-yaml.
    let out = Command::new("python3")
        .args(["-c", TO_JSON])
        .arg(path)
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    serde_json::from_slice(&out.stdout).unwrap()
}

fn of_kind<'a>(all: &'a [Value], kind: &str) -> &'a Value {
    let mut found = all.iter().filter(|object| object["kind"] == kind);
    let one = found.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(found.next().is_none(), "two of {kind}");
    one
}

/// Returns what is wrong with the agent's objects.
#[allow(clippy::too_many_lines, reason = "a table")]
fn faults(all: &[Value]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |kind: &str, place: &str, expected: &Value| {
        let found = of_kind(all, kind).pointer(place).unwrap_or(&Value::Null);
        if found != expected {
            faults.push(format!("{kind}{place}: expected {expected}, found {found}"));
        }
    };
    let rule = |group: &str, resource: &str, verbs: &[&str]| json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs });
    let rules = json!([
        rule("resource.k8s.io", "resourceclaims", &["get"]),
        rule(
            "resource.k8s.io",
            "resourceslices",
            &["create", "get", "update"]
        ),
        rule("", "nodes", &["get"]),
    ]);
    let plugin = format!("/var/lib/kubelet/plugins/{DRIVER}");
    let volume = |name: &str, path: &str, kind: &str| json!({ "name": name, "hostPath": { "path": path, "type": kind } });
    let mount = |name: &str, path: &str| json!({ "name": name, "mountPath": path });
    let name = json!("pspacer-node");
    let account = json!([{ "kind": "ServiceAccount", "name": "pspacer-node",
                           "namespace": "kube-system" }]);
    let labels = json!({ "app.kubernetes.io/name": "pspacer-node" });
    let registry = "/var/lib/kubelet/plugins_registry";
    for (kind, place, expected) in [
        ("ServiceAccount", "/metadata/name", name.clone()),
        (
            "ServiceAccount",
            "/automountServiceAccountToken",
            json!(false),
        ),
        ("ClusterRole", "/rules", rules),
        ("ClusterRoleBinding", "/roleRef/kind", json!("ClusterRole")),
        ("ClusterRoleBinding", "/roleRef/name", name.clone()),
        ("ClusterRoleBinding", "/subjects", account),
        ("DeviceClass", "/apiVersion", json!("resource.k8s.io/v1")),
        ("DeviceClass", "/metadata/name", json!(DRIVER)),
        (
            "DeviceClass",
            "/spec/selectors",
            json!([{ "cel": { "expression": format!("device.driver == \"{DRIVER}\"") } }]),
        ),
        ("DaemonSet", "/metadata/namespace", json!("kube-system")),
        ("DaemonSet", "/spec/selector/matchLabels", labels.clone()),
        ("DaemonSet", "/spec/template/metadata/labels", labels),
        ("DaemonSet", "/spec/template/spec/serviceAccountName", name),
        ("DaemonSet", "/spec/template/spec/hostNetwork", json!(true)),
        ("DaemonSet", "/spec/template/spec/hostPID", Value::Null),
        (
            "DaemonSet",
            "/spec/template/spec/initContainers",
            Value::Null,
        ),
        ("DaemonSet", "/spec/template/spec/containers/1", Value::Null),
        (
            "DaemonSet",
            "/spec/template/spec/securityContext/seccompProfile/type",
            json!("RuntimeDefault"),
        ),
        (
            "DaemonSet",
            "/spec/template/spec/containers/0/securityContext",
            json!({ "runAsUser": 0, "runAsGroup": 0, "readOnlyRootFilesystem": true,
                    "capabilities": { "drop": ["ALL"], "add": ["NET_ADMIN", "SYS_ADMIN"] } }),
        ),
        (
            "DaemonSet",
            "/spec/template/spec/containers/0/env",
            json!([{ "name": "NODE_NAME",
                     "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } },
                   { "name": "POD_UID",
                     "valueFrom": { "fieldRef": { "fieldPath": "metadata.uid" } } }]),
        ),
        (
            "DaemonSet",
            "/spec/updateStrategy",
            json!({ "type": "RollingUpdate",
                    "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } }),
        ),
        // Each path is the host's: the kubelet is told one, and records name others.
        (
            "DaemonSet",
            "/spec/template/spec/containers/0/volumeMounts",
            json!([
                mount("registry", registry),
                mount("plugin", &plugin),
                mount("records", "/run/pspacer"),
                { "name": "netns", "mountPath": "/run/netns", "readOnly": true,
                  "mountPropagation": "HostToContainer" },
            ]),
        ),
        (
            "DaemonSet",
            "/spec/template/spec/volumes",
            json!([
                volume("registry", registry, "Directory"),
                volume("plugin", &plugin, "DirectoryOrCreate"),
                volume("records", "/run/pspacer", "DirectoryOrCreate"),
                volume("netns", "/run/netns", "DirectoryOrCreate"),
            ]),
        ),
    ] {
        check(kind, place, &expected);
    }
    let known = |place: &str, expected: &[&str], faults: &mut Vec<String>| {
        let found = of_kind(all, "DaemonSet").pointer(place);
        let found: BTreeSet<&str> = found
            .and_then(Value::as_object)
            .map(|table| table.keys().map(String::as_str).collect())
            .unwrap_or_default();
        let expected: BTreeSet<&str> = expected.iter().copied().collect();
        faults.extend(
            found
                .difference(&expected)
                .map(|key| format!("{place}/{key}: expected no such key")),
        );
    };
    let pod = [
        "hostNetwork",
        "tolerations",
        "priorityClassName",
        "nodeSelector",
        "serviceAccountName",
        "automountServiceAccountToken",
        "enableServiceLinks",
        "terminationGracePeriodSeconds",
        "securityContext",
        "containers",
        "volumes",
    ];
    known(SPEC, &pod, &mut faults);
    let container = [
        "name",
        "image",
        "imagePullPolicy",
        "command",
        "args",
        "env",
        "securityContext",
        "resources",
        "volumeMounts",
    ];
    known(CONTAINER, &container, &mut faults);
    faults
}

#[test]
fn the_agent_has_the_least_rights() {
    let all = objects("pspacer-node.yaml");
    assert_eq!(all.len(), 5);
    assert_eq!(faults(&all), Vec::<String>::new());
    // What is broken is seen.
    for (kind, place, key, value) in [
        ("ClusterRole", "/rules/0", "verbs", json!(["get", "list"])),
        (
            "ClusterRole",
            "/rules/2",
            "resources",
            json!(["nodes", "secrets"]),
        ),
        ("DaemonSet", SPEC, "hostPID", json!(true)),
        ("DaemonSet", SPEC, "hostIPC", json!(true)),
        ("DaemonSet", CONTAINER, "ports", json!([])),
        (
            "DaemonSet",
            "/spec/template/spec/containers/0/securityContext",
            "privileged",
            json!(true),
        ),
        (
            "DaemonSet",
            "/spec/template/spec/volumes/2/hostPath",
            "path",
            json!("/run"),
        ),
        ("DeviceClass", "/metadata", "name", json!("another")),
    ] {
        let mut broken = all.clone();
        let object = broken
            .iter_mut()
            .find(|object| object["kind"] == kind)
            .unwrap();
        object.pointer_mut(place).unwrap()[key] = value;
        assert_eq!(
            faults(&broken).len(),
            if key == "hostPID" { 2 } else { 1 },
            "{place}/{key}"
        );
    }
}

/// The program takes the arguments of the manifest: it gets as far as to ask for a pod's variables.
#[test]
fn the_agents_arguments_are_its_own() {
    let all = objects("pspacer-node.yaml");
    let args = of_kind(&all, "DaemonSet")
        .pointer("/spec/template/spec/containers/0/args")
        .unwrap();
    let args = args
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap());
    let out = Command::new(crate::agent::program())
        .args(args)
        .env("NODE_NAME", "n1")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(
        said.contains("KUBERNETES_SERVICE_HOST is not set"),
        "{said}"
    );
}

#[test]
fn the_example_asks_for_what_the_agent_has() {
    let all = objects("claim-example.yaml");
    let template = of_kind(&all, "ResourceClaimTemplate");
    assert_eq!(
        template["spec"],
        json!({ "spec": { "devices": { "requests": [{
            "name": "net",
            "exactly": {
                "deviceClassName": DRIVER,
                "capacity": { "requests": { "egress": "100M", "ingress": "50M" } },
            },
        }] } } })
    );
    let pod = of_kind(&all, "Pod");
    let claim = &pod["spec"]["resourceClaims"][0];
    assert_eq!(
        claim["resourceClaimTemplateName"],
        template["metadata"]["name"]
    );
    let uses = pod
        .pointer("/spec/containers/0/resources/claims/0/name")
        .unwrap();
    assert_eq!(*uses, claim["name"]);
}
