// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ResourceSlice: what of this node the scheduler may give to pods. Pure.

use cni::config::{LINE_BPS, Rates};
use host_config::limits::RATE_BPS_MIN;
use serde_json::{Map, Value, json};

use crate::quantity::whole;

/// The only device.
pub const DEVICE: &str = "uplink";
/// What pods send through it.
pub const EGRESS: &str = "egress";
/// What they receive.
pub const INGRESS: &str = "ingress";
/// What rates are multiples of, in bit/s. The scheduler rounds requests up, so none gets a rate that
/// is too low to be paced.
const STEP_BPS: u64 = RATE_BPS_MIN;
/// Longest name of an object, and of a driver.
const NAME_CHARS: usize = 253;
const DRIVER_CHARS: usize = 63;

/// Whose slice it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The driver's name.
    pub driver: String,
    /// The node's, which is the pool's, too.
    pub node: String,
    /// The device that leads out of the node, if it is said.
    pub interface: Option<String>,
    /// How fast that is, in Mbit/s, if it says so.
    pub line_mbps: Option<u64>,
}

impl Owner {
    /// Returns the slice's name.
    ///
    /// # Errors
    /// A name of driver or node that is none.
    pub fn slice(&self) -> Result<String, String> {
        let is_name = |text: &str, most: usize| {
            let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
            let ends = |c: char| c.is_ascii_alphanumeric();
            let is_whole = text.starts_with(ends) && text.ends_with(ends);
            is_whole && text.len() <= most && text.chars().all(known)
        };
        let expected = "a name of lower-case letters, digits, `-` and `.`";
        for (key, text, most) in [
            ("--driver", &self.driver, DRIVER_CHARS),
            ("--node", &self.node, NAME_CHARS - DRIVER_CHARS),
        ] {
            if !is_name(text, most) {
                return Err(format!(
                    "{key} is \"{text}\", expected {expected}, of up to {most} characters"
                ));
            }
        }
        Ok(format!("{}-{}", self.node, self.driver))
    }

    /// Returns the devices, with what is left for claims.
    pub fn devices(&self, left: Rates) -> Value {
        let mut attributes = Map::new();
        if let Some(name) = &self.interface {
            attributes.insert("interface".to_owned(), json!({ "string": name }));
        }
        if let Some(line_mbps) = self.line_mbps {
            attributes.insert("lineMbps".to_owned(), json!({ "int": line_mbps }));
        }
        json!([{
            "name": DEVICE,
            "allowMultipleAllocations": true,
            "attributes": attributes,
            "capacity": {
                EGRESS: capacity(left.egress_bps),
                INGRESS: capacity(left.ingress_bps),
            },
        }])
    }

    /// Returns the slice. `before` is the one that is there, whose place it takes.
    pub fn object(
        &self,
        name: &str,
        devices: &Value,
        before: Option<&Value>,
        node_uid: Option<&str>,
    ) -> Value {
        let generation = before
            .and_then(|before| before.pointer("/spec/pool/generation")?.as_i64())
            .unwrap_or(0);
        let mut metadata = json!({ "name": name });
        if let Some(version) = before.and_then(|before| before.pointer("/metadata/resourceVersion"))
        {
            metadata["resourceVersion"] = version.clone();
        }
        if let Some(uid) = node_uid {
            // The slice goes with the node.
            metadata["ownerReferences"] = json!([{ "apiVersion": "v1", "kind": "Node",
                "name": self.node, "uid": uid, "controller": true }]);
        }
        json!({
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": metadata,
            "spec": {
                "driver": self.driver,
                "nodeName": self.node,
                "pool": {
                    "name": self.node,
                    "generation": generation.saturating_add(1),
                    "resourceSliceCount": 1,
                },
                "devices": devices,
            },
        })
    }

    /// Returns whether a slice that is there is this one's, with these devices.
    pub fn has(&self, found: &Value, devices: &Value) -> Result<bool, String> {
        let at = |place: &str| found.pointer(place).unwrap_or(&Value::Null);
        for (place, expected) in [
            ("/spec/driver", &self.driver),
            ("/spec/nodeName", &self.node),
        ] {
            if at(place) != expected.as_str() {
                let value = at(place);
                return Err(format!(
                    "`{place}` of the slice is {value}, expected \"{expected}\""
                ));
            }
        }
        let is_pool =
            at("/spec/pool/name") == self.node.as_str() && at("/spec/pool/resourceSliceCount") == 1;
        Ok(is_pool && plain(at("/spec/devices"), false) == plain(devices, false))
    }
}

/// Returns a capacity that claims take parts of. Who asks for nothing gets nothing.
fn capacity(left_bps: u64) -> Value {
    let left_bps = left_bps / STEP_BPS * STEP_BPS;
    if left_bps == 0 {
        return json!({ "value": "0" });
    }
    json!({
        "value": left_bps.to_string(),
        "requestPolicy": {
            "default": "0",
            "validRange": {
                "min": "0",
                "max": left_bps.min(LINE_BPS).to_string(),
                "step": STEP_BPS.to_string(),
            },
        },
    })
}

/// Returns a value with all quantities as numbers, and without what is empty: the API writes both in
/// its own way.
fn plain(value: &Value, is_capacity: bool) -> Value {
    match value {
        Value::Object(table) => table
            .iter()
            .map(|(key, value)| (key.clone(), plain(value, is_capacity || key == "capacity")))
            .filter(|(_, value)| !value.as_object().is_some_and(Map::is_empty))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(list) => list.iter().map(|value| plain(value, is_capacity)).collect(),
        Value::String(text) if is_capacity => {
            whole(text).map_or_else(|| value.clone(), Value::from)
        }
        other => other.clone(),
    }
}
