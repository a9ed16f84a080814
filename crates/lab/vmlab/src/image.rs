// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the guest's initial file system, a newc cpio archive. The same contents give the same
//! bytes: entries are sorted, and carry neither time nor owner.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use cpio::newc::{Builder, trailer};
use object::FileKind;
use object::elf::{DT_NEEDED, FileHeader32, FileHeader64};
use object::endian::Endianness;
use object::read::elf::{Dyn, FileHeader};

use crate::command::output;
use crate::error::{At, Error};
use crate::kernels::Module;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// Folders of Debian's libraries, and of tc's plugins.
const LIBRARIES: [&str; 3] = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "lib64"];
const TC_PLUGINS: &str = "usr/lib/x86_64-linux-gnu/tc";
const PSP_PLUGIN: &str = "q_psp.so";
/// The project's programs that run on every machine.
const PORTABLE: [&str; 6] = [
    "psp-send",
    "psp-recv",
    "psp-launched",
    "psp-fuzz",
    "psp-fail",
    "psp-hostile",
];
/// Folder of kernel modules inside the guest.
pub(crate) const MODULES: &str = "modules";

#[derive(Clone)]
struct Entry {
    mode: u32,
    bytes: Vec<u8>,
}

/// An archive under construction; paths are relative to `/`.
#[derive(Clone, Default)]
pub(crate) struct Image(BTreeMap<String, Entry>);

impl Image {
    fn add(&mut self, path: &str, mode: u32, bytes: Vec<u8>) {
        for (at, _) in path.match_indices('/') {
            let folder = || Entry {
                mode: FOLDER,
                bytes: Vec::new(),
            };
            self.0.entry(path[..at].to_owned()).or_insert_with(folder);
        }
        self.0.insert(path.to_owned(), Entry { mode, bytes });
    }

    /// Adds an executable file.
    pub fn file(&mut self, path: &str, bytes: Vec<u8>) {
        self.add(path, PROGRAM, bytes);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, to: &str) {
        self.add(path, LINK, to.as_bytes().to_vec());
    }

    /// Adds an empty folder.
    pub fn folder(&mut self, path: &str) {
        self.add(path, FOLDER, Vec::new());
    }

    /// Returns whether a program with this name is where the guest looks for programs.
    pub fn has_program(&self, name: &str) -> bool {
        let folders = ["bin", "sbin", "usr/bin", "usr/sbin"];
        let is_there = |folder| self.0.contains_key(&format!("{folder}/{name}"));
        folders.into_iter().any(is_there)
    }

    /// Returns the archive. The kernel unpacks several concatenated archives over one another.
    pub fn to_cpio(&self) -> Vec<u8> {
        let write = || -> io::Result<Vec<u8>> {
            let mut archive = Vec::new();
            for (number, (path, entry)) in (1u32..).zip(&self.0) {
                let size = u32::try_from(entry.bytes.len()).map_err(io::Error::other)?;
                let header = Builder::new(path).ino(number).mode(entry.mode).mtime(0);
                let mut writer = header.write(archive, size);
                writer.write_all(&entry.bytes)?;
                archive = writer.finish()?;
            }
            archive = trailer(archive)?;
            archive.resize(archive.len().next_multiple_of(512), 0);
            Ok(archive)
        };
        // Writing to memory fails only for a file of 4 GB, and there is none.
        write().unwrap_or_default()
    }
}

