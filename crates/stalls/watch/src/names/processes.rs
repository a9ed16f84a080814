// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the process that has a socket open, by the inode of the socket's file.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use units::printable::printable;

use serde::Serialize;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Its number; `None` if it has none in this PID namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    pub comm: String,
}

/// Longest time for one search. The ring buffer holds what comes in meanwhile.
const SEARCH_MOST: Duration = Duration::from_millis(50);

/// Searches processes for the socket with this inode: first those of its cgroup, then all, until
/// the time is over. `None`: not found, or this user may not look at the process.
pub(crate) fn find(proc: &Path, inode: u64, of_cgroup: &[u32]) -> Option<Process> {
    let until = Instant::now() + SEARCH_MOST;
    let target = format!("socket:[{inode}]");
    let all = || {
        let entries = fs::read_dir(proc).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    };
    let first = of_cgroup.iter().copied();
    let pid = first
        .chain(all())
        .take_while(|_| Instant::now() < until)
        .find(|pid| has_open(proc, *pid, &target, until))?;
    Some(Process {
        pid: Some(pid),
        comm: comm(proc, pid).unwrap_or_default(),
    })
}

fn has_open(proc: &Path, pid: u32, target: &str, until: Instant) -> bool {
    let Ok(entries) = fs::read_dir(proc.join(pid.to_string()).join("fd")) else {
        return false; // it has ended, or is another user's
    };
    entries
        .flatten()
        .take_while(|_| Instant::now() < until)
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == target))
}

fn comm(proc: &Path, pid: u32) -> Option<String> {
    let name = fs::read(proc.join(pid.to_string()).join("comm")).ok()?;
    Some(printable(String::from_utf8_lossy(&name).trim_end()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn this_process_has_its_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let file = fs::File::from(listener.as_fd().try_clone_to_owned().unwrap());
        let inode = file.metadata().unwrap().ino();
        let own = std::process::id();
        let found = find(Path::new("/proc"), inode, &[own]).expect("it is found");
        assert_eq!(found.pid, Some(own));
        assert_eq!(Some(found.comm), comm(Path::new("/proc"), own));
    }

    #[test]
    fn processes_outside_the_cgroup_are_searched_too() {
        let proc = tempfile::tempdir().unwrap();
        for (pid, inode) in [("12", 7), ("34", 8)] {
            let fd = proc.path().join(pid).join("fd");
            fs::create_dir_all(&fd).unwrap();
            std::os::unix::fs::symlink(format!("socket:[{inode}]"), fd.join("3")).unwrap();
            fs::write(proc.path().join(pid).join("comm"), format!("p{pid}\n")).unwrap();
        }
        let pid = |inode, of_cgroup: &[u32]| find(proc.path(), inode, of_cgroup);
        let expected = Process {
            pid: Some(34),
            comm: "p34".to_owned(),
        };
        assert_eq!(pid(8, &[12, 99]), Some(expected));
        assert_eq!(pid(9, &[12]), None);
    }
}
