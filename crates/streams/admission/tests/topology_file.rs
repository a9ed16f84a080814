// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that describe a network, good and bad.

use admission::{Medium, TopologyFile, read};
use proptest::prelude::*;

const GOOD: &str = r#"
period = "5ms"
rt = 60

[[host]]
name = "camera"
[[host]]
name = "screen"
[[router]]
name = "r1"

[[manager]]
name = "m1"
url = "https://127.0.0.1:8646/"

[[segment]]
name = "studio"
medium = "shared"
rate = "100mbit"
members = ["camera", "r1"]
manager = "m1"

[[segment]]
name = "hall"
medium = "switched"
rate = "1gbit"
period = "10ms"
slot = "500us"
mtu = 9000
nrt = 20000
rt = 75
total = 95
tagged = true
members = ["r1", "screen"]
manager = "m1"
"#;

#[test]
fn a_good_one() {
    let file = read(GOOD).unwrap();
    let topology = file.topology;
    let [studio, hall] = topology.segments() else {
        unreachable!("two segments are in the file")
    };
    assert_eq!(studio.spec.period_ns, 5_000_000);
    assert_eq!((studio.spec.slot_ns, studio.spec.rt_percent), (500_000, 60));
    assert_eq!(studio.spec.total_percent, 70);
    assert_eq!(
        (hall.spec.medium, hall.spec.mtu_bytes),
        (Medium::Switched, 9000)
    );
    let names: Vec<_> = topology.links().iter().map(|l| l.name.as_str()).collect();
    let expected = [
        "studio",
        "hall/r1/up",
        "hall/r1/down",
        "hall/screen/up",
        "hall/screen/down",
    ];
    assert_eq!(names, expected);
    // 60 % of 62,500 less 1538; 75 % of 1,250,000 less 9000 + 18 + 24.
    assert_eq!(topology.links()[0].budget_bytes, 37_500 - 1_538);
    assert_eq!(topology.links()[1].budget_bytes, 937_500 - 9_042);
    assert_eq!(topology.links()[1].total_bytes, 1_187_500);
    // What is not given is two of the longest frames.
    assert_eq!(
        (studio.spec.nrt_bytes, hall.spec.nrt_bytes),
        (3_076, 20_000)
    );
    assert_eq!(file.managers[0].url, "https://127.0.0.1:8646");
}

