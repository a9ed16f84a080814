// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian packages, unpacked into the cache and never installed.
//!
//! apt resolves, fetches, and checks signatures and hashes, in a private state that knows no
//! installed package. A set of packages is fetched once and then used until a refresh is asked for,
//! so that runs repeat and need no network.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use scenario::Kernel;

use crate::cache::{Cache, short_hash};
use crate::command::{failure, output};
use crate::error::{At, Error};
use crate::kbuild;
use crate::progress::{Event, Progress};
use crate::sources::Archives;

/// Version of the files' layout. It changes when [`Set::prepare`] does something else than before.
const LAYOUT: &[u8] = b"1";
/// Debian's name of the architecture that the laboratory runs on.
const HOST: &str = "amd64";

/// A set of packages that are used together.
pub(crate) struct Set {
    pub name: &'static str,
    /// Debian suites; the last is preferred where versions differ.
    pub suites: &'static [&'static str],
    /// Names of packages; of another architecture with that behind a colon.
    pub wanted: &'static [&'static str],
    /// Prefixes of names: a dependency of the wanted packages is kept if its name begins with one
    /// of these. The others (init systems, perl, ...) serve an installation and are not needed
    /// here.
    pub keep: &'static [&'static str],
    /// Prepares the files once they are unpacked.
    pub prepare: fn(&Path) -> Result<(), Error>,
}

/// QEMU 10. Older versions corrupt guests with newer kernels under instruction counting.
pub(crate) const QEMU: Set = Set {
    name: "qemu",
    suites: &["trixie"],
    wanted: &["qemu-system-x86"],
    keep: &["qemu-system", "seabios", "lib", "zlib1g"],
    prepare: |_| Ok(()),
};

/// Programs that run inside the guest.
pub(crate) const GUEST: Set = Set {
    name: "guest",
    suites: &["bookworm"],
    wanted: &["busybox-static", "dash", "iperf3", "iproute2"],
    keep: &["lib", "zlib1g"],
    prepare: |_| Ok(()),
};

/// ethtool, in guests whose hosts have offloads.
pub(crate) const ETHTOOL: Set = Set {
    name: "ethtool",
    suites: &["bookworm"],
    wanted: &["ethtool"],
    keep: &["lib"],
    prepare: |_| Ok(()),
};

/// The kernel's sources, for checkpatch and the debug kernel.
pub(crate) const CHECKPATCH: Set = Set {
    name: "checkpatch",
    suites: &["bookworm", "bookworm-security"],
    wanted: &["linux-source-6.1"],
    keep: &[],
    prepare: |_| Ok(()),
};

/// DPDK's headers and static libraries; the benchmark compares psp with DPDK.
pub(crate) const DPDK: Set = Set {
    name: "dpdk",
    suites: &["bookworm"],
    wanted: &["libbsd-dev", "libdpdk-dev", "libmd-dev", "libnuma-dev"],
    keep: &[],
    prepare: |_| Ok(()),
};

/// Prometheus and promtool, which test what `pspacer exporter` answers.
pub(crate) const PROMETHEUS: Set = Set {
    name: "prometheus",
    suites: &["bookworm"],
    wanted: &["prometheus"],
    keep: &[],
    prepare: |_| Ok(()),
};

/// etcd, a store that several managers share.
pub(crate) const ETCD: Set = Set {
    name: "etcd",
    suites: &["bookworm"],
    wanted: &["etcd-server"],
    keep: &[],
    prepare: |_| Ok(()),
};

/// systemd with udev, which starts the package's units in a guest.
pub(crate) const SYSTEMD: Set = Set {
    name: "systemd",
    suites: &["bookworm"],
    wanted: &["dash", "systemd", "udev"],
    keep: &["kmod", "lib", "mount", "util-linux", "zlib1g"],
    prepare: |_| Ok(()),
};

/// AppArmor's compiler of profiles and what profiles include.
pub(crate) const APPARMOR: Set = Set {
    name: "apparmor",
    suites: &["bookworm"],
    wanted: &["apparmor"],
    keep: &[],
    prepare: |_| Ok(()),
};

