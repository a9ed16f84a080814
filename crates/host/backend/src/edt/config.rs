// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the program is told of a device, of the psp that is wanted there.

use std::collections::BTreeMap;

use host_config::{Facts, Psp, Rule};
use tcpsp::{ClassOptions, Layer, Mark, TypeOptions};
use units::ethernet::{FRAME_MIN_BYTES, HEADER_BYTES};

use super::waiting;

/// A class with a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacedClass {
    pub rate_bps: u64,
    /// Packets that would wait for longer are dropped when they come.
    pub horizon_ns: u64,
    /// ECN-capable packets that would wait for longer are CE-marked; `u64::MAX`: none.
    pub mark_ns: u64,
}

/// What the program is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// Its paced classes, by minor number.
    pub paced: BTreeMap<u16, PacedClass>,
    /// Minor numbers of its classes without a rate.
    pub normal: Vec<u16>,
    /// Which packets go to which class; the first that matches decides.
    pub rules: Vec<Rule>,
    /// Class of packets that no rule claims; 0: none.
    pub default_minor: u16,
    /// Whether net_cls.classid of the sender's cgroup names the class of such packets.
    pub net_cls: bool,
    /// What rates count: 0 the frame, 1 the wire, 2 IP.
    pub layer: u32,
    /// Overhead of a frame on the wire.
    pub overhead_bytes: u32,
    /// Shortest frame.
    pub min_bytes: u32,
    /// Bytes of the link header.
    pub link_bytes: u32,
    /// What is kept beside, as it is.
    pub text: Vec<u8>,
}

impl Config {
    /// Returns what the program is told of a psp, all of which departure times can do
    /// ([`host_config::check_backend`]). O(classes + rules).
    pub fn new(psp: &Psp, facts: &Facts) -> Self {
        let paced = psp.classes.iter().filter_map(|(minor, class)| {
            let paced = paced_class(&class.options)?;
            Some((*minor, paced))
        });
        let paced: BTreeMap<u16, PacedClass> = paced.collect();
        let normal = psp
            .classes
            .keys()
            .filter(|minor| !paced.contains_key(minor));
        let (rules, net_cls) = psp.rules();
        let rules = rules.into_iter().map(|(matching, class)| Rule {
            matching: matching.clone(),
            class,
        });
        let (link_bytes, min_bytes) = if facts.is_ethernet {
            (HEADER_BYTES, FRAME_MIN_BYTES)
        } else {
            (0, 0)
        };
        Self {
            normal: normal.copied().collect(),
            paced,
            rules: rules.collect(),
            default_minor: psp.options.default_minor,
            net_cls,
            layer: layer_word(psp.options.layer),
            overhead_bytes: psp.options.overhead_bytes,
            min_bytes,
            link_bytes,
            text: psp.text().into_bytes(),
        }
    }
}

/// Returns the program's number of a layer, `enum edt_layer`.
fn layer_word(layer: Layer) -> u32 {
    match layer {
        Layer::Link => 0,
        Layer::Wire => 1,
        Layer::Ip => 2,
    }
}

/// Returns a class with a rate, or `None` if it has none.
fn paced_class(options: &ClassOptions) -> Option<PacedClass> {
    let TypeOptions::Paced { rate_bps, .. } = options.by_type else {
        return None;
    };
    let horizon_ns = options.deadline_ns;
    let horizon_ns = horizon_ns.unwrap_or_else(|| waiting::horizon_ns(rate_bps));
    Some(PacedClass {
        rate_bps,
        horizon_ns,
        mark_ns: match options.mark_ns {
            Some(Mark::Off) => u64::MAX,
            Some(Mark::After(mark_ns)) => mark_ns,
            None => waiting::mark_ns(rate_bps, horizon_ns),
        },
    })
}

/// Returns whether a change of a class may throw away what waits on its device: packets of a full
/// queue would leave far too late by the rate that the class had.
pub fn drops_what_waits(had: &ClassOptions, wanted: &ClassOptions) -> bool {
    let (Some(had), Some(wanted)) = (paced_class(had), paced_class(wanted)) else {
        return false;
    };
    wanted.rate_bps > had.rate_bps
        && waiting::is_slow(had.horizon_ns, had.rate_bps, wanted.rate_bps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_says_how_long_packets_wait_or_the_defaults_do() {
        const MS: u64 = 1_000_000;
        for (rate_bps, deadline_ns, mark_ns, expected) in [
            (100_000_000, None, None, (50 * MS, 20 * MS)),
            (1_000_000, None, None, (121_120_000, 48_448_000)),
            (100_000_000, Some(10 * MS), None, (10 * MS, 5 * MS)),
            (100_000_000, Some(2000 * MS), None, (2000 * MS, 20 * MS)),
            (
                100_000_000,
                None,
                Some(Mark::After(5 * MS)),
                (50 * MS, 5 * MS),
            ),
            (100_000_000, None, Some(Mark::Off), (50 * MS, u64::MAX)),
        ] {
            let class = ClassOptions {
                deadline_ns,
                mark_ns,
                ..ClassOptions::new(TypeOptions::Paced {
                    rate_bps,
                    ceil_bps: None,
                    launch: None,
                })
            };
            let paced = paced_class(&class).map(|class| (class.horizon_ns, class.mark_ns));
            assert_eq!(paced, Some(expected));
        }
    }
}
