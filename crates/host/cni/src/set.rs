// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a person asks for, with arguments: which attachments are paced, and other rates for one of
//! them while its pod runs.

use std::io::Write;

use anyhow::{Context, Result, anyhow, bail, ensure};
use host_apply::{Lock, folder};
use host_config::limits::{RATES_BPS, rate_expected};
use serde_json::{Value, json};
use units::display;
use units::nearest::hint;
use units::parse;

use crate::budget::{self, Asked, Sum};
use crate::config::Class;
use crate::environment::{Attachment, PodName};
use crate::error::Error;
use crate::record::{Record, Records, of_host};
use crate::repair::{make, put_back, works};

const USAGE: &str = "usage: pspacer-cni list [--json]\n       pspacer-cni set CONTAINER DEVICE \
                     [egress=RATE] [ingress=RATE]\nA runtime starts it without arguments \
                     (docs/use/pods.md).";
const DIRECTIONS: &[&str] = &["egress", "ingress"];

/// Rates that are asked for, in bit/s.
#[derive(Default)]
struct Rates {
    egress_bps: Option<u64>,
    ingress_bps: Option<u64>,
}

/// Does what arguments ask for.
///
/// # Errors
/// What is wrong with them, or keeps a device from being paced.
pub fn run(args: &[String], out: &mut dyn Write) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["list"] => list(out, false),
        ["list", "--json"] => list(out, true),
        ["set", container, device, ref rates @ ..] if !rates.is_empty() => {
            set(container, device, &read(rates)?)
        }
        ["--help" | "-h"] => Ok(writeln!(out, "{USAGE}")?),
        _ => bail!("{USAGE}"),
    }
}

fn read(words: &[&str]) -> Result<Rates> {
    let mut rates = Rates::default();
    for word in words {
        let (direction, rate) = word.split_once('=').unwrap_or((word, ""));
        let place = match direction {
            "egress" => &mut rates.egress_bps,
            "ingress" => &mut rates.ingress_bps,
            _ => bail!(
                "{word}: expected a direction{}",
                hint(direction, DIRECTIONS)
            ),
        };
        let rate_bps = parse::rate_bps(rate);
        let rate_bps = rate_bps.with_context(|| format!("{word}: expected {}", parse::RATE))?;
        if let Some(expected) = rate_expected(rate_bps, &RATES_BPS) {
            bail!("{word}: expected {expected}");
        }
        *place = Some(rate_bps);
    }
    Ok(rates)
}

fn list(out: &mut dyn Write, is_json: bool) -> Result<()> {
    let run = folder()?;
    let found = of_host(&run)?;
    let budgets = found.iter().map(|(_, _, record)| record.budget);
    let (egress, ingress) = budget::sums(budget::granted(&run)?, budgets);
    if is_json {
        let attachments: Vec<Value> = found.iter().map(entry).collect();
        let all = json!({ "attachments": attachments, "egress": egress, "ingress": ingress });
        return Ok(writeln!(out, "{all}")?);
    }
    for (network, of, record) in &found {
        let rate = |class: &Option<Class>| match class {
            Some(class) => display::rate(class.rate_bps as f64),
            None => "-".to_owned(),
        };
        writeln!(
            out,
            "{network} {} {} {} backend {} egress {} ingress {}{}{}",
            of.container,
            of.device,
            record
                .pod_name
                .as_ref()
                .map_or_else(|| "-".to_owned(), PodName::text),
            record.backend,
            rate(&record.egress),
            rate(&record.ingress),
            if record.claims.is_empty() {
                ""
            } else {
                " (claim)"
            },
            if record.is_set { " (set)" } else { "" }
        )?;
    }
    for (direction, sum) in [("egress", &egress), ("ingress", &ingress)] {
        if !found.is_empty() {
            writeln!(out, "{}", line(direction, sum))?;
        }
    }
    Ok(())
}

/// Returns an attachment for programs.
fn entry((network, of, record): &(String, Attachment, Record)) -> Value {
    let rate_bps = |class: &Option<Class>| class.as_ref().map(|class| class.rate_bps);
    json!({
        "network": network,
        "container": of.container,
        "device": of.device,
        "pod": record.pod_name,
        "host_device": record.host.as_ref().map(|host| &host.name),
        "backend": record.backend,
        "egress_bps": rate_bps(&record.egress),
        "ingress_bps": rate_bps(&record.ingress),
        "is_set": record.is_set,
        "claims": record.claims,
    })
}

/// Returns what is granted in a direction, for people.
fn line(direction: &str, sum: &Sum) -> String {
    let rate = |rate_bps: u64| display::rate(rate_bps as f64);
    let budgets = sum.budgets.iter().map(|budget| {
        let (all, left) = (rate(budget.budget_bps), rate(budget.left_bps));
        format!(", budget {all}: {left} left")
    });
    let budgets: String = budgets.collect();
    format!("{direction}: {} granted{budgets}", rate(sum.granted_bps))
}

fn set(container: &str, device: &str, rates: &Rates) -> Result<()> {
    let run = folder()?;
    let _lock = Lock::take(&run)?;
    let mut found: Vec<(Records, Attachment, Record)> = Vec::new();
    for records in Records::all(&run)? {
        for of in records.attachments()? {
            let is_it = of.container.starts_with(container) && of.device == device;
            if let (true, Some(record)) = (is_it, records.load(&of)?) {
                let network = Records::new(&run, &records.network());
                found.push((network, of, record));
            }
        }
    }
    ensure!(
        found.len() <= 1,
        "{container} {device}: expected one attachment, {} begin so",
        found.len()
    );
    let Some((records, of, mut record)) = found.pop() else {
        bail!(
            "{container} {device}: expected an attachment that ADD has paced; `pspacer-cni list` \
             shows them"
        );
    };
    let before = record.clone();
    let change = |class: &mut Option<Class>, rate_bps: Option<u64>, name: &str| match (
        class.as_mut(),
        rate_bps,
    ) {
        (_, None) => Ok(()),
        (None, Some(_)) => bail!("{name}: expected a direction that ADD has paced"),
        (Some(class), Some(rate_bps)) => {
            class.rate_bps = rate_bps;
            class.ceil_bps = class.ceil_bps.map(|ceil_bps| ceil_bps.max(rate_bps));
            Ok(())
        }
    };
    change(&mut record.egress, rates.egress_bps, "egress")?;
    change(&mut record.ingress, rates.ingress_bps, "ingress")?;
    let network = records.network();
    let asked = Asked {
        attachment: Some((&network, &of)),
        claims: &record.claims,
        rates: record.rates(),
        keys: ("egress", "ingress"),
    };
    budget::check(&run, &asked, record.budget).map_err(|error| {
        let Error { code, msg, .. } = error;
        anyhow!("{msg} (code {code})")
    })?;
    record.is_set = true;
    record.forget_sent();
    let netns = record.own_namespace()?;
    let works = works(&record, &netns, record.host.as_ref())?;
    records.store(&of, &record.while_made(Some(&before)))?;
    make(&works, &records, &of, &record).map_err(|error| match put_back(&records, &of, &before) {
        Ok(()) => error,
        Err(left) => anyhow!("{error:#}; and not all of it is taken back: {left:#}"),
    })
}
