// SPDX-License-Identifier: MIT OR Apache-2.0
//! Says whose socket a stalled connection has: process, cgroup, and what the cgroup's path says.

mod cgroup_path;
mod cgroups;
mod processes;

use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use self::cgroups::Cgroups;
use crate::records::SocketIds;
use units::printable::printable;

pub use self::processes::Process;

/// Digits of a container's id that lines show.
const ID_SHOWN: usize = 12;
/// Time without a search after one, in times that it took.
const REST_TIMES: u32 = 9;

/// The owner of a socket, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Owner {
    /// The process that connected the socket, or that has it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// Path of the cgroup in which the socket was made, relative to the mount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// The systemd unit in the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The container in the path: its id, or its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Uid of the Kubernetes pod in the path, or id of Podman's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
}

impl Owner {
    /// Says in a few words whose socket it is: `nginx[4711], nginx.service`.
    pub fn words(&self) -> String {
        let process = match &self.process {
            Some(Process {
                pid: Some(pid),
                comm,
            }) => format!("{comm}[{pid}]"),
            Some(Process { pid: None, comm }) => comm.clone(),
            None => "process not known".to_owned(),
        };
        let container = self.container.as_deref();
        // The unit of a container repeats its id.
        let unit = self
            .unit
            .as_deref()
            .filter(|unit| !container.is_some_and(|id| unit.contains(id)));
        let cgroup = self
            .cgroup
            .as_deref()
            .filter(|_| unit.is_none() && container.is_none());
        let short = |id: &str| id.chars().take(ID_SHOWN).collect::<String>();
        let parts = [
            unit.map(str::to_owned),
            container.map(|id| format!("container {}", short(id))),
            self.pod.as_ref().map(|uid| format!("pod {uid}")),
            cgroup.map(|path| format!("cgroup {path}")),
        ];
        let parts: Vec<String> = std::iter::once(process)
            .chain(parts.into_iter().flatten())
            .collect();
        parts.join(", ")
    }
}

/// Finds owners. The default knows only what the records say.
#[derive(Debug, Default)]
pub struct Names {
    cgroups: Cgroups,
    searches: bool,
    /// Not searched before: a host where a thousand connections stall at once must go on reading
    /// records.
    rest_until: Option<Instant>,
}

impl Names {
    /// Finds them on this host.
    pub fn of_this_host() -> Self {
        Self {
            cgroups: Cgroups::find(),
            searches: true,
            rest_until: None,
        }
    }

    /// Finds the path of a connection's cgroup while that exists.
    pub fn learn(&mut self, ids: &SocketIds) -> Owner {
        let process = ids.comm().map(|comm| Process {
            pid: ids.pid(),
            comm,
        });
        let cgroup = self.cgroups.path(ids.cgroup).map(printable);
        let parts = cgroup
            .as_deref()
            .map(cgroup_path::parse)
            .unwrap_or_default();
        Owner {
            process,
            cgroup,
            unit: parts.unit,
            container: parts.container,
            pod: parts.pod,
        }
    }

    /// Searches for the process of a socket that nobody was seen connecting, if the searches before
    /// have not taken too long.
    pub fn search(&mut self, owner: &mut Owner, ids: &SocketIds) {
        let start = Instant::now();
        let rests = self.rest_until.is_some_and(|until| start < until);
        if owner.process.is_some() || ids.inode == 0 || !self.searches || rests {
            return;
        }
        let of_cgroup = match owner.cgroup.as_deref() {
            // The root has too many to come first.
            Some("/") | None => Vec::new(),
            Some(path) => self.cgroups.processes(path),
        };
        owner.process = processes::find(Path::new("/proc"), ids.inode, &of_cgroup);
        self.rest_until = Some(Instant::now() + start.elapsed() * REST_TIMES);
    }
}

/// Returns the id of the cgroup with this path.
pub fn cgroup_id(path: &str) -> Result<u64, String> {
    Cgroups::find().id(path)
}

/// Returns the id of the cgroup of the systemd unit with this name.
///
/// # Errors
/// When there is none, or more than one.
pub fn unit_id(name: &str) -> Result<u64, String> {
    Cgroups::find().unit(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(process: Option<(Option<u32>, &str)>, cgroup: Option<&str>) -> Owner {
        let parts = cgroup.map(cgroup_path::parse).unwrap_or_default();
        Owner {
            process: process.map(|(pid, comm)| Process {
                pid,
                comm: comm.to_owned(),
            }),
            cgroup: cgroup.map(str::to_owned),
            unit: parts.unit,
            container: parts.container,
            pod: parts.pod,
        }
    }

    #[test]
    fn an_owner_in_words() {
        let id = "0123456789abcdef".repeat(4);
        let docker = format!("/system.slice/docker-{id}.scope");
        let pod = format!("/kubepods/pod1-2/{id}");
        for (owner, words) in [
            (owner(None, None), "process not known"),
            (owner(Some((Some(7), "nginx")), None), "nginx[7]"),
            (
                owner(Some((None, "nginx")), Some("/a/b")),
                "nginx, cgroup /a/b",
            ),
            (
                owner(
                    Some((Some(7), "nginx")),
                    Some("/system.slice/nginx.service"),
                ),
                "nginx[7], nginx.service",
            ),
            (
                owner(None, Some(&docker)),
                "process not known, container 0123456789ab",
            ),
            (
                owner(None, Some(&pod)),
                "process not known, container 0123456789ab, pod 1-2",
            ),
        ] {
            assert_eq!(owner.words(), words);
        }
    }

    #[test]
    fn what_is_not_known_is_absent_from_json() {
        let json = |owner: &Owner| serde_json::to_value(owner).unwrap();
        assert_eq!(json(&Owner::default()), serde_json::json!({}));
        let known = owner(Some((None, "x")), Some("/a.service"));
        let expected = serde_json::json!({
            "process": {"comm": "x"}, "cgroup": "/a.service", "unit": "a.service",
        });
        assert_eq!(json(&known), expected);
    }

    #[test]
    fn searches_take_a_part_of_the_time() {
        let ids = SocketIds {
            inode: u64::MAX,
            ..SocketIds::default()
        };
        let mut names = Names::of_this_host();
        let mut owner = Owner::default();
        names.search(&mut owner, &ids);
        assert_eq!(owner.process, None, "no socket has this inode");
        let rest = names.rest_until.expect("it rests");
        names.search(&mut owner, &ids);
        let again = names.rest_until.expect("it rests");
        // Nothing was searched, unless the rest was over already.
        assert!(again == rest || Instant::now() > rest);
        names.rest_until = None;
        names.search(&mut Owner::default(), &SocketIds::default());
        assert_eq!(names.rest_until, None, "there is nothing to search for");
    }

    #[test]
    fn the_record_names_the_process_that_connected() {
        let ids = SocketIds {
            cgroup: 1,
            inode: 0,
            pid: 7,
            comm: *b"a name\0\0\0\0\0\0\0\0\0\0",
        };
        let owner = Names::default().learn(&ids);
        let process = Process {
            pid: Some(7),
            comm: "a name".to_owned(),
        };
        assert_eq!(owner.process, Some(process));
        assert_eq!(
            Names::default().learn(&SocketIds::default()),
            Owner::default()
        );
    }
}
