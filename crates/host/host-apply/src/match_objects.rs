// SPDX-License-Identifier: MIT OR Apache-2.0
//! What matches name: cgroups, in the kernel's hierarchy of version 2, and interfaces. Each has a
//! number for as long as it exists: a unit that starts again, or a bridge that is made anew, has
//! another (docs/use/host-file.md).

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use host_config::{Device, Target, TargetRoot};
use linux_io::cgroups;
use linux_io::links::{Link, links, named};
use tcpsp::{Flower, Match, Sender};

/// Cgroups above each other that are searched.
const LEVELS_MAX: usize = 16;

/// Fills in the numbers of cgroups and the indices of interfaces. Matches of those that are not there
/// go, and a note says so.
///
/// # Errors
/// That the host has no such hierarchy, or a name is that of several cgroups.
pub(crate) fn resolve(target: &mut Target) -> Result<Vec<String>> {
    let Target { root, names, .. } = target;
    let psps = match root {
        TargetRoot::Default => return Ok(Vec::new()),
        TargetRoot::Psp(psp) => std::slice::from_mut(psp),
        TargetRoot::Mq(psps) => psps.as_mut_slice(),
    };
    let mut objects = Objects::default();
    let mut notes = Vec::new();
    for psp in psps {
        let mut rules = Vec::new();
        for mut rule in std::mem::take(&mut psp.rules) {
            let Some(absent) = objects.find(&mut rule.matching)? else {
                rules.push(rule);
                continue;
            };
            let class = names.get(&rule.class).cloned();
            let class = class.unwrap_or_else(|| format!("{:x}", rule.class));
            let note = format!(
                "class {class}: there is no {absent}; the match comes into force with the next \
                 `apply` that finds it, and `apply --follow` waits for it"
            );
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        psp.rules = rules;
    }
    notes.extend(objects.notes);
    Ok(notes)
}

/// The matches of a device that name something, each with its number, and whether it is not there.
///
/// # Errors
/// As [`resolve`].
pub(crate) fn numbers(device: &Device) -> Result<Vec<(Match, bool)>> {
    let mut objects = Objects::default();
    let mut all = Vec::new();
    for rule in &device.rules {
        let mut matching = rule.matching.clone();
        let is_absent = objects.find(&mut matching)?.is_some();
        if is_absent || matching != rule.matching {
            all.push((matching, is_absent));
        }
    }
    Ok(all)
}

/// What matches name, as it was read when the first match asked for it.
#[derive(Default)]
struct Objects {
    root: Option<PathBuf>,
    links: Option<Vec<Link>>,
    /// What a person should know.
    notes: Vec<String>,
}

impl Objects {
    /// Fills in the number of what a match names; returns what is not there.
    fn find(&mut self, matching: &mut Match) -> Result<Option<String>> {
        match matching {
            Match::Sender(sender) => {
                let path = sender.path.clone();
                let root = match &self.root {
                    Some(root) => root,
                    None => self.root.insert(root()?),
                };
                match find(root, &path)? {
                    Some((found, note)) => {
                        *sender = found;
                        let is_new = note.as_ref().is_some_and(|new| !self.notes.contains(new));
                        self.notes.extend(note.filter(|_| is_new));
                    }
                    None => return Ok(Some(format!("cgroup {path}"))),
                }
            }
            Match::Flower(Flower {
                interface: Some(interface),
                ..
            }) => {
                let links = match &self.links {
                    Some(links) => links,
                    None => self.links.insert(links()?),
                };
                match named(links, &interface.name) {
                    Some(link) => {
                        interface.index = link.index;
                        interface.name.clone_from(&link.name);
                    }
                    None => return Ok(Some(format!("interface {}", interface.name))),
                }
            }
            _ => {}
        }
        Ok(None)
    }
}

/// Returns where the hierarchy of cgroups is.
fn root() -> Result<PathBuf> {
    cgroups::root().ok_or_else(|| {
        anyhow!("a match names a cgroup; this host has no cgroups of version 2 in /sys/fs/cgroup")
    })
}

/// Returns the cgroup at a path, or below the root with a name that `*/NAME` or `*/*PART*` tells. A
/// unit that users' managers have, too, is the system's, and a note names the others.
fn find(root: &Path, path: &str) -> Result<Option<(Sender, Option<String>)>> {
    let only = |sender: Sender| (sender, None);
    let Some(name) = path.strip_prefix("*/") else {
        let there = root.join(path.trim_start_matches('/'));
        return Ok(sender(root, &there).map(only));
    };
    let part = name
        .strip_prefix('*')
        .and_then(|part| part.strip_suffix('*'));
    let is_it = |other: &str| match part {
        // Of `docker-ID.scope`, `cri-containerd-ID.scope` or `ID`.
        Some(id) => other
            .split(['-', '.', ':'])
            .any(|word| word.starts_with(id)),
        None => other == name,
    };
    let mut found = search(root, &is_it);
    // What watches a container is not the container.
    if part.is_some() {
        found.retain(|folder| !is_monitor(folder));
    }
    let (of_users, of_system): (Vec<_>, Vec<_>) =
        found.iter().partition(|folder| is_of_user(folder));
    match (&found[..], &of_system[..]) {
        ([], _) => Ok(None),
        ([one], _) => Ok(sender(root, one).map(only)),
        (_, [one]) if part.is_none() => {
            let all = of_users.iter().map(|folder| folder.display().to_string());
            let note = format!(
                "a match names the unit {name}: it is {}, the system's; users have {}, which \
                 `cgroup` with a whole path names",
                one.display(),
                all.collect::<Vec<_>>().join(" and ")
            );
            Ok(sender(root, one).map(|sender| (sender, Some(note))))
        }
        ([first, second, ..], _) => bail!(
            "a match names the cgroup {path}, expected one of this name: there are {} and {}; \
             `cgroup` takes a whole path",
            first.display(),
            second.display()
        ),
    }
}

/// Returns whether a cgroup is below that of a user's manager, `user@UID.service`.
fn is_of_user(folder: &Path) -> bool {
    let mut parts = folder.iter().filter_map(|part| part.to_str());
    parts.any(|part| part.starts_with("user@") && part.ends_with(".service"))
}

/// Returns whether a cgroup is that of podman's conmon, `libpod-conmon-ID.scope`, which has the
/// container's id in its name, too.
fn is_monitor(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.split(['-', '.', ':']).any(|word| word == "conmon"))
}

