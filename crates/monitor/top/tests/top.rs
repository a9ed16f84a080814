// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples in, rows and a screen out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail that way")]

mod common;

use common::{S, after, best_effort, paced, port, sample};
use host_config::Host;
use manager_proto::overview::{LinkRow, ListenerRow, ManagerRow, Overview, ReservationRow};
use manager_proto::record::Measured;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde::Serialize;
use tcpsp::ports::PortClass;
use tcpsp::stats::{Stats, Unit, Value};
use tcpsp::{ClassOptions, Handle, Layer, Mode, TypeOptions, Why};
use top::{ClassNames, Drop, Key, Late, Model, Sample, Sort, View, draw, text};

#[test]
fn classes_are_after_their_group() {
    let mut classes: Vec<PortClass> = (1..=5).map(|minor| best_effort(minor, 0, 0)).collect();
    let group = TypeOptions::Group {
        rate_bps: 100_000_000,
        ceil_bps: None,
    };
    classes[3].psp.options = ClassOptions::new(group);
    for member in [0, 4] {
        classes[member].psp.options.group = Some(4);
    }
    let mut model = Model::default();
    model.take(Sample {
        time_ns: 1,
        cost_ns: 1,
        ports: vec![port("eth0", Mode::Timer, 0, 0, classes)],
    });
    let rows = model.rows();
    let minors: Vec<u16> = rows.iter().map(|row| row.class.minor()).collect();
    assert_eq!(minors, [2, 3, 4, 1, 5]);
    assert_eq!(rows[3].group, Some(Handle::new(1, 4)));
    assert_eq!(rows[2].of_type.to_string(), "group");
}

#[test]
fn rates_need_two_samples() {
    assert!(Model::default().rows().is_empty());
    let rows = after(1).rows();
    assert_eq!(rows.len(), 4);
    assert!(
        rows.iter()
            .all(|row| row.rate_bps.is_none() && row.history_bps.is_empty())
    );
    let rows = after(3).rows();
    let rates: Vec<_> = rows.iter().map(|row| row.rate_bps.unwrap()).collect();
    assert_eq!(rates, [100_000_000, 8_000_000, 50_000_000, 0]);
    assert_eq!(rows[0].history_bps, [100_000_000; 2]);
    let targets: Vec<_> = rows.iter().map(|row| row.target_bps).collect();
    let paced = Some(100_000_000);
    assert_eq!(targets, [paced, None, paced, paced]);
    assert_eq!((rows[0].backlog_bytes, rows[0].backlog_packets), (3000, 3));
    // The newest 60 are kept.
    assert_eq!(after(100).rows()[0].history_bps.len(), 60);
}

#[test]
fn a_rate_counts_what_the_target_counts() {
    for (layer, expected) in [
        (Layer::Link, 100_000_000),
        (Layer::Wire, 102_400_000),
        (Layer::Ip, 98_600_000),
    ] {
        let mut model = Model::default();
        for second in 1..3 {
            let mut sample = sample(second);
            sample.ports[0].psp.options.layer = layer;
            model.take(sample);
        }
        assert_eq!(model.rows()[0].rate_bps, Some(expected), "{layer}");
    }
}

#[test]
fn what_is_made_anew_has_no_rate() {
    let mut model = after(3);
    let mut anew = sample(4);
    anew.ports[0].classes[0] = paced(1, 10);
    anew.ports[0].classes.remove(2);
    model.take(anew);
    let rows = model.rows();
    assert_eq!(rows[0].rate_bps, None);
    assert_eq!(rows[1].class, Handle::new(1, 2));
    // A class that comes back begins anew.
    model.take(sample(5));
    assert!(model.rows()[2].history_bps.is_empty());
    // Two samples of one instant make no rate.
    model.take(sample(5));
    assert_eq!(model.rows()[0].rate_bps, None);
}

#[test]
fn drops_by_cause() {
    let drops = |model: &Model| model.rows()[1].drops.clone();
    let drop = |cause, frames, new_frames| Drop {
        cause,
        frames,
        new_frames,
    };
    assert_eq!(drops(&after(1)), [drop("child", 5, 0), drop("late", 2, 0)]);
    assert_eq!(drops(&after(4)), [drop("child", 20, 5), drop("late", 2, 0)]);
}

