// SPDX-License-Identifier: MIT OR Apache-2.0
//! One guest, from start to end.
//!
//! Deterministic because nothing in it knows the host's time: one instruction
//! is one nanosecond, idle time is skipped, the random numbers of the guest are
//! seeded and no device is driven by the host. Results leave through shared
//! memory, which costs the guest no exit.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use crate::console::{Failure, classify};
use crate::error::{At, Error};
use crate::patience::Patience;

/// `loglevel=5` shows warnings; the tests of the kernel's ciphers and of its
/// timer interrupt, which has nothing to go wrong here, cost a second a boot.
/// `init_on_alloc=0 nohz=off` spare the guest's CPU work that a NIC would not
/// wait for; measured in lab/README.md.
const KERNEL_LINE: &str = "console=ttyS0 loglevel=5 panic=-1 nokaslr norandmaps \
                           random.trust_cpu=on mitigations=off tsc=reliable no_timer_check \
                           cryptomgr.notests init_on_alloc=0 nohz=off";
/// Without `erms` and `fsrm` the kernel copies by words: `rep movsb` would count
/// every byte as an instruction.
const CPU: &str = "max,-erms,-fsrm";
const POLL: Duration = Duration::from_millis(20);

/// What a guest is made of.
pub(crate) struct Guest<'a> {
    /// QEMU's package set.
    pub qemu: &'a Path,
    /// Kernel image.
    pub kernel: &'a Path,
    /// More words for the kernel's command line.
    pub kernel_line: &'a str,
    /// Initial file system.
    pub initrd: &'a [u8],
    pub memory_bytes: u64,
    /// Room for results; a power of two.
    pub shared_bytes: u64,
    pub seed: u64,
    /// Processor time.
    pub timeout: Duration,
    /// Where the logs stay.
    pub folder: &'a Path,
    /// QEMU's devices, of each two that are joined by a hub.
    pub nics: &'a [&'static str],
    /// Ends the guest early when set.
    pub stop: &'a AtomicBool,
}

impl Guest<'_> {
    /// The guest's console log.
    pub fn console(&self) -> PathBuf {
        self.folder.join("console.log")
    }

    fn failed(&self, failure: Failure) -> Error {
        Error::Guest {
            failure,
            console: self.console(),
        }
    }

    /// Boots, calls `line` with every line of the progress port, waits for the
    /// end, and gives the file with the shared memory, which `scratch` holds.
    pub fn boot(&self, scratch: &Path, line: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
        fs::create_dir_all(self.folder).at("create", self.folder)?;
        let initrd = scratch.join("initrd");
        fs::write(&initrd, self.initrd).at("write", &initrd)?;
        let shared = scratch.join("shared");
        File::create(&shared)
            .and_then(|file| file.set_len(self.shared_bytes))
            .at("create", &shared)?;
        let progress = scratch.join("progress");
        File::create(&progress).at("create", &progress)?;
        let words = self.folder.join("qemu.log");
        let log = File::create(&words).at("create", &words)?;
        let mut command = self.command(&initrd, &shared, &progress);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn().map_err(|source| Error::Start {
            program: "qemu-system-x86_64".into(),
            source,
        })?;
        let mut tail = Tail::open(&progress)?;
        let ended = self.wait(child, &mut tail, line);
        let console = fs::read(self.console()).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        let said = fs::read_to_string(&words).unwrap_or_default();
        match (classify(&console), ended) {
            (Some(failure), _) => Err(self.failed(failure)),
            (None, Ended::Timeout) => Err(self.failed(Failure::Timeout(self.timeout.as_secs()))),
            (None, Ended::Badly(status)) => {
                let said = said.trim();
                let words = if said.is_empty() {
                    status
                } else {
                    said.to_owned()
                };
                Err(self.failed(Failure::Machine(words)))
            }
            (None, Ended::Well) => Ok(shared),
        }
    }

    fn command(&self, initrd: &Path, shared: &Path, progress: &Path) -> Command {
        let usr = self.qemu.join("usr");
        // QEMU takes a doubled comma for a comma
        let text = |path: &Path| path.display().to_string().replace(',', ",,");
        let mut command = Command::new(usr.join("lib64/ld-linux-x86-64.so.2"));
        command
            .arg("--library-path")
            .arg(usr.join("lib/x86_64-linux-gnu"))
            .arg(usr.join("bin/qemu-system-x86_64"))
            .arg("-L")
            .arg(usr.join("share/qemu"))
            .arg("-L")
            .arg(usr.join("share/seabios"))
            .args(["-accel", "tcg", "-icount", "shift=0,sleep=off", "-smp", "1"])
            .args(["-m", &format!("{}", self.memory_bytes >> 20)])
            .args(["-seed", &self.seed.to_string()])
            .args(["-rtc", "base=2026-01-01,clock=vm", "-cpu", CPU])
            .args(["-nodefaults", "-display", "none", "-no-reboot"])
            .args(["-append", &format!("{KERNEL_LINE} {}", self.kernel_line)])
            .arg("-kernel")
            .arg(self.kernel)
            .arg("-initrd")
            .arg(initrd)
            .args(["-serial", &format!("file:{}", text(&self.console()))])
            .args(["-serial", &format!("file:{}", text(progress))])
            .arg("-object")
            .arg(format!(
                "memory-backend-file,id=results,size={},share=on,mem-path={}",
                self.shared_bytes,
                text(shared)
            ))
            .args(["-device", "ivshmem-plain,memdev=results"]);
        command.args(nic_words(self.nics));
        command
    }

    fn wait(&self, mut child: Child, tail: &mut Tail, line: &mut dyn FnMut(&str)) -> Ended {
        let patience = Patience::new(child.id(), self.timeout);
        loop {
            let status = child.try_wait();
            tail.read(line);
            match status {
                Ok(Some(status)) if status.success() => return Ended::Well,
                Ok(Some(status)) => return Ended::Badly(status.to_string()),
                Ok(None) => {}
                Err(error) => return Ended::Badly(error.to_string()),
            }
            let stopped = self.stop.load(Ordering::Relaxed);
            if stopped || patience.ended() {
                // both fail only if it has just ended
                let _ = child.kill();
                let _ = child.wait();
                tail.read(line);
                return match stopped {
                    true => Ended::Badly("stopped, because another guest failed".into()),
                    false => Ended::Timeout,
                };
            }
            sleep(POLL);
        }
    }
}

