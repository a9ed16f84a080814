// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stations of the next hops.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use live::neighbours::{ask, known};

use crate::config::{Config, mac};
use crate::ethernet::Mac;

/// How long, in steps, an answer is waited for.
const STEPS: u32 = 20;
const STEP: Duration = Duration::from_millis(10);

/// Stations by device and next hop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Neighbours(HashMap<(usize, Ipv4Addr), Mac>);

impl Neighbours {
    /// Those that the configuration names.
    pub fn new(config: &Config) -> Self {
        let named = config.routes.iter();
        Self(
            named
                .filter_map(|r| Some(((r.device, r.via), r.mac?)))
                .collect(),
        )
    }

    /// The station of a next hop.
    pub fn station(&self, device: usize, via: Ipv4Addr) -> Option<Mac> {
        self.0.get(&(device, via)).copied()
    }

    /// Takes what the kernel knows; asks for what it does not, and waits a
    /// little for the answers. The kernel forgets, we do not: a router that
    /// stops for a neighbour that is asked again would be late.
    pub fn look(&mut self, config: &Config) {
        self.take(config);
        let lacking = self.lacking(config);
        if lacking.is_empty() {
            return;
        }
        for via in lacking {
            // One that cannot be asked for is counted when packets are for it.
            let _ = ask(via);
        }
        for _ in 0..STEPS {
            thread::sleep(STEP);
            self.take(config);
            if self.lacking(config).is_empty() {
                return;
            }
        }
    }

    fn lacking(&self, config: &Config) -> Vec<Ipv4Addr> {
        let routes = config.routes.iter();
        let lacking = routes.filter(|r| self.station(r.device, r.via).is_none());
        lacking.map(|r| r.via).collect()
    }

    fn take(&mut self, config: &Config) {
        // A table that cannot be read has nobody in it.
        for (address, device, station) in known().unwrap_or_default() {
            let device = config.devices.iter().position(|d| d.name == device);
            if let Some((device, station)) = device.zip(mac(&station)) {
                let named = config
                    .routes
                    .iter()
                    .any(|r| (r.device, r.via) == (device, address) && r.mac.is_some());
                if !named {
                    self.0.insert((device, address), station);
                }
            }
        }
    }
}