#[test]
fn lateness_of_the_last_samples() {
    // Bucket 10 is of at most 1023 byte times: 8.184 µs at 1 Gbit/s.
    let late = Late {
        frames: 12_500 * 9,
        median_ns: 0,
        p99_ns: 8_184,
        max_ns: 8_184,
    };
    assert_eq!(after(30).rows()[0].late, Some(late));
    // All of its life, for want of more.
    assert_eq!(after(1).rows()[0].late.unwrap().frames, 12_500);
    // No rate, or no frame.
    assert_eq!(after(5).rows()[1].late, None);
    assert_eq!(after(5).rows()[3].late, None);
}

#[test]
fn ports_and_their_gap_frames() {
    let ports = after(2).ports();
    assert_eq!(ports.len(), 2);
    assert_eq!(ports[0].gap_share, Some(0.75));
    assert_eq!(ports[0].wire_bps, Some(240_000_000));
    assert_eq!((ports[0].mode, ports[0].why), (Some(Mode::Hybrid), None));
    assert_eq!(
        (ports[1].mode, ports[1].why),
        (Some(Mode::Timer), Some(Why::NoClock))
    );
    assert_eq!(after(1).ports()[0].gap_share, None);
}

#[test]
fn devices_show_what_no_rule_claims_and_what_bypasses() {
    let mut model = Model::default();
    for second in 1..=2 {
        let mut sample = sample(second);
        let port = &mut sample.ports[0];
        port.psp.options.default_minor = 2;
        // 12,500 frames of 1000 bytes of the first class each second, and half of that.
        port.device_frames = 20_000 * second;
        port.device_bytes = 20_000_000 * second;
        model.take(sample);
    }
    let devices = model.devices();
    assert_eq!(devices.len(), 2);
    let eth0 = &devices[0];
    assert_eq!(eth0.sent.frames, 20_000);
    assert_eq!(eth0.counted.frames, 18_750);
    assert_eq!(eth0.bypassed.frames, 1250);
    assert!(eth0.unmatched.unwrap().bytes > 0, "{eth0:?}");
    let text = top::text(&model, &View::default(), 200).unwrap();
    assert!(text.contains("1250 frames PAST psp"), "{text}");
    assert!(!after(2).devices().iter().any(|row| row.bypassed.frames > 0));
    assert_eq!(after(1).devices(), []);
}

#[test]
fn rows_are_sorted_and_filtered() {
    let model = after(3);
    let shown = |view: &View| -> Vec<String> {
        let shown = view.shown(model.rows());
        shown
            .iter()
            .map(|row| format!("{} {}", row.device, row.class))
            .collect()
    };
    let mut view = View::default();
    assert_eq!(
        shown(&view),
        ["eth0 1:1", "eth0 1:2", "eth0 1:1a", "eth1 1:1"]
    );
    for (sort, first) in [
        (Sort::Rate, "eth0 1:1"),
        (Sort::Drops, "eth0 1:2"),
        (Sort::Late, "eth0 1:1"),
        (Sort::Backlog, "eth0 1:1"),
    ] {
        view.sort = sort;
        assert_eq!(shown(&view)[0], first, "{sort:?}");
        assert_eq!(shown(&view).len(), 4);
    }
    view = View::default();
    for (filter, expected) in [
        ("ETH1", 1),
        ("1:1a", 1),
        ("normal", 1),
        ("paced", 3),
        ("none", 0),
    ] {
        filter.clone_into(&mut view.filter);
        assert_eq!(shown(&view).len(), expected, "{filter}");
    }
}

