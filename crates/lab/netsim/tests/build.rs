// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks are built from scenarios: what is modelled, and the error where it is not.

use netsim::build::build;
use netsim::run::run_cell;
use proptest::prelude::*;
use scenario::{Cell, Options, parse};

/// Makes a cell with one cable, one flow, and these lines of tc on the sender.
fn cell(lines: &[&str], flow: &str) -> Cell {
    let lines: Vec<_> = lines.iter().map(|l| format!("  {l:?},\n")).collect();
    let text = format!(
        "name = \"t\"\ntitle = \"t\"\nduration = \"10ms\"\n\
         [[host]]\nname = \"tx\"\n[[host]]\nname = \"rx\"\n\
         [[cable]]\nname = \"wire\"\nends = [\"tx:eth0\", \"rx:eth0\"]\nrate = \"1gbit\"\n\
         [[tc]]\nhost = \"tx\"\nlines = [\n{}]\n\
         [[flow]]\nname = \"bulk\"\nfrom = \"tx\"\nto = \"rx\"\n{flow}\n",
        lines.concat()
    );
    let mut scenario = parse("t.toml", &text, &Options::default()).unwrap();
    scenario.cells.remove(0)
}

/// As [`cell`], with a line of tc on the receiver, too.
fn two_sided(lines: &[&str], receiver: &str, flow: &str) -> Cell {
    let flow = format!("{flow}\n[[tc]]\nhost = \"rx\"\nlines = [{receiver:?}]");
    cell(lines, &flow)
}

const UDP: &str = "type = \"udp\"";
const PSP: &str = "qdisc add dev eth0 root handle 1: psp default 1";
const CLASS: &str = "class add dev eth0 parent 1: classid 1:1 psp rate 10mbit";

#[test]
fn lines_of_tc_are_understood() {
    let htb = [
        "qdisc add dev eth0 root handle 1: htb default 2 r2q 5",
        "class add dev eth0 parent 1: classid 1:10 htb rate 100mbit ceil 200mbit burst 15k",
        "class add dev eth0 parent 1:10 classid 1:2 htb rate 10mbit prio 1 overhead 24 mpu 84",
        "qdisc add dev eth0 parent 1:2 handle 20: bfifo limit 64kb",
        "filter add dev eth0 parent 1: protocol ip prio 3 u32 match ip src 10.1.0.0/16 \
         match ip protocol 17 0xff match ip sport 20001 0xffff flowid 1:2",
        "filter replace dev eth0 parent 1: protocol ip pref 1 flower ip_proto udp dst_port 5001 \
         src_ip 10.1.1.1 dst_ip 10.1.2.0/24 classid 1:2",
    ];
    let psp = [
        "qdisc add dev eth0 root handle 1: psp default 0x1 mode timer layer wire order clock \
         guard on gap multicast line 500mbit overhead 20 split-gso on",
        "class add dev eth0 parent 1: classid 1:1 psp rate 10mbit ceil 20mbit deadline 5ms",
        "class add dev eth0 parent 1: classid 1:2 psp mode normal quantum 3000b",
        "class add dev eth0 parent 1: classid 1:3 psp mode dynamic floor 1mbit ceil 100mbit",
    ];
    let mut all = vec![&htb[..], &psp[..]];
    let others = [
        "qdisc add dev eth0 root tbf rate 12.5mbps burst 62500 latency 50ms tick 4ms",
        "qdisc replace dev eth0 root fq maxrate 100mbit limit 5000 flow_limit 50 quantum 3028",
        "qdisc add dev eth0 root fq_codel limit 500 quantum 300 target 1ms interval 20ms noecn",
        "qdisc add dev eth0 root netem delay 10ms 1ms loss random 0.1% reorder 25% gap 5 limit 9",
        "qdisc add dev eth0 root handle 1: cqf cycle 1ms budget 5kb",
        "qdisc add dev eth0 root pfifo_fast",
        "qdisc add dev eth0 root bfifo",
    ];
    all.extend(others.chunks(1));
    // tc accepts no fraction of a rate in bytes.
    let fails = build(&cell(&others[..1], UDP), 1).unwrap_err();
    assert!(fails.reason.contains("rate is \"12.5mbps\""), "{fails}");
    all.remove(2);
    for lines in all {
        run_cell(&cell(lines, UDP), 1, true, &mut |_| {}).unwrap();
    }
}