/// No host network: a hub ends inside QEMU, and keeps virtual time. Devices
/// `02:00:00:00:HUB:1` and `:2` are the two of a hub. igb has virtual functions,
/// whose places on the bus must be free: it gets a PCIe port for itself.
fn nic_words(nics: &[&'static str]) -> Vec<String> {
    let mut words = Vec::new();
    if !nics.is_empty() {
        words.extend(["-machine".into(), "q35".into()]);
    }
    for (hub, nic) in nics.iter().enumerate() {
        for end in 1..=2 {
            words.push("-netdev".into());
            words.push(format!("hubport,id=hub{hub}end{end},hubid={hub}"));
            let mut bus = String::new();
            if nic.starts_with("igb") {
                let port = format!("hub{hub}port{end}");
                let slot = 2 * hub + end;
                words.push("-device".into());
                words.push(format!(
                    "pcie-root-port,id={port},chassis={slot},slot={slot}"
                ));
                bus = format!(",bus={port}");
            }
            words.push("-device".into());
            // without their boot ROMs, which are in another package
            words.push(format!(
                "{nic},netdev=hub{hub}end{end},mac=02:00:00:00:{hub:02x}:{end:02x},romfile={bus}"
            ));
        }
    }
    words
}

enum Ended {
    Well,
    Badly(String),
    Timeout,
}

/// A growing file, read line by line.
struct Tail {
    file: File,
    part: Vec<u8>,
}

impl Tail {
    fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).at("read", path)?;
        Ok(Self {
            file,
            part: Vec::new(),
        })
    }

    fn read(&mut self, line: &mut dyn FnMut(&str)) {
        // progress is shown, not relied on
        let _ = self.file.read_to_end(&mut self.part);
        while let Some(end) = self.part.iter().position(|byte| *byte == b'\n') {
            let bytes: Vec<u8> = self.part.drain(..=end).collect();
            line(String::from_utf8_lossy(&bytes).trim());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_each_nic_share_a_hub() {
        assert!(nic_words(&[]).is_empty());
        let words = nic_words(&["e1000e", "virtio-net-pci,speed=1000", "igb"]).join(" ");
        for expected in [
            "-netdev hubport,id=hub0end2,hubid=0 ",
            "-device e1000e,netdev=hub0end1,mac=02:00:00:00:00:01,romfile=",
            "-device virtio-net-pci,speed=1000,netdev=hub1end2,mac=02:00:00:00:01:02,romfile= ",
            "-device pcie-root-port,id=hub2port1,chassis=5,slot=5 ",
            "-device igb,netdev=hub2end1,mac=02:00:00:00:02:01,romfile=,bus=hub2port1",
        ] {
            assert!(words.contains(expected), "{expected} in {words}");
        }
    }
}
