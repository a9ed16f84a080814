// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each command of CNI does.

use std::io::Write;

use anyhow::{Context, Result as AnyResult};
use host_apply::{CALL_WAIT, Lock, choose, folder};
use host_config::Backend;
use serde_json::Value;

use crate::budget::{self, Asked};
use crate::claims::{self, Claim};
use crate::config::{Class, Config, Rates, Wanted};
use crate::ends::{End, Ends, find};
use crate::environment::{Attachment, PodName, pod_uid};
use crate::error::{DIFFERS, Error, INVALID_CONFIGURATION, IO_FAILURE, NOT_AVAILABLE};
use crate::netns::{Netns, within_new};
use crate::pacing::{Work, remove};
use crate::previous;
use crate::record::{Record, Records};
use crate::repair::{is_lost, put_back};

type Variable<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

const NETNS: &str = "CNI_NETNS";

/// What ADD and CHECK are given, checked.
struct Call {
    config: Config,
    attachment: Attachment,
    wanted: Wanted,
    /// The result, as it is passed on.
    passed: Value,
    path: String,
    netns: Netns,
}

impl Call {
    fn read(input: &[u8], variable: Variable<'_>) -> Result<Self, Error> {
        let config = Config::read(input)?;
        let attachment = Attachment::read(variable)?;
        let wanted = config.wanted(Rates::default())?;
        let previous = config.previous().ok_or_else(|| {
            let expected = "one: this plugin stands behind that of a network in a list";
            Error::lacks("prevResult", expected)
        })?;
        let passed = previous::check(previous, config.version, &attachment.device)?;
        let path = variable(NETNS).filter(|path| !path.is_empty());
        let expected = "the path of a network namespace that is not the host's";
        let wrong = || Error::environment(NETNS, path.as_deref(), expected);
        let netns = Netns::open(path.as_deref().unwrap_or_default());
        let netns = netns.map_err(|error| Error::not_paced(&error))?;
        let netns = netns.ok_or_else(wrong)?;
        if netns.is_own().map_err(|error| Error::not_paced(&error))? {
            return Err(wrong());
        }
        Ok(Self {
            path: path.clone().unwrap_or_default(),
            config,
            attachment,
            wanted,
            passed,
            netns,
        })
    }

    /// Finds the device, and its end on the host if that is needed.
    fn ends(&self, ingress: Option<&Class>) -> Result<Ends, Error> {
        let device = &self.attachment.device;
        let ends = find(&self.netns, device).map_err(|error| Error::not_paced(&error))?;
        let ends = ends.ok_or_else(|| {
            let expected = format!("a device of the network namespace {}", self.path);
            Error::environment("CNI_IFNAME", Some(device), &expected)
        })?;
        match (ingress, &ends.host) {
            (Some(class), None) => {
                let kind = ends.kind.as_deref().unwrap_or("no virtual device");
                let msg = format!(
                    "`runtimeConfig.bandwidth.ingressRate` is {}, expected none or 0: what a pod \
                     receives is paced on the end of a veth that is in the network namespace of this \
                     call, and `{device}` is {kind}",
                    class.rate_bps
                );
                Err(Error::new(INVALID_CONFIGURATION, msg))
            }
            _ => Ok(ends),
        }
    }

    fn works<'a>(
        netns: &'a Netns,
        ends: &Ends,
        (egress, ingress): (Option<&Class>, Option<&Class>),
        backend: Backend,
    ) -> AnyResult<Vec<Work<'a>>> {
        let mut works = vec![Work::new(Some(netns), &ends.pod, egress, backend)?];
        if let Some(host) = &ends.host {
            works.push(Work::new(None, host, ingress, backend)?);
        }
        Ok(works)
    }
}

/// Keeps all others from changing something at the same time.
fn locked(network: &str) -> Result<(Records, Lock), Error> {
    let lock = || -> AnyResult<(Records, Lock)> {
        let run = folder()?;
        let lock = Lock::take_within(&run, CALL_WAIT)?;
        Ok((Records::new(&run, network), lock))
    };
    lock().map_err(|error| Error::new(IO_FAILURE, format!("{error:#}")))
}