/// tc takes what stands before the kind in any order, and a line as it is pasted from a shell.
#[test]
fn words_before_the_kind_have_any_order() {
    let usual = [
        "qdisc add dev eth0 root handle 1: htb default 2",
        "class add dev eth0 parent 1: classid 1:1 htb rate 1mbit",
        "class add dev eth0 parent 1: classid 1:2 htb rate 90mbit",
        "filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5001 0xffff flowid 1:1",
    ];
    let others = [
        [
            "tc qdisc add root dev eth0 handle 1: htb default 2",
            "handle 1: root dev eth0",
        ],
        [
            "class add classid 1:1 dev eth0 parent 1: htb rate 1mbit",
            "parent 1: classid 1:1 dev eth0",
        ],
        [
            "tc class add dev eth0 root classid 1:2 htb rate 90mbit",
            "classid 1:2 root dev eth0",
        ],
        [
            "filter add dev eth0 protocol ip parent 1: prio 1 u32 match ip dport 5001 0xffff flowid 1:1",
            "prio 1 protocol ip dev eth0",
        ],
    ];
    let flow = "type = \"udp\"\nrate = \"20mbit\"";
    let sent = |lines: &[&str]| {
        let ran = run_cell(&cell(lines, flow), 1, true, &mut |_| {}).unwrap();
        format!("{:?}", ran.counts)
    };
    let expected = sent(&usual);
    assert_ne!(sent(&usual[..3]), expected, "the filter decides");
    for (at, [line, head]) in others.into_iter().enumerate() {
        let mut lines = usual;
        lines[at] = line;
        assert_eq!(sent(&lines), expected, "{line}");
        let (object, options) = (&usual[at][..usual[at].find(" dev").unwrap()], {
            let kind = if at == 3 { "u32" } else { "htb" };
            &usual[at][usual[at].find(kind).unwrap()..]
        });
        let line = format!("{object} {head} {options}");
        lines[at] = &line;
        assert_eq!(sent(&lines), expected, "{line}");
    }
}

/// The kernel asks a filter without a preference before those that had none before it.
#[test]
fn of_filters_without_a_preference_the_last_is_asked_first() {
    let lines = |prefs: [&str; 2]| {
        [
            "qdisc add dev eth0 root handle 1: htb default 2".to_owned(),
            "class add dev eth0 parent 1: classid 1:1 htb rate 2mbit".to_owned(),
            "class add dev eth0 parent 1: classid 1:2 htb rate 90mbit".to_owned(),
            format!(
                "filter add dev eth0 protocol ip {} u32 match ip dport 5001 0xffff flowid 1:1",
                prefs[0]
            ),
            format!(
                "filter add dev eth0 protocol ip {} u32 match ip protocol 17 0xff flowid 1:2",
                prefs[1]
            ),
        ]
    };
    let frames = |prefs| {
        let lines = lines(prefs);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let cell = cell(&lines, "type = \"udp\"\nrate = \"20mbit\"");
        run_cell(&cell, 1, true, &mut |_| {}).unwrap().counts.frames
    };
    let (slow, fast) = (frames(["pref 1", "pref 2"]), frames(["pref 2", "pref 1"]));
    assert!(slow < fast, "{slow} {fast}");
    assert_eq!(frames(["", ""]), fast);
    assert_eq!(frames(["", "pref 1"]), fast);
    assert_eq!(frames(["pref 1", ""]), slow);
}

/// As Linux has it: what a class is guaranteed does not lift its ceiling.
#[test]
fn a_ceil_below_the_rate_is_what_htb_gives() {
    let frames = |ceil: &str| {
        let class = format!("class add dev eth0 parent 1: classid 1:1 htb rate 50mbit {ceil}");
        let lines = ["qdisc add dev eth0 root handle 1: htb default 1", &class];
        let cell = cell(&lines, "type = \"udp\"\nrate = \"max\"");
        run_cell(&cell, 1, true, &mut |_| {}).unwrap().counts.frames
    };
    // Beside what the buckets hold.
    let [less, all] = [frames("ceil 10mbit"), frames("")];
    assert!(4 * less < all, "{less} {all}");
}

