// SPDX-License-Identifier: MIT OR Apache-2.0
//! Offloads of hosts, programs on them, and queues of hosts behind the cable on which a flow is measured:
//! what is read, and what is refused or said in which words.

use scenario::topology::behind_measured_cable;
use scenario::{Cell, Options, Scenario, parse};

fn read(text: &str, quick: bool) -> Scenario {
    let options = Options { quick, set: vec![] };
    parse("s.toml", text, &options).unwrap_or_else(|error| panic!("{error}"))
}

const WORK: &str = r#"
name = "work"
title = "Programs and offloads"
duration = "1s"
[sweep]
gso = ["", "gso off"]
[quick]
duration = "100ms"
[[host]]
name = "tx"
offloads = " ${gso} gro  on"
[[host]]
name = "rx"
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "1gbit"
[[program]]
host = "r${k}"
each = { k = ["x"] }
when = { gso = "gso off" }
run = "pspacer router 'r 1.toml' --json"
file = "r1.toml"
text = """
name = "${k}"
"""
ready = "routing"
[[program]]
host = "tx"
run = "sleep 9"
start = "10ms"
stop = "500ms"
"#;

#[test]
fn programs_and_offloads_follow_the_parameters() {
    let scenario = read(WORK, false);
    let [plain, off] = &scenario.cells[..] else {
        panic!("{scenario:?}");
    };
    let pairs = |cell: &Cell| -> Vec<(usize, &str, &str, bool)> {
        let all = cell.offloads.iter();
        all.map(|o| (o.host, o.word, o.listed, o.is_on)).collect()
    };
    let gro = (0, "gro", "generic-receive-offload", true);
    let gso = (0, "gso", "generic-segmentation-offload", false);
    assert_eq!(pairs(plain), [gro]);
    assert_eq!(pairs(off), [gso, gro]);
    assert_eq!(plain.host_programs.len(), 1);
    let [router, sleep] = &off.host_programs[..] else {
        panic!("{off:?}");
    };
    assert_eq!(router.args, ["pspacer", "router", "r 1.toml", "--json"]);
    let file = router.file.as_ref().unwrap();
    assert_eq!((&*file.name, &*file.text), ("r1.toml", "name = \"x\"\n"));
    assert_eq!(router.ready.as_deref(), Some("routing"));
    assert_eq!((router.start_ns, router.stop_ns), (None, None));
    assert_eq!(
        (sleep.start_ns, sleep.stop_ns),
        (Some(10_000_000), Some(500_000_000))
    );
    let short = read(WORK, true);
    let stops = short.cells[1].host_programs.iter().map(|p| p.stop_ns);
    assert_eq!(stops.collect::<Vec<_>>(), [None, Some(100_000_000)]);
}

/// Only the laboratory has devices and programs.
#[test]
fn segments_have_neither_programs_nor_offloads() {
    let text = "name = \"s\"\ntitle = \"\"\nduration = \"1s\"\n\
                [[host]]\nname = \"a\"\nOFFLOADS\n[[host]]\nname = \"b\"\n\
                [[segment]]\nname = \"hub\"\nhosts = [\"a\", \"b\"]\n\
                [[stream]]\nname = \"v\"\ntype = \"rt\"\nfrom = \"a\"\nto = \"b\"\n";
    let said = |text: &str| {
        let error = parse("s.toml", text, &Options::default()).unwrap_err();
        error.to_string()
    };
    parse(
        "s.toml",
        &text.replace("OFFLOADS\n", ""),
        &Options::default(),
    )
    .unwrap();
    let offloads = said(&text.replace("OFFLOADS", "offloads = \"gso off\""));
    assert_eq!(
        offloads,
        "s.toml:6: `offloads` is \"gso off\", expected nothing: hosts on segments have no offloads"
    );
    let program = "[[program]]\nhost = \"a\"\nrun = \"sleep 1\"\n";
    let program = said(&(text.replace("OFFLOADS\n", "") + program));
    assert!(
        program.contains("`[[program]]` beside `[[segment]]`"),
        "{program}"
    );
}

const VALID: &str = r#"name = "s"
title = "A scenario"
duration = "1s"
[[host]]
name = "tx"
offloads = "gso off"
[[host]]
name = "rx"
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "1gbit"
[[program]]
host = "rx"
run = "sleep 9"
"#;