fn io_failure(error: &anyhow::Error) -> Error {
    Error::new(IO_FAILURE, format!("{error:#}"))
}

/// Paces an attachment. Returns the result of the plugins before.
///
/// # Errors
/// Bad input, before anything changes; what keeps a device from being paced.
pub fn add(input: &[u8], variable: Variable<'_>, log: &mut dyn Write) -> Result<Value, Error> {
    let (pod_name, pod_uid) = (PodName::read(variable)?, pod_uid(variable)?);
    let call = Call::read(input, variable)?;
    let (records, _lock) = locked(&call.config.name)?;
    let of = &call.attachment;
    let run = folder().map_err(|error| io_failure(&error))?;
    let network = call.config.name.as_str();
    let claims = pod_uid.map(|uid| claims::of_attachment(&run, (network, of), &uid));
    let claims = claims.transpose().map_err(|error| io_failure(&error))?;
    let claims = claims.unwrap_or_default();
    let mut claimed = Rates::default();
    claims.iter().for_each(|claim| claimed.add(claim.rates()));
    let Wanted {
        backend,
        egress,
        ingress,
        keys,
        budget,
        notes,
    } = &call.config.wanted(claimed)?;
    let claims: Vec<String> = claims.into_iter().map(|Claim { uid, .. }| uid).collect();
    let before = records.load(of).map_err(|error| io_failure(&error))?;
    if egress.is_none() && ingress.is_none() && before.is_none() {
        return Ok(call.passed);
    }
    let ends = call.ends(ingress.as_ref())?;
    let asked = Asked {
        attachment: Some((network, of)),
        claims: &claims,
        rates: Rates::new(egress.as_ref(), ingress.as_ref()),
        keys: *keys,
    };
    budget::check(&run, &asked, *budget)?;
    let (backend, why) = choose(*backend).map_err(|error| Error::not_paced(&error))?;
    let classes = (egress.as_ref(), ingress.as_ref());
    let works = Call::works(&call.netns, &ends, classes, backend);
    let works = works.map_err(|error| Error::not_paced(&error))?;
    let mut record = Record {
        container: of.container.clone(),
        netns: call.path.clone(),
        netns_number: call.netns.number,
        pod: ends.pod.clone(),
        host: ends.host.clone(),
        backend: backend.word().to_owned(),
        egress: egress.clone(),
        ingress: ingress.clone(),
        is_set: false,
        budget: *budget,
        pod_name,
        claims,
        egress_sent: None,
        ingress_sent: None,
    };
    let store = |record: &Record| {
        records
            .store(of, record)
            .map_err(|error| io_failure(&error))
    };
    store(&record.while_made(before.as_ref()))?;
    let mut said: Vec<String> = why.into_iter().chain(notes.iter().cloned()).collect();
    let mut make = || {
        for work in &works {
            said.extend(work.make().map_err(|error| Error::not_paced(&error))?);
        }
        if egress.is_none() && ingress.is_none() {
            return records.delete(of).map_err(|error| io_failure(&error));
        }
        // What cannot be read now CHECK has no reading to compare with.
        let _ = counted(&works, &mut record);
        store(&record)
    };
    if let Err(mut error) = make() {
        let taken_back = match &before {
            None => take_away(&records, of, &record, Some(&call.netns)),
            Some(before) => put_back(&records, of, before),
        };
        if let Err(left) = taken_back {
            error.details = format!("and not all of it is taken back: {left:#}");
        }
        return Err(error);
    }
    said.dedup();
    for line in said {
        // A runtime that does not listen gets its result all the same.
        let _ = writeln!(log, "pspacer-cni: {} {}: {line}", of.container, of.device);
    }
    Ok(call.passed)
}