/// What a kernel's set keeps beside its wanted packages: the headers' build tools and what they are
/// linked with.
pub(crate) const TOOLS: &[&str] = &["linux-", "libelf1", "libssl3", "libzstd1", "zlib1g"];

/// Returns the set of a kernel, its headers and what the headers' build tools need. From version 7
/// on the headers ask for a compiler that Debian 12 does not have, so the set contains it.
pub(crate) const fn kernel(kernel: Kernel) -> Set {
    const WANTED: &[&str] = &["linux-image-cloud-amd64", "linux-headers-cloud-amd64"];
    match kernel {
        Kernel::V6_1 => Set {
            name: "kernel-6.1",
            suites: &["bookworm", "bookworm-security"],
            wanted: WANTED,
            keep: TOOLS,
            prepare: kbuild::prepare,
        },
        Kernel::V6_12 => Set {
            name: "kernel-6.12",
            suites: &["bookworm", "bookworm-backports"],
            wanted: WANTED,
            keep: TOOLS,
            prepare: kbuild::prepare,
        },
        Kernel::V7 => Set {
            name: "kernel-7",
            suites: &["trixie", "trixie-backports"],
            wanted: WANTED,
            keep: &[
                "linux-",
                "gcc-14",
                "cpp-14",
                "binutils",
                "libbinutils",
                "libc6",
                "libctf",
                "libelf1",
                "libgcc",
                "libgmp10",
                "libgprofng",
                "libisl23",
                "libjansson4",
                "libmpc3",
                "libmpfr6",
                "libsframe",
                "libssl3",
                "libzstd1",
                "zlib1g",
            ],
            prepare: kbuild::prepare,
        },
    }
}

/// Returns the set of a suite's generic kernel, whose modules include the drivers of real NICs.
pub(crate) const fn generic_kernel(kernel: Kernel) -> Set {
    const WANTED: &[&str] = &["linux-image-amd64", "linux-headers-amd64"];
    let (name, cloud) = match kernel {
        Kernel::V6_1 => ("generic-6.1", self::kernel(Kernel::V6_1)),
        Kernel::V6_12 => ("generic-6.12", self::kernel(Kernel::V6_12)),
        Kernel::V7 => ("generic-7", self::kernel(Kernel::V7)),
    };
    Set {
        name,
        wanted: WANTED,
        ..cloud
    }
}

impl Set {
    /// Returns the architectures whose packages the set may have: the host's, and those that names
    /// of wanted packages end with, as in `dash:arm64`.
    fn architectures(&self) -> BTreeSet<&'static str> {
        let others = self.wanted.iter().filter_map(|name| name.split_once(':'));
        others.map(|(_, other)| other).chain([HOST]).collect()
    }

    /// Returns the name of the set in the cache. It changes when other suites or packages are asked
    /// for.
    fn key(&self) -> String {
        let lists = [self.suites, self.wanted, self.keep].map(|list| list.join(" "));
        let hash = short_hash(lists.iter().map(|list| list.as_bytes()));
        format!("{}-{hash}", self.name)
    }
}

/// Returns the folder with the files of a set. Fetches the set if it is not in the cache, and asks
/// the archives again when `refresh` is set.
pub(crate) fn root(
    cache: &Cache,
    set: &Set,
    refresh: bool,
    progress: &dyn Progress,
) -> Result<PathBuf, Error> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(Error::Machine(std::env::consts::ARCH));
    }
    let stamp = cache.folder("sets")?.join(set.key());
    if let Some(root) = stamped(cache, &stamp).filter(|_| !refresh) {
        return Ok(root);
    }
    let _lock = cache.lock("apt")?;
    if let Some(root) = stamped(cache, &stamp).filter(|_| !refresh) {
        return Ok(root); // another process was first
    }
    settle(cache, set, &stamp, fetch(cache, set, progress), progress)
}

