// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans for files: as few changes as can be, in the order that the kernel needs, and what others
//! configured is left alone.

use host_config::{
    Backend, Beside, ClassState, FilterState, Host, Made, Plan, Port, Psp, Root, Slot, Target,
    minor, plan, text,
};
use tcpsp::{Change, ClassOptions, Handle, Match, TypeOptions};

const FILE: &str = r#"
[[device]]
name = "eth0"
line = "1gbit"
default = "bulk"
budget = "20kb"
[[device.class]]
name = "video"
rate = "100mbit"
match = [{ to = "10.1.0.0/16" }, { to = "10.2.0.0/16" }]
[[device.class]]
name = "voice"
type = "rt"
reserve = "15kb"
match = [{ mark = 7 }]
[[device.class]]
name = "bulk"
type = "normal"
"#;

fn port(root: Slot) -> Port {
    Port {
        name: "eth0".to_owned(),
        is_ethernet: true,
        queues: 4,
        speed_bps: Some(1_000_000_000),
        has_made_up_speed: false,
        max_frame_bytes: 1514,
        made: Made::Module,
        can_classify: false,
        root: Root::One(root),
    }
}

fn fresh() -> Port {
    port(Slot::Default {
        kind: "fq_codel".to_owned(),
        waiting: 3,
    })
}

fn planned(file: &str, port: &Port) -> Plan {
    let host = Host::read("f", file).unwrap();
    plan(
        &Target::new(&host.devices[0], Backend::Module, port),
        port,
        false,
    )
    .unwrap()
}

fn refused(file: &str, port: &Port) -> String {
    let host = Host::read("f", file).unwrap();
    let target = Target::new(&host.devices[0], Backend::Module, port);
    plan(&target, port, false).unwrap_err().to_string()
}

/// The device after a file was applied.
fn applied(file: &str) -> Port {
    let mut port = fresh();
    for change in planned(file, &port).changes {
        port.apply(&change).unwrap();
    }
    port
}

fn psp(port: &mut Port) -> &mut Psp {
    match &mut port.root {
        Root::One(Slot::Psp(psp)) => psp,
        other => panic!("{other:?}"),
    }
}

/// The lines of a plan from one file to the other.
fn lines(from: &str, to: &str) -> Vec<String> {
    let port = applied(from);
    let said = text(&planned(to, &port), &Beside::default(), &port);
    said.lines()
        .skip(1)
        .map(|line| line.trim().to_owned())
        .collect()
}

#[test]
fn a_new_device() {
    let port = fresh();
    let plan = planned(FILE, &port);
    let ids = host_config::minor::minors(&[("bulk", None), ("video", None), ("voice", None)]);
    let said = text(&plan, &Beside::default(), &port);
    let line = |at: usize| said.lines().nth(at).unwrap().trim().to_owned();
    assert_eq!(line(0), "eth0: 8 changes");
    assert_eq!(line(1), "add     qdisc psp at root");
    // The class that frames without a match go to is named once all filters are there.
    assert_eq!(line(8), "change  qdisc psp 7073: default none -> bulk");
    assert_eq!(
        line(9),
        "note: 3 packets wait in fq_codel; the kernel drops them with it"
    );
    assert!(
        said.contains(&format!(
            "add     class video (7073:{:x}) type paced, deadline 50 ms, rate 100 Mbit/s\n",
            ids[1]
        )),
        "{said}"
    );
    assert!(
        said.contains("add     match to 10.1.0.0/16 -> class video\n"),
        "{said}"
    );
    assert!(
        said.contains("add     match mark 7 -> class voice\n"),
        "{said}"
    );
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(json["changes"][0]["do"], "add_qdisc");
    assert_eq!(json["names"][ids[1].to_string()], "video");
}

