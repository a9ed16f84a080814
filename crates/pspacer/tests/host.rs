// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer plan` and its like, as far as they change nothing: they read this machine's loopback.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output};

use crate::common::{Folder, pspacer, text};
use serde_json::Value;
use testkit::has;

const FILE: &str = r#"
[[device]]
name = "lo"
line = "1gbit"
[[device.class]]
name = "video"
rate = "100mbit"
match = [{ to = "10.0.0.0/8" }]
"#;

/// Standard error of a command that failed with status 1 and said nothing else.
fn refusal(out: &Output) -> String {
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    assert!(out.stdout.is_empty());
    text(&out.stderr)
}

/// What a user is told whom the kernel does not tell what it can do.
const AS_ROOT: &str =
    "run it as root with its capabilities, the kernel tells this to nobody else: ";

/// Plans a file with matches for the module. Returns `None`, and says so on standard error, where that
/// takes root.
fn planned(file: &str) -> Option<String> {
    let out = pspacer(&["plan", file]);
    if text(&out.stderr).contains(AS_ROOT) {
        let user = fs::metadata("/proc/self").unwrap().uid();
        assert_ne!(user, 0, "{}", text(&out.stderr));
        eprintln!("SKIPPED: needs root: this kernel has cls_bpf");
        return None;
    }
    Some(text(&out.stdout))
}

/// Departure times are asked first, or there is no plan: who is not told whether they are gets none.
#[test]
fn a_plan_needs_root_where_only_root_knows() {
    let folder = Folder::new("host-user");
    let edt = FILE.replace("line = \"1gbit\"", "backend = \"edt\"");
    let file = folder.file("edt.toml", edt.as_bytes());
    let program = env!("CARGO_BIN_EXE_pspacer");
    // Root without its capabilities is an ordinary user that can read the file.
    let words: &[&str] = if fs::metadata("/proc/self").unwrap().uid() == 0 {
        &["setpriv", "--inh-caps=-all", "--bounding-set=-all", program]
    } else {
        &[program]
    };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["plan", &file]);
    let said = refusal(&command.output().unwrap());
    let expected = format!("edt.toml:3: {AS_ROOT}programs at tcx egress: ");
    has(&said, [&expected]);
}

#[test]
fn a_plan_says_what_would_change_and_changes_nothing() {
    let folder = Folder::new("host-plan");
    let file = folder.file("lo.toml", FILE.as_bytes());
    let Some(first) = planned(&file) else { return };
    assert!(
        first.starts_with("lo: 3 changes\n  add     qdisc psp at root\n"),
        "{first}"
    );
    has(
        &first,
        [
            "type paced, deadline 50 ms, rate 100 Mbit/s\n",
            "  add     match to 10.0.0.0/8 -> class video\n",
        ],
    );
    let again = text(&pspacer(&["apply", "--dry-run", "--device", "lo", &file]).stdout);
    assert_eq!(again, first);
    let json: Value = serde_json::from_slice(&pspacer(&["plan", "--json", &file]).stdout).unwrap();
    assert_eq!(json["format"], "pspacer-plan-1");
    let changes = json["devices"][0]["changes"].as_array().unwrap();
    assert_eq!(changes[1]["do"], "add_class");
    assert_eq!(changes[1]["options"]["rate_bps"], 100_000_000);
    let saved: Value = serde_json::from_slice(&pspacer(&["save", "lo"]).stdout).unwrap();
    assert_eq!(saved["devices"][0]["root"], "default");
}

#[test]
fn a_byte_queue_limit_is_planned_or_refused() {
    let folder = Folder::new("host-queue-limit");
    let device = "[[device]]\nname = \"lo\"\nbyte_queue_limit_min = \"3mb\"\n";
    let file = folder.file("lo.toml", device.as_bytes());
    let out = pspacer(&["plan", &file]);
    // Kernels from 6.9 on show none of a device without a transmit queue.
    let limits = "/sys/class/net/lo/queues/tx-0/byte_queue_limits/limit_min";
    if std::path::Path::new(limits).exists() {
        let said = text(&out.stdout);
        has(&said, ["  change  byte_queue_limit_min of tx-0: "]);
    } else {
        let said = refusal(&out);
        has(
            &said,
            ["lo.toml:2: lo: `byte_queue_limit_min` is 3145728 bytes, expected none: the kernel"],
        );
    }
    let edt = folder.file(
        "edt.toml",
        format!("{device}backend = \"edt\"\n").as_bytes(),
    );
    let said = refusal(&pspacer(&["plan", &edt]));
    has(
        &said,
        ["`byte_queue_limit_min` is 3145728 bytes, expected none by backend \"edt\""],
    );
}

