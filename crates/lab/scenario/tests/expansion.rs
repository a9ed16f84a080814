// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cells that a scenario expands to.

use scenario::{
    BottleneckKind, Direction, End, FlowKind, Kernel, Layer, Options, Pattern, Scenario, Spread,
    Subject, Target, parse,
};

fn read(text: &str, quick: bool) -> Scenario {
    let options = Options { quick, set: vec![] };
    parse("s.toml", text, &options).unwrap_or_else(|error| panic!("{error}"))
}

const MANY: &str = r#"
name = "many"
title = "Many flows"
kernel = "7"
duration = "2s"
[param]
base = "5"
unit = "${base}00kbit"
[sweep]
shaper = ["psp", "htb"]
n = "2..3"
[quick]
duration = "1s"
param.base = "6"
sweep.n = 5
[[host]]
name = "tx"
[[host]]
name = "mid"
[[host]]
name = "rx"
addresses = 16
[[cable]]
name = "one"
ends = ["tx:eth0", "mid:left"]
rate = "1gbit"
mtu = 9000
[[cable]]
name = "two"
ends = ["mid:right", "rx:eth0"]
rate = "100mbit"
delay = "1.5ms"
bql_min = "64kb"
[[bottleneck]]
cable = "two"
from = "mid"
rate = "50mbit"
burst = "10kb"
refresh = "500us"
when = { shaper = ["htb", "psp"], n = 3 }
[[tc]]
host = "tx"
at = "10ms"
lines = ["qdisc del dev eth0 root"]
[[tc]]
host = "tx"
each = { a = "1..2", f = [1, "${n}"] }
lines = ["class add classid 1:${a * 8 + f:x} rate ${a}mbit", "filter add match 'two words'"]
[[flow]]
each = { f = "1..${n}" }
name = "f${f}"
type = "udp"
from = "tx"
to = "rx#${f}"
stop = "1500ms"
target = "${unit}"
layer = "wire"
[[flow]]
name = "bulk"
type = "tcp"
from = "rx"
to = "tx"
when = { shaper = "psp" }
[[window]]
name = "late"
from = "500ms"
to = "1800ms"
[[window]]
name = "rest"
[[closeup]]
name = "begin"
to = "1500ms"
interval = "500us"
mean = "200ms"
when = { n = 3 }
[[bound]]
flow = "each"
window = "late"
metric = "frames"
min = 1
[[bound]]
flow = "wire"
metric = "burstiness_mtu"
max = 2.5
"#;

#[test]
fn cells_come_in_the_order_written_last_fastest() {
    let scenario = read(MANY, false);
    assert_eq!(scenario.kernel, Kernel::V7);
    assert_eq!((scenario.seed, scenario.per_boot), (1, 1));
    let params: Vec<String> = scenario
        .cells
        .iter()
        .map(|cell| {
            cell.params
                .iter()
                .map(|(k, v)| format!("{k}={v} "))
                .collect()
        })
        .collect();
    let expected = ["psp n=2 ", "psp n=3 ", "htb n=2 ", "htb n=3 "];
    assert_eq!(
        params,
        expected.map(|end| format!("base=5 unit=500kbit shaper={end}"))
    );
    assert!(
        scenario
            .cells
            .iter()
            .enumerate()
            .all(|(index, cell)| cell.index == index)
    );
}

#[test]
fn closeups_apply_to_their_cells_and_end_with_them() {
    let scenario = read(MANY, false);
    let count: Vec<usize> = scenario.cells.iter().map(|c| c.closeups.len()).collect();
    assert_eq!(count, [0, 1, 0, 1]);
    let closeup = &scenario.cells[1].closeups[0];
    assert_eq!((closeup.from_ns, closeup.to_ns), (0, 1_500_000_000));
    assert_eq!(closeup.interval_ns, 500_000);
    assert_eq!(closeup.mean_ns, Some(200_000_000));
    let short = read(&MANY.replace("n = 3 }", "n = [2, 3] }"), true);
    let end_ns = short.cells[0].closeups.iter().map(|c| c.to_ns).max();
    assert!(end_ns.is_none_or(|end_ns| end_ns <= short.cells[0].duration_ns));
}

