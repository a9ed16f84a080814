// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filter expressions choose the packets that tcpdump's own compiler chooses.

use std::io::{Cursor, Read, Write};
use std::process::{Command, Stdio};

use capture::choice::Choice;
use capture::segments::{Segments, Source};
use etherparse::{PacketBuilder, VlanId};

const MACS: ([u8; 6], [u8; 6]) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);

/// Packets of several kinds, in VLANs and without, between some hosts and ports.
fn packets() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let hosts: [[u8; 4]; 3] = [[10, 1, 1, 1], [10, 1, 2, 1], [192, 168, 7, 9]];
    let ports = [53u16, 80, 443, 5000];
    for (i, from) in hosts.iter().enumerate() {
        let to = hosts[(i + 1) % hosts.len()];
        for (j, port) in ports.iter().enumerate() {
            let other = ports[(j + i + 1) % ports.len()];
            for tag in [None, Some(7), Some(8)] {
                let tag = tag.map(|tag| VlanId::try_new(tag).unwrap());
                for version in [4, 6] {
                    for is_tcp in [true, false] {
                        let ethernet = PacketBuilder::ethernet2(MACS.0, MACS.1);
                        let (six, to_six) = ([0xfd, from[3]], [0xfe, to[3]]);
                        let wide = |b: [u8; 2]| {
                            let mut wide = [0; 16];
                            (wide[0], wide[15]) = (b[0], b[1]);
                            wide
                        };
                        let ip = match (tag, version) {
                            (None, 4) => ethernet.ipv4(*from, to, 60),
                            (None, _) => ethernet.ipv6(wide(six), wide(to_six), 60),
                            (Some(tag), 4) => ethernet.single_vlan(tag).ipv4(*from, to, 60),
                            (Some(tag), _) => {
                                let tagged = ethernet.single_vlan(tag);
                                tagged.ipv6(wide(six), wide(to_six), 60)
                            }
                        };
                        let mut bytes = Vec::new();
                        let payload = vec![0; j * 40];
                        if is_tcp {
                            ip.tcp(*port, other, 1, 2)
                                .write(&mut bytes, &payload)
                                .unwrap();
                        } else {
                            ip.udp(*port, other).write(&mut bytes, &payload).unwrap();
                        }
                        all.push(bytes);
                    }
                }
            }
        }
        // A later fragment, a first one, ICMP, and ARP.
        let mut first = Vec::new();
        let ip = PacketBuilder::ethernet2(MACS.1, MACS.0).ipv4(*from, to, 60);
        ip.tcp(80, 80, 1, 2).write(&mut first, &[]).unwrap();
        first[20] = 0x20;
        let mut later = first.clone();
        later[21] = 9;
        let mut echo = first.clone();
        echo[23] = 1;
        let mut arp = [&MACS.1[..], &MACS.0, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
        arp.extend([&MACS.0[..], from, &[0; 6], &to].concat());
        all.extend([first, later, echo, arp]);
    }
    all
}

fn pcap() -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1u32] {
        out.extend(word.to_le_bytes());
    }
    for (packet, second) in packets().iter().zip(1u32..) {
        let length = packet.len() as u32;
        for word in [second, 0, length, length] {
            out.extend(word.to_le_bytes());
        }
        out.extend(packet);
    }
    out
}

/// How many packets our reader leaves of the capture.
fn ours(bytes: &[u8], expression: &str) -> u64 {
    let choice = Choice {
        filter: Some(expression.parse().unwrap()),
        ..Choice::default()
    };
    let source = Source::new("a", || {
        Ok(Box::new(Cursor::new(bytes)) as Box<dyn Read + '_>)
    });
    let mut segments = Segments::open_chosen(vec![source], choice).unwrap();
    while segments.next().is_some() {}
    segments.counts().packets - segments.counts().left_out
}

/// How many packets tcpdump leaves of it.
fn theirs(bytes: &[u8], expression: &str) -> u64 {
    let mut child = Command::new("tcpdump")
        .args(["-n", "-r", "-", "-w", "-", expression])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(out.status.success(), "{expression}");
    let (mut at, mut count) = (24, 0);
    while at < out.stdout.len() {
        let length: [u8; 4] = out.stdout[at + 8..at + 12].try_into().unwrap();
        at += 16 + u32::from_le_bytes(length) as usize;
        count += 1;
    }
    count
}

const EXPRESSIONS: [&str; 48] = [
    "ip",
    "ip6",
    "arp",
    "tcp",
    "udp",
    "icmp",
    "host 10.1.1.1",
    "src host 10.1.1.1",
    "dst 10.1.2.1",
    "ip host 10.1.1.1",
    "arp host 10.1.1.1",
    "host fd00::1",
    "src or dst host 10.1.1.1",
    "src and dst net 10.1",
    "net 10",
    "net 10.1.0.0/16",
    "net 10.1.2.0 mask 255.255.255.0",
    "dst net fe00::/8",
    "port 80",
    "tcp port 80",
    "udp src port 53",
    "dst portrange 80-443",
    "src port 80 or 443",
    "port (53 or 80)",
    "not port 80",
    "not (port 80 or port 443)",
    "tcp or udp and port 53",
    "tcp or (udp and port 53)",
    "host 10.1.1.1 or 192.168.7.9 and tcp",
    "! udp && ! tcp",
    "vlan",
    "vlan 7",
    "vlan and tcp",
    "vlan 8 and host 10.1.1.1",
    "vlan 8 and ip6 and udp port 443",
    "not vlan and tcp",
    "tcp or vlan 7 and udp",
    "less 60",
    "greater 100",
    "tcp and greater 100",
    "ip proto 17",
    "ip6 proto 6",
    "ip proto \\icmp",
    "ether proto \\arp",
    "ether proto 0x86dd",
    "ether src host 02:00:00:00:00:01",
    "ether host 02:00:00:00:00:01 and not ip",
    "ether dst host 02:00:00:00:00:01",
];

#[test]
fn expressions_choose_what_tcpdump_chooses() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        eprintln!("skipped: tcpdump is not installed (tools/setup.sh tcpdump)");
        return;
    }
    let bytes = pcap();
    let all = ours(&bytes, "greater 0");
    let mut counts = Vec::new();
    for expression in EXPRESSIONS {
        let (ours, theirs) = (ours(&bytes, expression), theirs(&bytes, expression));
        assert_eq!(ours, theirs, "of {all}: {expression}");
        counts.push(ours);
    }
    let telling = counts
        .iter()
        .filter(|count| (1..all).contains(*count))
        .count();
    assert!(telling > 40, "most choose some and leave some: {counts:?}");
}
