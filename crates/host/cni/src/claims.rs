// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Kubernetes' scheduler has given to pods of this node, before their network is there: a file
//! for each claim, which ADD reads when the pod gets a device. The node agent writes it when the
//! kubelet prepares the claim, and removes it when the kubelet is done with it. A claim is one pod's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::config::Rates;
use crate::environment::Attachment;
use crate::record::{Records, entries};

/// The folder below that of `pspacer`.
const FOLDER: &str = "claims";
const ENDING: &str = ".json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub uid: String,
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
    pub fn new(run: &Path) -> Self {
        let folder = run.join(FOLDER);
        Self { folder }
    }

    /// Lists the files, for who writes several: who holds the lock meanwhile lists them once.
    pub fn list(&self) -> Result<Listed> {
        let mut paths: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
        for File { path, uid, .. } in self.files()? {
            paths.entry(uid).or_default().insert(path);
        }
        let folder = self.folder.clone();
        Ok(Listed { folder, paths })
    }

    /// Writes one, as [`Listed::store`].
    pub fn store(&self, claim: &Claim) -> Result<()> {
        self.list()?.store(claim)
    }

    /// Deletes one, as [`Listed::delete`].
    pub fn delete(&self, uid: &str) -> Result<bool> {
        self.list()?.delete(uid)
    }

    /// Returns those of a pod, or of all.
    ///
    /// # Errors
    /// One that cannot be read: nobody knows what it grants.
    pub fn load(&self, pod_uid: Option<&str>) -> Result<Vec<Claim>> {
        let found = self.read(pod_uid)?.into_iter();
        found.map(|(_, claim)| claim).collect()
    }

    /// Returns the same with their uids; one that cannot be read is why.
    pub fn read(&self, pod_uid: Option<&str>) -> Result<Vec<(String, Result<Claim>)>> {
        let files = self.files()?.into_iter();
        let files = files.filter(|file| pod_uid.is_none_or(|pod_uid| pod_uid == file.pod_uid));
        let read = files.filter_map(|file| Some((file.uid.clone(), file.read()?)));
        Ok(read.collect())
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

impl File {
    /// Reads it; `None`: it is gone by now.
    fn read(&self) -> Option<Result<Claim>> {
        let path = self.path.display();
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => return Some(Err(error).with_context(|| path.to_string())),
        };
        let read: Option<Claim> = serde_json::from_slice(&bytes).ok();
        let read = read.filter(|claim| claim.uid == self.uid && claim.pod_uid == self.pod_uid);
        Some(read.with_context(|| {
            format!(
                "{path} is no claim of this version, expected one: what it grants cannot be told \
                 until the kubelet prepares it again, or a person deletes the file"
            )
        }))
    }
}

/// The files of the claims, by uid.
pub struct Listed {
    folder: PathBuf,
    paths: BTreeMap<String, BTreeSet<PathBuf>>,
}

impl Listed {
    fn path(&self, claim: &Claim) -> PathBuf {
        let Claim { pod_uid, uid, .. } = claim;
        self.folder.join(format!("{pod_uid}:{uid}{ENDING}"))
    }

    /// Returns whether there is exactly this one.
    pub fn has(&self, claim: &Claim) -> bool {
        let path = self.path(claim);
        let paths = self.paths.get(&claim.uid);
        if !paths.is_some_and(|paths| paths.len() == 1 && paths.contains(&path)) {
            return false;
        }
        let bytes = fs::read(path).unwrap_or_default();
        serde_json::from_slice(&bytes).is_ok_and(|known: Claim| known == *claim)
    }

    /// Writes one, in one step. It is no longer that of another pod then.
    pub fn store(&mut self, claim: &Claim) -> Result<()> {
        let folder = self.folder.display();
        fs::create_dir_all(&self.folder).with_context(|| folder.to_string())?;
        let path = self.path(claim);
        host_apply::write(&path, &serde_json::to_string(claim)?)?;
        let paths = self.paths.entry(claim.uid.clone()).or_default();
        paths.remove(&path);
        delete_files(paths)?;
        paths.insert(path);
        Ok(())
    }

    /// Deletes one, also one that cannot be read. Returns whether there was one.
    pub fn delete(&mut self, uid: &str) -> Result<bool> {
        let paths = self.paths.get_mut(uid);
        let is_there = paths.map_or(Ok(false), delete_files)?;
        self.paths.remove(uid);
        if self.paths.is_empty() {
            // It is not empty while something else is there.
            let _ = fs::remove_dir(&self.folder);
        }
        Ok(is_there)
    }
}

/// Deletes files. Returns whether there was one.
fn delete_files(paths: &mut BTreeSet<PathBuf>) -> Result<bool> {
    let mut is_there = false;
    while let Some(path) = paths.first() {
        match fs::remove_file(path) {
            Ok(()) => is_there = true,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        }
        paths.pop_first();
    }
    Ok(is_there)
}

/// Returns the claims of a pod that hold for an attachment: each paces one device of its pod, the
/// first that asked. A later container with the same device, the pod's next sandbox, takes it over.
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
