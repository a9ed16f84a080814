// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the kernel's tables, one request each: the kernel makes all of it or nothing.

use std::io::ErrorKind;

use linux_io::rtnetlink::Error;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use serde::Serialize;

use crate::attribute::Attribute;
use crate::filter::Match;
use crate::handle::Handle;
use crate::message::{
    DELETE_CLASS, DELETE_FILTER, DELETE_QDISC, KIND, Message, NEW_CLASS, NEW_FILTER, NEW_QDISC,
    OPTIONS,
};
use crate::options::{ClassOptions, QdiscOptions};
use crate::table::{PSP, Tc};

/// A qdisc that is written here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QdiscKind {
    /// A queue for each of the device's.
    Mq,
    Psp(QdiscOptions),
}

/// A place in a list of filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FilterId {
    /// The qdisc that asks it.
    pub qdisc: Handle,
    /// Lower numbers are asked first.
    pub priority: u16,
    /// Its number among those of the priority; of [`Match::Mark`] the mark.
    pub handle: u32,
}

/// A change of a device's tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Change {
    /// Puts a qdisc where there is none but the kernel's own. Frames that wait in that are lost.
    AddQdisc {
        /// [`Handle::ROOT`], or a class of mq.
        parent: Handle,
        handle: Handle,
        kind: QdiscKind,
    },
    /// Puts a qdisc in the place of another. Frames that wait in that are lost.
    ReplaceQdisc {
        /// [`Handle::ROOT`], or a class of mq.
        parent: Handle,
        /// Its id, not that of the other.
        handle: Handle,
        kind: QdiscKind,
    },
    /// Gives psp these options.
    ChangeQdisc {
        /// [`Handle::ROOT`], or a class of mq.
        parent: Handle,
        handle: Handle,
        options: QdiscOptions,
    },
    /// Takes a qdisc away, with its classes, filters and frames.
    DeleteQdisc {
        /// [`Handle::ROOT`], or a class of mq.
        parent: Handle,
        handle: Handle,
    },
    AddClass {
        id: Handle,
        options: ClassOptions,
    },
    /// Gives a class these options. Frames that wait in it stay.
    ChangeClass {
        id: Handle,
        options: ClassOptions,
    },
    /// Takes a class away, with its frames.
    DeleteClass {
        id: Handle,
    },
    /// Puts a filter into a list.
    AddFilter {
        at: FilterId,
        /// What it looks at.
        matching: Match,
        /// Where its frames go.
        class: Handle,
    },
    /// Sends the frames of a filter to another class, from one frame to the next.
    ReplaceFilter {
        at: FilterId,
        /// What it looks at, as before.
        matching: Match,
        /// Where its frames go.
        class: Handle,
    },
    /// Takes a filter out of its list.
    DeleteFilter {
        at: FilterId,
        /// The kernel's name of its kind.
        kind: String,
        /// The EtherType that it is tried on.
        protocol: u16,
    },
}

impl Change {
    /// Returns the message that requests the change of a device, and the flags of the request.
    fn message(&self, device: u32) -> (Message, u16) {
        const NEW: u16 = NLM_F_CREATE | NLM_F_EXCL;
        let kind = |kind: &str| Attribute::string(KIND, kind);
        let nested = |options: &[Attribute]| Attribute::nested(OPTIONS, options);
        let message = |kind, parent, handle, info, attributes| Message {
            kind,
            device,
            handle,
            parent,
            info,
            attributes,
        };
        let qdisc = |parent: &Handle, handle: &Handle, what: &QdiscKind| {
            let attributes = match what {
                QdiscKind::Mq => vec![kind("mq")],
                QdiscKind::Psp(options) => vec![kind(PSP), nested(&options.write())],
            };
            message(NEW_QDISC, *parent, *handle, 0, attributes)
        };
        let class = |id: &Handle, options: &ClassOptions| {
            let attributes = vec![kind(PSP), nested(&options.write())];
            let above = options
                .group
                .map_or(id.qdisc(), |minor| Handle::new(id.major(), minor));
            message(NEW_CLASS, above, *id, 0, attributes)
        };
        let filter = |to, at: &FilterId, protocol: u16, attributes| {
            let info = (u32::from(at.priority) << 16) | u32::from(protocol.to_be());
            message(to, at.qdisc, Handle(at.handle), info, attributes)
        };
        let new_filter = |at: &FilterId, matching: &Match, class: &Handle| {
            let options = nested(&matching.write(*class));
            let attributes = vec![kind(matching.kind()), options];
            filter(NEW_FILTER, at, matching.protocol(), attributes)
        };
        match self {
            Self::AddQdisc {
                parent,
                handle,
                kind,
            } => (qdisc(parent, handle, kind), NEW),
            Self::ReplaceQdisc {
                parent,
                handle,
                kind,
            } => (qdisc(parent, handle, kind), NLM_F_CREATE | NLM_F_REPLACE),
            Self::ChangeQdisc {
                parent,
                handle,
                options,
            } => {
                let kind = QdiscKind::Psp(options.clone());
                (qdisc(parent, handle, &kind), 0)
            }
            Self::DeleteQdisc { parent, handle } => {
                (message(DELETE_QDISC, *parent, *handle, 0, vec![]), 0)
            }
            Self::AddClass { id, options } => (class(id, options), NEW),
            Self::ChangeClass { id, options } => (class(id, options), 0),
            Self::DeleteClass { id } => (message(DELETE_CLASS, id.qdisc(), *id, 0, vec![]), 0),
            Self::AddFilter {
                at,
                matching,
                class,
            } => (new_filter(at, matching, class), NEW),
            Self::ReplaceFilter {
                at,
                matching,
                class,
            } => (new_filter(at, matching, class), 0),
            Self::DeleteFilter {
                at,
                kind: of,
                protocol,
            } => (filter(DELETE_FILTER, at, *protocol, vec![kind(of)]), 0),
        }
    }
}

