// SPDX-License-Identifier: MIT OR Apache-2.0
//! No text makes the reader panic, and valid scenarios survive mutation with
//! either a value or an error that has a place.

use proptest::prelude::*;
use scenario::{Options, Place, parse};

const SEED: &str = r#"name = "a"
title = "t"
duration = "1s"
[sweep]
n = "1..3"
[quick]
sweep.n = [4]
duration = "1ms"
[[host]]
name = "tx"
[[host]]
name = "rx"
[[cable]]
name = "wire"
ends = ["tx:eth0", "rx:eth0"]
rate = "1gbit"
[[bottleneck]]
cable = "wire"
from = "tx"
rate = "1mbit"
fifo = "64kb"
[[tc]]
host = "tx"
when = { n = [1, 2] }
each = { a = "1..2" }
lines = ["class add classid 1:${a * 8 + n:x}"]
[[flow]]
name = "bulk"
type = "udp"
from = "tx"
to = "rx#1"
[[bound]]
flow = "each"
metric = "frames"
min = 1
"#;

/// Words that have a meaning somewhere in a scenario.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(
            SEED.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        ),
        "[0-9]{1,22}[a-z]{0,4}",
        "\\$\\{[a-z0-9+*/: -]{0,12}\\}?",
        "[\\[\\]{}=\"',.#\\n]{1,3}",
    ]
}

fn check(text: &str) {
    for quick in [false, true] {
        let options = Options {
            quick,
            set: vec![("n".into(), "1,2".into())],
        };
        // Without a parameter `n`, `--set n` is an error, so the text is also read without it.
        for options in [options, Options { quick, set: vec![] }] {
            if let Err(error) = parse("f", text, &options) {
                let lines = text.split('\n').count();
                match &error.place {
                    Place::Line { line, .. } => assert!((1..=lines).contains(line), "{error}"),
                    Place::Set { key } => assert_eq!(key, "n"),
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn any_text(text in ".{0,400}") {
        check(&text);
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn words_in_any_order(words in proptest::collection::vec(words(), 0..60)) {
        check(&words.join(" "));
    }

    #[test]
    fn a_scenario_with_a_piece_replaced(
        at in 0..SEED.len(),
        length in 0..40usize,
        words in proptest::collection::vec(words(), 0..3),
    ) {
        let end = (at + length).min(SEED.len());
        check(&[&SEED[..at], &words.join(" "), &SEED[end..]].concat());
    }

    #[test]
    fn a_value_replaced(line in 0..SEED.lines().count(), word in words()) {
        let text: String = SEED.lines().enumerate().map(|(number, text)| {
            match text.split_once(" = ") {
                Some((key, _)) if number == line => format!("{key} = \"{}\"\n", word.replace('"', "'")),
                _ => format!("{text}\n"),
            }
        }).collect();
        check(&text);
    }
}
