// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles for the guest: the cable and the qdisc against a kernel's headers, and the programs
//! that run inside.
//!
//! Sources are copied before they are compiled. Results are kept under a hash of the sources and
//! the kernel, so an unchanged tree is compiled once.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection};
use walkdir::WalkDir;

use crate::cache::Cache;
use crate::command::{failure, output, start};
use crate::error::{At, Error};
use crate::kernels::Module;
use crate::progress::{Event, Progress};
use crate::repo::{Sources, Text};

/// One of the project's kernel modules.
pub(crate) struct OwnModule {
    pub name: &'static str,
    /// Folder of its Kbuild file.
    folder: &'static str,
    /// Folders with its sources.
    pub sources: &'static [&'static str],
}

/// The module that simulates the cables.
pub(crate) const WIRE: OwnModule = OwnModule {
    name: "wire",
    folder: "lab/wire",
    sources: &["lab/wire"],
};
/// The qdisc under test.
pub(crate) const SCH_PSP: OwnModule = OwnModule {
    name: "sch_psp",
    folder: "kernel",
    sources: &["kernel", "core", "uapi"],
};
/// The core alone, which runs calls of a test.
pub(crate) const PACE_CALLS: OwnModule = OwnModule {
    name: "pace_calls",
    folder: "lab/core",
    sources: &["lab/core", "core"],
};

/// A compiled module before it was stripped.
const DEBUG: &str = "module.debug";

/// Returns the name of a compiled module in the cache. It changes with what is kept beside it.
fn module_entry(own: &OwnModule, release: &str, hash: &str) -> String {
    format!("{}-{release}-{hash}-3", own.name)
}

const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const LOADER: &str = "usr/lib64/ld-linux-x86-64.so.2";

/// How to compile for another machine than the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cross {
    /// The kernel's name of the architecture.
    pub arch: &'static str,
    /// Prefix of the names of compiler and binutils.
    pub prefix: &'static str,
}

/// Headers of one kernel, and the means to compile against them.
pub(crate) struct Headers<'a> {
    /// Of a kernel of another machine.
    pub cross: Option<Cross>,
    pub release: &'a str,
    /// Folder of the kernel's package set.
    pub root: &'a Path,
}

