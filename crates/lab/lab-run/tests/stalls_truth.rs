// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers that stall for a known reason, judged from each of three places.

#[path = "stalls/pipe.rs"]
mod pipe;

use pipe::{Fate, MS, PLACES, Setup, Sight, analyse, run};
use stall::{Cause, Confidence, Side, StallKind};

fn story(name: &str, place: &str, connection: &stall::Connection) -> String {
    let stops = connection.stalls.iter().map(|stop| {
        format!(
            "  {:.3}+{:.3} {:?} {:?} {:?}: {}",
            stop.start_ns as f64 / 1e9,
            stop.duration_ns as f64 / 1e9,
            stop.cause,
            stop.side,
            stop.confidence,
            stop.explanation
        )
    });
    let stops: Vec<_> = stops.collect();
    format!(
        "{name} at {place}: {}\n  {}\n{}\n  {:?} {:?}",
        connection.verdict,
        connection.vantage.reason,
        stops.join("\n"),
        connection.flows[0].retransmissions,
        connection.flows[0].rtt,
    )
}

/// Checks that from three places the longest silence has this cause, and that no wrong side has
/// more than low confidence.
fn silence(name: &str, setup: &Setup, hook: &mut dyn FnMut(Sight) -> Fate, wanted: [Cause; 3]) {
    let captures = run(setup, hook);
    for (index, (place, _)) in PLACES.iter().enumerate() {
        let analysis = analyse(&captures.at[index]);
        let connection = analysis.connections.first().unwrap();
        let stalls = connection.stalls.iter();
        // Most transfers also have a known pause of the application.
        let asked = |cause: Cause| cause != Cause::Application || wanted[0] == cause;
        let longest = stalls
            .filter(|stop| stop.kind == StallKind::Silence && asked(stop.cause))
            .max_by_key(|stop| stop.duration_ns);
        let story = story(name, place, connection);
        if wanted[index] == Cause::Unknown {
            continue; // nothing of it gets there
        }
        let cause = longest.map(|stop| stop.cause);
        assert_eq!(cause, Some(wanted[index]), "{story}");
        let side = longest.map_or(Side::Unknown, |stop| stop.side);
        let confidence = longest.map_or(Confidence::Low, |stop| stop.confidence);
        assert!(
            side == wanted[0].side() || confidence == Confidence::Low,
            "{story}"
        );
    }
}

#[test]
fn the_application_pauses() {
    let setup = Setup {
        writes: vec![(0, 1_000_000), (700 * MS, 1_000_000)],
        ..Setup::default()
    };
    let cause = [Cause::Application; 3];
    silence("application", &setup, &mut |_| Fate::Pass, cause);
}

#[test]
fn the_receiver_does_not_read() {
    let mut setup = Setup {
        reads: vec![(1500 * MS, u64::MAX)],
        writes: vec![(0, 600_000)],
        ..Setup::default()
    };
    setup
        .reads
        .extend((1..200).map(|i| ((1500 + i * 10) * MS, u64::MAX)));
    setup.receiver.buffer_bytes = 200_000;
    let cause = [Cause::ReceiverWindowClosed; 3];
    silence("window closed", &setup, &mut |_| Fate::Pass, cause);
}

fn messages(gap_ms: u64) -> Setup {
    Setup {
        writes: vec![(0, 144_800), (gap_ms * MS, 144_800)],
        ..Setup::default()
    }
}

fn old_kernel(gap_ms: u64) -> Setup {
    let mut setup = messages(gap_ms);
    setup.sender = netsim::tcp::SenderConfig::new(netsim::tcp::variant::V2_6_22);
    setup
}

/// Loses segments `from..to` of the stream, the first `copies` times.
fn lose(from: u64, to: u64, copies: u32) -> impl FnMut(Sight) -> Fate {
    move |sight| {
        let hit = (from * 1448..to * 1448).contains(&sight.seq);
        if sight.is_data && hit && sight.copy <= copies {
            Fate::Lost(20)
        } else {
            Fate::Pass
        }
    }
}

#[test]
fn the_tail_is_lost() {
    let wanted = [Cause::TailLossProbe; 3];
    silence("tail, probe", &messages(600), &mut lose(98, 100, 1), wanted);
}

#[test]
fn the_tail_is_lost_on_an_old_kernel() {
    let wanted = [Cause::RtoTail; 3];
    silence(
        "tail, timeout",
        &old_kernel(2000),
        &mut lose(97, 100, 1),
        wanted,
    );
}

#[test]
fn too_little_is_behind_a_loss() {
    let wanted = [Cause::RtoFewDupacks; 3];
    silence(
        "few dupacks",
        &old_kernel(2000),
        &mut lose(97, 98, 1),
        wanted,
    );
}

