// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer router`: two in a row carry a stream and best effort beside it,
//! between network namespaces. Only counts are asserted.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod hosts;

use std::fs;
use std::path::Path;

use common::pspacer;
use hosts::{Host, Net, Running, pspacer_in, reflector};
use serde_json::Value;

/// A router, with its configuration in a folder.
fn router(host: &Host, folder: &Path, config: &str) -> Running {
    let path = folder.join("router.toml");
    fs::write(&path, config).unwrap();
    let args = ["router", path.to_str().unwrap(), "--json"];
    let running = Running::start(&host.enter(), &args);
    assert!(running.said.contains("routing"), "{}", running.said);
    running
}

/// Between `near` (towards 10.1.0.1) and `far` (towards 10.3.0.2); the stream is
/// what goes to the reflector's port, and back from it.
fn config(near: (&str, &str), far: (&str, &str), port: &str) -> String {
    let ((near, via_near), (far, via_far)) = (near, far);
    format!(
        r#"
period = "5ms"
[[device]]
name = "{near}"
budget = "70mbit"
[[device]]
name = "{far}"
budget = "70mbit"
[[route]]
to = "10.1.0.0/24"
device = "{near}"
via = "{via_near}"
[[route]]
to = "10.3.0.0/24"
device = "{far}"
via = "{via_far}"
[[stream]]
name = "there"
to = "10.3.0.2"
port = {port}
rate = "2mbit"
[[stream]]
name = "back"
from = "10.3.0.2"
to = "10.1.0.1"
dscp = 46
rate = "2mbit"
"#
    )
}

/// ```text
/// near 10.1.0.1 --- 10.1.0.2 first 10.2.0.1 --- 10.2.0.2 second 10.3.0.1 --- 10.3.0.2 far
/// ```
#[test]
fn two_in_a_row_lose_nothing() {
    let Some(net) = Net::new() else { return };
    let [near, first, second, far] = [net.host(), net.host(), net.host(), net.host()];
    let [_, a] = net.cable(&near, "10.1.0.1/24", &first, "10.1.0.2/24");
    let [b, c] = net.cable(&first, "10.2.0.1/24", &second, "10.2.0.2/24");
    let [d, _] = net.cable(&second, "10.3.0.1/24", &far, "10.3.0.2/24");
    near.ip("route add 10.3.0.0/24 via 10.1.0.2");
    far.ip("route add 10.1.0.0/24 via 10.3.0.1");
    let (_of_stream, stream) = reflector(&far.enter(), &["--class", "/46"]);
    let (_of_other, other) = reflector(&far.enter(), &[]);
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let configs = [
        config((&a, "10.1.0.1"), (&b, "10.2.0.2"), &stream),
        config((&c, "10.2.0.1"), (&d, "10.3.0.2"), &stream),
    ];
    let routers = [
        router(&first, folders[0].path(), &configs[0]),
        router(&second, folders[1].path(), &configs[1]),
    ];
    let ping = |port: &str, size: &str| -> Value {
        let args = ["ping", "10.3.0.2", "--port", port, "--json"];
        let more = [
            "--period", "5ms", "--wait", "5s", "-c", "100", "--size", size,
        ];
        let out = pspacer_in(&near.enter(), &[&args[..], &more].concat());
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let (of_stream, of_other) = std::thread::scope(|threads| {
        let beside = threads.spawn(|| ping(&other, "1400"));
        (ping(&stream, "500"), beside.join().unwrap())
    });
    for run in [&of_stream, &of_other] {
        assert_eq!(
            (&run["received"], &run["lost"]),
            (&100.into(), &0.into()),
            "{run}"
        );
        assert_eq!(
            (&run["duplicates"], &run["reordered"]),
            (&0.into(), &0.into()),
            "{run}"
        );
    }
    for router in routers {
        let report = router.stop();
        for stream in report["streams"].as_array().unwrap() {
            assert_eq!(stream["sent"], 100, "{report}");
            assert_eq!(stream["dropped"], 0, "{report}");
        }
        let best_effort = report["devices"].as_array().unwrap();
        assert!(best_effort.iter().all(|d| d["sent"] == 100), "{report}");
        for cause in [
            "invalid",
            "no_buffer",
            "no_neighbour",
            "box_full",
            "undelivered",
        ] {
            assert_eq!(report[cause], 0, "{cause}: {report}");
        }
        assert_eq!(report["threads"].as_array().unwrap().len(), 5, "{report}");
    }
}

#[test]
fn check_says_the_budgets_and_refuses_with_the_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("router.toml");
    let path = path.to_str().unwrap();
    let good = config(("a", "10.1.0.1"), ("b", "10.2.0.2"), "8637");
    fs::write(path, &good).unwrap();
    let out = pspacer(&["router", path, "--check"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success());
    let line = "a: 43,750 bytes a period; 1,250 reserved for 1 streams, 42,500 for best effort";
    assert!(text.contains(line), "{text}");
    for (from, to, words) in [
        (
            "\"2mbit\"",
            "\"80mbit\"",
            &["50000", "51538 together", "43750"][..],
        ),
        (
            "name = \"b\"",
            "name = \"a\"",
            &["line 7", "`name`", "\"a\""],
        ),
        (
            "10.3.0.2\"",
            "10.9.0.2\"",
            &["line 19", "10.9.0.2", "a route"],
        ),
        ("period", "perod", &["line 2", "perod", "period"]),
    ] {
        fs::write(path, good.replacen(from, to, 1)).unwrap();
        let out = pspacer(&["router", path, "--check"]);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        for word in words.iter().chain(&["router.toml"]) {
            assert!(said.contains(word), "{word:?} in {said}");
        }
    }
    // Devices that are not there.
    fs::write(path, &good).unwrap();
    let out = pspacer(&["router", path]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("device a"), "{said}");
}
