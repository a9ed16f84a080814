// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer router` where it cannot simply forward: a next hop with another MAC address, too
//! few hops, too many bytes, fragments, a kernel that forwards too. Between network namespaces;
//! the tests assert only counts.

use std::fs;
use std::process::Command;

use crate::hosts::{Host, Net, Running, pspacer_in, reflector};
use serde_json::Value;
use tempfile::TempDir;
use testkit::has;

/// ```text
/// near 10.1.0.1 --- 10.1.0.2 router 10.3.0.1 --- 10.3.0.2 far
/// ```
struct Chain {
    near: Host,
    router: Host,
    far: Host,
    /// Devices of near, of the router towards near and towards far, and of far.
    devices: [String; 4],
    folder: TempDir,
    far_side: (Running, String),
}

impl Chain {
    fn new(net: &Net) -> Self {
        let [near, router, far] = [net.host(), net.host(), net.host()];
        let [a, b] = net.cable(&near, "10.1.0.1/24", &router, "10.1.0.2/24");
        let [c, d] = net.cable(&router, "10.3.0.1/24", &far, "10.3.0.2/24");
        near.ip("route add 10.3.0.0/24 via 10.1.0.2");
        far.ip("route add 10.1.0.0/24 via 10.3.0.1");
        let far_side = reflector(&far.enter(), &["--class", "/46"]);
        let chain = Self {
            near,
            router,
            far,
            devices: [a, b, c, d],
            folder: tempfile::tempdir().unwrap(),
            far_side,
        };
        fs::write(chain.config(), chain.text()).unwrap();
        chain
    }

    fn config(&self) -> String {
        let path = self.folder.path().join("router.toml");
        path.to_str().unwrap().to_owned()
    }

    /// Returns a configuration with one stream, chosen by its port.
    fn text(&self) -> String {
        let [_, near, far, _] = &self.devices;
        let port = &self.far_side.1;
        format!(
            r#"
period = "5ms"
[[device]]
name = "{near}"
budget = "70mbit"
io = "packet"
[[device]]
name = "{far}"
budget = "70mbit"
io = "packet"
[[route]]
to = "10.1.0.0/24"
device = "{near}"
via = "10.1.0.1"
[[route]]
to = "10.3.0.0/24"
device = "{far}"
via = "10.3.0.2"
[[stream]]
name = "there"
to = "10.3.0.2"
port = {port}
rate = "10mbit"
"#
        )
    }

    fn run(&self) -> Running {
        let running = Running::start(&self.router.enter(), &["router", &self.config(), "--json"]);
        has(&running.said, ["routing"]);
        running
    }

    /// Sends so many probes. Returns how many came back.
    fn ping(&self, count: &str, size: &str) -> u64 {
        let port = &self.far_side.1;
        let args = ["ping", "10.3.0.2", "--port", port, "--json", "-c", count];
        let more = ["--period", "10ms", "--wait", "500ms", "--size", size];
        let out = pspacer_in(&self.near.enter(), &[&args[..], &more].concat());
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let run: Value = serde_json::from_slice(&out.stdout).expect(&said);
        run["received"].as_u64().unwrap()
    }
}

