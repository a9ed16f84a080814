// SPDX-License-Identifier: MIT OR Apache-2.0
//! A filter of senders in a cgroup: the kernel's `bpf`, whose program's name says which.

use serde::Serialize;

use crate::attribute::{Attribute, Attributes};
use crate::handle::Handle;

/// Attributes of `bpf` (linux/pkt_cls.h).
const CLASS: u16 = 3;
const NAME: u16 = 7;
/// Begins the name of our programs.
const BEGIN: &str = "pspacer-sender:";

/// A cgroup of version 2: its sockets' packets are meant, and those of the cgroups below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Sender {
    /// Its path from the root of the hierarchy, such as `/system.slice/backup.service`.
    pub path: String,
    /// Its number: one that comes later at the same path has another.
    pub id: u64,
}

impl Sender {
    /// The longest path: the kernel keeps names of 255 bytes.
    pub const PATH_BYTES_MAX: usize = 255 - BEGIN.len() - 17;

    /// Returns how deep the cgroup is; 0 is the root.
    pub fn level(&self) -> u32 {
        let parts = self.path.split('/').filter(|part| !part.is_empty());
        u32::try_from(parts.count()).unwrap_or(u32::MAX)
    }

    /// Returns the options of the filter but for its program's descriptor.
    pub(crate) fn write(&self, class: Handle) -> Vec<Attribute> {
        let name = format!("{BEGIN}{:x}:{}", self.id, self.path);
        vec![
            Attribute::u32(CLASS, class.0),
            Attribute::string(NAME, &name),
        ]
    }

    /// Reads the options of a filter; `None` if it is not one of ours.
    pub(crate) fn read(attributes: &[Attribute]) -> Option<Self> {
        let name = Attributes(attributes).string(NAME)?;
        let (id, path) = name.strip_prefix(BEGIN)?.split_once(':')?;
        Some(Self {
            path: path.to_owned(),
            id: u64::from_str_radix(id, 16).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_which_cgroup() {
        let sender = Sender {
            path: "/system.slice/a:b.service".to_owned(),
            id: 0x1_0000_00ff,
        };
        assert_eq!(sender.level(), 2);
        let class = Handle::new(0x7073, 0x8001);
        assert_eq!(Sender::read(&sender.write(class)), Some(sender));
        let other = [Attribute::string(NAME, "pspacer-edt")];
        assert_eq!(Sender::read(&other), None);
    }
}
