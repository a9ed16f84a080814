// SPDX-License-Identifier: MIT OR Apache-2.0
//! The DaemonSet: its shape, as far as that can be told without a cluster, the rights that it takes,
//! and what it does on a node. Python reads the YAML; without its module `yaml` nothing is checked.

#![allow(clippy::print_stdout, reason = "tests say what they leave out")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

const FILE: &str = "../../../packaging/kubernetes/pspacer-cni.yaml";
const TO_JSON: &str =
    "import json, sys, yaml\nprint(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";

/// Returns the only object of the file.
fn object() -> Value {
    let python = |script: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
        Command::new("python3")
            .args(["-c", script])
            .arg(path)
            .output()
    };
    // `make test` installs python3-yaml.
    let out = python(TO_JSON).unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
    let all: Vec<Value> = serde_json::from_slice(&out.stdout).unwrap();
    let [object] = &all[..] else {
        panic!("expected one object: {all:#?}");
    };
    object.clone()
}

/// Keys that Kubernetes has at a place (apps/v1), of those that are of use here.
const KEYS: &[(&str, &[&str])] = &[
    ("", &["apiVersion", "kind", "metadata", "spec"]),
    ("/metadata", &["name", "namespace", "labels"]),
    ("/spec", &["selector", "updateStrategy", "template"]),
    ("/spec/selector", &["matchLabels"]),
    ("/spec/updateStrategy", &["type"]),
    ("/spec/template", &["metadata", "spec"]),
    ("/spec/template/metadata", &["labels"]),
    (
        "/spec/template/spec",
        &[
            "hostNetwork",
            "tolerations",
            "priorityClassName",
            "nodeSelector",
            "automountServiceAccountToken",
            "enableServiceLinks",
            "terminationGracePeriodSeconds",
            "securityContext",
            "initContainers",
            "containers",
            "volumes",
        ],
    ),
    ("/spec/template/spec/securityContext", &["seccompProfile"]),
    ("/spec/template/spec/volumes/0", &["name", "hostPath"]),
    ("/spec/template/spec/volumes/0/hostPath", &["path", "type"]),
];
const CONTAINER: &[&str] = &[
    "name",
    "image",
    "imagePullPolicy",
    "command",
    "securityContext",
    "resources",
    "volumeMounts",
];
const RIGHTS: &[&str] = &[
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "allowPrivilegeEscalation",
    "readOnlyRootFilesystem",
    "capabilities",
];

fn unknown(place: &str, found: &Value, known: &[&str], faults: &mut Vec<String>) {
    match found.as_object() {
        Some(table) => faults.extend(
            table
                .keys()
                .filter(|key| !known.contains(&key.as_str()))
                .map(|key| format!("{place}/{key}: expected no such key")),
        ),
        None => faults.push(format!("{place}: expected a table")),
    }
}

/// Returns what is wrong with it.
fn faults(set: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let at = |place: &str| set.pointer(place).unwrap_or(&Value::Null);
    for (place, known) in KEYS {
        unknown(place, at(place), known, &mut faults);
    }
    let labels = at("/metadata/labels");
    for (place, expected) in [
        ("/apiVersion", &json!("apps/v1")),
        ("/kind", &json!("DaemonSet")),
        ("/spec/selector/matchLabels", labels),
        ("/spec/template/metadata/labels", labels),
        (
            "/spec/template/spec/automountServiceAccountToken",
            &json!(false),
        ),
        (
            "/spec/template/spec/securityContext/seccompProfile/type",
            &json!("RuntimeDefault"),
        ),
        (
            "/spec/template/spec/volumes",
            &json!([{ "name": "cni-bin",
                      "hostPath": { "path": "/opt/cni/bin", "type": "Directory" } }]),
        ),
        (
            "/spec/template/spec/initContainers/0/volumeMounts",
            &json!([{ "name": "cni-bin", "mountPath": "/host/cni-bin" }]),
        ),
        (
            "/spec/template/spec/containers/0/volumeMounts",
            &Value::Null,
        ),
        (
            "/spec/template/spec/containers/0/securityContext/runAsNonRoot",
            &json!(true),
        ),
        ("/spec/template/spec/initContainers/1", &Value::Null),
        ("/spec/template/spec/containers/1", &Value::Null),
    ] {
        if at(place) != expected {
            faults.push(format!("{place}: expected {expected}, found {}", at(place)));
        }
    }
    let mut images = BTreeSet::new();
    for kind in ["initContainers", "containers"] {
        let place = format!("/spec/template/spec/{kind}/0");
        let container = at(&place);
        unknown(&place, container, CONTAINER, &mut faults);
        let rights = &container["securityContext"];
        unknown(&place, rights, RIGHTS, &mut faults);
        for (key, expected) in [
            ("allowPrivilegeEscalation", json!(false)),
            ("readOnlyRootFilesystem", json!(true)),
            ("capabilities", json!({ "drop": ["ALL"] })),
        ] {
            if rights[key] != expected {
                faults.push(format!("{place}: {key}: expected {expected}"));
            }
        }
        images.insert(container["image"].to_string());
    }
    if images.len() != 1 {
        faults.push(format!("images: expected one, found {images:?}"));
    }
    faults
}

