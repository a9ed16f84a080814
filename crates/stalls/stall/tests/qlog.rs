// SPDX-License-Identifier: MIT OR Apache-2.0
//! QUIC connections as qlogs of one end show them, in both forms and by old and current names.

use proptest::prelude::*;
use stall::qlog::{QlogResults, QuicConnection, Vantage};
use stall::{Cause, Confidence, Direction, StallKind};

/// Reads a qlog of these bytes.
fn read(bytes: &[u8]) -> Result<QlogResults, String> {
    let mut found = QlogResults::default();
    found
        .read("a.qlog", bytes, None)
        .map_err(|error| error.to_string())?;
    Ok(found)
}

/// A line of a script as an event: `MS KIND ...`, by old names or by current ones.
fn event(line: &str, old: bool) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (transport, recovery) = if old {
        ("transport", "recovery")
    } else {
        ("quic", "quic")
    };
    let packet = |name: &str, number: &str, frames: &str| {
        format!(
            r#""{name}","data":{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":1200}},"frames":[{frames}]}}"#
        )
    };
    let stream = |id: &str, offset: &str| {
        format!(r#"{{"frame_type":"stream","stream_id":{id},"offset":{offset},"length":1000}}"#)
    };
    let (sent, received) = (
        format!("{transport}:packet_sent"),
        format!("{transport}:packet_received"),
    );
    let rest = match words[1..] {
        ["send", number, id, offset] => packet(&sent, number, &stream(id, offset)),
        ["blocked", number] => packet(
            &sent,
            number,
            r#"{"frame_type":"data_blocked","limit":5000}"#,
        ),
        ["credit", number] => packet(
            &received,
            number,
            r#"{"frame_type":"max_data","maximum":9}"#,
        ),
        ["give", number] => packet(&sent, number, r#"{"frame_type":"max_data","maximum":9}"#),
        ["starved", number] => packet(
            &received,
            number,
            r#"{"frame_type":"stream_data_blocked","stream_id":4}"#,
        ),
        ["ping", number] => packet(&sent, number, r#"{"frame_type":"ping"}"#),
        ["ack", first, last] => packet(
            &received,
            "7",
            &format!(r#"{{"frame_type":"ack","acked_ranges":[[{first},{last}]]}}"#),
        ),
        ["receive", number, id, offset] => packet(&received, number, &stream(id, offset)),
        ["lost", number] => packet(&format!("{recovery}:packet_lost"), number, ""),
        ["pto"] if old => {
            r#""recovery:loss_timer_updated","data":{"event_type":"expired","timer_type":"pto"}"#
                .to_owned()
        }
        ["pto"] => {
            r#""quic:timer_updated","data":{"event_type":"expired","timer_type":"pto"}"#.to_owned()
        }
        ["count", n] => {
            let name = if old {
                "recovery:metrics_updated"
            } else {
                "quic:recovery_metrics_updated"
            };
            format!(r#""{name}","data":{{"pto_count":{n}}}"#)
        }
        ["limit", bytes] => format!(
            r#""{transport}:parameters_set","data":{{"owner":"remote","initial_max_data":{bytes}}}"#
        ),
        ["raise", number, bytes] => packet(
            &received,
            number,
            &format!(r#"{{"frame_type":"max_data","maximum":{bytes}}}"#),
        ),
        ["timer", kind] => format!(
            r#""quic:timer_updated","data":{{"event_type":"expired","timer_type":"{kind}"}}"#
        ),
        ["held", first, last, ms] => packet(
            &received,
            "7",
            &format!(
                r#"{{"frame_type":"ack","ack_delay":{ms},"acked_ranges":[[{first},{last}]]}}"#
            ),
        ),
        ["close", number] => packet(&sent, number, r#"{"frame_type":"connection_close"}"#),
        ["rtt", ms] => {
            format!(
                r#""recovery:metrics_updated","data":{{"smoothed_rtt":{ms},"congestion_window":12000,"bytes_in_flight":0}}"#
            )
        }
        _ => panic!("{line}"),
    };
    format!(r#"{{"time":{},"name":{rest}}}"#, words[0])
}

/// The same script in all forms.
fn forms(script: &str, vantage: &str) -> Vec<String> {
    let lines: Vec<&str> = script.lines().filter(|l| !l.trim().is_empty()).collect();
    let events = |old: bool| {
        lines
            .iter()
            .map(|line| event(line, old))
            .collect::<Vec<_>>()
    };
    let head = format!(
        r#""vantage_point":{{"type":"{vantage}"}},"common_fields":{{"ODCID":"ab12","time_format":"relative"}}"#
    );
    let sequence = format!(r#"{{"qlog_version":"0.3","qlog_format":"NDJSON","trace":{{{head}}}}}"#);
    let current = format!(
        r#"{{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq","trace":{{{head}}}}}"#
    );
    let mut delta = Vec::new();
    let mut before = 0.0;
    for (i, line) in lines.iter().enumerate() {
        let (time, rest) = line.trim().split_once(' ').unwrap();
        let time: f64 = time.parse().unwrap();
        delta.push(event(
            &format!("{} {rest}", if i == 0 { 0.0 } else { time - before }),
            false,
        ));
        before = time;
    }
    vec![
        format!(
            r#"{{"qlog_version":"0.3","qlog_format":"JSON","traces":[{{{head},"events":[{}]}}]}}"#,
            events(true).join(",\n")
        ),
        format!("{sequence}\n{}\n", events(true).join("\n")),
        format!(
            "\u{1e}{current}\n\u{1e}{}\n",
            events(false).join("\n\u{1e}")
        ),
        format!(
            r#"{{"file_schema":"urn:ietf:params:qlog:file:contained","traces":[{{"vantage_point":{{"type":"{vantage}"}},"common_fields":{{"ODCID":"ab12","time_format":"relative_to_previous_event"}},"events":[{}]}}]}}"#,
            delta.join(",")
        ),
    ]
}

/// The one connection of a script, which is the same in all forms.
fn connection(script: &str, vantage: &str) -> QuicConnection {
    let all: Vec<_> = forms(script, vantage)
        .iter()
        .map(|form| {
            let found = read(form.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{form}"));
            assert_eq!(found.notes, [""; 0], "{form}");
            found.connections[0].clone()
        })
        .collect();
    for other in &all[1..] {
        assert_eq!(format!("{other:?}"), format!("{:?}", all[0]));
    }
    all[0].clone()
}

/// Two round trips of 20 ms, after which the script goes on.
const BEGIN: &str = "
    0   rtt 20
    0   send 1 0 0
    20  ack 1 1
    20  send 2 0 1000
    20  send 3 0 2000
    40  ack 2 3
";

fn of(more: &str, vantage: &str) -> QuicConnection {
    connection(&format!("{BEGIN}{more}"), vantage)
}

/// Asserts that there is one stall, and returns its cause and length, ms.
fn only(c: &QuicConnection) -> (Cause, Confidence, u64, Direction) {
    assert_eq!(c.stalls.len(), 1, "{:#?}", c.stalls);
    let s = &c.stalls[0];
    assert!(!s.explanation.is_empty() && s.evidence.is_sorted());
    (
        s.cause,
        s.confidence,
        s.duration_ns / 1_000_000,
        s.direction,
    )
}

#[test]
fn credit_that_does_not_come() {
    let c = of(
        "41  send 4 0 3000
         42  blocked 5
         61  ack 4 5
         561 credit 9
         562 send 6 0 4000
         582 ack 6 6",
        "server",
    );
    let expected = (
        Cause::ReceiverWindowClosed,
        Confidence::Medium,
        501,
        Direction::ToClient,
    );
    assert_eq!(only(&c), expected);
    assert_eq!((c.name.as_str(), c.vantage), ("ab12", Vantage::Server));
    assert!(
        c.verdict.contains("stopped once for 501 ms in all"),
        "{}",
        c.verdict
    );
    // And credit that this end does not give.
    let c = connection(
        "0   rtt 20
         0   send 1 0 0
         20  ack 1 1
         21  receive 1 0 0
         22  starved 2
         500 give 3
         520 receive 3 0 1000",
        "client",
    );
    let (cause, _, length, direction) = only(&c);
    assert_eq!(
        (cause, length, direction),
        (Cause::ReceiverWindowClosed, 499, Direction::ToClient)
    );
}

#[test]
fn losses_by_the_number_of_probe_timeouts() {
    for (timeouts, cause) in [
        (1, Cause::TailLossProbe),
        (2, Cause::RtoTail),
        (3, Cause::SilentPath),
        (5, Cause::SilentPath),
    ] {
        for by_count in [false, true] {
            let mut script = "41 send 4 0 3000\n".to_owned();
            for i in 1..=timeouts {
                let at = 41 + i * 100;
                let expiry = if by_count {
                    format!("count {i}")
                } else {
                    "pto".into()
                };
                script += &format!("{at} {expiry}\n{at} ping {}\n", 4 + i);
            }
            let end = 41 + timeouts * 100 + 20;
            script += &format!(
                "{end} ack 5 {}\n{end} lost 4\n{end} send 20 0 3000",
                4 + timeouts
            );
            let c = of(&script, "client");
            let (found, confidence, length, direction) = only(&c);
            assert_eq!(
                (found, confidence),
                (cause, Confidence::Medium),
                "{timeouts}"
            );
            assert_eq!(
                (length, direction),
                (timeouts * 100 + 20, Direction::ToServer)
            );
            assert_eq!(c.packets_lost, 1);
        }
    }
}

#[test]
fn what_was_late_is_not_lost() {
    let c = of(
        "41 send 4 0 3000\n141 pto\n141 ping 5\n200 ack 4 5",
        "client",
    );
    assert_eq!(only(&c).0, Cause::DelaySpike);
    // Nothing comes any more.
    let c = of(
        "41 send 4 0 3000\n141 pto\n141 ping 5\n341 pto\n341 ping 6",
        "client",
    );
    assert_eq!(
        only(&c),
        (
            Cause::SilentPath,
            Confidence::Medium,
            300,
            Direction::ToServer
        )
    );
}

#[test]
fn applications_and_idle_connections() {
    // A stream goes on late.
    let c = of("500 send 4 0 3000\n520 ack 4 4", "server");
    assert_eq!(
        only(&c),
        (
            Cause::Application,
            Confidence::Low,
            460,
            Direction::ToClient
        )
    );
    // A request is answered late, by this end and by the other.
    let c = of("50 receive 3 4 0\n450 send 4 4 0\n470 ack 4 4", "server");
    assert_eq!(
        only(&c),
        (
            Cause::ResponseTime,
            Confidence::Medium,
            400,
            Direction::ToClient
        )
    );
    assert_eq!(c.stalls[0].kind, StallKind::Wait);
    let c = of("50 send 4 4 0\n70 ack 4 4\n470 receive 9 4 0", "client");
    assert_eq!(
        only(&c),
        (
            Cause::ResponseTime,
            Confidence::Low,
            400,
            Direction::ToClient
        )
    );
    // Nobody has anything to do; a ping does not change that.
    let c = of(
        "900 ping 4\n920 ack 4 4\n1500 send 5 8 0\n1520 ack 5 5",
        "client",
    );
    assert!(c.stalls.is_empty(), "{:#?}", c.stalls);
    assert_eq!((c.idle.count, c.idle.duration_ns), (1, 1_460_000_000));
    assert!(c.verdict.contains("never stopped"));
}

#[test]
fn data_that_is_sent_again_is_no_progress() {
    // Three times by a timer that is not logged; the path passed nothing.
    let again = "41 send 4 0 3000\n141 send 5 0 3000\n341 send 6 0 3000\n741 send 7 0 3000\n";
    let c = of(&format!("{again}761 ack 7 7\n761 lost 4"), "client");
    assert_eq!(
        only(&c),
        (
            Cause::SilentPath,
            Confidence::Medium,
            720,
            Direction::ToServer
        )
    );
    // Its look-alike: each is new, and each is acknowledged in time.
    let new = "41 send 4 0 3000\n61 ack 4 4\n61 send 5 0 4000\n81 ack 5 5\n";
    assert!(of(new, "client").stalls.is_empty());
    // What a lost packet leaves is repaired at once: no timeout.
    let c = of(
        "41 send 4 0 3000\n42 send 5 0 4000\n62 ack 5 5\n62 lost 4\n63 send 6 0 3000\n183 ack 6 6",
        "client",
    );
    assert_eq!(only(&c).0, Cause::DelaySpike);
}

#[test]
fn a_long_delay_is_no_silent_path() {
    let probes =
        "41 send 4 0 3000\n141 pto\n141 ping 5\n341 pto\n341 ping 6\n741 pto\n741 ping 7\n";
    // All that had been sent was acknowledged: nothing was lost.
    let c = of(&format!("{probes}800 ack 4 4"), "client");
    assert_eq!(only(&c).0, Cause::DelaySpike);
    let two = probes.replace("41 send 4 0 3000", "40 send 3 0 2500\n41 send 4 0 3000");
    let c = of(&format!("{two}800 lost 3\n800 ack 4 4"), "client");
    assert_eq!(only(&c).0, Cause::SilentPath);
    // Timers of other things are no probe timeouts.
    for kind in ["ack", "path_idle", "key_discard", "idle_timeout"] {
        let script = format!(
            "41 send 4 0 3000\n50 timer {kind}\n60 timer {kind}\n70 timer {kind}\n161 ack 4 4"
        );
        assert!(
            only(&of(&script, "client")).0 == Cause::DelaySpike,
            "{kind}"
        );
    }
    let loss = "41 send 4 0 3000\n141 timer loss_timeout\n141 ping 5\n161 ack 5 5";
    assert_eq!(only(&of(loss, "client")).0, Cause::TailLossProbe);
}

#[test]
fn a_closed_window_is_known_by_its_limit() {
    // Three segments were sent before, and one more; all that was allowed.
    let full = "40 limit 4000\n41 send 4 0 3000\n61 ack 4 4\n";
    let c = of(
        &format!("{full}561 raise 9 9000\n562 send 6 0 4000\n582 ack 6 6"),
        "server",
    );
    let closed = (
        Cause::ReceiverWindowClosed,
        Confidence::Medium,
        501,
        Direction::ToClient,
    );
    assert_eq!(only(&c), closed);
    // A byte more is allowed, or the credit was there long before.
    let room = full.replace("4000", "4001");
    for script in [
        format!("{room}561 raise 9 9000\n562 send 6 0 4000\n582 ack 6 6"),
        format!("{full}71 raise 9 9000\n562 send 6 0 4000\n582 ack 6 6"),
    ] {
        assert_eq!(
            only(&of(&script, "server")).0,
            Cause::Application,
            "{script}"
        );
    }
    // Blocked frames say nothing while data is outstanding.
    let c = of(
        "41 blocked 4\n42 send 5 0 3000\n142 pto\n142 ping 6\n162 ack 6 6",
        "server",
    );
    assert_eq!(only(&c).0, Cause::TailLossProbe);
}

#[test]
fn who_waited_is_in_the_acknowledgement() {
    let c = of("41 send 4 0 3000\n101 held 4 4 39.5", "client");
    assert_eq!(only(&c).0, Cause::DelayedAck);
    // It was held shortly, longer than the pause, or in a log of another unit.
    for held in ["2", "80", "3274"] {
        let c = of(&format!("41 send 4 0 3000\n101 held 4 4 {held}"), "client");
        assert_eq!(only(&c).0, Cause::DelaySpike, "{held}");
    }
    let c = of(
        "40 held 1 1 3274\n41 send 4 0 3000\n101 held 4 4 39.5",
        "client",
    );
    assert_eq!(only(&c).0, Cause::DelaySpike);
}

#[test]
fn a_peer_that_sent_nothing_is_told_by_its_packet_numbers() {
    let begin = "0 rtt 20\n0 send 1 0 0\n20 receive 1 0 0\n20 ack 1 1\n40 receive 8 0 1000\n";
    let two = format!("{begin}440 receive 9 0 2000\n441 receive 10 0 3000\n");
    // So many may be a probe, and so may what is answered first.
    for (rest, confidence) in [
        ("", Confidence::Low),
        ("455 receive 11 0 4000", Confidence::Low),
        ("442 receive 11 0 4000", Confidence::Medium),
    ] {
        let c = connection(&format!("{two}{rest}"), "client");
        let application = (Cause::Application, confidence, 400, Direction::ToClient);
        assert_eq!(only(&c), application, "{rest}");
    }
    for other in ["440 receive 10 0 2000", "440 receive 9 0 0"] {
        let c = connection(&format!("{begin}{other}"), "client");
        assert_eq!((only(&c).0, only(&c).1), (Cause::Unknown, Confidence::Low));
    }
}

#[test]
fn nothing_is_waited_for_after_the_close() {
    let open = "41 send 4 0 3000\n141 pto\n141 ping 5\n";
    assert_eq!(of(&format!("{open}900 pto"), "client").stalls.len(), 1);
    let c = of(&format!("{open}150 close 6\n900 pto"), "client");
    assert_eq!(only(&c).2, 109);
}

#[test]
fn times_of_an_event_may_have_a_form_of_their_own() {
    let script = "0 rtt 20\n0 send 1 0 0\n20 ack 1 1\n300 send 2 0 1000\n320 ack 2 2";
    let plain = connection(script, "client");
    let form = &forms(script, "client")[1];
    let own = form.replace(
        r#"{"time":320,"#,
        r#"{"time":20,"time_format":"relative_to_previous_event","#,
    );
    assert!(own != *form);
    let own = &read(own.as_bytes()).unwrap().connections[0];
    assert_eq!(format!("{own:?}"), format!("{plain:?}"));
    // The first drafts had arrays for events.
    let arrays = r#"{"qlog_version":"draft-01","traces":[{"event_fields":["time","event"],"events":[[1,"a"]]}]}"#;
    let error = read(arrays.as_bytes()).unwrap_err();
    assert!(
        error.contains("draft-00 and draft-01 of qlog, which are not read"),
        "{error}"
    );
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_key() {
    let good = &forms(BEGIN, "client");
    for (from, to, expected) in [
        (
            r#""packet_number":2"#,
            r#""packet_number":"x""#,
            ".data.header.packet_number: expected an integer, found a string",
        ),
        (
            r#""time":20,"#,
            r#""time":"20","#,
            ".time: expected milliseconds, found a string",
        ),
        (
            r#"[[2,3]]"#,
            r#"[{"a":1}]"#,
            ".data.frames[0].acked_ranges: expected an array of [first, last], found an object",
        ),
        (r#""time":40,"#, r#""time":40;"#, "expected a qlog in JSON"),
    ] {
        for form in &good[..3] {
            let broken = form.replacen(from, to, 1);
            assert!(*form != broken, "{from}");
            let found = read(broken.as_bytes()).unwrap();
            let note = &found.notes[0];
            assert!(note.contains(expected) && note.contains("line "), "{note}");
            assert!(note.starts_with("a.qlog: only the first "), "{note}");
        }
    }
    let note = read(good[1].replacen("[[2,3]]", "7", 1).as_bytes())
        .unwrap()
        .notes;
    assert!(
        note[0].contains("line 7: event 6.data.frames[0].acked_ranges"),
        "{note:?}"
    );
    for (bytes, expected) in [
        ("", "expected a qlog in JSON"),
        ("[1]", "expected a qlog in JSON"),
        ("{}", "expected a qlog, with \"traces\" or \"trace\""),
        (r#"{"traces":[]}"#, "no event in this qlog"),
        (r#"{"trace":{}}"#, "no event in this qlog"),
        (
            r#"{"traces":[{"events":[{}]}]}"#,
            "line 1: traces[0].events[0].time: expected",
        ),
    ] {
        let error = read(bytes.as_bytes()).unwrap_err();
        assert!(
            error.starts_with("a.qlog: ") && error.contains(expected),
            "{error}"
        );
    }
    // One event without end does not take all memory.
    let endless = format!(
        r#"{{"trace":{{}}}} {{"time":1,"name":"{}"#,
        "x".repeat(17 << 20)
    );
    assert!(
        read(endless.as_bytes())
            .unwrap_err()
            .contains("an event of more than 1048576 bytes")
    );
}

#[test]
fn packed_and_cut_short() {
    let good = &forms(BEGIN, "client")[0];
    for cut in 0..good.len() {
        if let Ok(found) = read(&good.as_bytes()[..cut]) {
            assert_eq!(found.notes.len(), 1);
        }
    }
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn any_text_is_read_without_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        form in 0..4usize,
        at in any::<prop::sample::Index>(),
    ) {
        let _ = read(&bytes);
        let good = forms(BEGIN, "server").swap_remove(form).into_bytes();
        let at = at.index(good.len());
        let mut mixed = good[..at].to_vec();
        mixed.extend(bytes.iter().take(8));
        mixed.extend(&good[at..]);
        let _ = read(&mixed);
        let mut changed = good;
        if let Some(byte) = bytes.first() {
            changed[at] = *byte;
        }
        let _ = read(&changed);
    }
}
