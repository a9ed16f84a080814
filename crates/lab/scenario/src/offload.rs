// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `offloads` of a host: what its devices do in place of the kernel, in ethtool(8)'s words.

use toml_reader::{Error, quote};

use crate::model::Offload;
use crate::reader::{Fill, Section};

/// Words that switch a feature, and the feature's name where ethtool lists it.
const FEATURES: &[(&str, &str)] = &[
    ("rx", "rx-checksumming"),
    ("tx", "tx-checksumming"),
    ("sg", "scatter-gather"),
    ("tso", "tcp-segmentation-offload"),
    ("gso", "generic-segmentation-offload"),
    ("gro", "generic-receive-offload"),
    ("lro", "large-receive-offload"),
    ("rxvlan", "rx-vlan-offload"),
    ("txvlan", "tx-vlan-offload"),
    ("ntuple", "ntuple-filters"),
    ("rxhash", "receive-hashing"),
];

/// Reads the offloads of the host with this index; none if the key is absent or its text is empty.
pub(crate) fn read(section: &Section<'_, '_>, host: usize) -> Result<Vec<Offload>, Error> {
    let Some(item) = section.get("offloads") else {
        return Ok(Vec::new());
    };
    let words: Vec<&str> = FEATURES.iter().map(|(word, _)| *word).collect();
    let expected = format!(
        "pairs as of `ethtool -K`, such as \"gso off gro off\", each of them once: {}, with on or off",
        words.join(", ")
    );
    let text = item.filled(section.env, &expected)?;
    let fault = || item.fault_of(&quote(&text), &expected);
    let given: Vec<&str> = text.split_whitespace().collect();
    let mut all: Vec<Offload> = Vec::new();
    for pair in given.chunks(2) {
        let &[word, state] = pair else {
            return Err(fault());
        };
        let mut known = FEATURES.iter();
        let (word, listed) = known.find(|(known, _)| *known == word).ok_or_else(fault)?;
        let is_on = match state {
            "on" => true,
            "off" => false,
            _ => return Err(fault()),
        };
        if all.iter().any(|other| other.word == *word) {
            return Err(fault());
        }
        all.push(Offload {
            host,
            word,
            listed,
            is_on,
            place: item.place(),
        });
    }
    Ok(all)
}
