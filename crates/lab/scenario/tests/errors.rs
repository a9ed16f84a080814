// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every error names file, line, key, value and what was expected.

use scenario::{Options, parse};

/// A scenario that is valid; tests change or add lines.
const VALID: &str = r#"name = "a"
title = "A scenario"
duration = "1s"
[param]
rate = "10mbit"
[sweep]
shaper = ["psp", "htb"]
n = "1..3"
[quick]
sweep.n = [4]
[[host]]
name = "tx"
[[host]]
name = "rx"
addresses = 2
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "1gbit"
[[tc]]
host = "tx"
when = { shaper = "psp" }
lines = ["qdisc add dev eth0 root psp", "class add rate ${rate}"]
[noise]
hold_max = "0us"
every = "1ms"
[[flow]]
name = "bulk"
type = "udp"
from = "tx"
to = "rx#2"
target = "${rate}"
[[window]]
name = "steady"
from = "10ms"
[[bound]]
flow = "each"
metric = "error_pct"
max = 1
"#;

fn error_of(text: &str) -> String {
    match parse("s.toml", text, &Options::default()) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_unchanged_scenario_is_valid() {
    let scenario = parse("s.toml", VALID, &Options::default()).unwrap();
    assert_eq!(scenario.cells.len(), 6);
}

/// Each row has the text that is replaced, its replacement, and the whole message.
const REPLACED: &[(&str, &str, &str)] = &[
    ("name = \"a\"", "name = ", "s.toml:1: not valid TOML: "),
    (
        "title = \"A scenario\"",
        "titel = \"A scenario\"",
        "s.toml:2: unknown key `titel` in the scenario; did you mean `title`?",
    ),
    (
        "title = \"A scenario\"\n",
        "",
        "s.toml:1: the scenario lacks `title`, expected a string",
    ),
    (
        "type = \"udp\"",
        "type = \"udp\"\non = \"1ms\"",
        "s.toml:27: [[flow]] lacks `off`, expected the time of silence after each `on`",
    ),
    (
        "name = \"a\"",
        "name = \"a b\"",
        "s.toml:1: `name` is \"a b\", expected a name of letters, digits, `.`, `_` and `-`",
    ),
    (
        "duration = \"1s\"",
        "duration = \"1 s\"",
        "s.toml:3: `duration` is \"1 s\", expected a time such as \"10ms\" (ns, us, ms, s)",
    ),
    (
        "duration = \"1s\"",
        "duration = 1",
        "s.toml:3: `duration` is 1, expected a time such as \"10ms\" (ns, us, ms, s)",
    ),
    (
        "duration = \"1s\"",
        "duration = \"0s\"",
        "s.toml:3: `duration` is \"0s\", expected a time above 0, such as \"1s\"",
    ),
    (
        "duration = \"1s\"",
        "duration = \"1s\"\nkernel = \"5.10\"",
        "s.toml:4: `kernel` is \"5.10\", expected \"6.1\", \"6.12\" or \"7\"",
    ),
    (
        "duration = \"1s\"",
        "duration = \"1s\"\nseed = -1",
        "s.toml:4: `seed` is \"-1\", expected a whole number, 0 to 9223372036854775807",
    ),
    (
        "duration = \"1s\"",
        "duration = \"1s\"\ncpus = 9",
        "s.toml:4: `cpus` is \"9\", expected a whole number, 1 to 8",
    ),
    (
        "type = \"udp\"",
        "type = \"udp\"\nsockets = 4",
        "s.toml:27: [[flow]] lacks `turn`, expected the time for which each of the `sockets` sends",
    ),
    (
        "type = \"udp\"",
        "type = \"udp\"\nturn = \"1ms\"",
        "s.toml:27: [[flow]] lacks `sockets`, expected the number of sockets that send in turn",
    ),
    (
        "type = \"udp\"",
        "type = \"udp\"\nsockets = 4\nturn = \"1ms\"\nports = 2",
        "s.toml:32: `ports` is 2, expected nothing: a flow with `sockets` has no such key",
    ),
    (
        "duration = \"1s\"",
        "duration = \"1s\"\nmemory = \"100mb\"",
        "s.toml:4: `memory` is \"100mb\", expected a size of whole megabytes, \"128mb\" to \"64gb\"",
    ),
    (
        "rate = \"10mbit\"",
        "\"a b\" = 1",
        "s.toml:5: `a b` is \"a b\", expected a name of letters, digits and `_`, a letter first",
    ),
    (
        "shaper = [\"psp\", \"htb\"]",
        "shaper = []",
        "s.toml:7: `shaper` is a list, expected at least one value",
    ),
    (
        "n = \"1..3\"",
        "n = \"3..1\"",
        "s.toml:8: `n` is \"3..1\", expected a range that counts up, of at most 65536 values",
    ),
    (
        "n = \"1..3\"",
        "n = 1\nrate = \"1\"",
        "s.toml:9: `rate` is \"1\", expected a name that is not in [param] as well",
    ),
    (
        "n = \"1..3\"",
        "n = \"1..60000\"",
        "s.toml:8: `n` is \"1..60000\", expected at most 65536 combinations",
    ),
    (
        "n = \"1..3\"",
        "n = \"${m}\"",
        "s.toml:8: `n` names \"m\", expected a parameter; ",
    ),
    (
        "n = \"1..3\"",
        "n = 1\nper_boot = 0",
        "s.toml:9: `per_boot` is \"0\", expected a whole number, 1 to 1000",
    ),
    (
        "sweep.n = [4]",
        "sweep.m = [4]",
        "s.toml:10: unknown key `m` in [quick] sweep; did you mean `n`?",
    ),
    (
        "sweep.n = [4]",
        "seed = 4",
        "s.toml:10: unknown key `seed` in [quick]; ",
    ),
    (
        "addresses = 2",
        "addresses = 300",
        "s.toml:15: `addresses` is \"300\", expected a whole number, 1 to 254",
    ),
    (
        "name = \"rx\"",
        "name = \"tx\"",
        "s.toml:14: `name` is \"tx\", expected a name not in use: line 12 has it already",
    ),
    (
        "[[window]]",
        "[[freeze]]\nhost = \"tx\"\nprogram = \"kernel\"\n[[window]]",
        "s.toml:35: `program` is \"kernel\", expected \"sender\" or \"receiver\"",
    ),
    (
        "[[window]]",
        "[[freeze]]\nhost = \"tx\"\nprogram = \"receiver\"\n[[window]]",
        "s.toml:35: `program` is \"receiver\", expected a program of a flow at this host",
    ),
    (
        "[[window]]",
        "[[freeze]]\nhost = \"tx\"\nprogram = \"sender\"\nfrom = \"1ms\"\nto = \"9ms\"\n\
         [[freeze]]\nhost = \"tx\"\nprogram = \"sender\"\nfrom = \"9ms\"\n[[window]]",
        "s.toml:41: `from` is \"9ms\", expected a time apart from the program's other freezes",
    ),
    (
        "[[window]]",
        "[[impairment]]\ncable = \"wire\"\nfrom = \"tx\"\ncopies = 2\n[[window]]",
        "s.toml:36: `copies` is 2, expected nothing without `bytes_from` and `bytes_to`, whose \
         segments it counts",
    ),
    (
        "[[window]]",
        "[[impairment]]\ncable = \"wire\"\nfrom = \"tx\"\nflow = \"bulk\"\nbytes_to = \"9b\"\n[[window]]",
        "s.toml:37: `bytes_to` is \"9b\", expected nothing unless `flow` is a tcp flow whose data is \
         sent by `from`",
    ),
    (
        "[[window]]",
        "[[impairment]]\ncable = \"wire\"\nfrom = \"tx\"\nlate = \"1ms\"\nheld = true\n[[window]]",
        "s.toml:36: `late` is \"1ms\", expected nothing beside `held`, the other way to be late",
    ),
    (
        "[[window]]",
        "[[capture]]\nname = \"here\"\ncable = \"wire\"\nat = \"rx\"\n[[window]]",
        "s.toml:35: `cable` is \"wire\", expected a cable with a `snap` of 94 or more",
    ),
    (
        "[[window]]",
        "[[stop]]\nflow = \"bulk\"\ncause = \"none\"\n[[window]]",
        "s.toml:34: `flow` is \"bulk\", expected a tcp flow",
    ),
    (
        "type = \"udp\"",
        "type = \"tcp\"\nmessage = \"1kb\"",
        "s.toml:27: [[flow]] lacks `every`, expected the time from one `message` to the next",
    ),
    (
        "[[window]]",
        "[[closeup]]\nname = \"start\"\n[[window]]",
        "s.toml:33: [[closeup]] lacks `interval`, expected a time above 0, such as \"500us\"",
    ),
    (
        "[[window]]",
        "[[closeup]]\nname = \"start\"\ninterval = \"1us\"\n[[window]]",
        "s.toml:35: `interval` is \"1us\", expected a time with at most 100000 of it in the closeup",
    ),
    (
        "[[window]]",
        "[[closeup]]\nname = \"start\"\ninterval = \"2ms\"\nmean = \"5ms\"\n[[window]]",
        "s.toml:36: `mean` is \"5ms\", expected a multiple of `interval`",
    ),
    (
        "[[window]]",
        "[[closeup]]\nname = \"start\"\nto = \"2s\"\ninterval = \"2ms\"\n[[window]]",
        "s.toml:35: `to` is \"2s\", expected ",
    ),
    (
        "[[window]]",
        "[[bottleneck]]\ncable = \"wire\"\nfrom = \"tx\"\nrate = \"1mbit\"\nfifo = \"9kb\"\nalso = \"wire\"\n[[window]]",
        "s.toml:38: `also` is \"wire\", expected another cable without a bottleneck there, ",
    ),
    (
        "rate = \"1gbit\"",
        "",
        "s.toml:16: [[cable]] lacks `rate`, expected a rate such as \"1gbit\"",
    ),
    (
        "rate = \"1gbit\"",
        "rate = \"1gb\"",
        "s.toml:19: `rate` is \"1gb\", expected a rate such as \"500mbit\" (bit, kbit, mbit, gbit, tbit)",
    ),
    (
        "rate = \"1gbit\"",
        "rate = \"1gbit\"\nsink = \"yes\"",
        "s.toml:20: `sink` is \"yes\", expected true or false",
    ),
    (
        "\"rx:eth0\"]",
        "\"rx\"]",
        "s.toml:18: `ends` is \"rx\", expected HOST:DEVICE, such as \"tx:eth0\"",
    ),
    (
        "\"rx:eth0\"]",
        "\"ry:eth0\"]",
        "s.toml:18: `ends` names \"ry\", expected a host; did you mean `rx`?",
    ),
    (
        "\"rx:eth0\"]",
        "\"tx:eth1\"]",
        "s.toml:18: `ends` is a list, expected ends at two different hosts",
    ),
    (
        "\"rx:eth0\"]",
        "\"tx:eth0\"]",
        "s.toml:18: `ends` is \"tx:eth0\", expected a device that no other end has",
    ),
    (
        "when = { shaper = \"psp\" }",
        "when = { shaper = \"tbf\" }",
        "s.toml:22: `shaper` names \"tbf\", expected a value of `shaper`; did you mean `htb`?",
    ),
    (
        "when = { shaper = \"psp\" }",
        "when = { shape = \"psp\" }",
        "s.toml:22: `shape` names \"shape\", expected a parameter; did you mean `shaper`?",
    ),
    (
        "when = { shaper = \"psp\" }",
        "each = { rate = \"1..2\" }",
        "s.toml:22: `rate` is \"rate\", expected a name of letters, digits and `_` that is no parameter",
    ),
    (
        "class add rate ${rate}",
        "class add rate ${rate + 1}",
        "s.toml:23: `lines` is \"class add rate ${rate + 1}\", expected whole numbers to count with, and `rate` is \"10mbit\"",
    ),
    (
        "host = \"tx\"\nwhen = { shaper",
        "host = \"tx\"\nbackend = \"edt\"\nwhen = { shaper",
        "s.toml:22: `backend` is \"edt\", expected \"module\" or \"bpf\"",
    ),
    (
        "host = \"tx\"\nwhen = { shaper",
        "host = \"tx\"\nat = \"1ms\"\nbackend = \"bpf\"\nwhen = { shaper",
        "s.toml:23: `backend` is \"bpf\", expected \"bpf\" only without `at`",
    ),
    (
        "class add rate ${rate}",
        "class 'add",
        "s.toml:23: `lines` is \"class 'add\", expected arguments of tc, quotes closed",
    ),
    (
        "hold_max = \"0us\"",
        "hold_max = \"1s\"",
        "s.toml:25: `hold_max` is \"1s\", expected 0 to 100000000 of its smallest unit",
    ),
    (
        "type = \"udp\"",
        "type = \"tpc\"",
        "s.toml:29: `type` names \"tpc\", expected a type of flow; did you mean `tcp`?",
    ),
    (
        "type = \"udp\"",
        "type = \"udp\"\nwindow = \"1mb\"",
        "s.toml:30: `window` is \"1mb\", expected nothing: only tcp flows have it, this is udp",
    ),
    (
        "type = \"udp\"",
        "type = \"udp\"\ntxtime = \"realtime\"\nrate = \"1mbit\"",
        "s.toml:30: `txtime` names \"realtime\", expected a clock; there is `monotonic`, `tai`",
    ),
    (
        "type = \"udp\"",
        "type = \"udp\"\ntxtime = \"tai\"",
        "s.toml:27: [[flow]] lacks `rate`, expected a rate, because launch times follow one another at it",
    ),
    (
        "type = \"udp\"",
        "type = \"udp\"\nlead = \"1ms\"",
        "s.toml:30: `lead` is \"1ms\", expected nothing: only flows with `txtime` have it",
    ),
    (
        "type = \"udp\"",
        "type = \"udp\"\ntxtime = \"tai\"\nrate = \"1mbit\"\nports = 2",
        "s.toml:32: `ports` is 2, expected nothing: a flow with `txtime` goes to one port",
    ),
    (
        "to = \"rx#2\"",
        "to = \"rx#3\"",
        "s.toml:31: `to` is \"rx#3\", expected an address number from 1 to 2, the host's `addresses`",
    ),
    (
        "to = \"rx#2\"",
        "to = \"tx\"",
        "s.toml:31: `to` is \"tx\", expected another host than `from`",
    ),
    (
        "to = \"rx#2\"",
        "to = \"rx\"\npayload = \"1473b\"",
        "s.toml:32: `payload` is \"1473b\", expected \"16b\" to \"1472b\", what the MTU has room for",
    ),
    (
        "to = \"rx#2\"",
        "to = \"rx\"\nbatch = 64",
        "s.toml:32: `batch` is 64, expected at most 44 of this payload",
    ),
    (
        "to = \"rx#2\"",
        "to = \"rx\"\nport = \"${n * 0}\"",
        "s.toml:32: `port` is \"0\", expected a whole number, 1 to 65535",
    ),
    (
        "to = \"rx#2\"",
        "to = \"rx\"\nstart = \"1s\"",
        "s.toml:32: `start` is \"1s\", expected a time before 1000000000 ns, where it ends",
    ),
    (
        "to = \"rx#2\"",
        "to = \"rx\"\nstop = \"2s\"",
        "s.toml:32: `stop` is \"2s\", expected a time up to the cell's duration",
    ),
    (
        "target = \"${rate}\"",
        "layer = \"wire\"",
        "s.toml:27: [[flow]] lacks `target`, expected the rate that `layer` is about",
    ),
    (
        "metric = \"error_pct\"",
        "metric = \"eror_pct\"",
        "s.toml:38: `metric` names \"eror_pct\", expected a metric; did you mean `error_pct`?",
    ),
    (
        "max = 1",
        "",
        "s.toml:36: [[bound]] lacks `max`, expected `min`, `max` or both, numbers",
    ),
    (
        "max = 1",
        "max = \"a lot\"",
        "s.toml:39: `max` is \"a lot\", expected a number",
    ),
    (
        "max = 1",
        "max = nan",
        "s.toml:39: `max` is \"nan\", expected a number",
    ),
    (
        "flow = \"each\"",
        "flow = \"bluk\"",
        "s.toml:37: `flow` names \"bluk\", expected a flow; did you mean `bulk`?",
    ),
    (
        "flow = \"each\"",
        "flow = \"each\"\nwindow = \"begin\"",
        "s.toml:38: `window` names \"begin\", expected a window; there is `steady`",
    ),
];

#[test]
fn each_error_has_its_message() {
    for (from, to, expected) in REPLACED {
        assert_eq!(VALID.matches(from).count(), 1, "{from}");
        let message = error_of(&VALID.replace(from, to));
        assert!(
            message.starts_with(expected),
            "{to}\n  gives    {message}\n  expected {expected}"
        );
        assert!(expected.ends_with(' ') || message == *expected, "{message}");
    }
}

#[test]
fn values_in_place_of_tables_are_rejected() {
    for (text, expected) in [
        (
            "flow = 1",
            "s.toml:1: `flow` is 1, expected an array of tables, [[flow]]",
        ),
        (
            "flow = [1]",
            "s.toml:1: `flow` is 1, expected an array of tables, [[flow]]",
        ),
        (
            "param = 1",
            "s.toml:1: `param` is 1, expected a table, [param]",
        ),
        (
            "quick = []",
            "s.toml:1: `quick` is a list, expected a table, [quick]",
        ),
    ] {
        let rest = VALID
            .replace("[[flow]]", "[[host.unused]]")
            .replace("[param]", "[host.a]")
            .replace("[quick]", "[host.b]");
        // The error is in the first wrong line.
        let message = error_of(&format!(
            "{text}\n{}",
            rest.split("[host.a]").next().unwrap()
        ));
        assert!(message.starts_with(expected), "{message}");
    }
    let empty = "name = \"a\"\ntitle = \"t\"\nduration = \"1s\"\n";
    assert_eq!(
        error_of(empty),
        "s.toml:1: the scenario lacks `host`, expected [[host]] tables"
    );
}

#[test]
fn a_direction_has_one_bottleneck_of_one_type() {
    let with = |keys: &str| {
        format!(
            "{VALID}[[bottleneck]]\ncable = \"wire\"\nfrom = \"tx\"\nrate = \"1mbit\"\n{keys}\n"
        )
    };
    let text = with("fifo = \"1kb\"\nburst = \"1kb\"");
    assert!(
        error_of(&text).contains("either `fifo`, or for a policer"),
        "{}",
        error_of(&text)
    );
    let text = with("refresh = \"1ms\"");
    assert!(
        error_of(&text).contains("[[bottleneck]] lacks `fifo`"),
        "{}",
        error_of(&text)
    );
    let text = with("fifo = \"1kb\"") + &with("fifo = \"1kb\"")[VALID.len()..];
    assert!(
        error_of(&text).contains("a direction without a bottleneck"),
        "{}",
        error_of(&text)
    );
    let text = with("fifo = \"1kb\"").replace("from = \"tx\"\nrate", "from = \"ry\"\nrate");
    assert!(error_of(&text).contains("expected a host at an end of the cable"));
}

#[test]
fn tcp_to_a_sink_and_hosts_without_a_path_are_rejected() {
    let text = VALID
        .replace("rate = \"1gbit\"", "rate = \"1gbit\"\nsink = true")
        .replace("type = \"udp\"", "type = \"tcp\"");
    assert!(
        error_of(&text).contains("nothing answers from `wire`, a sink"),
        "{}",
        error_of(&text)
    );
    let text = VALID
        .replace("[[cable]]", "[[host]]\nname = \"far\"\n[[cable]]")
        .replace("to = \"rx#2\"", "to = \"far\"");
    assert!(error_of(&text).contains("expected a host that cables connect with `tx`"));
}

#[test]
fn errors_name_values_of_set() {
    let with = |key: &str, value: &str| {
        let set = vec![(key.to_owned(), value.to_owned())];
        parse("s.toml", VALID, &Options { quick: false, set }).map_err(|error| error.to_string())
    };
    assert_eq!(
        with("durations", "1s").unwrap_err(),
        "--set durations: unknown key `durations` in --set; did you mean `duration`?"
    );
    assert_eq!(
        with("duration", "long").unwrap_err(),
        "--set duration: `duration` is \"long\", expected a time such as \"10ms\" (ns, us, ms, s)"
    );
    assert_eq!(
        with("noise.every", "1d").unwrap_err(),
        "--set noise.every: `every` is \"1d\", expected a time such as \"10ms\" (ns, us, ms, s)"
    );
    // A parameter may have values that no condition mentions.
    assert_eq!(with("shaper", "fq, cake").unwrap().cells.len(), 6);
    assert_eq!(with("n", "7").unwrap().cells.len(), 2);
    assert_eq!(
        with("rate", "20mbit").unwrap().cells[0].tc[1].args[3],
        "20mbit"
    );
    assert_eq!(with("seed", "9").unwrap().seed, 9);
}
