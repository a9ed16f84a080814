// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole reports: two runs write the same bytes, a page needs no other file, and its markup is
//! well formed.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Shape, run, scenario};
use metrics::curves::Curves;
use scenario::result::RunResult;

type Made = (RunResult, Vec<Option<Curves>>);

const FIVE: [(&str, &str, &str, &str); 5] = [
    ("500", "500mbit", "0s", "1s"),
    ("300", "300mbit", "100ms", "900ms"),
    ("100", "100mbit", "200ms", "800ms"),
    ("50", "50mbit", "300ms", "700ms"),
    ("20", "20mbit", "400ms", "600ms"),
];

fn made() -> Vec<(&'static str, Made)> {
    let single = scenario("single", &[("bulk", "500mbit", "0s", "500ms")], "500ms", "");
    let multi = scenario("multi-rate", &FIVE, "1s", "");
    let two = [
        ("even", "250mbit", "0s", "500ms"),
        ("lossy", "250mbit", "0s", "500ms"),
    ];
    let on_off = scenario("on-off", &two, "500ms", "");
    let names: Vec<String> = (0..96)
        .map(|i| format!("r{}-{}", i / 6 + 1, i % 6 + 1))
        .collect();
    let many: Vec<_> = names
        .iter()
        .map(|n| (n.as_str(), "10mbit", "0s", "1s"))
        .collect();
    let many = scenario("ninety-six", &many, "1s", "");
    let busy = scenario(
        "busy",
        &[("bulk", "500mbit", "0s", "200ms")],
        "200ms",
        "[sweep]\nshaper = [\"psp gap\", \"psp timer\", \"htb\", \"tbf small\", \"tbf usual\", \"fq\", \"cake\"]\n\
         noise = [\"0us\", \"20us\", \"60us\"]",
    );
    let rates: Vec<String> = (1..=48).map(|i| format!("\"{}mbit\"", i * 20)).collect();
    let fine = scenario(
        "fine",
        &[("bulk", "${rate}", "0s", "100ms")],
        "100ms",
        &format!(
            "[sweep]\nshaper = [\"psp\", \"htb\", \"tbf\"]\nrate = [{}]",
            rates.join(", ")
        ),
    );
    let start = scenario(
        "slow-start",
        &[("tcp", "400mbit", "0s", "500ms")],
        "500ms",
        "[sweep]\nshaper = [\"psp\", \"tbf\"]\nfifo = [\"16kb\", \"64kb\", \"256kb\", \"1024kb\"]\n\
         [[closeup]]\nname = \"slow start\"\ninterval = \"500us\"\nmean = \"50ms\"\n\
         to = \"200ms\"\nwhen = { fifo = \"64kb\" }\n",
    );
    vec![
        (
            "start",
            run(
                &start,
                &|cell, _| match cell.params["shaper"].to_string().as_str() {
                    "psp" => Shape::Even,
                    _ => Shape::OnOff(300),
                },
            ),
        ),
        (
            "beside",
            beside(
                "[[closeup]]\nname = \"5 ms\"\ninterval = \"1us\"\nfrom = \"100ms\"\nto = \"105ms\"\n",
            ),
        ),
        ("single", run(&single, &|_, _| Shape::Even)),
        ("multi", run(&multi, &|_, _| Shape::Even)),
        (
            "onoff",
            run(&on_off, &|_, i| {
                if i == 0 {
                    Shape::Even
                } else {
                    Shape::OnOff(80)
                }
            }),
        ),
        ("many", run(&many, &|_, _| Shape::Even)),
        (
            "busy",
            run(&busy, &|cell, _| {
                shape_of(
                    &cell.params["shaper"].to_string(),
                    &cell.params["noise"].to_string(),
                )
            }),
        ),
        (
            "fine",
            run(
                &fine,
                &|cell, _| match cell.params["shaper"].to_string().as_str() {
                    "psp" => Shape::Even,
                    "htb" => Shape::Noisy(9000),
                    _ => Shape::OnOff(12),
                },
            ),
        ),
    ]
}

fn shape_of(shaper: &str, noise: &str) -> Shape {
    let noise = noise.trim_end_matches("us").parse::<u64>().unwrap() * 125;
    match shaper {
        "psp gap" => Shape::Even,
        "psp timer" => Shape::Noisy(300 + noise / 2),
        "htb" => Shape::Noisy(600 + noise),
        "tbf small" => Shape::Noisy(900 + noise),
        "tbf usual" => Shape::OnOff(160),
        "fq" => Shape::OnOff(2 + noise / 1500),
        _ => Shape::Noisy(1500 + noise),
    }
}