impl Tc {
    /// Makes a change of a device, given by its interface index.
    ///
    /// # Errors
    /// The kernel's: nothing is changed then.
    pub fn change(&mut self, device: u32, change: &Change) -> Result<(), Error> {
        let (message, flags) = change.message(device);
        self.socket.request(message, flags)
    }

    /// Returns whether this process may change anything here (CAP_NET_ADMIN): the kernel asks for
    /// that before it looks for the device, and none has this index.
    pub fn may_change(&mut self) -> bool {
        let nothing = Change::DeleteQdisc {
            parent: Handle::ROOT,
            handle: Handle::NONE,
        };
        let refused = self.change(i32::MAX.unsigned_abs(), &nothing);
        refused.is_err_and(|error| error.cause.kind() != ErrorKind::PermissionDenied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{Attributes, read};
    use crate::options::TypeOptions;

    #[test]
    fn who_has_no_rights_is_told_so() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let effective = u64::from_str_radix(effective.unwrap().trim(), 16).unwrap();
        let has_net_admin = effective & (1 << 12) != 0;
        // In a user namespace the capability may not be over this network namespace.
        assert!(has_net_admin || !Tc::open().unwrap().may_change());
    }

    #[test]
    fn requests_say_what_the_kernel_asks_for() {
        let id = Handle::new(0x7073, 0x8001);
        let options = ClassOptions::new(TypeOptions::Paced {
            rate_bps: 8_000,
            ceil_bps: None,
            launch: None,
        });
        let add = Change::AddClass {
            id,
            options: options.clone(),
        };
        let (message, flags) = add.message(3);
        assert_eq!((message.kind, message.device), (NEW_CLASS, 3));
        assert_eq!(message.parent, Handle::new(0x7073, 0));
        assert_eq!((message.handle, flags), (id, NLM_F_CREATE | NLM_F_EXCL));
        let found = Attributes(&message.attributes);
        assert_eq!(found.string(KIND).as_deref(), Some("psp"));
        let said = found.bytes(OPTIONS).unwrap();
        assert_eq!(ClassOptions::read(said), options);
        // Of a filter the protocol is in the network's order.
        let delete = Change::DeleteFilter {
            at: FilterId {
                qdisc: id.qdisc(),
                priority: 5,
                handle: 9,
            },
            kind: "flower".to_owned(),
            protocol: 0x0800,
        };
        let (message, flags) = delete.message(3);
        assert_eq!((message.kind, flags), (DELETE_FILTER, 0));
        assert_eq!(message.info, (5 << 16) | u32::from(0x0800u16.to_be()));
        assert_eq!(read(&message.attributes[0].value), []);
    }

    #[test]
    fn json_names_the_change() {
        let delete = Change::DeleteClass {
            id: Handle::new(1, 0x10),
        };
        let text = serde_json::to_string(&delete).unwrap();
        assert_eq!(text, r#"{"do":"delete_class","id":"1:10"}"#);
    }
}