/// Records which files a successful fetch brought. After a failed fetch it returns the files of an
/// earlier one, if the cache has them.
fn settle(
    cache: &Cache,
    set: &Set,
    stamp: &Path,
    fetched: Result<PathBuf, Error>,
    progress: &dyn Progress,
) -> Result<PathBuf, Error> {
    let error = match fetched {
        Ok(root) => {
            let name = root.file_name().unwrap_or_default();
            write_whole(stamp, &name.to_string_lossy())?;
            return Ok(root);
        }
        Err(error) => error,
    };
    if let Some(root) = stamped(cache, stamp) {
        let why = error.to_string();
        let why = why.lines().next().unwrap_or_default();
        progress.event(&Event::Note {
            text: &format!("{}: not refreshed, the cache is used: {why}", set.name),
        });
        return Ok(root);
    }
    match error {
        error @ (Error::NoArchive { .. } | Error::Start { .. }) => Err(error),
        error => Err(Error::Packages {
            set: set.name,
            cache: cache.path().to_owned(),
            detail: error.to_string(),
        }),
    }
}

fn stamped(cache: &Cache, stamp: &Path) -> Option<PathBuf> {
    let name = fs::read_to_string(stamp).ok()?;
    Some(cache.path().join("roots").join(name)).filter(|root| root.is_dir())
}

fn write_whole(path: &Path, text: &str) -> Result<(), Error> {
    let beside = path.with_extension("new");
    fs::write(&beside, text).at("write", &beside)?;
    fs::rename(&beside, path).at("move into place", path)
}

/// Returns the `.tar.xz` of a source package.
pub(crate) fn source_archive(package: &Path) -> Result<PathBuf, Error> {
    let folder = package.join("usr/src");
    fs::read_dir(&folder)
        .at("read", &folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().ends_with(".tar.xz"))
        .ok_or_else(|| Error::Command {
            what: "looking for the kernel's sources".into(),
            detail: format!("no .tar.xz in {}", folder.display()),
        })
}

/// One package file of the archive.
struct Package {
    /// `name=version`, as apt takes it.
    spec: String,
    file: String,
    bytes: u64,
}

fn fetch(cache: &Cache, set: &Set, progress: &dyn Progress) -> Result<PathBuf, Error> {
    let apt = Apt::new(cache, set)?;
    progress.event(&Event::Lists { set: set.name });
    apt.update()?;
    let packages = apt.resolve(set)?;
    let files = packages
        .iter()
        .map(|package| package.file.as_bytes())
        .chain([LAYOUT]);
    let name = format!("{}-{}", set.name, short_hash(files));
    cache.entry("roots", &name, |root| {
        apt.download(set, &packages, progress)?;
        for (done, package) in packages.iter().enumerate() {
            progress.event(&Event::Unpack {
                set: set.name,
                done,
                total: packages.len(),
            });
            let mut dpkg = Command::new("dpkg-deb");
            dpkg.arg("-x")
                .arg(apt.archives.join(&package.file))
                .arg(root);
            output(&mut dpkg, &format!("unpacking {}", package.file))?;
        }
        let total = packages.len();
        progress.event(&Event::Unpack {
            set: set.name,
            done: total,
            total,
        });
        (set.prepare)(root)?;
        fs::remove_dir_all(&apt.archives).at("remove", &apt.archives)
    })
}

/// apt with a private state.
struct Apt {
    config: PathBuf,
    archives: PathBuf,
}

