// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets of each stack look as the system's packets do: timers, acknowledgements, probes,
//! options, repair.

use tcp_stacks::app::{App, Reader, Step};
use tcp_stacks::chance::Chance;
use tcp_stacks::draw::Kind;
use tcp_stacks::ground_truth::{End, Fate, Hold, Pause, Sent, Why};
use tcp_stacks::packet::{Ids, flag};
use tcp_stacks::path::{Nature, Path};
use tcp_stacks::profile::{MS, Profile, Recovery, S};
use tcp_stacks::smol::Settings;
use tcp_stacks::world::{Point, Run, Seen, Setup, run};

const DELAY_NS: u64 = 5 * MS;

/// A path of 5 ms each way at 100 Mbit/s, without trouble.
fn nature() -> Nature {
    Nature {
        rate_bps: 100_000_000,
        delay_ns: DELAY_NS,
        ..Nature::default()
    }
}

/// An upload of `client` to `server`.
struct Upload {
    kinds: [Kind; 2],
    steps: Vec<Step>,
    reader: Reader,
    forth: Nature,
    until_ns: u64,
}

impl Upload {
    fn of(client: Kind, server: Kind, steps: &[Step]) -> Self {
        Self {
            kinds: [client, server],
            steps: steps.to_vec(),
            reader: Reader::default(),
            forth: nature(),
            until_ns: 100 * S,
        }
    }

    fn run(self) -> Run {
        let ids = Ids {
            addresses: [[10, 0, 0, 1], [10, 0, 1, 1]],
            ports: [40_000, 5001],
            initial: [u32::MAX - 1000, 77],
        };
        let mut chance = Chance::new(1, 1);
        let [client, server] = self.kinds;
        run(Setup {
            stacks: [
                client.stack(End::Client, &ids, 0, &mut chance),
                server.stack(End::Server, &ids, 0, &mut chance),
            ],
            ids,
            apps: [
                App::new(&self.steps, Reader::default()),
                App::new(&[Step::AwaitEnd, Step::Close], self.reader),
            ],
            paths: [
                Path::new(self.forth, Chance::new(1, 2)),
                Path::new(nature(), Chance::new(1, 3)),
            ],
            host_ns: [10_000, 10_000],
            dies_ns: [None, None],
            until_ns: self.until_ns,
        })
    }
}

fn scripted(profile: &Profile) -> Kind {
    Kind::Scripted(profile.clone())
}

fn smol() -> Kind {
    Kind::Smol(Settings {
        receive_bytes: 65_535,
        send_bytes: 65_535,
        ack_delay_ms: 10,
        nagle: true,
        reno: true,
        mtu: 1500,
    })
}

fn why(run: &Run, end: End, why: Why) -> Vec<&Sent> {
    run.truth[end.index()]
        .sent
        .iter()
        .filter(|s| s.why == why)
        .collect()
}

fn from(run: &Run, end: End) -> impl Iterator<Item = &Seen> {
    run.seen[Point::Server as usize]
        .iter()
        .filter(move |s| s.packet.from == end)
}

/// Everything that is written arrives, whatever the two stacks, on a path with and without loss.
#[test]
fn every_pair_of_stacks_completes_a_transfer() {
    let mut kinds: Vec<Kind> = Profile::all().iter().map(scripted).collect();
    kinds.push(smol());
    for client in &kinds {
        for server in &kinds {
            for loss_ppm in [0, 20_000] {
                let steps = [Step::Write(150_000), Step::Close, Step::AwaitEnd];
                let mut upload = Upload::of(client.clone(), server.clone(), &steps);
                upload.forth.loss_ppm = loss_ppm;
                let name = format!("{} > {}, loss {loss_ppm}", client.name(), server.name());
                let run = upload.run();
                let acks = from(&run, End::Server).map(|s| s.packet.ack);
                assert_eq!(acks.max().unwrap(), 150_002, "{name}");
                if loss_ppm == 0 {
                    let again = [Why::Fast, Why::Timeout, Why::AfterTimeout];
                    let sent = &run.truth[0].sent;
                    // smoltcp's least timeout is shorter than others' delayed acknowledgements.
                    let may = client.name() == "smoltcp";
                    assert!(
                        may || sent.iter().all(|s| !again.contains(&s.why)),
                        "{name}"
                    );
                    assert!(
                        sent.iter().all(|s| matches!(s.fate, Fate::Arrives(_))),
                        "{name}"
                    );
                }
            }
        }
    }
}

