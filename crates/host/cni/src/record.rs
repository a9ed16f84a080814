// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was set up for an attachment: a file for each, written before anything changes, so that DEL
//! and GC find all of it whatever the runtime still knows. It does not outlive a boot, and nor does
//! what it says.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use host_config::Backend;
use serde::{Deserialize, Serialize};

use tcpsp::account::Sent;

use crate::config::{Budget, Class, Rates};
use crate::ends::End;
use crate::environment::{Attachment, PodName};
use crate::netns::Netns;

/// The folder below that of `pspacer`.
const FOLDER: &str = "cni";
const ENDING: &str = "json";

/// What was set up for an attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The container's id.
    pub container: String,
    /// The path of its network namespace, and its number.
    pub netns: String,
    pub netns_number: u64,
    /// The device in the pod.
    pub pod: End,
    /// The end on the host.
    pub host: Option<End>,
    pub backend: String,
    /// What the pod sends.
    pub egress: Option<Class>,
    /// What is sent to the pod.
    pub ingress: Option<Class>,
    /// Whether `set` has changed the rates: they are not those of the configuration then.
    pub is_set: bool,
    /// The node's budget as the configuration had it: `set` keeps it, too.
    #[serde(default)]
    pub budget: Budget,
    /// The pod, if the runtime names it.
    #[serde(default)]
    pub pod_name: Option<PodName>,
    /// The uids of the pod's claims that hold for it.
    #[serde(default)]
    pub claims: Vec<String>,
    /// What the pod's device had sent when ADD or CHECK looked last.
    #[serde(default)]
    pub egress_sent: Option<Sent>,
    /// The same of its end on the host.
    #[serde(default)]
    pub ingress_sent: Option<Sent>,
}

impl Record {
    /// Returns what is granted in each direction.
    pub fn rates(&self) -> Rates {
        Rates::new(self.egress.as_ref(), self.ingress.as_ref())
    }

    /// Forgets what was sent: classes may count anew.
    pub fn forget_sent(&mut self) {
        (self.egress_sent, self.ingress_sent) = (None, None);
    }

    /// Returns the pod's network namespace, if it is still that.
    pub fn namespace(&self) -> Result<Option<Netns>> {
        let found = Netns::open(&self.netns)?;
        Ok(found.filter(|netns| netns.number == self.netns_number))
    }

    /// The same of a pod that has to be there.
    ///
    /// # Errors
    /// That it is gone, or cannot be looked at.
    pub fn own_namespace(&self) -> Result<Netns> {
        let gone = || format!("{}: the network namespace is gone", self.netns);
        self.namespace()?.with_context(gone)
    }

    pub fn known_backend(&self) -> Result<Backend> {
        Backend::from_word(&self.backend)
            .with_context(|| format!("backend {}: expected one that is known", self.backend))
    }

    /// Returns what holds while this is made of what there was: in each direction the greater rate.
    /// If that is cut short, nothing that may be in force is missing in a budget.
    pub fn while_made(&self, before: Option<&Self>) -> Self {
        let greater = |new: &Option<Class>, old: Option<&Class>| match (new, old) {
            (Some(new), Some(old)) if old.rate_bps > new.rate_bps => Some(old.clone()),
            (None, Some(old)) => Some(old.clone()),
            _ => new.clone(),
        };
        Self {
            egress: greater(&self.egress, before.and_then(|old| old.egress.as_ref())),
            ingress: greater(&self.ingress, before.and_then(|old| old.ingress.as_ref())),
            ..self.clone()
        }
    }
}

/// The records of a network.
pub struct Records {
    folder: PathBuf,
}

impl Records {
    /// Those of a network; `run` is the folder of `pspacer`.
    pub fn new(run: &Path, network: &str) -> Self {
        let folder = run.join(FOLDER).join(network);
        Self { folder }
    }

    /// Those of all networks.
    pub fn all(run: &Path) -> Result<Vec<Self>> {
        let networks = entries(&run.join(FOLDER))?.into_iter();
        Ok(networks.map(|folder| Self { folder }).collect())
    }

    /// Returns the network's name.
    pub fn network(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Returns the path of the file of an attachment.
    pub fn path(&self, of: &Attachment) -> PathBuf {
        let Attachment { container, device } = of;
        self.folder.join(format!("{container}:{device}.{ENDING}"))
    }

    /// Returns that of an attachment, if there is one. One that cannot be read is none: it is of
    /// another version, or was written by hand.
    pub fn load(&self, of: &Attachment) -> Result<Option<Record>> {
        let path = self.path(of);
        match fs::read(&path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    /// Writes that of an attachment.
    pub fn store(&self, of: &Attachment, record: &Record) -> Result<()> {
        let folder = self.folder.display();
        fs::create_dir_all(&self.folder).with_context(|| folder.to_string())?;
        host_apply::write(&self.path(of), &serde_json::to_string(record)?)
    }

    /// Deletes that of an attachment, and the folder with the last one.
    pub fn delete(&self, of: &Attachment) -> Result<()> {
        let path = self.path(of);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| path.display().to_string());
            }
            _ => {}
        }
        // It is not empty while another is there.
        let _ = fs::remove_dir(&self.folder);
        Ok(())
    }

    /// Returns the attachments that have one.
    pub fn attachments(&self) -> Result<Vec<Attachment>> {
        let paths = entries(&self.folder)?.into_iter();
        let attachments = paths.filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            let name = name.strip_suffix(ENDING)?.strip_suffix('.')?;
            let (container, device) = name.split_once(':')?;
            Some(Attachment {
                container: container.to_owned(),
                device: device.to_owned(),
            })
        });
        Ok(attachments.collect())
    }
}

/// Returns all of this host that can be read, with the networks that they are of.
pub fn of_host(run: &Path) -> Result<Vec<(String, Attachment, Record)>> {
    let mut found = Vec::new();
    for records in Records::all(run)? {
        for of in records.attachments()? {
            if let Some(record) = records.load(&of)? {
                found.push((records.network(), of, record));
            }
        }
    }
    Ok(found)
}

/// Returns what is in a folder, by name; nothing, if there is none.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(folder)?;
        entries.map(|entry| Ok(entry?.path())).collect()
    };
    match read() {
        Ok(mut paths) => {
            paths.sort();
            Ok(paths)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| folder.display().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_in_force_counts_while_it_changes() {
        let class = |rate_bps| Class {
            rate_bps,
            ceil_bps: None,
            deadline_ns: None,
            txtime: None,
        };
        let record = |egress: Option<u64>, ingress: Option<u64>| -> Record {
            let text = serde_json::json!({
                "container": "a", "netns": "/n", "netns_number": 1,
                "pod": { "name": "eth0", "index": 2, "address": [] },
                "host": null, "backend": "module",
                "egress": egress.map(class), "ingress": ingress.map(class),
                "is_set": false, "budget": { "egress_bps": null, "ingress_bps": null },
                "pod_name": null, "claims": [],
            });
            serde_json::from_value(text).unwrap()
        };
        let rates = |record: &Record| {
            [&record.egress, &record.ingress].map(|class| class.as_ref().map(|c| c.rate_bps))
        };
        let before = record(Some(5), Some(7));
        for (new, expected) in [
            ((Some(3), Some(9)), [Some(5), Some(9)]),
            ((Some(6), None), [Some(6), Some(7)]),
            ((None, None), [Some(5), Some(7)]),
        ] {
            let new = record(new.0, new.1);
            assert_eq!(rates(&new.while_made(Some(&before))), expected);
            assert_eq!(rates(&new.while_made(None)), rates(&new));
        }
    }
}