/// Returns the content of every guest: the agent as its first process, a shell, `ip`, `tc`, the
/// senders and, if `iperf3` is set, that program as well.
pub(crate) fn base(guest: &Path, programs: &Path, iperf3: bool) -> Result<Image, Error> {
    let mut image = Image::default();
    for folder in ["dev", "proc", "sys", "tmp", "run", "out", "root", "etc"] {
        image.folder(folder);
    }
    let read = |path: PathBuf| fs::read(&path).at("read", &path);
    image.file("init", read(programs.join("agent"))?);
    image.file("usr/bin/psp-send", read(programs.join("psp-send"))?);
    image.file("usr/bin/psp-hostile", read(programs.join("psp-hostile"))?);
    image.file("usr/bin/psp-recv", read(programs.join("psp-recv"))?);
    image.file("usr/bin/psp-launched", read(programs.join("psp-launched"))?);
    let plugin = "q_cake_mq.so";
    image.file(
        &format!("{TC_PLUGINS}/{plugin}"),
        read(programs.join(plugin))?,
    );
    let busybox = guest.join("bin/busybox");
    let applets = output(Command::new(&busybox).arg("--list"), "busybox --list")?;
    for applet in applets.lines().filter(|name| !name.contains('/')) {
        image.link(&format!("bin/{applet}"), "busybox");
    }
    image.file("bin/busybox", read(busybox)?);
    // The shell is dash: busybox's own shell would run its own `ip` instead of the real one.
    let mut wanted = vec![
        ("bin/dash", "bin/sh"),
        ("bin/ip", "usr/sbin/ip"),
        ("sbin/tc", "usr/sbin/tc"),
    ];
    if iperf3 {
        wanted.push(("usr/bin/iperf3", "usr/bin/iperf3"));
    }
    let mut needed = BTreeSet::from(["ld-linux-x86-64.so.2".to_owned()]);
    for (from, to) in wanted {
        let bytes = read(guest.join(from))?;
        needed.extend(needed_libraries(&bytes));
        image.file(to, bytes);
    }
    let folders = LIBRARIES.map(str::to_owned);
    let [folder, ..] = LIBRARIES;
    add_libraries(&mut image, guest, needed, &folders, folder)?;
    distributions(&mut image, guest)?;
    Ok(image)
}

/// Adds what tc knows of psp, which only guests with a psp need: the others stay as they are when it
/// changes.
pub(crate) fn add_plugin(image: &mut Image, programs: &Path) -> Result<(), Error> {
    let path = programs.join(PSP_PLUGIN);
    let bytes = fs::read(&path).at("read", &path)?;
    image.file(&format!("{TC_PLUGINS}/{PSP_PLUGIN}"), bytes);
    Ok(())
}

/// Adds ethtool, with the libraries that `base` lacks.
pub(crate) fn add_ethtool(image: &mut Image, base: &Image, root: &Path) -> Result<(), Error> {
    let path = &root.join("sbin/ethtool");
    let bytes = fs::read(path).at("read", path)?;
    let folders = LIBRARIES.map(str::to_owned);
    let is_there = |name: &String| {
        base.0
            .keys()
            .any(|path| path.ends_with(&format!("/{name}")))
    };
    let lacking = needed_libraries(&bytes)
        .into_iter()
        .filter(|name| !is_there(name));
    add_libraries(image, root, lacking.collect(), &folders, LIBRARIES[0])?;
    image.file("usr/sbin/ethtool", bytes);
    Ok(())
}

/// Returns what every guest of another machine has: a shell, `ip`, `tc`, the senders. `libraries`
/// is Debian's folder of the machine's libraries, `loader` the name of its dynamic linker.
pub(crate) fn portable(
    guest: &Path,
    programs: &Path,
    libraries: &str,
    loader: &str,
) -> Result<Image, Error> {
    let mut image = Image::default();
    for folder in [
        "dev", "proc", "sys", "tmp", "run", "root", "etc", "usr/sbin",
    ] {
        image.folder(folder);
    }
    let read = |path: PathBuf| fs::read(&path).at("read", &path);
    for program in PORTABLE {
        image.file(&format!("usr/bin/{program}"), read(programs.join(program))?);
    }
    for plugin in [PSP_PLUGIN, "q_cake_mq.so"] {
        let path = format!("usr/lib/{libraries}/tc/{plugin}");
        image.file(&path, read(programs.join(plugin))?);
    }
    image.file("bin/busybox", read(guest.join("bin/busybox"))?);
    image.link("bin/mount", "busybox");
    let mut wanted = BTreeSet::from([loader.to_owned()]);
    for (from, to) in [
        ("bin/dash", "bin/sh"),
        ("bin/ip", "usr/sbin/ip"),
        ("sbin/tc", "usr/sbin/tc"),
        ("usr/bin/iperf3", "usr/bin/iperf3"),
    ] {
        let bytes = read(guest.join(from))?;
        wanted.extend(needed_libraries(&bytes));
        image.file(to, bytes);
    }
    let folder = format!("lib/{libraries}");
    let folders = [folder.clone(), format!("usr/{folder}")];
    add_libraries(&mut image, guest, wanted, &folders, &folder)?;
    image.link(&format!("lib/{loader}"), &format!("{libraries}/{loader}"));
    Ok(image)
}

