// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs one guest from boot to end.
//!
//! A guest is deterministic because nothing in it depends on the host's time: one instruction is
//! one nanosecond, idle time is skipped, QEMU's threads take turns, the random numbers of the guest
//! are seeded and no device is driven by the host. Results leave through shared memory, which costs
//! the guest no exit.
//!
//! A guest with several processors is not: each has a thread of QEMU, and time is the host's.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use crate::console::{Failure, classify};
use crate::cpu_timeout::CpuTimeout;
use crate::error::{At, Error};
use crate::guest_store::{Answers, Store};
use crate::saved;

/// Kernel command line of every guest. `loglevel=5` shows warnings. The tests of the kernel's
/// ciphers and of its timer interrupt, which cannot fail here, would cost a second a boot.
/// `init_on_alloc=0 nohz=off` saves CPU work in the guest that a NIC would not wait for; measured
/// in lab/README.md.
const KERNEL_LINE: &str = "console=ttyS0 loglevel=5 panic=-1 nokaslr norandmaps \
                           random.trust_cpu=on mitigations=off tsc=reliable no_timer_check \
                           cryptomgr.notests init_on_alloc=0 nohz=off";
/// CPU model. Without `erms` and `fsrm` the kernel copies by words: `rep movsb` would count every
/// byte as an instruction.
const CPU: &str = "max,-erms,-fsrm";
/// One instruction is one nanosecond, idle time is skipped. QEMU has a thread for the processor and
/// one for the timers. Without recording the timers' thread may look at the clock between the
/// instant at which the processor falls idle and the one at which the instructions of its last turn
/// are added to the clock. It then skips too much, by chance. While QEMU records, a lock lets only
/// one of the two run; the record itself is not wanted.
pub(crate) const ICOUNT: &str = "shift=0,sleep=off,rr=record,rrfile=/dev/null";
/// The same with QEMU's NICs, whose runs may differ: QEMU 10 that records stands still after a
/// while of their traffic, with both threads busy and the guest's time at rest.
const ICOUNT_OF_NICS: &str = "shift=0,sleep=off";
/// Files that exist while a guest runs: its initial file system, its results, its progress.
const SCRATCH: [&str; 3] = ["initrd", "shared", "progress"];
const POLL: Duration = Duration::from_millis(20);

/// Where QEMU finds and leaves files.
struct Places<'a> {
    qemu: &'a Path,
    kernel: &'a Path,
    console: &'a Path,
    initrd: &'a Path,
    shared: &'a Path,
    progress: &'a Path,
}

/// How a guest begins. The folders are those of a snapshot in the cache.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    /// With the kernel.
    Boot,
    /// With the kernel; when the agent stops the guest, it is saved and ends.
    Save(&'a Path),
    /// Where it was saved.
    Resume(&'a Path),
}

#[derive(Clone)]
pub(crate) struct Guest<'a> {
    /// Folder of QEMU's package set.
    pub qemu: &'a Path,
    /// Kernel image.
    pub kernel: &'a Path,
    /// Further words of the kernel's command line.
    pub kernel_line: &'a str,
    /// Initial file system; of a guest that resumes, the archive of the run's files.
    pub initrd: &'a [u8],
    pub start: Start<'a>,
    pub memory_bytes: u64,
    /// Processors. With more than one the guest follows the host's clock.
    pub cpus: u32,
    /// Room for results, in bytes; a power of two.
    pub shared_bytes: u64,
    pub seed: u64,
    /// Limit of the processor time.
    pub timeout: Duration,
    /// Folder of the logs, which are kept.
    pub folder: &'a Path,
    /// QEMU device models. Each stands for two devices that a hub joins.
    pub nics: &'a [&'static str],
    /// A plugin of QEMU and its argument.
    pub plugin: Option<(&'a Path, String)>,
    /// Ends the guest early when set.
    pub stop: &'a AtomicBool,
    pub store: &'a Store,
    pub answers: Answers,
}