#[test]
fn conditions_and_repetitions() {
    let scenario = read(MANY, false);
    let [psp2, psp3, htb2, ..] = scenario.cells.as_slice() else {
        panic!()
    };
    let names = |cell: &scenario::Cell| -> Vec<String> {
        cell.flows.iter().map(|flow| flow.name.clone()).collect()
    };
    assert_eq!(names(psp2), ["f1", "f2", "bulk"]);
    assert_eq!(names(psp3), ["f1", "f2", "f3", "bulk"]);
    assert_eq!(names(htb2), ["f1", "f2"]);
    assert_eq!(psp2.cables[1].bottlenecks, [None, None]);
    let bottleneck = psp3.cables[1].bottlenecks[0].as_ref().unwrap();
    let kind = BottleneckKind::Policer {
        burst_bytes: 10_240,
        refresh_ns: 500_000,
    };
    assert_eq!((bottleneck.rate_bps, &bottleneck.kind), (50_000_000, &kind));
    let tc: Vec<String> = psp2.tc.iter().map(|line| line.args.join("|")).collect();
    let filter = "filter|add|match|two words";
    let class = |id: &str, rate: &str| format!("class|add|classid|1:{id}|rate|{rate}");
    let expected = [
        class("9", "1mbit"),
        filter.into(),
        class("a", "1mbit"),
        filter.into(),
        class("11", "2mbit"),
        filter.into(),
        class("12", "2mbit"),
        filter.into(),
        "qdisc|del|dev|eth0|root".into(),
    ];
    assert_eq!(tc, expected, "what has a time comes last");
    assert_eq!(psp2.tc.last().unwrap().at_ns, Some(10_000_000));
}

#[test]
fn flows_have_their_path_and_their_defaults() {
    let scenario = read(MANY, false);
    let cell = &scenario.cells[0];
    let hop = |cable, end| Direction { cable, end };
    let f2 = &cell.flows[1];
    assert_eq!(f2.path, [hop(0, End::A), hop(1, End::A)]);
    assert_eq!(
        (f2.source.to_string(), f2.destination.to_string()),
        ("10.1.1.1".into(), "10.2.2.2".into())
    );
    assert_eq!((f2.source_port, f2.port), (20_002, 5_002));
    assert_eq!((f2.start_ns, f2.stop_ns), (0, 1_500_000_000));
    // The payload fits the smaller MTU of the two cables.
    let kind = FlowKind::Udp {
        payload_bytes: 1472,
        batch: 1,
        rate_bps: None,
        spread: Spread::default(),
        buffer_bytes: None,
        on_off: None,
        pattern: Pattern::default(),
        launch: None,
    };
    assert_eq!(f2.kind, kind);
    assert_eq!(
        f2.target,
        Some(Target {
            rate_bps: 500_000,
            layer: Layer::Wire
        })
    );
    assert_eq!(f2.measured_at(), Some(hop(0, End::A)));
    let bulk = &cell.flows[2];
    assert_eq!(bulk.path, [hop(1, End::B), hop(0, End::B)]);
    assert_eq!(
        (bulk.source.to_string(), bulk.destination.to_string()),
        ("10.2.2.1".into(), "10.1.1.1".into())
    );
    assert_eq!(bulk.measured_at(), Some(hop(0, End::B)));
}

#[test]
fn windows_and_bounds() {
    let scenario = read(MANY, false);
    let cell = &scenario.cells[2];
    let spans: Vec<_> = cell.windows.iter().map(|w| (w.from_ns, w.to_ns)).collect();
    assert_eq!(spans, [(500_000_000, 1_800_000_000), (0, 2_000_000_000)]);
    let bounds: Vec<_> = cell.bounds.iter().map(|b| (b.subject, b.window)).collect();
    let (f1, f2) = (Subject::Flow(0), Subject::Flow(1));
    assert_eq!(
        bounds,
        [(f1, 0), (f2, 0), (Subject::Wire, 0), (Subject::Wire, 1)]
    );
}

#[test]
fn the_short_form_shortens_flows_and_windows() {
    let scenario = read(MANY, true);
    assert_eq!(scenario.cells.len(), 2);
    let cell = &scenario.cells[0];
    assert_eq!(cell.params["unit"], "600kbit");
    assert_eq!(cell.flows.len(), 6);
    assert_eq!(cell.duration_ns, 1_000_000_000);
    assert_eq!(cell.flows[0].stop_ns, 1_000_000_000);
    assert_eq!(cell.windows[0].to_ns, 1_000_000_000);
}
