// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applications that wait, think, beat and ask: what is a stall and what is none.

use tcp_stacks::profile::Profile;
use tcp_stacks::world::Point;

use crate::case::{Case, Stall, Towards};
use crate::ends::{C, S, SENDER, at, seed};
use crate::script::Script;
use crate::sim::Sim;

const THEME: &str = "applications";
const NOT_NETWORK: &[&str] = &[
    "ack-loss",
    "silent-path",
    "delay-spike",
    "rto-tail",
    "rto-other",
    "path-loss",
    "pmtu-black-hole",
    "congestion",
    "policer",
    "receiver-window-closed",
    "delayed-ack",
    "reordering",
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (kind, client, server) in [
        ("linux", Profile::linux(), Profile::linux()),
        ("windows", Profile::windows(), Profile::windows()),
        ("freebsd", Profile::linux(), Profile::freebsd()),
    ] {
        for place in ["client", "server"] {
            cases.push(slow_server(kind, place, &client, &server));
        }
        cases.push(thinks(kind, &client, &server));
        cases.push(upload_pause(kind, &client, &server));
    }
    cases.extend([
        go_on("sender"),
        go_on("receiver"),
        database(),
        back_to_back(),
        smb(),
        blocks(),
        keystrokes("client"),
        keystrokes("server"),
        heartbeats(),
        bgp(),
        long_poll(),
        events(),
        answer_after(40.0, "40ms"),
        answer_after(200.0, "200ms"),
        video(),
        not_told_to_go_on(),
        upload_pause_at_the_receiver(),
        flow_control("sender"),
        flow_control("receiver"),
    ]);
    cases
}

fn point(place: &str) -> Point {
    if place == "client" {
        Point::Client
    } else {
        Point::Server
    }
}

fn slow_server(kind: &str, place: &'static str, client: &Profile, server: &Profile) -> Case {
    let name = format!("app-slow-server-{kind}-{place}");
    let sim = Sim::new(seed(&name), 24)
        .stacks(client.clone(), server.clone())
        .turns(&[(0, 300, 8, 6_000), (60, 320, 1_700, 9_000)]);
    let capture = sim.capture(point(place));
    let last = capture.longest();
    Case::new(&name, THEME, place, capture)
        .stall(
            Stall::new(Towards::Client, last, &["response-time"])
                .sides(SENDER)
                .not(NOT_NETWORK)
                .why("The request was acknowledged within a round trip and the delayed acknowledgement; the answer came 1.7 s later. The server's application took the time."),
        )
        .readme(&[
            "A client asks twice. The first answer comes at once, the second after 1.7 s.",
            "The server's TCP acknowledges the second request at once or after its delay, so the request had arrived.",
            "A lost request would not be acknowledged; a client that thinks would end the silence with its request, not with an answer.",
        ])
}

fn thinks(kind: &str, client: &Profile, server: &Profile) -> Case {
    let name = format!("app-look-alike-client-thinks-{kind}");
    let sim = Sim::new(seed(&name), 24)
        .stacks(client.clone(), server.clone())
        .turns(&[
            (0, 300, 8, 6_000),
            (2_900, 320, 12, 9_000),
            (5_100, 280, 9, 5_000),
        ]);
    Case::new(&name, THEME, "client", sim.capture(Point::Client))
        .why("The client asks three times and does nothing in between. Each answer is complete, acknowledged and quick.")
        .readme(&[
            "A person looks at a page for 2.9 s and for 5.1 s between requests.",
            "Each silence begins when an answer is complete and acknowledged, and ends with a request.",
            "A slow server looks alike if one forgets who speaks first behind the silence.",
        ])
}

fn upload_pause(kind: &str, client: &Profile, server: &Profile) -> Case {
    let name = format!("app-upload-pause-{kind}");
    let sim = Sim::new(seed(&name), 24)
        .stacks(client.clone(), server.clone())
        .upload(&[(0, 30_000), (1_250, 30_000)]);
    let capture = sim.capture(Point::Client);
    let span = capture.longest();
    Case::new(&name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Server, span, &["application"])
                .sides(SENDER)
                .not(NOT_NETWORK)
                .why("All 30000 bytes had been acknowledged and the window was open; the client's application gave nothing for 1.25 s."),
        )
        .readme(&[
            "A client uploads, and its application reads its disk for 1.25 s in the middle.",
            "Everything sent before the pause is acknowledged, the server's window is open, and no data comes from the server.",
            "If data of the server had ended the pause, the client would have waited for its peer.",
        ])
}

