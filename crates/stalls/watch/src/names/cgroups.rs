// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the paths of cgroups by their ids. An id is the inode number of the cgroup's folder in
//! the unified hierarchy (cgroup2).

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Shortest time between two walks: a host with thousands of cgroups takes some ms for one.
const WALK_EVERY: Duration = Duration::from_secs(1);
/// Cgroups that are read in one walk.
const CGROUPS_MOST: usize = 100_000;

/// The cgroups that were found by walking the hierarchy.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    /// Where the hierarchy is mounted; `None`: nowhere.
    mount: Option<PathBuf>,
    paths: HashMap<u64, String>,
    walked: Option<Instant>,
}

impl Cgroups {
    /// Finds where the hierarchy is mounted; reads no cgroup yet.
    pub(crate) fn find() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self {
            mount: mount(&mounts),
            ..Self::default()
        }
    }

    /// Returns the path of the cgroup with this id, relative to the mount; `None` if there is
    /// none, or if it was made within the last second and another one was missed before.
    pub(crate) fn path(&mut self, id: u64) -> Option<&str> {
        // 0 is no id: the kernel did not know it.
        if id != 0 && !self.paths.contains_key(&id) {
            self.walk();
        }
        self.paths.get(&id).map(String::as_str)
    }

    /// Returns the numbers of the processes in a cgroup.
    pub(crate) fn processes(&self, path: &str) -> Vec<u32> {
        let Some(mount) = &self.mount else {
            return Vec::new();
        };
        let file = mount
            .join(path.trim_start_matches('/'))
            .join("cgroup.procs");
        let text = fs::read_to_string(file).unwrap_or_default();
        // Processes of other PID namespaces are 0.
        text.lines()
            .filter_map(|line| line.parse().ok())
            .filter(|pid| *pid != 0)
            .collect()
    }

    fn walk(&mut self) {
        let Some(mount) = &self.mount else {
            return;
        };
        if self
            .walked
            .is_some_and(|walked| walked.elapsed() < WALK_EVERY)
        {
            return;
        }
        self.paths = HashMap::new();
        if let Ok(meta) = fs::metadata(mount) {
            self.paths.insert(meta.ino(), "/".to_owned());
        }
        for (path, id) in below(mount) {
            self.paths.insert(id, format!("/{path}"));
        }
        self.walked = Some(Instant::now());
    }

    /// Returns the id of the cgroup with this path, which may begin with the mount's.
    pub(crate) fn id(&self, path: &str) -> Result<u64, String> {
        let mount = self.mount.as_ref().ok_or_else(no_mount)?;
        let relative = Path::new(path)
            .strip_prefix(mount)
            .unwrap_or(Path::new(path));
        let relative = relative.strip_prefix("/").unwrap_or(relative);
        let folder = mount.join(relative);
        match fs::metadata(&folder) {
            Ok(meta) if meta.is_dir() && folder.join("cgroup.procs").exists() => Ok(meta.ino()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("cgroup {path}: {error}"))
            }
            _ => Err(format!(
                "there is no cgroup {path} below {}",
                mount.display()
            )),
        }
    }

    /// Returns the id of the cgroup of the systemd unit with this name; without a suffix it is
    /// a service.
    ///
    /// # Errors
    /// When there is none, or more than one (of several users).
    pub(crate) fn unit(&self, name: &str) -> Result<u64, String> {
        let mount = self.mount.as_ref().ok_or_else(no_mount)?;
        let unit = match name.rsplit_once('.') {
            Some((_, "service" | "scope" | "slice" | "socket" | "mount" | "swap")) => {
                name.to_owned()
            }
            _ => format!("{name}.service"),
        };
        let is_named = |path: &str| path.rsplit('/').next() == Some(&unit);
        let mut found = below(mount).into_iter().filter(|(path, _)| is_named(path));
        match (found.next(), found.next()) {
            (None, _) => Err(format!(
                "there is no cgroup of a unit {unit}: it does not run (systemctl status {unit})"
            )),
            (Some((_, id)), None) => Ok(id),
            (Some((first, _)), Some((second, _))) => Err(format!(
                "more than one unit is named {unit}: choose with --cgroup /{first} or --cgroup \
                 /{second}"
            )),
        }
    }
}

fn no_mount() -> String {
    "no unified hierarchy of cgroups (cgroup2) is mounted".to_owned()
}

/// Returns the mount point of cgroup2 in `/proc/self/mountinfo`.
fn mount(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        if after.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let place = before.split(' ').nth(4)?;
        Some(PathBuf::from(place.replace("\\040", " ")))
    })
}

