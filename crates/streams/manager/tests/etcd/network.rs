// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts for members and managers: this one, or network namespaces that a bridge joins and that can be
//! cut off. Their addresses are of 127.0.0.0/8, which the kernel routes there on request: a manager
//! without certificates listens at loopback addresses alone.

use std::process::{Command, Stdio};

/// The bridge's own address: this process asks from there.
const BRIDGE: &str = "127.1.0.254/24";
/// Makes the bridge. The namespaces are this process's own.
const MAKE: &str = "mount -t tmpfs tmpfs /run && ip link set lo up && ip link add bridge0 type bridge && \
    ip addr add $0 dev bridge0 && ip link set bridge0 up && \
    echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet && ip addr del 127.0.0.1/8 dev lo";
/// Adds a host: its name and address.
const ADD: &str = "ip netns add $0 && ip link add $0 type veth peer name eth0 netns $0 && \
    ip link set $0 master bridge0 up && ip netns exec $0 sh -c '\
    echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet && ip link set lo up && \
    ip addr del 127.0.0.1/8 dev lo && ip addr add $1/24 dev eth0 && ip link set eth0 up' sh $1";
/// Gives what follows a boot id of its own: a file.
const BOOT: &str = "mount --bind $0 /proc/sys/kernel/random/boot_id && exec \"$@\"";

/// Where a process runs.
#[derive(Clone, Debug)]
pub struct Host {
    pub address: String,
    /// The words before a command that let it run there.
    enter: Vec<String>,
}

fn words(of: &[&str]) -> Vec<String> {
    of.iter().map(|word| (*word).to_owned()).collect()
}

fn sh(script: &str, args: &[&str]) {
    let out = Command::new("sh").args(["-c", script]).args(args).output();
    let out = out.unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{script}: {said}");
}

/// Sends a signal to a process of this test.
pub fn signal(process: u32, name: &str) {
    sh(&format!("kill -{name} {process}"), &[]);
}

impl Host {
    /// Returns this host, by an address that no other process uses: its free ports stay free.
    pub fn here() -> Self {
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        Self {
            address: format!("127.{}.{middle}.{low}", 64 + high % 64),
            enter: Vec::new(),
        }
    }

    /// Returns whether it is a namespace, where every port is free.
    pub fn is_apart(&self) -> bool {
        !self.enter.is_empty()
    }

    /// Returns it after a boot: its clock has another time, s ahead of this test's, and another id, which
    /// a file has.
    pub fn booted(&self, ahead_s: u64, id: &str) -> Self {
        let clock = ["unshare", "--mount", "--time", "--boottime"];
        let mut enter = self.enter.clone();
        enter.extend(words(&clock));
        enter.push(ahead_s.to_string());
        enter.extend(words(&["sh", "-c", BOOT, id]));
        Self {
            enter,
            ..self.clone()
        }
    }

    pub fn command(&self, program: &str) -> Command {
        let mut all = self.enter.iter().map(String::as_str).chain([program]);
        let mut command = Command::new(all.next().unwrap());
        command.args(all).stdin(Stdio::null());
        command
    }
}

/// Runs a test of this program in namespaces of its own, with a variable set; returns what it said, or
/// `None` if there are no namespaces here.
pub fn run_apart(test: &str, (variable, value): (&str, &str)) -> Option<String> {
    let apart = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--mount"]);
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
        command
    };
    let can = apart().args(["unshare", "--time", "true"]).output();
    if !can.is_ok_and(|out| out.status.success()) {
        eprintln!("not tested: no namespaces here");
        return None;
    }
    let out = apart()
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(variable, value)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{test} {value}: {said}");
    Some(said)
}

/// Hosts behind a bridge.
pub struct Network;

impl Network {
    /// Makes it in this process's namespaces.
    pub fn new() -> Self {
        sh(MAKE, &[BRIDGE]);
        Self
    }

    /// Adds the host of a name and a number, which is above 0.
    pub fn host(&self, name: &str, number: usize) -> Host {
        let address = format!("127.1.0.{number}");
        sh(ADD, &[name, &address]);
        Host {
            address,
            enter: words(&["ip", "netns", "exec", name]),
        }
    }

    /// Cuts a host off, or joins it again.
    pub fn set(&self, name: &str, is_joined: bool) {
        let state = if is_joined { "up" } else { "down" };
        sh("ip link set $0 $1", &[name, state]);
    }
}
