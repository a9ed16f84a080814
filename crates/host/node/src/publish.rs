// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps the node's ResourceSlice as it should be.

use std::path::Path;

use anyhow::Result;
use cni::budget::holders;
use cni::config::{Budget, Rates};
use serde_json::Value;
use ureq::http::Method;

use crate::api::Api;
use crate::slice::Owner;

const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";

/// What was published last.
#[derive(Debug)]
pub struct Publisher {
    api: Api,
    owner: Owner,
    name: String,
    node_uid: Option<String>,
    /// Devices as they were written, and the version that the server gave them: it may write them
    /// in another way.
    last: Option<(Value, Value)>,
}

/// Returns what claims may have of a node: its budget without what attachments have beside claims,
/// of which the scheduler knows nothing. A direction without a budget has nothing for claims.
pub fn left(run: &Path, budget: Budget) -> Result<Rates> {
    let holders = holders(run, |_, _| false).map_err(|error| anyhow::Error::msg(error.msg))?;
    let mut others = Rates::default();
    for holder in &holders {
        others.add(holder.rates().without(holder.claimed));
    }
    let all = Rates {
        egress_bps: budget.egress_bps.unwrap_or(0),
        ingress_bps: budget.ingress_bps.unwrap_or(0),
    };
    Ok(all.without(others))
}

impl Publisher {
    /// Begins. Nothing is published yet.
    pub fn new(api: Api, owner: Owner) -> Result<Self, String> {
        Ok(Self {
            api,
            name: owner.slice()?,
            owner,
            node_uid: None,
            last: None,
        })
    }

    /// Publishes what is left. Returns whether something changed.
    ///
    /// # Errors
    /// What the API server says, or that it says nothing.
    pub fn publish(&mut self, left: Rates) -> Result<bool> {
        let devices = self.owner.devices(left);
        let path = format!("{SLICES}/{}", self.name);
        let found = self.api.get(&path)?;
        if let Some(found) = &found {
            let is_same = self
                .owner
                .has(found, &devices)
                .map_err(anyhow::Error::msg)?;
            let version = &found["metadata"]["resourceVersion"];
            let is_last = self
                .last
                .as_ref()
                .is_some_and(|last| *last == (devices.clone(), version.clone()));
            if is_same || is_last {
                return Ok(false);
            }
        }
        if self.node_uid.is_none() {
            let node = self
                .api
                .get(&format!("/api/v1/nodes/{}", self.owner.node))?;
            let uid =
                node.and_then(|node| Some(node.pointer("/metadata/uid")?.as_str()?.to_owned()));
            self.node_uid = uid;
        }
        let uid = self.node_uid.as_deref();
        let object = self.owner.object(&self.name, &devices, found.as_ref(), uid);
        let answer = match found {
            Some(_) => self.api.send(Method::PUT, &path, &object)?,
            None => self.api.send(Method::POST, SLICES, &object)?,
        };
        self.last = Some((devices, answer["metadata"]["resourceVersion"].clone()));
        Ok(true)
    }
}