impl Headers<'_> {
    fn folder(&self) -> PathBuf {
        self.root
            .join("usr/src")
            .join(format!("linux-headers-{}", self.release))
    }

    /// Returns the compiler of the kernel's package set, if the set has one.
    fn compiler(&self) -> Option<PathBuf> {
        let folder = self.root.join("usr/bin");
        Some(folder.join("x86_64-linux-gnu-gcc-14")).filter(|path| path.is_file())
    }

    /// Compiles a module, or returns it from the cache.
    pub fn module(
        &self,
        cache: &Cache,
        sources: &Sources,
        own: &OwnModule,
        progress: &dyn Progress,
    ) -> Result<Module, Error> {
        let hash = sources.hash(own.sources)?;
        let name = module_entry(own, self.release, &hash);
        let entry = cache.entry("modules", &name, |target| {
            let what = format!("{} for {}", own.name, self.release);
            progress.event(&Event::Build { what: &what });
            // The folder is always the same, because the module contains the paths of its sources.
            let build = cache.folder(&format!("build/{name}"))?;
            let compile = |text| {
                sources.copy(own.sources, &build, text)?;
                start(&mut self.make(&build.join(own.folder)))
            };
            let object = build.join(own.folder).join(format!("{}.ko", own.name));
            let mut made = compile(Text::Deciding)?;
            if !made.status.success() {
                // For the numbers of its lines.
                made = compile(Text::Whole)?;
            }
            // No checker sees what is compiled for other machines.
            let warned =
                self.cross.is_some() && String::from_utf8_lossy(&made.stderr).contains("warning:");
            if warned || !made.status.success() {
                return Err(failure(&format!("compiling {what}"), &made));
            }
            let whole = target.join(DEBUG);
            fs::copy(&object, &whole).at("write", &whole)?;
            let prefix = self.cross.map_or("", |cross| cross.prefix);
            let mut strip = Command::new(format!("{prefix}strip"));
            strip.arg("--strip-debug").arg(&object);
            output(&mut strip, "stripping a module")?;
            let kept = target.join("module.ko");
            let bytes = fs::read(&object).at("read", &object)?;
            fs::write(&kept, without_lines(bytes)).at("write", &kept)?;
            fs::remove_dir_all(&build).at("remove", &build)
        })?;
        let path = entry.join("module.ko");
        let bytes = fs::read(&path).at("read", &path)?;
        Ok(Module {
            name: own.name.to_owned(),
            bytes,
        })
    }

    /// Returns the file of a module that [`Self::module`] has compiled, with debug information.
    pub fn debug(
        &self,
        cache: &Cache,
        sources: &Sources,
        own: &OwnModule,
    ) -> Result<PathBuf, Error> {
        let name = module_entry(own, self.release, &sources.hash(own.sources)?);
        Ok(cache.folder("modules")?.join(name).join(DEBUG))
    }

    /// Compiles a module again with all of the kernel's warnings and sparse, and returns their
    /// messages.
    pub fn sparse(
        &self,
        cache: &Cache,
        sources: &Sources,
        own: &OwnModule,
    ) -> Result<String, Error> {
        let name = format!("sparse-{}-{}", own.name, self.release);
        let _lock = cache.lock(&name)?;
        let build = cache.folder(&format!("build/{name}"))?;
        sources.copy(own.sources, &build, Text::Whole)?;
        let mut make = self.make(&build.join(own.folder));
        make.args(["W=1", "C=2", "CF=-D__CHECK_ENDIAN__"]);
        let what = format!("compiling {} under sparse", own.name);
        let said = start(&mut make)?;
        fs::remove_dir_all(&build).at("remove", &build)?;
        if !said.status.success() {
            return Err(failure(&what, &said));
        }
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        let complains = |line: &&str| line.contains("warning:") || line.contains("error:");
        Ok(text
            .lines()
            .filter(complains)
            .map(|line| format!("{line}\n"))
            .collect())
    }

    fn make(&self, folder: &Path) -> Command {
        let mut make = Command::new("make");
        make.arg("-C").arg(self.folder());
        make.arg(format!("M={}", folder.display()));
        // BTF of modules needs pahole and the kernel's own BTF; nothing here reads it.
        make.arg("CONFIG_DEBUG_INFO_BTF_MODULES=");
        // What is compiled does not depend on where: a warning has the path of its source.
        make.arg(format!(
            "KCFLAGS=-fmacro-prefix-map={}/= -fmacro-prefix-map={}/=",
            folder.display(),
            self.root.display()
        ));
        match (self.cross, self.compiler()) {
            (Some(Cross { arch, prefix }), _) => {
                make.arg(format!("ARCH={arch}"));
                make.arg(format!("CROSS_COMPILE={prefix}"));
                // The set's kernel has the name of its compiler in its headers.
                make.arg(format!("CC={prefix}gcc"));
                make.env("LD_LIBRARY_PATH", self.root.join(LIBRARIES));
            }
            (None, Some(compiler)) => {
                make.arg(format!("CC={}", compiler.display()));
                for tool in ["ld", "ar", "nm", "objcopy", "objdump", "readelf", "strip"] {
                    let path = self.root.join(format!("usr/bin/x86_64-linux-gnu-{tool}"));
                    make.arg(format!("{}={}", tool.to_uppercase(), path.display()));
                }
            }
            (None, None) => {
                make.args(["CC=cc", "CROSS_COMPILE="]);
                // Libraries that the prebuilt build tools are linked with, in case the host lacks
                // them.
                make.env("LD_LIBRARY_PATH", self.root.join(LIBRARIES));
            }
        }
        make.arg("modules");
        make.env_remove("MAKEFLAGS").env_remove("MFLAGS");
        make
    }
}

/// Takes out of a module what tells its sources apart and decides nothing: the digests of their text
/// and of the debug information, and the numbers of the lines that warn.
fn without_lines(mut module: Vec<u8>) -> Vec<u8> {
    const DIGEST: &[u8] = b"srcversion=";
    // A file that is no ELF file has none of that.
    let ranges: Vec<(String, Range<usize>)> = match object::File::parse(&*module) {
        Ok(file) => file.sections().filter_map(|s| named_range(&s)).collect(),
        Err(_) => Vec::new(),
    };
    for (name, range) in ranges {
        let Some(bytes) = module.get_mut(range) else {
            continue;
        };
        match &*name {
            ".note.gnu.build-id" => bytes.fill(0),
            ".modinfo" => {
                let fields = bytes.split_mut(|byte| *byte == 0);
                for field in fields.filter(|field| field.starts_with(DIGEST)) {
                    field[DIGEST.len()..].fill(b'0');
                }
            }
            // Of an entry only line and flags, two bytes each, are not relocated, which are zero.
            "__bug_table" => bytes.chunks_exact_mut(4).for_each(|word| word[..2].fill(0)),
            _ => {}
        }
    }
    module
}

/// Returns the name of a section, and where it is in its file; `None` if it has no bytes there.
fn named_range(section: &object::Section<'_, '_>) -> Option<(String, Range<usize>)> {
    let (at, bytes) = section.file_range()?;
    let (at, bytes) = (usize::try_from(at).ok()?, usize::try_from(bytes).ok()?);
    Some((section.name().ok()?.to_owned(), at..at.checked_add(bytes)?))
}