/// A single small segment is acknowledged when the system's timer fires.
#[test]
fn acknowledgements_are_delayed_as_the_system_does() {
    for mut profile in Profile::all() {
        profile.quick_acks = 0;
        // A sender whose timeout is longer than any delay.
        let steps = [
            Step::Write(100),
            Step::Pause(Pause::Think, 2 * S),
            Step::Close,
        ];
        let run = Upload::of(scripted(&Profile::reno()), scripted(&profile), &steps).run();
        let delayed = why(&run, End::Server, Why::DelayedAck);
        let data = why(&run, End::Client, Why::New)[0];
        let Fate::Arrives(arrived_ns) = data.fate else {
            panic!("lost")
        };
        let waited_ns = delayed[0].time_ns - arrived_ns;
        if profile.ack_clock {
            assert_eq!(
                delayed[0].time_ns % profile.ack_delay_ns,
                0,
                "{}",
                profile.name
            );
            assert!(waited_ns <= profile.ack_delay_ns, "{}", profile.name);
        } else {
            assert_eq!(waited_ns, profile.ack_delay_ns, "{}", profile.name);
        }
    }
}

/// Full segments that come at intervals: the system acknowledges each second or third.
#[test]
fn the_system_acknowledges_each_second_or_third_segment() {
    for (mut profile, every) in [(Profile::linux(), 2), (Profile::solaris(), 3)] {
        profile.quick_acks = 0;
        profile.receive_bytes = 1_000_000;
        profile.window_scale = Some(7);
        profile.timestamp_tick_ns = None;
        let mut steps = Vec::new();
        for _ in 0..12 {
            steps.extend([Step::Write(1460), Step::Pause(Pause::Think, 10 * MS)]);
        }
        let mut sender = Profile::linux();
        sender.timestamp_tick_ns = None;
        let run = Upload::of(scripted(&sender), scripted(&profile), &steps).run();
        let acked: Vec<u64> = from(&run, End::Server)
            .filter(|s| !s.packet.has(flag::SYN))
            .map(|s| (s.packet.ack - 1) / 1460)
            .collect();
        let expected: Vec<u64> = (1..=12 / every).map(|n| n * every).collect();
        assert_eq!(acked, expected, "{}", profile.name);
    }
}

/// The last segment is lost: the timer fires at the system's least timeout or later, and each
/// next time after twice as long.
#[test]
fn the_least_timeout_is_the_system_s() {
    for profile in Profile::all() {
        let steps = [
            Step::Write(1000),
            Step::Pause(Pause::Think, S),
            Step::Write(1000),
        ];
        let mut upload = Upload::of(scripted(&profile), scripted(&Profile::linux()), &steps);
        upload.forth.drop_data = vec![1, 2, 3];
        let run = upload.run();
        let lost = why(&run, End::Client, Why::New)[1];
        let probes = why(&run, End::Client, Why::TailProbe);
        let timeouts = why(&run, End::Client, Why::Timeout);
        assert_eq!(
            !probes.is_empty(),
            profile.recovery == Recovery::Rack,
            "{}",
            profile.name
        );
        let first_ns = timeouts[0].time_ns - probes.first().map_or(lost.time_ns, |p| p.time_ns);
        // A tick of its clock may round up.
        let most_ns = profile.rto_min_ns + 100 * MS + profile.timer_tick_ns;
        assert!(
            (profile.rto_min_ns..most_ns).contains(&first_ns),
            "{}: {first_ns}",
            profile.name
        );
        let second_ns = timeouts[1].time_ns - timeouts[0].time_ns;
        let doubled = first_ns * 2;
        let tick_ns = profile.timer_tick_ns;
        assert!(
            second_ns.abs_diff(doubled) <= 2 * tick_ns + MS,
            "{}: {second_ns}",
            profile.name
        );
    }
}

