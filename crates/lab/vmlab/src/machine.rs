// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a shell script in a guest of another machine: another instruction set, another order of
//! bytes, another size of a word.
//!
//! QEMU emulates the machine as it does the host's: one instruction is one nanosecond, idle time is
//! skipped. What the laboratory's agent speaks to is a PC's, so here the first process is a shell
//! script, and what the script prints leaves through the console.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::thread::sleep;
use std::time::Duration;

use crate::apt::Set;
use crate::console::{Failure, classify};
use crate::cpu_timeout::CpuTimeout;
use crate::error::{At, Error};
use crate::image::{self, Image, add_modules};
use crate::kbuild::{self, Cross, Headers, SCH_PSP, WIRE};
use crate::kernels::{KernelFiles, Module, unsigned};
use crate::packages::{self, TOOLS};
use crate::progress::Progress;
use crate::qemu::{ICOUNT, tied};
use crate::script::ScriptOutput;
use crate::setup::Lab;

/// The kernel that each of the machines has in Debian.
const SUITES: &[&str] = &["bookworm", "bookworm-backports"];
/// Programs of the guest, and what tc is linked with.
const PROGRAMS: &[&str] = &["lib", "zlib1g"];
const QEMU_KEEPS: &[&str] = &["qemu-system", "lib", "zlib1g"];
/// Without the recording that makes runs alike: QEMU 10 that records this machine ends with an
/// assertion of its own (`replay_advance_current_icount`).
const ICOUNT_OF_ARMHF: &str = "shift=0,sleep=off";
const POLL: Duration = Duration::from_millis(50);
const MEMORY_MB: &str = "1024";
/// As for the host's kernel, without what only a PC has.
const KERNEL_LINE: &str = "loglevel=5 panic=-1 nokaslr norandmaps cryptomgr.notests \
                           random.trust_bootloader=on init_on_alloc=0 nohz=off rdinit=/init";
/// Lines of the console around the script's output; the second is followed by the exit status.
const BEGIN: &str = "@@ output";
const END: &str = "@@ exit ";

/// A machine that is not the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// 64 bits, little endian.
    Arm64,
    /// 32 bits, little endian.
    Armhf,
    /// 64 bits, big endian.
    S390x,
}

/// What a machine has.
struct Kit {
    cross: Cross,
    /// Debian's folder of its libraries.
    libraries: &'static str,
    /// The program that links programs with libraries when they start.
    loader: &'static str,
    qemu: Set,
    kernel: Set,
    guest: Set,
    program: &'static str,
    /// QEMU's model of the board, and of the processor.
    board: &'static str,
    processor: &'static str,
    console: &'static str,
    /// How time passes.
    icount: &'static str,
}

impl Machine {
    pub const ALL: [Self; 3] = [Self::Arm64, Self::Armhf, Self::S390x];
    /// Their names, which are Debian's.
    pub const NAMES: [&str; 3] = ["arm64", "armhf", "s390x"];

    /// Returns Debian's name of the machine.
    pub fn name(self) -> &'static str {
        let [arm64, armhf, s390x] = Self::NAMES;
        match self {
            Self::Arm64 => arm64,
            Self::Armhf => armhf,
            Self::S390x => s390x,
        }
    }

    fn kit(self) -> Kit {
        let set = |name, suites, wanted, keep| Set {
            name,
            suites,
            wanted,
            keep,
            prepare: |_| Ok(()),
        };
        let qemu = |name, wanted| set(name, packages::QEMU.suites, wanted, QEMU_KEEPS);
        let guest = |name, wanted| set(name, packages::GUEST.suites, wanted, PROGRAMS);
        let kernel = |name, wanted| Set {
            prepare: kbuild::prepare,
            ..set(name, SUITES, wanted, TOOLS)
        };
        match self {
            Self::Arm64 => Kit {
                cross: Cross {
                    arch: "arm64",
                    prefix: "aarch64-linux-gnu-",
                },
                libraries: "aarch64-linux-gnu",
                loader: "ld-linux-aarch64.so.1",
                qemu: qemu("qemu-arm", &["qemu-system-arm"]),
                kernel: kernel(
                    "kernel-arm64",
                    &["linux-image-arm64:arm64", "linux-headers-arm64:arm64"],
                ),
                guest: guest(
                    "guest-arm64",
                    &[
                        "busybox-static:arm64",
                        "dash:arm64",
                        "iperf3:arm64",
                        "iproute2:arm64",
                    ],
                ),
                program: "qemu-system-aarch64",
                board: "virt",
                processor: "cortex-a72",
                console: "ttyAMA0",
                icount: ICOUNT,
            },
            Self::Armhf => Kit {
                cross: Cross {
                    arch: "arm",
                    prefix: "arm-linux-gnueabihf-",
                },
                libraries: "arm-linux-gnueabihf",
                loader: "ld-linux-armhf.so.3",
                qemu: qemu("qemu-arm", &["qemu-system-arm"]),
                kernel: kernel(
                    "kernel-armhf",
                    &["linux-image-armmp:armhf", "linux-headers-armmp:armhf"],
                ),
                guest: guest(
                    "guest-armhf",
                    &[
                        "busybox-static:armhf",
                        "dash:armhf",
                        "iperf3:armhf",
                        "iproute2:armhf",
                    ],
                ),
                program: "qemu-system-arm",
                board: "virt",
                processor: "cortex-a15",
                console: "ttyAMA0",
                icount: ICOUNT_OF_ARMHF,
            },
            Self::S390x => Kit {
                cross: Cross {
                    arch: "s390",
                    prefix: "s390x-linux-gnu-",
                },
                libraries: "s390x-linux-gnu",
                loader: "ld64.so.1",
                qemu: qemu("qemu-s390x", &["qemu-system-s390x"]),
                kernel: kernel(
                    "kernel-s390x",
                    &["linux-image-s390x:s390x", "linux-headers-s390x:s390x"],
                ),
                guest: guest(
                    "guest-s390x",
                    &[
                        "busybox-static:s390x",
                        "dash:s390x",
                        "iperf3:s390x",
                        "iproute2:s390x",
                    ],
                ),
                program: "qemu-system-s390x",
                board: "s390-ccw-virtio",
                processor: "max",
                console: "ttyS1",
                icount: ICOUNT,
            },
        }
    }
}

