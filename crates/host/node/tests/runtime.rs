// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls a container runtime as the kubelet does: CRI, `runtime.v1`. Numbers of fields are the
//! protocol's.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::kubelet::call;

const SOCKET: &str = "/run/containerd/containerd.sock";
const SERVICE: &str = "/runtime.v1.RuntimeService";
const IMAGE: &str = "localhost/pause:1";

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(uint32, tag = "4")]
    attempt: u32,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct SandboxConfig {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Metadata>,
    #[prost(string, tag = "2")]
    hostname: String,
    #[prost(string, tag = "3")]
    log_directory: String,
    #[prost(map = "string, string", tag = "7")]
    annotations: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct RunRequest {
    #[prost(message, optional, tag = "1")]
    config: Option<SandboxConfig>,
}

/// The id of a sandbox or of a container: what several requests and answers consist of.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Id {
    #[prost(string, tag = "1")]
    id: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Nothing {}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct ContainerMetadata {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Image {
    #[prost(string, tag = "1")]
    image: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct ContainerConfig {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "2")]
    image: Option<Image>,
    #[prost(string, repeated, tag = "3")]
    command: Vec<String>,
    #[prost(string, tag = "11")]
    log_path: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct CreateRequest {
    #[prost(string, tag = "1")]
    sandbox: String,
    #[prost(message, optional, tag = "2")]
    config: Option<ContainerConfig>,
    #[prost(message, optional, tag = "3")]
    sandbox_config: Option<SandboxConfig>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Condition {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(bool, tag = "2")]
    status: bool,
    #[prost(string, tag = "4")]
    message: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct RuntimeStatus {
    #[prost(message, repeated, tag = "1")]
    conditions: Vec<Condition>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    status: Option<RuntimeStatus>,
}

fn ask<Q, A>(method: &str, request: Q) -> A
where
    Q: prost::Message + 'static,
    A: prost::Message + Default + 'static,
{
    let answer = call(Path::new(SOCKET), &format!("{SERVICE}/{method}"), request);
    answer.unwrap_or_else(|status| panic!("{method}: {}", status.message()))
}

fn pod(name: &str, rates: [&str; 2]) -> SandboxConfig {
    let of = |direction: &str| format!("kubernetes.io/{direction}-bandwidth");
    let [egress, ingress] = rates.map(str::to_owned);
    SandboxConfig {
        metadata: Some(Metadata {
            name: format!("web-{name}"),
            uid: format!("uid-{name}"),
            namespace: "default".to_owned(),
            attempt: 0,
        }),
        hostname: name.to_owned(),
        log_directory: format!("/tmp/logs-{name}"),
        annotations: HashMap::from([(of("egress"), egress), (of("ingress"), ingress)]),
    }
}

/// Waits until the runtime and its network are ready.
fn wait_until_ready() {
    let mut found = StatusResponse::default();
    for _ in 0..50 {
        found = ask("Status", Nothing {});
        let conditions = found.status.iter().flat_map(|status| &status.conditions);
        if conditions.clone().count() >= 2 && conditions.clone().all(|one| one.status) {
            return;
        }
        sleep(Duration::from_millis(200));
    }
    panic!("{found:?}");
}

/// Makes a container that sends to a port from a time on until another, and starts it.
fn start(sandbox: String, name: &str, [port, start_ns, stop_ns]: [&str; 3]) {
    let script = format!(
        "echo proto=tcp,to=10.0.0.2:{port},congestion=cubic,start={start_ns} >/flows; \
         exec /bin/psp-send --stop-ns {stop_ns} --flows /flows"
    );
    let command = ["/bin/busybox", "sh", "-c", &script].map(str::to_owned);
    let config = ContainerConfig {
        metadata: Some(ContainerMetadata {
            name: "sender".to_owned(),
        }),
        image: Some(Image {
            image: IMAGE.to_owned(),
        }),
        command: command.to_vec(),
        log_path: "sender.log".to_owned(),
    };
    let request = CreateRequest {
        sandbox,
        config: Some(config),
        sandbox_config: Some(pod(name, ["", ""])),
    };
    let container: Id = ask("CreateContainer", request);
    let _: Nothing = ask("StartContainer", container);
}

/// Makes the call that `words` say; the id of a pod's sandbox is kept in a file.
pub fn make(words: &str) {
    let words: Vec<&str> = words.split_whitespace().collect();
    let kept = |name: &str| format!("/tmp/sandbox.{name}");
    let sandbox = |name: &str| Id {
        id: fs::read_to_string(kept(name)).unwrap(),
    };
    match words[..] {
        ["status"] => wait_until_ready(),
        ["run", name, egress, ingress] => {
            let config = Some(pod(name, [egress, ingress]));
            let made: Id = ask("RunPodSandbox", RunRequest { config });
            fs::write(kept(name), made.id).unwrap();
        }
        ["start", name, port, start_ns, stop_ns] => {
            start(sandbox(name).id, name, [port, start_ns, stop_ns]);
        }
        ["stop", name] => {
            let _: Nothing = ask("StopPodSandbox", sandbox(name));
        }
        ["remove", name] => {
            let _: Nothing = ask("RemovePodSandbox", sandbox(name));
        }
        _ => panic!("{words:?}"),
    }
}