#[test]
fn defaults_that_no_segment_needs_are_read() {
    let segment = "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[segment]]\nname = \"s\"\n\
                   medium = \"switched\"\nrate = \"1gbit\"\nmembers = [\"a\", \"b\"]\n\
                   period = \"10ms\"\nslot = \"1ms\"\nrt = 50\n";
    assert!(read(segment).is_ok());
    for (line, words) in [
        ("period = \"bogus\"", "line 1: `period` is \"bogus\""),
        ("slot = 5", "line 1: `slot` is 5"),
        ("rt = \"x\"", "line 1: `rt` is \"x\""),
        ("nrt = \"x\"", "line 1: `nrt` is \"x\""),
    ] {
        let error = read(&format!("{line}\n{segment}")).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// The default does not fit a slow segment, and is not weakened: its owner says what it wants.
#[test]
fn a_slow_segment_wants_less_best_effort() {
    let slow = |top: &str, more: &str| {
        let text = GOOD.replacen("100mbit", "20mbit", 1);
        read(&format!(
            "{top}\n{}",
            text.replacen("rate", &format!("{more}\nrate"), 1)
        ))
    };
    let budget = |of: Result<TopologyFile, _>| of.unwrap().topology.links()[0].budget_bytes;
    // 70 % of 12,500 bytes for all, 60 % less a frame for streams.
    assert_eq!(budget(slow("", "")), 8_750 - 2 * 3_076);
    assert_eq!(budget(slow("nrt = 0", "")), 7_500 - 1_538);
    assert_eq!(budget(slow("nrt = 9000", "nrt = 1538")), 8_750 - 2 * 1_538);
    let refused = slow("nrt = 9000", "").unwrap_err().to_string();
    let words = "segment \"studio\": `nrt` is 9000, expected at most 4374 bytes for each of 2 \
                 members, or a `rate` of at least ";
    assert!(refused.contains(words), "{refused}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_is_wrong_is_named() {
    for (from, to, words) in [
        (
            "5ms",
            "soon",
            "line 2: `period` is \"soon\", expected a time",
        ),
        (
            "\"5ms\"",
            "\"2s\"",
            "line 17: segment \"studio\": `period` is 2000000000, expected 100us to 1s",
        ),
        (
            "rt = 60",
            "nrt = 30000",
            "line 17: segment \"studio\": `nrt` is 30000, expected at most 21874 bytes",
        ),
        (
            "100mbit",
            "10mbit",
            "line 17: segment \"studio\": `nrt` is 3076, expected at most 2187 bytes",
        ),
        (
            "nrt = 20000",
            "nrt = 1187500",
            "line 30: segment \"hall\": `nrt` is 1187500, expected at most 1187499 bytes",
        ),
        (
            "nrt = 20000",
            "nrt = -1",
            "line 30: `nrt` is -1, expected 0 to 4294967295 bytes",
        ),
        ("rt = 60", "rt = 0", "`rt` is 0, expected 1 to 100 per cent"),
        (
            "rt = 75",
            "rt = 101",
            "line 31: segment \"hall\": `rt` is 101",
        ),
        (
            "total = 95",
            "total = 74",
            "line 32: segment \"hall\": `total` is 74",
        ),
        (
            "mtu = 9000",
            "mtu = -1",
            "line 29: `mtu` is -1, expected 68 to 65535 bytes",
        ),
        (
            "500us",
            "10ms",
            "line 28: segment \"hall\": `slot` is 10000000, expected a time below",
        ),
        (
            "\"screen\"\n[[router]]",
            "\"camera\"\n[[router]]",
            "line 8: `name` is \"camera\", expected a name not in use",
        ),
        (
            "\"camera\"\n[[host",
            "\"a b\"\n[[host",
            "line 6: `name` is \"a b\", expected 1 to 64",
        ),
        (
            "[\"camera\", \"r1\"]",
            "[\"camera\", \"r2\"]",
            "line 20: segment \"studio\": `members` is \"r2\", expected the name of a host",
        ),
        (
            "[\"camera\", \"r1\"]",
            "[\"camera\", \"camera\"]",
            "line 20: segment \"studio\": `members` is \"camera\", expected each name once",
        ),
        (
            "[\"camera\", \"r1\"]",
            "[\"camera\"]",
            "segment \"studio\": `members` is 1, expected at least two names",
        ),
        (
            "\"hall\"",
            "\"studio\"",
            "line 24: segment \"studio\": `name` is",
        ),
        ("\"hall\"", "\"r1\"", "line 24: segment \"r1\": `name` is"),
        (
            "\"shared\"",
            "\"radio\"",
            "line 18: `medium` is \"radio\", expected \"shared\"",
        ),
        (
            "100mbit",
            "100",
            "line 19: `rate` is \"100\", expected a rate",
        ),
        (
            "100mbit",
            "1mbit",
            "line 19: segment \"studio\": `rate` is 1000000, expected a rate at which 60 % of a \
             period, 375 bytes now, are more than the longest best-effort frame of 1538 bytes",
        ),
        (
            "manager = \"m1\"\n\n",
            "manager = \"m2\"\n\n",
            "line 21: `manager` is \"m2\", expected the name of a manager",
        ),
        (
            "manager = \"m1\"\n\n",
            "\n",
            "line 17: `name` is \"studio\", expected a `manager`",
        ),
        ("https", "ftp", "line 14: `url` is"),
        (
            "medium",
            "medum",
            "line 18: unknown key `medum` in [[segment]]; did you mean `medium`?",
        ),
        (
            "rate = \"100mbit\"",
            "",
            "line 16: [[segment]] lacks `rate`, expected a rate",
        ),
        (
            "mtu = 9000",
            "mtu = 67",
            "line 29: segment \"hall\": `mtu` is 67, expected 68 to 65535 bytes",
        ),
        (
            "mtu = 9000\nnrt = 20000",
            "mtu = 4294967295",
            "line 29: segment \"hall\": `mtu` is 4294967295, expected 68 to 65535 bytes",
        ),
        (
            "tagged = true",
            "tagged = \"yes\"",
            "line 33: `tagged` is \"yes\", expected true or false",
        ),
        ("[[segment]]", "[[segment", "line 16: "),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let said = read(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(said.contains(words), "{to}: {said}");
    }
    assert!(read("").unwrap_err().to_string().contains("[[segment]]"));
}

proptest! {
    #![proptest_config(testkit::cases(400))]

    /// Any text is read or refused.
    #[test]
    fn any_change_is_read_or_refused(at in 0..GOOD.len(), with in "\\PC{0,12}", cut in 0..40_usize) {
        let mut text = GOOD.to_owned();
        let end = (at + cut).min(text.len());
        text.replace_range(at..end, &with);
        let _ = read(&text).map_err(|error| error.to_string());
    }
}
