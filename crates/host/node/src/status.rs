// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a node has given to whom.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use cni::budget::granted;
use cni::claims::{Claim, Claims};
use cni::config::Budget;
use cni::environment::{Attachment, PodName};
use cni::record::{Record, of_host};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use units::display;

/// What `run` was started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub driver: String,
    pub node: String,
    pub budget: Budget,
}

const FILE: &str = "node.json";

impl Node {
    /// Keeps it for [`status`].
    pub fn store(&self, run: &Path) -> Result<()> {
        host_apply::write(&run.join(FILE), &serde_json::to_string(self)?)
    }

    fn load(run: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(run.join(FILE)).ok()?).ok()
    }
}

/// Prints the budget, what is granted, claims and attachments.
pub fn status(run: &Path, is_json: bool, out: &mut dyn Write) -> Result<()> {
    let node = Node::load(run);
    let all = granted(run)?;
    let claims = Claims::new(run).load(None)?;
    let found = of_host(run)?;
    let place_of = |claim: &Claim| {
        let mut of = found.iter();
        of.find(|(_, _, record)| record.claims.contains(&claim.uid))
    };
    let place = |(network, of, _): &(String, Attachment, Record)| json!({ "network": network, "container": of.container, "device": of.device });
    if is_json {
        let claims = claims.iter().map(|claim| {
            let mut value = serde_json::to_value(claim)?;
            value["attachment"] = place_of(claim).map(place).into();
            Ok(value)
        });
        let attachments = found.iter().map(|one| {
            let (_, _, record) = one;
            let mut value = place(one);
            let rates = record.rates();
            value["pod"] = json!(record.pod_name);
            value["egress_bps"] = rates.egress_bps.into();
            value["ingress_bps"] = rates.ingress_bps.into();
            value["claims"] = json!(record.claims);
            value
        });
        let all = json!({
            "node": node,
            "granted": all,
            "claims": claims.collect::<Result<Vec<Value>>>()?,
            "attachments": attachments.collect::<Vec<Value>>(),
        });
        return writeln!(out, "{all}").context("standard output");
    }
    let budget = node.as_ref().map(|node| node.budget).unwrap_or_default();
    match &node {
        Some(node) => writeln!(out, "node {}, driver {}", node.node, node.driver)?,
        None => writeln!(out, "no agent has run here since this host was started")?,
    }
    let rate = |rate_bps: u64| display::rate(rate_bps as f64);
    for (direction, granted_bps, budget_bps) in [
        ("egress", all.egress_bps, budget.egress_bps),
        ("ingress", all.ingress_bps, budget.ingress_bps),
    ] {
        let left = budget_bps.map(|budget_bps| {
            let left = rate(budget_bps.saturating_sub(granted_bps));
            format!(", budget {}: {left} left", rate(budget_bps))
        });
        let granted = rate(granted_bps);
        writeln!(
            out,
            "{direction}: {granted} granted{}",
            left.unwrap_or_default()
        )?;
    }
    for claim in &claims {
        let rates = claim.rates();
        let place = place_of(claim).map_or("its pod has no network yet".to_owned(), |one| {
            format!("on {} {} {}", one.0, one.1.container, one.1.device)
        });
        writeln!(
            out,
            "claim {}/{} {} egress {} ingress {} {place}",
            claim.namespace,
            claim.name,
            claim.uid,
            rate(rates.egress_bps),
            rate(rates.ingress_bps),
        )?;
    }
    for (network, of, record) in &found {
        let pod = record.pod_name.as_ref().map(PodName::text);
        let rates = record.rates();
        writeln!(
            out,
            "{network} {} {} {} egress {} ingress {}",
            of.container,
            of.device,
            pod.as_deref().unwrap_or("-"),
            rate(rates.egress_bps),
            rate(rates.ingress_bps),
        )?;
    }
    Ok(())
}
