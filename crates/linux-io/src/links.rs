// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the kernel's list of network devices.

use std::io;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkLayerType, LinkMessage};

use crate::rtnetlink::dump;

/// A network device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its interface index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// MTU: the longest packet that it sends, without the Ethernet header.
    pub mtu_bytes: usize,
    /// Whether its frames are Ethernet's.
    pub is_ethernet: bool,
    /// Transmit queues that the driver has allocated; it may use fewer.
    pub tx_queues: u32,
}

/// Returns all devices of this network namespace.
///
/// # Errors
/// If the kernel's table cannot be read.
pub fn links() -> io::Result<Vec<Link>> {
    let all = dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let links = all.iter().filter_map(|entry| match entry {
        RouteNetlinkMessage::NewLink(entry) => link(entry),
        _ => None,
    });
    Ok(links.collect())
}

fn link(entry: &LinkMessage) -> Option<Link> {
    let attributes = || entry.attributes.iter();
    let name = attributes().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    });
    let mtu = attributes().find_map(|attribute| match attribute {
        LinkAttribute::Mtu(mtu) => usize::try_from(*mtu).ok(),
        _ => None,
    });
    let tx_queues = attributes().find_map(|attribute| match attribute {
        LinkAttribute::NumTxQueues(queues) => Some(*queues),
        _ => None,
    });
    Some(Link {
        index: entry.header.index,
        name: name?,
        mtu_bytes: mtu?,
        is_ethernet: entry.header.link_layer_type == LinkLayerType::Ether,
        tx_queues: tx_queues.unwrap_or(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_there() {
        let links = links().unwrap();
        let lo = links.iter().find(|link| link.name == "lo").unwrap();
        assert!(lo.index > 0 && lo.mtu_bytes >= 1280, "{lo:?}");
        assert!(!lo.is_ethernet && lo.tx_queues >= 1, "{lo:?}");
    }
}
