// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of a device: what a file says of them, and the order in which they change.

use host_config::{
    Backend, Beside, Facts, Host, Port, Saved, Target, backend_notes, check_backend, minor, plan,
    text,
};
use tcpsp::{Change, ClassType, Handle};

const FILE: &str = r#"
[[device]]
name = "eth0"
line = "1gbit"
default = "rest"

[[device.group]]
name = "north"
rate = "300mbit"
ceil = "400mbit"

[[device.group]]
name = "south"
rate = "200mbit"

[[device.class]]
name = "ann"
group = "north"
rate = "10mbit"
ceil = "400mbit"
match = [{ to = "10.0.0.1" }]

[[device.class]]
name = "bob"
group = "north"
rate = "20mbit"
match = [{ to = "10.0.0.2" }]

[[device.class]]
name = "guests"
group = "south"
type = "normal"
match = [{ to = "10.0.1.0/24" }]

[[device.class]]
name = "rest"
type = "normal"
"#;

fn empty() -> Port {
    let facts = Facts {
        index: 2,
        name: "eth0".to_owned(),
        is_ethernet: true,
        queues: 1,
        speed_bps: Some(1_000_000_000),
        has_made_up_speed: false,
        max_frame_bytes: 1514,
    };
    Port::new(&facts, &[], &[], &[])
}

fn target(file: &str, port: &Port) -> Target {
    let host = Host::read("f", file).unwrap();
    Target::new(&host.devices[0], Backend::Module, port)
}

/// Leads a device to a file; each change is one that the kernel takes.
fn apply(port: &mut Port, file: &str) -> (Vec<Change>, Vec<String>) {
    let plan = plan(&target(file, port), port, false).unwrap();
    for change in &plan.changes {
        let made = port.apply(change);
        made.unwrap_or_else(|refusal| panic!("{change:?}: {refusal}"));
    }
    (plan.changes, plan.notes)
}

fn lines(from: &str, to: &str) -> Vec<String> {
    let mut port = empty();
    apply(&mut port, from);
    let plan = plan(&target(to, &port), &port, false).unwrap();
    let said = text(&plan, &Beside::default(), &port);
    said.lines()
        .skip(1)
        .map(|line| line.trim().to_owned())
        .collect()
}

#[test]
fn a_file_has_groups() {
    let device = &Host::read("f", FILE).unwrap().devices[0];
    let types: Vec<ClassType> = device
        .classes
        .iter()
        .map(|class| class.options.class_type())
        .collect();
    let of = |name: &str| {
        let mut classes = device.classes.iter();
        classes.find(|class| class.name == name).unwrap()
    };
    assert_eq!(
        types[..3],
        [ClassType::Group, ClassType::Group, ClassType::Paced]
    );
    assert_eq!(of("bob").options.group, Some(of("north").minor));
    assert_eq!(of("rest").options.group, None);
    let total = FILE.replace("type = \"normal\"\n\"", "");
    let total =
        total + "[[device.class]]\nname = \"tcp\"\ntype = \"dynamic\"\ntotal = \"50mbit\"\n";
    let device = &Host::read("f", &total).unwrap().devices[0];
    let options = format!("{:?}", device.classes.last().unwrap().options);
    assert!(options.contains("total_bps: Some(50000000)"), "{options}");
}

#[test]
fn what_is_wrong_is_named() {
    for (from, to, said) in [
        (
            "group = \"south\"",
            "group = \"soutth\"",
            "f:31: `group` is \"soutth\", expected the name of a group of this device; did you \
             mean `south`?",
        ),
        (
            "name = \"south\"",
            "name = \"bob\"",
            "f:24: `name` is \"bob\", expected one not in use: line 13 has it already",
        ),
        (
            "ceil = \"400mbit\"\n\n",
            "ceil = \"200mbit\"\n\n",
            "f:10: `ceil` is \"200mbit\", expected at least the rate",
        ),
        (
            "rate = \"20mbit\"",
            "rate = \"500mbit\"",
            "f:26: `rate` is 500 Mbit/s, expected at most the 400 Mbit/s of group north",
        ),
        (
            "type = \"normal\"\nmatch",
            "type = \"rt\"\nreserve = \"1kb\"\nmatch",
            "f:31: `group` is \"south\", expected it only with type \"paced\" or \"normal\"",
        ),
        (
            "rate = \"20mbit\"",
            "rate = \"20mbit\"\ntxtime = \"tai\"",
            "f:25: `group` is \"north\", expected none beside `txtime`",
        ),
        (
            "name = \"south\"",
            "name = \"south\"\ngroup = \"north\"",
            "f:14: unknown key `group` in [[device.group]]",
        ),
        (
            "rate = \"200mbit\"",
            "",
            "f:12: [[device.group]] lacks `rate`, expected a rate such as",
        ),
        (
            "default = \"rest\"",
            "default = \"north\"",
            "f:5: `default` is \"north\", expected the name of a class of this device",
        ),
        (
            "rate = \"20mbit\"",
            "rate = \"20mbit\"\ntotal = \"30mbit\"",
            "f:27: `total` is \"30mbit\", expected it only with type \"dynamic\"",
        ),
    ] {
        let file = FILE.replace(from, to);
        assert_ne!(file, FILE, "{from}");
        let error = Host::read("f", &file).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}\n{said}");
    }
}

