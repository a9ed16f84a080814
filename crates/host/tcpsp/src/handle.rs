// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ids of qdiscs and classes, `MAJOR:MINOR`.

use std::fmt;

use serde::{Serialize, Serializer};

/// The id of a qdisc (its minor is 0) or of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u32);

impl Handle {
    /// No id: of the qdiscs that the kernel makes on its own.
    pub const NONE: Self = Self(0);
    /// Parent of a device's root qdisc.
    pub const ROOT: Self = Self(u32::MAX);
    /// Parent of `ingress` and `clsact`.
    pub const INGRESS: Self = Self(0xffff_fff1);

    /// Returns `major:minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self(((major as u32) << 16) | minor as u32)
    }

    /// Returns the number before the colon.
    pub const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Returns the number behind the colon.
    pub const fn minor(self) -> u16 {
        (self.0 & 0xffff) as u16
    }

    /// Returns the qdisc that the class belongs to.
    pub const fn qdisc(self) -> Self {
        Self(self.0 & 0xffff_0000)
    }

    /// Parses what [`Handle`] displays.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "root" => return Some(Self::ROOT),
            "ingress" => return Some(Self::INGRESS),
            _ => {}
        }
        let number = |text: &str| match text {
            "" => Some(0),
            _ if text.bytes().all(|b| b.is_ascii_hexdigit()) => u16::from_str_radix(text, 16).ok(),
            _ => None,
        };
        let (major, minor) = text.split_once(':')?;
        Some(Self::new(number(major)?, number(minor)?))
    }
}

impl fmt::Display for Handle {
    /// Writes hexadecimal numbers, as `tc` does: `root`, `1:`, `1:a`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ROOT => f.write_str("root"),
            Self::INGRESS => f.write_str("ingress"),
            id if id.minor() == 0 => write!(f, "{:x}:", id.major()),
            id => write!(f, "{:x}:{:x}", id.major(), id.minor()),
        }
    }
}

impl Serialize for Handle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        for (id, text) in [
            (Handle::NONE, "0:"),
            (Handle::ROOT, "root"),
            (Handle::INGRESS, "ingress"),
            (Handle::new(0x7073, 0), "7073:"),
            (Handle::new(1, 0x10), "1:10"),
        ] {
            assert_eq!(id.to_string(), text);
            assert_eq!(Handle::parse(text), Some(id));
        }
        assert_eq!(Handle::parse(":3"), Some(Handle::new(0, 3)));
        for text in ["", "1", "g:1", "1:2:3", "12345:", "+1:"] {
            assert_eq!(Handle::parse(text), None, "{text}");
        }
        assert_eq!(Handle::new(1, 2).qdisc(), Handle::new(1, 0));
    }
}