/// Compares what is there with what the configuration says, or a claim or `set` in its place.
pub fn check(input: &[u8], variable: Variable<'_>) -> Result<(), Error> {
    let call = Call::read(input, variable)?;
    let (records, _lock) = locked(&call.config.name)?;
    let of = &call.attachment;
    let mut record = records.load(of).map_err(|error| io_failure(&error))?;
    let (mut egress, mut ingress) = (call.wanted.egress.as_ref(), call.wanted.ingress.as_ref());
    let is_of_record = |record: &&Record| record.is_set || !record.claims.is_empty();
    if let Some(record) = record.as_ref().filter(is_of_record) {
        (egress, ingress) = (record.egress.as_ref(), record.ingress.as_ref());
    }
    let (egress, ingress) = (egress.cloned(), ingress.cloned());
    let (egress, ingress) = (egress.as_ref(), ingress.as_ref());
    let ends = call.ends(ingress)?;
    // What ADD chose stays right, also if the module was loaded since then.
    let made = record
        .as_ref()
        .and_then(|record| Backend::from_word(&record.backend));
    let backend = call.wanted.backend.or(made);
    let (backend, _) = choose(backend).map_err(|error| Error::not_compared(&error))?;
    let works = Call::works(&call.netns, &ends, (egress, ingress), backend);
    let works = works.map_err(|error| Error::not_compared(&error))?;
    let left: Vec<String> = works
        .iter()
        .filter(|work| !work.is_done())
        .map(Work::text)
        .collect();
    if left.is_empty() {
        let Some(record) = &mut record else {
            return Ok(());
        };
        let wrong = counted(&works, record)?;
        records
            .store(of, record)
            .map_err(|error| io_failure(&error))?;
        return wrong.map_or(Ok(()), |msg| Err(Error::new(DIFFERS, msg)));
    }
    Err(Error {
        details: left.concat(),
        ..Error::new(
            DIFFERS,
            format!(
                "`{}` of {} is not paced as the configuration says; ADD would change what \
                 `details` lists",
                of.device, of.container
            ),
        )
    })
}