impl FromStr for Machine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|machine| machine.name() == text);
        found.ok_or_else(|| format!("machine \"{text}\": expected {}", Self::NAMES.join(", ")))
    }
}

/// Describes what [`run_on`] is to do.
#[derive(Clone, Debug)]
pub struct MachineSpec<'a> {
    /// Where the script runs.
    pub machine: Machine,
    /// Modules to load first, together with their dependencies. What the kernel does not have is
    /// left out.
    pub modules: &'a [&'a str],
    /// Files of this host, and their paths in the guest.
    pub files: &'a [(&'a Path, &'a str)],
    /// Shell command; its working folder is `/`.
    pub command: &'a str,
    /// Limit of the processor time.
    pub timeout: Duration,
    /// Folder for the logs.
    pub out_dir: &'a Path,
}

/// Runs a script on another machine. A script that fails is no error: see
/// [`ScriptOutput::status`].
///
/// # Errors
/// When the guest cannot be made, or its kernel complains, panics or hangs.
pub fn run_on(
    lab: &Lab,
    spec: &MachineSpec<'_>,
    progress: &dyn Progress,
) -> Result<ScriptOutput, Error> {
    let kit = spec.machine.kit();
    let root = |set: &Set| packages::root(&lab.cache, set, lab.refresh, progress);
    let (qemu, guest) = (root(&kit.qemu)?, root(&kit.guest)?);
    let kernel_root = root(&kit.kernel)?;
    let kernel = KernelFiles::find(kit.kernel.name, &kernel_root)?;
    let headers = Headers {
        cross: Some(kit.cross),
        release: &kernel.release,
        root: &kernel_root,
    };
    let module = |own| headers.module(&lab.cache, &lab.sources, own, progress);
    let own = [module(&WIRE)?, module(&SCH_PSP)?];
    let programs = kbuild::programs_of(&lab.cache, &lab.sources, Some(kit.cross), progress)?;
    let mut image = image::portable(&guest, &programs, kit.libraries, kit.loader)?;
    let loads = add_modules(&mut image, modules(&kernel, &own, spec.modules)?);
    for (from, to) in spec.files {
        let bytes = fs::read(from).at("read", from)?;
        image.file(to.trim_start_matches('/'), bytes);
    }
    image.file("command", format!("{}\n", spec.command).into_bytes());
    image.file("init", init(&loads).into_bytes());
    fs::create_dir_all(spec.out_dir).at("create", spec.out_dir)?;
    let console = spec.out_dir.join("console.log");
    boot(&kit, &qemu, &kernel.image, &image, spec)?;
    let text = fs::read(&console).at("read", &console)?;
    let text = String::from_utf8_lossy(&text).replace('\r', "");
    let failed = |failure| Error::Guest {
        failure,
        console: console.clone(),
    };
    if let Some(failure) = classify(&text) {
        return Err(failed(failure));
    }
    let (output, status) = said(&text).ok_or_else(|| failed(Failure::NoResult))?;
    Ok(ScriptOutput {
        status,
        output: output.to_owned(),
        console,
    })
}

/// Returns the modules to load, in order.
fn modules(kernel: &KernelFiles, own: &[Module], names: &[&str]) -> Result<Vec<Module>, Error> {
    let has = |name: &&&str| kernel.has(name) || own.iter().any(|own| own.name == **name);
    let names: Vec<String> = names.iter().filter(has).map(ToString::to_string).collect();
    let mut modules = kernel.load_order(&names, own)?;
    for module in &mut modules {
        module.bytes = unsigned(std::mem::take(&mut module.bytes));
    }
    Ok(modules)
}

