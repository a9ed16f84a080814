// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes and containers that packet comments name. ptcpdump writes them: each packet of a
//! pcapng file has comments of lines such as `PID: 123`, `Cmd: /usr/bin/curl`, `Args: ...`,
//! `ContainerId: ...`, `PodName: ...`.

use std::collections::HashMap;

use crate::segment::Endpoint;

/// Most pairs of ends whose processes are remembered.
const ENDS_MOST: usize = 65_536;
/// Most processes of one pair of ends: one at each end, and those of reused ports.
const PROCESSES_MOST: usize = 4;
/// Most bytes of a value.
const VALUE_BYTES: usize = 1024;

/// A process, and the container and pod that it runs in; what is not named is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub pid: Option<u32>,
    pub command: String,
    /// Its arguments, in one line.
    pub arguments: String,
    pub container_id: String,
    /// Name of its container.
    pub container: String,
    /// Name of its pod.
    pub pod: String,
    pub pod_namespace: String,
}

impl Process {
    /// Reads the lines of one comment; returns whether any was understood.
    pub(crate) fn read(&mut self, comment: &[u8]) -> bool {
        let text = String::from_utf8_lossy(comment);
        let mut is_any = false;
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let field = match key.trim() {
                "PID" => {
                    self.pid = value.trim().parse().ok();
                    is_any |= self.pid.is_some();
                    continue;
                }
                "Command" | "Cmd" => &mut self.command,
                "Args" => &mut self.arguments,
                "ContainerId" => &mut self.container_id,
                "ContainerName" => &mut self.container,
                "PodName" => &mut self.pod,
                "PodNamespace" => &mut self.pod_namespace,
                _ => continue,
            };
            let printable = |c: &char| !c.is_control();
            *field = value
                .trim()
                .chars()
                .filter(printable)
                .take(VALUE_BYTES)
                .collect();
            let mut end = field.len().min(VALUE_BYTES);
            while !field.is_char_boundary(end) {
                end -= 1;
            }
            field.truncate(end);
            field.shrink_to_fit();
            is_any = true;
        }
        is_any
    }
}

/// Both ends, the lower one first.
type Ends = (Endpoint, Endpoint);

/// The processes that the packets' comments name.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    by_ends: HashMap<Ends, Vec<Process>>,
}

fn ends(a: Endpoint, b: Endpoint) -> Ends {
    (a.min(b), a.max(b))
}

impl Processes {
    /// Notes the process of a packet between two ends.
    pub(crate) fn note(&mut self, a: Endpoint, b: Endpoint, process: Process) {
        let ends = ends(a, b);
        if self.by_ends.len() >= ENDS_MOST && !self.by_ends.contains_key(&ends) {
            return;
        }
        let known = self.by_ends.entry(ends).or_default();
        if let Some(same) = known.iter_mut().find(|known| known.pid == process.pid) {
            // The container may become known later than the process.
            if same.container_id.is_empty() && !process.container_id.is_empty() {
                *same = process;
            }
        } else if known.len() < PROCESSES_MOST {
            known.push(process);
        }
    }

    /// Returns the processes of the connections between two ends.
    pub fn of(&self, a: Endpoint, b: Endpoint) -> &[Process] {
        self.by_ends.get(&ends(a, b)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_comment() {
        let mut process = Process::default();
        let comment = b"PID: 42\nCmd: /usr/bin/curl\nArgs: curl http://a:80/\x1b[1m\nUserId: 0\n\
                        ParentPID: 7\nParentCmd: /bin/sh\nPodName: web\nPodNamespace: default";
        assert!(process.read(comment));
        assert!(process.read(b"ContainerId: d9028334568b\nContainerName: test"));
        let expected = Process {
            pid: Some(42),
            command: "/usr/bin/curl".into(),
            arguments: "curl http://a:80/[1m".into(),
            container_id: "d9028334568b".into(),
            container: "test".into(),
            pod: "web".into(),
            pod_namespace: "default".into(),
        };
        assert_eq!(process, expected);
        let mut none = Process::default();
        assert!(!none.read(b"a comment: of somebody\nPID: many\n\xff"));
        assert!(none.read(&[&b"Cmd: "[..], &[0xc3; 5000]].concat()));
        assert!(none.command.len() <= VALUE_BYTES);
    }

    #[test]
    fn there_is_an_end_to_them() {
        let end = |port| Endpoint {
            address: [10, 1, 1, 1].into(),
            port,
        };
        let mut all = Processes::default();
        for pid in (0..100).chain([1]) {
            let pid = Some(pid);
            let process = Process {
                pid,
                ..Process::default()
            };
            all.note(end(1), end(2), process);
        }
        assert_eq!(all.of(end(2), end(1)).len(), PROCESSES_MOST);
        assert!(all.of(end(3), end(1)).is_empty());
    }
}
