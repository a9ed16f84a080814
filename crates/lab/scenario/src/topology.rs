// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes addresses and paths. Cable *k*, counted from 1, is 10.k.0.0/16; its first end is
//! 10.k.1.1 and its second 10.k.2.1. A path is the shortest one, and of equally short ones the
//! first in the order of the file.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use crate::flow_kind::FlowKind;
use crate::model::{Bound, Cable, Cell, Direction, End, Subject};

/// Most cables: one byte of an address holds the cable's number.
pub const CABLES_MAX: usize = 254;

/// Returns address number `nth`, from 0, of an end of cable number `cable`, from 0. `cable` is
/// below [`CABLES_MAX`] and `nth` below 254.
pub fn address(cable: usize, end: End, nth: u8) -> Ipv4Addr {
    let net = u8::try_from(cable + 1).unwrap_or(u8::MAX);
    let side = match end {
        End::A => 1,
        End::B => 2,
    };
    Ipv4Addr::new(10, net, side, nth.saturating_add(1))
}

/// Returns the MAC address that the guest's cable gives an end: `02:70:73:KK:KK:EE`.
pub fn hardware_address(cable: usize, end: End) -> String {
    let number = cable + 1;
    format!(
        "02:70:73:{:02x}:{:02x}:{:02x}",
        (number >> 8) & 0xff,
        number & 0xff,
        end.index() + 1
    )
}

/// Returns the shortest path from one host to another; it is empty if both are the same host,
/// and `None` if there is no path. Linear in the number of cables and hosts.
pub fn path(cables: &[Cable], hosts: usize, from: usize, to: usize) -> Option<Vec<Direction>> {
    let mut reached: Vec<Option<Direction>> = vec![None; hosts];
    let mut queue = VecDeque::from([from]);
    while let Some(host) = queue.pop_front() {
        for hop in leaving(cables, host) {
            let next = far_host(cables, hop);
            if next != from && reached[next].is_none() {
                reached[next] = Some(hop);
                queue.push_back(next);
            }
        }
    }
    let mut path = Vec::new();
    let mut host = to;
    while host != from {
        let hop = reached[host]?;
        path.push(hop);
        host = cables[hop.cable].ends[hop.end.index()].host;
    }
    path.reverse();
    Some(path)
}

/// Iterates over the directions that leave a host, in order.
pub fn leaving(cables: &[Cable], host: usize) -> impl Iterator<Item = Direction> + '_ {
    cables.iter().enumerate().flat_map(move |(cable, c)| {
        End::BOTH
            .into_iter()
            .filter(move |end| c.ends[end.index()].host == host)
            .map(move |end| Direction { cable, end })
    })
}

/// Returns the host at the far end of a direction.
pub fn far_host(cables: &[Cable], hop: Direction) -> usize {
    cables[hop.cable].ends[hop.end.other().index()].host
}

/// A route to a cable on which a host has no device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Index of the destination cable.
    pub to_cable: usize,
    /// Direction by which the cable is reached.
    pub via: Direction,
}

/// Returns the routes that a host needs to reach every cable that it can.
pub fn routes(cables: &[Cable], hosts: usize, host: usize) -> Vec<Route> {
    let attached = |cable: &Cable| cable.ends.iter().any(|device| device.host == host);
    let nearest = |cable: &Cable| {
        cable
            .ends
            .iter()
            .filter_map(|device| path(cables, hosts, host, device.host))
            .min_by_key(Vec::len)
            .and_then(|path| path.first().copied())
    };
    cables
        .iter()
        .enumerate()
        .filter(|(_, cable)| !attached(cable))
        .filter_map(|(to_cable, cable)| nearest(cable).map(|via| Route { to_cable, via }))
        .collect()
}

