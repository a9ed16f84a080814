// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kubelet asks of a driver: claims become files for ADD before a pod has a network, and
//! go when it has none any more.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use cni::budget::{Asked, Granted, LeftOut};
use cni::claims::{Claim, Claims};
use cni::config::Budget;
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
    /// Prepares claims. Each that cannot be has its error in the answer. What is granted is read once:
    /// O(claims * requests to the API server + records + claims of the node).
    #[must_use]
    pub fn prepare(&self, claims: &[proto::Claim]) -> HashMap<String, proto::Prepared> {
        let begun = Instant::now();
        let read = |asked| {
            if begun.elapsed() < MOST_TIME {
                self.read(asked)
            } else {
                Err(anyhow!("no time is left for it in this call"))
            }
        };
        let found: Vec<Result<Claim>> = claims.iter().map(read).collect();
        let mut granted = Err(anyhow!("nothing was read"));
        let lock = if found.iter().any(Result::is_ok) {
            let lock = Lock::take_within(&self.run, CALL_WAIT);
            let uids: Vec<String> = claims.iter().map(|claim| claim.uid.clone()).collect();
            let left_out = LeftOut {
                attachments: None,
                claims: &uids,
            };
            granted = Granted::read(&self.run, left_out)
                .map_err(|error| anyhow!("{} (code {})", error.msg, error.code));
            Some(lock)
        } else {
            None
        };
        let answers = claims.iter().zip(found).map(|(asked, claim)| {
            let prepared = claim.and_then(|claim| {
                if let Some(Err(error)) = &lock {
                    bail!("{error:#}");
                }
                let granted = granted.as_mut().map_err(|error| anyhow!("{error:#}"))?;
                self.grant(claim, granted)
            });
            let prepared = prepared.unwrap_or_else(|error| proto::Prepared {
                error: format!("{}/{}: {error:#}", asked.namespace, asked.name),
                devices: Vec::new(),
            });
            (asked.uid.clone(), prepared)
        });
        answers.collect()
    }

    /// Reads what the scheduler gave to a claim.
    fn read(&self, asked: &proto::Claim) -> Result<Claim> {
        claim::check(asked).map_err(anyhow::Error::msg)?;
        let (namespace, name) = (&asked.namespace, &asked.name);
        let path = format!("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}");
        let found = self.api.get(&path)?;
        let found = found.context("the API server has no such claim")?;
        let Owner { driver, node, .. } = &self.owner;
        claim::read(&found, asked, driver, node).map_err(anyhow::Error::msg)
    }

    /// Keeps a claim, if that is within the budget. One that was kept stays until then.
    fn grant(&self, claim: Claim, granted: &mut Granted) -> Result<proto::Prepared> {
        let asked = Asked {
            attachment: None,
            claims: std::slice::from_ref(&claim.uid),
            rates: claim.rates(),
            keys: ("consumedCapacity.egress", "consumedCapacity.ingress"),
        };
        let claims = Claims::new(&self.run);
        // What was prepared may be in force by now, whatever has become of the budget.
        if !claims.has(&claim) {
            granted
                .check(&asked, self.budget)
                .map_err(|error| anyhow!("{} (code {})", error.msg, error.code))?;
            claims.store(&claim)?;
            granted.add(&claim);
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
            let _lock = Lock::take_within(&self.run, CALL_WAIT)?;
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
