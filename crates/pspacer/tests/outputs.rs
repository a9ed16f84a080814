// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every option that names a file to write: nothing is written through a link, nothing waits for a
//! fifo or goes into a device, and of a disk that is full no part stays.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::capture::Capture;
use crate::common::{Folder, text};

/// Longest time of a command: who opened a fifo would wait for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns each command that writes a file, without its path, which is the last word.
fn commands(folder: &Folder) -> Vec<Vec<String>> {
    let mut capture = Capture::new();
    capture.transfer(1_000_000, 5001, 40, Some(20));
    let capture = folder.file("capture.pcap", &capture.0);
    let delays = folder.file(
        "delays.csv",
        b"delay_ns,count\n5100000,6410\n15200000,3180\n",
    );
    let head = "Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,\
                Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment\n";
    let row = "7,one,1,CPE,,,100.64.0.1,,1,1,50,20,\n";
    let circuits = folder.file("circuits.csv", format!("{head}{row}").as_bytes());
    let network = folder.file("net.toml", crate::reservations::TOPOLOGY.as_bytes());
    let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
    vec![
        words(&format!("stalls {capture} --report")),
        words(&format!("stalls {capture} --annotate")),
        words(&format!("predict {delays} --hops 2 --plot")),
        words(&format!(
            "import libreqos --shaped-devices {circuits} --device lo --line 1gbit --output"
        )),
        words("exporter --textfile"),
        words("ping 127.0.0.1 --period 2ms --count 2 --wait 1ms --plot"),
        words(&format!(
            "manager --topology {network} --store memory: --listen 127.0.0.1:0 --address-file"
        )),
    ]
}

/// Runs a command for a while at most, and returns whether it was well and what it said.
fn run(words: &[String]) -> (bool, String) {
    let seconds = PATIENCE.as_secs().to_string();
    let out = Command::new("timeout")
        .args([seconds.as_str(), env!("CARGO_BIN_EXE_pspacer")])
        .args(words)
        .output()
        .unwrap();
    assert_ne!(out.status.code(), Some(124), "{words:?} waits");
    (out.status.success(), text(&out.stderr))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn nothing_is_written_through_what_is_no_file() {
    let inputs = Folder::new("outputs-inputs");
    for words in commands(&inputs) {
        let what = words.join(" ");
        let folder = Folder::new("outputs");
        let [fifo, link, victim] =
            ["fifo", "link", "victim"].map(|name| folder.0.join(name).display().to_string());
        fs::write(&victim, "others'").unwrap();
        symlink(&victim, &link).unwrap();
        let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        for (path, said) in [
            (fifo.as_str(), "it is a fifo"),
            (&link, "it is a link"),
            ("/dev/full", "it is a character device"),
        ] {
            let mut words = words.clone();
            words.push(path.to_owned());
            let (is_well, heard) = run(&words);
            assert!(!is_well && heard.contains(said), "{what} {path}: {heard}");
            assert!(heard.contains(path), "{what} {path}: {heard}");
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "others'", "{what}");
        assert_eq!(names(&folder.0), ["fifo", "link", "victim"], "{what}");
    }
}

#[test]
fn of_a_full_disk_no_part_stays() {
    let inputs = Folder::new("outputs-full-inputs");
    let disk = Folder::new("outputs-full");
    let mount = format!(
        "mount -t tmpfs -o size=8k,nr_inodes=3 none {}",
        disk.0.display()
    );
    let within = |line: &str| {
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
            .arg(format!("{mount} && {line}"))
            .output()
            .unwrap()
    };
    if !within("true").status.success() {
        println!("not run: this host lets nobody make a disk that is full");
        return;
    }
    for words in commands(&inputs).iter().take(3) {
        let what = words.join(" ");
        let (program, folder) = (env!("CARGO_BIN_EXE_pspacer"), disk.0.display());
        let out = within(&format!(
            "echo old >{folder}/out && head -c 8192 /dev/zero >{folder}/full; \
             timeout 30 {program} {what} {folder}/out && echo written; ls -A {folder}; \
             cat {folder}/out"
        ));
        assert_eq!(
            text(&out.stdout),
            "full\nout\nold\n",
            "{what}: {}",
            text(&out.stderr)
        );
    }
}