/// Options are called what they are called in the host's file.
#[test]
fn options_have_the_words_of_the_file() {
    let file = |options: &str| {
        format!(
            "[[device]]\nname = \"eth0\"\n\n[[device.class]]\nname = \"quic\"\n\
             rate = \"600mbit\"\n{options}\n"
        )
    };
    let plain = file("");
    let txtime = file("txtime = \"monotonic\"");
    let port = fresh();
    let said = text(&planned(&txtime, &port), &Beside::default(), &port);
    let class = "type paced, rate 600 Mbit/s, txtime monotonic, horizon 10 s\n";
    assert!(said.contains(class), "{said}");
    let late = file("txtime = \"tai\"\ntxtime_late = \"2ms\"\nhorizon = \"20s\"");
    let deadline = file("txtime = \"monotonic\"\ntxtime_deadline = true");
    for (from, to, options) in [
        (
            &plain,
            &txtime,
            "txtime none -> monotonic, horizon none -> 10 s",
        ),
        (&txtime, &plain, "txtime monotonic -> none"),
        (
            &txtime,
            &late,
            "txtime monotonic -> tai, horizon 10 s -> 20 s, txtime_late none -> 2 ms",
        ),
        (&txtime, &deadline, "txtime_deadline false -> true"),
        (&deadline, &txtime, "txtime_deadline true -> false"),
    ] {
        let lines = lines(from, to);
        assert_eq!(lines.len(), 1, "{lines:#?}");
        assert!(lines[0].ends_with(&format!(") {options}")), "{lines:?}");
    }
    for (from, to, options) in [
        ("", "line = \"1gbit\"", "line auto -> 1,000 Mbit/s"),
        ("", "budget = \"60%\"", "budget 70% -> 60%"),
        ("budget = \"50kb\"", "", "budget 51200 bytes -> 70%"),
        ("", "align = \"0ms\"", "align off -> 0 ns"),
        ("", "guard = true", "guard false -> true"),
    ] {
        let of = |option: &str| plain.replace("\"eth0\"\n", &format!("\"eth0\"\n{option}\n"));
        let lines = lines(&of(from), &of(to));
        assert_eq!(lines, [format!("change  qdisc psp 7073: {options}")]);
    }
}

#[test]
fn one_difference_is_one_change() {
    for (from, to, line) in [
        ("100mbit", "200mbit", "rate 100 Mbit/s -> 200 Mbit/s"),
        (
            "{ to = \"10.2",
            "{ dscp = 3, to = \"10.3.0.0/16\" }, { to = \"10.2",
            "add     match to 10.3.0.0/16 dscp 3 -> class video",
        ),
        (
            "{ to = \"10.1.0.0/16\" }, ",
            "",
            "delete  match to 10.1.0.0/16",
        ),
        ("default = \"bulk\"", "", "psp 7073: default bulk -> none"),
        (
            "name = \"eth0\"",
            "name = \"eth0\"\norder = \"rate\"",
            "change  qdisc psp 7073: order next -> rate",
        ),
    ] {
        let lines = lines(FILE, &FILE.replace(from, to));
        assert_eq!(lines.len(), 1, "{lines:#?}");
        assert!(lines[0].contains(line), "{lines:?}");
    }
    // Frames of a match go to another class by one change.
    let moved = FILE
        .replace(", { to = \"10.2.0.0/16\" }", "")
        .replace("[{ mark = 7 }]", "[{ to = \"10.2.0.0/16\" }, { mark = 7 }]");
    assert_eq!(
        lines(FILE, &moved),
        ["change  match to 10.2.0.0/16: class video -> class voice"]
    );
    assert_eq!(lines(FILE, FILE), Vec::<String>::new());
}