/// An error names the line of the file that is its reason.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn an_unmodelled_option_is_rejected_with_its_line() {
    let later = "class add dev eth0 parent 1: classid 1:2 psp rate 2gbit";
    for (lines, at, words) in [
        (
            &["qdisc add dev eth0 root cake"][..],
            0,
            "`cake` of a qdisc is not modelled",
        ),
        (
            &["qdisc add dev eth9 root pfifo"],
            0,
            "host `tx` has no device `eth9`",
        ),
        (
            &["qdisc del dev eth0 root"],
            0,
            "`qdisc del`, expected qdisc, class or filter",
        ),
        (
            &["qdisc add dev eth0 root pfifo limit many"],
            0,
            "limit is \"many\", expected a number",
        ),
        (
            &["qdisc add dev eth0 root tbf rate 1mbit limit 1mb"],
            0,
            "needs a rate and a burst",
        ),
        (
            &["qdisc add dev eth0 root netem loss 1% 25%"],
            0,
            "a correlation",
        ),
        (
            &["qdisc add dev eth0 root netem reorder 1%"],
            0,
            "reorder needs a delay",
        ),
        (
            &["qdisc add dev eth0 root netem delay 1ms gap 5"],
            0,
            "gap needs reorder",
        ),
        (
            &["qdisc add dev eth0 root tbf rate 1mbit burst 2kb limit 1mb latency 1ms"],
            0,
            "a limit or a latency, not both",
        ),
        (
            &["qdisc add dev eth0 root netem duplicate 1%"],
            0,
            "`duplicate` of netem",
        ),
        (
            &[
                PSP,
                CLASS,
                "class add dev eth0 parent 2: classid 2:1 psp rate 1mbit",
            ],
            2,
            "no psp with handle 2:",
        ),
        (&[PSP, CLASS, later], 2, "above the line rate"),
        (
            &["qdisc add dev eth0 root handle 1: psp split-gso off"],
            0,
            "no GSO packets",
        ),
        (
            &[PSP, "qdisc add dev eth0 parent 1:7 pfifo"],
            1,
            "no class 1:7 before",
        ),
        (
            &[PSP, CLASS, "qdisc add dev eth0 parent 1:1 fq"],
            2,
            "`fq` of a class's queue is not modelled",
        ),
        (
            &[
                PSP,
                "filter add dev eth0 parent 1: protocol ip u32 match ip tos 4 0xff",
            ],
            1,
            "`tos` of u32",
        ),
        (
            &[PSP, "filter add dev eth0 parent 1: basic"],
            1,
            "knows u32 and flower",
        ),
        (
            &["qdisc add dev eth0 root handle 1: cqf cycle 1ms budget 125001"],
            0,
            "budget is 125001 bytes, expected 1 to 125000",
        ),
        (
            &["qdisc add dev eth0 root handle 1: cqf budget 5kb"],
            0,
            "expected 1 to 0",
        ),
        (
            &["qdisc add dev eth0 root handle 1: cqf gate on"],
            0,
            "knows cycle and budget",
        ),
        (&["class"], 0, "the line ends where a verb should be"),
    ] {
        let refusal = build(&cell(lines, UDP), 1).unwrap_err().to_string();
        // The lines of tc begin at line 15 of the file.
        let place = format!("t.toml:{}: ", 15 + at);
        assert!(refusal.starts_with(&place), "{lines:?}: {refusal}");
        assert!(refusal.contains(words), "{lines:?}: {refusal}");
    }
    for (flow, words) in [
        ("type = \"pktgen\"", "expected a `rate`"),
        (
            "type = \"tcp\"\ncongestion = \"bbr\"",
            "knows reno, bic, cubic and vegas",
        ),
        (
            "type = \"tcp\"\nstack = \"3.0\"",
            "expected one of 2.6.11, 2.6.14, 2.6.17",
        ),
        (
            "type = \"tcp\"\nstack = \"2.6.17 sack_sort=wrong\"",
            "has \"sack_sort=wrong\"",
        ),
        (
            "type = \"tcp\"\nmessage = \"1kb\"\nevery = \"1ms\"",
            "`message` is not modelled",
        ),
        (
            "type = \"udp\"\nrate = \"1mbit\"\ntxtime = \"tai\"",
            "launch times",
        ),
    ] {
        let refusal = build(&cell(&[], flow), 1).unwrap_err().to_string();
        assert!(refusal.starts_with("t.toml:16: flow `bulk`"), "{refusal}");
        assert!(refusal.contains(words), "{refusal}");
    }
}

