// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a ResourceClaim says of this node. Pure.

use cni::claims::{Claim, Share};
use cni::config::Rates;
use cni::environment::{UID, is_uid};
use host_config::limits::{RATES_BPS, rate_expected};
use serde_json::Value;

use crate::proto;
use crate::quantity::whole;
use crate::slice::{DEVICE, EGRESS, INGRESS};

/// Most characters of a value that a message shows.
const SHOWN_CHARS: usize = 80;
const RATE: &str = "a quantity of whole bit/s such as \"100M\"";

/// Refuses what is no claim's name: it is part of a path.
///
/// # Errors
/// The key, its value, and what was expected.
pub fn check(asked: &proto::Claim) -> Result<(), String> {
    let is_name = |text: &str| {
        let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        begins && text.len() <= 253 && text.chars().all(known)
    };
    for (key, text) in [("namespace", &asked.namespace), ("name", &asked.name)] {
        if !is_name(text) {
            let expected = "a name of lower-case letters, digits, `-` and `.`";
            return Err(format!("`{key}` is {}, expected {expected}", shown(text)));
        }
    }
    if !is_uid(&asked.uid) {
        return Err(format!("`uid` is {}, expected {UID}", shown(&asked.uid)));
    }
    Ok(())
}

/// Reads what a claim got of a node's pool from a driver.
///
/// # Errors
/// The key, its value, and what was expected.
pub fn read(
    found: &Value,
    asked: &proto::Claim,
    driver: &str,
    pool: &str,
) -> Result<Claim, String> {
    check(asked)?;
    let at = |place: &str| found.pointer(place).unwrap_or(&Value::Null);
    let wrong = |key: &str, value: &Value, expected: &str| {
        let value = shown(&value.to_string());
        format!("`{key}` is {value}, expected {expected}")
    };
    let uid = at("/metadata/uid");
    if uid != asked.uid.as_str() {
        let expected = format!("\"{}\": another claim has the name now", asked.uid);
        return Err(wrong("metadata.uid", uid, &expected));
    }
    let results = at("/status/allocation/devices/results");
    let Some(results) = results.as_array() else {
        let key = "status.allocation.devices.results";
        return Err(wrong(key, results, "a list: the claim is not allocated"));
    };
    let mut shares = Vec::new();
    for (number, result) in results.iter().enumerate() {
        if result["driver"] != driver {
            continue;
        }
        let key = |key: &str| format!("status.allocation.devices.results[{number}].{key}");
        for (name, expected) in [("pool", pool), ("device", DEVICE)] {
            if result[name] != expected {
                return Err(wrong(&key(name), &result[name], &format!("\"{expected}\"")));
            }
        }
        let consumed = &result["consumedCapacity"];
        if !consumed.is_object() {
            let expected = "a table: the cluster needs the feature DRAConsumableCapacity";
            return Err(wrong(&key("consumedCapacity"), consumed, expected));
        }
        let rate = |name: &str| {
            let value = match &consumed[name] {
                Value::Null => &consumed[format!("{driver}/{name}")],
                value => value,
            };
            let read = match value {
                Value::Null => Some(0),
                Value::String(text) => whole(text),
                _ => None,
            };
            read.ok_or_else(|| wrong(&key(&format!("consumedCapacity.{name}")), value, RATE))
        };
        let text = |name: &str| result[name].as_str().map(str::to_owned);
        shares.push(Share {
            request: text("request")
                .ok_or_else(|| wrong(&key("request"), &result["request"], "a name"))?,
            pool: pool.to_owned(),
            device: DEVICE.to_owned(),
            share_id: text("shareID"),
            egress_bps: rate(EGRESS)?,
            ingress_bps: rate(INGRESS)?,
        });
    }
    if shares.is_empty() {
        return Err(format!(
            "`status.allocation.devices.results` names no device of {driver}, expected one"
        ));
    }
    let reserved = at("/status/reservedFor");
    let pods = reserved.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_pod =
        |of: &Value| of["resource"] == "pods" && of["apiGroup"].as_str().is_none_or(str::is_empty);
    let pod_uid = match pods {
        [pod] if is_pod(pod) => pod["uid"].as_str().filter(|uid| is_uid(uid)),
        _ => None,
    };
    let Some(pod_uid) = pod_uid else {
        let expected = "one pod with its uid: a claim's rate is one pod's, so each needs its own, \
                        by a template";
        return Err(wrong("status.reservedFor", reserved, expected));
    };
    let claim = Claim {
        uid: asked.uid.clone(),
        namespace: asked.namespace.clone(),
        name: asked.name.clone(),
        pod_uid: pod_uid.to_owned(),
        shares,
    };
    let rates = claim.rates();
    if rates == Rates::default() {
        return Err(
            "`consumedCapacity` of all results is 0 bit/s, expected a rate in one direction: name it \
             in `capacity.requests`"
                .to_owned(),
        );
    }
    for (name, rate_bps) in [(EGRESS, rates.egress_bps), (INGRESS, rates.ingress_bps)] {
        let expected = (rate_bps > 0).then(|| rate_expected(rate_bps, &RATES_BPS));
        if let Some(expected) = expected.flatten() {
            let key = format!("consumedCapacity.{name}");
            return Err(format!(
                "`{key}` of all results is {rate_bps} bit/s, expected {expected}"
            ));
        }
    }
    Ok(claim)
}

/// Returns the beginning of a value.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}...", text.split_at(at).0),
        None => text.to_owned(),
    }
}
