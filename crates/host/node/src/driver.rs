// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kubelet asks of a driver: claims become files for ADD before a pod has a network, and
//! go when it has none any more.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use cni::budget::{Asked, Granted};
use cni::claims::{Claim, Claims, Listed};
use cni::config::Budget;
use cni::error::Error;
use host_apply::{CALL_WAIT, Lock};

use crate::api::Api;
use crate::claim;
use crate::proto;
use crate::slice::Owner;

/// Longest time for the claims of one call: the kubelet waits for 45 s.
const MOST_TIME: Duration = Duration::from_secs(30);

/// The driver of a node.
#[derive(Clone, Debug)]
pub struct Driver {
    pub owner: Owner,
    /// The folder of `pspacer`.
    pub run: PathBuf,
    /// What all pods of the node may have together.
    pub budget: Budget,
    /// Where claims are read.
    pub api: Api,
}

impl Driver {
    /// Prepares claims. Each that cannot be has its error in the answer. All are read first, and
    /// then written under one lock, for which what is granted is read once: O(claims and records).
    pub fn prepare(&self, asked: &[proto::Claim]) -> HashMap<String, proto::Prepared> {
        let begun = Instant::now();
        let read = |asked: &proto::Claim| {
            if begun.elapsed() < MOST_TIME {
                self.read(asked)
            } else {
                Err(anyhow!("no time is left for it in this call"))
            }
        };
        let found: Vec<Result<Claim>> = asked.iter().map(read).collect();
        let mut node = Under::lock(&self.run);
        let of_each = asked.iter().zip(found).map(|(asked, found)| {
            let node = node.as_mut().map_err(|error| anyhow!("{error:#}"));
            let kept = found.and_then(|claim| node?.keep(claim, self.budget));
            let prepared = kept.map(prepared).unwrap_or_else(|error| proto::Prepared {
                error: format!("{}/{}: {error:#}", asked.namespace, asked.name),
                devices: Vec::new(),
            });
            (asked.uid.clone(), prepared)
        });
        of_each.collect()
    }

    /// Asks the API server what a claim got.
    fn read(&self, asked: &proto::Claim) -> Result<Claim> {
        claim::check(asked).map_err(anyhow::Error::msg)?;
        let (namespace, name) = (&asked.namespace, &asked.name);
        let path = format!("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}");
        let found = self.api.get(&path)?;
        let found = found.context("the API server has no such claim")?;
        let Owner { driver, node, .. } = &self.owner;
        claim::read(&found, asked, driver, node).map_err(anyhow::Error::msg)
    }

    /// Forgets claims. One that is not there is no error.
    pub fn unprepare(&self, asked: &[proto::Claim]) -> HashMap<String, proto::Unprepared> {
        let mut node = Under::lock(&self.run);
        let of_each = asked.iter().map(|asked| {
            let node = node.as_mut().map_err(|error| anyhow!("{error:#}"));
            let done = node.and_then(|node| node.files.delete(&asked.uid));
            let error = done.err().map(|error| format!("{error:#}"));
            let error = error.unwrap_or_default();
            (asked.uid.clone(), proto::Unprepared { error })
        });
        of_each.collect()
    }
}

/// What a node has given, while nobody else gives.
struct Under<'a> {
    _lock: Lock,
    run: &'a Path,
    files: Listed,
    /// Read for the first claim that is new.
    granted: Option<Result<Granted, Error>>,
}

impl<'a> Under<'a> {
    fn lock(run: &'a Path) -> Result<Self> {
        Ok(Self {
            _lock: Lock::take_within(run, CALL_WAIT)?,
            run,
            files: Claims::new(run).list()?,
            granted: None,
        })
    }

    /// Keeps a claim if it is there already, or the budget has room for it. What was kept of it
    /// before stays until then.
    fn keep(&mut self, claim: Claim, budget: Budget) -> Result<Claim> {
        // What was prepared may be in force by now, whatever has become of the budget.
        if self.files.has(&claim) {
            return Ok(claim);
        }
        let asked = Asked {
            attachment: None,
            claims: std::slice::from_ref(&claim.uid),
            rates: claim.rates(),
            keys: ("consumedCapacity.egress", "consumedCapacity.ingress"),
        };
        let said = |error: &Error| anyhow!("{} (code {})", error.msg, error.code);
        let granted = self
            .granted
            .get_or_insert_with(|| Granted::read(self.run, |_, _| false));
        let granted = granted.as_mut().map_err(|error| said(error))?;
        granted
            .check(&asked, budget)
            .map_err(|error| said(&error))?;
        self.files.store(&claim)?;
        granted.put(&claim);
        Ok(claim)
    }
}

/// Returns what the kubelet is told of a claim.
fn prepared(claim: Claim) -> proto::Prepared {
    let devices = claim.shares.into_iter().map(|share| proto::Device {
        // A request may have alternatives, `request/alternative`.
        request_names: share
            .request
            .split('/')
            .next()
            .map(str::to_owned)
            .into_iter()
            .collect(),
        pool_name: share.pool,
        device_name: share.device,
        cdi_device_ids: Vec::new(),
        share_id: share.share_id,
    });
    proto::Prepared {
        devices: devices.collect(),
        error: String::new(),
    }
}
