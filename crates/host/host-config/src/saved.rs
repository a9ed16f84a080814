// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `pspacer save` keeps of devices, and what `restore` wants of it: the same options, classes
//! and filters, each filter in the same place. Options are the kernel's attributes, in hexadecimal,
//! so that a field that is not known here is not lost.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use tcpsp::attribute::write as bytes_of;
use tcpsp::{ClassOptions, Filter, Handle, Match, QdiscOptions};

use crate::backend::Made;
use crate::port::{ClassState, FilterState, Port, Psp, Root, Slot};
use crate::target::{Target, TargetPsp, TargetRoot, TargetRule};

/// Name and version of the form.
const FORMAT: &str = "pspacer-saved-1";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    format: String,
    pub devices: Vec<SavedDevice>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedDevice {
    pub name: String,
    /// What its psp are made of; absent: the module's.
    #[serde(default, skip_serializing_if = "is_module")]
    made: SavedMade,
    root: SavedRoot,
    qdiscs: Vec<SavedPsp>,
    /// `limit_min` of the byte queue limit of each transmit queue, by its number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub byte_queue_limits_min_bytes: BTreeMap<u16, u64>,
    /// The host's file that it was set up by: what is followed goes on by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedMade {
    #[default]
    Module,
    Bpf,
    Edt,
    EdtMq,
}

fn is_module(made: &SavedMade) -> bool {
    *made == SavedMade::Module
}

impl SavedMade {
    const ALL: [(Self, Made); 4] = [
        (Self::Module, Made::Module),
        (Self::Bpf, Made::Bpf),
        (Self::Edt, Made::Edt),
        (Self::EdtMq, Made::EdtMq),
    ];

    fn new(port: &Port) -> Self {
        let made = port.psps().first().map(|psp| psp.made);
        let known = Self::ALL.iter().find(|(_, other)| Some(*other) == made);
        known.map_or(Self::Module, |(saved, _)| *saved)
    }