/// Returns a remark for each flow of datagrams that a queue may hold or lose behind the cable on which
/// the flow is measured.
pub fn behind_measured_cable(cell: &Cell) -> Vec<String> {
    let is_set = |hop: &&Direction| {
        let device = &cell.cables[hop.cable].ends[hop.end.index()];
        let mut lines = cell.tc.iter().filter(|line| line.host == device.host);
        let names = |words: &[String]| words == ["dev", &device.name];
        lines.any(|line| line.args.windows(2).any(names))
    };
    let has_bound = |index| {
        let is_of = |bound: &Bound| bound.subject == Subject::Flow(index);
        let mut bounds = cell.bounds.iter();
        bounds.any(|bound| is_of(bound) && bound.metric == "dropped")
    };
    let flows = cell.flows.iter().enumerate();
    let flows = flows.filter(|(_, flow)| !matches!(flow.kind, FlowKind::Tcp { .. }));
    flows
        .filter_map(|(index, flow)| {
            let at = flow.measured_at()?;
            let mut behind = flow.path.iter().skip_while(|hop| **hop != at).skip(1);
            let hop = behind.find(is_set)?;
            let (measured, cable) = (&cell.cables[at.cable], &cell.cables[hop.cable]);
            let device = &cable.ends[hop.end.index()];
            let of_bound = if has_bound(index) {
                "; its bound on `dropped` holds of that cable alone"
            } else {
                ""
            };
            Some(format!(
                "flow `{}` is measured on cable `{}`: what the queue of {}:{} holds or loses of it is in \
                 no metric and no bound{of_bound}",
                flow.name, measured.name, cell.hosts[device.host].name, device.name
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Device;

    /// Makes cables between pairs of hosts.
    fn cables(pairs: &[[usize; 2]]) -> Vec<Cable> {
        pairs
            .iter()
            .enumerate()
            .map(|(index, hosts)| Cable {
                name: format!("c{index}"),
                ends: hosts.map(|host| Device {
                    host,
                    name: format!("eth{index}"),
                }),
                rate_bps: 1,
                mtu: 1500,
                delay_ns: 0,
                queues: 1,
                ring: 1,
                bql_min_bytes: None,
                coalesce_frames: 1,
                coalesce_ns: 0,
                sink: false,
                snap_bytes: 0,
                bottlenecks: [None, None],
            })
            .collect()
    }

    fn hop(cable: usize, end: End) -> Direction {
        Direction { cable, end }
    }

    #[test]
    fn the_path_through_a_line_of_hosts() {
        // The topology is 0 -- 1 -- 2; the second cable's ends are exchanged.
        let line = cables(&[[0, 1], [2, 1]]);
        assert_eq!(
            path(&line, 3, 0, 2),
            Some(vec![hop(0, End::A), hop(1, End::B)])
        );
        assert_eq!(
            path(&line, 3, 2, 0),
            Some(vec![hop(1, End::A), hop(0, End::B)])
        );
        assert_eq!(path(&line, 3, 1, 1), Some(vec![]));
        assert_eq!(path(&line, 4, 0, 3), None);
        let route = |to_cable, via| Route { to_cable, via };
        assert_eq!(routes(&line, 3, 0), [route(1, hop(0, End::A))]);
        assert_eq!(routes(&line, 3, 2), [route(0, hop(1, End::A))]);
        assert_eq!(routes(&line, 3, 1), []);
    }

    #[test]
    fn a_ring_takes_the_short_side_and_then_the_first() {
        // The topology is the ring 0 -- 1 -- 2 -- 3 -- 0.
        let ring = cables(&[[0, 1], [1, 2], [2, 3], [3, 0]]);
        assert_eq!(path(&ring, 4, 0, 3), Some(vec![hop(3, End::B)]));
        assert_eq!(
            path(&ring, 4, 0, 2),
            Some(vec![hop(0, End::A), hop(1, End::A)])
        );
    }

    #[test]
    fn of_parallel_cables_the_first_is_taken() {
        let pair = cables(&[[0, 1], [0, 1]]);
        assert_eq!(path(&pair, 2, 0, 1), Some(vec![hop(0, End::A)]));
        assert_eq!(routes(&pair, 2, 0), []);
    }

    #[test]
    fn addresses() {
        assert_eq!(address(0, End::A, 0).to_string(), "10.1.1.1");
        assert_eq!(address(1, End::B, 15).to_string(), "10.2.2.16");
        assert_eq!(hardware_address(0, End::B), "02:70:73:00:01:02");
        assert_eq!(hardware_address(299, End::A), "02:70:73:01:2c:01");
    }
}
