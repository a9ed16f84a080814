// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares what records say with the kernel, and puts classes in force again: a module was loaded
//! anew, or somebody has deleted a qdisc. What the pod has lost by leaving is left to DEL and GC,
//! unless its network namespace is certainly gone.

use std::path::Path;

use anyhow::{Result, bail};
use host_apply::Lock;

use crate::ends::End;
use crate::environment::{Attachment, PodName};
use crate::netns::Netns;
use crate::pacing::Work;
use crate::record::{Record, Records};

/// What was found of an attachment that is not as its record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is in force again.
    Repaired(String),
    /// Its network namespace was gone, so its record is.
    Removed(String),
    /// It is not in force.
    Failed(String),
}

/// Looks at all attachments of this host. Each is looked at under the lock, which others have
/// between two.
pub fn repair(run: &Path, tell: &mut dyn FnMut(Found)) -> Result<()> {
    for records in Records::all(run)? {
        for of in records.attachments()? {
            let _lock = Lock::take(run)?;
            let Some(record) = records.load(&of)? else {
                // It is gone by now, or of another version.
                continue;
            };
            let network = records.network();
            let pod = record.pod_name.as_ref().map(PodName::text);
            let pod = pod.as_deref().unwrap_or("-");
            let who = format!("{network} {} {} {pod}", of.container, of.device);
            match repair_one(&records, &of, &record) {
                Ok(None) => {}
                Ok(Some(Found::Repaired(text))) => tell(Found::Repaired(format!("{who}: {text}"))),
                Ok(Some(Found::Removed(text))) => tell(Found::Removed(format!("{who}: {text}"))),
                Ok(Some(Found::Failed(text))) => tell(Found::Failed(format!("{who}: {text}"))),
                Err(error) => tell(Found::Failed(format!("{who}: {error:#}"))),
            }
        }
    }
    Ok(())
}

fn repair_one(records: &Records, of: &Attachment, record: &Record) -> Result<Option<Found>> {
    let Some(netns) = record.namespace()? else {
        if !is_lost(record)? {
            bail!(
                "{}: no network namespace, expected one: if this is a container, it lacks the \
                 host's folder",
                record.netns
            );
        }
        records.delete(of)?;
        let text = format!("{} is gone", record.netns);
        return Ok(Some(Found::Removed(text)));
    };
    let host = record.host.as_ref().filter(|_| record.ingress.is_some());
    let mut works = works(record, &netns, host)?;
    works.retain(|work| !work.is_done());
    if works.is_empty() {
        return Ok(None);
    }
    let text: String = works.iter().map(Work::text).collect();
    make(&works, records, of, record)?;
    Ok(Some(Found::Repaired(text)))
}

/// Plans what a record says; `host` is its end on the host, if that shall be as it says.
pub(crate) fn works<'a>(
    record: &Record,
    netns: &'a Netns,
    host: Option<&End>,
) -> Result<Vec<Work<'a>>> {
    let pod = netns.within(|| record.pod.now())?;
    let backend = record.known_backend()?;
    let egress = Work::new(Some(netns), &pod, record.egress.as_ref(), backend)?;
    let mut works = vec![egress];
    if let Some(host) = host {
        let ingress = record.ingress.as_ref();
        works.push(Work::new(None, &host.now()?, ingress, backend)?);
    }
    Ok(works)
}

/// Makes what was planned of a record, and keeps it without what was sent: classes may count anew.
pub(crate) fn make(
    works: &[Work<'_>],
    records: &Records,
    of: &Attachment,
    record: &Record,
) -> Result<()> {
    works.iter().try_for_each(|work| work.make().map(|_| ()))?;
    let mut record = record.clone();
    record.forget_sent();
    records.store(of, &record)
}

/// Puts both ends and the record back as they were before a change that has failed.
pub(crate) fn put_back(records: &Records, of: &Attachment, before: &Record) -> Result<()> {
    let netns = before.own_namespace()?;
    let works = works(before, &netns, before.host.as_ref())?;
    make(&works, records, of, before)
}

/// Returns whether a pod has certainly lost its network namespace.
pub(crate) fn is_lost(record: &Record) -> Result<bool> {
    let host = record.host.as_ref().map(End::here).transpose()?.flatten();
    Ok(record.namespace()?.is_none() && host.is_none() && is_gone(&record.netns))
}

/// Returns whether a path of a network namespace says that it is gone: its folder is there, and it
/// is not, or is another namespace. Who sees no folder, or a plain file, may only not see the mount;
/// and while the host's end of a veth is there, so is the pod's.
fn is_gone(path: &str) -> bool {
    let path = Path::new(path);
    let is_folder = path.parent().is_some_and(Path::is_dir);
    let is_another = matches!(path.to_str().map(Netns::open), Some(Ok(Some(_))));
    is_another || (is_folder && path.symlink_metadata().is_err())
}
