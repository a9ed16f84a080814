// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ten thousand subscribers of two addresses each, in a hundred sites: how long a plan takes, and
//! what a change of one of them touches.

#![allow(clippy::print_stdout, reason = "tests say what they measured")]

use std::fmt::Write;
use std::time::Instant;

use host_config::{Backend, Beside, Facts, Host, Plan, Port, Target, check_backend, plan, text};
use tcpsp::Change;

use super::libreqos::{Choice, Input, libreqos};
use super::rate::Direction;

/// Files of LibreQoS with so many circuits and nodes.
fn files(circuits: u32, nodes: u32) -> (String, String) {
    let mut devices = "Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,\
                       Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment\n"
        .to_owned();
    for i in 0..circuits {
        let (node, address) = (i % nodes, std::net::Ipv4Addr::from(0x6440_0000 + i));
        let max = 25 + i % 100;
        writeln!(
            devices,
            "c{i},\"Street {i}, Town\",{i},CPE {i},AP_{node},,{address},2001:db8:{i:x}::/56,1,1,\
             {max},20,"
        )
        .unwrap();
    }
    let nodes = (0..nodes).map(|node| {
        let rates = "\"downloadBandwidthMbps\": 1000, \"uploadBandwidthMbps\": 500";
        format!("\"AP_{node}\": {{ {rates}, \"type\": \"AP\" }}")
    });
    let network = format!("{{ {} }}", nodes.collect::<Vec<_>>().join(",\n"));
    (devices, network)
}

fn imported(circuits: u32, nodes: u32) -> String {
    let (devices, network) = files(circuits, nodes);
    let input = |name: &str, text: String| Input {
        name: name.to_owned(),
        bytes: text.into_bytes(),
    };
    let choice = Choice {
        device: "eth0".to_owned(),
        direction: Direction::Download,
        line_bps: Some(100_000_000_000),
    };
    let network = input("n", network);
    let imported = libreqos(&input("d", devices), Some(&network), &choice);
    imported.unwrap().text
}

fn empty() -> Port {
    let facts = Facts {
        index: 2,
        name: "eth0".to_owned(),
        is_ethernet: true,
        queues: 1,
        speed_bps: Some(100_000_000_000),
        has_made_up_speed: false,
        max_frame_bytes: 1514,
    };
    Port::new(&facts, &[], &[], &[])
}

/// Reads and plans, as `pspacer plan` does; returns how long it took, too.
fn planned(file: &str, port: &Port) -> (Plan, f64) {
    let start = Instant::now();
    let host = Host::read("f", file).unwrap();
    let read_s = start.elapsed().as_secs_f64();
    let device = &host.devices[0];
    check_backend(device, Backend::Module, true).unwrap();
    let plan = plan(&Target::new(device, Backend::Module, port), port, false).unwrap();
    let planned_s = start.elapsed().as_secs_f64();
    let mut model = port.clone();
    for change in &plan.changes {
        model.apply(change).unwrap();
    }
    let tried_s = start.elapsed().as_secs_f64();
    let _ = text(&plan, &Beside::default(), port);
    let all_s = start.elapsed().as_secs_f64();
    println!(
        "{} changes: read {read_s:.3} s, planned {:.3}, tried {:.3}, printed {:.3}: {all_s:.3} s",
        plan.changes.len(),
        planned_s - read_s,
        tried_s - planned_s,
        all_s - tried_s
    );
    (plan, all_s)
}

/// Without optimisation a plan takes some times as long as in a release: the bound is wide.
const PLAN_S_MAX: f64 = 10.0;

#[test]
fn ten_thousand_are_planned_at_once() {
    let start = Instant::now();
    let file = imported(10_000, 100);
    println!(
        "imported in {:.3} s, {} bytes",
        start.elapsed().as_secs_f64(),
        file.len()
    );
    let mut port = empty();
    let (all, all_s) = planned(&file, &port);
    assert_eq!(all.changes.len(), 1 + 100 + 10_000 + 20_000);
    for change in &all.changes {
        port.apply(change).unwrap();
    }
    let (none, none_s) = planned(&file, &port);
    assert_eq!(none.changes, []);
    assert!(all_s.max(none_s) < PLAN_S_MAX, "{all_s} {none_s}");
    // One subscriber pays for more.
    let one = file.replacen("ceil = \"25mbit\"", "ceil = \"250mbit\"", 1);
    let (one, _) = planned(&one, &port);
    assert!(
        matches!(one.changes[..], [Change::ChangeClass { .. }]),
        "{:?}",
        one.changes
    );
    // One address comes, another goes.
    let moved = file.replacen("{ to = \"100.64.0.1\" }", "{ to = \"100.65.0.1\" }", 1);
    let (moved, _) = planned(&moved, &port);
    let kinds = matches!(
        moved.changes[..],
        [Change::AddFilter { .. }, Change::DeleteFilter { .. }]
    );
    assert!(kinds, "{:?}", moved.changes);
    // A subscriber goes.
    let start = file.find("\n# Street 77,").unwrap();
    let end = file.find("\n# Street 78,").unwrap();
    let gone = file[..start].to_owned() + &file[end..];
    let (gone, _) = planned(&gone, &port);
    assert_eq!(gone.changes.len(), 3, "{:?}", gone.changes);
}
