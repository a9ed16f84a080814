// SPDX-License-Identifier: MIT OR Apache-2.0
//! A first look at paper 001's table 2: 1 GB through a policer of 500 Mbit/s,
//! 10 ms away, with each variant's loss recovery.
//!
//! ```text
//! cargo run --release -p netsim --example tcp_policer -- [burst bytes] [runs] [key=value ...]
//! ```
//! Keys: `window` (receive buffer, bytes), `refresh_us`, `cwnd` (first window),
//! `ssthresh` (first threshold), `tick_us`, `reno`, `cubic` (`=1`), `variant`
//! (name), `trace` (`=1`: every change of state, to stderr), and the switches
//! of defects, each `=0` or `=1`: `abc_in_loss`,
//! `sort`, `hint`, `skip`, `max_end`, `own_walk`.

#[path = "../tests/tcp_pipe/mod.rs"]
mod tcp_pipe;

use netsim::tcp::variant::{self, LostRetransmission, SackHint, SackSort, Variant};
use netsim::tcp::{Congestion, ReceiverConfig, SenderConfig};
use sender_log::variables::{Moment, Observer, State, Vars};
use tcp_pipe::{Path, Policer, run};
use units::clock::{Span, Time};

/// Prints every change of state.
#[derive(Default)]
struct Trace {
    on: bool,
    state: State,
}

impl Observer for Trace {
    fn observe(&mut self, now: Time, moment: Moment, vars: &Vars) {
        if !self.on || (vars.state == self.state && moment != Moment::Timeout) {
            return;
        }
        self.state = vars.state;
        eprintln!(
            "{:.6} {:10} {:8} una {} out {} sacked {} lost {} retrans {} cwnd {} ssthresh {}",
            now.as_s(),
            moment.name(),
            vars.state.name(),
            vars.una / 1448,
            vars.packets_out,
            vars.sacked_out,
            vars.lost_out,
            vars.retrans_out,
            vars.cwnd,
            vars.ssthresh,
        );
    }
}

const BYTES: u64 = 1_000_000_000;
const BOTTLENECK_BPS: u64 = 500_000_000;

struct Setup {
    path: Path,
    sender: SenderConfig,
    receiver: ReceiverConfig,
    bytes: u64,
    trace: bool,
}

fn set_switch(variant: &mut Variant, key: &str, on: bool) {
    match key {
        "abc_in_loss" => variant.abc_counts_in_loss = on,
        "sort" if on => variant.sack_sort = SackSort::Right,
        "sort" => variant.sack_sort = SackSort::LosesBlocks,
        "hint" if on => variant.sack_hint = SackHint::AfterFirstBlock,
        "hint" => variant.sack_hint = SackHint::AfterAnyBlock,
        "skip" => variant.skip_seen_blocks = on,
        "max_end" if on => variant.lost_retransmission = LostRetransmission::HighestEndOfBlocks,
        "own_walk" if on => variant.lost_retransmission = LostRetransmission::OwnWalk,
        _ => {}
    }
}

fn set(setup: &mut Setup, key: &str, value: u64) {
    let us = Span::from_ns(value.saturating_mul(1000));
    match key {
        "window" => setup.receiver.buffer_bytes = value,
        "cwnd" => setup.sender.initial_cwnd = value as u32,
        "ssthresh" => setup.sender.initial_ssthresh = value as u32,
        "bytes" => setup.bytes = value,
        "trace" => setup.trace = value != 0,
        "reno" => setup.sender.congestion = Congestion::Reno,
        "cubic" => setup.sender.congestion = Congestion::Cubic,
        "tick_us" => {
            setup.sender.tick = us;
            setup.receiver.tick = us;
        }
        "ack_ns" => setup.path.ack_cost = Span::from_ns(value),
        "step_ns" => setup.path.step_cost = Span::from_ns(value),
        "ring" => setup.path.ack_ring = value as usize,
        "refresh_us" => {
            if let Some(policer) = &mut setup.path.policer {
                policer.refresh = us;
            }
        }
        _ => set_switch(&mut setup.sender.variant, key, value != 0),
    }
}