impl Guest<'_> {
    /// Returns the path of the guest's console log.
    pub fn console(&self) -> PathBuf {
        self.folder.join("console.log")
    }

    /// Returns what a guest writes: its folder with the logs, and the files in `scratch`.
    pub fn files(&self, scratch: &Path) -> Vec<PathBuf> {
        let mut files = vec![self.folder.to_owned(), self.console(), self.words()];
        files.push(scratch.to_owned());
        files.extend(SCRATCH.map(|name| scratch.join(name)));
        files
    }

    /// Returns the path of the log of QEMU's own messages.
    pub fn words(&self) -> PathBuf {
        self.folder.join("qemu.log")
    }

    pub fn failed(&self, failure: Failure) -> Error {
        Error::Guest {
            failure,
            console: self.console(),
        }
    }

    /// Returns all of QEMU's options, but for where files are and for the seed: guests with the same
    /// ones may resume from the same snapshot.
    pub fn machine(&self) -> Vec<OsString> {
        let seed = 0;
        let start = Start::Boot;
        Guest {
            seed,
            start,
            plugin: None,
            ..self.clone()
        }
        .options_anywhere()
    }

    /// Returns QEMU's options with names for the paths, so that they are the same everywhere. A
    /// snapshot's name has the digest of what it was made of.
    pub fn options_anywhere(&self) -> Vec<OsString> {
        let [initrd, shared, progress] = SCRATCH.map(Path::new);
        let name = |folder: &'_ Path| PathBuf::from(folder.file_name().unwrap_or_default());
        let snapshot = match self.start {
            Start::Boot => PathBuf::new(),
            Start::Save(folder) | Start::Resume(folder) => name(folder),
        };
        let start = match self.start {
            Start::Boot => Start::Boot,
            Start::Save(_) => Start::Save(&snapshot),
            Start::Resume(_) => Start::Resume(&snapshot),
        };
        let guest = Guest {
            start,
            ..self.clone()
        };
        guest.options(&Places {
            qemu: &name(self.qemu),
            kernel: Path::new("kernel"),
            console: Path::new("console"),
            initrd,
            shared,
            progress,
        })
    }

    /// Returns the files in `scratch` that [`Guest::run`] leaves: shared memory and progress.
    pub fn left_in(scratch: &Path) -> [PathBuf; 2] {
        let [_, shared, progress] = SCRATCH.map(|name| scratch.join(name));
        [shared, progress]
    }

    /// Starts the guest, calls `line` with every line of the progress port, waits for the end, and
    /// returns the file with the shared memory, which is in `scratch`.
    pub fn run(&self, scratch: &Path, line: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
        fs::create_dir_all(self.folder).at("create", self.folder)?;
        let [initrd, shared, progress] = SCRATCH.map(|name| scratch.join(name));
        fs::write(&initrd, self.initrd).at("write", &initrd)?;
        File::create(&shared)
            .and_then(|file| file.set_len(self.shared_bytes))
            .at("create", &shared)?;
        File::create(&progress).at("create", &progress)?;
        if let Start::Resume(folder) = self.start {
            let (from, to) = (saved::console(folder), self.console());
            fs::copy(&from, &to).at("write", &to)?;
        }
        let words = self.words();
        let log = File::create(&words).at("create", &words)?;
        let places = Places {
            qemu: self.qemu,
            kernel: self.kernel,
            console: &self.console(),
            initrd: &initrd,
            shared: &shared,
            progress: &progress,
        };
        let usr = self.qemu.join("usr");
        let mut command = tied(&usr.join("lib64/ld-linux-x86-64.so.2"));
        let monitor = match self.start {
            Start::Save(_) => Stdio::piped,
            _ => Stdio::null,
        };
        command
            .arg("--library-path")
            .arg(usr.join("lib/x86_64-linux-gnu"))
            .arg(usr.join("bin/qemu-system-x86_64"))
            .args(self.options(&places))
            .stdin(monitor())
            .stdout(monitor())
            .stderr(log);
        let mut child = command.spawn().map_err(|source| Error::Start {
            program: "setpriv (util-linux), which starts QEMU".into(),
            source,
        })?;
        let mut tail = Tail::open(&progress)?;
        let monitor = (child.stdout.take(), child.stdin.take());
        let ended = thread::scope(|threads| {
            let saved = match (self.start, monitor) {
                (Start::Save(folder), (Some(from), Some(to))) => {
                    threads.spawn(move || saved::save(BufReader::new(from), to, folder))
                }
                _ => threads.spawn(|| Ok(true)),
            };
            let ended = self.wait(child, &mut tail, line);
            match (ended, saved.join()) {
                (Ended::Well, Ok(Ok(true))) => Ended::Well,
                (Ended::Well, _) => Ended::Badly("it has not written the guest's snapshot".into()),
                (other, _) => other,
            }
        });
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

    fn options(&self, places: &Places<'_>) -> Vec<OsString> {
        let share = places.qemu.join("usr/share");
        let icount = match self.nics {
            [] => ICOUNT,
            _ => ICOUNT_OF_NICS,
        };
        let mut options: Vec<OsString> = Vec::new();
        let mut add = |name: &str, value: &dyn AsRef<OsStr>| {
            options.extend([name.into(), value.as_ref().to_owned()]);
        };
        add("-L", &share.join("qemu"));
        add("-L", &share.join("seabios"));
        if self.cpus == 1 {
            add("-accel", &"tcg");
            add("-icount", &icount);
        } else {
            add("-accel", &"tcg,thread=multi");
        }
        add("-smp", &self.cpus.to_string());
        add("-m", &format!("{}", self.memory_bytes >> 20));
        add("-seed", &self.seed.to_string());
        add("-rtc", &"base=2026-01-01,clock=vm");
        add("-cpu", &CPU);
        add("-display", &"none");
        add("-append", &format!("{KERNEL_LINE} {}", self.kernel_line));
        add("-kernel", &places.kernel);
        add("-initrd", &places.initrd);
        let append = match self.start {
            Start::Resume(_) => "on",
            _ => "off",
        };
        let console = text(places.console);
        add(
            "-chardev",
            &format!("file,id=console,path={console},append={append}"),
        );
        add("-serial", &"chardev:console");
        add("-serial", &format!("file:{}", text(places.progress)));
        let backend = format!(
            "memory-backend-file,id=results,size={},share=on,mem-path={}",
            self.shared_bytes,
            text(places.shared)
        );
        add("-object", &backend);
        add("-device", &"ivshmem-plain,memdev=results,master=on");
        if let Some((plugin, argument)) = &self.plugin {
            add("-plugin", &format!("{},{argument}", text(plugin)));
        }
        options.extend(["-nodefaults", "-no-reboot"].map(OsString::from));
        options.extend(self.start_words().into_iter().map(OsString::from));
        options.extend(nic_words(self.nics).into_iter().map(OsString::from));
        options
    }

    /// Returns QEMU's options for the guest's start. The agent stops a guest that is to be saved
    /// through a watchdog, whose timer ends while the processor is at rest. A resumed guest keeps
    /// for itself what it changes in the memory.
    fn start_words(&self) -> Vec<String> {
        let (folder, share, machine) = match self.start {
            Start::Boot => return Vec::new(),
            Start::Save(folder) => (folder, "on", ""),
            Start::Resume(folder) => (folder, "off", ",suppress-vmdesc=on"),
        };
        let memory = format!(
            "memory-backend-file,id=memory,size={}M,share={share},mem-path={}",
            self.memory_bytes >> 20,
            text(&saved::memory(folder))
        );
        let machine = format!("memory-backend=memory{machine}");
        let mut words = vec!["-object".into(), memory, "-machine".into(), machine];
        words.extend(["-device".into(), "ib700".into()]);
        let devices = format!("file:{}", saved::devices(folder).display());
        let more: &[&str] = match self.start {
            Start::Resume(_) => &[
                "-global",
                "migration.send-configuration=off",
                "-incoming",
                &devices,
            ],
            _ => &["-action", "watchdog=pause", "-qmp", "stdio"],
        };
        words.extend(more.iter().map(ToString::to_string));
        words
    }

    fn wait(&self, mut child: Child, tail: &mut Tail, line: &mut dyn FnMut(&str)) -> Ended {
        let timeout = CpuTimeout::new(child.id(), self.timeout);
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
            if stopped || timeout.is_over() {
                // Both calls fail only if QEMU has just ended.
                let _ = child.kill();
                let _ = child.wait();
                tail.read(line);
                return if stopped {
                    Ended::Badly("stopped, because another guest failed".into())
                } else {
                    Ended::Timeout
                };
            }
            sleep(POLL);
        }
    }
}

