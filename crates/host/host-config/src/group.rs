// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of a device: a rate and a ceil that classes share. There is one level of them.

use tcpsp::{ClassOptions, QdiscOptions, TypeOptions};
use toml_reader::{Error, Key, Section, key};
use units::{display, parse};

use crate::rates::{at_least, carries, within_line};

/// Keys of a group.
pub(crate) const KEYS: &[Key] = &[
    key(
        "name",
        "a name of letters, digits, `-`, `_` and `.`, of up to 32 characters",
    ),
    key("minor", "a hexadecimal number from \"8000\" to \"fffe\""),
    key("rate", parse::RATE),
    key("ceil", parse::RATE),
];

pub(crate) struct Group {
    pub name: String,
    pub minor: u16,
    pub rate_bps: u64,
    pub ceil_bps: Option<u64>,
}

impl Group {
    pub fn read(section: Section<'_>, of: &QdiscOptions, minor: u16) -> Result<Self, Error> {
        let rate_bps = within_line(section, "rate", of)?;
        let rate_bps = rate_bps.ok_or_else(|| section.lacks("rate", parse::RATE))?;
        let ceil_bps = within_line(section, "ceil", of)?;
        at_least(section.get("ceil"), ceil_bps, Some(rate_bps), "rate")?;
        let most = section.get("ceil").or_else(|| section.get("rate"));
        carries(most, Some(ceil_bps.unwrap_or(rate_bps)))?;
        Ok(Self {
            name: section.require("name")?.text()?.to_owned(),
            minor,
            rate_bps,
            ceil_bps,
        })
    }

    pub fn options(&self) -> ClassOptions {
        ClassOptions::new(TypeOptions::Group {
            rate_bps: self.rate_bps,
            ceil_bps: self.ceil_bps,
        })
    }

    /// Returns the group of a class with these options, if it has one.
    ///
    /// # Errors
    /// A name that no group has, or a class that none takes.
    pub fn of_class(
        section: Section<'_>,
        groups: &[Self],
        options: &TypeOptions,
    ) -> Result<Option<u16>, Error> {
        let Some(item) = section.get("group") else {
            return Ok(None);
        };
        let wanted = item.text()?;
        let known = || groups.iter().map(|group| group.name.clone()).collect();
        let group = groups.iter().find(|group| group.name == wanted);
        let group = group.ok_or_else(|| item.unknown(known()))?;
        let (rate_bps, ceil_bps) = match options {
            TypeOptions::Paced {
                launch: Some(_), ..
            } => return Err(item.fault("none beside `txtime`")),
            TypeOptions::Paced {
                rate_bps, ceil_bps, ..
            } => (*rate_bps, *ceil_bps),
            TypeOptions::Normal { .. } => return Ok(Some(group.minor)),
            _ => return Err(item.fault("it only with type \"paced\" or \"normal\"")),
        };
        let most_bps = group.ceil_bps.unwrap_or(group.rate_bps);
        let keys = [("rate", Some(rate_bps)), ("ceil", ceil_bps)];
        match keys.iter().find(|(_, bps)| *bps > Some(most_bps)) {
            None => Ok(Some(group.minor)),
            Some((key, bps)) => {
                let item = section.get(key).or_else(|| section.get("share"));
                let most = display::rate(most_bps as f64);
                let value = display::rate(bps.unwrap_or(0) as f64);
                let expected = format!("at most the {most} of group {}", group.name);
                Err(item.map_or_else(
                    || section.lacks(key, &expected),
                    |item| item.fault_of(&value, &expected),
                ))
            }
        }
    }
}
