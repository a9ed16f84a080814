// SPDX-License-Identifier: MIT OR Apache-2.0
//! A node's budget: what is granted never exceeds it, and only what would is refused.

use std::collections::BTreeMap;
use std::path::Path;

use cni::budget::{Asked, Left, Sum, check, sums};
use cni::config::{Budget, Class, Config, Rates};
use cni::ends::End;
use cni::environment::Attachment;
use cni::error::Error;
use cni::record::{Record, Records};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::config::conf;

const MBIT: u64 = 1_000_000;

fn class(rate_bps: u64) -> Class {
    Class {
        rate_bps,
        // What is guaranteed counts, not what may be borrowed.
        ceil_bps: Some(rate_bps * 5),
        deadline_ns: None,
        txtime: None,
    }
}

fn attachment(container: &str) -> Attachment {
    Attachment {
        container: container.to_owned(),
        device: "eth0".to_owned(),
    }
}

/// A record of these rates in Mbit/s; 0 is a direction that is not paced.
pub fn record(container: &str, egress: u64, ingress: u64) -> Record {
    let of = |rate: u64| (rate > 0).then(|| class(rate * MBIT));
    Record {
        container: container.to_owned(),
        netns: "/nowhere/ns".to_owned(),
        netns_number: 1,
        pod: End {
            name: "eth0".to_owned(),
            index: 2,
            address: vec![2, 0, 0, 0, 0, 1],
        },
        host: None,
        backend: "edt".to_owned(),
        egress: of(egress),
        ingress: of(ingress),
        is_set: false,
        budget: Budget::default(),
        pod_name: None,
        claims: Vec::new(),
        egress_sent: None,
        ingress_sent: None,
    }
}

/// Asks as ADD and `set` do, and keeps what is granted. Rates and budgets are in Mbit/s.
fn ask(
    run: &Path,
    (network, container): (&str, &str),
    (egress, ingress): (u64, u64),
    budget: (Option<u64>, Option<u64>),
) -> Result<(), Error> {
    let of = attachment(container);
    let record = record(container, egress, ingress);
    let asked = Asked {
        attachment: Some((network, &of)),
        claims: &[],
        rates: record.rates(),
        keys: ("psp.rate", "ingress"),
    };
    let bps = |mbit: Option<u64>| mbit.map(|mbit| mbit * MBIT);
    let budget = Budget {
        egress_bps: bps(budget.0),
        ingress_bps: bps(budget.1),
    };
    check(run, &asked, budget)?;
    Records::new(run, network).store(&of, &record).unwrap();
    Ok(())
}

fn drop_it(run: &Path, network: &str, container: &str) {
    let records = Records::new(run, network);
    records.delete(&attachment(container)).unwrap();
}

#[test]
fn what_exceeds_the_budget_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path();
    let both = (Some(100), Some(50));
    ask(run, ("pods", "a"), (60, 20), both).unwrap();
    // All of the rest, of another network.
    ask(run, ("others", "b"), (40, 0), both).unwrap();
    let error = ask(run, ("pods", "c"), (1, 0), both).unwrap_err();
    assert_eq!(error.code, 102);
    assert_eq!(
        error.msg,
        "`psp.rate` is 1000000 bit/s, expected at most 0 bit/s, what is left: `psp.budget` is \
         100000000 bit/s, and other attachments of this host have 100000000 bit/s"
    );
    let error = ask(run, ("pods", "c"), (0, 31), both).unwrap_err();
    assert_eq!(
        error.msg,
        "`ingress` is 31000000 bit/s, expected at most 30000000 bit/s, what is left: \
         `psp.ingress-budget` is 50000000 bit/s, and other attachments of this host have 20000000 \
         bit/s"
    );
    // The same attachment counts once: again, with less, with more than is left.
    ask(run, ("pods", "a"), (60, 20), both).unwrap();
    ask(run, ("pods", "a"), (50, 50), both).unwrap();
    ask(run, ("pods", "a"), (61, 50), both).unwrap_err();
    // The same container in another network is another attachment.
    ask(run, ("others", "a"), (11, 0), both).unwrap_err();
    ask(run, ("others", "a"), (10, 0), both).unwrap();
    drop_it(run, "others", "b");
    ask(run, ("pods", "c"), (40, 0), both).unwrap();
}

#[test]
fn a_smaller_budget_refuses_only_what_grows() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path();
    // Nothing is bounded where nothing names a budget.
    ask(run, ("pods", "a"), (90, 1), (None, None)).unwrap();
    ask(run, ("pods", "b"), (90, 1), (None, Some(2))).unwrap();
    let small = (Some(100), None);
    ask(run, ("pods", "a"), (90, 90), small).unwrap();
    ask(run, ("pods", "a"), (80, 1), small).unwrap();
    ask(run, ("pods", "a"), (81, 1), small).unwrap_err();
    ask(run, ("pods", "c"), (1, 0), small).unwrap_err();
    ask(run, ("pods", "c"), (0, 1), small).unwrap();
}

#[test]
fn a_record_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path();
    ask(run, ("pods", "a"), (1, 0), (None, None)).unwrap();
    let path = Records::new(run, "pods").path(&attachment("a"));
    std::fs::write(&path, "{}").unwrap();
    let error = ask(run, ("pods", "b"), (1, 0), (Some(9), None)).unwrap_err();
    assert_eq!(error.code, 5);
    let name = path.display().to_string();
    assert!(error.msg.starts_with(&name), "{}", error.msg);
    // That of the attachment itself is written anew.
    ask(run, ("pods", "a"), (9, 0), (Some(9), None)).unwrap();
    std::fs::write(&path, "{}").unwrap();
    // Who has no budget does not need it.
    ask(run, ("pods", "b"), (1, 0), (None, None)).unwrap();
}

