// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/use/host-file.schema.json and the reader know the same keys.

use std::collections::BTreeSet;

use serde_json::Value;
use toml_reader::Key;

use crate::file::{CLASS_KEYS, DEVICE_KEYS, FILE_KEYS, Host};
use crate::group;
use crate::launch_times;
use crate::matching;

const SCHEMA: &str = include_str!("../../../../docs/use/host-file.schema.json");

fn keys_of(table: &Value) -> BTreeSet<&str> {
    assert_eq!(table["additionalProperties"], false, "{table}");
    let properties = table["properties"].as_object().unwrap();
    for (key, value) in properties {
        assert!(value["description"].is_string(), "{key}: no description");
    }
    properties.keys().map(String::as_str).collect()
}

fn names(keys: &[Key]) -> BTreeSet<&str> {
    keys.iter().map(|key| key.name).collect()
}

#[test]
fn the_schema_has_the_keys_of_the_reader() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let device = &schema["properties"]["device"]["items"];
    let class = &device["properties"]["class"]["items"];
    let matched = &class["properties"]["match"]["items"];
    let launches = &class["properties"]["launches"]["items"];
    assert_eq!(keys_of(launches), names(launch_times::KEYS));
    assert_eq!(keys_of(&schema), names(FILE_KEYS));
    assert_eq!(keys_of(device), names(DEVICE_KEYS));
    assert_eq!(keys_of(class), names(CLASS_KEYS));
    let groups = &device["properties"]["group"]["items"];
    assert_eq!(keys_of(groups), names(group::KEYS));
    // What is refused with advice is no key of the schema.
    let mut known = names(matching::KEYS);
    assert!(known.remove("user"));
    assert_eq!(keys_of(matched), known);
}

/// Each word of the schema is one that the reader takes, where it may stand.
#[test]
fn the_schemas_words_are_read() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let device = &schema["properties"]["device"]["items"]["properties"];
    let mut words = 0;
    for (key, value) in device.as_object().unwrap() {
        for word in value["enum"].as_array().into_iter().flatten() {
            let text = format!("[[device]]\nname = \"eth0\"\n{key} = {word}\n");
            Host::read("f", &text).unwrap_or_else(|error| panic!("{error}"));
            words += 1;
        }
    }
    assert!(words > 10);
}
