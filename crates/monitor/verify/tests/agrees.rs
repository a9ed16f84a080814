// SPDX-License-Identifier: MIT OR Apache-2.0
//! The matcher beside `bpf/match.h`, which the host's compiler compiles: random packets have the
//! same class by random rules.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::thread;

use backend::{MatchTables, RuleWords, rule_words};
use host_config::Rule;
use tcpsp::{Family, Flower, Interface, Match, Ports, Prefix, Protocol};
use testkit::Random;
use verify::{Beside, Frame, Matcher};

/// Packets of a run, and those of one set of rules.
const PACKETS: usize = 100_000;
const OF_SET: usize = 200;

/// Seed of rules and packets; the value has no meaning.
pub const SEED: u64 = 0x7073_7061_6365;

const PORTS: [u16; 5] = [53, 443, 4789, 5001, 5009];
const VLANS: [u16; 3] = [0, 4, 100];

fn v4(random: &mut Random) -> [u8; 4] {
    [10, random.of(&[0, 1]), 0, random.of(&[1, 2, 3])]
}

fn v6(random: &mut Random) -> [u8; 16] {
    let mut address = [0; 16];
    address[0] = 0xfd;
    address[6] = random.of(&[0, 1]);
    address[15] = random.of(&[1, 2, 3]);
    address
}

pub fn rule(random: &mut Random, class: u16) -> Rule {
    if random.one_in(12) {
        let mark = u32::try_from(1 + random.below(3)).unwrap();
        return Rule {
            matching: Match::Mark(mark),
            class,
        };
    }
    let is_v4 = random.one_in(2);
    let prefix = |random: &mut Random| {
        let text = match (is_v4, random.below(3)) {
            (true, 0) => format!("10.{}.0.0/16", random.below(2)),
            (true, _) => std::net::Ipv4Addr::from(v4(random)).to_string(),
            (false, 0) => format!("fd00:0:0:{}::/64", random.below(2)),
            (false, _) => std::net::Ipv6Addr::from(v6(random)).to_string(),
        };
        Prefix::parse(&text).unwrap()
    };
    let mut flower = Flower::default();
    let (has_from, has_to) = (random.one_in(4), random.one_in(2));
    flower.source = has_from.then(|| prefix(random));
    flower.destination = has_to.then(|| prefix(random));
    if random.one_in(2) {
        let icmp = if is_v4 {
            Protocol::Icmp
        } else {
            Protocol::Icmpv6
        };
        let protocol = random.of(&[Protocol::Tcp, Protocol::Udp, Protocol::Sctp, icmp]);
        flower.protocol = Some(protocol);
        if protocol.has_ports() {
            let ports = |random: &mut Random| {
                let first = random.of(&PORTS);
                let last = first + u16::try_from(random.below(10)).unwrap();
                random.one_in(2).then_some(Ports { first, last })
            };
            flower.source_ports = ports(random);
            flower.destination_ports = ports(random);
        }
    }
    flower.dscp = random.one_in(6).then(|| random.of(&[0, 46]));
    flower.vlan = random.one_in(6).then(|| random.of(&[4, 100]));
    flower.interface = random.one_in(10).then(|| Interface {
        name: "eth7".to_owned(),
        index: 7,
    });
    let needs = flower.source.is_some()
        || flower.destination.is_some()
        || flower.protocol.is_some()
        || flower.dscp.is_some();
    let family = if is_v4 { Family::Ipv4 } else { Family::Ipv6 };
    flower.family = (needs || flower == Flower::default()).then_some(family);
    Rule {
        matching: Match::Flower(flower),
        class,
    }
}

/// A rule that is a prefix and nothing else, of few that packets have, and of one length.
fn prefix_rule(random: &mut Random, is_source: bool, class: u16) -> Rule {
    let prefix = Prefix::parse(&std::net::Ipv4Addr::from(v4(random)).to_string());
    let (source, destination) = if is_source {
        (prefix, None)
    } else {
        (None, prefix)
    };
    let flower = Flower {
        family: Some(Family::Ipv4),
        source,
        destination,
        ..Flower::default()
    };
    Rule {
        matching: Match::Flower(flower),
        class,
    }
}