/// Returns the folders with such names, the highest of each branch.
fn search(root: &Path, is_it: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next = VecDeque::from([(root.to_owned(), 0)]);
    while let Some((folder, level)) = next.pop_front() {
        // A cgroup may go while it is looked at.
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            if entry.file_name().to_str().is_some_and(is_it) {
                found.push(entry.path());
            } else if level < LEVELS_MAX {
                next.push_back((entry.path(), level + 1));
            }
        }
    }
    found.sort();
    found
}

fn sender(root: &Path, folder: &Path) -> Option<Sender> {
    let id = cgroups::number(folder)?;
    let path = folder.strip_prefix(root).ok()?.to_str()?;
    Some(Sender {
        path: format!("/{path}"),
        id,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;

    #[test]
    fn names_are_found_at_any_depth() {
        let root = tempfile::tempdir().unwrap();
        let id = "0123456789abcdef";
        let docker = format!("system.slice/docker-{id}.scope");
        for path in [
            "system.slice/backup.service/inner",
            "system.slice/docker-00ff.scope",
            "machine.slice/libpod-abc123.scope/container",
            "machine.slice/libpod-conmon-abc123.scope",
            &docker,
            "user.slice/a/twice.service",
            "user.slice/b/twice.service",
            "system.slice/sync.service",
            "user.slice/user-1000.slice/user@1000.service/app.slice/sync.service",
            "user.slice/user-1000.slice/user@1000.service/app.slice/alone.service",
        ] {
            fs::create_dir_all(root.path().join(path)).unwrap();
        }
        let path = |wanted: &str| {
            let found = find(root.path(), wanted).map_err(|error| error.to_string());
            found.map(|found| found.map(|(sender, _)| sender.path))
        };
        let backup = Ok(Some("/system.slice/backup.service".to_owned()));
        assert_eq!(path("/system.slice/backup.service"), backup);
        assert_eq!(path("*/backup.service"), backup);
        assert_eq!(path("*/backup"), Ok(None));
        assert_eq!(path("/system.slice/other.service"), Ok(None));
        assert_eq!(
            path(&format!("*/*{}*", &id[..12])),
            Ok(Some(format!("/{docker}")))
        );
        assert_eq!(
            path("*/*abc123*"),
            Ok(Some("/machine.slice/libpod-abc123.scope".to_owned()))
        );
        assert!(path("*/twice.service").unwrap_err().contains("there are"));
        let (sync, note) = find(root.path(), "*/sync.service").unwrap().unwrap();
        assert_eq!(sync.path, "/system.slice/sync.service");
        let note = note.unwrap();
        assert!(
            note.contains("/user@1000.service/app.slice/sync.service"),
            "{note}"
        );
        let (alone, note) = find(root.path(), "*/alone.service").unwrap().unwrap();
        assert!(alone.path.ends_with("/app.slice/alone.service") && note.is_none());
    }
}