/// A chunked upload: each chunk waits for the server's word.
fn go_on(place: &'static str) -> Case {
    let name = format!("app-upload-waits-for-go-on-{place}");
    let sim = Sim::new(seed(&name), 20).turns(&[
        (0, 14_480, 420, 60),
        (0, 14_480, 380, 60),
        (0, 14_480, 510, 60),
    ]);
    let capture = sim.capture(at(C, place));
    let gaps = capture.gaps(250);
    Case::new(&name, THEME, place, capture)
        .stalls(&gaps, |span| {
            Stall::new(Towards::Either, span, &["waiting-for-peer", "response-time"])
                .sides(&["receiver", "sender"])
                .not(NOT_NETWORK)
                .why("The chunk was acknowledged; the client sends the next one only behind the server's 60 bytes, which come half a second later.")
        })
        .readme(&[
            "A client uploads in chunks of ten segments and sends the next one when the server has said \"go on\". The server takes about 0.4 s for each.",
            "Each silence begins with all data acknowledged and ends with the server's small answer, at once followed by the next chunk.",
            "A pause of the client's own looks the same but for the server's answer.",
        ])
}

fn database() -> Case {
    let name = "app-database-one-slow-query";
    let turns = [
        (0, 90, 1, 200),
        (1, 110, 1, 300),
        (1, 130, 900, 4_000),
        (2, 95, 1, 180),
        (3, 100, 2, 260),
    ];
    let capture = Sim::new(seed(name), 2).turns(&turns).capture(Point::Client);
    let span = capture.gaps(200).first().copied().unwrap_or((0, 0));
    let longest = capture.longest();
    let span = if longest.1 > span.1 { longest } else { span };
    Case::new(name, THEME, "client", capture)
        .stall(
            Stall::new(Towards::Client, span, &["response-time"])
                .sides(SENDER)
                .not(NOT_NETWORK)
                .why("Four queries take 1 to 2 ms, one takes 900 ms. Its request was acknowledged by the delayed acknowledgement."),
        )
        .readme(&[
            "A database client asks five small queries one after the other; the third takes 0.9 s.",
            "The server's TCP acknowledges the query after 40 ms: it had arrived.",
            "The round trip is 2 ms, and no packet is missing.",
        ])
}

fn back_to_back() -> Case {
    let name = "app-look-alike-requests-back-to-back";
    let turns = [(0, 400, 2, 1_200); 12];
    let capture = Sim::new(seed(name), 90)
        .turns(&turns)
        .capture(Point::Client);
    let whole = capture.whole(C);
    Case::new(name, THEME, "client", capture)
        .stall(
            Stall::new(Towards::Either, whole, &["waiting-for-peer"])
                .sides(&["receiver", "sender", "unknown"])
                .not(NOT_NETWORK)
                .why("One request at a time on a path of 90 ms: the protocol is slow, and each turn takes one round trip. No single turn waits longer.")
                .optional(),
        )
        .readme(&[
            "Twelve HTTP requests of one segment, one after the other, on a path of 90 ms.",
            "Each turn takes one round trip and 2 ms. That is slow for twelve small objects, and no turn stalls.",
            "Only the shape of the protocol could be named: one request at a time.",
        ])
}

fn smb() -> Case {
    let name = "app-look-alike-smb1-reads";
    let turns = [(0, 63, 1, 4_160); 14];
    let capture = Sim::new(seed(name), 40)
        .stacks(Profile::windows(), Profile::windows())
        .turns(&turns)
        .capture(Point::Client);
    let whole = capture.whole(C);
    Case::new(name, THEME, "client", capture)
        .stall(
            Stall::new(Towards::Either, whole, &["waiting-for-peer"])
                .sides(&["receiver", "sender", "unknown"])
                .not(NOT_NETWORK)
                .why("Reads of 4 KB, each asked for when the one before has come: 4 KB in each round trip, by the protocol.")
                .optional(),
        )
        .readme(&[
            "A file server is read with SMB1: 4 KB a request, one request at a time, 40 ms each.",
            "Everything is answered within a round trip.",
            "A small window looks alike by its rate; here the window is open and the server has nothing more to send.",
        ])
}

