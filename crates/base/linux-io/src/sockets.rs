// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sockets of other programs that leave the pacing of their datagrams to a qdisc: by launch times
//! (SO_TXTIME), or at a rate (SO_MAX_PACING_RATE). No table of the kernel has these options, so each
//! socket is opened once more (pidfd_getfd), which needs CAP_SYS_PTRACE for those of others.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::libc::c_ulong;
use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::launch::{has_launch_times, max_pacing_rate};

/// What SO_MAX_PACING_RATE is without the option.
const UNLIMITED: c_ulong = c_ulong::MAX;
/// Most sockets that are looked at.
const MOST: usize = 65_536;

/// Sockets of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfProgram {
    /// Sockets with launch times.
    pub with_launch_times: u64,
    /// Sockets of datagrams with a rate.
    pub with_rate: u64,
}

/// Returns the programs of this network namespace, by name, that have such sockets, as far as this
/// process may look.
pub fn paced_by_qdisc() -> io::Result<BTreeMap<String, OfProgram>> {
    let mut found: BTreeMap<String, OfProgram> = BTreeMap::new();
    let mut left = MOST;
    let namespace = |process: &Path| fs::read_link(process.join("ns/net")).ok();
    let own = namespace(Path::new("/proc/self"));
    for process in fs::read_dir("/proc")?.flatten() {
        let pid = process.file_name().to_string_lossy().parse().ok();
        let Some(pid) = pid.and_then(Pid::from_raw) else {
            continue;
        };
        if namespace(&process.path()) != own {
            continue;
        }
        let of_process = of_process(pid, &process.path(), &mut left);
        if of_process == OfProgram::default() {
            continue;
        }
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        let of_program = found.entry(name.trim().to_owned()).or_default();
        of_program.with_launch_times += of_process.with_launch_times;
        of_program.with_rate += of_process.with_rate;
    }
    Ok(found)
}

/// Counts the sockets of datagrams and raw ones of a process, as far as they may be opened: one at a
/// time, as it may have more of them than this process may have open.
fn of_process(pid: Pid, folder: &Path, left: &mut usize) -> OfProgram {
    let mut found = OfProgram::default();
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return found;
    };
    for entry in fs::read_dir(folder.join("fd"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        if *left == 0 || !target.to_string_lossy().starts_with("socket:") {
            continue;
        }
        *left -= 1;
        let Ok(number) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let Ok(socket) = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) else {
            continue;
        };
        // TCP keeps to its rate by itself.
        if socket_type(&socket) != Ok(SocketType::STREAM) {
            found.with_launch_times += u64::from(has_launch_times(&socket).unwrap_or(false));
            found.with_rate += u64::from(has_rate(&socket));
        }
    }
    found
}

fn has_rate(socket: &OwnedFd) -> bool {
    max_pacing_rate(socket).is_ok_and(|rate| rate != UNLIMITED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{LaunchClock, LaunchSocket};

    #[test]
    fn own_sockets_are_found() {
        let name = fs::read_to_string("/proc/self/comm").unwrap();
        let own = || {
            let mut all = paced_by_qdisc().unwrap();
            all.remove(name.trim()).unwrap_or_default()
        };
        let before = own();
        let to = "127.0.0.1:9".parse().unwrap();
        let socket = LaunchSocket::connect(to, 4096).unwrap();
        assert_eq!(own(), before);
        socket.set_launch_clock(LaunchClock::Monotonic).unwrap();
        let mut expected = before;
        expected.with_launch_times += 1;
        assert_eq!(own(), expected);
        socket.set_max_pacing_rate(1_000_000).unwrap();
        expected.with_rate += 1;
        assert_eq!(own(), expected);
    }
}
