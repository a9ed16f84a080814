// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kubelet asks of a driver: claims become files for ADD before a pod has a network, and
//! go when it has none any more.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use cni::budget::{self, Asked};
use cni::claims::{Claim, Claims};
use cni::config::Budget;
use host_apply::Lock;

use crate::api::Api;
use crate::claim;
use crate::proto;
use crate::slice::Owner;

/// Longest time for the claims of one call: the kubelet waits for 45 s.
const MOST_TIME: Duration = Duration::from_secs(30);

/// The driver of a node.
#[derive(Clone, Debug)]
pub struct Driver {
    /// Its names.
    pub owner: Owner,
    /// The folder of `pspacer`.
    pub run: PathBuf,
    /// What all pods of the node may have together.
    pub budget: Budget,
    /// Where claims are read.
    pub api: Api,
}

impl Driver {
    /// Prepares claims. Each that cannot be has its error in the answer.
    #[must_use]
    pub fn prepare(&self, claims: &[proto::Claim]) -> HashMap<String, proto::Prepared> {
        let begun = Instant::now();
        let prepare = |asked: &proto::Claim| {
            let prepared = if begun.elapsed() < MOST_TIME {
                self.prepare_one(asked)
            } else {
                Err(anyhow!("no time is left for it in this call"))
            };
            let prepared = prepared.unwrap_or_else(|error| proto::Prepared {
                error: format!("{}/{}: {error:#}", asked.namespace, asked.name),
                devices: Vec::new(),
            });
            (asked.uid.clone(), prepared)
        };
        claims.iter().map(prepare).collect()
    }

    fn prepare_one(&self, asked: &proto::Claim) -> Result<proto::Prepared> {
        claim::check(asked).map_err(anyhow::Error::msg)?;
        let (namespace, name) = (&asked.namespace, &asked.name);
        let path = format!("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}");
        let found = self.api.get(&path)?;
        let found = found.context("the API server has no such claim")?;
        let Owner { driver, node, .. } = &self.owner;
        let claim = claim::read(&found, asked, driver, node).map_err(anyhow::Error::msg)?;
        let _lock = Lock::take(&self.run)?;
        let ask = Asked {
            attachment: None,
            claims: std::slice::from_ref(&claim.uid),
            rates: claim.rates(),
            keys: ("consumedCapacity.egress", "consumedCapacity.ingress"),
        };
        let claims = Claims::new(&self.run);
        // What was prepared may be in force by now, whatever has become of the budget.
        if !claims.has(&claim) {
            // One that cannot be read, or says something else.
            claims.delete(&claim.uid)?;
            budget::check(&self.run, &ask, self.budget)
                .map_err(|error| anyhow!("{} (code {})", error.msg, error.code))?;
            claims.store(&claim)?;
        }
        let Claim { shares, .. } = claim;
        let devices = shares.into_iter().map(|share| proto::Device {
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
        Ok(proto::Prepared {
            devices: devices.collect(),
            error: String::new(),
        })
    }

    /// Forgets claims. One that is not there is no error.
    #[must_use]
    pub fn unprepare(&self, claims: &[proto::Claim]) -> HashMap<String, proto::Unprepared> {
        let forget = |asked: &proto::Claim| -> Result<()> {
            let _lock = Lock::take(&self.run)?;
            Claims::new(&self.run).delete(&asked.uid).map(|_| ())
        };
        let answer = |asked: &proto::Claim| {
            let error = forget(asked).err().map(|error| format!("{error:#}"));
            let error = error.unwrap_or_default();
            (asked.uid.clone(), proto::Unprepared { error })
        };
        claims.iter().map(answer).collect()
    }
}
