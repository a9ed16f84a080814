// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the kernel's tables of qdiscs, classes and filters.

use linux_io::rtnetlink::{Error, Socket};

use crate::attribute::{Attribute, Attributes};
use crate::filter::{Filter, class_of};
use crate::handle::Handle;
use crate::message::{GET_CLASS, GET_FILTER, GET_QDISC, KIND, Message, OPTIONS, STATS2};
use crate::options::{ClassOptions, QdiscOptions};
use crate::stats::{ClassStats, Counters, QdiscStats, Stats, number64};

/// The kernel's name of psp.
pub const PSP: &str = "psp";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qdisc {
    /// Interface index of the device.
    pub device: u32,
    /// Its id; [`Handle::NONE`] of one that the kernel made on its own.
    pub handle: Handle,
    /// [`Handle::ROOT`], [`Handle::INGRESS`], or the class that it is the queue of.
    pub parent: Handle,
    /// The kernel's name of its kind, such as `mq`.
    pub kind: String,
    /// Its options as the kernel dumps them.
    pub options: Vec<u8>,
    /// What the kernel counts of any qdisc.
    pub counters: Counters,
    /// Of fq: packets that it dropped because their times were beyond its horizon.
    pub horizon_drops: Option<u64>,
    /// What psp says, if it is one.
    pub psp: Option<PspQdisc>,
}

/// What psp says of a qdisc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PspQdisc {
    pub options: QdiscOptions,
    pub stats: QdiscStats,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Interface index of the device.
    pub device: u32,
    pub id: Handle,
    /// [`Handle::ROOT`], or the class above.
    pub parent: Handle,
    /// Its queue, a qdisc; [`Handle::NONE`] of one that the kernel made on its own.
    pub queue: Handle,
    /// The kernel's name of its kind: that of its qdisc.
    pub kind: String,
    /// What the kernel counts of any class.
    pub counters: Counters,
    /// What psp says, if it is one of its classes.
    pub psp: Option<PspClass>,
}

/// What psp says of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PspClass {
    pub options: ClassOptions,
    pub stats: ClassStats,
}

/// A connection to the kernel's traffic control, in the network namespace of the caller.
#[derive(Debug)]
pub struct Tc {
    pub(crate) socket: Socket,
}

impl Tc {
    /// Connects. Reading needs no privilege, changes need CAP_NET_ADMIN.
    pub fn open() -> Result<Self, Error> {
        Ok(Self {
            socket: Socket::open()?,
        })
    }

    /// Returns the qdiscs of all devices, in the kernel's order: a device's root before what is
    /// below it. Queues that the kernel made on its own below classes are not among them.
    pub fn qdiscs(&mut self) -> Result<Vec<Qdisc>, Error> {
        let all = self.socket.dump(Message {
            kind: GET_QDISC,
            ..Message::default()
        })?;
        Ok(all.iter().map(qdisc).collect())
    }

    /// Returns the classes of a device, of all its qdiscs.
    pub fn classes(&mut self, device: u32) -> Result<Vec<Class>, Error> {
        let all = self.socket.dump(Message {
            kind: GET_CLASS,
            device,
            ..Message::default()
        })?;
        Ok(all.iter().map(class).collect())
    }

    /// Returns the filters of a qdisc, by priority. Lists of filters that are empty and tables of
    /// u32 are not among them.
    pub fn filters(&mut self, device: u32, qdisc: Handle) -> Result<Vec<Filter>, Error> {
        let all = self.socket.dump(Message {
            kind: GET_FILTER,
            device,
            parent: qdisc,
            ..Message::default()
        })?;
        let filters = all.iter().filter(|message| {
            let options = Attributes(&message.attributes).bytes(OPTIONS);
            message.handle != Handle::NONE && options.is_some()
        });
        Ok(filters.map(filter).collect())
    }
}

/// Where `struct tc_fq_qd_stats` of linux/pkt_sched.h has `horizon_drops`.
const FQ_HORIZON_DROPS: usize = 88;

/// What all messages have.
struct Common {
    kind: String,
    options: Vec<u8>,
    counters: Counters,
    app: Vec<u8>,
}

impl Common {
    /// Returns what psp's options and statistics say, if the kind is psp.
    fn psp<T>(&self, read: impl Fn(&[u8], &[u8]) -> T) -> Option<T> {
        (self.kind == PSP).then(|| read(&self.options, &self.app))
    }
}

fn common(attributes: &[Attribute]) -> Common {
    let found = Attributes(attributes);
    let (counters, app) = Counters::read(found.bytes(STATS2).unwrap_or_default());
    Common {
        kind: found.string(KIND).unwrap_or_default(),
        options: found.bytes(OPTIONS).unwrap_or_default().to_vec(),
        counters,
        app,
    }
}

fn qdisc(message: &Message) -> Qdisc {
    let common = common(&message.attributes);
    let psp = common.psp(|options, app| PspQdisc {
        options: QdiscOptions::read(options),
        stats: QdiscStats::read_typed(app).unwrap_or_default(),
    });
    let is_fq = common.kind == "fq" && common.app.len() >= FQ_HORIZON_DROPS + 8;
    Qdisc {
        device: message.device,
        handle: message.handle,
        parent: message.parent,
        kind: common.kind,
        options: common.options,
        counters: common.counters,
        horizon_drops: is_fq.then(|| number64(&common.app, FQ_HORIZON_DROPS)),
        psp,
    }
}

fn class(message: &Message) -> Class {
    let common = common(&message.attributes);
    let psp = common.psp(|options, app| PspClass {
        options: ClassOptions {
            group: Some(message.parent.minor())
                .filter(|minor| *minor != 0 && message.parent != Handle::ROOT),
            ..ClassOptions::read(options)
        },
        stats: ClassStats::read_typed(app).unwrap_or_default(),
    });
    Class {
        device: message.device,
        id: message.handle,
        parent: message.parent,
        queue: Handle(message.info),
        kind: common.kind,
        counters: common.counters,
        psp,
    }
}

fn filter(message: &Message) -> Filter {
    let common = common(&message.attributes);
    let [high, low] = [message.info >> 16, message.info & 0xffff];
    let number = |half: u32| u16::try_from(half).unwrap_or(0);
    Filter {
        device: message.device,
        parent: message.parent,
        priority: number(high),
        protocol: u16::from_be(number(low)),
        handle: message.handle.0,
        class: class_of(&common.kind, &common.options),
        kind: common.kind,
        options: common.options,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_has_tables() {
        let mut tc = Tc::open().unwrap();
        let qdiscs = tc.qdiscs().unwrap();
        let first = qdiscs.first().map_or(1, |qdisc| qdisc.device);
        tc.classes(first).unwrap();
        tc.filters(first, Handle::NONE).unwrap();
        // No such device: an empty table, or an error, but no hang.
        let none = tc.classes(u32::MAX >> 1);
        assert!(none.map_or(true, |classes| classes.is_empty()));
    }

    #[test]
    fn a_filter_of_any_kind() {
        let options = Attribute::nested(OPTIONS, &[Attribute::u32(1, 0x0001_0002)]);
        let message = Message {
            kind: GET_FILTER,
            device: 3,
            handle: Handle(0x8000_0800),
            parent: Handle::new(1, 0),
            info: (49 << 16) | u32::from(0x0800u16.to_be()),
            attributes: vec![Attribute::string(KIND, "u32"), options],
        };
        let filter = filter(&message);
        assert_eq!((filter.priority, filter.protocol), (49, 0x0800));
        assert_eq!(filter.class, Some(Handle::new(1, 2)));
        assert_eq!(filter.matching(), None);
    }
}