/// Makes an unpacked kernel set usable in its folder: its headers name each other by absolute
/// paths, and its programs need a newer C library than the host's.
pub(crate) fn prepare(root: &Path) -> Result<(), Error> {
    let headers = root.join("usr/src");
    for entry in fs::read_dir(&headers).at("read", &headers)? {
        let path = entry.at("read", &headers)?.path().join("Makefile");
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        if text.lines().count() <= 8 && text.contains("include /usr/src/") {
            let text = text
                .replace("include /usr/src/", "include ../")
                .replace("KBUILD_OUTPUT=/usr/src/", "KBUILD_OUTPUT=$(CURDIR)/../");
            fs::write(&path, text).at("write", &path)?;
        }
    }
    if root.join(LOADER).is_file() {
        wrap_programs(root)?;
    }
    Ok(())
}

/// Replaces every program of the set by a script that starts the program with the set's own C
/// library.
fn wrap_programs(root: &Path) -> Result<(), Error> {
    for folder in ["usr/bin", "usr/lib", "usr/libexec"] {
        for entry in WalkDir::new(root.join(folder))
            .into_iter()
            .filter_map(Result::ok)
        {
            let path = entry.path();
            let executable = entry
                .metadata()
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
            let library = entry.file_name().to_string_lossy().contains(".so");
            if !executable || library || path.starts_with(root.join(LIBRARIES)) {
                continue;
            }
            let bytes = fs::read(path).at("read", path)?;
            if !bytes.starts_with(b"\x7fELF") {
                continue;
            }
            // The script contains the name: $0 may be a link of another name in the same folder.
            let name = entry.file_name().to_string_lossy();
            let inner = path.strip_prefix(root).unwrap_or(path);
            let up = "/..".repeat(inner.components().count() - 1);
            let script = format!(
                "#!/bin/sh\nroot=${{0%/*}}{up}\nexec \"$root/{LOADER}\" \
                 --library-path \"$root/{LIBRARIES}\" --argv0 \"$0\" \"${{0%/*}}/{name}.elf\" \"$@\"\n"
            );
            let aside = PathBuf::from(format!("{}.elf", path.display()));
            fs::rename(path, &aside).at("move", path)?;
            fs::write(path, script).at("write", path)?;
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(path, mode).at("make executable", path)?;
        }
    }
    Ok(())
}

/// Compiles the guest's programs with the host's compiler and returns their folder, with `agent`,
/// `psp-send`, `psp-recv` and `q_psp.so`.
pub(crate) fn programs(
    cache: &Cache,
    sources: &Sources,
    progress: &dyn Progress,
) -> Result<PathBuf, Error> {
    programs_of(cache, sources, None, progress)
}

/// Compiles the guest's programs for another machine, if one is named: those that do not depend on
/// the host's.
pub(crate) fn programs_of(
    cache: &Cache,
    sources: &Sources,
    cross: Option<Cross>,
    progress: &dyn Progress,
) -> Result<PathBuf, Error> {
    let folders = ["lab", "tc", "uapi"];
    let mut hash = sources.hash(&folders)?;
    let mut compiler = Vec::new();
    if let Some(Cross { prefix, .. }) = cross {
        hash += &format!("-{}", prefix.trim_end_matches('-'));
        compiler.push(format!("CC={prefix}gcc"));
    }
    cache.entry("programs", &hash, |target| {
        progress.event(&Event::Build {
            what: "the guest's programs",
        });
        let build = cache.folder(&format!("build/programs-{hash}"))?;
        let make = |folder: &str, args: &[&str]| {
            let mut make = Command::new("make");
            make.arg("-C")
                .arg(build.join(folder))
                .args(args)
                .args(&compiler)
                .arg("CFLAGS=-O2");
            make.env_remove("MAKEFLAGS").env_remove("MFLAGS");
            output(&mut make, &format!("compiling {folder}/")).map(drop)
        };
        let programs = if cross.is_some() { "portable" } else { "all" };
        let compile = |text| {
            sources.copy(&folders, &build, text)?;
            make("lab", &[&format!("O={}", target.display()), programs])?;
            make("tc", &["q_psp.so"])
        };
        // What fails is compiled once more for the numbers of its lines.
        compile(Text::Deciding).or_else(|_| compile(Text::Whole))?;
        let plugin = build.join("tc/q_psp.so");
        fs::copy(&plugin, target.join("q_psp.so")).at("copy", &plugin)?;
        fs::remove_dir_all(&build).at("remove", &build)
    })
}
