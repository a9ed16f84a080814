// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Kubernetes' scheduler has given to pods of this node, before their network is there: a file
//! for each claim, which ADD reads when the pod gets a device. The node agent writes it when the
//! kubelet prepares the claim, and removes it when the kubelet is done with it. A claim is one pod's.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::config::Rates;
use crate::environment::Attachment;
use crate::record::{Records, entries};

/// The folder below that of `pspacer`.
const FOLDER: &str = "claims";
const ENDING: &str = ".json";

/// A claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its uid.
    pub uid: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name there.
    pub name: String,
    /// The uid of the pod that it is reserved for.
    pub pod_uid: String,
    /// What it got of this node.
    pub shares: Vec<Share>,
}

/// A part of a device of this node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The request of the claim.
    pub request: String,
    /// The pool of the device.
    pub pool: String,
    /// The device.
    pub device: String,
    /// What tells it from other shares of the device.
    pub share_id: Option<String>,
    /// What the pod may send by it.
    pub egress_bps: u64,
    /// What it may receive.
    pub ingress_bps: u64,
}

impl Claim {
    /// Returns all that it got.
    #[must_use]
    pub fn rates(&self) -> Rates {
        let mut all = Rates::default();
        for share in &self.shares {
            all.add(Rates {
                egress_bps: share.egress_bps,
                ingress_bps: share.ingress_bps,
            });
        }
        all
    }
}

/// The claims of this node.
pub struct Claims {
    folder: PathBuf,
}

impl Claims {
    /// Those of a node; `run` is the folder of `pspacer`.
    #[must_use]
    pub fn new(run: &Path) -> Self {
        let folder = run.join(FOLDER);
        Self { folder }
    }

    /// Returns the file of a claim.
    fn path(&self, pod_uid: &str, uid: &str) -> PathBuf {
        self.folder.join(format!("{pod_uid}:{uid}{ENDING}"))
    }

    /// Writes one, in one step. It is no longer that of another pod then.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn store(&self, claim: &Claim) -> Result<()> {
        let folder = self.folder.display();
        fs::create_dir_all(&self.folder).with_context(|| folder.to_string())?;
        let path = self.path(&claim.pod_uid, &claim.uid);
        host_apply::write(&path, &serde_json::to_string(claim)?)?;
        self.delete_files(|file| file.uid == claim.uid && file.path != path)?;
        Ok(())
    }

    /// Deletes one, also one that cannot be read. Returns whether there was one.
    ///
    /// # Errors
    /// If it cannot be deleted.
    pub fn delete(&self, uid: &str) -> Result<bool> {
        let is_there = self.delete_files(|file| file.uid == uid)?;
        // It is not empty while another is there.
        let _ = fs::remove_dir(&self.folder);
        Ok(is_there)
    }

    fn delete_files(&self, is_it: impl Fn(&File) -> bool) -> Result<bool> {
        let mut is_there = false;
        for File { path, .. } in self.files()?.into_iter().filter(is_it) {
            match fs::remove_file(&path) {
                Ok(()) => is_there = true,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| path.display().to_string()),
            }
        }
        Ok(is_there)
    }

    /// Returns whether there is exactly this one.
    #[must_use]
    pub fn has(&self, claim: &Claim) -> bool {
        let bytes = fs::read(self.path(&claim.pod_uid, &claim.uid)).unwrap_or_default();
        serde_json::from_slice(&bytes).is_ok_and(|known: Claim| known == *claim)
    }

    /// Returns those of a pod, or of all.
    ///
    /// # Errors
    /// One that cannot be read: nobody knows what it grants.
    pub fn load(&self, pod_uid: Option<&str>) -> Result<Vec<Claim>> {
        let mut claims = Vec::new();
        for File {
            path,
            pod_uid: pod,
            uid,
        } in self.files()?
        {
            if pod_uid.is_some_and(|pod_uid| pod_uid != pod) {
                continue;
            }
            let bytes = match fs::read(&path) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error).with_context(|| path.display().to_string()),
            };
            let read: Option<Claim> = serde_json::from_slice(&bytes).ok();
            match read.filter(|claim| claim.uid == uid && claim.pod_uid == pod) {
                Some(claim) => claims.push(claim),
                None => bail!(
                    "{} is no claim of this version, expected one: what it grants cannot be told \
                     until the kubelet prepares it again, or a person deletes the file",
                    path.display()
                ),
            }
        }
        Ok(claims)
    }

    fn files(&self) -> Result<Vec<File>> {
        let paths = entries(&self.folder)?.into_iter();
        let files = paths.filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?;
            let (pod_uid, uid) = name.split_once(':')?;
            let (pod_uid, uid) = (pod_uid.to_owned(), uid.to_owned());
            Some(File { path, pod_uid, uid })
        });
        Ok(files.collect())
    }
}

/// The file of a claim.
struct File {
    path: PathBuf,
    pod_uid: String,
    uid: String,
}

/// Returns the claims of a pod that hold for an attachment: each paces one device of its pod, the
/// first that asked. A later container with the same device, the pod's next sandbox, takes it over.
///
/// # Errors
/// A file that cannot be read.
pub fn of_attachment(
    run: &Path,
    (network, of): (&str, &Attachment),
    pod_uid: &str,
) -> Result<Vec<Claim>> {
    let mut claims = Claims::new(run).load(Some(pod_uid))?;
    if claims.is_empty() {
        return Ok(claims);
    }
    for records in Records::all(run)? {
        for other in records.attachments()? {
            if records.network() == network && other.device == of.device {
                continue;
            }
            if let Some(record) = records.load(&other)? {
                claims.retain(|claim| !record.claims.contains(&claim.uid));
            }
        }
    }
    Ok(claims)
}
