// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian packages, unpacked into the cache and never installed.
//!
//! apt resolves, fetches, and checks signatures and hashes. A set of packages is fetched once and then used until a refresh is asked for,
//! so that runs repeat and need no network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use scenario::Kernel;

use crate::apt::{Apt, Set};
use crate::cache::{Cache, short_hash};
use crate::command::output;
use crate::error::{At, Error};
use crate::kbuild;
use crate::progress::{Event, Progress};

/// Version of the files' layout. It changes when [`Set::prepare`] does something else than before.
const LAYOUT: &[u8] = b"1";
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

fn fetch(cache: &Cache, set: &Set, progress: &dyn Progress) -> Result<PathBuf, Error> {
    let apt = Apt::new(cache, set)?;
    progress.event(&Event::Lists { set: set.name });
    apt.update()?;
    let packages = apt.resolve(set)?;
    let files = &packages.files;
    let pieces = files.iter().map(|file| file.name.as_bytes());
    let name = format!("{}-{}", set.name, short_hash(pieces.chain([LAYOUT])));
    cache.entry("roots", &name, |root| {
        apt.download(set, &packages, progress)?;
        for (done, file) in files.iter().enumerate() {
            progress.event(&Event::Unpack {
                set: set.name,
                done,
                total: files.len(),
            });
            let mut dpkg = Command::new("dpkg-deb");
            dpkg.arg("-x").arg(apt.archives.join(&file.name)).arg(root);
            output(&mut dpkg, &format!("unpacking {}", file.name))?;
        }
        let total = files.len();
        progress.event(&Event::Unpack {
            set: set.name,
            done: total,
            total,
        });
        (set.prepare)(root)?;
        fs::remove_dir_all(&apt.archives).at("remove", &apt.archives)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

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
