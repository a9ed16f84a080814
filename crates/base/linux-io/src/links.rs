// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the kernel's list of network devices.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_core::{DefaultNla, Nla};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkInfo, LinkLayerType, LinkMessage, Prop};
use netlink_packet_route::nsid::{NsidAttribute, NsidMessage};

use crate::rtnetlink::{Socket, dump};

/// IFLA_PARENT_DEV_NAME, since Linux 5.14.
const PARENT: u16 = 56;
/// IFLA_GSO_IPV4_MAX_SIZE, since Linux 6.3.
const GSO_IPV4_MAX_SIZE: u16 = 63;
/// The kernel's longest burst of GSO unless a device says otherwise.
const GSO_MAX_BYTES: u64 = 65_536;

/// A network device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its interface index.
    pub index: u32,
    pub name: String,
    /// Its other names (`ip link property add dev NAME altname OTHER`).
    pub alt_names: Vec<String>,
    /// Its hardware address; empty if it has none.
    pub address: Vec<u8>,
    /// Name of the device on a bus that it belongs to; a virtual one has none.
    pub parent: Option<String>,
    /// MTU: the longest packet that it sends, without the Ethernet header.
    pub mtu_bytes: usize,
    /// The longest burst that the stack hands to it as one packet (GSO).
    pub burst_bytes: u64,
    /// Whether its frames are Ethernet's.
    pub is_ethernet: bool,
    /// Transmit queues that the driver has allocated; it may use fewer.
    pub tx_queues: u32,
    /// What it is, such as `veth`; a device of hardware has none.
    pub kind: Option<String>,
    /// Index of the device that it is tied to: of a veth its other end, of a macvlan or ipvlan the
    /// one below it. It may be one of another network namespace.
    pub tied_to: Option<u32>,
    /// Number of the network namespace of that device, if it is another than this.
    pub tied_namespace: Option<i32>,
    /// Frames that it has sent, as its driver counts them; a burst may be one.
    pub sent_frames: u64,
    /// Bytes of these frames.
    pub sent_bytes: u64,
}

impl Link {
    /// Returns whether the kernel makes up the speed that the device reports: 10 Gbit/s of
    /// tun, tap and veth. Nobody measured it, and nothing is sent at it.
    pub fn has_made_up_speed(&self) -> bool {
        matches!(self.kind.as_deref(), Some("tun" | "veth"))
    }
}

/// Returns the device of a name, which may be one of its other names. The kernel gives none twice.
pub fn named<'a>(links: &'a [Link], name: &str) -> Option<&'a Link> {
    let mut all = links.iter();
    all.find(|link| link.name == name || link.alt_names.iter().any(|other| other == name))
}

/// Returns all devices of this network namespace.
pub fn links() -> io::Result<Vec<Link>> {
    let all = dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let links = all.iter().filter_map(|entry| match entry {
        RouteNetlinkMessage::NewLink(entry) => link(entry),
        _ => None,
    });
    Ok(links.collect())
}

/// Returns the number that this network namespace has given to another, if it has: those of
/// [`Link::tied_namespace`] have one once [`links`] has read them.
pub fn namespace_number(of: impl AsFd) -> io::Result<Option<i32>> {
    let descriptor = u32::try_from(of.as_fd().as_raw_fd()).map_err(io::Error::other)?;
    let mut asked = NsidMessage::default();
    asked.attributes.push(NsidAttribute::Fd(descriptor));
    let answers = Socket::open()?.ask(RouteNetlinkMessage::GetNsId(asked))?;
    let number = answers.iter().find_map(|answer| match answer {
        RouteNetlinkMessage::NewNsId(known) => {
            known
                .attributes
                .iter()
                .find_map(|attribute| match attribute {
                    NsidAttribute::Id(number) => Some(*number),
                    _ => None,
                })
        }
        _ => None,
    });
    Ok(number.filter(|number| *number >= 0))
}

