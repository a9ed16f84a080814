// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stacks and paths by chance.

use crate::chance::Chance;
use crate::ground_truth::End;
use crate::packet::Ids;
use crate::path::Nature;
use crate::profile::{IpId, MS, Profile};
use crate::smol::{Settings, Smol};
use crate::stack::Stack;
use crate::tcp::Tcp;

/// One end's TCP.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A scripted system.
    Scripted(Profile),
    Smol(Settings),
}

impl Kind {
    /// Returns the name of the stack.
    pub const fn name(&self) -> &'static str {
        match self {
            Kind::Scripted(profile) => profile.name,
            Kind::Smol(_) => "smoltcp",
        }
    }

    /// Makes the stack of one end; a server's answers a SYN after `accept_ns`.
    pub fn stack(self, end: End, ids: &Ids, accept_ns: u64, chance: &mut Chance) -> Box<dyn Stack> {
        match self {
            Kind::Scripted(profile) => {
                let own = Chance::new(chance.below(u64::MAX), 1 + end.index() as u64);
                Box::new(Tcp::new(profile, end, accept_ns, own))
            }
            Kind::Smol(settings) => Box::new(Smol::new(settings, end, ids, chance.below(u64::MAX))),
        }
    }
}

/// Draws a stack.
pub fn draw_kind(chance: &mut Chance) -> Kind {
    if chance.happens(150_000) {
        return Kind::Smol(Settings {
            receive_bytes: chance.scaled(4_096, 65_536) as usize,
            send_bytes: chance.scaled(4_096, 65_536) as usize,
            ack_delay_ms: chance.pick(&[0, 10, 10, 40]).unwrap_or(10),
            nagle: chance.happens(500_000),
            reno: chance.happens(500_000),
            mtu: 1500,
        });
    }
    let all = Profile::all();
    let mut profile = all[chance.below(all.len() as u64) as usize].clone();
    let larger = 1 << chance.below(3);
    if profile.window_scale.is_some_and(|s| s > 0) {
        profile.receive_bytes *= larger;
    }
    profile.send_bytes *= larger;
    profile.nagle = chance.happens(500_000);
    if chance.happens(150_000) {
        profile.timestamp_tick_ns = None;
    }
    if profile.timestamp_tick_ns.is_some() && profile.name.contains("bsd") {
        let ticks = [MS, 10 * MS, 4 * MS, 500 * MS];
        profile.timestamp_tick_ns = chance.pick(&ticks);
    }
    profile.ip_id = match chance.below(4) {
        0 => IpId::Zero,
        1 => IpId::Random,
        _ => profile.ip_id,
    };
    Kind::Scripted(profile)
}

/// Draws both directions of a path without trouble.
pub fn draw_path(chance: &mut Chance) -> [Nature; 2] {
    let rate_bps = chance.scaled(1_000_000, 500_000_000);
    let delay_ns = chance.scaled(100_000, 60 * MS);
    let jitter_ns = if chance.happens(300_000) {
        delay_ns / 20
    } else {
        0
    };
    let buffer_ns = (delay_ns * 2).max(20 * MS) * chance.between(1, 4);
    let one = Nature {
        rate_bps,
        delay_ns,
        queue_bytes: (rate_bps / 8 * (buffer_ns / 1000) / 1_000_000).max(30_000),
        jitter_ns,
        ..Nature::default()
    };
    [one.clone(), one]
}