impl Apt {
    fn new(cache: &Cache, set: &Set) -> Result<Self, Error> {
        let archives = Archives::of_this_machine()?;
        let folder = cache.folder(&format!("apt/{}", set.name))?;
        let lists = cache.folder("apt/lists")?;
        cache.folder("apt/lists/partial")?;
        cache.folder(&format!("apt/{}/archives/partial", set.name))?;
        let path = |name: &str| folder.join(name);
        let sources = path("debian.sources");
        fs::write(&sources, archives.sources(set.suites)).at("write", &sources)?;
        let status = path("status");
        fs::write(&status, "").at("write", &status)?;
        let config = path("apt.conf");
        let suites = archives.available(set.suites);
        let release = suites.last().copied().unwrap_or_default();
        let settings = [
            ("APT::Architecture", HOST.into()),
            ("APT::Default-Release", release.into()),
            ("APT::Install-Recommends", "false".into()),
            ("APT::Get::List-Cleanup", "false".into()),
            ("APT::Update::Error-Mode", "any".into()),
            // The cache belongs to the user: apt must not change to a user of its own, who could
            // not write there.
            ("APT::Sandbox::User", String::new()),
            ("Acquire::Languages", "none".into()),
            ("Dir::State", folder.display().to_string()),
            ("Dir::State::status", status.display().to_string()),
            ("Dir::State::lists", lists.display().to_string()),
            ("Dir::Cache", folder.display().to_string()),
            ("Dir::Etc::sourcelist", sources.display().to_string()),
            ("Dir::Etc::sourceparts", "-".into()),
            ("Dir::Etc::preferences", "-".into()),
            ("Dir::Etc::preferencesparts", "-".into()),
        ];
        let mut text: String = settings
            .iter()
            .map(|(key, value)| format!("{key} \"{value}\";\n"))
            .collect();
        text += "#clear APT::Architectures;\n";
        for architecture in set.architectures() {
            text += &format!("APT::Architectures:: \"{architecture}\";\n");
        }
        // The hooks that the machine runs after its own updates must not run here.
        let text =
            text + "#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n";
        fs::write(&config, text).at("write", &config)?;
        Ok(Self {
            config,
            archives: path("archives"),
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new("apt-get");
        command
            .env("APT_CONFIG", &self.config)
            .current_dir(&self.archives);
        command
    }

    fn update(&self) -> Result<(), Error> {
        output(self.command().args(["-q", "update"]), "apt-get update").map(drop)
    }

    /// Returns the wanted packages and those of their dependencies that are kept.
    fn resolve(&self, set: &Set) -> Result<Vec<Package>, Error> {
        let mut install = self.command();
        install.args(["-q", "-s", "install"]).args(set.wanted);
        let plan = output(&mut install, "apt-get install --simulate")?;
        let keep = |name: &str| {
            set.wanted.contains(&name) || set.keep.iter().any(|prefix| name.starts_with(prefix))
        };
        let mut specs: Vec<String> = planned(&plan)
            .filter(|(name, _)| keep(name))
            .map(|(name, version)| format!("{name}={version}"))
            .collect();
        specs.sort();
        let mut uris = self.command();
        uris.args(["-q", "download", "--print-uris"]).args(&specs);
        let uris = output(&mut uris, "apt-get download --print-uris")?;
        let files: Vec<(&str, u64)> = uris.lines().filter_map(printed_uri).collect();
        if files.len() != specs.len() {
            return Err(Error::Command {
                what: "apt-get download --print-uris".into(),
                detail: format!("{} files for {} packages", files.len(), specs.len()),
            });
        }
        Ok(specs
            .into_iter()
            .zip(files)
            .map(|(spec, (file, bytes))| Package {
                spec,
                file: file.to_owned(),
                bytes,
            })
            .collect())
    }

    /// Fetches the files that are not in the cache yet. apt checks size and hash.
    fn download(
        &self,
        set: &Set,
        packages: &[Package],
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let size = |name: &str| fs::metadata(self.archives.join(name)).map_or(0, |meta| meta.len());
        let total_bytes = packages.iter().map(|package| package.bytes).sum();
        let report = || {
            let done = packages
                .iter()
                .map(|package| size(&package.file).min(package.bytes))
                .sum();
            progress.event(&Event::Download {
                set: set.name,
                done_bytes: done,
                total_bytes,
            });
        };
        let missing = packages
            .iter()
            .filter(|package| size(&package.file) != package.bytes)
            .map(|package| &package.spec);
        let mut command = self.command();
        command.args(["-q", "download"]).args(missing);
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|source| Error::Start {
            program: "apt-get".into(),
            source,
        })?;
        while let Ok(None) = child.try_wait() {
            report();
            sleep(Duration::from_millis(200));
        }
        report();
        let output = child
            .wait_with_output()
            .at("wait for apt-get in", &self.archives)?;
        if output.status.success() {
            Ok(())
        } else {
            Err(failure("apt-get download", &output))
        }
    }
}

/// Returns names and versions of `Inst NAME (VERSION ...)` lines.
fn planned(simulation: &str) -> impl Iterator<Item = (&str, &str)> {
    simulation.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("Inst ")?.split_once(" (")?;
        Some((
            name.split_whitespace().next()?,
            rest.split_whitespace().next()?,
        ))
    })
}