#[test]
fn keys() {
    let mut view = View::default();
    let press =
        |view: &mut View, keys: &str| keys.chars().for_each(|c| view.press(Key::Char(c), 4));
    press(&mut view, "r");
    assert_eq!(view.sort, Sort::Rate);
    press(&mut view, "/rq");
    assert_eq!(
        (view.sort, view.filter.as_str(), view.is_over),
        (Sort::Rate, "rq", false)
    );
    view.press(Key::Backspace, 4);
    view.press(Key::Enter, 4);
    assert_eq!((view.filter.as_str(), view.is_typing), ("r", false));
    press(&mut view, "/x");
    view.press(Key::Escape, 4);
    assert_eq!((view.filter.as_str(), view.is_over), ("", false));
    press(&mut view, "jjjjjj");
    assert_eq!(view.selected, 3);
    view.press(Key::Up, 4);
    assert_eq!(view.selected, 2);
    view.press(Key::Enter, 4);
    assert!(view.is_close);
    view.press(Key::Escape, 4);
    assert!(!view.is_close && !view.is_over);
    press(&mut view, "p");
    assert!(view.is_paused);
    press(&mut view, "pq");
    assert!(!view.is_paused && view.is_over);
    // Nothing to look at close up; fewer rows than before.
    let mut view = View::default();
    view.press(Key::Enter, 0);
    assert!(!view.is_close);
    view.selected = 9;
    let shown = view.shown(after(1).rows());
    assert_eq!(view.selected_of(&shown).unwrap().device, "eth1");
    assert!(view.selected_of(&[]).is_none());
}

/// What a terminal of 130 columns shows, without trailing spaces.
fn screen(model: &Model, view: &View) -> String {
    let mut terminal = Terminal::new(TestBackend::new(130, 24)).unwrap();
    terminal.draw(|frame| draw(frame, model, view)).unwrap();
    let cells = terminal.backend().buffer().content();
    let line = |cells: &[ratatui::buffer::Cell]| {
        let text: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.trim_end().to_owned() + "\n"
    };
    cells.chunks(130).map(line).collect()
}

/// Compares with a file of `tests/golden`, or writes it if BLESS is set.
fn golden(name: &str, shown: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, shown).unwrap();
    }
    assert_eq!(shown, std::fs::read_to_string(path).unwrap());
}

#[test]
fn the_screen() {
    golden("classes.snap", &screen(&after(20), &View::default()));
    let close = View {
        is_close: true,
        is_paused: true,
        sort: Sort::Rate,
        ..View::default()
    };
    golden("close-up.snap", &screen(&after(20), &close));
}

#[test]
fn text_is_the_screen_without_keys_and_empty_lines() {
    let (model, view) = (after(20), View::default());
    let screen = screen(&model, &view);
    let mut lines: Vec<&str> = screen.lines().collect();
    lines.pop();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    assert_eq!(text(&model, &view, 130).unwrap(), lines.join("\n") + "\n");
    let none = "pspacer top: no sample yet";
    assert!(
        text(&Model::default(), &view, 130)
            .unwrap()
            .starts_with(none)
    );
    assert_eq!(text(&Model::default(), &view, 0).unwrap(), "\n");
}

#[test]
fn classes_of_the_hosts_file_have_their_names() {
    let file = "[[device]]\nname = \"eth0\"\n[[device.class]]\nname = \"video\"\n\
                rate = \"1mbit\"\nminor = \"9000\"\n";
    let host = Host::read("host.toml", file).unwrap();
    let mut names = ClassNames::default();
    host.devices.iter().for_each(|device| names.add(device));
    let mut sample = sample(1);
    sample.ports[0].handle = Handle::new(0x7073, 0);
    sample.ports[0].classes[0].id = Handle::new(0x7073, 0x9000);
    let mut model = Model::named(names);
    model.take(sample);
    let rows = model.rows();
    assert_eq!(rows[0].name.as_deref(), Some("video"));
    assert_eq!(rows[1].name, None);
    let view = View {
        filter: "vid".to_owned(),
        ..View::default()
    };
    assert_eq!(view.shown(rows).len(), 1);
    let shown = screen(&model, &View::default());
    assert!(shown.contains("eth0       video        paced"), "{shown}");
    assert!(shown.contains("eth0       1:2          normal"), "{shown}");
}