/// Returns the first process.
fn init(loads: &[String]) -> String {
    let loads: String = loads
        .iter()
        .map(|load| format!("{load} || fail '{load}'\n"))
        .collect();
    format!(
        "#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
/bin/busybox --install -s /bin 2>/dev/null
fail() {{
	dmesg | tail -n 5
	echo \"agent: FAILED step 0: $1\"
	poweroff -f
}}
mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t devtmpfs devtmpfs /dev &&
	mount -t debugfs debugfs /sys/kernel/debug && mount -t tmpfs tmpfs /tmp &&
	mount -t tmpfs tmpfs /run || fail 'mount'
mkdir -p /var /out
ln -s /run /var/run
{loads}sh /command >/out/output 2>&1
status=$?
echo '{BEGIN}'
cat /out/output
echo \"{END}$status\"
sleep 1
poweroff -f
"
    )
}

/// Returns the script's output and its exit status.
fn said(console: &str) -> Option<(&str, i32)> {
    let (_, rest) = console.split_once(&format!("{BEGIN}\n"))?;
    let (output, rest) = rest.rsplit_once(END)?;
    Some((output, rest.lines().next()?.trim().parse().ok()?))
}

/// Runs QEMU to its end.
fn boot(
    kit: &Kit,
    qemu: &Path,
    kernel: &Path,
    image: &Image,
    spec: &MachineSpec<'_>,
) -> Result<(), Error> {
    let scratch = tempfile::tempdir_in(spec.out_dir).at("create a folder in", spec.out_dir)?;
    let initrd = scratch.path().join("initrd");
    fs::write(&initrd, image.to_cpio()).at("write", &initrd)?;
    let console = spec.out_dir.join("console.log");
    let words = spec.out_dir.join("qemu.log");
    let log = File::create(&words).at("create", &words)?;
    let usr = qemu.join("usr");
    let mut command: Command = tied(&usr.join("lib64/ld-linux-x86-64.so.2"));
    command.arg("--library-path");
    command.arg(usr.join("lib/x86_64-linux-gnu"));
    command.arg(usr.join("bin").join(kit.program));
    command.arg("-L").arg(usr.join("share/qemu"));
    command.args(["-accel", "tcg", "-icount", kit.icount]);
    command.args(["-machine", kit.board, "-cpu", kit.processor]);
    command.args(["-smp", "1", "-m", MEMORY_MB, "-seed", "1"]);
    command.args(["-rtc", "base=2026-01-01,clock=vm"]);
    command.args(["-display", "none", "-monitor", "none", "-net", "none"]);
    let line = format!("{KERNEL_LINE} console={}", kit.console);
    command.args(["-no-reboot", "-append", &line]);
    command.arg("-kernel").arg(kernel);
    command.arg("-initrd").arg(&initrd);
    let escaped = console.display().to_string().replace(',', ",,");
    command.args(["-serial", &format!("file:{escaped}")]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(log).spawn().map_err(|source| Error::Start {
        program: "setpriv (util-linux), which starts QEMU".into(),
        source,
    })?;
    let failed = |failure| {
        let console = console.clone();
        Err(Error::Guest { failure, console })
    };
    let timeout = CpuTimeout::new(child.id(), spec.timeout);
    loop {
        match child.try_wait().at("wait for QEMU in", spec.out_dir)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                let said = fs::read_to_string(&words).unwrap_or_default();
                return failed(Failure::Machine(format!("{status}: {}", said.trim())));
            }
            None if timeout.is_over() => {
                // Both calls fail only if QEMU has just ended.
                let _ = child.kill();
                let _ = child.wait();
                return failed(Failure::Timeout(spec.timeout.as_secs()));
            }
            None => sleep(POLL),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;

    #[test]
    fn machines_have_names() {
        for machine in Machine::ALL {
            assert_eq!(machine.name().parse(), Ok(machine));
            let name = machine.name();
            for set in [machine.kit().kernel, machine.kit().guest] {
                assert!(set.name.ends_with(name));
                let suffix = format!(":{name}");
                assert!(set.wanted.iter().all(|package| package.ends_with(&suffix)));
            }
        }
        let error = "mips".parse::<Machine>().unwrap_err();
        assert!(error.contains("expected arm64, armhf, s390x"), "{error}");
    }

    #[test]
    fn the_output_is_between_its_lines() {
        let console = "[ 0.1] boot\n@@ output\nok 1\n@@ exit 3\n[ 2.0] reboot\n";
        assert_eq!(said(console), Some(("ok 1\n", 3)));
        assert_eq!(said("@@ output\nok 1\n"), None);
        assert_eq!(said("@@ output\n@@ exit \n"), None);
    }

    #[test]
    fn a_module_that_does_not_load_ends_the_guest() {
        let script = init(&["insmod /modules/a.ko".into()]);
        assert!(script.contains("\ninsmod /modules/a.ko || fail 'insmod /modules/a.ko'\n"));
    }
}
