// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the image and the modules in a kernel's packages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use object::FileKind;
use object::elf::{FileHeader32, FileHeader64};
use object::endian::Endianness;
use object::read::elf::{FileHeader, SectionHeader};
use walkdir::WalkDir;

use crate::error::{At, Error};

/// The files of an unpacked kernel.
#[derive(Clone, Debug)]
pub(crate) struct KernelFiles {
    /// Release, as `uname -r` prints it.
    pub release: String,
    pub image: PathBuf,
    /// Module files by name, with `_` for `-`.
    modules: BTreeMap<String, PathBuf>,
    /// Names of the modules that are built into the image.
    builtin: BTreeSet<String>,
}

/// A module's file, in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub name: String,
    pub bytes: Vec<u8>,
}

impl KernelFiles {
    /// Finds the kernel in the folder of a package set.
    pub fn find(set: &'static str, root: &Path) -> Result<Self, Error> {
        let missing = |path: &str| Error::Incomplete {
            set,
            missing: path.into(),
        };
        let folder = ["lib/modules", "usr/lib/modules"]
            .iter()
            .filter_map(|folder| fs::read_dir(root.join(folder)).ok())
            .flatten()
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .find(|path| path.join("kernel").is_dir())
            .ok_or_else(|| missing("lib/modules"))?;
        let release = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let image = [
            root.join(format!("boot/vmlinuz-{release}")),
            folder.join("vmlinuz"),
        ]
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(|| missing("vmlinuz"))?;
        let list = folder.join("modules.builtin");
        let builtin = fs::read_to_string(&list).at("read", &list)?;
        let builtin = builtin
            .lines()
            .filter_map(|line| module_name(Path::new(line)))
            .collect();
        let modules = WalkDir::new(&folder)
            .into_iter()
            .filter_map(Result::ok)
            .filter_map(|entry| Some((module_name(entry.path())?, entry.into_path())))
            .collect();
        Ok(Self {
            release,
            image,
            modules,
            builtin,
        })
    }

    /// Returns whether the kernel has the module, built in or as a file.
    pub fn has(&self, name: &str) -> bool {
        self.modules.contains_key(name) || self.builtin.contains(name)
    }

    /// Returns the wanted modules and all their dependencies, each module after its dependencies.
    /// Built-in modules are left out; `own` are modules that are not the kernel's.
    pub fn load_order(&self, wanted: &[String], own: &[Module]) -> Result<Vec<Module>, Error> {
        let mut order = Vec::new();
        for name in wanted {
            self.add(name, own, &mut order, &mut BTreeSet::new())?;
        }
        Ok(order)
    }

    fn add(
        &self,
        name: &str,
        own: &[Module],
        order: &mut Vec<Module>,
        above: &mut BTreeSet<String>,
    ) -> Result<(), Error> {
        let name = name.replace('-', "_");
        if self.builtin.contains(&name) || order.iter().any(|module| module.name == name) {
            return Ok(());
        }
        let fault = |detail: &str| Error::Module {
            name: name.clone(),
            detail: detail.to_owned(),
        };
        if !above.insert(name.clone()) {
            return Err(fault("it needs itself"));
        }
        let module = match (
            own.iter().find(|module| module.name == name),
            self.modules.get(&name),
        ) {
            (Some(module), _) => module.clone(),
            (None, Some(path)) => Module {
                name: name.clone(),
                bytes: read_module(path)?,
            },
            (None, None) => {
                return Err(fault(&format!(
                    "kernel {} has none of this name",
                    self.release
                )));
            }
        };
        let depends = depends(&module.bytes).ok_or_else(|| fault("it is not a kernel module"))?;
        for need in depends {
            self.add(&need, own, order, above)?;
        }
        order.push(module);
        Ok(())
    }
}

/// Returns the module's name, `sch_htb` for `.../sch-htb.ko.xz`; `None` if the file is no module.
fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let (stem, rest) = name.split_once(".ko")?;
    ["", ".xz", ".zst"]
        .contains(&rest)
        .then(|| stem.replace('-', "_"))
}