#[test]
fn reports_repeat_to_the_byte_and_need_no_other_file() {
    let (first, second) = (made(), made());
    for ((name, (run, curves)), (_, (again, curves_again))) in first.iter().zip(&second) {
        let page = report::html(run, curves);
        assert_eq!(page, report::html(again, curves_again), "{name}");
        // Set SHOW to a folder to look at the pages.
        if let Ok(folder) = std::env::var("SHOW") {
            std::fs::write(format!("{folder}/{name}.html"), &page).unwrap();
            for plot in report::run_plots(run, curves) {
                std::fs::write(format!("{folder}/{name}-{}", plot.name), plot.svg).unwrap();
            }
        }
        for foreign in ["http", "src=", "url(", "@import", "<script"] {
            assert!(!page.contains(foreign), "{name} contains {foreign}");
        }
        assert!(!page.contains("NaN") && !page.contains(">inf"), "{name}");
        well_formed(&page);
    }
}

#[test]
fn tcp_is_shown_by_what_it_delivers_and_over_time() {
    let all = made();
    let (_, (result, curves)) = all.iter().find(|(name, _)| *name == "start").unwrap();
    let plots = report::run_plots(result, curves);
    let names: Vec<_> = plots.iter().map(|p| p.name.as_str()).collect();
    let expected = [
        "goodput.svg",
        "closeup.svg",
        "tcp.svg",
        "tcp-2.svg",
        "tcp-3.svg",
        "tcp-4.svg",
    ];
    assert_eq!(names, expected);
    // There is a panel for each of the two cells with a closeup, and no other.
    let closeup = &plots[1].svg;
    assert_eq!(closeup.matches("fifo 64kb").count(), 2, "{closeup}");
    assert!(!closeup.contains("fifo 16kb") && closeup.contains("mean over 50 ms"));
    assert!(plots[3].svg.contains("TCP over time, fifo 64kb"));
    let summary = report::summary(
        result,
        draw::Style {
            colour: false,
            width: 100,
        },
    );
    assert!(
        summary.contains("goodput") && summary.contains("400"),
        "{summary}"
    );
    let plots = report::cell_plots(curves[0].as_ref().unwrap());
    assert_eq!(plots[0].name, "tcp.svg");
}

/// The plots are those that were committed. After an intended change, look at the plots, then
/// run once with `BLESS=1`.
#[test]
fn plots_are_those_committed() {
    let scenario = scenario("multi-rate", &FIVE, "1s", "");
    let (_, curves) = run(&scenario, &|_, i| {
        if i == 1 { Shape::OnOff(4) } else { Shape::Even }
    });
    let plots = report::cell_plots(curves[0].as_ref().unwrap());
    let names: Vec<_> = plots.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["bandwidth.svg", "gaps.svg", "burstiness.svg"]);
    for plot in plots {
        let golden = format!("{}/tests/golden/{}", env!("CARGO_MANIFEST_DIR"), plot.name);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&golden, &plot.svg).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(&golden).unwrap(),
            plot.svg,
            "{}",
            plot.name
        );
    }
}

#[test]
fn the_terminal_gets_a_chart_and_a_table() {
    let two = [
        ("even", "250mbit", "0s", "200ms"),
        ("lossy", "250mbit", "100ms", "200ms"),
    ];
    let scenario = scenario("two", &two, "200ms", "");
    let (result, curves) = run(&scenario, &|_, _| Shape::Even);
    let plain = draw::Style {
        colour: false,
        width: 60,
    };
    let chart = report::terminal::chart(curves[0].as_ref().unwrap(), plain);
    let lines: Vec<_> = chart.lines().collect();
    assert_eq!(lines.len(), 3, "{chart}");
    assert!(lines[0].starts_with("even   ██████"), "{chart}");
    assert!(lines[1].starts_with("lossy          "), "{chart}");
    assert!(lines[0].ends_with("250.0 Mbit/s"), "{chart}");
    assert!(chart.lines().all(|l| l.chars().count() <= 75));
    let summary = report::summary(&result, plain);
    assert!(
        !summary.contains('\x1b') && summary.contains("Mbit/s"),
        "{summary}"
    );
    let coloured = draw::Style {
        colour: true,
        width: 60,
    };
    let failed = RunResult {
        cells: result
            .cells
            .iter()
            .cloned()
            .map(|mut c| {
                c.bounds[0].ok = false;
                c
            })
            .collect(),
        ..result
    };
    let summary = report::summary(&failed, coloured);
    assert!(
        summary.contains("do not hold") && summary.contains("\x1b["),
        "{summary}"
    );
}