pub struct Packet {
    pub bytes: Vec<u8>,
    pub tag: Option<u16>,
    pub beside: Beside,
}

/// The number of a datagram: of few, so that fragments find their first one.
fn number(random: &mut Random) -> u8 {
    random.of(&[1, 2])
}

/// What is behind the IP header, and its protocol.
fn transport(random: &mut Random, is_v4: bool) -> (u8, Vec<u8>) {
    let mut bytes = random.of(&PORTS).to_be_bytes().to_vec();
    bytes.extend(random.of(&PORTS).to_be_bytes());
    let rest: Vec<u8> = (0..20).map(|_| random.byte()).collect();
    bytes.extend(rest);
    // Data offset of TCP.
    bytes[12] = 0x50;
    let protocol = random.of(&[6, 17, 132, 1, 58, 47, 4, 41, 50]);
    match protocol {
        // An error carries the header of another packet; a tunnel another packet.
        1 | 58 => {
            let mut error = vec![3, 1, 0, 0, 0, 0, 0, 0];
            error.extend(plain_v4(random));
            (if is_v4 { 1 } else { 58 }, error)
        }
        4 | 41 => (protocol, plain_v4(random)),
        47 => {
            let mut gre = vec![0, 0, 8, 0];
            gre.extend(plain_v4(random));
            (47, gre)
        }
        17 if random.one_in(3) => {
            bytes.truncate(2);
            bytes.extend(4789u16.to_be_bytes());
            bytes.extend([0; 4 + 8 + 12]);
            bytes.extend([8, 0]);
            bytes.extend(plain_v4(random));
            (17, bytes)
        }
        _ => (protocol, bytes),
    }
}

fn plain_v4(random: &mut Random) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
    packet.extend(v4(random));
    packet.extend(v4(random));
    packet.extend(random.of(&PORTS).to_be_bytes());
    packet.extend(random.of(&PORTS).to_be_bytes());
    packet.extend([0, 8, 0, 0]);
    packet
}