    fn made(self) -> Made {
        let known = Self::ALL.iter().find(|(other, _)| *other == self);
        known.map_or(Made::Module, |(_, made)| *made)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedRoot {
    Default,
    Psp,
    Mq,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedPsp {
    options: String,
    classes: BTreeMap<String, String>,
    /// Of classes in a group its minor number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    groups: BTreeMap<String, String>,
    filters: Vec<SavedFilter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedFilter {
    priority: u16,
    handle: u32,
    kind: String,
    protocol: u16,
    class: String,
    options: String,
}

impl Saved {
    /// Keeps what is ours of devices.
    ///
    /// # Errors
    /// A sentence, if a device's root is of others: it cannot be put back.
    pub fn new(ports: &[Port]) -> Result<Self, String> {
        let devices = ports.iter().map(SavedDevice::new);
        Ok(Self {
            format: FORMAT.to_owned(),
            devices: devices.collect::<Result<_, _>>()?,
        })
    }

    /// Reads the form.
    pub fn read(text: &str) -> Result<Self, String> {
        let saved: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if saved.format != FORMAT {
            let format = &saved.format;
            return Err(format!("`format` is \"{format}\", expected \"{FORMAT}\""));
        }
        Ok(saved)
    }

    /// Writes the form.
    pub fn write(&self) -> String {
        // It has text keys and numbers only: nothing that JSON has no form for.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

impl SavedDevice {
    fn new(port: &Port) -> Result<Self, String> {
        if port.psps().iter().any(|psp| psp.is_unread) {
            return Err(format!(
                "{}: what paces it is of another version of pspacer, expected this one's; \
                 `pspacer apply` puts that in its place",
                port.name
            ));
        }
        let root = match &port.root {
            Root::One(Slot::Default { .. }) => SavedRoot::Default,
            Root::One(Slot::Psp(_)) => SavedRoot::Psp,
            Root::One(Slot::Other { kind, handle, .. }) => {
                return Err(format!(
                    "{}: qdisc {kind} {handle} at root was configured by others, expected one \
                     that `pspacer apply` has made, or the kernel's own",
                    port.name
                ));
            }
            Root::Mq(slots) => {
                if slots.iter().any(|slot| !matches!(slot, Slot::Psp(_))) {
                    return Err(format!(
                        "{}: a transmit queue has no psp, expected one at each; `pspacer apply` \
                         puts it there",
                        port.name
                    ));
                }
                SavedRoot::Mq
            }
        };
        Ok(Self {
            name: port.name.clone(),
            made: SavedMade::new(port),
            root,
            qdiscs: port.psps().into_iter().map(SavedPsp::new).collect(),
            byte_queue_limits_min_bytes: BTreeMap::new(),
            file: None,
        })
    }

    /// Returns what is wanted of the device.
    ///
    /// # Errors
    /// A sentence, if the file is not as `save` writes it.
    pub fn target(&self) -> Result<Target, String> {
        let wrong = |what: &str| format!("{}: {what}", self.name);
        let mut qdiscs = self
            .qdiscs
            .iter()
            .map(|qdisc| qdisc.target().map_err(|what| wrong(&what)))
            .collect::<Result<Vec<_>, _>>()?;
        let root = match self.root {
            SavedRoot::Default => TargetRoot::Default,
            SavedRoot::Psp => TargetRoot::Psp(
                qdiscs
                    .pop()
                    .ok_or_else(|| wrong("root psp, expected a qdisc"))?,
            ),
            SavedRoot::Mq => TargetRoot::Mq(qdiscs),
        };
        Ok(Target {
            made: self.made.made(),
            root,
            names: BTreeMap::new(),
        })
    }
}

impl SavedPsp {
    fn new(psp: &Psp) -> Self {
        let classes = psp.classes.iter();
        let filters = psp.filters.iter().filter(|filter| filter.is_ours());
        Self {
            options: hexadecimal(&bytes_of(&psp.options.write())),
            classes: classes
                .map(|(minor, class)| {
                    let options = hexadecimal(&bytes_of(&class.options.write()));
                    (format!("{minor:x}"), options)
                })
                .collect(),
            groups: psp
                .classes
                .iter()
                .filter_map(|(minor, class)| {
                    let group = class.options.group?;
                    Some((format!("{minor:x}"), format!("{group:x}")))
                })
                .collect(),
            filters: filters
                .map(|filter| {
                    let class = Handle::new(psp.handle.major(), filter.class.unwrap_or(0));
                    let options = filter.matching.iter().flat_map(|m| m.keep(class));
                    SavedFilter {
                        priority: filter.priority,
                        handle: filter.handle,
                        kind: filter.kind.clone(),
                        protocol: filter.protocol,
                        class: format!("{:x}", class.minor()),
                        options: hexadecimal(&bytes_of(&options.collect::<Vec<_>>())),
                    }
                })
                .collect(),
        }
    }

    fn target(&self) -> Result<TargetPsp, String> {
        let classes = self.classes.iter().map(|(minor, options)| {
            let group = self.groups.get(minor);
            let options = ClassOptions {
                group: group.map(|group| number(group)).transpose()?,
                ..ClassOptions::read(&bytes(options)?)
            };
            Ok::<_, String>((number(minor)?, options))
        });
        let rules = self.filters.iter().map(|filter| {
            let read = Filter {
                device: 0,
                parent: Handle::NONE,
                priority: filter.priority,
                protocol: filter.protocol,
                handle: filter.handle,
                kind: filter.kind.clone(),
                class: None,
                options: bytes(&filter.options)?,
            };
            let matching = read.matching().ok_or_else(|| {
                let (kind, priority) = (&filter.kind, filter.priority);
                format!("filter {kind} of priority {priority}, expected one that apply makes")
            })?;
            Ok::<_, String>(TargetRule {
                matching,
                class: number(&filter.class)?,
                place: Some((filter.priority, filter.handle)),
            })
        });
        Ok(TargetPsp {
            options: QdiscOptions::read(&bytes(&self.options)?),
            classes: classes.collect::<Result<_, _>>()?,
            rules: rules.collect::<Result<_, _>>()?,
        })
    }
}

/// What a psp without the module keeps of its own beside its programs: there is no other place
/// for it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    format: String,
    line_bps: Option<u64>,
    max_frame_bytes: u64,
    psp: SavedPsp,
}

impl Psp {
    /// Returns all of it but what waits, as [`Self::of_text`] reads it. O(classes + filters).
    pub fn text(&self) -> String {
        let kept = Kept {
            format: FORMAT.to_owned(),
            line_bps: self.line_bps,
            max_frame_bytes: self.max_frame_bytes,
            psp: SavedPsp::new(self),
        };
        // It has text keys and numbers only: nothing that JSON has no form for.
        serde_json::to_string(&kept).unwrap_or_default()
    }

    /// Reads what [`Self::text`] wrote of a psp that stands there now.
    pub fn of_text(text: &str, made: Made, handle: Handle, parent: Handle) -> Result<Self, String> {
        let kept: Kept = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if kept.format != FORMAT {
            let format = &kept.format;
            return Err(format!("`format` is \"{format}\", expected \"{FORMAT}\""));
        }
        let target = kept.psp.target()?;
        let classes = target.classes.into_iter().map(|(minor, options)| {
            let state = ClassState {
                options,
                waiting: 0,
                has_queue: false,
            };
            (minor, state)
        });
        let filters = target.rules.into_iter().zip(&kept.psp.filters);
        let filters = filters.map(|(rule, saved)| FilterState {
            priority: saved.priority,
            handle: saved.handle,
            kind: saved.kind.clone(),
            protocol: saved.protocol,
            class: (rule.matching != Match::Cgroup).then_some(rule.class),
            matching: Some(rule.matching),
        });
        let mut filters: Vec<_> = filters.collect();
        filters.sort_by_key(FilterState::place);
        Ok(Self {
            made,
            handle,
            parent,
            line_bps: kept.line_bps,
            max_frame_bytes: kept.max_frame_bytes,
            classes: classes.collect(),
            filters,
            is_classified: false,
            is_unread: false,
            amiss: Vec::new(),
            options: target.options,
        })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("\"{text}\", expected bytes in hexadecimal");
    let digits = text.as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|p| p.len() == 2)?;
        let is_number = pair.bytes().all(|byte| byte.is_ascii_hexdigit());
        u8::from_str_radix(pair, 16).ok().filter(|_| is_number)
    });
    pairs.collect::<Option<_>>().ok_or_else(wrong)
}

fn number(text: &str) -> Result<u16, String> {
    let wrong = |_| format!("\"{text}\", expected a minor number in hexadecimal");
    u16::from_str_radix(text, 16).map_err(wrong)
}