#[test]
fn the_daemon_set_has_the_least_rights() {
    let set = object();
    assert_eq!(faults(&set), Vec::<String>::new());
    // What is broken is seen.
    for (place, key, value) in [
        ("", "kind", json!("Deployment")),
        ("/spec/template/spec", "hostPID", json!(true)),
        ("/spec/template/spec", "serviceAccountName", json!("admin")),
        ("/spec/template/metadata/labels", "a", json!("b")),
        (
            "/spec/template/spec/initContainers/0/securityContext",
            "privileged",
            json!(true),
        ),
        (
            "/spec/template/spec/initContainers/0/securityContext/capabilities",
            "add",
            json!(["NET_ADMIN"]),
        ),
        ("/spec/template/spec/volumes/0/hostPath", "path", json!("/")),
        (
            "/spec/template/spec/containers/0",
            "volumeMounts",
            json!([{ "name": "cni-bin", "mountPath": "/host" }]),
        ),
        (
            "/spec/template/spec/containers/0",
            "image",
            json!("another"),
        ),
    ] {
        let mut broken = set.clone();
        broken.pointer_mut(place).unwrap()[key] = value;
        assert_eq!(faults(&broken).len(), 1, "{place}/{key}");
    }
}

#[test]
fn the_plugin_is_copied_in_one_step() {
    let set = object();
    let command = set
        .pointer("/spec/template/spec/initContainers/0/command")
        .and_then(Value::as_array)
        .unwrap();
    let words: Vec<&str> = command.iter().map(|word| word.as_str().unwrap()).collect();
    let [shell, flags, script] = words[..] else {
        panic!("{words:?}");
    };
    let folder = tempfile::tempdir().unwrap();
    let (image, node) = (folder.path().join("image"), folder.path().join("node"));
    fs::create_dir(&image).unwrap();
    fs::create_dir(&node).unwrap();
    fs::write(image.join("pspacer-cni"), "new").unwrap();
    let installed = node.join("pspacer-cni");
    fs::write(&installed, "old").unwrap();
    // One that is just running stays whole.
    let running = fs::File::open(&installed).unwrap();
    let script = script
        .replace("/usr/lib/cni", image.to_str().unwrap())
        .replace("/host/cni-bin", node.to_str().unwrap());
    let status = Command::new(shell).args([flags, &script]).status().unwrap();
    assert!(status.success());
    assert_eq!(fs::read_to_string(&installed).unwrap(), "new");
    let mode = fs::metadata(&installed).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    assert_eq!(std::io::read_to_string(running).unwrap(), "old");
    assert_eq!(fs::read_dir(&node).unwrap().count(), 1);
    // A failure is one: the pod does not go on as if it were there.
    fs::remove_file(image.join("pspacer-cni")).unwrap();
    let status = Command::new(shell).args([flags, &script]).status().unwrap();
    assert!(!status.success());
    assert_eq!(fs::read_to_string(&installed).unwrap(), "new");
}