fn ipv4(random: &mut Random) -> Vec<u8> {
    let words = if random.one_in(4) {
        random.below(11)
    } else {
        0
    };
    let (protocol, behind) = transport(random, true);
    let place: u16 = random.of(&[0, 0, 0, 0x4000, 0x2000, 0x2010, 0x0010]);
    let mut packet = vec![
        0x45 + u8::try_from(words).unwrap(),
        random.of(&[0, 0xb8, 3]),
    ];
    packet.extend([0, 100, 0, number(random)]);
    packet.extend(place.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend(v4(random));
    packet.extend(v4(random));
    packet.extend(vec![1; words * 4]);
    packet.extend(behind);
    packet
}

fn ipv6(random: &mut Random) -> Vec<u8> {
    let (protocol, behind) = transport(random, false);
    let mut extensions: Vec<(u8, Vec<u8>)> = Vec::new();
    for _ in 0..if random.one_in(2) { random.below(8) } else { 0 } {
        let kind = random.of(&[0, 43, 60, 60, 44, 51]);
        let units = u8::try_from(random.below(3)).unwrap();
        let bytes = match kind {
            44 => {
                let place: u16 = random.of(&[0, 1, 1, 0x80, 0x81]);
                let mut header = vec![0, random.byte()];
                header.extend(place.to_be_bytes());
                header.extend([0, 0, 0, number(random)]);
                header
            }
            51 => {
                let mut header = vec![0; (usize::from(units) + 2) * 4];
                header[1] = units;
                header
            }
            _ => {
                let mut header = vec![0; (usize::from(units) + 1) * 8];
                header[1] = units;
                header
            }
        };
        extensions.push((kind, bytes));
    }
    let class: u8 = random.of(&[0, 0xb8]);
    let mut packet = vec![0x60 | (class >> 4), class << 4, 0, 0, 0, 100];
    packet.push(extensions.first().map_or(protocol, |(kind, _)| *kind));
    packet.push(64);
    packet.extend(v6(random));
    packet.extend(v6(random));
    for place in 0..extensions.len() {
        let next = extensions
            .get(place + 1)
            .map_or(protocol, |(kind, _)| *kind);
        extensions[place].1[0] = next;
        packet.extend(&extensions[place].1);
    }
    packet.extend(behind);
    packet
}

pub fn packet(random: &mut Random) -> Packet {
    let (mut ethertype, mut inner): (u16, Vec<u8>) = match random.below(9) {
        0 => (0x0806, vec![0; 28]),
        1..5 => (0x86dd, ipv6(random)),
        _ => (0x0800, ipv4(random)),
    };
    if random.one_in(8) {
        let protocol: u16 = if ethertype == 0x0800 { 0x21 } else { 0x57 };
        let mut session = vec![0x11, 0, 0, 7, 0, 90];
        session.extend(protocol.to_be_bytes());
        session.extend(inner);
        (ethertype, inner) = (0x8864, session);
    }
    let tags = random.of(&[0, 0, 0, 1, 1, 2, 3]);
    let tag = (tags > 0 && random.one_in(2)).then(|| 0x2000 | random.of(&VLANS));
    for _ in 0..tags - usize::from(tag.is_some()) {
        let mut behind = (0x4000 | random.of(&VLANS)).to_be_bytes().to_vec();
        behind.extend(ethertype.to_be_bytes());
        behind.extend(inner);
        (ethertype, inner) = (random.of(&[0x8100, 0x88a8]), behind);
    }
    let mut bytes = vec![2; 12];
    bytes.extend(ethertype.to_be_bytes());
    bytes.extend(inner);
    Packet {
        bytes,
        tag,
        beside: Beside {
            mark: u32::try_from(random.below(4)).unwrap(),
            priority: 0,
            interface: random.of(&[0, 7, 9]),
        },
    }
}

/// Compiles the program with the headers of a folder.
fn compile(headers: &Path, name: &str) -> PathBuf {
    let bpf = testkit::root().join("bpf");
    let program = testkit::output_folder().join(name);
    let mut compile = Command::new("cc");
    compile.args(["-std=gnu11", "-O2", "-Wall", "-Werror"]);
    compile.args([
        "-Wno-unknown-pragmas",
        "-Wno-unused-function",
        "-Wno-unused-variable",
    ]);
    compile.arg("-I").arg(headers);
    compile.arg(bpf.join("tests/match.c"));
    let status = compile.arg("-o").arg(&program).status().unwrap();
    assert!(status.success());
    program
}

static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let bpf = testkit::root().join("bpf");
    compile(&bpf, "match")
});

fn words(set: &[Rule], packets: &[Packet]) -> Vec<u8> {
    let rules = (0..).zip(set);
    let list: Vec<RuleWords> = rules
        .map(|(order, rule)| rule_words(order, rule.class, &rule.matching).unwrap())
        .collect();
    let tables = MatchTables::new(&list);
    let mut all: Vec<u32> = vec![u32::try_from(tables.rules.len()).unwrap()];
    all.extend(tables.rules.iter().flatten());
    all.extend(tables.tables_words());
    all.push(u32::try_from(tables.addresses.len()).unwrap());
    for (key, answer) in &tables.addresses {
        all.extend(key);
        all.extend(answer);
    }
    all.push(u32::try_from(packets.len()).unwrap());
    let mut bytes: Vec<u8> = all.iter().flat_map(|word| word.to_ne_bytes()).collect();
    for packet in packets {
        let tag = packet.tag.map_or(0, |tag| (1 << 16) | u32::from(tag));
        let (mark, interface) = (packet.beside.mark, packet.beside.interface);
        let len = u32::try_from(packet.bytes.len()).unwrap();
        for word in [len, tag, mark, interface] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(&packet.bytes);
    }
    bytes
}

