// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host's file: what it says, and what is refused with place, value and what was expected.

use host_config::{Backend, Device, Host, Queues, Target, TargetRoot, check_backend};
use tcpsp::{Budget, Family, Launch, LaunchClock, Mark, Match, Mode, Protocol, TypeOptions};

const GOOD: &str = r#"
[[device]]
name = "eth0"
line = "10gbit"
mode = "hybrid"
default = "bulk"
budget = "80%"

[[device.class]]
name = "backup"
rate = "2gbit"
ceil = "4gbit"
deadline = "20ms"
match = [{ to = "192.0.2.0/24" }, { to_port = 873 }]

[[device.class]]
name = "voice"
type = "rt"
share = "1.5%"
match = [{ dscp = 46, from = "2001:db8::/32", vlan = 5 }, { mark = 7 }]

[[device.class]]
name = "bulk"
type = "normal"
minor = "8010"

[[device]]
name = "eth1"
queues = "mq"

[[device.class]]
name = "tcp"
type = "dynamic"
flows = 100
match = [{ interface = "docker0" }]
"#;

#[test]
fn a_good_one() {
    let host = Host::read("eth0.toml", GOOD).unwrap();
    let [eth0, eth1] = &host.devices[..] else {
        panic!("{host:?}");
    };
    assert_eq!((eth0.queues, eth1.queues), (Queues::Root, Queues::Mq));
    assert_eq!(eth0.options.line_rate_bps, Some(10_000_000_000));
    assert_eq!(eth0.options.mode, Mode::Hybrid);
    assert_eq!(eth0.options.budget, Budget::Percent(80));
    assert_eq!(eth0.options.default_minor, 0x8010);
    let [backup, voice, bulk] = &eth0.classes[..] else {
        panic!("{eth0:?}");
    };
    assert_eq!(
        backup.options.by_type,
        TypeOptions::Paced {
            rate_bps: 2_000_000_000,
            ceil_bps: Some(4_000_000_000),
            launch: None
        }
    );
    assert_eq!(backup.options.deadline_ns, Some(20_000_000));
    // 1.5% of 10 Gbit/s are 187,500 bytes of 10 ms.
    let reserve_bytes = 187_500;
    assert_eq!(voice.options.by_type, TypeOptions::Rt { reserve_bytes });
    assert_eq!(bulk.minor, 0x8010);
    // To a network, then port 873 of TCP and UDP over IPv4 and IPv6, then the others.
    assert_eq!(eth0.rules.len(), 1 + 4 + 1 + 1);
    assert!(
        eth0.rules[..5]
            .iter()
            .all(|rule| rule.class == backup.minor)
    );
    let Match::Flower(flower) = &eth0.rules[4].matching else {
        panic!("{:?}", eth0.rules[4]);
    };
    assert_eq!(flower.family, Some(Family::Ipv6));
    assert_eq!(flower.protocol, Some(Protocol::Udp));
    assert_eq!(eth0.rules[6].matching, Match::Mark(7));
    let Match::Flower(flower) = &eth1.rules[0].matching else {
        panic!("{eth1:?}");
    };
    let interface = flower.interface.as_ref().map(|i| i.name.as_str());
    assert_eq!(interface, Some("docker0"));
    assert_eq!(flower.family, None);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_is_wrong_is_named() {
    for (from, to, words) in [
        (
            "mode = \"hybrid\"",
            "mode = \"hybrd\"",
            "f:5: `mode` is \"hybrd\", expected \"auto\", \"gap\", \"timer\" or \"hybrid\"; did you mean `hybrid`?",
        ),
        (
            "mode = \"hybrid\"",
            "mod = \"hybrid\"",
            "f:5: unknown key `mod` in [[device]]; did you mean `mode`?",
        ),
        (
            "mode = \"hybrid\"",
            "byte_queue_limit_min = 65536",
            "f:5: `byte_queue_limit_min` is 65536, expected a size up to \"1gb\", such as \"64kb\"",
        ),
        (
            "mode = \"hybrid\"",
            "byte_queue_limit_min = \"2gb\"",
            "f:5: `byte_queue_limit_min` is \"2gb\", expected a size up to",
        ),
        (
            "\"10gbit\"",
            "10",
            "f:4: `line` is 10, expected a rate from \"8kbit\" to \"1tbit\" such as \"10gbit\", or \"auto\"",
        ),
        (
            "\"10gbit\"",
            "\"1gbit\"",
            "f:11: `rate` is \"2gbit\", expected at most the line's 1,000 Mbit/s",
        ),
        (
            "\"10gbit\"",
            "\"auto\"",
            "f:19: `share` is \"1.5%\", expected a rate: a share is of the line",
        ),
        (
            "default = \"bulk\"",
            "default = \"bulky\"",
            "f:6: `default` is \"bulky\", expected the name of a class of this device; did you mean `bulk`?",
        ),
        (
            "rate = \"2gbit\"",
            "rate = \"2gbit/s\"",
            "f:11: `rate` is \"2gbit/s\", expected a rate such as",
        ),
        (
            "ceil = \"4gbit\"",
            "ceil = \"1gbit\"",
            "f:12: `ceil` is \"1gbit\", expected at least the rate",
        ),
        (
            "rate = \"2gbit\"\n",
            "",
            "f:9: [[device.class]] lacks `rate`, expected a rate, a share, or a type",
        ),
        (
            "deadline = \"20ms\"",
            "quantum = \"1kb\"",
            "f:13: `quantum` is \"1kb\", expected it only with type \"normal\"",
        ),
        (
            "deadline = \"20ms\"",
            "mark = \"soon\"",
            "f:13: `mark` is \"soon\", expected a time up to \"9s\" such as \"20ms\", or \"off\"",
        ),
        (
            "share = \"1.5%\"",
            "share = \"1.5%\"\nmark = \"20ms\"",
            "f:20: `mark` is \"20ms\", expected it only with type \"paced\"",
        ),
        (
            "deadline = \"20ms\"",
            "deadline = \"0s\"",
            "f:13: `deadline` is \"0s\", expected a time above 0 such as \"50ms\", or \"off\"",
        ),
        (
            "192.0.2.0/24",
            "192.0.2.1/24",
            "f:14: `to` is \"192.0.2.1/24\", expected the network 192.0.2.0/24, or an address alone",
        ),
        (
            "to_port = 873",
            "to_port = 70000",
            "f:14: `to_port` is 70000, expected a port",
        ),
        (
            "to_port = 873",
            "to_port = 873, protocol = \"icmp\"",
            "f:14: `protocol` is \"icmp\", expected \"tcp\", \"udp\" or \"sctp\" beside ports",
        ),
        (
            "to_port = 873",
            "",
            "f:14: a match lacks `to`, expected it, or another key of a match",
        ),
        (
            "to_port = 873",
            "user = \"www-data\"",
            "`user` is \"www-data\", expected no user: no filter looks at users. Let nftables",
        ),
        (
            "to_port = 873",
            "cgroup = \"batch\"",
            "`cgroup` is \"batch\", expected a path of cgroups of version 2",
        ),
        (
            "dscp = 46",
            "dscp = -0",
            "f:20: `dscp` is -0, expected a number from 0 to 63",
        ),
        (
            "dscp = 46",
            "dscp = 64",
            "f:20: `dscp` is 64, expected a number from 0 to 63",
        ),
        (
            "vlan = 5",
            "to = \"10.0.0.1\"",
            "f:20: `to` is \"10.0.0.1\", expected one family in a match",
        ),
        (
            "mark = 7",
            "mark = 7, dscp = 3",
            "`dscp` is 3, expected no other key beside `mark`",
        ),
        (
            "mark = 7",
            "mark = 0",
            "`mark` is 0, expected a number from 1",
        ),
        (
            "share = \"1.5%\"",
            "share = \"90%\"",
            "f:7: `budget` is \"80%\", expected at least 11250000 bytes a period, which the classes reserve; it is 10000000",
        ),
        (
            "name = \"voice\"",
            "name = \"backup\"",
            "f:17: `name` is \"backup\", expected one not in use: line 10 has it already",
        ),
        (
            "name = \"voice\"",
            "name = \"a class\"",
            "f:17: `name` is \"a class\", expected a name of letters",
        ),
        (
            "name = \"eth1\"",
            "name = \"eth0\"",
            "f:28: `name` is \"eth0\", expected one not in use: line 3 has it already",
        ),
        (
            "name = \"eth1\"",
            "name = \"an/interface\"",
            "f:28: `name` is \"an/interface\", expected the name of a device",
        ),
        (
            "minor = \"8010\"",
            "minor = \"10\"",
            "f:25: `minor` is \"10\", expected a hexadecimal number from \"8000\"",
        ),
        (
            "flows = 100",
            "flows = 0",
            "`flows` is 0, expected a number from 1 to 65536",
        ),
        (
            "type = \"normal\"",
            "type = 3",
            "`type` is 3, expected \"paced\"",
        ),
        (
            "[[device.class]]\nname = \"voice\"",
            "[[device.class\nname = \"voice\"",
            "not valid TOML",
        ),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let said = Host::read("f", &GOOD.replacen(from, to, 1));
        let said = said.unwrap_err().to_string();
        assert!(
            said.starts_with("f:") && said.contains(words),
            "{to}: {said}"
        );
    }
    let said = Host::read("f", "").unwrap_err().to_string();
    assert_eq!(
        said,
        "f:1: the file lacks `device`, expected an array of tables, [[device]]"
    );
}

#[test]
fn a_device_of_another_kind_has_no_overhead() {
    let host = Host::read("f", "[[device]]\nname = \"tun0\"\n").unwrap();
    let port = |is_ethernet| host_config::Port {
        name: "tun0".to_owned(),
        is_ethernet,
        queues: 1,
        speed_bps: None,
        has_made_up_speed: false,
        max_frame_bytes: 1500,
        made: host_config::Made::Module,
        can_classify: false,
        root: host_config::Root::One(host_config::Slot::Default {
            kind: "none".to_owned(),
            waiting: 0,
        }),
    };
    let overhead = |is_ethernet| {
        let target = Target::new(
            &host.devices[0],
            host_config::Backend::Module,
            &port(is_ethernet),
        );
        let TargetRoot::Psp(psp) = target.root else {
            panic!("{target:?}");
        };
        psp.options.overhead_bytes
    };
    assert_eq!((overhead(true), overhead(false)), (24, 0));
}

const LAUNCH: &str = r#"
[[device]]
name = "eth0"

[[device.class]]
name = "camera"
rate = "3gbit"
txtime = "tai"
txtime_late = "200us"

[[device.class]]
name = "bulk"
type = "normal"
"#;

#[test]
fn launch_times() {
    let read = |text: &str| match &Host::read("f", text).unwrap().devices[0].classes[0]
        .options
        .by_type
    {
        TypeOptions::Paced { launch, .. } => launch.clone(),
        other => panic!("{other:?}"),
    };
    let tai = Launch::new(LaunchClock::Tai);
    let late_ns = Some(200_000);
    assert_eq!(read(LAUNCH), Some(Launch { late_ns, ..tai }));
    let more = "\"monotonic\"\ntxtime_deadline = true\nhorizon = \"2s\"";
    assert_eq!(
        read(&LAUNCH.replace("\"tai\"", more)),
        Some(Launch {
            clock: LaunchClock::Monotonic,
            is_deadline: true,
            late_ns,
            horizon_ns: 2_000_000_000,
        })
    );
    for (from, to, words) in [
        (
            "\"tai\"",
            "\"realtime\"",
            "f:8: `txtime` is \"realtime\", expected \"monotonic\" or \"tai\"",
        ),
        (
            "txtime = \"tai\"\n",
            "",
            "f:8: `txtime_late` is \"200us\", expected it only with `txtime`",
        ),
        (
            "txtime = \"tai\"\ntxtime_late = \"200us\"",
            "horizon = \"2s\"",
            "f:8: `horizon` is \"2s\", expected it only with `txtime`",
        ),
        (
            "txtime_late = \"200us\"",
            "deadline = \"1ms\"",
            "f:9: `deadline` is \"1ms\", expected none with `txtime`, but `txtime_late`",
        ),
        (
            "\"200us\"",
            "\"2s\"",
            "f:9: `txtime_late` is \"2s\", expected a time up to \"1s\"",
        ),
        (
            "type = \"normal\"",
            "type = \"normal\"\ntxtime = \"tai\"",
            "f:14: `txtime` is \"tai\", expected it only with type \"paced\"",
        ),
    ] {
        assert!(LAUNCH.contains(from), "{from}");
        let said = Host::read("f", &LAUNCH.replacen(from, to, 1)).unwrap_err();
        assert!(said.to_string().starts_with(words), "{to}: {said}");
    }
}

#[test]
fn marks_are_read_and_the_module_refuses_them() {
    let read = |mark: &str| {
        let text = GOOD.replace("deadline = \"20ms\"", mark);
        Host::read("f", &text).unwrap().devices.remove(0)
    };
    for (text, mark, shown) in [
        ("mark = \"5ms\"", Mark::After(5_000_000), "5 ms"),
        ("mark = \"off\"", Mark::Off, "off"),
    ] {
        let device = read(text);
        assert_eq!(device.classes[0].options.mark_ns, Some(mark));
        let refused = check_backend(&device, Backend::Module, true)
            .unwrap_err()
            .to_string();
        let expected = format!(
            "class backup: `mark` is \"{shown}\", expected none by backend \"module\": it marks \
             no packets"
        );
        assert_eq!(refused, expected);
    }
    let device = read("");
    assert_eq!(device.classes[0].options.mark_ns, None);
    assert_eq!(check_backend(&device, Backend::Module, true), Ok(()));
}

#[test]
fn classes_of_all_queues_are_the_devices() {
    let read = |keys: &str, class: &str| {
        let text = format!(
            "[[device]]\nname = \"eth0\"\nqueues = \"mq\"\n{keys}\n\
             [[device.class]]\nname = \"a\"\n{class}\n"
        );
        Host::read("f", &text).unwrap().devices.remove(0)
    };
    let check = |device: &Device, backend| {
        let refused = check_backend(device, backend, true);
        refused.map_err(|refusal| refusal.to_string())
    };
    let paced = read("", "rate = \"1mbit\"");
    assert_eq!(check(&paced, Backend::Module), Ok(()));
    assert_eq!(check(&paced, Backend::Edt), Ok(()));
    let refused = check(&paced, Backend::Bpf).unwrap_err();
    assert!(
        refused.starts_with("`queues` is \"mq\", expected \"root\""),
        "{refused}"
    );
    for (keys, class, words) in [
        (
            "mode = \"gap\"",
            "rate = \"1mbit\"",
            "`mode` is \"gap\", expected \"auto\" or \"timer\"",
        ),
        (
            "",
            "type = \"rt\"\nreserve = \"1kb\"",
            "class a: expected no period",
        ),
        (
            "",
            "rate = \"1mbit\"\ntxtime = \"tai\"",
            "class a: expected no period and no launch times",
        ),
        (
            "net_cls = true",
            "rate = \"1mbit\"",
            "`net_cls` is true with `queues` \"mq\", expected false",
        ),
    ] {
        let device = read(keys, class);
        let refused = check(&device, Backend::Module).unwrap_err();
        assert!(refused.starts_with(words), "{refused}");
    }
}

#[test]
fn a_qdisc_of_bpf_has_a_class_for_what_no_match_claims() {
    let read = |default: &str| {
        let text = format!(
            "[[device]]\nname = \"eth0\"\n{default}\n[[device.class]]\nname = \"a\"\nrate = \"1mbit\"\n"
        );
        Host::read("f", &text).unwrap().devices.remove(0)
    };
    let (without, with) = (read(""), read("default = \"a\""));
    for backend in [Backend::Module, Backend::Edt] {
        check_backend(&without, backend, true).unwrap();
    }
    check_backend(&with, Backend::Bpf, true).unwrap();
    let refused = check_backend(&without, Backend::Bpf, true).unwrap_err();
    let refused = refused.to_string();
    assert!(
        refused
            .starts_with("`default` is not set, expected the name of a class by backend \"bpf\""),
        "{refused}"
    );
}