/// Returns a module's bytes, decompressed.
fn read_module(path: &Path) -> Result<Vec<u8>, Error> {
    let packed = fs::read(path).at("read", path)?;
    let mut bytes = Vec::new();
    let read = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => lzma_rust2::XzReader::new(packed.as_slice(), true).read_to_end(&mut bytes),
        Some("zst") => ruzstd::decoding::StreamingDecoder::new(packed.as_slice())
            .map_err(std::io::Error::other)
            .and_then(|mut reader| reader.read_to_end(&mut bytes)),
        _ => return Ok(packed),
    };
    read.at("decompress", path)?;
    Ok(bytes)
}

/// Removes the signature behind a module. Without one the kernel checks none, which costs the guest
/// some 10 million instructions a module.
pub(crate) fn unsigned(mut module: Vec<u8>) -> Vec<u8> {
    const MAGIC: &[u8] = b"~Module signature appended~\n";
    // Before the magic: five bytes of kinds and lengths, three of padding, the signature's length.
    const DESCRIPTION: usize = 12;
    let Some((length, rest)) = module
        .strip_suffix(MAGIC)
        .and_then(<[u8]>::split_last_chunk::<4>)
        .map(|(rest, length)| (u32::from_be_bytes(*length), rest.len() + length.len()))
    else {
        return module;
    };
    let removed = usize::try_from(length)
        .ok()
        .map(|length| length + DESCRIPTION);
    if let Some(kept) = removed.and_then(|removed| rest.checked_sub(removed)) {
        module.truncate(kept);
    }
    module
}

/// Returns the names of the modules that a module needs, from its `.modinfo` section; `None` if it
/// is no module.
fn depends(module: &[u8]) -> Option<Vec<String>> {
    let info = match FileKind::parse(module).ok()? {
        FileKind::Elf32 => modinfo::<FileHeader32<Endianness>>(module)?,
        FileKind::Elf64 => modinfo::<FileHeader64<Endianness>>(module)?,
        _ => return None,
    };
    let list = info
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(b"depends="))
        .unwrap_or_default();
    let list = std::str::from_utf8(list).ok()?;
    Some(
        list.split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

fn modinfo<Header: FileHeader<Endian = Endianness>>(module: &[u8]) -> Option<&[u8]> {
    let header = Header::parse(module).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, module).ok()?;
    let (_, section) = sections.section_by_name(endian, b".modinfo")?;
    section.data(endian, module).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_module_files() {
        let name = |path: &str| module_name(Path::new(path));
        assert_eq!(
            name("kernel/net/sched/sch_htb.ko").as_deref(),
            Some("sch_htb")
        );
        assert_eq!(name("a/b-c.ko.xz").as_deref(), Some("b_c"));
        assert_eq!(name("a/b.ko.zst").as_deref(), Some("b"));
        assert_eq!(name("a/b.ko.gz"), None);
        assert_eq!(name("a/modules.dep"), None);
    }

    #[test]
    fn other_files_are_rejected_as_modules() {
        for bytes in [&b""[..], b"\x7fELF", &[0x7f; 4096]] {
            assert_eq!(depends(bytes), None);
        }
    }

    #[test]
    fn a_signature_is_removed() {
        let signed = |length: u32| {
            let mut module = b"module".to_vec();
            module.extend(b"signature");
            module.extend([0; 8]);
            module.extend(length.to_be_bytes());
            module.extend(b"~Module signature appended~\n");
            module
        };
        assert_eq!(unsigned(signed(9)), b"module");
        // A length that cannot be leaves the module to the kernel's judgement.
        assert_eq!(unsigned(signed(16)), signed(16));
        assert_eq!(unsigned(signed(u32::MAX)), signed(u32::MAX));
        for other in [&b""[..], b"module", b"~Module signature appended~\n"] {
            assert_eq!(unsigned(other.to_vec()), other);
        }
    }

    #[test]
    fn a_missing_module_is_named_with_the_kernel() {
        let files = KernelFiles {
            release: "6.1.0-x".into(),
            image: PathBuf::new(),
            modules: BTreeMap::new(),
            builtin: ["tcp_cubic".to_owned()].into(),
        };
        let load = |name: &str| files.load_order(&[name.to_owned()], &[]);
        assert_eq!(load("tcp-cubic").unwrap(), []);
        let error = load("tcp_bic").unwrap_err().to_string();
        assert!(
            error.contains("tcp_bic") && error.contains("6.1.0-x"),
            "{error}"
        );
    }
}