fn setup(variant: Variant, burst_bytes: u64) -> Setup {
    Setup {
        path: Path {
            policer: Some(Policer {
                rate_bps: BOTTLENECK_BPS,
                burst_bytes,
                refresh: Span::from_ns(500_000),
                phase: Span::ZERO,
            }),
            ..Path::default()
        },
        sender: SenderConfig {
            congestion: Congestion::Bic,
            initial_cwnd: 2,
            initial_ssthresh: 1000,
            handshake_rtt: Some(Span::from_ns(10_000_000)),
            ..SenderConfig::new(variant)
        },
        receiver: ReceiverConfig::default(),
        bytes: BYTES,
        trace: false,
    }
}

fn table_row(name: &str, setup: &mut Setup, runs: u64) {
    let mut times = Vec::new();
    let (mut timeouts, mut retransmits, mut recoveries, mut drops) = (0, 0, 0, 0);
    for i in 0..runs {
        if let Some(policer) = &mut setup.path.policer {
            let step = policer.refresh.as_ps() / runs.max(1);
            policer.phase = Span::from_ps(step.saturating_mul(i));
        }
        setup.path.seed = i;
        let mut trace = Trace {
            on: setup.trace,
            ..Trace::default()
        };
        let outcome = run(
            &setup.path,
            &setup.sender,
            &setup.receiver,
            setup.bytes,
            &mut trace,
        );
        times.push(outcome.time.as_s());
        let counters = outcome.sender.counters();
        timeouts += counters.timeouts;
        retransmits += counters.retransmits;
        recoveries += counters.recoveries;
        drops += outcome.dropped;
    }
    let n = times.len().max(1) as f64;
    let mean = times.iter().sum::<f64>() / n;
    let max = times.iter().copied().fold(0.0, f64::max);
    let min = times.iter().copied().fold(f64::MAX, f64::min);
    let deviation = (times.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / n).sqrt();
    let bits = setup.bytes as f64 * 8.0;
    println!(
        "{name:12} {mean:7.2} {max:7.2} {min:7.2} {deviation:6.2} {:9.0} {:6.1} {:6.0}% {:8.1} {:9.0} {:9.0}",
        times.iter().map(|t| bits / t / 1e6).sum::<f64>() / n,
        timeouts as f64 / n,
        bits / max / BOTTLENECK_BPS as f64 * 100.0,
        recoveries as f64 / n,
        retransmits as f64 / n,
        drops as f64 / n,
    );
}

fn main() {
    let mut burst_bytes = 16_000_000;
    let mut runs = 10;
    let mut only = None;
    let mut keys = Vec::new();
    let mut plain = 0;
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("variant", name)) => only = Some(name.to_owned()),
            Some((key, value)) => keys.push((key.to_owned(), value.parse().unwrap_or(1))),
            None => {
                let value = argument.parse().unwrap_or(1);
                *(if plain == 0 {
                    &mut burst_bytes
                } else {
                    &mut runs
                }) = value;
                plain += 1;
            }
        }
    }
    println!(
        "{:12} {:>7} {:>7} {:>7} {:>6} {:>9} {:>6} {:>7} {:>8} {:>9} {:>9}",
        "variant",
        "mean s",
        "max",
        "min",
        "sd",
        "Mbit/s",
        "RTOs",
        "worst",
        "recov",
        "rexmit",
        "dropped"
    );
    for variant in variant::ALL {
        if only.as_ref().is_some_and(|name| name != variant.name) {
            continue;
        }
        let mut setup = setup(variant, burst_bytes);
        for (key, value) in &keys {
            set(&mut setup, key, *value);
        }
        table_row(variant.name, &mut setup, runs);
    }
}