/// Returns file name and size of a line `'URI' FILE BYTES HASH`.
fn printed_uri(line: &str) -> Option<(&str, u64)> {
    let mut words = line
        .strip_prefix('\'')?
        .split_once("' ")?
        .1
        .split_whitespace();
    Some((words.next()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn the_output_of_apt_is_read() {
        let plan = "\
NOTE: This is only a simulation!
Inst gcc-14-base (14.2.0-19 Debian:13.7/stable [amd64])
Inst libgcc-s1 (14.2.0-19 Debian:13.7/stable [amd64]) []
Inst libc6 [2.36] (2.41-12+deb13u4 Debian:13.7/stable [amd64])
Conf libc6 (2.41-12+deb13u4 Debian:13.7/stable [amd64])
";
        let planned: Vec<_> = planned(plan).collect();
        let expected = [
            ("gcc-14-base", "14.2.0-19"),
            ("libgcc-s1", "14.2.0-19"),
            ("libc6", "2.41-12+deb13u4"),
        ];
        assert_eq!(planned, expected);
        let line = "'mirror+file:/m/pool/l%2bx.deb' l+x_1%3a2_amd64.deb 1456096 SHA256:7b";
        assert_eq!(printed_uri(line), Some(("l+x_1%3a2_amd64.deb", 1_456_096)));
        assert_eq!(printed_uri("Reading package lists..."), None);
    }

    #[test]
    fn packages_of_other_architectures_are_named() {
        assert_eq!(GUEST.architectures(), BTreeSet::from(["amd64"]));
        let set = Set {
            wanted: &["dash:s390x", "dash"],
            ..GUEST
        };
        assert_eq!(set.architectures(), BTreeSet::from(["amd64", "s390x"]));
        let line = "Inst dash:s390x (0.5.12-2 Debian:12/oldstable [s390x])";
        assert_eq!(planned(line).next(), Some(("dash:s390x", "0.5.12-2")));
    }

    #[test]
    fn a_refresh_that_fails_uses_the_cache_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned());
        let stamp = cache.folder("sets").unwrap().join(GUEST.key());
        let failed = || {
            let detail = "exit status: 100\nE: no route".to_owned();
            Err(Error::Command {
                what: "apt-get update".into(),
                detail,
            })
        };
        let said = Mutex::new(Vec::new());
        let progress = |event: &Event<'_>| said.lock().unwrap().push(format!("{event:?}"));

        let error = settle(&cache, &GUEST, &stamp, failed(), &progress).unwrap_err();
        assert!(
            matches!(error, Error::Packages { set: "guest", .. }),
            "{error}"
        );
        assert!(said.lock().unwrap().is_empty());

        let root = cache.folder("roots/guest-1").unwrap();
        let kept = settle(&cache, &GUEST, &stamp, Ok(root.clone()), &progress).unwrap();
        assert_eq!(kept, root);
        let kept = settle(&cache, &GUEST, &stamp, failed(), &progress).unwrap();
        assert_eq!(kept, root);
        let said = said.lock().unwrap();
        assert_eq!(said.len(), 1);
        assert!(
            said[0].contains("the cache is used: apt-get update failed"),
            "{said:?}"
        );
        assert!(!said[0].contains("no route"), "one line: {said:?}");

        // A cache of an older list of packages does not count.
        fs::remove_dir(&root).unwrap();
        assert_eq!(stamped(&cache, &stamp), None);
    }
}
