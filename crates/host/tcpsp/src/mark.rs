// SPDX-License-Identifier: MIT OR Apache-2.0
//! When packets of a class are CE-marked, where the module does not pace it.

use std::fmt;

use serde::{Serialize, Serializer};
use units::display;

use crate::attribute::{Attribute, Attributes};

/// The attribute. The kernel has none of this number: the module refuses it.
const MARK: u16 = 0x3000;

/// When ECN-capable packets of a class are CE-marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Off,
    /// When they would wait for longer than so many ns.
    After(u64),
}

impl Mark {
    pub(crate) fn write(self) -> Attribute {
        Attribute::u64(
            MARK,
            match self {
                Self::Off => u64::MAX,
                Self::After(ns) => ns,
            },
        )
    }

    pub(crate) fn read(found: &Attributes<'_>) -> Option<Self> {
        found.number(MARK).map(|ns| match ns {
            u64::MAX => Self::Off,
            ns => Self::After(ns),
        })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::After(ns) => f.write_str(&display::time(*ns as f64 / 1e9)),
        }
    }
}

impl Serialize for Mark {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_str("off"),
            Self::After(ns) => serializer.serialize_u64(*ns),
        }
    }
}
