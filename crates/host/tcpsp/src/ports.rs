// SPDX-License-Identifier: MIT OR Apache-2.0
//! The psp qdiscs of this host: each with its device and its classes, read in one go for whoever
//! shows, exports or judges statistics.

use std::io;

use linux_io::links::{Link, links};

use crate::{Class, Counters, Handle, PspClass, PspQdisc, Qdisc, Tc};

/// A psp qdisc: one of a device, or below mq one of a transmit queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name of the device.
    pub device: String,
    /// Interface index of the device.
    pub index: u32,
    /// Id of the qdisc.
    pub handle: Handle,
    /// Frames that the device has sent, whoever gave them to it.
    pub device_frames: u64,
    /// Bytes of these frames.
    pub device_bytes: u64,
    /// The class that it is the queue of, or [`Handle::ROOT`].
    pub parent: Handle,
    /// What the kernel counts of any qdisc.
    pub counters: Counters,
    pub psp: PspQdisc,
    /// Its classes, by id.
    pub classes: Vec<PortClass>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortClass {
    pub id: Handle,
    /// What the kernel counts of any class.
    pub counters: Counters,
    pub psp: PspClass,
}

/// Returns the psp qdiscs of this network namespace, by device and handle. Reading needs no
/// privilege; it costs one dump of all qdiscs, and one of the classes of each device with psp.
pub fn read(tc: &mut Tc) -> io::Result<Vec<Port>> {
    let qdiscs = tc.qdiscs()?;
    // Most hosts that are asked have no psp: its devices are looked up only then.
    let mut devices: Vec<_> = qdiscs.iter().filter(|qdisc| qdisc.psp.is_some()).collect();
    devices.sort_unstable_by_key(|qdisc| qdisc.device);
    devices.dedup_by_key(|qdisc| qdisc.device);
    if devices.is_empty() {
        return Ok(Vec::new());
    }
    let mut classes = Vec::new();
    for device in &devices {
        classes.extend(tc.classes(device.device)?);
    }
    Ok(assemble(&links()?, &qdiscs, &classes))
}

/// Joins the kernel's tables. A device that went between two readings is left out.
pub fn assemble(links: &[Link], qdiscs: &[Qdisc], classes: &[Class]) -> Vec<Port> {
    let port = |qdisc: &Qdisc| {
        let link = links.iter().find(|link| link.index == qdisc.device)?;
        let of_port = |class: &&Class| {
            class.device == qdisc.device && class.id.qdisc() == qdisc.handle.qdisc()
        };
        let mut classes: Vec<_> = classes.iter().filter(of_port).filter_map(class).collect();
        classes.sort_by_key(|class| class.id);
        Some(Port {
            device: link.name.clone(),
            index: link.index,
            handle: qdisc.handle,
            device_frames: link.sent_frames,
            device_bytes: link.sent_bytes,
            parent: qdisc.parent,
            counters: qdisc.counters,
            psp: qdisc.psp.clone()?,
            classes,
        })
    };
    let mut ports: Vec<_> = qdiscs.iter().filter_map(port).collect();
    ports.sort_by(|a, b| (&a.device, a.handle).cmp(&(&b.device, b.handle)));
    ports
}

fn class(class: &Class) -> Option<PortClass> {
    Some(PortClass {
        id: class.id,
        counters: class.counters,
        psp: class.psp.clone()?,
    })
}

#[cfg(test)]
mod tests {
    use crate::{ClassOptions, ClassStats, QdiscOptions, QdiscStats, TypeOptions};

    use super::*;

    fn link(index: u32, name: &str) -> Link {
        Link {
            index,
            name: name.to_owned(),
            alt_names: Vec::new(),
            address: Vec::new(),
            parent: None,
            mtu_bytes: 1500,
            burst_bytes: 65_536,
            is_ethernet: true,
            tx_queues: 1,
            kind: None,
            tied_to: None,
            tied_namespace: None,
            sent_frames: 0,
            sent_bytes: 0,
        }
    }

    fn qdisc(device: u32, handle: u16, kind: &str) -> Qdisc {
        Qdisc {
            device,
            handle: Handle::new(handle, 0),
            parent: Handle::ROOT,
            kind: kind.to_owned(),
            options: Vec::new(),
            counters: Counters::default(),
            horizon_drops: None,
            psp: (kind == "psp").then(|| PspQdisc {
                options: QdiscOptions::default_of(true),
                stats: QdiscStats::default(),
            }),
        }
    }

    fn class(device: u32, id: Handle, kind: &str) -> Class {
        Class {
            device,
            id,
            parent: Handle::ROOT,
            queue: Handle::NONE,
            kind: kind.to_owned(),
            counters: Counters::default(),
            psp: (kind == "psp").then(|| PspClass {
                options: ClassOptions::new(TypeOptions::Normal {
                    quantum_bytes: None,
                }),
                stats: ClassStats::default(),
            }),
        }
    }

    #[test]
    fn classes_come_to_their_port() {
        let links = [link(2, "eth1"), link(3, "eth0"), link(4, "eth9")];
        let qdiscs = [
            qdisc(2, 0x12, "psp"),
            qdisc(2, 0x11, "psp"),
            qdisc(3, 1, "psp"),
            qdisc(4, 1, "htb"),
            // Its device went between two readings.
            qdisc(7, 1, "psp"),
        ];
        let classes = [
            class(2, Handle::new(0x12, 1), "psp"),
            class(2, Handle::new(0x11, 2), "psp"),
            class(2, Handle::new(0x11, 1), "psp"),
            class(2, Handle::new(1, 1), "mq"),
            class(3, Handle::new(1, 1), "psp"),
        ];
        let ports = assemble(&links, &qdiscs, &classes);
        let shown = |port: &Port| {
            let classes = port.classes.iter().map(|class| class.id.to_string());
            format!(
                "{} {} {:?}",
                port.device,
                port.handle,
                classes.collect::<Vec<_>>()
            )
        };
        let shown: Vec<_> = ports.iter().map(shown).collect();
        let expected = [
            r#"eth0 1: ["1:1"]"#,
            r#"eth1 11: ["11:1", "11:2"]"#,
            r#"eth1 12: ["12:1"]"#,
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn this_host_can_be_read() {
        for port in read(&mut Tc::open().unwrap()).unwrap() {
            assert!(!port.device.is_empty());
        }
    }
}
