// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's own Prometheus reads what the exporter writes: promtool finds no fault in it, in the
//! dashboard's alerts neither, and a Prometheus that scrapes it knows every sum to the byte.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use exporter::text;
use vmlab::{Cache, Quiet};

use crate::common::{all_types, rendered};

/// A program of the package.
fn program(name: &str) -> PathBuf {
    let root = vmlab::prometheus(&Cache::default_folder().unwrap(), &Quiet).unwrap();
    root.join("usr/bin").join(name)
}

/// Has promtool check the text, and returns whether it passes and what is said.
fn checked(metrics: &str) -> (bool, String) {
    let mut promtool = Command::new(program("promtool"));
    promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    let mut child = promtool
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(metrics.as_bytes()).unwrap();
    drop(input);
    let out = child.wait_with_output().unwrap();
    let said = [out.stdout, out.stderr].concat();
    (
        out.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn promtool_finds_no_fault() {
    let metrics = text::prometheus(&rendered(&all_types(), 10));
    assert_eq!(checked(&metrics), (true, String::new()));
    let wrong = metrics.replace("psp_class_sent_frames_total", "psp_class_sent_frames");
    let (is_good, said) = checked(&wrong);
    assert!(!is_good && said.contains("psp_class_sent_frames"), "{said}");
    let rules = "../../../packaging/prometheus/psp.rules.yml";
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join(rules);
    let mut promtool = Command::new(program("promtool"));
    let out = promtool.args(["check", "rules"]).arg(rules).output();
    assert!(out.unwrap().status.success());
}

#[test]
fn what_leaves_past_psp_is_alerted() {
    let rules =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging/prometheus/psp.rules.yml");
    let series = |name: &str, device: &str, step: u64| {
        format!(
            "      - series: 'psp_device_{name}_frames_total{{device=\"{device}\"}}'\n        \
             values: '0+{step}x20'\n"
        )
    };
    let tested = format!(
        "rule_files: [\"{}\"]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    \
         input_series:\n{}{}{}{}    alert_rule_test:\n      - eval_time: 15m\n        \
         alertname: PspBypassed\n        exp_alerts:\n          - exp_labels: {{severity: critical, \
         device: eth0}}\n            exp_annotations:\n              summary: \"eth0: 10 frames a \
         second leave past psp\"\n              description: \"They are not paced: pspacer doctor \
         eth0.\"\n",
        rules.display(),
        series("sent", "eth0", 6000),
        series("counted", "eth0", 5400),
        series("sent", "eth1", 6000),
        series("counted", "eth1", 5990),
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.yml");
    fs::write(&file, tested).unwrap();
    let mut promtool = Command::new(program("promtool"));
    let out = promtool
        .args(["test", "rules"])
        .arg(&file)
        .output()
        .unwrap();
    let said = [out.stdout, out.stderr].concat();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&said));
}

/// Answers every request with these metrics, as the exporter answers a Prometheus.
fn serve(listener: &TcpListener, metrics: &str) {
    for client in listener.incoming() {
        let mut client = client.unwrap();
        let mut request = [0; 4096];
        let read = client.read(&mut request).unwrap();
        let request = String::from_utf8_lossy(&request[..read]).into_owned();
        assert!(
            request.contains("application/openmetrics-text"),
            "{request}"
        );
        let (content, bytes) = (text::CONTENT_TYPE, metrics.len());
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {content}\r\nContent-Length: {bytes}");
        let _ = write!(client, "{head}\r\nConnection: close\r\n\r\n{metrics}");
    }
}

/// A program that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the one value of an expression, once the Prometheus has it.
fn asked(server: &str, expression: &str) -> String {
    let start = Instant::now();
    loop {
        let mut promtool = Command::new(program("promtool"));
        let promtool = promtool.args(["query", "instant", server, expression]);
        let out = promtool.output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        let value = said.split("=> ").nth(1);
        if let Some(value) = value.and_then(|rest| rest.split(' ').next()) {
            return value.to_owned();
        }
        let why = String::from_utf8_lossy(&out.stderr);
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "{expression}: {said}{why}"
        );
        thread::sleep(Duration::from_millis(300));
    }
}

#[test]
fn a_prometheus_knows_every_sum_to_the_byte() {
    let mut ports = all_types();
    for (number, class) in (1..).zip(&mut ports[0].classes) {
        // A double, which Prometheus keeps, is exact up to 2^53; seventy terabytes here.
        class.psp.stats.sent_wire_bytes = (1 << 46) + 1_000_003 * number;
    }
    let classes = &ports[0].classes;
    let sent: u64 = classes.iter().map(|of| of.psp.stats.sent_wire_bytes).sum();
    let bytes: u64 = classes.iter().map(|of| of.counters.sent_bytes).sum();
    let metrics = rendered(&ports, 10);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let exporter = listener.local_addr().unwrap();
    thread::spawn(move || serve(&listener, &metrics));

    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("prometheus.yml");
    let scrape = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: psp\n    \
         static_configs:\n      - targets: [\"{exporter}\"]\n"
    );
    fs::write(&config, scrape).unwrap();
    // It takes no port 0: one that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = free.local_addr().unwrap();
    drop(free);
    let mut prometheus = Command::new(program("prometheus"));
    let prometheus = prometheus
        .arg(format!("--config.file={}", config.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.path().join("data").display()
        ))
        .arg(format!("--web.listen-address={at}"))
        .stderr(Stdio::null())
        .spawn();
    let _running = Running(prometheus.unwrap());
    let start = Instant::now();
    while TcpStream::connect(at).is_err() {
        assert!(start.elapsed() < Duration::from_secs(120), "it listens");
        thread::sleep(Duration::from_millis(100));
    }
    let server = format!("http://{at}");
    for (expression, expected) in [
        ("sum(psp_class_sent_wire_bytes_total)", sent),
        ("sum(psp_class_sent_bytes_total)", bytes),
        ("count(psp_class_sent_bytes_total)", classes.len() as u64),
        ("up", 1),
    ] {
        let value = asked(&server, expression);
        assert_eq!(value, expected.to_string(), "{expression}");
    }
}