/// A protocol like TFTP over TCP: a block, an answer of four bytes, the next block.
fn blocks() -> Case {
    let name = "app-look-alike-stop-and-wait-blocks";
    let mut s = Script::new(seed(name), 50.0);
    let mut t = s.open(0.0) + 0.3;
    for _ in 0..16 {
        s.data(S, t, 516);
        s.data(C, t + 25.1, 4);
        t += 50.3;
    }
    s.ack(S, t + 40.0);
    s.close(S, t + 50.0);
    let capture = s.capture(Point::Server);
    let whole = capture.whole(S);
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Either, whole, &["waiting-for-peer"])
                .sides(&["receiver", "sender", "unknown"])
                .not(NOT_NETWORK)
                .why("The application sends 516 bytes and waits for four bytes of its peer each time: one block in a round trip.")
                .optional(),
        )
        .readme(&[
            "Blocks of 516 bytes, each acknowledged by the other application with four bytes (a port of TFTP to TCP).",
            "Sixteen round trips of 50 ms, no pause beyond them.",
            "A congestion window or receive window of one segment looks alike; the four bytes of data in between tell.",
        ])
}

fn keystrokes(place: &'static str) -> Case {
    let name = format!("app-look-alike-ssh-keystrokes-{place}");
    let mut s = Script::new(seed(&name), 30.0);
    s.ids.ports[1] = 22;
    let mut t = s.open(0.0);
    t = s.burst(S, t + 5.0, 1, 40);
    t = s.burst(C, t + 1.0, 1, 40);
    for pause in [
        420.0, 180.0, 230.0, 1900.0, 160.0, 310.0, 2600.0, 190.0, 240.0, 170.0,
    ] {
        let key = t + pause;
        s.data(C, key, 36);
        s.data(S, key + 15.4, 36);
        s.ack(C, key + 30.5);
        t = key + 30.5;
    }
    s.close(C, t + 900.0);
    Case::new(&name, THEME, place, s.capture(point(&place.replace("sender", "client"))))
        .why("A person types: each key is echoed within a round trip, and the silences are the person's.")
        .readme(&[
            "Ten keystrokes over SSH, with pauses of 0.2 to 2.6 s. Each is echoed within 31 ms.",
            "Each silence begins with everything acknowledged and ends with the client's next key.",
            "An upload whose application pauses looks alike; keys come one small packet at a time, and each is answered.",
        ])
}

/// Both ends beat, each at its own interval.
fn beats(s: &mut Script, from: f64, each: f64, count: u32, bytes: u64, both: bool) -> f64 {
    let mut t = from;
    for n in 0..count {
        t = from + each * f64::from(n);
        s.burst(C, t, 1, bytes);
        if both {
            s.burst(S, t + each * 0.37, 1, bytes);
        }
    }
    t + each * 0.5
}

fn heartbeats() -> Case {
    let name = "app-look-alike-fix-heartbeats";
    let mut s = Script::new(seed(name), 8.0);
    let t = s.open(0.0);
    let t = s.burst(C, t + 1.0, 1, 110);
    let t = s.burst(S, t + 1.0, 1, 112);
    beats(&mut s, t + 30_000.0, 30_000.0, 5, 86, true);
    Case::new(name, THEME, "client", s.capture(Point::Client))
        .why("A FIX session without orders: both ends send a heartbeat each 30 s. Nothing waits.")
        .readme(&[
            "A FIX session is idle; each end sends a heartbeat of 86 bytes every 30 s.",
            "Each is acknowledged within a round trip. The silences have the length of the interval.",
            "Data ends each silence, as it ends a stalled transfer's; but a small message at an even interval is no transfer.",
        ])
}

