// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of the plugins before this one, which is checked and passed on. Pure.

use std::net::IpAddr;

use serde_json::Value;

use crate::config::VERSIONS;
use crate::error::{Error, INCOMPATIBLE_VERSION};

const ADDRESS: &str = "an address and its prefix such as \"10.1.0.5/16\"";

/// Checks a result, and returns it as it is passed on. Plugins differ in what they tell of devices:
/// Calico up to 3.30 names the host's end alone, and weave none.
///
/// # Errors
/// What is not as CNI says, or that it names devices of sandboxes, and not this one.
pub fn check(previous: &Value, version: &str, device: &str) -> Result<Value, Error> {
    let Value::Object(table) = previous else {
        return Err(Error::wrong("prevResult", previous, "a table"));
    };
    match table.get("cniVersion") {
        None => {}
        // The plugin before may have answered by another version; they say the same.
        Some(Value::String(own)) if VERSIONS.contains(&own.as_str()) => {}
        Some(other) => {
            let known = VERSIONS.join(", ");
            let msg = format!("`prevResult.cniVersion` is {other}, expected one of {known}");
            return Err(Error::new(INCOMPATIBLE_VERSION, msg));
        }
    }
    let interfaces = list(previous, "interfaces")?;
    for (at, interface) in interfaces.iter().enumerate() {
        let place = |key: &str| format!("prevResult.interfaces[{at}].{key}");
        let name = interface.get("name").unwrap_or(&Value::Null);
        if name.as_str().is_none_or(str::is_empty) {
            return Err(Error::wrong(&place("name"), name, "a device's name"));
        }
        for key in ["mac", "sandbox"] {
            optional(interface.get(key), &place(key), "a text", Value::is_string)?;
        }
    }
    for (at, ip) in list(previous, "ips")?.iter().enumerate() {
        let place = |key: &str| format!("prevResult.ips[{at}].{key}");
        let address = ip.get("address").unwrap_or(&Value::Null);
        if !is_prefix(address) {
            return Err(Error::wrong(&place("address"), address, ADDRESS));
        }
        let gateway = ip.get("gateway");
        optional(gateway, &place("gateway"), "an address", is_address)?;
        let count = interfaces.len() as u64;
        let index = |value: &Value| value.as_u64().is_some_and(|index| index < count);
        let expected = "an index of `prevResult.interfaces`";
        optional(ip.get("interface"), &place("interface"), expected, index)?;
    }
    for (at, route) in list(previous, "routes")?.iter().enumerate() {
        let place = |key: &str| format!("prevResult.routes[{at}].{key}");
        let destination = route.get("dst").unwrap_or(&Value::Null);
        if !is_prefix(destination) {
            return Err(Error::wrong(&place("dst"), destination, ADDRESS));
        }
        optional(route.get("gw"), &place("gw"), "an address", is_address)?;
    }
    optional(
        table.get("dns"),
        "prevResult.dns",
        "a table",
        Value::is_object,
    )?;
    let of_pod: Vec<&Value> = interfaces.iter().filter(|i| !is_of_host(i)).collect();
    let is_this = |interface: &&Value| interface.get("name").is_some_and(|name| name == device);
    if !of_pod.is_empty() && !of_pod.iter().any(is_this) {
        let found = previous.get("interfaces").unwrap_or(&Value::Null);
        let expected = format!("`{device}` in a sandbox, which CNI_IFNAME names");
        return Err(Error::wrong("prevResult.interfaces", found, &expected));
    }
    let mut passed = table.clone();
    passed.insert("cniVersion".to_owned(), version.into());
    Ok(Value::Object(passed))
}

fn is_of_host(interface: &Value) -> bool {
    let sandbox = interface.get("sandbox").and_then(Value::as_str);
    sandbox.unwrap_or_default().is_empty()
}

/// Returns a list of tables, empty if there is none.
fn list<'a>(of: &'a Value, key: &str) -> Result<&'a [Value], Error> {
    let place = || format!("prevResult.{key}");
    let list = match of.get(key) {
        None | Some(Value::Null) => return Ok(&[]),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(Error::wrong(&place(), other, "a list")),
    };
    match list.iter().find(|entry| !entry.is_object()) {
        Some(entry) => Err(Error::wrong(&place(), entry, "a list of tables")),
        None => Ok(list),
    }
}

fn optional(
    value: Option<&Value>,
    place: &str,
    expected: &str,
    is_right: impl Fn(&Value) -> bool,
) -> Result<(), Error> {
    match value {
        Some(value) if !value.is_null() && !is_right(value) => {
            Err(Error::wrong(place, value, expected))
        }
        _ => Ok(()),
    }
}

fn is_address(value: &Value) -> bool {
    let text = value.as_str();
    text.is_some_and(|text| text.is_empty() || text.parse::<IpAddr>().is_ok())
}

fn is_prefix(value: &Value) -> bool {
    let read = || {
        let (address, bits) = value.as_str()?.split_once('/')?;
        let most = match address.parse().ok()? {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        bits.parse::<u8>().ok().filter(|bits| *bits <= most)
    };
    read().is_some()
}