#[test]
fn other_backends_have_no_groups() {
    let file = FILE.replace("line = \"1gbit\"\n", "");
    let device = &Host::read("f", &file).unwrap().devices[0];
    for backend in [Backend::Bpf, Backend::Edt] {
        let said = check_backend(device, backend, true)
            .unwrap_err()
            .to_string();
        let expected = format!(
            "group north: expected no [[device.group]] by backend \"{}\": only the module has \
             groups",
            backend.word()
        );
        assert_eq!(said, expected);
    }
    check_backend(device, Backend::Module, true).unwrap();
    assert_eq!(
        backend_notes(device, Backend::Module, 65_536),
        Vec::<String>::new()
    );
}

#[test]
fn a_group_comes_before_its_classes_and_goes_after_them() {
    let mut port = empty();
    let (changes, _) = apply(&mut port, FILE);
    let place = |what: &str| {
        let is_it = |change: &&Change| serde_json::to_string(change).unwrap().contains(what);
        changes.iter().position(|change| is_it(&change)).unwrap()
    };
    assert!(place("\"type\":\"group\"") < place("\"type\":\"paced\""));
    assert_eq!(apply(&mut port, FILE).0, []);
    let flat = "[[device]]\nname = \"eth0\"\nline = \"1gbit\"\n";
    let mut without = port.clone();
    let (changes, _) = apply(&mut without, flat);
    let deleted = changes.iter().filter_map(|change| match change {
        Change::DeleteClass { id } => Some(id.minor()),
        _ => None,
    });
    let psp = port.psps()[0];
    let deleted = deleted.map(|minor| psp.classes[&minor].options.class_type());
    let types: Vec<ClassType> = deleted.collect();
    assert_eq!(types.len(), 6);
    assert_eq!(types[4..], [ClassType::Group, ClassType::Group]);
}

#[test]
fn rates_of_a_group_change_where_its_classes_fit() {
    let wider = FILE
        .replace("400mbit", "600mbit")
        .replace("rate = \"300mbit\"", "rate = \"250mbit\"");
    let id = minor::minors(&[("north", None), ("ann", None)]);
    let of = |lines: &[String], minor: u16| {
        let id = format!("({})", Handle::new(minor::MAJOR, minor));
        lines.iter().position(|line| line.contains(&id)).unwrap()
    };
    let lines_of = lines(FILE, &wider);
    assert_eq!(lines_of.len(), 2, "{lines_of:#?}");
    assert!(of(&lines_of, id[0]) < of(&lines_of, id[1]), "{lines_of:#?}");
    let lines_of = lines(&wider, FILE);
    assert_eq!(lines_of.len(), 2, "{lines_of:#?}");
    assert!(of(&lines_of, id[0]) > of(&lines_of, id[1]), "{lines_of:#?}");
    // The line narrows once the group has.
    let narrow = FILE
        .replace("1gbit", "350mbit")
        .replace("400mbit", "320mbit")
        .replace("rate = \"300mbit\"", "rate = \"100mbit\"");
    let lines_of = lines(FILE, &narrow);
    assert!(
        lines_of
            .last()
            .unwrap()
            .contains("line 1,000 Mbit/s -> 350 Mbit/s")
    );
    let mut port = empty();
    for file in [FILE, &narrow, &wider, FILE] {
        apply(&mut port, file);
        assert_eq!(apply(&mut port, file).0, []);
    }
}

#[test]
fn a_class_that_moves_has_a_stand_in() {
    let moved = FILE.replace(
        "name = \"bob\"\ngroup = \"north\"",
        "name = \"bob\"\ngroup = \"south\"",
    );
    let lines = lines(FILE, &moved);
    let words: Vec<String> = lines
        .iter()
        .map(|line| {
            let words = line
                .split_whitespace()
                .filter(|word| !word.starts_with('('));
            words.take(4).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(
        words,
        [
            "add class bob type",
            "change match to 10.0.0.2:",
            "delete class bob",
            "add class bob type",
            "change match to 10.0.0.2:",
            "delete class bob",
            "note: class bob is",
        ],
        "{lines:#?}"
    );
    let mut port = empty();
    for file in [FILE, &moved, FILE] {
        apply(&mut port, file);
        assert_eq!(apply(&mut port, file).0, []);
    }
}

#[test]
fn what_a_class_was_may_become_a_group() {
    let flat = FILE
        .split("[[device.class]]\nname = \"ann\"")
        .next()
        .unwrap();
    let one = format!("{flat}\n[[device.class]]\nname = \"rest\"\ntype = \"normal\"\n");
    let two = one
        .replace(
            "[[device.group]]\nname = \"north\"",
            "[[device.class]]\nname = \"north\"",
        )
        .replace("name = \"rest\"", "name = \"rest\"\ngroup = \"south\"");
    let three = two.clone() + "[[device.class]]\nname = \"dyn\"\ntype = \"dynamic\"\n";
    let four = three.clone() + "total = \"30mbit\"\n";
    let mut port = empty();
    for file in [&one, &two, &one, FILE, &two, &three, &four, &three, FILE] {
        apply(&mut port, file);
        assert_eq!(apply(&mut port, file).0, [], "{file}");
    }
}

#[test]
fn what_is_saved_has_groups() {
    let mut port = empty();
    apply(&mut port, FILE);
    let text = Saved::new(std::slice::from_ref(&port)).unwrap().write();
    let before = port.clone();
    apply(&mut port, "[[device]]\nname = \"eth0\"\n");
    let saved = Saved::read(&text).unwrap();
    let target = saved.devices[0].target().unwrap();
    for change in plan(&target, &port, false).unwrap().changes {
        port.apply(&change).unwrap();
    }
    assert_eq!(port, before);
}
