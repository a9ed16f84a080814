// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames written by hand, and the class that the rules give them.

use host_config::Host;
use verify::{Beside, Frame, Matcher, Verdict};

/// Classes a (8000), b, c, d in this order, each with its match.
fn matcher(matches: &[&str]) -> Matcher {
    let mut text = String::from("[[device]]\nname = \"eth1\"\nline = \"1gbit\"\n");
    for (place, matching) in matches.iter().enumerate() {
        text += &format!(
            "[[device.class]]\nname = \"{place}\"\nminor = \"{:x}\"\nrate = \"1mbit\"\n\
             match = [{{ {matching} }}]\n",
            0x8000 + place
        );
    }
    let host = Host::read("test.toml", &text).unwrap();
    let device = &host.devices[0];
    let minors: Vec<u16> = device.classes.iter().map(|class| class.minor).collect();
    Matcher::new(&device.rules, &minors, &|name| {
        (name == "eth7").then_some(7)
    })
}

fn ethernet(ethertype: u16, rest: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend(ethertype.to_be_bytes());
    frame.extend(rest);
    frame
}

fn tagged(tpid: u16, vlan: u16, ethertype: u16, rest: &[u8]) -> (u16, Vec<u8>) {
    let mut inner = vlan.to_be_bytes().to_vec();
    inner.extend(ethertype.to_be_bytes());
    inner.extend(rest);
    (tpid, inner)
}

/// UDP from 10.0.0.1 to 10.0.0.2, port 5001.
fn ipv4(id: u16, place: u16, rest: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0xb8, 0, 40];
    packet.extend(id.to_be_bytes());
    packet.extend(place.to_be_bytes());
    packet.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(rest);
    packet
}

const UDP: [u8; 8] = [0, 9, 0x13, 0x89, 0, 8, 0, 0];

fn ask(matcher: &mut Matcher, bytes: &[u8]) -> Verdict {
    matcher.ask(&Frame::read(bytes, None), Beside::default())
}

#[test]
fn up_to_three_tags_and_pppoe_are_looked_through() {
    let mut rules = matcher(&["vlan = 9", "to_port = 5001"]);
    let plain = ethernet(0x0800, &ipv4(1, 0, &UDP));
    assert_eq!(ask(&mut rules, &plain).class, Some(0x8001));
    let (tpid, one) = tagged(0x8100, 4, 0x0800, &ipv4(1, 0, &UDP));
    let (outer, two) = tagged(0x88a8, 5, tpid, &one);
    assert_eq!(ask(&mut rules, &ethernet(outer, &two)).class, Some(0x8001));
    // The tag beside the frame is the outermost.
    let three = Frame::read(&ethernet(outer, &two), Some(0x2009));
    assert_eq!(three.vlans, [9, 5, 4]);
    assert_eq!(rules.ask(&three, Beside::default()).class, Some(0x8000));
    let (four, inner) = tagged(0x8100, 6, outer, &two);
    let four = Frame::read(&ethernet(four, &inner), Some(7));
    assert_eq!(rules.ask(&four, Beside::default()).class, None);
    let mut session = vec![0x11, 0, 0, 1, 0, 42, 0, 0x21];
    session.extend(ipv4(1, 0, &UDP));
    assert_eq!(
        ask(&mut rules, &ethernet(0x8864, &session)).class,
        Some(0x8001)
    );
    session[1] = 9;
    assert_eq!(ask(&mut rules, &ethernet(0x8864, &session)).class, None);
}

#[test]
fn fragments_follow_their_first_one() {
    let mut rules = matcher(&["to_port = 5001", "to = \"10.0.0.2\""]);
    let later = ethernet(0x0800, &ipv4(7, 0x00b9, &[1; 8]));
    // Nothing is known of its datagram: it matches by what it has.
    assert_eq!(ask(&mut rules, &later).class, Some(0x8001));
    let first = ethernet(0x0800, &ipv4(7, 0x2000, &UDP));
    assert_eq!(ask(&mut rules, &first).class, Some(0x8000));
    let follows = ask(&mut rules, &later);
    assert_eq!((follows.class, follows.follows), (Some(0x8000), true));
    let other = ethernet(0x0800, &ipv4(8, 0x00b9, &[1; 8]));
    assert_eq!(ask(&mut rules, &other).class, Some(0x8001));
}

#[test]
fn extension_headers_are_looked_through() {
    let mut rules = matcher(&["to_port = 5001"]);
    let packet = |extensions: &[(u8, Vec<u8>)]| {
        let mut packet = vec![0x60, 0, 0, 0, 0, 40, 17, 64];
        packet.extend([0xfd; 32]);
        if let Some((first, _)) = extensions.first() {
            packet[6] = *first;
        }
        for (place, (_, bytes)) in extensions.iter().enumerate() {
            let mut bytes = bytes.clone();
            bytes[0] = extensions.get(place + 1).map_or(17, |(kind, _)| *kind);
            packet.extend(bytes);
        }
        packet.extend(UDP);
        ethernet(0x86dd, &packet)
    };
    let hop = (0, vec![0; 8]);
    // The length of AH is of words, less two.
    let authentic = (51, {
        let mut header = vec![0; 24];
        header[1] = 4;
        header
    });
    for all in [
        vec![],
        vec![hop.clone()],
        vec![hop.clone(), authentic],
        vec![hop.clone(); 6],
    ] {
        assert_eq!(ask(&mut rules, &packet(&all)).class, Some(0x8000));
    }
    assert_eq!(ask(&mut rules, &packet(&vec![hop; 7])).class, None);
}

#[test]
fn what_is_beside_a_frame_counts() {
    let mut rules = matcher(&["mark = 3", "interface = \"eth7\"", "dscp = 46"]);
    let frame = Frame::read(&ethernet(0x0800, &ipv4(1, 0, &UDP)), None);
    let mut class = |mark, priority, interface| {
        let beside = Beside {
            mark,
            priority,
            interface,
        };
        rules.ask(&frame, beside).class
    };
    assert_eq!(class(3, 0, 7), Some(0x8000));
    assert_eq!(class(2, 0, 7), Some(0x8001));
    assert_eq!(class(0, 0, 0), Some(0x8002));
    // A socket names the class itself; an id that is no class's says nothing.
    assert_eq!(class(3, 0x7073_8002, 0), Some(0x8002));
    assert_eq!(class(3, 0x7073_9000, 0), Some(0x8000));
    let none = Frame::read(&ethernet(0x0806, &[0; 28]), None);
    assert_eq!(rules.ask(&none, Beside::default()).class, None);
}

#[test]
fn a_rule_of_cgroups_leaves_what_follows_open() {
    let mut rules = matcher(&["mark = 3", "cgroup = \"/a\"", "to_port = 5001"]);
    let frame = Frame::read(&ethernet(0x0800, &ipv4(1, 0, &UDP)), None);
    let open = rules.ask(&frame, Beside::default());
    assert_eq!((open.class, open.is_sure), (Some(0x8002), false));
    let marked = Beside {
        mark: 3,
        ..Beside::default()
    };
    assert!(rules.ask(&frame, marked).is_sure);
}
