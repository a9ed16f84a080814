// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's side of the comparison: lab/core, a module with the core alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]

use std::fs::OpenOptions;
use std::io::{Read, Write};

use pace::placed::{RESERVATION_WORDS, STATS_WORDS, reservation_stats, stats};
use pace::{ClassConfig, Layer, Mode, Order};

use crate::core_calls::{CALL_BYTES, ClassState, FIRST_NS, Outcome, Scenario, answer};

const FILE: &str = "/sys/kernel/debug/pace_calls";
/// Words of `struct call`, and where its answer is; of `struct class_state`.
const CALL_WORDS: usize = CALL_BYTES as usize / 8;
const ANSWER: usize = 4;
const STATE_WORDS: usize = 3 + RESERVATION_WORDS;

/// Returns `struct pace_list`, `struct list_class` of each class, and `struct call` of each call.
fn list(scenario: &Scenario) -> Vec<u64> {
    let config = &scenario.config;
    let period = config.period.unwrap();
    let mut words = vec![
        config.line_rate_bps,
        config.overhead_bytes.into(),
        config.min_frame_bytes.into(),
        config.max_frame_bytes.into(),
        config.max_burst_bytes.into(),
        config.link_header_bytes.into(),
        match config.layer {
            Layer::Link => 0,
            Layer::Wire => 1,
            Layer::Ip => 2,
        },
        match config.order {
            Order::Clock => 0,
            Order::Rate => 1,
            Order::Next => 2,
        },
        match config.mode {
            Mode::Gap => 0,
            Mode::Timer => 1,
            Mode::Hybrid => 2,
        },
        config.guard_band.into(),
        period.align_ns.is_some().into(),
        period.length_ns,
        period.budget_bytes,
        period.align_ns.unwrap_or(0),
        FIRST_NS,
        scenario.classes.len() as u64,
    ];
    for class in &scenario.classes {
        words.extend(match *class {
            ClassConfig::Paced { rate_bps } => [0, rate_bps, 0, 0, 0],
            ClassConfig::Borrowing { rate_bps, ceil_bps } => [0, rate_bps, ceil_bps, 0, 0],
            ClassConfig::Normal { quantum_bytes } => {
                [1, 0, 0, quantum_bytes.unwrap_or(0).into(), 0]
            }
            ClassConfig::Rt { reserve_bytes } => [2, 0, 0, 0, reserve_bytes],
            ClassConfig::Nrt { reserve_bytes } => [3, 0, 0, 0, reserve_bytes],
            ClassConfig::Launching { .. } => panic!("no scenario has launch times"),
        });
    }
    words.extend(
        scenario
            .calls
            .iter()
            .flat_map(crate::core_calls::Call::words),
    );
    words
}

/// Runs a scenario in the kernel.
pub fn run(scenario: &Scenario) -> Outcome {
    let list = list(scenario);
    let bytes: Vec<u8> = list.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(FILE)
        .unwrap_or_else(|error| panic!("{FILE}: {error}"));
    assert_eq!(file.write(&bytes).unwrap(), bytes.len());
    let mut answered = Vec::new();
    file.read_to_end(&mut answered).unwrap();
    let words = answered.chunks_exact(8);
    let words: Vec<u64> = words
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
        .collect();
    let (calls, state) = words.split_at(list.len());
    let calls = &calls[list.len() - scenario.calls.len() * CALL_WORDS..];
    let calls = calls.chunks_exact(CALL_WORDS).zip(&scenario.calls);
    let asked = calls.filter(|(_, call)| call.asks());
    let (all, classes) = state.split_at(STATS_WORDS);
    let classes = classes.chunks_exact(STATE_WORDS).map(|words| ClassState {
        ps: words[0],
        frac: words[1],
        is_active: words[2] != 0,
        reservation: reservation_stats(words[3..].try_into().unwrap()),
    });
    Outcome {
        answers: asked
            .map(|(words, _)| answer(words[ANSWER], words[ANSWER + 1]))
            .collect(),
        stats: stats(all.try_into().unwrap()),
        classes: classes.collect(),
    }
}
