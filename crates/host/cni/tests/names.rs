// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose a class is: what a runtime says of a pod, and where it is shown.

use cni::ends::End;
use cni::environment::{Attachment, PodName};
use cni::record::Records;
use host_config::{ClassNames, Host};
use tcpsp::Handle;

use crate::budget::record;
use crate::call::{call, variables};
use crate::config::conf;

fn read(args: Option<&str>) -> Result<Option<String>, String> {
    let mut variable = |name: &str| args.filter(|_| name == "CNI_ARGS").map(str::to_owned);
    let pod = PodName::read(&mut variable).map_err(|error| error.msg)?;
    Ok(pod.map(|pod| pod.text()))
}

#[test]
fn a_pod_has_a_name_if_the_runtime_says_both() {
    let long = "x".repeat(253);
    let of_long = format!("K8S_POD_NAMESPACE={long};K8S_POD_NAME={long}");
    let long = format!("{long}/{long}");
    for (args, name) in [
        (None, None),
        (Some(""), None),
        (Some("IgnoreUnknown=1;a;;=;K8S_POD_NAME=web"), None),
        (Some("K8S_POD_NAMESPACE=default;K8S_POD_NAME="), None),
        (
            Some("IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0.x;K8S_POD_UID=/"),
            Some("default/web-0.x"),
        ),
        (Some(&of_long), Some(long.as_str())),
    ] {
        assert_eq!(read(args).unwrap().as_deref(), name, "{args:?}");
    }
}

#[test]
fn what_is_no_name_is_refused() {
    let long = "x".repeat(254);
    for value in ["../etc", "-web", "a b", "a\nb", "\u{e9}", long.as_str()] {
        for key in ["K8S_POD_NAME", "K8S_POD_NAMESPACE"] {
            let other = if key == "K8S_POD_NAME" {
                "K8S_POD_NAMESPACE"
            } else {
                "K8S_POD_NAME"
            };
            let args = format!("{other}=right;{key}={value}");
            let msg = read(Some(&args)).unwrap_err();
            assert!(
                msg.starts_with(&format!("{key} of CNI_ARGS is \"")),
                "{msg}"
            );
            assert!(msg.contains(", expected a name of letters"), "{msg}");
        }
    }
    // ADD refuses it before it looks for the namespace; others do not need it.
    let input = conf("1.0.0", serde_json::json!(null), serde_json::json!(null)).to_string();
    for (command, begin) in [("ADD", "K8S_POD_NAME of"), ("CHECK", "CNI_NETNS is")] {
        let mut variables = variables(command).to_vec();
        variables.push(("CNI_ARGS", "K8S_POD_NAME=/"));
        let (code, msg) = call(input.as_bytes(), &variables).error();
        assert!(msg.starts_with(begin), "{msg}");
        assert_eq!(code, 4);
    }
}

#[test]
fn the_hosts_end_is_named_by_its_pod() {
    let folder = tempfile::tempdir().unwrap();
    let records = Records::new(folder.path(), "pods");
    let end = |name: &str, index: u8| End {
        name: name.to_owned(),
        index: index.into(),
        address: vec![2, 0, 0, 0, 0, index],
    };
    for (container, device, index, ingress, pod) in [
        // Its device has another name by now.
        ("a", "veth9", 7, 5, Some("web-0")),
        // Its device is gone, and another has its name.
        ("b", "veth2", 17, 5, Some("web-1")),
        // Nothing is paced on the host, and no pod is named.
        ("c", "veth3", 9, 0, Some("web-2")),
        ("d", "veth4", 10, 5, None),
    ] {
        let mut record = record(container, 5, ingress);
        record.host = Some(end(device, index));
        record.pod_name = pod.map(|name| PodName {
            namespace: "default".to_owned(),
            name: name.to_owned(),
        });
        let of = Attachment {
            container: container.to_owned(),
            device: "eth0".to_owned(),
        };
        records.store(&of, &record).unwrap();
    }
    let here = [
        end("veth1", 7),
        end("veth2", 8),
        end("veth3", 9),
        end("veth4", 10),
    ];
    let mut names = ClassNames::default();
    let file = "[[device]]\nname = \"eth0\"\n[[device.class]]\nname = \"pod\"\nrate = \"1mbit\"\n";
    let host = Host::read("host.toml", file).unwrap();
    names.add(&host.devices[0]);
    // A record that cannot be read takes no other its name.
    let unread = Attachment {
        container: "0".to_owned(),
        device: "eth0".to_owned(),
    };
    std::fs::create_dir(records.path(&unread)).unwrap();
    let class = Handle::new(0x7073, host.devices[0].classes[0].minor);
    let error = cni::names::add_names_of(folder.path(), &here, &mut names).unwrap_err();
    assert!(format!("{error:#}").contains("0:eth0"), "{error:#}");
    assert_eq!(names.of("veth1", class), Some("default/web-0"));
    for device in ["veth2", "veth3", "veth4"] {
        assert_eq!(names.of(device, class), None);
    }
    // That of a file stays.
    assert_eq!(names.of("eth0", class), Some("pod"));
}