/// Reads what each device has sent, beside what the record knows. Returns what is wrong since then: a
/// qdisc or class was put back by others, or frames left past it, beyond the tolerance of
/// [`tcpsp::account`]. The record knows the new reading.
fn counted(works: &[Work<'_>], record: &mut Record) -> Result<Option<String>, Error> {
    let mut wrong = None;
    let known = [&mut record.egress_sent, &mut record.ingress_sent];
    for (work, known) in works.iter().zip(known) {
        let now = work.sent().map_err(|error| Error::not_paced(&error))?;
        let since = now.zip(*known).and_then(|(now, then)| {
            if now.began_anew_since(&then) {
                return Some(format!(
                    "`{}` has another qdisc or class than when ADD or CHECK looked last: it counted \
                     {} bytes and {} frames then, and has {} and {} now",
                    work.name(),
                    then.qdisc_bytes,
                    then.class_frames,
                    now.qdisc_bytes,
                    now.class_frames
                ));
            }
            let account = now.since(&then)?;
            (account.bypassed().frames > 0).then(|| {
                format!(
                    "`{}` sent {} frames since ADD or CHECK looked last, expected no more than the \
                     {} that its class counted, and {}: some leave past it",
                    work.name(),
                    account.device.frames,
                    account.counted.frames,
                    account.tolerance_frames
                )
            })
        });
        *known = now;
        wrong = wrong.or(since);
    }
    Ok(wrong)
}

/// Takes away what there is of an attachment. Whatever is gone already is no error.
///
/// # Errors
/// Bad input, or the kernel's refusal.
pub fn del(input: &[u8], variable: Variable<'_>) -> Result<(), Error> {
    let config = Config::read(input)?;
    let of = Attachment::read(variable)?;
    let path = variable(NETNS).filter(|path| !path.is_empty());
    let (records, _lock) = locked(&config.name)?;
    let refused = |error: anyhow::Error| Error::not_paced(&error);
    let netns = path.as_deref().map(Netns::open).transpose();
    let netns = netns.map_err(refused)?.flatten();
    match records.load(&of).map_err(|error| io_failure(&error))? {
        Some(record) => {
            // A runtime that names none may have left it there.
            let netns = match netns {
                Some(netns) => Some(netns),
                None => Netns::open(&record.netns).map_err(refused)?,
            };
            take_away(&records, &of, &record, netns.as_ref()).map_err(refused)
        }
        None => {
            if let Some(netns) = netns {
                if !netns.is_own().map_err(refused)? {
                    unrecorded(&of, &netns).map_err(refused)?;
                }
            }
            // One that could not be read goes, too.
            records.delete(&of).map_err(|error| io_failure(&error))
        }
    }
}

/// Takes away what no record tells of.
fn unrecorded(of: &Attachment, netns: &Netns) -> AnyResult<()> {
    let Some(ends) = find(netns, &of.device)? else {
        return Ok(());
    };
    remove(Some(netns), &ends.pod)?;
    ends.host.map_or(Ok(()), |host| remove(None, &host))
}

/// Takes away what a record tells of, and the record.
fn take_away(
    records: &Records,
    of: &Attachment,
    record: &Record,
    netns: Option<&Netns>,
) -> AnyResult<()> {
    // The path may be another namespace's by now.
    if let Some(netns) = netns.filter(|netns| netns.number == record.netns_number) {
        remove(Some(netns), &record.pod)?;
    }
    if let Some(host) = &record.host {
        remove(None, host)?;
    }
    records.delete(of)
}

/// Takes away what is of no valid attachment of the network. Where the caller does not say which are,
/// as `cnitool gc` does not, it is what has lost its network namespace.
///
/// # Errors
/// Bad input, or the kernel's first refusal: all others are taken away all the same.
pub fn gc(input: &[u8]) -> Result<(), Error> {
    let config = Config::read(input)?;
    let valid = config.valid()?;
    let (records, _lock) = locked(&config.name)?;
    let mut first: Option<Error> = None;
    let known = records.attachments().map_err(|error| io_failure(&error))?;
    let is_kept = |of: &Attachment| valid.as_ref().is_some_and(|valid| valid.contains(of));
    for of in known.iter().filter(|of| !is_kept(of)) {
        let gone = || -> AnyResult<()> {
            match records.load(of)? {
                Some(record) => {
                    if valid.is_none() && !is_lost(&record)? {
                        return Ok(());
                    }
                    take_away(&records, of, &record, record.namespace()?.as_ref())
                }
                None => records.delete(of),
            }
        };
        if let Err(error) = gone().with_context(|| format!("{} {}", of.container, of.device)) {
            first.get_or_insert(Error::not_paced(&error));
        }
    }
    first.map_or(Ok(()), Err)
}

/// Says whether ADD would work: paces the loopback of a network namespace that nobody else sees.
pub fn status(input: &[u8]) -> Result<(), Error> {
    let config = Config::read(input)?;
    let chosen = choose(config.backend()?);
    let chosen = chosen.map_err(|error| Error::new(NOT_AVAILABLE, format!("{error:#}")));
    let (backend, why) = chosen?;
    let not_available = |error: anyhow::Error| Error {
        details: why.clone().unwrap_or_default(),
        ..Error::new(
            NOT_AVAILABLE,
            format!("backend {} cannot pace: {error:#}", backend.word()),
        )
    };
    let (_, _lock) =
        locked(&config.name).map_err(|error| not_available(anyhow::Error::msg(error.msg)))?;
    let class = Class {
        rate_bps: 1_000_000,
        ceil_bps: None,
        deadline_ns: None,
        txtime: None,
    };
    let trial = || {
        let end = End {
            name: "lo".to_owned(),
            index: 1,
            address: Vec::new(),
        };
        Work::new(None, &end, Some(&class), backend)?.make()
    };
    within_new(trial).map(|_| ()).map_err(not_available)
}