/// Makes a word that tc knows, or one that it does not.
fn word() -> impl Strategy<Value = String> {
    let known = [
        "qdisc", "class", "filter", "add", "replace", "change", "dev", "eth0", "root", "parent",
        "handle", "1:", "1:1", "classid", "psp", "htb", "tbf", "fq", "fq_codel", "netem", "pfifo",
        "u32", "match", "ip", "dport", "rate", "10mbit", "burst", "limit", "delay", "1ms", "loss",
        "1%", "mode", "dynamic", "ceil", "0", "5001", "0xffff", "tick", "default", "r2q",
        "quantum",
    ];
    prop_oneof![
        8 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => "[a-z0-9:./%-]{1,8}",
    ]
}

proptest! {
    #![proptest_config(testkit::cases(500))]

    /// Any lines are understood or rejected.
    #[test]
    fn hostile_lines_never_panic(rest in proptest::collection::vec(proptest::collection::vec(word(), 1..10), 0..3)) {
        let rest: Vec<String> = rest.iter().map(|words| words.join(" ")).collect();
        let psp = ["qdisc add dev eth0 root handle 1: psp"];
        let htb = ["qdisc add dev eth0 root handle 1: htb"];
        for first in [psp, htb] {
            let lines: Vec<&str> = first.into_iter().chain(rest.iter().map(String::as_str)).collect();
            let cell = cell(&lines, UDP);
            if build(&cell, 1).is_ok() {
                let ran = run_cell(&cell, 1, false, &mut |_| {});
                prop_assert!(ran.is_ok());
            }
        }
    }
}

/// The source sends 100 Mbit/s for 1 ms in each 4 ms: a quarter of the time.
#[test]
fn a_source_sends_and_is_silent_alternately() {
    let flow = "type = \"udp\"\nrate = \"100mbit\"\non = \"1ms\"\noff = \"3ms\"";
    let ran = run_cell(&cell(&[], flow), 1, false, &mut |_| {}).unwrap();
    let sent: Vec<u64> = ran.recorder.sent[0]
        .records
        .iter()
        .map(|r| r.start_ps)
        .collect();
    assert!(sent.len() > 20, "{sent:?}");
    assert!(
        sent.iter().all(|ps| ps % 4_000_000_000 < 1_100_000_000),
        "{sent:?}"
    );
    let ms = |at: &u64| at / 4_000_000_000;
    assert_eq!(sent.last().map(ms), Some(2));
}

/// A flow in a dynamic class leaves at cwnd / RTT, whatever its kernel: here about 150 Mbit/s
/// of 1 Gbit/s, or 300 in slow start. In a class that does not pace the segments of a window
/// leave back to back.
#[test]
fn a_dynamic_class_paces_every_stack() {
    let far = "qdisc add dev eth0 root netem delay 5ms limit 10000";
    for stack in ["2.6.11", "2.6.14", "2.6.17", "2.6.22", "2.6.24", "rack"] {
        let close = |class: &str| {
            let line = format!("class add dev eth0 parent 1: classid 1:1 psp {class}");
            let flow = format!("type = \"tcp\"\nwindow = \"90kb\"\nstack = \"{stack}\"");
            let near = "qdisc add dev eth0 root handle 1: psp default 1 mode timer";
            let mut cell = two_sided(&[near, &line], far, &flow);
            cell.duration_ns = 200_000_000;
            cell.flows[0].stop_ns = cell.duration_ns;
            let ran = run_cell(&cell, 1, false, &mut |_| {}).unwrap();
            let starts = ran.recorder.sent[0].records.iter().map(|r| r.start_ps);
            let starts: Vec<u64> = starts.filter(|ps| *ps > 20_000_000_000).collect();
            assert!(starts.len() > 100, "{stack}: {}", starts.len());
            let together = |w: &&[u64]| w[1] - w[0] < 15_000_000;
            starts.windows(2).filter(together).count() * 100 / starts.len()
        };
        let (dynamic, normal) = (close("mode dynamic"), close("mode normal"));
        assert!(
            dynamic * 5 < normal,
            "{stack}: {dynamic} % and {normal} % back to back"
        );
    }
}