fn bgp() -> Case {
    let name = "app-look-alike-bgp-keepalives";
    let mut s = Script::new(seed(name), 12.0).no_timestamps();
    s.ids.ports[1] = 179;
    let t = s.open(0.0);
    s.burst(C, t + 1.0, 1, 57);
    let t = s.burst(S, t + 3.0, 1, 57) + 20.0;
    beats(&mut s, t, 60_000.0, 4, 19, true);
    Case::new(name, THEME, "middle", s.capture(Point::Middle))
        .why("Two routers keep a session alive with 19 bytes each minute.")
        .readme(&[
            "A BGP session without changes: keepalives of 19 bytes each 60 s from both ends.",
            "Everything is acknowledged at once.",
            "The silences are the protocol's.",
        ])
}

fn long_poll() -> Case {
    let name = "app-look-alike-long-poll";
    let mut s = Script::new(seed(name), 26.0);
    let mut t = s.open(0.0) + 0.5;
    for wait in [25_000.0, 25_000.0, 8_300.0] {
        let asked = s.burst(C, t, 1, 420);
        t = s.burst(S, asked + wait, 1, 180) + 4.0;
    }
    let capture = s.capture(Point::Client);
    let gaps = capture.gaps(1000);
    Case::new(name, THEME, "client", capture)
        .stalls(&gaps, |span| {
            Stall::new(Towards::Client, span, &["response-time"])
                .sides(SENDER)
                .not(NOT_NETWORK)
                .why("The request waits at the server until there is news or 25 s have passed, as the two applications agreed. It is no fault; a capture alone cannot tell it from a slow server.")
                .optional()
        })
        .readme(&[
            "A client asks for news and the server answers when there is some, after 25 s at the latest.",
            "The requests are acknowledged at once; answers come after 25 s, 25 s and 8.3 s.",
            "By its packets it is a slow server. That two waits have the same round length hints at a long poll.",
        ])
}

fn events() -> Case {
    let name = "app-look-alike-server-sent-events";
    let mut s = Script::new(seed(name), 26.0);
    let t = s.open(0.0) + 0.5;
    let t = s.burst(C, t, 1, 420);
    let t = s.burst(S, t + 3.0, 1, 260);
    for n in 1..8 {
        s.burst(S, t + 15_000.0 * f64::from(n), 1, 14);
    }
    Case::new(name, THEME, "client", s.capture(Point::Client))
        .why("The server sends a comment each 15 s to keep the stream of events alive. There is nothing else to send.")
        .readme(&[
            "A stream of server-sent events without events: a line of 14 bytes every 15 s.",
            "Each is acknowledged within a round trip; none fills a segment.",
            "A download whose server pauses has full segments around its pauses.",
        ])
}

/// A server that answers after exactly the time of a delayed acknowledgement.
fn answer_after(ms: f64, text: &str) -> Case {
    let name = format!("app-look-alike-server-answers-after-{text}");
    let mut s = Script::new(seed(&name), 10.0);
    let mut t = s.open(0.0) + 0.5;
    for _ in 0..8 {
        s.data(C, t, 300);
        s.ack(S, t + 5.05);
        s.data(S, t + 5.05 + ms, 500);
        s.ack(C, t + 10.1 + ms);
        t += 12.0 + ms;
    }
    s.close(C, t);
    let capture = s.capture(Point::Client);
    let gaps = capture.gaps(150);
    Case::new(&name, THEME, "client", capture)
        .stalls(&gaps, |span| {
            Stall::new(Towards::Client, span, &["response-time"])
                .sides(SENDER)
                .not(NOT_NETWORK)
                .why("The request is acknowledged within a round trip; the answer comes 200 ms later, each time.")
        })
        .why("The server needs the time itself: its acknowledgements are not delayed.")
        .readme(&[
            "A server needs as long for each answer as a delayed acknowledgement would take.",
            "The requests are acknowledged at once, by a packet of its own; the answer follows by itself.",
            "Nagle's rule against delayed acknowledgements gives the same times; there the acknowledgement is what comes late, and it sets free the rest of a message.",
        ])
}