#[test]
fn a_retransmission_is_lost() {
    let wanted = [Cause::RtoLostRetransmission; 3];
    silence(
        "lost again, old",
        &old_kernel(2000),
        &mut lose(80, 81, 2),
        wanted,
    );
}

#[test]
fn a_retransmission_is_lost_at_the_end() {
    let wanted = [Cause::RtoLostRetransmission; 3];
    silence(
        "lost again, rack",
        &messages(2000),
        &mut lose(95, 96, 2),
        wanted,
    );
}

#[test]
fn the_path_is_silent() {
    let setup = Setup::default();
    let mut hook = |sight: Sight| {
        let out = (200 * MS..4000 * MS).contains(&sight.now_ns);
        if out { Fate::Lost(20) } else { Fate::Pass }
    };
    silence("black hole", &setup, &mut hook, [Cause::SilentPath; 3]);
}

#[test]
fn one_timeout_follows_the_other() {
    let wanted = [Cause::RtoStorm; 3];
    silence("storm", &messages(9000), &mut lose(60, 61, 5), wanted);
}

#[test]
fn acknowledgements_are_lost() {
    let setup = Setup::default();
    let mut hook = |sight: Sight| {
        let out = (200 * MS..700 * MS).contains(&sight.now_ns);
        if out && !sight.is_data {
            Fate::Lost(20)
        } else {
            Fate::Pass
        }
    };
    silence("ack loss", &setup, &mut hook, [Cause::AckLoss; 3]);
}

#[test]
fn everything_is_late() {
    let setup = Setup::default();
    let mut hook = |sight: Sight| {
        let out = (200 * MS..600 * MS).contains(&sight.now_ns);
        if out && sight.is_data {
            Fate::Late(600 * MS - sight.now_ns)
        } else {
            Fate::Pass
        }
    };
    silence("late", &setup, &mut hook, [Cause::DelaySpike; 3]);
}

#[test]
fn acknowledgements_are_held_back() {
    let mut setup = Setup::default();
    setup.sender.send_buffer_bytes = 1448;
    setup.receiver.quick_acks = 0;
    setup.one_way_ns = MS;
    setup.writes = vec![(0, 100_000)];
    silence(
        "delayed",
        &setup,
        &mut |_| Fate::Pass,
        [Cause::DelayedAck; 3],
    );
}

#[test]
fn large_packets_do_not_come_through() {
    let setup = Setup {
        writes: vec![(0, 300), (300 * MS, 300_000)],
        limit_ns: 5000 * MS,
        ..Setup::default()
    };
    let mut hook = |sight: Sight| {
        if sight.is_data && sight.len > 1300 {
            Fate::Lost(20)
        } else {
            Fate::Pass
        }
    };
    silence(
        "pmtu",
        &setup,
        &mut hook,
        [Cause::PmtuBlackHole, Cause::Unknown, Cause::Unknown],
    );
}

fn slow(name: &str, setup: &Setup, hook: &mut dyn FnMut(Sight) -> Fate, wanted: [Cause; 3]) {
    let captures = run(setup, hook);
    for (index, (place, _)) in PLACES.iter().enumerate() {
        let analysis = analyse(&captures.at[index]);
        let connection = analysis.connections.first().unwrap();
        let story = story(name, place, connection);
        if wanted[index] == Cause::Unknown {
            continue;
        }
        let found = connection
            .stalls
            .iter()
            .find(|stop| stop.kind == StallKind::Slow && stop.cause == wanted[index]);
        assert!(found.is_some(), "{story}");
    }
}

/// Makes a token-bucket policer, which drops packets that find no tokens.
fn policer(rate_bps: u64, burst_bytes: u64) -> impl FnMut(Sight) -> Fate {
    let (mut tokens, mut last) = (burst_bytes as f64, 0);
    move |sight| {
        if !sight.is_data {
            return Fate::Pass;
        }
        let gain = (sight.now_ns - last) as f64 / 8e9 * rate_bps as f64;
        last = sight.now_ns;
        tokens = (tokens + gain).min(burst_bytes as f64);
        if tokens < sight.len as f64 + 52.0 {
            return Fate::Lost(20);
        }
        tokens -= sight.len as f64 + 52.0;
        Fate::Pass
    }
}

fn long(variant: netsim::tcp::Variant) -> Setup {
    Setup {
        sender: netsim::tcp::SenderConfig::new(variant),
        writes: vec![(0, 30_000_000)],
        ..Setup::default()
    }
}

#[test]
fn a_policer_drops() {
    let setup = long(netsim::tcp::variant::RACK);
    slow(
        "policer",
        &setup,
        &mut policer(40_000_000, 200_000),
        [Cause::Policer; 3],
    );
}

#[test]
fn a_policer_drops_on_an_old_kernel() {
    let setup = long(netsim::tcp::variant::V2_6_17);
    // The burst is more than the path holds, so a queue stands at the sender's own line. A
    // capture behind that line takes the queue for the network's.
    let wanted = [Cause::Policer, Cause::Policer, Cause::Unknown];
    slow(
        "policer 2.6.17",
        &setup,
        &mut policer(50_000_000, 1_000_000),
        wanted,
    );
}