/// Returns an ICMP counter of a host's kernel, such as "InTimeExcds".
fn icmp(host: &Host, name: &str) -> u64 {
    let all = host.says("cat", &["/proc/net/snmp"]).unwrap();
    let mut lines = all.lines().filter(|line| line.starts_with("Icmp: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let place = names.split(' ').position(|n| n == name).unwrap();
    values.split(' ').nth(place).unwrap().parse().unwrap()
}

/// The next hop does not report its new address. The kernel asks again when it has not heard of
/// the old one for a while, and so must the router.
#[test]
fn a_next_hop_with_another_address_is_found_again() {
    let Some(net) = Net::new() else { return };
    let chain = Chain::new(&net);
    // The kernel asks after half a second instead of half a minute.
    let [.., device, far] = &chain.devices;
    let times = "base_reachable 500 delay_probe 100 retrans 100";
    chain.router.ip(&format!(
        "ntable change name arp_cache dev {device} {times}"
    ));
    let router = chain.run();
    assert_eq!(chain.ping("5", "100"), 5);
    chain
        .far
        .ip(&format!("link set {far} address 02:00:00:00:00:99"));
    // The loop is bounded: each attempt takes half a second.
    let found = (0..60).any(|_| chain.ping("5", "100") > 0);
    let report = router.stop();
    assert!(found, "{report}");
}

/// The sender learns of the next hop's MTU and divides what it sends.
#[test]
fn a_packet_that_is_too_long_is_reported_to_its_sender() {
    let Some(net) = Net::new() else { return };
    let chain = Chain::new(&net);
    let [.., device, far] = &chain.devices;
    chain.router.ip(&format!("link set {device} mtu 1000"));
    // far has the same MTU, or the cable would drop its answers.
    chain.far.ip(&format!("link set {far} mtu 1000"));
    let router = chain.run();
    assert!(chain.ping("20", "1400") > 0);
    let report = router.stop();
    assert!(icmp(&chain.near, "InDestUnreachs") > 0, "{report}");
    assert_eq!(icmp(&chain.near, "InCsumErrors"), 0);
    assert!(report["too_long"].as_u64().unwrap() > 0, "{report}");
    assert!(report["icmp_sent"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["send_failed"], 0, "{report}");
}

#[test]
fn a_packet_without_a_hop_left_is_reported_to_its_sender() {
    let Some(net) = Net::new() else { return };
    let chain = Chain::new(&net);
    let set = "echo 1 >/proc/sys/net/ipv4/ip_default_ttl";
    if chain.near.says("sh", &["-c", set]).is_none() {
        eprintln!("SKIPPED: the time to live cannot be set here");
        return;
    }
    let router = chain.run();
    assert_eq!(chain.ping("10", "100"), 0);
    let report = router.stop();
    assert_eq!(report["ttl"], 10, "{report}");
    assert!(icmp(&chain.near, "InTimeExcds") > 0, "{report}");
    assert_eq!(icmp(&chain.near, "InCsumErrors"), 0);
}

/// Only a packet's first fragment has the datagram's port.
#[test]
fn all_fragments_of_a_stream_are_the_streams() {
    let Some(net) = Net::new() else { return };
    let chain = Chain::new(&net);
    // The sender's path has a small MTU, as if such a network lay between.
    chain
        .near
        .ip("route change 10.3.0.0/24 via 10.1.0.2 mtu 600");
    let router = chain.run();
    assert_eq!(chain.ping("20", "1400"), 20);
    let report = router.stop();
    // Each datagram of 1408 bytes leaves in fragments of 576 bytes.
    assert_eq!(report["streams"][0]["sent"], 60, "{report}");
    assert_eq!(report["devices"][1]["sent"], 0, "{report}");
}

/// Otherwise both the router and the kernel would forward each packet.
#[test]
fn a_kernel_that_forwards_too_is_refused() {
    let Some(net) = Net::new() else { return };
    let chain = Chain::new(&net);
    let set = "echo 1 >/proc/sys/net/ipv4/ip_forward";
    assert!(chain.router.says("sh", &["-c", set]).is_some());
    let args = ["router", &chain.config(), "--json"];
    let running = Running::start(&chain.router.enter(), &args);
    let said = running.said.clone();
    drop(running);
    has(&said, [&chain.devices[1], "forward", "sysctl -w net.ipv4"]);
}

#[test]
fn what_lacks_of_rights_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("router.toml");
    let text = "[[device]]\nname = \"lo\"\nbudget = \"70mbit\"\nio = \"packet\"\n\
                [[route]]\nto = \"10.3.0.0/24\"\ndevice = \"lo\"\nvia = \"10.3.0.2\"\n";
    fs::write(&path, text).unwrap();
    // A user namespace has no rights over the network that it came from.
    let bin = env!("CARGO_BIN_EXE_pspacer");
    let out = Command::new("unshare")
        .args(["--user", bin, "router", path.to_str().unwrap()])
        .output();
    let Ok(out) = out else { return };
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    if said.contains("unshare") {
        eprintln!("SKIPPED: {said}");
        return;
    }
    assert_eq!(out.status.code(), Some(1), "{said}");
    has(&said, ["device lo", "CAP_NET_RAW"]);
}
