// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers the VLANs and tunnels around packets in the order in which they are found.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

use crate::segment::EncapsulationId;

/// One layer around a packet. It holds only fields that are equal in both directions of a
/// connection: outer ports and GTP tunnel numbers are not, so it omits them. Where nothing
/// else distinguishes two tunnels, their end addresses do, the smaller address first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// IEEE 802.1Q or 802.1ad tag, with its VLAN.
    Vlan(u16),
    /// VXLAN or VXLAN-GPE, with its network.
    Vxlan(u32),
    /// GENEVE, with its network.
    Geneve(u32),
    /// NVGRE, with its virtual subnet.
    Nvgre(u32),
    /// GRE with a key.
    GreKey(u32),
    /// GRE without one, with its ends.
    Gre(IpAddr, IpAddr),
    /// ERSPAN, with its session; 0 in its first version, which has none.
    Erspan(u16),
    /// IP in IP, with its ends.
    IpInIp(IpAddr, IpAddr),
    /// GTP-U, with its ends.
    Gtp(IpAddr, IpAddr),
    /// PPPoE, with its session.
    Pppoe(u16),
    /// Provider backbone bridging (IEEE 802.1ah), with its service.
    Pbb(u32),
    /// MikroTik's Ethernet over IP, with its tunnel.
    Eoip(u16),
    /// CAPWAP, with its ends.
    Capwap(IpAddr, IpAddr),
    /// Ethernet in IP (EtherIP, SRv6), with its ends.
    EthernetInIp(IpAddr, IpAddr),
    /// L2TP, with its ends.
    L2tp(IpAddr, IpAddr),
    /// A mirrored frame in TZSP, with its ends.
    Tzsp(IpAddr, IpAddr),
    /// MPLS: labels differ by direction.
    Mpls,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vlan(id) => write!(f, "VLAN {id}"),
            Self::Vxlan(id) => write!(f, "VXLAN {id}"),
            Self::Geneve(id) => write!(f, "GENEVE {id}"),
            Self::Nvgre(id) => write!(f, "NVGRE {id}"),
            Self::GreKey(key) => write!(f, "GRE key {key}"),
            Self::Gre(a, b) => write!(f, "GRE {a} - {b}"),
            Self::Erspan(session) => write!(f, "ERSPAN {session}"),
            Self::IpInIp(a, b) => write!(f, "IP in IP {a} - {b}"),
            Self::Gtp(a, b) => write!(f, "GTP {a} - {b}"),
            Self::Pppoe(session) => write!(f, "PPPoE {session}"),
            Self::Pbb(service) => write!(f, "PBB {service}"),
            Self::Eoip(tunnel) => write!(f, "EoIP {tunnel}"),
            Self::Capwap(a, b) => write!(f, "CAPWAP {a} - {b}"),
            Self::EthernetInIp(a, b) => write!(f, "Ethernet in IP {a} - {b}"),
            Self::L2tp(a, b) => write!(f, "L2TP {a} - {b}"),
            Self::Tzsp(a, b) => write!(f, "TZSP {a} - {b}"),
            Self::Mpls => f.write_str("MPLS"),
        }
    }
}

/// All encapsulations that were found, as a tree in which each is a layer inside another. It
/// holds at most [`Encapsulations::MOST`], so that a file full of tunnels cannot use up the
/// memory; further ones share the last number.
#[derive(Debug, Default)]
pub struct Encapsulations {
    nodes: Vec<Node>,
    by_place: HashMap<(EncapsulationId, Layer), EncapsulationId>,
    /// The layer found last outside of any other; each node holds the one found last in it.
    /// The next packet nearly always has the same.
    last_outermost: Option<(Layer, EncapsulationId)>,
}

#[derive(Debug)]
struct Node {
    parent: EncapsulationId,
    layer: Layer,
    last_inner: Option<(Layer, EncapsulationId)>,
}

impl Encapsulations {
    /// Most encapsulations, and their largest number.
    pub const MOST: EncapsulationId = 65_536;

    /// Returns the number of `layer` inside `parent`; parent 0 means no encapsulation.
    pub(crate) fn within(&mut self, parent: EncapsulationId, layer: Layer) -> EncapsulationId {
        match *self.last(parent) {
            Some((last, id)) if last == layer => return id,
            _ => {}
        }
        let next = u32::try_from(self.nodes.len() + 1).unwrap_or(Self::MOST);
        let id = match self.by_place.get(&(parent, layer)) {
            Some(id) => *id,
            None if next > Self::MOST => return Self::MOST,
            None => {
                self.by_place.insert((parent, layer), next);
                self.nodes.push(Node {
                    parent,
                    layer,
                    last_inner: None,
                });
                next
            }
        };
        *self.last(parent) = Some((layer, id));
        id
    }

    fn last(&mut self, parent: EncapsulationId) -> &mut Option<(Layer, EncapsulationId)> {
        match self.nodes.get_mut((parent as usize).wrapping_sub(1)) {
            Some(node) => &mut node.last_inner,
            None => &mut self.last_outermost,
        }
    }

    /// Returns whether one of the layers of this number is more than a VLAN tag.
    pub(crate) fn has_tunnel(&self, id: EncapsulationId) -> bool {
        let mut at = id;
        // The loop ends, because a parent's number is smaller.
        while let Some(node) = self.nodes.get((at as usize).wrapping_sub(1)) {
            if !matches!(node.layer, Layer::Vlan(_)) {
                return true;
            }
            at = node.parent;
        }
        false
    }

    /// Returns the layers of this number, the outermost first.
    pub fn layers(&self, id: EncapsulationId) -> Vec<Layer> {
        let mut layers = Vec::new();
        let mut at = id;
        // The loop ends, because a parent's number is smaller.
        while let Some(node) = self.nodes.get((at as usize).wrapping_sub(1)) {
            layers.push(node.layer);
            at = node.parent;
        }
        layers.reverse();
        layers
    }

    /// Returns a name such as `VLAN 5, VXLAN 77`; empty for 0.
    pub fn name(&self, id: EncapsulationId) -> String {
        let layers = self.layers(id);
        let names: Vec<_> = layers.iter().map(ToString::to_string).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_numbered_once_and_named() {
        let mut all = Encapsulations::default();
        let vlan = all.within(0, Layer::Vlan(5));
        let inner = all.within(vlan, Layer::Vxlan(77));
        let other = all.within(0, Layer::Vxlan(77));
        assert_eq!([vlan, inner, other], [1, 2, 3]);
        for _ in 0..2 {
            assert_eq!(all.within(0, Layer::Vlan(5)), vlan);
            assert_eq!(all.within(vlan, Layer::Vxlan(77)), inner);
            assert_eq!(all.within(0, Layer::Vxlan(77)), other);
        }
        assert_eq!(all.name(inner), "VLAN 5, VXLAN 77");
        assert_eq!(all.name(0), "");
    }

    #[test]
    fn there_is_an_end_to_them() {
        let mut all = Encapsulations::default();
        for network in 0..Encapsulations::MOST + 10 {
            let id = all.within(0, Layer::Vxlan(network));
            assert_eq!(id, (network + 1).min(Encapsulations::MOST));
        }
        let last = Encapsulations::MOST;
        assert_eq!(all.within(last, Layer::Mpls), last);
        assert_eq!(all.name(last), "VXLAN 65535");
    }
}