/// Returns the folders below the mount, by path, with their inode numbers. Those that go
/// meanwhile are left out.
fn below(mount: &Path) -> Vec<(String, u64)> {
    let mut found: Vec<(String, u64)> = Vec::new();
    let mut open = vec![String::new()];
    while let Some(path) = open.pop() {
        let Ok(entries) = fs::read_dir(mount.join(&path)) else {
            continue;
        };
        for entry in entries.flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let child = if path.is_empty() {
                name.into_owned()
            } else {
                format!("{path}/{name}")
            };
            found.push((child.clone(), entry.ino()));
            open.push(child);
        }
        if found.len() >= CGROUPS_MOST {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a hierarchy of folders that look like cgroups.
    fn hierarchy(paths: &[&str]) -> (tempfile::TempDir, Cgroups) {
        let folder = tempfile::tempdir().unwrap();
        for path in paths {
            let cgroup = folder.path().join(path);
            fs::create_dir_all(&cgroup).unwrap();
            fs::write(cgroup.join("cgroup.procs"), "12\n0\n34\n").unwrap();
        }
        let cgroups = Cgroups {
            mount: Some(folder.path().to_owned()),
            ..Cgroups::default()
        };
        (folder, cgroups)
    }

    #[test]
    fn the_mount_of_cgroup2_is_found() {
        let mounts = "\
            24 1 0:22 / /proc rw - proc proc rw\n\
            30 24 0:26 / /sys/fs/cgroup/systemd rw shared:9 - cgroup cgroup rw,name=systemd\n\
            31 24 0:27 / /a\\040b/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount(mounts), Some(PathBuf::from("/a b/unified")));
        assert_eq!(
            mount("30 24 0:26 / /sys rw - sysfs sysfs rw\nnonsense\n"),
            None
        );
    }

    #[test]
    fn an_id_has_a_path_and_processes() {
        let (folder, mut cgroups) = hierarchy(&["system.slice/a.service"]);
        let id = cgroups.id("/system.slice/a.service").unwrap();
        assert_eq!(cgroups.path(id), Some("/system.slice/a.service"));
        let whole = folder.path().join("system.slice/a.service");
        assert_eq!(cgroups.id(whole.to_str().unwrap()), Ok(id));
        assert_eq!(cgroups.id("system.slice/a.service/"), Ok(id));
        assert_eq!(cgroups.processes("/system.slice/a.service"), [12, 34]);
        let root = fs::metadata(folder.path()).unwrap().ino();
        assert_eq!(cgroups.path(root), Some("/"));
        assert_eq!(cgroups.path(u64::MAX), None);
        assert_eq!(Cgroups::default().path(id), None);
    }

    #[test]
    fn a_cgroup_that_is_new_is_found_by_the_next_walk() {
        let (folder, mut cgroups) = hierarchy(&["a.service"]);
        let known = cgroups.id("a.service").unwrap();
        assert!(cgroups.path(known).is_some());
        fs::create_dir(folder.path().join("b.service")).unwrap();
        let new = fs::metadata(folder.path().join("b.service")).unwrap().ino();
        assert_eq!(cgroups.path(new), None, "not twice in a second");
        cgroups.walked = None;
        assert_eq!(cgroups.path(new), Some("/b.service"));
    }

    #[test]
    fn units_by_name() {
        let user =
            |n: u32| format!("user.slice/user-{n}.slice/user@{n}.service/app.slice/b.service");
        let (first, second) = (user(1), user(2));
        let (_folder, cgroups) =
            hierarchy(&["system.slice/a.service", "a.b.scope", &first, &second]);
        let a = cgroups.id("system.slice/a.service").unwrap();
        assert_eq!(cgroups.unit("a"), Ok(a));
        assert_eq!(cgroups.unit("a.service"), Ok(a));
        assert_eq!(cgroups.unit("a.b.scope"), cgroups.id("a.b.scope"));
        let missing = cgroups.unit("c").unwrap_err();
        assert!(missing.contains("c.service"), "{missing}");
        let many = cgroups.unit("b").unwrap_err();
        assert!(many.contains(&first) && many.contains(&second), "{many}");
        let missing = cgroups.id("/no/such").unwrap_err();
        assert!(missing.contains("no cgroup /no/such"), "{missing}");
        assert!(Cgroups::default().id("/").unwrap_err().contains("cgroup2"));
    }
}