#[test]
fn a_plan_says_which_launch_times_collide() {
    let folder = Folder::new("host-launches");
    let timed = |name: &str, entry: &str| {
        format!(
            "[[device.class]]\nname = \"{name}\"\nrate = \"100mbit\"\ntxtime = \"tai\"\n\
             launches = [{{ every = \"1ms\", size = \"100b\", {entry} }}]\n"
        )
    };
    let device = "[[device]]\nname = \"lo\"\nline = \"1gbit\"\noverhead = 24\nguard = true\n";
    let file = |first: &str| {
        let classes =
            timed("a", first) + &timed("b", "at = \"500us\"") + &timed("c", "at = \"0us\"");
        folder.file("lo.toml", (device.to_owned() + &classes).as_bytes())
    };
    let good = file("at = \"0us\"");
    let said = text(&pspacer(&["plan", &good]).stdout);
    let lines = "  launch  class a: collides with c; other frames make it 1.984 µs late at most\n  \
                 launch  class b: collides with none; other frames make it 0 ns late at most\n";
    has(&said, [lines]);
    let json: Value = serde_json::from_slice(&pspacer(&["plan", "--json", &good]).stdout).unwrap();
    let launches = &json["devices"][0]["launches"];
    assert_eq!(launches[2]["collides_with"][0], "a");
    assert_eq!(launches[2]["late_at_most_ns"], 1984);
    let said = refusal(&pspacer(&[
        "plan",
        &file("at = \"0us\", late_at_most = \"1us\""),
    ]));
    has(
        &said,
        ["lo.toml:2: lo: a: frames may leave 1.984 µs late, expected at most 1 µs"],
    );
}

#[test]
fn what_is_wrong_is_named() {
    let folder = Folder::new("host-wrong");
    let bad = folder.file("bad.toml", FILE.replace("100mbit", "fast").as_bytes());
    let said = refusal(&pspacer(&["plan", &bad]));
    has(
        &said,
        ["bad.toml:7: `rate` is \"fast\", expected a rate such as"],
    );
    let gone = folder.file("gone.toml", FILE.replace("\"lo\"", "\"lo9\"").as_bytes());
    let said = refusal(&pspacer(&["plan", &gone]));
    has(
        &said,
        ["gone.toml:3: lo9: expected a device; did you mean `lo`?"],
    );
    let file = folder.file("lo.toml", FILE.as_bytes());
    let said = refusal(&pspacer(&["plan", &file, &file]));
    has(&said, ["lo.toml has it already"]);
    let said = refusal(&pspacer(&["plan", "--device", "l", &file]));
    has(
        &said,
        ["--device l: expected a device of the files; did you mean `lo`?"],
    );
    let saved = folder.file("saved.json", b"x");
    let said = refusal(&pspacer(&["restore", &saved]));
    has(&said, ["saved.json: expected value at line 1"]);
}

#[test]
fn a_wrong_command_line_is_status_2() {
    for args in [
        &["apply", "--confirm", "soon"][..],
        &["apply", "--confirm", "0s"],
        &["apply", "--dry-run", "--confirm", "1s"],
        &["apply", "--confirmed", "a.toml"],
        &["restore"],
        &["remove"],
    ] {
        assert_eq!(pspacer(args).status.code(), Some(2), "{args:?}");
    }
}

/// LibreQoS's files become one that `plan` reads; a fault in them is named and nothing is written.
#[test]
fn a_file_comes_from_libreqos() {
    let folder = Folder::new("host-import");
    let head = "Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,\
                Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment\n";
    let rows = "7,\"Gasse 1, Wien\",1,CPE,AP_A,,\"100.64.0.1, 100.64.0.2\",,1,1,50,20,\n";
    let devices = folder.file("devices.csv", format!("{head}{rows}").as_bytes());
    let node = "{ \"AP_A\": { \"downloadBandwidthMbps\": 500, \"uploadBandwidthMbps\": 100 } }";
    let network = folder.file("network.json", node.as_bytes());
    let made = folder.file("lo.toml", b"");
    let import = |devices: &str| {
        pspacer(&[
            "import",
            "libreqos",
            "--shaped-devices",
            devices,
            "--network",
            &network,
            "--device",
            "lo",
            "--line",
            "1gbit",
            "-o",
            &made,
        ])
    };
    let out = import(&devices);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(text(&out.stderr), "pspacer: circuits: 1, groups: 1\n");
    if let Some(plan) = planned(&made) {
        assert!(plan.starts_with("lo: 5 changes\n"), "{plan}");
        has(
            &plan,
            [
                "type group, rate 500 Mbit/s\n",
                "add     match to 100.64.0.2 -> class 7\n",
            ],
        );
    }
    let wrong = folder.file(
        "wrong.csv",
        format!("{head}{}", rows.replace(",50,", ",fast,")).as_bytes(),
    );
    let said = refusal(&import(&wrong));
    let expected =
        "wrong.csv:2: column 11, `Download Max Mbps`, is \"fast\", expected a rate from 0.0025";
    has(&said, [expected]);
}

#[test]
fn what_is_no_regular_file_is_named_at_once() {
    let folder = Folder::new("host-no-file");
    let fifo = folder.0.join("host.toml");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let fifo = fifo.display().to_string();
    for (args, what) in [
        (vec!["plan", &fifo], "it is a fifo"),
        (vec!["apply", "--dry-run", &fifo], "it is a fifo"),
        (vec!["plan", "/dev/zero"], "it is a character device"),
        (vec!["restore", &fifo], "it is a fifo"),
        (
            vec!["import", "libreqos", "--shaped-devices", "/dev/zero"],
            "it is a character device",
        ),
    ] {
        let said = refusal(&pspacer(&args));
        let file = args.last().unwrap();
        let expected = format!("{file}: {what}, expected a regular file of at most 16 MiB");
        has(&said, [&expected]);
    }
}