/// Checks that every element is closed, in order.
fn well_formed(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let body = page.split_once("<body>").unwrap().1;
    for part in body.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap();
        if let Some(name) = tag.strip_prefix('/') {
            let expected = open.pop();
            assert!(
                expected == Some(name) || name == "body" || name == "html",
                "{tag} closes {expected:?}"
            );
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn two_shapers_stand_beside_each_other() {
    let (result, curves) = beside(
        "[[closeup]]\nname = \"5 ms\"\ninterval = \"1us\"\nfrom = \"100ms\"\nto = \"105ms\"\n",
    );
    let style = draw::Style {
        colour: false,
        width: 80,
    };
    let summary = report::summary(&result, style);
    assert!(
        summary.lines().all(|l| l.chars().count() <= 80),
        "{summary}"
    );
    let lines: Vec<_> = summary.lines().collect();
    let words: Vec<Vec<_>> = lines
        .iter()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(words[0], ["flow", "target", "psp", "htb", "psp", "htb"]);
    let units = [
        "Mbit/s",
        "error,",
        "%",
        "error,",
        "%",
        "burstiness,",
        "MTU",
        "burstiness,",
        "MTU",
    ];
    assert_eq!(words[1], units);
    // The table has a row for each flow: its target, two errors, two values of burstiness.
    let (fast, slow) = (&words[3], &words[4]);
    assert_eq!(
        (fast[0], fast[1], slow[0], slow[1]),
        ("fast", "200", "slow", "50")
    );
    assert_eq!((fast.len(), slow.len()), (6, 6));
    let number = |text: &str| text.parse::<f64>().unwrap();
    assert!(number(fast[4]) < 2.0 && number(fast[5]) > 5.0, "{summary}");
    // The sentence has the same figures, the smoother shaper first.
    let sentence = lines[5..].join(" ");
    let burst = number(fast[5]).max(number(slow[5]));
    assert!(
        sentence.contains(&format!("and {burst:.2} MTU with htb, ")),
        "{sentence}"
    );
    let page = report::html(&result, &curves);
    let places = [
        "psp beside htb",
        "Frames on the wire",
        "Burstiness of each flow",
        "<table",
    ];
    let places = places.map(|what| page.find(what).unwrap());
    assert!(
        places.is_sorted(),
        "pictures first, then tables: {places:?}"
    );
    assert!(page.contains("Source: tests") && page.contains("burstiness, MTU"));
    assert!(
        !page.contains("burstiness_mtu"),
        "words, not names of fields"
    );
    well_formed(&page);

    let drawn: Vec<_> = curves.into_iter().flatten().collect();
    let blocks = report::frames(&result, &drawn, style);
    assert!(blocks.lines().all(|l| l.chars().count() <= 80), "{blocks}");
    let rows: Vec<_> = blocks.lines().collect();
    assert!(
        rows[1].starts_with("fast  ") && rows[2].starts_with("slow  "),
        "{blocks}"
    );
    // The bursts of one cell fill the line; the even flow of the other never does.
    let full = |row: &str, half: usize| {
        let blocks: Vec<char> = row.chars().skip(6 + half * 36).take(34).collect();
        blocks.contains(&'█')
    };
    assert!(!full(rows[1], 0) && full(rows[1], 1), "{blocks}");
}

/// Without a closeup that shows frames there are only the bars; a closeup of rates shows no
/// frames.
#[test]
fn a_coarse_closeup_shows_no_frames() {
    let coarse =
        "[[closeup]]\nname = \"rates\"\ninterval = \"100us\"\nfrom = \"0s\"\nto = \"50ms\"\n";
    for (closeup, expected) in [
        ("", &["burstiness-by-flow.svg"][..]),
        (coarse, &["burstiness-by-flow.svg", "closeup.svg"]),
    ] {
        let (result, curves) = beside(closeup);
        let plots = report::run_plots(&result, &curves);
        let names: Vec<_> = plots.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, expected);
        let drawn: Vec<_> = curves.into_iter().flatten().collect();
        assert_eq!(report::frames(&result, &drawn, draw::Style::PLAIN), "");
    }
}

/// Makes two flows, even with psp and in bursts with htb.
fn beside(closeup: &str) -> Made {
    let flows = [
        ("fast", "200mbit", "0s", "200ms"),
        ("slow", "50mbit", "0s", "200ms"),
    ];
    let more = format!("[sweep]\nshaper = [\"psp\", \"htb\"]\n{closeup}");
    let scenario = scenario("beside", &flows, "200ms", &more);
    run(
        &scenario,
        &|cell, _| match cell.params["shaper"].to_string().as_str() {
            "psp" => Shape::Even,
            _ => Shape::OnOff(20),
        },
    )
}

/// The user chooses the names of cells and flows, so they are escaped.
#[test]
fn names_beside_each_other_are_escaped() {
    let fine =
        "[[closeup]]\nname = \"5 ms\"\ninterval = \"1us\"\nfrom = \"100ms\"\nto = \"105ms\"\n";
    let (mut result, mut curves) = beside(fine);
    result.source = "<source>".into();
    for cell in &mut result.cells {
        let flows = cell.windows.iter_mut().flat_map(|w| &mut w.flows);
        flows.for_each(|f| f.name = f.name.replace("slow", "<slow>"));
        let value = cell.params.get_mut("shaper").unwrap();
        *value = value.replace("htb", "<htb>");
    }
    let flows = curves.iter_mut().flatten().flat_map(|c| &mut c.flows);
    flows.for_each(|f| f.name = f.name.replace("slow", "<slow>"));
    let page = report::html(&result, &curves);
    assert!(page.contains("Frames on the wire") && page.contains("Burstiness of each flow"));
    for name in ["source", "htb", "slow"] {
        assert!(!page.contains(&format!("<{name}>")), "{name}");
        assert!(page.contains(&format!("&lt;{name}&gt;")), "{name}");
    }
    well_formed(&page);
}