#[test]
fn the_path_loses() {
    let mut state = 7u64;
    let mut hook = move |sight: Sight| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let hit = (state >> 33) % 1000 < 3;
        if sight.is_data && hit {
            Fate::Lost(20)
        } else {
            Fate::Pass
        }
    };
    let setup = long(netsim::tcp::variant::RACK);
    slow("path loss", &setup, &mut hook, [Cause::PathLoss; 3]);
}

#[test]
fn packets_overtake_each_other() {
    let mut hook = |sight: Sight| {
        if sight.is_data && sight.number % 97 == 0 {
            Fate::Late(6 * MS)
        } else {
            Fate::Pass
        }
    };
    let setup = long(netsim::tcp::variant::V2_6_22);
    slow("reordering", &setup, &mut hook, [Cause::Reordering; 3]);
}

#[test]
fn the_send_buffer_is_small() {
    let mut setup = long(netsim::tcp::variant::RACK);
    setup.sender.send_buffer_bytes = 64_000;
    setup.writes = vec![(0, 5_000_000)];
    slow(
        "send buffer",
        &setup,
        &mut |_| Fate::Pass,
        [Cause::SendBuffer; 3],
    );
}

#[test]
fn the_window_is_small() {
    let mut setup = long(netsim::tcp::variant::RACK);
    setup.receiver.buffer_bytes = 64_000;
    setup.writes = vec![(0, 5_000_000)];
    slow(
        "window",
        &setup,
        &mut |_| Fate::Pass,
        [Cause::ReceiverWindowSmall; 3],
    );
}

/// Paper 001's experiment has an RTT of 10 ms, 1 Gbit/s, and a policer of 500 Mbit/s with a
/// burst of 16 MB. 2.6.17 does not find lost retransmissions, so the timer expires, and the
/// window does not grow while the losses are repaired, one segment each round trip.
#[test]
fn the_stop_of_paper_001() {
    let mut setup = long(netsim::tcp::variant::V2_6_17);
    setup.rate_bps = 1_000_000_000;
    setup.one_way_ns = 5 * MS;
    setup.sender.initial_ssthresh = 1000;
    setup.sender.handshake_rtt = Some(units::clock::Span::from_ns(10 * MS));
    setup.writes = vec![(0, 200_000_000)];
    let wanted = [Cause::SlowGrowth; 3];
    slow(
        "paper 001",
        &setup,
        &mut policer(500_000_000, 16_000_000),
        wanted,
    );
}

/// A line with a buffer of a fifth of the round trip drops as a bad path or a policer does.
/// Only the queue that every loss finds tells them apart, so confidence must be low.
#[test]
fn a_short_buffer_is_neither_surely_a_policer_nor_a_bad_path() {
    let mut free_ns = 0;
    let mut hook = move |sight: Sight| {
        let queue_ns = u64::saturating_sub(free_ns, sight.now_ns);
        if queue_ns > 4 * MS {
            return Fate::Lost(20);
        }
        let wire_ns = (sight.len + 52) * 8 * 1_000 / 20;
        free_ns = sight.now_ns + queue_ns + wire_ns;
        Fate::Late(queue_ns + wire_ns)
    };
    let captures = run(&long(netsim::tcp::variant::RACK), &mut hook);
    for (index, (place, _)) in PLACES.iter().enumerate() {
        let analysis = analyse(&captures.at[index]);
        let connection = analysis.connections.first().unwrap();
        let story = story("short buffer", place, connection);
        assert!(connection.flows[0].retransmissions.fast > 50, "{story}");
        for stop in &connection.stalls {
            assert_ne!(stop.confidence, Confidence::High, "{story}");
            // Captures at the other places see a part of the round trip.
            let is_sure = stop.confidence > Confidence::Low;
            assert!(*place != "sender" || !is_sure, "{story}");
        }
    }
}

/// Packets come in bursts, and holes fill by themselves. There are no losses, so there is no
/// policer, however steady the rate is.
#[test]
fn holes_that_fill_by_themselves_are_no_losses() {
    let mut hook = |sight: Sight| {
        if sight.is_data && sight.number % 40 < 3 {
            Fate::Late(5 * MS)
        } else {
            Fate::Pass
        }
    };
    let setup = long(netsim::tcp::variant::RACK);
    let captures = run(&setup, &mut hook);
    for segments in &captures.at {
        let analysis = analyse(segments);
        for stop in &analysis.connections.first().unwrap().stalls {
            assert_ne!(stop.cause, Cause::Policer, "{stop:#?}");
            assert_ne!(stop.cause, Cause::PathLoss, "{stop:#?}");
        }
    }
}