#[test]
fn a_record_of_the_version_before_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path();
    ask(run, ("pods", "a"), (1, 0), (None, None)).unwrap();
    let records = Records::new(run, "pods");
    let path = records.path(&attachment("a"));
    let mut value: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for key in ["budget", "pod_name", "claims"] {
        value.as_object_mut().unwrap().remove(key).unwrap();
    }
    std::fs::write(&path, value.to_string()).unwrap();
    let read = records.load(&attachment("a")).unwrap();
    assert_eq!(read, Some(record("a", 1, 0)));
}

#[test]
fn what_is_left_is_shown() {
    let of = |egress_bps, ingress_bps| Budget {
        egress_bps,
        ingress_bps,
    };
    let rates = Rates {
        egress_bps: 110,
        ingress_bps: 110,
    };
    let budgets = [
        of(Some(200), None),
        of(Some(100), None),
        of(Some(200), None),
    ];
    let (egress, ingress) = sums(rates, budgets.into_iter());
    let left = |budget_bps, left_bps| Left {
        budget_bps,
        left_bps,
    };
    let budgets = vec![left(100, 0), left(200, 90)];
    assert_eq!(
        egress,
        Sum {
            granted_bps: 110,
            budgets
        }
    );
    let budgets = Vec::new();
    assert_eq!(
        ingress,
        Sum {
            granted_bps: 110,
            budgets
        }
    );
}

#[test]
fn budgets_of_a_configuration() {
    let read = |psp: Value| {
        let conf = conf("1.1.0", psp, json!({ "egressRate": 8000 }));
        Config::read(conf.to_string().as_bytes())
            .unwrap()
            .wanted(Rates::default())
    };
    let budget = |egress_bps, ingress_bps| Budget {
        egress_bps,
        ingress_bps,
    };
    for (psp, found) in [
        (json!({}), budget(None, None)),
        (
            json!({ "budget": "9gbit" }),
            budget(Some(9_000 * MBIT), None),
        ),
        (
            json!({ "budget": "10tbit", "ingress-budget": "1bit" }),
            budget(Some(10_000_000 * MBIT), Some(1)),
        ),
        (
            json!({ "budget": null, "rate": "1mbit" }),
            budget(None, None),
        ),
    ] {
        assert_eq!(read(psp).unwrap().budget, found);
    }
    for (key, value) in [
        ("budget", json!("0bit")),
        ("budget", json!(9)),
        ("ingress-budget", json!("11tbit")),
        ("ingress-budget", json!("much")),
    ] {
        let error = read(json!({ key: value })).unwrap_err();
        let expected = format!("`psp.{key}` is {value}, expected a rate above 0");
        assert!(error.msg.starts_with(&expected), "{}", error.msg);
        assert_eq!(error.code, 7);
    }
    let error = read(json!({ "budge": "1gbit" })).unwrap_err();
    assert!(error.msg.contains("did you mean `budget`"), "{}", error.msg);
    assert_eq!(
        read(json!({})).unwrap().keys.0,
        "runtimeConfig.bandwidth.egressRate"
    );
}

#[derive(Clone, Debug)]
enum Step {
    Ask(usize, usize, u64, u64),
    Drop(usize, usize),
}

const NETWORKS: [&str; 2] = ["pods", "storage"];
const CONTAINERS: [&str; 4] = ["a", "b", "c", "d"];

fn step() -> impl Strategy<Value = Step> {
    let (networks, containers) = (0..NETWORKS.len(), 0..CONTAINERS.len());
    prop_oneof![
        3 => (networks.clone(), containers.clone(), 0u64..60, 0u64..60)
            .prop_map(|(network, container, out, back)| Step::Ask(network, container, out, back)),
        1 => (networks, containers).prop_map(|(network, container)| Step::Drop(network, container)),
    ]
}

proptest! {
    #![proptest_config(testkit::properties())]

    /// ADD, ADD again, `set` and DEL in any order: the sum of each direction stays within its budget,
    /// and what is refused would have exceeded one.
    #[test]
    fn the_budget_holds(
        steps in prop::collection::vec(step(), 1..40),
        out_budget in 1u64..150,
        back_budget in prop::option::of(1u64..150),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        let mut have: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
        let fits = |have: &BTreeMap<(usize, usize), (u64, u64)>| {
            let out: u64 = have.values().map(|rates| rates.0).sum();
            let back: u64 = have.values().map(|rates| rates.1).sum();
            out <= out_budget && back_budget.is_none_or(|budget| back <= budget)
        };
        for step in steps {
            match step {
                Step::Drop(network, container) => {
                    drop_it(run, NETWORKS[network], CONTAINERS[container]);
                    have.remove(&(network, container));
                }
                Step::Ask(network, container, out, back) => {
                    let mut then = have.clone();
                    then.insert((network, container), (out, back));
                    let who = (NETWORKS[network], CONTAINERS[container]);
                    let answer = ask(run, who, (out, back), (Some(out_budget), back_budget));
                    prop_assert_eq!(answer.is_ok(), fits(&then), "{:?}: {:?}", step, answer);
                    if answer.is_ok() {
                        have = then;
                    }
                }
            }
            prop_assert!(fits(&have));
        }
    }
}