#[test]
fn a_class_goes_when_nothing_names_it() {
    let without = FILE
        .replace("default = \"bulk\"\n", "default = \"rest\"\n")
        .replace("name = \"bulk\"", "name = \"rest\"");
    let mut port = applied(FILE);
    let id = minor::minors(&[("bulk", None)])[0];
    psp(&mut port).classes.get_mut(&id).unwrap().waiting = 5;
    let plan = planned(&without, &port);
    let kinds: Vec<_> = plan
        .changes
        .iter()
        .map(|change| match change {
            Change::AddClass { .. } => "add",
            Change::ChangeQdisc { .. } => "default",
            Change::DeleteClass { .. } => "delete",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["add", "default", "delete"]);
    assert_eq!(plan.notes.len(), 1);
    assert!(
        plan.notes[0].starts_with("5 packets wait in class"),
        "{:?}",
        plan.notes
    );
}

#[test]
fn the_line_holds_all_rates_at_every_moment() {
    let slower = FILE.replace("1gbit", "50mbit").replace("100mbit", "40mbit");
    let of = |from: &str, to: &str| {
        let mut port = applied(from);
        let changes = planned(to, &port).changes;
        for change in &changes {
            port.apply(change).unwrap();
        }
        changes
    };
    let changes = of(FILE, &slower);
    assert!(
        matches!(changes[0], Change::ChangeClass { .. }),
        "{changes:?}"
    );
    assert!(
        matches!(changes[1], Change::ChangeQdisc { .. }),
        "{changes:?}"
    );
    assert_eq!(changes.len(), 2);
    let changes = of(&slower, FILE);
    assert!(
        matches!(changes[0], Change::ChangeQdisc { .. }),
        "{changes:?}"
    );
    assert!(
        matches!(changes[1], Change::ChangeClass { .. }),
        "{changes:?}"
    );
    assert_eq!(changes.len(), 2);
    // Reservations of a class that comes and of one that goes fit beside each other meanwhile.
    let other = FILE.replace("\"voice\"", "\"speech\"");
    let changes = of(FILE, &other);
    assert!(
        matches!(changes[0], Change::ChangeQdisc { .. }),
        "{changes:?}"
    );
    assert!(
        matches!(changes.last(), Some(Change::ChangeQdisc { .. })),
        "{changes:?}"
    );
}

#[test]
fn what_others_configured_is_left_alone() {
    let theirs = |handle| {
        port(Slot::Other {
            kind: "htb".to_owned(),
            handle,
            waiting: 0,
        })
    };
    assert_eq!(
        refused(FILE, &theirs(Handle::new(1, 0))),
        "eth0: qdisc htb 1: at root was configured by others, expected none; --take-over replaces \
         it"
    );
    let host = Host::read("f", FILE).unwrap();
    let taken = |port: &Port| {
        plan(
            &Target::new(&host.devices[0], Backend::Module, port),
            port,
            true,
        )
        .unwrap()
    };
    let changes = taken(&theirs(Handle::new(1, 0))).changes;
    assert!(
        matches!(changes[0], Change::ReplaceQdisc { .. }),
        "{changes:?}"
    );
    // With our id the kernel would take it for a change.
    let changes = taken(&theirs(minor::root())).changes;
    assert!(
        matches!(changes[0], Change::DeleteQdisc { .. }),
        "{changes:?}"
    );
    assert!(matches!(changes[1], Change::AddQdisc { .. }), "{changes:?}");

    // A class and a filter by hand.
    let mut port = applied(FILE);
    let by_hand = ClassState {
        options: ClassOptions::new(TypeOptions::Normal {
            quantum_bytes: None,
        }),
        waiting: 0,
        has_queue: false,
    };
    psp(&mut port).classes.insert(5, by_hand);
    let filter = |class| FilterState {
        priority: 49_152,
        handle: 0x8000_0800,
        kind: "u32".to_owned(),
        protocol: 0x0800,
        class: Some(class),
        matching: None,
    };
    psp(&mut port).filters.push(filter(5));
    let same = planned(FILE, &port);
    assert_eq!(same.changes, []);
    assert_eq!(
        same.notes,
        [
            "class 7073:5 is of others and stays",
            "filters of others stay: 1"
        ]
    );
    assert_eq!(taken(&port).changes.len(), 2);
    // They hold a class of ours.
    let without = FILE.replace("name = \"video\"", "name = \"film\"");
    let video = minor::minors(&[("video", None)])[0];
    psp(&mut port).filters[3] = filter(video);
    let said = refused(&without, &port);
    assert!(
        said.contains("a filter of others names it: u32 of priority 49152"),
        "{said}"
    );
    psp(&mut port).filters.pop();
    psp(&mut port).classes.get_mut(&video).unwrap().has_queue = true;
    let said = refused(&without, &port);
    assert!(said.contains("others have put a queue into it"), "{said}");
}

#[test]
fn matches_come_between_others_as_long_as_there_are_priorities() {
    // Always before the same one: soon there is no room, and all move.
    let mut port = applied(FILE);
    let mut matches = "{ to = \"10.1.0.0/16\" }, ".to_owned();
    let mut most = 0;
    for i in 0..40 {
        matches += &format!("{{ to = \"10.9.0.{i}\", dscp = 1 }}, ");
        let more = FILE.replace("{ to = \"10.1.0.0/16\" }, ", &matches);
        let changes = planned(&more, &port).changes;
        most = most.max(changes.len());
        for change in &changes {
            port.apply(change).unwrap();
        }
        let order: Vec<_> = psp(&mut port).filters.iter().map(|f| f.place()).collect();
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "{order:?}");
        assert_eq!(order.len(), 4 + i);
    }
    assert!(most > 10, "{most}: room ran short at no time");
    let marks = psp(&mut port).filters.iter();
    assert_eq!(
        marks.filter(|f| f.matching == Some(Match::Mark(7))).count(),
        1
    );
}