#[test]
fn a_long_name_has_the_room_that_is_left() {
    let mut sample = sample(1);
    sample.ports[0].handle = Handle::new(0x7073, 0);
    let mut names = ClassNames::default();
    let name = "storage/a-pod-with-a-very-long-name-0";
    names.insert("eth0", "pod", name.to_owned());
    let file = "[[device]]\nname = \"eth0\"\n[[device.class]]\nname = \"pod\"\nrate = \"1mbit\"\n";
    let minor = Host::read("host.toml", file).unwrap().devices[0].classes[0].minor;
    sample.ports[0].classes[0].id = Handle::new(0x7073, minor);
    let mut model = Model::default();
    model.take(sample);
    assert_eq!(model.rows()[0].name, None);
    model.rename(names);
    for (width, shown) in [(109, 12), (120, 23), (200, name.len())] {
        let text = text(&model, &View::default(), width).unwrap();
        assert!(text.contains(&name[..shown]), "{width}: {text}");
        if shown < name.len() {
            assert!(!text.contains(&name[..=shown]), "{width}: {text}");
        }
        // Nothing else becomes narrower.
        assert!(text.contains(" drops"), "{width}: {text}");
    }
}

#[test]
fn a_screen_without_classes() {
    assert!(screen(&Model::default(), &View::default()).contains("no sample yet"));
    let mut model = Model::default();
    model.take(Sample {
        time_ns: 0,
        cost_ns: 0,
        ports: Vec::new(),
    });
    assert!(screen(&model, &View::default()).contains("no device has psp"));
    // More qdiscs and classes than lines, and a very small terminal.
    let mut many = sample(1);
    many.ports = vec![many.ports[0].clone(); 40];
    model.take(many);
    screen(&model, &View::default());
    for (width, height) in [(1, 1), (10, 3), (40, 5)] {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| draw(frame, &model, &View::default()))
            .unwrap();
    }
}

/// A reservation with two listeners, measured at one of them, and a manager that is away.
fn reservations(worst_delay_ns: u64) -> Overview {
    let measured = Measured {
        worst_delay_ns,
        packets: 6000,
        lost_packets: 3,
    };
    let listener = |name: &str, measured| ListenerRow {
        name: name.to_owned(),
        bound_ns: 22_000_000,
        measured,
    };
    let link = |name: &str, free_bytes| LinkRow {
        link: name.to_owned(),
        bytes: 10_462,
        period_ns: Some(10_000_000),
        budget_bytes: Some(85_962),
        free_bytes,
    };
    let manager = |url: &str, problem: Option<&str>| ManagerRow {
        manager: url.to_owned(),
        problem: problem.map(str::to_owned),
    };
    Overview {
        reservations: vec![ReservationRow {
            manager: "http://m1".to_owned(),
            id: "cam1".to_owned(),
            stream_id: "cam1".to_owned(),
            owner: "studio".to_owned(),
            talker: "camera".to_owned(),
            in_force: false,
            not_in_force: vec!["r1".to_owned()],
            expires_in_ns: 5 * S,
            listeners: vec![listener("screen", Some(measured)), listener("wall", None)],
            links: vec![link("studio", Some(2266)), link("hall/r1/up", None)],
            tightest: Some("studio".to_owned()),
        }],
        links: Vec::new(),
        managers: vec![
            manager("http://m1", None),
            manager("http://m2", Some("no route")),
        ],
    }
}

#[test]
fn reservations_are_below_the_classes() {
    let view = View::default();
    let shown = |overview: Overview| {
        let mut model = after(20);
        model.take_reservations(overview);
        text(&model, &view, 130).unwrap()
    };
    let classes = text(&after(20), &view, 130).unwrap();
    let with = shown(reservations(21_400_000));
    let (above, below) = with.split_once("\n\nreservations: 1\n").unwrap();
    assert_eq!(above, classes.trim_end());
    let row = |cells: [&str; 7]| {
        let [id, ends, bytes, bound, worst, free, force] = cells;
        format!("{id:<12} {ends:<16} {bytes:<8} {bound:<9} {worst:<28} {free:<25} {force}")
    };
    let free = "2,266 studio, 1 not known";
    let (screen, wall) = ("camera, screen", "camera, wall");
    let expected = [
        "manager http://m2 does not answer: no route".to_owned(),
        row([
            "reservation",
            "from, to",
            "bytes",
            "bound",
            "worst measured",
            "free of the tightest link",
            "in force",
        ]),
        row([
            "cam1",
            screen,
            "10,462",
            "22 ms",
            "21.4 ms of 6,000, 3 lost",
            free,
            "not at r1",
        ]),
        row([
            "cam1",
            wall,
            "10,462",
            "22 ms",
            "not measured",
            free,
            "not at r1",
        ]),
    ];
    assert_eq!(below.lines().collect::<Vec<_>>(), expected);
    // A delay above what was granted is said twice.
    let late = shown(reservations(23_000_000));
    assert!(
        late.contains("reservations: 1; 1 measured above the bound\n"),
        "{late}"
    );
    assert!(late.contains("23 ms ABOVE of 6,000, 3 lost"), "{late}");
    // None is said, too, and that nobody knows.
    let none = Overview {
        reservations: Vec::new(),
        ..reservations(1)
    };
    assert!(
        shown(none).ends_with("\n\nreservations: 0\nmanager http://m2 does not answer: no route\n")
    );
    let mut unknown = reservations(1);
    unknown.reservations[0].tightest = None;
    assert!(shown(unknown).contains(" not known   "));
}