fn by_program(program: &Path, input: Vec<u8>) -> Vec<u32> {
    let mut run = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to_program = run.stdin.take().unwrap();
    let writer = thread::spawn(move || to_program.write_all(&input));
    let output = run.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let words = output.stdout.chunks_exact(4);
    words
        .map(|word| u32::from_ne_bytes(word.try_into().unwrap()))
        .collect()
}

/// What differs between the matcher and a program, the number of packets that were compared, and
/// of those that had a class.
fn compare(program: &Path) -> (Vec<String>, usize, usize) {
    let mut random = Random::new(SEED);
    let (mut input, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..PACKETS / OF_SET {
        let count = u16::try_from(1 + random.below(12)).unwrap();
        let mut set: Vec<Rule> = (0..count).map(|n| rule(&mut random, 0x8000 + n)).collect();
        // From four prefixes of a length on the program has a table of them.
        if random.one_in(2) {
            let is_source = random.one_in(2);
            for n in 0..3 + random.below(4) {
                let at = random.below(set.len() + 1);
                let class = 0x9000 + u16::try_from(n).unwrap();
                set.insert(at, prefix_rule(&mut random, is_source, class));
            }
        }
        let packets: Vec<Packet> = (0..OF_SET).map(|_| packet(&mut random)).collect();
        input.extend(words(&set, &packets));
        let index = |name: &str| (name == "eth7").then_some(7);
        let mut matcher = Matcher::new(&set, &[], &index);
        ours.extend(packets.into_iter().map(|packet| {
            let frame = Frame::read(&packet.bytes, packet.tag);
            let verdict = matcher.ask(&frame, packet.beside);
            (
                packet,
                frame,
                verdict.class.map_or(0, u32::from),
                set.clone(),
            )
        }));
    }
    let theirs = by_program(program, input);
    assert_eq!(theirs.len(), PACKETS);
    let (mut differ, mut compared, mut claimed) = (Vec::new(), 0, 0);
    for ((packet, frame, class, set), theirs) in ours.into_iter().zip(theirs) {
        compared += 1;
        claimed += usize::from(class != 0);
        if class != theirs {
            let beside = packet.beside;
            differ.push(format!(
                "{class:x} and {theirs:x}: {frame:?} {beside:?} {:02x?} {set:#?}",
                packet.bytes
            ));
        }
    }
    (differ, compared, claimed)
}

#[test]
fn the_classifier_gives_the_same_class() {
    let (differ, compared, claimed) = compare(&PROGRAM);
    assert!(
        differ.is_empty(),
        "{} of {compared}: {}",
        differ.len(),
        differ[0]
    );
    // Else the test would compare nothing.
    assert!(
        compared > PACKETS / 3 && claimed > PACKETS / 10,
        "{compared} {claimed}"
    );
}

/// A mutant of the program, by a text of its headers that is replaced, differs.
fn check_is_found(name: &str, from: &str, to: &str) {
    let folder = tempfile::tempdir().unwrap();
    let bpf = testkit::root().join("bpf");
    for entry in fs::read_dir(&bpf).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "h") {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.replace(from, to);
            fs::write(folder.path().join(path.file_name().unwrap()), text).unwrap();
        }
    }
    let (differ, compared, _) = compare(&compile(folder.path(), name));
    let count = differ.len();
    assert!(count > compared / 1000, "{name}: {count} of {compared}");
}

#[test]
fn a_classifier_that_does_not_know_a_tag_is_found() {
    check_is_found("match-mutant", "ETH_QINQ = 0x88a8", "ETH_QINQ = 0x9100");
}

#[test]
fn a_classifier_whose_tables_win_whatever_the_order_is_found() {
    let from = "answer->order < s->best.order)\n\t\ts->best = *answer;";
    let to = "answer->order < s->best.order) {\n\t\ts->best = *answer; s->best.order = 0; }";
    check_is_found("match-mutant-tables", from, to);
}