/// A receiver that does not read: the window closes, and the system probes it in its way.
#[test]
fn closed_windows_are_probed_as_the_system_does() {
    for mut profile in Profile::all() {
        profile.nagle = false;
        let steps = [Step::Write(200_000), Step::Close, Step::AwaitEnd];
        let mut receiver = Profile::linux();
        receiver.receive_bytes = 20_000;
        let mut upload = Upload::of(scripted(&profile), scripted(&receiver), &steps);
        upload.reader.pauses = vec![(40_000, 20 * S)];
        let run = upload.run();
        let probes = why(&run, End::Client, Why::WindowProbe);
        assert!(!probes.is_empty(), "{}", profile.name);
        let bytes = profile.probe_bytes;
        assert!(
            probes.iter().all(|p| p.end - p.begin == bytes),
            "{}",
            profile.name
        );
        let closed: Vec<_> = run.truth[0]
            .timeline
            .iter()
            .filter(|i| i.hold == Hold::WindowClosed)
            .collect();
        let long_ns: u64 = closed.iter().map(|i| i.end_ns - i.start_ns).sum();
        assert!(
            (19 * S..21 * S).contains(&long_ns),
            "{}: {long_ns}",
            profile.name
        );
        let first_ns = probes[0].time_ns - closed[0].start_ns;
        assert!(
            first_ns + 100 * MS >= profile.persist_min_ns,
            "{}: {first_ns}",
            profile.name
        );
        let zero = from(&run, End::Server)
            .filter(|s| s.packet.window == 0)
            .count();
        assert!(zero > probes.len() / 2, "{}", profile.name);
    }
}

/// SYN and segments have the system's options.
#[test]
fn options_are_the_system_s() {
    for profile in Profile::all() {
        let steps = [Step::Write(30_000), Step::Close];
        let run = Upload::of(scripted(&profile), scripted(&Profile::linux()), &steps).run();
        let packets: Vec<_> = from(&run, End::Client).map(|s| &s.packet).collect();
        let syn = packets[0];
        assert!(syn.has(flag::SYN));
        assert_eq!(syn.mss, Some(profile.mss), "{}", profile.name);
        assert_eq!(syn.window_scale, profile.window_scale, "{}", profile.name);
        assert_eq!(syn.sack_permitted, profile.sack, "{}", profile.name);
        for packet in &packets {
            let has = packet.timestamps.is_some();
            assert_eq!(has, profile.timestamp_tick_ns.is_some(), "{}", profile.name);
            assert_eq!(packet.hop_limit, profile.hop_limit);
        }
        let answers = from(&run, End::Server)
            .find(|s| s.packet.has(flag::SYN))
            .unwrap();
        assert_eq!(
            answers.packet.sack_permitted, profile.sack,
            "{}",
            profile.name
        );
        let scales = profile.window_scale.is_some();
        assert_eq!(
            answers.packet.window_scale.is_some(),
            scales,
            "{}",
            profile.name
        );
    }
}

