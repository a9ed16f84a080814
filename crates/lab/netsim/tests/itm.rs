// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts and routers that send by periods, from scenarios: delays computed by hand, and
//! properties that always hold.

use netsim::itm::{Ran, run_cell};
use proptest::prelude::*;
use scenario::Options;
use units::clock::Span;

fn run(text: &str, seed: u64) -> Ran {
    let head = "name = \"s\"\ntitle = \"t\"\nduration = \"200ms\"\n";
    let text = format!("{head}{text}");
    let scenario = scenario::parse("s.toml", &text, &Options::default()).unwrap();
    let cell = &scenario.cells[0];
    run_cell(cell, cell.isochronous.as_ref().unwrap(), seed, &mut |_| {}).unwrap()
}

/// Makes a scenario: a sender, a router and a receiver, with a hub before and after the router.
fn chain(phase: &str, stream: &str, more: &str) -> String {
    format!(
        "{more}
        [[host]]
        name = \"tx\"
        [[host]]
        name = \"router\"
        [[host]]
        name = \"rx\"
        [[segment]]
        name = \"in\"
        hosts = [\"tx\", \"router\"]
        [[segment]]
        name = \"out\"
        hosts = [\"router\", \"rx\"]
        [[stream]]
        name = \"s\"
        from = \"tx\"
        to = \"rx\"
        payload = \"1208b\"
        {stream}
        [[node]]
        host = \"tx\"
        phase = \"0s\"
        [[node]]
        host = \"router\"
        phase = \"{phase}\"
        [[node]]
        host = \"rx\"
        phase = \"2ms\"
        "
    )
}

/// Time of 1250 bytes with FCS and preamble at 100 Mbit/s, and of the default propagation.
const HOP_NS: u64 = (64 + 8 * 1_254) * 10 + 500;

#[test]
fn one_router_without_other_traffic() {
    // ITM of the sender runs at 1 ms, RT-IP of the router at 5 ms, its ITM at 6 ms.
    let ran = run(&chain("5ms", "type = \"rt\"", ""), 1);
    let s = &ran.streams[0];
    let delay = Span::from_ns(5_000_000 + HOP_NS);
    assert_eq!((s.sent, s.arrived), (20, 20));
    assert_eq!(s.one_way.worst(), Some((delay, 0)));
    assert_eq!(s.late, [20]);
    assert_eq!((s.stages[0].passed, s.stages[0].late), (20, 0));
    assert_eq!(s.retries[0], 40);
}

#[test]
fn a_packet_that_just_misses_its_router() {
    // The first of two packets is there when RT-IP runs; the second is late.
    let ran = run(&chain("1150us", "type = \"rt\"\npackets = 2", ""), 1);
    let s = &ran.streams[0];
    // The second packet takes from 1 ms to the ITM thread at 12.15 ms, and waits for no other.
    let second = Span::from_ns(11_150_000 + HOP_NS);
    assert_eq!(s.one_way.worst(), Some((second, 1)));
    assert_eq!(s.late, [20, 20]);
    assert_eq!(s.stages[0].late, 20);
    assert_eq!(s.overs.all, 0);
}

/// Nine routers in a row are on segments that nobody else uses. Each RT-IP thread runs just
/// before its packet comes: 9 x (10 ms + 1 ms), and the time of ten segments.
#[test]
fn nine_routers_on_idle_segments_keep_the_bound() {
    let names: Vec<_> = (0..11).map(|n| format!("h{n}")).collect();
    let mut text = String::new();
    for (n, name) in names.iter().enumerate() {
        // From h1 on, a phase is 0.1 ms after the ITM thread of the host before.
        let phase_us = match n {
            0 => 0,
            n => (n as u64 * 1_100) % 10_000,
        };
        text += &format!(
            "[[host]]\nname = \"{name}\"\n[[node]]\nhost = \"{name}\"\nphase = \"{phase_us}us\"\n"
        );
    }
    for (n, pair) in names.windows(2).enumerate() {
        text += &format!("[[segment]]\nname = \"s{n}\"\nhosts = {pair:?}\n");
    }
    text += "[[stream]]\nname = \"s\"\ntype = \"rt\"\nfrom = \"h0\"\nto = \"h10\"\npayload = \"1208b\"\n";
    let ran = run(&format!("settle = \"1s\"\n{text}"), 1);
    let s = &ran.streams[0];
    // The packet waits nine times 10.1 ms for the next router's RT-IP thread, and its slot.
    let delay_ns = 9 * 11_100_000 + HOP_NS;
    assert_eq!((s.sent, s.arrived), (20, 20));
    assert_eq!(s.one_way.worst().unwrap().0.as_ns(), delay_ns);
    assert!((100_000_000..110_000_000).contains(&delay_ns), "{delay_ns}");
    assert_eq!((s.overs.all, s.overs.medium), (0, 0), "{:?}", s.overs);
}

#[test]
fn a_ping_comes_back_by_its_senders_period() {
    for (receive, expected_ns) in [
        // The packet leaves tx at 1 ms, the router at 6 ms, rx at 13 ms and the router at 16
        // ms; the periodic thread of tx takes the answer at 20 ms.
        ("by-period", 19_000_000),
        ("at-once", 15_000_000 + (64 + 8 * 1_254) * 10 + 500),
    ] {
        let stream = format!("type = \"ping\"\nreceive = \"{receive}\"");
        let ran = run(&chain("5ms", &stream, ""), 1);
        let s = &ran.streams[0];
        assert_eq!(
            s.round_trip.worst().map(|(d, _)| d.as_ns()),
            Some(expected_ns)
        );
        assert_eq!(s.stages.len(), if receive == "by-period" { 4 } else { 3 });
        assert_eq!((s.sent, s.returned), (20, 20));
    }
}

/// Makes a ping between two hosts of a hub on which a third sends NRT to a fourth; the hub's
/// hosts keep the medium for whole bursts.
fn loaded_hub(slot: &str, load_mbit: u64) -> String {
    let mut text = format!("[itm]\nslot = \"{slot}\"\n");
    for host in ["ping", "echo", "load", "sink"] {
        text += &format!("[[host]]\nname = \"{host}\"\n");
    }
    text += "[[segment]]\nname = \"hub\"\nhosts = [\"ping\", \"echo\", \"load\", \"sink\"]\n\
             backoff = \"whole-bursts\"\n\
             [[stream]]\nname = \"ping\"\ntype = \"ping\"\nfrom = \"ping\"\nto = \"echo\"\n\
             payload = \"64b\"\n";
    if load_mbit > 0 {
        text += &format!(
            "[[stream]]\nname = \"up\"\ntype = \"nrt\"\nfrom = \"load\"\nto = \"sink\"\n\
             rate = \"{load_mbit}mbit\"\n[[node]]\nhost = \"load\"\nnrt = \"68kb\"\n"
        );
    }
    text
}

/// The share of the second peak is 1 - (1 - 2 slot / period) (1 - rho^2 / 2)^2 over all phases of
/// the hosts: rho is the share of the period that the burst lasts, and a round trip that misses a
/// period there and one back is counted once. 600 seeds have a standard deviation of 2 points.
#[test]
fn the_second_peak_is_as_large_as_its_closed_form() {
    for (slot, slot_share, load_mbit) in [("200us", 0.02, 0), ("1ms", 0.1, 0), ("200us", 0.02, 50)]
    {
        let text = loaded_hub(slot, load_mbit);
        let mut counts = [0_u64; 2];
        for seed in 0..600 {
            let ran = run(&text, seed);
            let periods = &ran.streams[0].round_trip_periods;
            counts[0] += periods.first().unwrap();
            counts[1] += periods.iter().skip(1).sum::<u64>();
        }
        // 1514 bytes of frame are 1538 on the wire.
        let rho = load_mbit as f64 / 100.0 * 1_538.0 / 1_514.0;
        let expected = 1.0 - (1.0 - 2.0 * slot_share) * (1.0 - rho * rho / 2.0).powi(2);
        let share = counts[1] as f64 / (counts[0] + counts[1]) as f64;
        assert!(
            (share - expected).abs() < 0.05,
            "{slot}, {load_mbit}: {share}, {expected}"
        );
    }
}

#[test]
fn a_round_trip_is_counted_by_the_periods_it_begins() {
    // The answer is taken 19 ms after the ping left, as above: in the second period.
    let ran = run(&chain("5ms", "type = \"ping\"", ""), 1);
    assert_eq!(ran.streams[0].round_trip_periods, [0, 20]);
    let twice = {
        let mut twice = ran.streams[0].clone();
        twice.join(&ran.streams[0]);
        twice
    };
    assert_eq!(twice.round_trip_periods, [0, 40]);
}

#[test]
fn nrt_waits_for_its_budget() {
    // The stream offers 20 Mbit/s, 20 packets of 1274 bytes a period; the budget is 12.
    let more = "settle = \"2s\"";
    let text = chain("5ms", "type = \"nrt\"\nrate = \"20mbit\"", more);
    let text = text.replace("phase = \"0s\"", "phase = \"0s\"\nnrt = \"15300b\"");
    let ran = run(&text, 1);
    let s = &ran.streams[0];
    assert_eq!(s.arrived, s.sent);
    assert!(ran.nodes[0].nrt_deferred > 1_000, "{:?}", ran.nodes[0]);
    // Twelve packets leave in a period, so the last one leaves so many periods after the first.
    let periods = s.span.as_ps() as f64 / 1e10;
    let expected = s.arrived as f64 / 12.0;
    assert!(
        (periods - expected).abs() < 2.0,
        "{periods} periods, {expected} expected"
    );
}

#[test]
fn without_itm_packets_pass_at_once() {
    let mut text = chain("5ms", "type = \"rt\"", "");
    text = text.replace("host = \"router\"\n", "host = \"router\"\nitm = false\n");
    let ran = run(&text, 1);
    let delay = ran.streams[0]
        .one_way
        .worst()
        .map(|(delay, _)| delay.as_ns());
    assert_eq!(delay, Some(2 * HOP_NS));
    assert!(ran.streams[0].late == [20] && ran.streams[0].stages[0].passed == 0);
}

/// Makes two hosts at each end and `routers` between, with RT and NRT in both directions and a
/// ping.
fn cascade(routers: usize, rt: u64, nrt_mbit: u64, itm: bool, switched: bool) -> String {
    let kind = if switched { "switched" } else { "shared" };
    let mut text = String::new();
    let ends = ["ping", "left", "right", "echo"];
    let inner: Vec<_> = (0..routers).map(|n| format!("r{n}")).collect();
    for host in ends.iter().map(|h| (*h).to_owned()).chain(inner.clone()) {
        text += &format!("[[host]]\nname = \"{host}\"\n");
    }
    for n in 0..=routers {
        let mut hosts = vec![];
        match n {
            0 => hosts.extend(["ping".to_owned(), "left".to_owned()]),
            n => hosts.push(inner[n - 1].clone()),
        }
        match inner.get(n) {
            Some(router) => hosts.push(router.clone()),
            None => hosts.extend(["right".to_owned(), "echo".to_owned()]),
        }
        text += &format!("[[segment]]\nname = \"s{n}\"\ntype = \"{kind}\"\nhosts = {hosts:?}\n");
    }
    for (from, to) in [("left", "right"), ("right", "left")] {
        text += &format!(
            "[[stream]]\nname = \"rt-{from}\"\ntype = \"rt\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
             packets = {rt}\npayload = \"1208b\"\n\
             [[stream]]\nname = \"nrt-{from}\"\ntype = \"nrt\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
             rate = \"{nrt_mbit}mbit\"\n"
        );
    }
    text += "[[stream]]\nname = \"ping\"\ntype = \"ping\"\nfrom = \"ping\"\nto = \"echo\"\n\
             payload = \"64b\"\n";
    for router in inner {
        text += &format!("[[node]]\nhost = \"{router}\"\nitm = {itm}\n");
    }
    text
}

proptest! {
    #![proptest_config(testkit::cases(24))]

    /// Every packet arrives, is lost, or is still under way. The bound holds, or a counted
    /// precondition does not. The same seed gives the same result.
    #[test]
    fn every_packet_beyond_the_bound_is_explained(
        routers in 0usize..4,
        rt in 1u64..14,
        nrt_mbit in 1u64..30,
        itm in any::<bool>(),
        switched in any::<bool>(),
        seed in 0u64..1_000,
    ) {
        let text = format!("settle = \"3s\"\n{}", cascade(routers, rt, nrt_mbit, itm, switched));
        let ran = run(&text, seed);
        let again = run(&text, seed);
        for (stream, twin) in ran.streams.iter().zip(&again.streams) {
            let ended = stream.arrived + stream.lost_collisions + stream.lost_queue;
            // The answer of a ping may be lost, too.
            prop_assert!(ended >= stream.sent);
            prop_assert!(stream.round_trip.count() > 0 || ended == stream.sent);
            prop_assert!(stream.round_trip.count() == 0
                || stream.returned + stream.lost_collisions + stream.lost_queue == stream.sent);
            if itm {
                prop_assert_eq!(stream.overs.unexplained, 0, "{:?}", stream.overs);
            }
            prop_assert_eq!(stream.one_way.worst(), twin.one_way.worst());
            prop_assert_eq!(&stream.late, &twin.late);
            prop_assert_eq!(&stream.retries, &twin.retries);
        }
        prop_assert_eq!(ran.nodes, again.nodes);
    }
}

#[test]
fn runs_add_up() {
    let text = cascade(2, 8, 10, true, false);
    let (one, two) = (run(&text, 1), run(&text, 2));
    let mut both = one.clone();
    both.join(&two);
    let ping = |ran: &Ran| ran.streams[4].clone();
    assert_eq!(both.runs, 2);
    assert_eq!(ping(&both).sent, ping(&one).sent + ping(&two).sent);
    assert_eq!(
        ping(&both).round_trip.count(),
        ping(&one).round_trip.count() + ping(&two).round_trip.count()
    );
    let worst = |ran: &Ran| ping(ran).round_trip.worst().map(|(delay, _)| delay);
    assert_eq!(worst(&both), worst(&one).max(worst(&two)));
    let passed = |ran: &Ran| ping(ran).stages.iter().map(|s| s.passed).sum::<u64>();
    assert_eq!(passed(&both), passed(&one) + passed(&two));
}