/// Returns a path within an option of QEMU, which reads a doubled comma as a comma.
fn text(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// Returns QEMU's options for the devices. The guest has no host network: a hub ends inside QEMU,
/// and keeps virtual time. Devices `02:00:00:00:HUB:1` and `:2` are the two of a hub. igb has
/// virtual functions, which need free slots on the bus: it gets a PCIe port for itself.
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
            // `romfile=` disables the boot ROMs, which are in another package.
            words.push(format!(
                "{nic},netdev=hub{hub}end{end},mac=02:00:00:00:{hub:02x}:{end:02x},romfile={bus}"
            ));
        }
    }
    words
}

/// Returns a command whose process does not outlive this one, however this one ends: the kernel
/// kills it when the thread that started it is gone. If this process ends before the kernel is
/// asked for that, the shell sees another parent and does not start the program.
pub(crate) fn tied(program: &Path) -> Command {
    const WHILE_PARENT: &str = r#"[ "$PPID" = "$0" ] && exec "$@""#;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "sh", "-c", WHILE_PARENT]);
    command.arg(std::process::id().to_string()).arg(program);
    command
}

enum Ended {
    Well,
    Badly(String),
    Timeout,
}

/// A growing file that is read line by line.
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
        // A read error is ignored: progress is only displayed.
        let _ = self.file.read_to_end(&mut self.part);
        while let Some(end) = self.part.iter().position(|byte| *byte == b'\n') {
            let bytes: Vec<u8> = self.part.drain(..=end).collect();
            line(String::from_utf8_lossy(&bytes).trim());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use std::env;
    use std::io::{BufRead, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use crate::cache::Cache;

    /// Names the folder in which [`holder`] boots a guest.
    const FOLDER: &str = "PSPACER_TEST_HOLDER";

    /// Stands for QEMU: prints its process number, and after 30 s that it is still there.
    const LOADER: &str =
        "#!/bin/sh\nexec 3>\"$FIFO\"\necho $$ >&3\nsleep 30 3>&-\necho outlived >&3\n";

    /// Boots a guest; another test runs it as a command and kills it.
    #[test]
    fn holder() {
        let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else {
            return;
        };
        let guest = Guest {
            qemu: &folder,
            kernel: Path::new("none"),
            kernel_line: "",
            initrd: &[],
            start: Start::Boot,
            memory_bytes: 1 << 20,
            cpus: 1,
            shared_bytes: 1 << 12,
            seed: 1,
            timeout: Duration::from_secs(60),
            folder: &folder.join("logs"),
            nics: &[],
            plugin: None,
            stop: &AtomicBool::new(false),
            store: &Store::of(&Cache::at(folder.join("cache"))).unwrap(),
            answers: Answers::Unstored,
        };
        // The guest starts in a thread, because guests run side by side.
        std::thread::scope(|threads| {
            threads.spawn(|| guest.run(&folder, &mut |_| {}).map(drop));
        });
    }

    /// The guest ends with its command, however that ends.
    #[test]
    fn a_guest_does_not_outlive_its_command() {
        for signal in ["KILL", "TERM", "INT"] {
            let folder = tempfile::tempdir().unwrap();
            let fifo = folder.path().join("fifo");
            assert!(
                Command::new("mkfifo")
                    .arg(&fifo)
                    .status()
                    .unwrap()
                    .success()
            );
            let loader = folder.path().join("usr/lib64/ld-linux-x86-64.so.2");
            fs::create_dir_all(loader.parent().unwrap()).unwrap();
            let mut file = File::create(&loader).unwrap();
            file.write_all(LOADER.as_bytes()).unwrap();
            drop(file);
            fs::set_permissions(&loader, fs::Permissions::from_mode(0o755)).unwrap();
            // A background job inherits that SIGINT is ignored, so the command resets it.
            let mut command = Command::new("env");
            command.arg("--default-signal=INT,TERM");
            command.arg(env::current_exe().unwrap());
            command.args(["--exact", "qemu::tests::holder"]);
            command.env(FOLDER, folder.path()).env("FIFO", &fifo);
            let mut command = command.stdout(Stdio::null()).spawn().unwrap();
            let mut said = BufReader::new(File::open(&fifo).unwrap());
            let mut number = String::new();
            said.read_line(&mut number).unwrap();
            let number: u32 = number.trim().parse().unwrap();
            assert_ne!(number, command.id());
            let pid = command.id();
            // The shell has this command; it is no program on every Debian.
            let kill = format!("kill -s {signal} {pid}");
            let killed = Command::new("sh").args(["-c", &kill]).status();
            assert!(killed.unwrap().success());
            assert!(command.wait().unwrap().signal().is_some());
            // The fifo ends when no process holds it open any more.
            let mut last = String::new();
            said.read_to_string(&mut last).unwrap();
            assert_eq!(last, "", "SIG{signal}: the guest has outlived its command");
        }
    }

    /// A guest does not start if its command ended before the kernel watched it.
    #[test]
    fn a_guest_of_another_parent_does_not_start() {
        let command = tied(Path::new("echo"));
        let args: Vec<_> = command.get_args().map(|arg| arg.to_owned()).collect();
        let own = std::process::id().to_string();
        let place = args.iter().position(|arg| *arg == *own).unwrap();
        let run = |parent: &str| {
            let mut args = args.clone();
            args[place] = parent.into();
            let mut command = Command::new(command.get_program());
            command.args(args).arg("started").output().unwrap()
        };
        assert_eq!(run(&own).stdout, b"started\n");
        let other = run("1");
        assert!(other.stdout.is_empty() && !other.status.success());
    }

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