/// Each row has the text that is replaced, its replacement, and how the message begins.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "gso off",
        "gso out",
        "s.toml:6: `offloads` is \"gso out\", expected pairs as of `ethtool -K`, such as \"gso off \
         gro off\", each of them once: rx, tx, sg, tso, gso, gro, lro, rxvlan, txvlan, ntuple, \
         rxhash, with on or off",
    ),
    (
        "gso off",
        "gsp off",
        "s.toml:6: `offloads` is \"gsp off\", expected pairs as of `ethtool -K`, ",
    ),
    (
        "gso off",
        "gso off gro",
        "s.toml:6: `offloads` is \"gso off gro\", expected pairs ",
    ),
    (
        "gso off",
        "gso off gso on",
        "s.toml:6: `offloads` is \"gso off gso on\", expected pairs ",
    ),
    (
        "\"gso off\"",
        "false",
        "s.toml:6: `offloads` is false, expected pairs ",
    ),
    (
        "\"gso off\"",
        "\"${gso} off\"",
        "s.toml:6: `offloads` names \"gso\", expected a parameter",
    ),
    (
        "run = \"sleep 9\"\n",
        "",
        "s.toml:13: [[program]] lacks `run`, expected a program's name and its arguments, quotes \
         closed, such as \"pspacer router r.toml\"",
    ),
    (
        "host = \"rx\"",
        "host = \"ry\"",
        "s.toml:14: `host` names \"ry\", expected a host; did you mean `rx`?",
    ),
    (
        "sleep 9",
        "sleep '9",
        "s.toml:15: `run` is \"sleep '9\", expected a program's name and its arguments, ",
    ),
    (
        "sleep 9",
        "/bin/sleep 9",
        "s.toml:15: `run` is \"/bin/sleep 9\", expected a program's name ",
    ),
    (
        "sleep 9",
        "",
        "s.toml:15: `run` is \"\", expected a program's name ",
    ),
    (
        "\"sleep 9\"",
        "\"sleep 9\"\nshell = true",
        "s.toml:16: unknown key `shell` in [[program]]",
    ),
    (
        "\"sleep 9\"",
        "\"sleep 9\"\nstop = \"2s\"",
        "s.toml:16: `stop` is \"2s\", expected a time up to the cell's duration",
    ),
    (
        "\"sleep 9\"",
        "\"sleep 9\"\nstart = \"5ms\"\nstop = \"5ms\"",
        "s.toml:16: `start` is \"5ms\", expected a time before 5000000 ns, where it ends",
    ),
    (
        "\"sleep 9\"",
        "\"cat\"\nfile = \"../plan\"\ntext = \"\"",
        "s.toml:16: `file` is \"../plan\", expected a name of letters, digits, ",
    ),
    (
        "\"sleep 9\"",
        "\"cat\"\nfile = \"f\"",
        "s.toml:13: [[program]] lacks `text`, expected the text of the file",
    ),
    (
        "\"sleep 9\"",
        "\"cat\"\ntext = \"f\"",
        "s.toml:16: `text` is \"f\", expected nothing without `file`, the name of the file that has it",
    ),
    (
        "\"sleep 9\"",
        "\"cat\"\nready = \"\"",
        "s.toml:16: `ready` is \"\", expected what the program prints in a line once it is ready",
    ),
    (
        "\"sleep 9\"",
        "\"cat\"\nstart = \"1ms\"\nready = \"on\"",
        "s.toml:17: `ready` is \"on\", expected nothing beside `start`: only t = 0 waits for it",
    ),
];

#[test]
fn what_is_wrong_is_refused_with_what_was_expected() {
    read(VALID, false);
    for (from, to, expected) in REFUSED {
        let text = VALID.replacen(from, to, 1);
        match parse("s.toml", &text, &Options::default()) {
            Ok(_) => panic!("accepted:\n{text}"),
            Err(error) => {
                let said = error.to_string();
                assert!(said.starts_with(expected), "{said}\nexpected {expected}");
            }
        }
    }
}

/// A router whose queue may lose what has passed the cable on which its flow is measured.
const ROUTED: &str = r#"
name = "routed"
title = "a delay, and netem's own limit"
duration = "5s"
[[host]]
name = "a"
[[host]]
name = "r"
[[host]]
name = "b"
[[cable]]
name = "in"
ends = ["a:eth0", "r:eth0"]
rate = "100mbit"
[[cable]]
name = "out"
ends = ["r:eth1", "b:eth0"]
rate = "100mbit"
[[tc]]
host = "r"
lines = ["qdisc add dev eth1 root netem delay 1000ms"]
[[flow]]
name = "requests"
type = "udp"
from = "a"
to = "b"
payload = "400b"
rate = "7mbit"
[[window]]
name = "all"
"#;

#[test]
fn a_bound_on_losses_says_of_which_cable_it_is() {
    let bound = "[[bound]]\nflow = \"requests\"\nwindow = \"all\"\nmetric = \"dropped\"\nmax = 0\n";
    let remark = |text: &str| behind_measured_cable(&read(text, false).cells[0]);
    let plain = "flow `requests` is measured on cable `in`: what the queue of r:eth1 holds or loses of it \
                 is in no metric and no bound";
    assert_eq!(remark(ROUTED), [plain]);
    assert_eq!(
        remark(&format!("{ROUTED}{bound}")),
        [format!(
            "{plain}; its bound on `dropped` holds of that cable alone"
        )]
    );
    let even = ROUTED.replace("eth1 root", "eth0 root");
    assert_eq!(remark(&format!("{even}{bound}")), [""; 0]);
}
