// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts from the kernel's ethtool family of generic netlink: flow control, coalescing, offloads,
//! timestamps.
//! Numbers are those of linux/ethtool_netlink.h and linux/genetlink.h.

use std::io;

use linux_io::rtnetlink::{Error, Socket};
use tcpsp::attribute::{self, Attribute};

use super::netlink::{Message, value};
use crate::facts::Device;

/// The controller's family, its request for another family, and that family's name and id.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Version of the controller's and of ethtool's messages.
const CONTROLLER_VERSION: u8 = 2;
const VERSION: u8 = 1;

const FEATURES_GET: u8 = 11;
const COALESCE_GET: u8 = 19;
const PAUSE_GET: u8 = 21;
const TSINFO_GET: u8 = 25;
/// Attributes: the head of each request and the device's name in it.
const HEADER: u16 = 1;
const DEVICE_NAME: u16 = 2;
const PAUSE_RX: u16 = 3;
const PAUSE_TX: u16 = 4;
const COALESCE_TX_US: u16 = 6;
const FEATURES_ACTIVE: u16 = 4;
const TSINFO_TIMESTAMPING: u16 = 2;
const TSINFO_CLOCK: u16 = 5;
/// Of a set of bits, and of one of them.
const BITS: u16 = 3;
const BIT_NAME: u16 = 2;

/// Head of generic netlink: command, version, two bytes of nothing.
type Generic = Message<4, 4>;

/// Reads what ethtool knows of a device. What the driver does not say stays unknown.
pub fn device(device: &mut Device) {
    let Ok(mut ethtool) = Ethtool::open() else {
        return;
    };
    if let Ok(pause) = ethtool.get(PAUSE_GET, &device.name) {
        let flag = |kind| {
            value(&pause, kind)
                .and_then(<[u8]>::first)
                .map(|flag| *flag != 0)
        };
        device.is_held_by_pause = flag(PAUSE_RX);
        device.sends_pause = flag(PAUSE_TX);
    }
    if let Ok(coalesce) = ethtool.get(COALESCE_GET, &device.name) {
        device.tx_coalesce_us = value(&coalesce, COALESCE_TX_US).and_then(number);
    }
    if let Ok(features) = ethtool.get(FEATURES_GET, &device.name) {
        let active = names(&features, FEATURES_ACTIVE);
        let has = |name: &str| Some(active.iter().any(|active| active == name));
        device.has_tso = has("tx-tcp-segmentation");
        device.has_gso = has("tx-generic-segmentation");
    }
    if let Ok(timestamping) = ethtool.get(TSINFO_GET, &device.name) {
        let known = names(&timestamping, TSINFO_TIMESTAMPING);
        device.has_sent_timestamps = Some(known.iter().any(|name| name == "hardware-transmit"));
        device.ptp_clock = value(&timestamping, TSINFO_CLOCK).and_then(number);
    }
}

fn number(bytes: &[u8]) -> Option<u64> {
    let bytes = bytes.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes).into())
}

/// Returns the names of the bits that are on in a set.
fn names(attributes: &[Attribute], kind: u16) -> Vec<String> {
    let set = attribute::read(value(attributes, kind).unwrap_or_default());
    let bits = attribute::read(value(&set, BITS).unwrap_or_default());
    let name = |bit: &Attribute| {
        let bit = attribute::read(&bit.value);
        let name = value(&bit, BIT_NAME)?;
        let name = name.strip_suffix(&[0]).unwrap_or(name);
        Some(String::from_utf8_lossy(name).into_owned())
    };
    bits.iter().filter_map(name).collect()
}

struct Ethtool {
    socket: Socket,
    family: u16,
}

impl Ethtool {
    fn open() -> Result<Self, Error> {
        let mut socket = Socket::generic()?;
        let answers = socket.ask(Generic {
            kind: CONTROLLER,
            head: [GET_FAMILY, CONTROLLER_VERSION, 0, 0],
            attributes: vec![Attribute::string(FAMILY_NAME, "ethtool")],
        })?;
        let id = answers
            .iter()
            .find_map(|answer| value(&answer.attributes, FAMILY_ID));
        let id = id.and_then(|id| id.try_into().ok());
        let none = || io::Error::from(io::ErrorKind::NotFound);
        Ok(Self {
            family: u16::from_ne_bytes(id.ok_or_else(none)?),
            socket,
        })
    }

    fn get(&mut self, command: u8, device: &str) -> Result<Vec<Attribute>, Error> {
        let name = Attribute::string(DEVICE_NAME, device);
        let answers = self.socket.ask(Generic {
            kind: self.family,
            head: [command, VERSION, 0, 0],
            attributes: vec![Attribute::nested(HEADER, &[name])],
        })?;
        Ok(answers
            .into_iter()
            .flat_map(|answer| answer.attributes)
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_features() {
        let bit = |name: &str| {
            Attribute::nested(
                1,
                &[Attribute::u32(1, 7), Attribute::string(BIT_NAME, name)],
            )
        };
        let bits = Attribute::nested(BITS, &[bit("tx-tcp-segmentation"), bit("rx-gro")]);
        let all = [Attribute::nested(
            FEATURES_ACTIVE,
            &[Attribute::u32(2, 64), bits],
        )];
        assert_eq!(
            names(&all, FEATURES_ACTIVE),
            ["tx-tcp-segmentation", "rx-gro"]
        );
        assert!(names(&all, TSINFO_TIMESTAMPING).is_empty());
        assert!(names(&[], FEATURES_ACTIVE).is_empty());
    }

    #[test]
    fn the_kernel_knows_features_of_the_loopback() {
        let mut lo = Device {
            name: "lo".to_owned(),
            ..Device::default()
        };
        device(&mut lo);
        // No flow control on a loopback; features of every device, where there is ethtool.
        assert_eq!(lo.sends_pause, None);
        if Ethtool::open().is_ok() {
            assert!(lo.has_tso.is_some(), "{lo:?}");
            assert_eq!((lo.has_sent_timestamps, lo.ptp_clock), (Some(false), None));
        }
    }
}
