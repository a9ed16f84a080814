// SPDX-License-Identifier: MIT OR Apache-2.0
//! Qdiscs and filters that are not psp's, by the kernel's names and attributes: what works without
//! the module needs them.

use linux_io::rtnetlink::Error;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};

use crate::attribute::Attribute;
use crate::change::FilterId;
use crate::handle::Handle;
use crate::message::{KIND, Message, NEW_FILTER, NEW_QDISC, OPTIONS};
use crate::table::Tc;

/// A qdisc of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainQdisc {
    /// [`Handle::ROOT`], [`Handle::INGRESS`], or a class of mq.
    pub parent: Handle,
    pub handle: Handle,
    /// The kernel's name of its kind.
    pub kind: &'static str,
    pub options: Vec<Attribute>,
}

/// A filter of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainFilter {
    pub at: FilterId,
    /// The kernel's name of its kind.
    pub kind: &'static str,
    /// The EtherType that it is tried on; [`PlainFilter::ANY`].
    pub protocol: u16,
    pub options: Vec<Attribute>,
}

impl PlainFilter {
    /// The EtherType that stands for any.
    pub const ANY: u16 = 3;
}

/// What a request does where there is something already.
fn flags(replace: bool) -> u16 {
    if replace {
        NLM_F_CREATE | NLM_F_REPLACE
    } else {
        NLM_F_CREATE | NLM_F_EXCL
    }
}

impl Tc {
    /// Puts a qdisc where there is none but the kernel's own, or with `replace` in the place of
    /// another, whose waiting frames are lost. With `replace`, one of the same id and kind gets
    /// the options and keeps its frames.
    ///
    /// # Errors
    /// The kernel's: nothing is changed then.
    pub fn put_qdisc(
        &mut self,
        device: u32,
        qdisc: &PlainQdisc,
        replace: bool,
    ) -> Result<(), Error> {
        let mut attributes = vec![Attribute::string(KIND, qdisc.kind)];
        if !qdisc.options.is_empty() {
            attributes.push(Attribute::nested(OPTIONS, &qdisc.options));
        }
        let message = Message {
            kind: NEW_QDISC,
            device,
            handle: qdisc.handle,
            parent: qdisc.parent,
            info: 0,
            attributes,
        };
        self.socket.request(message, flags(replace))
    }

    /// Puts a filter into a list, or with `replace` in the place of the one there, from one frame
    /// to the next.
    ///
    /// # Errors
    /// The kernel's: nothing is changed then.
    pub fn put_filter(
        &mut self,
        device: u32,
        filter: &PlainFilter,
        replace: bool,
    ) -> Result<(), Error> {
        let message = Message {
            kind: NEW_FILTER,
            device,
            handle: Handle(filter.at.handle),
            parent: filter.at.qdisc,
            info: (u32::from(filter.at.priority) << 16) | u32::from(filter.protocol.to_be()),
            attributes: vec![
                Attribute::string(KIND, filter.kind),
                Attribute::nested(OPTIONS, &filter.options),
            ],
        };
        self.socket.request(message, flags(replace))
    }
}