/// A player fetches a piece each four seconds.
fn video() -> Case {
    let name = "app-look-alike-video-pieces";
    let sim = Sim::new(seed(name), 20).turns(&[
        (0, 500, 4, 26_000),
        (3_700, 500, 5, 27_000),
        (3_600, 500, 4, 25_000),
    ]);
    Case::new(name, THEME, "client", sim.capture(Point::Client))
        .why("The player has enough and asks for the next piece when its buffer has room. Each piece comes without a pause.")
        .readme(&[
            "A video player asks for a piece of film every four seconds, as its buffer empties.",
            "Each silence begins behind a complete answer and ends with a request.",
            "The rate over the minute is far below the path's; nothing is wrong with the path.",
        ])
}

/// A protocol with a flow control of its own, as HTTP/2: 64 kB, then wait for the peer's word.
fn flow_control(place: &'static str) -> Case {
    let name = format!("app-flow-control-of-its-own-{place}");
    let mut s = Script::new(seed(&name), 40.0);
    let t = s.open(0.0);
    let t = s.burst(C, t + 0.2, 1, 420);
    let mut t = s.bulk(S, t + 1.0, &[10, 20]);
    for wait in [520.0, 610.0] {
        // Thirteen bytes of the client: a frame that opens its window.
        let said = t + wait;
        s.data(C, said, 13);
        t = s.bulk(S, said + 20.3, &[12, 18]);
    }
    s.close(S, t);
    let capture = s.capture(at(S, place));
    let gaps = capture.gaps(400);
    Case::new(&name, THEME, place, capture)
        .stalls(&gaps, |span| {
            Stall::new(Towards::Client, span, &["waiting-for-peer"])
                .sides(&["receiver"])
                .not(NOT_NETWORK)
                .why("The server had used up what the client's application had granted. Everything was acknowledged and TCP's window was open; 13 bytes of the client set it going again.")
        })
        .readme(&[
            "A download with flow control above TCP (HTTP/2): the server sends what the client's application has granted, and waits for more.",
            "Each silence begins with everything acknowledged and an open TCP window, and ends with 13 bytes of the client, at once followed by data.",
            "A pause of the server's own looks the same but for the 13 bytes; a closed TCP window would be in the acknowledgements.",
        ])
}

/// "Expect: 100-continue" that the server does not answer: the client waits a second.
fn not_told_to_go_on() -> Case {
    let name = "app-expect-100-continue-not-answered";
    let mut s = Script::new(seed(name), 24.0);
    let t = s.open(0.0);
    let t = s.burst(C, t + 0.2, 1, 390);
    let t = s.bulk(C, t + 1_000.0, &[10, 12]);
    let t = s.burst(S, t + 6.0, 1, 160);
    s.close(C, t + 2.0);
    let capture = s.capture(Point::Client);
    let span = capture.longest();
    Case::new(name, THEME, "sender", capture)
        .stall(
            Stall::new(Towards::Server, span, &["application", "waiting-for-peer"])
                .sides(&["sender", "receiver"])
                .not(NOT_NETWORK)
                .why("The client's header asks for the server's \"100 Continue\"; the server never sends one, and the client goes on after its own second. The header had been acknowledged at once."),
        )
        .readme(&[
            "An HTTP client sends its header with \"Expect: 100-continue\" and waits a second for the word. The server does not know that header.",
            "The header is acknowledged within a round trip. The body ends the silence; no data of the server comes before it.",
            "A slow server would end the silence with its own data; a lost header would be retransmitted.",
        ])
}

fn upload_pause_at_the_receiver() -> Case {
    let name = "app-upload-pause-linux-receiver";
    let sim = Sim::new(seed(name), 24).upload(&[(0, 21_000), (1_250, 21_000)]);
    let capture = sim.capture(Point::Server);
    let span = capture.longest();
    Case::new(name, THEME, "receiver", capture)
        .stall(
            Stall::new(Towards::Server, span, &["application"])
                .sides(&["sender", "unknown"])
                .not(NOT_NETWORK)
                .why("Everything that arrived was acknowledged, the window was open, and nothing is missing when the data goes on: the client's application paused for 1.25 s."),
        )
        .readme(&[
            "As app-upload-pause-linux, captured at the server.",
            "The next segment behind the pause continues the numbers, with a timestamp of its own time and the next IP identification: nothing was lost or late.",
            "At the receiver a lost segment would show as a hole or as an old number, a late one by an old timestamp.",
        ])
}
