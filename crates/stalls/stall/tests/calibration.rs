// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often a verdict of each confidence is right, on transfers made by chance by stacks
//! of different habits, each captured somewhere and in some manner. The generators know
//! TCP and nothing of the rules' thresholds.

use std::collections::BTreeMap;

use crate::by_chance::stalls::MAKERS;
use crate::by_chance::wire::{Chance, Habits, MS, US, View, Wire};
use stall::{Analyser, Cause, Confidence, Options};

fn habits(chance: &mut Chance) -> Habits {
    Habits {
        mss: chance.pick(&[536, 1220, 1400, 1448, 1460, 8948]),
        tick_ns: chance.pick(&[0, MS, MS, 4 * MS, 10 * MS, 100 * MS, 500 * MS]),
        sack: !chance.one_in(4),
        rto_min_ns: chance.pick(&[200, 200, 230, 300, 1000]) * MS,
        ack_every: chance.pick(&[1, 2, 2, 2, 3]),
        delayed_ack_ns: chance.pick(&[40, 40, 100, 200]) * MS,
        probe_bytes: chance.below(2),
        scale: chance.pick(&[0, 2, 7]),
    }
}

/// What was said of a true stall, by confidence: right and all.
type Table = BTreeMap<Confidence, (u64, u64)>;

fn round(seed: u64, table: &mut Table, wrong: &mut Vec<String>) {
    let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let habits = habits(&mut chance);
    let one_way_ns = chance.pick(&[500 * US, 2 * MS, 10 * MS, 25 * MS, 60 * MS]);
    let mut wire = Wire::new(habits, one_way_ns);
    if habits.scale == 0 {
        wire.window = 65_000;
    }
    // A sender keeps within the window.
    let most = wire.window / 2 / habits.mss;
    let mut at = wire.now() + 100 * US;
    for _ in 0..chance.between(3, 12) {
        let segments = chance.between(3, 14).min(most);
        at = wire.burst(at, segments * habits.mss) + 30 * US;
    }
    let truth = chance.pick(&MAKERS)(&mut chance, &mut wire, at);
    let view = View {
        place: chance.pick(&[0, 0, 50, 100]),
        no_handshake: chance.one_in(5),
        one_direction: chance.one_in(12),
        is_cut: chance.one_in(6),
    };
    let mut analyser = Analyser::new(Options::default());
    for segment in wire.capture(view) {
        analyser.segment(&segment);
    }
    let analysis = analyser.finish();
    let start_ns = analysis.start_ns;
    let (from_ns, to_ns) = (truth.from_ns - start_ns, truth.to_ns - start_ns);
    for stall in analysis.connections.iter().flat_map(|c| &c.stalls) {
        let stall_end_ns = stall.start_ns + stall.duration_ns;
        let slack_ns = 2 * one_way_ns;
        let shared = stall_end_ns
            .min(to_ns + slack_ns)
            .saturating_sub(stall.start_ns.max(from_ns.saturating_sub(slack_ns)));
        let is_it = shared * 2 >= stall.duration_ns;
        let is_right =
            is_it && truth.causes.contains(&stall.cause) && truth.sides.contains(&stall.side);
        if stall.cause == Cause::Unknown {
            continue; // no claim
        }
        let counts = table.entry(stall.confidence).or_default();
        counts.1 += 1;
        counts.0 += u64::from(is_right);
        if !is_right {
            wrong.push(format!(
                "{seed} {}: {:?} {:?} {:?} {:.3}+{:.3} (true {:.3}..{:.3}) {}\n    {view:?} {habits:?} {} ms",
                truth.name,
                stall.cause,
                stall.side,
                stall.confidence,
                stall.start_ns as f64 / 1e9,
                stall.duration_ns as f64 / 1e9,
                from_ns as f64 / 1e9,
                to_ns as f64 / 1e9,
                stall.explanation,
                one_way_ns as f64 / 1e6,
            ));
        }
    }
}

/// Of what is said with high confidence 99 % is right, with medium 85 %, with low 60 %.
/// That the capture does not show a cause is no claim.
#[test]
fn confidence_says_how_often_a_verdict_is_right() {
    let (mut table, mut wrong) = (Table::new(), Vec::new());
    for seed in 1..=4000 {
        round(seed, &mut table, &mut wrong);
    }
    let judged: u64 = table.values().map(|(_, all)| all).sum();
    let text = format!("{table:?}, {judged} judged\n{}", wrong.join("\n"));
    println!("{text}");
    assert!(judged >= 2000, "{judged} judged");
    for (confidence, percent) in [
        (Confidence::High, 99),
        (Confidence::Medium, 85),
        (Confidence::Low, 60),
    ] {
        let (right, all) = table.get(&confidence).copied().unwrap_or_default();
        assert!(all > 0 && right * 100 >= all * percent, "{text}");
    }
}
