// SPDX-License-Identifier: MIT OR Apache-2.0
//! A full queue that drops a packet for another one: pfifo_head_drop.

use netsim::network::NetworkConfig;
use netsim::qdisc::{Fifo, Limit, Qdisc};
use netsim::run::run_cell;
use netsim::source::SourceConfig;
use scenario::{Cell, Options, parse};

use crate::common::{GBIT, Log, datagrams, greedy, line, ms, run};

fn head_drop(packets: u32) -> Qdisc {
    Qdisc::Fifo(Fifo::new(Limit::NewestPackets(packets)))
}

/// Runs two sources without a socket buffer on a line of 1 Gbit/s.
fn through(qdisc: Qdisc, rates_bps: [u64; 2]) -> (netsim::network::Counts, Log) {
    let source = |rate_bps| SourceConfig {
        rate_bps: Some(rate_bps),
        buffer_bytes: None,
        ..greedy(ms(10))
    };
    let config = NetworkConfig {
        devices: vec![line(GBIT, qdisc)],
        ports: vec![],
        flows: (0..)
            .zip(rates_bps)
            .map(|(flow, rate)| datagrams(flow, &[0], source(rate)))
            .collect(),
    };
    let (network, log) = run(config, ms(20));
    (network.counts(), log)
}

/// Flow 0 alone fills the queue; the packets that are dropped are charged to the flow that each
/// belongs to, also where the other flow's packet displaced it.
#[test]
fn drops_are_charged_to_the_flow_of_the_dropped_packet() {
    let (counts, log) = through(head_drop(10), [2 * GBIT, GBIT / 10]);
    assert_eq!(counts.refused, 0);
    assert_eq!(counts.lost, log.displaced.len() as u64);
    let of = |flow: u32| log.displaced.iter().filter(|d| d.0 == flow).count();
    let sent = |flow: u32| log.frames.iter().filter(|f| f.flow == Some(flow)).count();
    // 20 of 21 packets are flow 0's, and more than half of all are dropped: of both flows alike.
    assert!(of(0) > 800 && of(1) > 30, "{} {}", of(0), of(1));
    assert!(sent(1) > 30, "{}", sent(1));
    // What is dropped is the oldest: packets 0 to 7 have left when the queue is full first.
    assert_eq!(log.displaced[0], (0, 8));
    // The newest packets of the queue are sent at last.
    let last = log.frames.iter().filter_map(|f| f.number).max().unwrap();
    assert!(log.displaced.iter().all(|d| d.1 < last));
}

/// A source that sends as fast as its queue takes packets gets room at once for each that is
/// dropped. It fills the line, and simulated time goes on.
#[test]
fn a_greedy_source_goes_on_at_the_rate_of_the_line() {
    for packets in [0, 1, 10] {
        let config = NetworkConfig {
            devices: vec![line(GBIT, head_drop(packets))],
            ports: vec![],
            flows: vec![datagrams(0, &[0], greedy(ms(10)))],
        };
        let (network, log) = run(config, ms(20));
        let counts = network.counts();
        if packets == 0 {
            assert_eq!((counts.refused, counts.frames), (counts.offered, 0));
            continue;
        }
        assert!(log.frames.len() >= 810, "{packets}: {counts:?}");
        assert!(counts.lost > 0, "{packets}: {counts:?}");
    }
}

/// Makes a cell with one flow and these lines of tc on the sender.
fn cell(lines: &[&str], flow: &str) -> Cell {
    let lines: Vec<_> = lines.iter().map(|l| format!("  {l:?},\n")).collect();
    let text = format!(
        "name = \"t\"\ntitle = \"t\"\nduration = \"1s\"\n\
         [[host]]\nname = \"tx\"\n[[host]]\nname = \"rx\"\n\
         [[cable]]\nname = \"wire\"\nends = [\"tx:eth0\", \"rx:eth0\"]\nrate = \"100mbit\"\n\
         delay = \"5ms\"\n[[tc]]\nhost = \"tx\"\nlines = [\n{}]\n\
         [[flow]]\nname = \"bulk\"\nfrom = \"tx\"\nto = \"rx\"\n{flow}\n",
        lines.concat()
    );
    let mut scenario = parse("t.toml", &text, &Options::default()).unwrap();
    scenario.cells.remove(0)
}

/// A TCP sender reduces its window when its segments displace others, and repairs those.
#[test]
fn tcp_takes_a_displaced_packet_for_congestion() {
    let flow = "type = \"tcp\"\nstack = \"2.6.22\"\nbytes = \"4000kb\"";
    for lines in [
        &["qdisc add dev eth0 root pfifo_head_drop limit 20"][..],
        &[
            "qdisc add dev eth0 root handle 1: psp default 1",
            "class add dev eth0 parent 1: classid 1:1 psp rate 80mbit",
            "qdisc add dev eth0 parent 1:1 pfifo_head_drop limit 20",
        ],
        &[
            "qdisc add dev eth0 root handle 1: htb default 1",
            "class add dev eth0 parent 1: classid 1:1 htb rate 80mbit",
            "qdisc add dev eth0 parent 1:1 pfifo_head_drop limit 20",
        ],
    ] {
        let ran = run_cell(&cell(lines, flow), 1, false, &mut |_| {}).unwrap();
        let stream = ran.flows[0].stream.unwrap();
        let displaced = ran.recorder.displaced[0][0];
        assert!(displaced > 0, "{lines:?}");
        assert_eq!(ran.flows[0].refused, displaced, "{lines:?}");
        let counters = stream.sender.counters;
        assert!(counters.local_reductions > 0, "{lines:?}: {counters:?}");
        assert_eq!(counters.local_drops, 0, "{lines:?}: {counters:?}");
        assert!(counters.retransmits > 0, "{lines:?}: {counters:?}");
        assert!(stream.transfer.is_some(), "{lines:?}: {stream:?}");
    }
}
