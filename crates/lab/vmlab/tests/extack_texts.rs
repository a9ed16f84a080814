// SPDX-License-Identifier: MIT OR Apache-2.0
//! The texts of the qdisc's refusals. The kernel keeps 79 characters of a text with values, and
//! writes to its log if one is longer: `NETLINK_MAX_FMTMSG_LEN`.

use std::fs;
use std::path::Path;

const MOST: usize = 79;

/// Values of a text that are bounded where it is set: how the text begins, and their lengths.
/// 13 is a line or what fits it (10^12 bit/s), 12 a budget (`PACE_BUDGET_MAX`), 16 the rate of a
/// device (2^32 Mbit/s), 10 a period in ns.
const BOUNDED: &[(&str, &[usize])] = &[
    ("align %lluns: ", &[20, 10]),
    ("budget %llu: expected at most ", &[20, 12]),
    ("budget %llu: expected the ", &[12, 12]),
    ("ceil %llubit: expected at least ", &[13, 13]),
    ("ceil %llubit: expected at most ", &[20, 11, 13]),
    ("class %x:%x: rate ", &[4, 4, 13, 13]),
    ("horizon %lluns: ", &[20, 10, 13]),
    ("line %llubit: expected %llubit to ", &[20, 4, 13]),
    ("line %llubit: expected %llubit, left by ", &[20, 16]),
    ("line %llubit: expected %llubit, the ceil ", &[13, 13, 4, 4]),
    ("line %llubit: expected class ", &[13, 4, 4, 13]),
    ("period %lluns: expected time ", &[10, 6, 13]),
    ("rate %llubit: expected at most %s", &[20, 11, 13]),
    ("total %llubit: expected at most ", &[20, 13]),
    ("rate %llubit: expected more ", &[20, 13]),
    ("reserve %llu: expected ", &[20, 12]),
    ("reserve %llu: others ", &[12, 12, 12]),
];

/// Returns the longest form of a value: of an argument, by what prints it.
fn longest(print: &str, argument: &str) -> usize {
    let constant = |c: char| c.is_ascii_uppercase() || c == '_';
    match argument {
        "mode" => "hybrid".len(),
        "dev->name" => 15,
        "dev->real_num_tx_queues" => 5,
        _ if argument.starts_with("TC_H_M") || argument == "sch->handle >> 16" => 4,
        _ if argument.chars().all(constant) => 13,
        _ => match print {
            "llu" => 20,
            "u" => 10,
            "d" => 11,
            "x" => 8,
            "s" => 24,
            _ => panic!("%{print}: unknown"),
        },
    }
}

/// Splits what follows `psp_set_extack(extack, ` into the text and its values.
fn call(rest: &str) -> (&str, Vec<String>) {
    let rest = rest.trim_start().strip_prefix('"').expect("a text");
    let (text, rest) = rest.split_once('"').expect("the end of a text");
    let mut values = vec![String::new()];
    let mut depth = 0;
    for c in rest.chars() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => break,
            ')' => depth -= 1,
            ',' if depth == 0 => values.push(String::new()),
            _ => {}
        }
        if c != ',' || depth > 0 {
            values.last_mut().expect("one").push(c);
        }
    }
    let values = values.iter().map(|value| value.trim().to_owned());
    (text, values.filter(|value| !value.is_empty()).collect())
}

/// Returns the longest form of a text, as the kernel counts it.
fn length(text: &str, values: &[String]) -> usize {
    let bounded = BOUNDED.iter().find(|(begin, _)| text.starts_with(begin));
    let mut sum = "psp: ".len();
    let mut rest = text;
    let mut i = 0;
    while let Some((before, after)) = rest.split_once('%') {
        let print = ["llu", "u", "x", "d", "s"]
            .into_iter()
            .find(|print| after.starts_with(print))
            .unwrap_or_else(|| panic!("{text}: {after}"));
        sum += before.len();
        sum += match bounded {
            Some((_, bounds)) => bounds[i],
            None => longest(print, &values[i]),
        };
        rest = &after[print.len()..];
        i += 1;
    }
    assert_eq!(i, values.len(), "{text}");
    sum + rest.len()
}

#[test]
fn no_refusal_is_longer_than_the_kernel_keeps() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../kernel");
    let mut texts = 0;
    let mut long = Vec::new();
    for entry in fs::read_dir(&folder).expect("the folder is there") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|end| end != "c") {
            continue;
        }
        let source = fs::read_to_string(&path).expect("a text");
        for rest in source.split("psp_set_extack(extack,").skip(1) {
            let (text, values) = call(rest);
            let length = length(text, &values);
            texts += 1;
            if length > MOST {
                long.push(format!("{length}: {text}"));
            }
        }
    }
    assert!(texts > 40, "only {texts} texts");
    assert!(long.is_empty(), "longer than {MOST}:\n{}", long.join("\n"));
}

#[test]
fn a_long_refusal_is_found() {
    let (text, values) = call(" \"rate %llubit: %s\",\n\tf(a, b), dev->name);");
    assert_eq!(values, ["f(a, b)", "dev->name"]);
    assert_eq!(length(text, &values), 5 + 5 + 20 + 5 + 15);
}