#[test]
fn many_reservations_leave_room_for_classes() {
    let mut model = after(20);
    let mut many = reservations(1);
    many.reservations = vec![many.reservations[0].clone(); 40];
    model.take_reservations(many);
    let shown = screen(&model, &View::default());
    assert!(shown.contains("eth0       1:1          paced"), "{shown}");
    assert!(shown.contains("reservations: 40"), "{shown}");
    // All of them as text, which is as high as it has to be.
    let all = text(&model, &View::default(), 130).unwrap();
    assert_eq!(all.matches("camera, wall").count(), 40);
    assert_eq!(all.matches("paced").count(), 3);
    for (width, height) in [(1, 1), (10, 3), (40, 5)] {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| draw(frame, &model, &View::default()))
            .unwrap();
    }
}

/// Statistics with another number in each 32 bits.
fn numbered<S: Stats>(first: u32) -> S {
    let bytes: Vec<u8> = (first..first + 200).flat_map(u32::to_ne_bytes).collect();
    S::read(&bytes)
}

/// Checks that the JSON of a row has each row of the table by its key, and nothing else.
fn has_every_statistic<S: Stats>(row: impl Serialize, stats: &S) {
    let json = serde_json::to_value(row).unwrap();
    let found = json["statistics"].as_object().unwrap();
    assert_eq!(found.len(), S::TABLE.len());
    for stat in S::TABLE {
        let found = found.get(&stat.json_key());
        let found = found.unwrap_or_else(|| panic!("no {}", stat.json_key()));
        match ((stat.value)(stats), stat.unit) {
            // Words; a number that has none is null.
            (_, Unit::Mode | Unit::Why) => assert!(found.is_string() || found.is_null()),
            (Value::Number(number), Unit::Assumed) => assert_eq!(*found, number != 0),
            (Value::Number(number), _) => assert_eq!(*found, number, "{}", stat.key),
            (Value::Histogram(all), _) => assert_eq!(*found, serde_json::json!(all)),
        }
    }
}

#[test]
fn json_has_every_statistic() {
    let mut sample = sample(1);
    let port = &mut sample.ports[0];
    port.psp.stats = numbered(7);
    port.psp.stats.mode = Mode::Hybrid.number();
    port.classes[0].psp.stats = numbered(1000);
    let stats = (port.psp.stats.clone(), port.classes[0].psp.stats.clone());
    let mut model = Model::default();
    model.take(sample);
    has_every_statistic(&model.ports()[0], &stats.0);
    has_every_statistic(&model.rows()[0], &stats.1);
    let json = serde_json::to_value(&model.ports()[0]).unwrap();
    assert_eq!(json["statistics"]["mode_in_force"], "hybrid");
}

#[test]
fn json_has_no_history() {
    let row = serde_json::to_value(&after(2).rows()[0]).unwrap();
    assert_eq!(row["type"], "paced");
    assert_eq!(row["class"], "1:1");
    assert_eq!(row["rate_bps"], 100_000_000);
    assert_eq!(row["late"]["p99_ns"], 8_184);
    assert!(row.get("history_bps").is_none());
}
