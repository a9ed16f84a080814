// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launch times that a class declares, `launches`: read and checked by themselves. Whether those
//! of several classes collide is in `collisions.rs`.

use toml_reader::{Error, Key, Section, key};
use units::parse;

/// Most entries of a class: a plan compares each with each.
const MOST_ENTRIES: usize = 256;
const ONE_SECOND_NS: u64 = 1_000_000_000;

/// Keys of an entry.
pub(crate) const KEYS: &[Key] = &[
    key("every", "a time from \"1us\" to \"1s\""),
    key("at", "a time below `every` such as \"0us\""),
    key(
        "size",
        "the bytes of a frame, from \"60b\" to \"9216b\", without FCS",
    ),
    key("count", "a number from 1 to 1024"),
    key("late_at_most", "a time up to \"1s\""),
];

/// Frames that a class sends at declared instants: `at_ns` and each multiple of `every_ns` after
/// it, since the epoch of the class's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launches {
    /// Time from one instant to the next.
    pub every_ns: u64,
    /// The instant modulo `every_ns`; `None`: it is not known.
    pub at_ns: Option<u64>,
    /// Bytes of a frame, with its Ethernet header.
    pub size_bytes: u32,
    /// Frames of an instant.
    pub count: u32,
    /// How late a frame may leave.
    pub late_at_most_ns: Option<u64>,
}

impl Launches {
    /// Reads the entries of a class.
    ///
    /// # Errors
    /// A value that a key does not take; entries without `txtime`, or of launch times that are
    /// deadlines.
    pub(crate) fn read(section: Section<'_>) -> Result<Vec<Self>, Error> {
        let Some(item) = section.get("launches") else {
            return Ok(Vec::new());
        };
        if section.get("txtime").is_none() {
            return Err(item.fault("it only with `txtime`"));
        }
        if section.boolean("txtime_deadline")? == Some(true) {
            return Err(item.fault(
                "none with `txtime_deadline`: frames leave at the class's rate, not at instants",
            ));
        }
        let tables = section.tables("launches", "an entry of `launches`", KEYS)?;
        if tables.len() > MOST_ENTRIES {
            return Err(item.fault(&format!("at most {MOST_ENTRIES} entries")));
        }
        tables.into_iter().map(Self::entry).collect()
    }

    fn entry(section: Section<'_>) -> Result<Self, Error> {
        section.require("every")?;
        section.require("size")?;
        let every_ns = section.time("every", 1_000..=ONE_SECOND_NS)?;
        let every_ns = every_ns.unwrap_or(ONE_SECOND_NS);
        let at_ns = section.parsed("at", |text| {
            parse::time_ns(text).filter(|at_ns| *at_ns < every_ns)
        })?;
        let size = section.size("size", 60..=9216)?;
        Ok(Self {
            every_ns,
            at_ns,
            size_bytes: size.and_then(|size| size.try_into().ok()).unwrap_or(9216),
            count: section.number("count", 1..=1024)?.unwrap_or(1),
            late_at_most_ns: section.time("late_at_most", 0..=ONE_SECOND_NS)?,
        })
    }
}
