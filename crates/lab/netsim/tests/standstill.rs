// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run in which simulated time stands still ends with an error.

use netsim::network::{Network, NetworkConfig, Standstill};
use netsim::qdisc::{Fifo, Limit, Qdisc};
use units::clock::Time;

use crate::common::{GBIT, datagrams, greedy, line, ms, pfifo};

/// On this line a frame takes less than a picosecond. A source whose frames the queue refuses
/// waits for the time of one frame, so it tries again at the same instant.
#[test]
fn a_source_that_is_refused_at_one_instant_without_end() {
    let nothing = Qdisc::Fifo(Fifo::new(Limit::Packets(0)));
    let config = NetworkConfig {
        devices: vec![line(GBIT, pfifo()), line(u64::MAX, nothing)],
        ports: vec![],
        flows: vec![datagrams(0, &[1], greedy(ms(1)))],
    };
    let mut network = Network::new(config).unwrap();
    let found = network.run(ms(1), &mut ()).unwrap_err();
    let expected = Standstill {
        at: Time::START,
        device: 1,
        qdisc: "pfifo",
    };
    assert_eq!(found, expected);
    let text = found.to_string();
    assert!(
        text.contains("device 1 (pfifo)") && text.contains("0.000000000 s"),
        "{text}"
    );
    // The network stays where it is.
    assert_eq!(network.run(ms(1), &mut ()), Err(expected));
}
