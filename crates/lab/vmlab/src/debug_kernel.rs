// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the debug kernel: Debian's sources of 6.1 with the kernel's own checkers compiled in, for
//! bugs that no test can see from outside. It is built once.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::available_parallelism;

use crate::cache::{Cache, short_hash};
use crate::command::output;
use crate::error::{At, Error};
use crate::packages;
use crate::progress::{Event, Progress};
use crate::repo::Sources;

/// Name of the debug kernel in messages and in the cache.
pub(crate) const NAME: &str = "debug-kernel";
/// Settings of the debug kernel; the rest is `allnoconfig`.
const FRAGMENT: &str = "lab/debug-kernel/fragment.config";
/// Version of the kept files. It changes when other files of a build are kept.
const LAYOUT: &[u8] = b"1";
/// Files of the source tree that modules are compiled against.
const KEPT: &[&str] = &[
    ".config",
    "Makefile",
    "Module.symvers",
    "arch/x86/Makefile",
    "arch/x86/Makefile.um",
    "arch/x86/Makefile_32.cpu",
    "arch/x86/include",
    "include",
    "scripts",
    "tools/objtool/objtool",
];

/// Further words of the debug kernel's command line: allocations of this cache, the heads of
/// frames, can be made to fail on their own (lab/fuzz/no-memory.sh); its other checks stay.
pub(crate) const LINE: &str = "slub_debug=FZPUA,skbuff_head_cache";

/// Returns a folder laid out as a kernel's unpacked packages: image, modules, headers. `source` is
/// the folder of the unpacked source package.
pub(crate) fn root(
    cache: &Cache,
    sources: &Sources,
    source: &Path,
    progress: &dyn Progress,
) -> Result<PathBuf, Error> {
    let fragment = sources.path().join(FRAGMENT);
    let wanted = fs::read(&fragment).at("read", &fragment)?;
    let version = source.file_name().unwrap_or_default().to_string_lossy();
    let key = short_hash([version.as_bytes(), &wanted, LAYOUT]);
    cache.entry(NAME, &key, |target| {
        progress.event(&Event::Build {
            what: "the debug kernel (half an hour, once)",
        });
        // The folder is always the same and stays when the build fails or is interrupted: the next
        // build continues there.
        let build = cache.folder(&format!("build/{NAME}-{key}"))?;
        unpack(source, &build)?;
        configure(&build, &fragment)?;
        compile(&build)?;
        install(&build, target)?;
        fs::remove_dir_all(&build).at("remove", &build)
    })
}

fn unpack(source: &Path, build: &Path) -> Result<(), Error> {
    let timestamp = build.join(".unpacked");
    if timestamp.is_file() {
        return Ok(());
    }
    let mut tar = Command::new("tar");
    tar.arg("-xJf").arg(packages::source_archive(source)?);
    tar.arg("-C").arg(build).arg("--strip-components=1");
    output(&mut tar, "unpacking the kernel's sources")?;
    fs::write(&timestamp, "").at("write", &timestamp)
}

fn make(build: &Path) -> Command {
    let mut make = Command::new("make");
    make.arg("-C").arg(build);
    make.env_remove("MAKEFLAGS").env_remove("MFLAGS");
    // The image must not depend on who builds it.
    make.env("KBUILD_BUILD_USER", "lab")
        .env("KBUILD_BUILD_HOST", "lab");
    make.env("KBUILD_BUILD_TIMESTAMP", "2026-01-01");
    make
}

/// Configures the kernel. Fails if this kernel lacks a setting of the fragment.
fn configure(build: &Path, fragment: &Path) -> Result<(), Error> {
    let mut all = std::ffi::OsString::from("KCONFIG_ALLCONFIG=");
    all.push(fragment);
    output(
        make(build).arg(all).arg("allnoconfig"),
        "configuring the debug kernel",
    )?;
    let path = build.join(".config");
    let config = fs::read_to_string(&path).at("read", &path)?;
    let wanted = fs::read_to_string(fragment).at("read", fragment)?;
    match missing(&wanted, &config) {
        missing if missing.is_empty() => Ok(()),
        missing => Err(Error::Command {
            what: "configuring the debug kernel".into(),
            detail: format!("the kernel does not take {}", missing.join(", ")),
        }),
    }
}

/// Returns the settings of a fragment that a configuration does not have.
fn missing<'a>(fragment: &'a str, config: &str) -> Vec<&'a str> {
    let has = |setting: &str| match setting.strip_suffix("=n") {
        Some(key) => !config
            .lines()
            .any(|line| line.split_once('=').is_some_and(|(name, _)| name == key)),
        None => config.lines().any(|line| line == setting),
    };
    fragment
        .lines()
        .filter(|line| line.starts_with("CONFIG_") && !has(line))
        .collect()
}

fn compile(build: &Path) -> Result<(), Error> {
    let jobs = available_parallelism().map_or(1, NonZeroUsize::get);
    let mut make = make(build);
    make.arg(format!("-j{jobs}")).args(["bzImage", "modules"]);
    output(&mut make, "compiling the debug kernel").map(drop)
}

fn install(build: &Path, target: &Path) -> Result<(), Error> {
    let release = output(
        make(build).args(["-s", "kernelrelease"]),
        "asking for the release",
    )?;
    let release = release.trim();
    let mut modules = make(build);
    modules.arg(format!("INSTALL_MOD_PATH={}", target.display()));
    // depmod is skipped: nothing looks modules up by their aliases.
    modules.args(["DEPMOD=true", "modules_install"]);
    output(&mut modules, "collecting the debug kernel's modules")?;
    // Both links point to the build folder, which is removed.
    for link in ["build", "source"] {
        let path = target.join("lib/modules").join(release).join(link);
        if path.is_symlink() {
            fs::remove_file(&path).at("remove", &path)?;
        }
    }
    let boot = target.join("boot");
    fs::create_dir_all(&boot).at("create", &boot)?;
    let image = boot.join(format!("vmlinuz-{release}"));
    fs::copy(build.join("arch/x86/boot/bzImage"), &image).at("write", &image)?;
    let headers = target.join(format!("usr/src/linux-headers-{release}"));
    fs::create_dir_all(&headers).at("create", &headers)?;
    let mut copy = Command::new("cp");
    copy.args(["-a", "--parents"]).args(KEPT).arg(&headers);
    copy.current_dir(build);
    output(&mut copy, "collecting the debug kernel's headers").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_the_kernel_rejects_are_named() {
        let config = "# x\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=\"-x\"\nCONFIG_DD=m\n";
        let fragment = "# CONFIG_Z=y\nCONFIG_A=y\nCONFIG_B=n\nCONFIG_C=\"-x\"\nCONFIG_D=n\n";
        assert_eq!(missing(fragment, config), Vec::<&str>::new());
        let fragment = "CONFIG_A=m\nCONFIG_B=y\nCONFIG_DD=n\n";
        assert_eq!(
            missing(fragment, config),
            ["CONFIG_A=m", "CONFIG_B=y", "CONFIG_DD=n"]
        );
    }
}