/// One segment in the middle of many is lost: who repairs it without a timeout, and after how
/// many duplicate acknowledgements.
#[test]
fn a_single_loss_is_repaired_at_once() {
    for profile in Profile::all().into_iter().filter(|p| p.send_bytes > 12_000) {
        let steps = [Step::Write(60_000), Step::Close];
        let mut receiver = Profile::linux();
        receiver.sack = profile.sack;
        let mut upload = Upload::of(scripted(&profile), scripted(&receiver), &steps);
        upload.forth.drop_data = vec![12];
        let run = upload.run();
        let fast = why(&run, End::Client, Why::Fast);
        assert!(!fast.is_empty(), "{}", profile.name);
        assert!(
            why(&run, End::Client, Why::Timeout).is_empty(),
            "{}",
            profile.name
        );
        let repeated = fast[0];
        let lost = run.truth[0]
            .sent
            .iter()
            .find(|s| s.fate != Fate::Arrives(0) && matches!(s.fate, Fate::Dropped(_)))
            .unwrap();
        assert_eq!(
            (repeated.begin, repeated.end),
            (lost.begin, lost.end),
            "{}",
            profile.name
        );
        let duplicates = run.truth[1].sent.iter().filter(
            |a| matches!(a.fate, Fate::Arrives(at) if at <= repeated.time_ns && at > lost.time_ns),
        );
        let needed = profile.duplicate_acks as usize;
        assert!(duplicates.count() >= needed, "{}", profile.name);
        // Receivers keep what arrived behind the hole: one repair is enough for all.
        let needless = run.truth[0].sent.iter().filter(|s| s.needless).count();
        assert_eq!(needless, 0, "{}", profile.name);
    }
}

/// Keep-alives come after the idle time, and carry the system's bytes; they are no data.
#[test]
fn keep_alives_come_when_nothing_else_does() {
    for mut profile in [Profile::linux(), Profile::windows()] {
        profile.keep_alive = Some((10 * S, 5 * S));
        let steps = [
            Step::Write(500),
            Step::Pause(Pause::Think, 26 * S),
            Step::Close,
        ];
        let run = Upload::of(scripted(&profile), scripted(&Profile::freebsd()), &steps).run();
        let probes = why(&run, End::Client, Why::KeepAlive);
        assert_eq!(probes.len(), 2, "{}", profile.name);
        let bytes = u64::from(profile.keep_alive_bytes);
        let seen = from(&run, End::Client).filter(|s| u64::from(s.packet.payload_bytes) == bytes);
        assert!(seen.count() >= 2, "{}", profile.name);
        let idle = Hold::Paused(Pause::Think);
        let intervals = run.truth[0].timeline.iter().filter(|i| i.hold == idle);
        let idle_ns: u64 = intervals.map(|i| i.end_ns - i.start_ns).sum();
        assert!(idle_ns > 25 * S, "{}: {idle_ns}", profile.name);
    }
}

/// The truth names what holds: an application's pause, a lost tail, an acknowledgement that is
/// held while Nagle's rule waits for it.
#[test]
fn the_truth_names_the_hold() {
    let longest = |run: &Run| {
        let timeline = run.truth[0].timeline.iter();
        let held =
            timeline.filter(|i| !matches!(i.hold, Hold::Moving | Hold::Paused(Pause::AwaitIdle)));
        let longest = held.max_by_key(|i| i.end_ns - i.start_ns).unwrap();
        (longest.hold, longest.end_ns - longest.start_ns)
    };
    let linux = || scripted(&Profile::linux());
    let pause = [
        Step::Write(9000),
        Step::Pause(Pause::Work, S),
        Step::Write(9000),
        Step::Close,
    ];
    let (hold, long_ns) = longest(&Upload::of(linux(), linux(), &pause).run());
    assert_eq!(hold, Hold::Paused(Pause::Work));
    // What was written before takes a round trip of the second.
    assert!((900 * MS..S).contains(&long_ns));

    let mut upload = Upload::of(linux(), linux(), &[Step::Write(9000), Step::AwaitEnd]);
    upload.forth.drop_data = vec![6];
    assert_eq!(longest(&upload.run()).0, Hold::Lost);

    let small = [Step::Write(100), Step::Write(100), Step::Await(1)];
    let mut receiver = Profile::freebsd();
    receiver.ack_every = 2;
    let run = Upload::of(linux(), scripted(&receiver), &small).run();
    let (hold, long_ns) = longest(&run);
    assert_eq!((hold, long_ns), (Hold::AckHeld, 100 * MS));
}