/// Adds the delay distributions of netem.
fn distributions(image: &mut Image, guest: &Path) -> Result<(), Error> {
    let folder = guest.join(TC_PLUGINS);
    for entry in fs::read_dir(&folder).at("read", &folder)? {
        let entry = entry.at("read", &folder)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".dist") {
            let bytes = fs::read(entry.path()).at("read", &entry.path())?;
            image.file(&format!("{TC_PLUGINS}/{name}"), bytes);
        }
    }
    Ok(())
}

/// Adds libraries, and in turn the libraries that they need: from `folders` of the packages into
/// `folder` of the guest.
fn add_libraries(
    image: &mut Image,
    guest: &Path,
    mut wanted: BTreeSet<String>,
    folders: &[String],
    folder: &str,
) -> Result<(), Error> {
    let mut done = BTreeSet::new();
    while let Some(name) = wanted.pop_first() {
        let path = folders
            .iter()
            .map(|folder| guest.join(folder).join(&name))
            .find(|path| path.exists())
            .ok_or_else(|| Error::Incomplete {
                set: "guest",
                missing: PathBuf::from(&name),
            })?;
        let bytes = fs::read(&path).at("read", &path)?;
        let more = needed_libraries(&bytes);
        done.insert(name.clone());
        wanted.extend(more.into_iter().filter(|name| !done.contains(name)));
        let folder = if name.starts_with("ld-linux-x86") {
            "lib64"
        } else {
            folder
        };
        image.file(&format!("{folder}/{name}"), bytes);
    }
    Ok(())
}

/// Returns the names of the libraries that an ELF file is linked with.
fn needed_libraries(bytes: &[u8]) -> Vec<String> {
    // A file that is no ELF file is linked with nothing.
    match FileKind::parse(bytes) {
        Ok(FileKind::Elf32) => needed::<FileHeader32<Endianness>>(bytes).unwrap_or_default(),
        Ok(FileKind::Elf64) => needed::<FileHeader64<Endianness>>(bytes).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn needed<Header: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> object::Result<Vec<String>> {
    let header = Header::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let Some((entries, link)) = sections.dynamic(endian, bytes)? else {
        return Ok(Vec::new());
    };
    let strings = sections.strings(endian, bytes, link)?;
    let mut names = Vec::new();
    for entry in entries {
        if entry.tag(endian) == DT_NEEDED {
            let name = entry.string(endian, strings)?;
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(names)
}

/// Adds kernel modules, and returns the plan's lines that load them.
pub(crate) fn add_modules(image: &mut Image, modules: Vec<Module>) -> Vec<String> {
    modules
        .into_iter()
        .map(|module| {
            let path = format!("{MODULES}/{}.ko", module.name);
            image.file(&path, module.bytes);
            format!("insmod /{path}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(archive: &[u8]) -> Vec<(String, u32)> {
        let mut at = archive;
        let mut names = Vec::new();
        loop {
            let reader = cpio::NewcReader::new(at).unwrap();
            let entry = reader.entry();
            if entry.is_trailer() {
                return names;
            }
            names.push((entry.name().to_owned(), entry.mode()));
            at = reader.finish().unwrap();
        }
    }

    #[test]
    fn folders_come_before_what_is_in_them_and_bytes_repeat() {
        let build = |reverse: bool| {
            let mut paths = vec!["usr/bin/b", "usr/a", "bin"];
            if reverse {
                paths.reverse();
            }
            let mut image = Image::default();
            for path in paths {
                image.file(path, path.as_bytes().to_vec());
            }
            image.link("usr/bin/c", "b");
            image.to_cpio()
        };
        let archive = build(false);
        assert_eq!(archive, build(true));
        let expected = [
            ("bin", PROGRAM),
            ("usr", FOLDER),
            ("usr/a", PROGRAM),
            ("usr/bin", FOLDER),
            ("usr/bin/b", PROGRAM),
            ("usr/bin/c", LINK),
        ];
        assert_eq!(
            names(&archive),
            expected.map(|(name, mode)| (name.to_owned(), mode))
        );
        assert_eq!(archive.len() % 512, 0);
    }

    #[test]
    fn other_files_need_no_libraries() {
        assert_eq!(needed_libraries(b"#!/bin/sh\n"), Vec::<String>::new());
        assert_eq!(needed_libraries(&[0x7f; 100]), Vec::<String>::new());
    }
}