fn link(entry: &LinkMessage) -> Option<Link> {
    let attributes = || entry.attributes.iter();
    let name = attributes().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    });
    let alt_names = attributes().flat_map(|attribute| match attribute {
        LinkAttribute::PropList(all) => all.as_slice(),
        _ => &[],
    });
    let alt_names = alt_names.filter_map(|prop| match prop {
        Prop::AltIfName(name) => Some(name.clone()),
        _ => None,
    });
    let mtu = attributes().find_map(|attribute| match attribute {
        LinkAttribute::Mtu(mtu) => usize::try_from(*mtu).ok(),
        _ => None,
    });
    let burst_bytes = burst_bytes(&entry.attributes, mtu?);
    let tx_queues = attributes().find_map(|attribute| match attribute {
        LinkAttribute::NumTxQueues(queues) => Some(*queues),
        _ => None,
    });
    let address = attributes().find_map(|attribute| match attribute {
        LinkAttribute::Address(address) => Some(address.clone()),
        _ => None,
    });
    let parent = attributes().find_map(|attribute| match attribute {
        LinkAttribute::Other(other) if other.kind() == PARENT => text(other),
        _ => None,
    });
    let kind = attributes().find_map(|attribute| match attribute {
        LinkAttribute::LinkInfo(infos) => infos.iter().find_map(|info| match info {
            LinkInfo::Kind(kind) => Some(kind.to_string()),
            _ => None,
        }),
        _ => None,
    });
    let tied_to = attributes().find_map(|attribute| match attribute {
        LinkAttribute::Link(index) => Some(*index),
        _ => None,
    });
    let tied_namespace = attributes().find_map(|attribute| match attribute {
        LinkAttribute::LinkNetNsId(number) => Some(*number),
        _ => None,
    });
    let sent = attributes().find_map(|attribute| match attribute {
        LinkAttribute::Stats64(stats) => Some((stats.tx_packets, stats.tx_bytes)),
        _ => None,
    });
    let (sent_frames, sent_bytes) = sent.unwrap_or_default();
    Some(Link {
        index: entry.header.index,
        name: name?,
        alt_names: alt_names.collect(),
        address: address.unwrap_or_default(),
        parent,
        mtu_bytes: mtu?,
        burst_bytes,
        is_ethernet: entry.header.link_layer_type == LinkLayerType::Ether,
        tx_queues: tx_queues.unwrap_or(1),
        kind,
        tied_to,
        tied_namespace,
        sent_frames,
        sent_bytes,
    })
}

/// Returns how long a burst of GSO is at most, of IPv4 or of IPv6, whichever is longer: BIG TCP has
/// a limit for each, older kernels one for both.
fn burst_bytes(attributes: &[LinkAttribute], mtu_bytes: usize) -> u64 {
    let sizes = attributes.iter().filter_map(|attribute| match attribute {
        LinkAttribute::GsoMaxSize(bytes) => Some(*bytes),
        LinkAttribute::Other(other) if other.kind() == GSO_IPV4_MAX_SIZE => {
            let mut bytes = [0; 4];
            (other.value_len() == bytes.len()).then(|| other.emit_value(&mut bytes))?;
            Some(u32::from_ne_bytes(bytes))
        }
        _ => None,
    });
    let segments = attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::GsoMaxSegs(segments) => Some(*segments),
        _ => None,
    });
    let by_size = sizes.max().map_or(GSO_MAX_BYTES, u64::from);
    let by_segments = segments.map_or(u64::MAX, |n| u64::from(n).saturating_mul(mtu_bytes as u64));
    by_size.min(by_segments)
}

/// Returns the text of an attribute, which ends with a zero byte.
fn text(attribute: &DefaultNla) -> Option<String> {
    let mut bytes = vec![0; attribute.value_len()];
    attribute.emit_value(&mut bytes);
    let text = std::ffi::CStr::from_bytes_until_nul(&bytes).ok()?;
    text.to_str().ok().map(str::to_owned)
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
        assert_eq!(named(&links, "lo"), Some(lo));
        assert_eq!((&lo.address[..], &lo.parent), (&[0; 6][..], &None));
    }

    #[test]
    fn the_longest_burst_is_of_either_protocol_and_of_so_many_frames() {
        let ipv4 = |bytes: u32| {
            let value = bytes.to_ne_bytes().to_vec();
            LinkAttribute::Other(DefaultNla::new(GSO_IPV4_MAX_SIZE, value))
        };
        for (attributes, expected_bytes) in [
            (vec![], 65_536),
            (vec![LinkAttribute::GsoMaxSize(8000)], 8000),
            (vec![LinkAttribute::GsoMaxSize(8000), ipv4(65_536)], 65_536),
            (
                vec![LinkAttribute::GsoMaxSize(524_280), ipv4(65_536)],
                524_280,
            ),
            (
                vec![
                    LinkAttribute::GsoMaxSize(65_536),
                    LinkAttribute::GsoMaxSegs(2),
                ],
                3000,
            ),
            (vec![LinkAttribute::GsoMaxSegs(65_535)], 65_536),
        ] {
            let bytes = burst_bytes(&attributes, 1500);
            assert_eq!(bytes, expected_bytes, "{attributes:?}");
        }
    }

    #[test]
    fn a_device_has_several_names() {
        let mut entry = LinkMessage::default();
        entry.header.index = 7;
        let other = "uplink-of-the-laboratory";
        entry.attributes = vec![
            LinkAttribute::IfName("eth0".to_owned()),
            LinkAttribute::Mtu(1500),
            LinkAttribute::PropList(vec![
                Prop::AltIfName("enp3s0".to_owned()),
                Prop::AltIfName(other.to_owned()),
            ]),
        ];
        let all = [link(&entry).unwrap()];
        for (name, index) in [
            ("eth0", Some(7)),
            ("enp3s0", Some(7)),
            (other, Some(7)),
            ("uplink", None),
            ("", None),
        ] {
            assert_eq!(named(&all, name).map(|link| link.index), index, "{name}");
        }
    }
}
