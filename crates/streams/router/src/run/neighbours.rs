// SPDX-License-Identifier: MIT OR Apache-2.0
//! The MAC addresses of the next hops, and the MTUs of the devices towards them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use linux_io::links::{Link, links};
use linux_io::neighbours::{Neighbour, State, ask, known};

use crate::config::Config;
use crate::ethernet::Mac;

/// Longest wait for answers of neighbours, in steps.
const STEPS: u32 = 20;
const STEP: Duration = Duration::from_millis(10);

/// MAC addresses by device and next hop; MTUs by device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Neighbours {
    macs: HashMap<(usize, IpAddr), Mac>,
    mtu_bytes: Vec<Option<usize>>,
}

impl Neighbours {
    /// Returns the MAC addresses that the configuration contains.
    pub fn new(config: &Config) -> Self {
        let named = config.routes.iter();
        let named = named.filter_map(|r| Some(((r.device, r.via), r.mac?)));
        Self {
            macs: named.collect(),
            mtu_bytes: vec![None; config.devices.len()],
        }
    }

    /// Returns the MAC address of a next hop.
    pub fn mac(&self, device: usize, via: IpAddr) -> Option<Mac> {
        self.macs.get(&(device, via)).copied()
    }

    /// Returns the longest packet that a device sends; unlimited if the kernel does not report it.
    pub fn mtu_bytes(&self, device: usize) -> usize {
        let known = self.mtu_bytes.get(device).copied().flatten();
        known.unwrap_or(usize::MAX)
    }

    /// Reads the kernel's neighbours, asks for the missing ones, and waits a little for the
    /// answers. It also has stale ones confirmed, as the kernel does where it forwards itself: the
    /// MAC address of a next hop may change without notice.
    pub fn look(&mut self, config: &Config) {
        // If the kernel's tables cannot be read, the known addresses stay.
        let links = links().unwrap_or_default();
        let link = |device: &crate::config::Device| links.iter().find(|l| l.name == device.name);
        let of_devices: Vec<Option<&Link>> = config.devices.iter().map(link).collect();
        for (known, link) in self.mtu_bytes.iter_mut().zip(&of_devices) {
            *known = link.map_or(*known, |link| Some(link.mtu_bytes));
        }
        let numbers: Vec<u32> = of_devices
            .iter()
            .map(|l| l.map_or(0, |l| l.index))
            .collect();
        for (device, via) in self.take(config, &numbers) {
            // A request that fails needs no report: the packets to that next hop are counted.
            let _ = ask(via, numbers.get(device).copied().unwrap_or(0));
        }
        for _ in 0..STEPS {
            if self.lacking(config).is_empty() {
                return;
            }
            thread::sleep(STEP);
            self.take(config, &numbers);
        }
    }

    fn lacking(&self, config: &Config) -> Vec<(usize, IpAddr)> {
        let hops = config.routes.iter().map(|r| (r.device, r.via));
        hops.filter(|hop| !self.macs.contains_key(hop)).collect()
    }

    /// Reads the kernel's table; returns the next hops that must be asked for.
    fn take(&mut self, config: &Config, numbers: &[u32]) -> Vec<(usize, IpAddr)> {
        let table = known().unwrap_or_default();
        self.apply(config, numbers, &table)
    }

    fn apply(
        &mut self,
        config: &Config,
        numbers: &[u32],
        table: &[Neighbour],
    ) -> Vec<(usize, IpAddr)> {
        let mut to_ask = Vec::new();
        for route in config.routes.iter().filter(|r| r.mac.is_none()) {
            let hop = (route.device, route.via);
            let number = numbers.get(route.device);
            let entry = table
                .iter()
                .find(|n| Some(&n.device) == number && n.address == route.via);
            match entry.map(|n| n.state) {
                Some(State::Known(mac)) => {
                    self.macs.insert(hop, mac);
                }
                Some(State::Stale(mac)) => {
                    self.macs.insert(hop, mac);
                    to_ask.push(hop);
                }
                // While the kernel asks again, the known address may still be right.
                Some(State::Asked) => {}
                Some(State::Failed) => {
                    self.macs.remove(&hop);
                    to_ask.push(hop);
                }
                // The kernel forgets neighbours that it does not use itself.
                None => to_ask.push(hop),
            }
        }
        to_ask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
[[device]]
name = "a"
budget = "70mbit"
[[route]]
to = "10.2.0.0/16"
device = "a"
via = "10.1.0.2"
[[route]]
to = "10.3.0.0/16"
device = "a"
via = "fe80::2"
[[route]]
to = "10.4.0.0/16"
device = "a"
via = "10.1.0.4"
mac = "02:00:00:00:00:04"
"#;

    fn at(address: &str, state: State) -> Neighbour {
        Neighbour {
            device: 7,
            address: address.parse().unwrap(),
            state,
        }
    }

    #[test]
    fn next_hops_follow_the_kernels_table() {
        let config = crate::config::read(TEXT).unwrap();
        let hops: Vec<_> = config.routes.iter().map(|r| (r.device, r.via)).collect();
        let (old, new) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 9]);
        let mut neighbours = Neighbours::new(&config);
        let mut of = |v4: State, v6: State, device| {
            let other = at("10.1.0.4", State::Known(old));
            let table = [at("10.1.0.2", v4), at("fe80::2", v6), other];
            let asked = neighbours.apply(&config, &[device], &table);
            let mac = |hop: &(usize, IpAddr)| neighbours.mac(hop.0, hop.1);
            (hops.iter().map(mac).collect::<Vec<_>>(), asked)
        };
        let named = Some([2, 0, 0, 0, 0, 4]);
        // The entry is of another device's table.
        assert_eq!(
            of(State::Known(old), State::Known(old), 3),
            (vec![None, None, named], vec![hops[0], hops[1]])
        );
        assert_eq!(
            of(State::Known(old), State::Stale(old), 7),
            (vec![Some(old), Some(old), named], vec![hops[1]])
        );
        assert_eq!(
            of(State::Asked, State::Failed, 7),
            (vec![Some(old), None, named], vec![hops[1]])
        );
        assert_eq!(
            of(State::Stale(new), State::Known(new), 7),
            (vec![Some(new), Some(new), named], vec![hops[0]])
        );
        // The kernel has dropped both entries.
        assert_eq!(neighbours.apply(&config, &[7], &[]), hops[..2]);
        assert_eq!(neighbours.mac(0, hops[0].1), Some(new));
    }
}
