// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots a guest, or answers it from the store if it has run before.

use std::fs;
use std::path::{Path, PathBuf};

use crate::console::Failure;
use crate::error::{At, Error};
use crate::guest_store::{Answers, Key, PARTS, are_equal};
use crate::qemu::Guest;

/// What a guest left.
pub(crate) struct Left {
    /// File with the shared memory.
    pub shared: PathBuf,
    /// Whether it comes from the store: the guest did not run.
    pub is_stored: bool,
}

impl Guest<'_> {
    /// As [`Guest::run`]; but a guest that has run before may be answered from the store instead.
    /// The log of QEMU's messages says so.
    pub fn boot(&self, scratch: &Path, line: &mut dyn FnMut(&str)) -> Result<Left, Error> {
        let left = |shared, is_stored| Ok(Left { shared, is_stored });
        if self.answers == Answers::Unstored || !self.is_pure() {
            return left(self.run(scratch, line)?, false);
        }
        fs::create_dir_all(self.folder).at("create", self.folder)?;
        let key = self.key()?;
        let console = self.console();
        let [shared, progress] = Self::left_in(scratch);
        let parts = [&*console, &*progress, &*shared];
        let compares = self.answers.compares(&key);
        if !compares && self.store.load(&key, parts)? {
            let words = self.words();
            let text = format!("not booted: the store has what this guest left, {key}\n");
            fs::write(&words, text).at("write", &words)?;
            let text = fs::read_to_string(&progress).at("read", &progress)?;
            text.lines().map(str::trim).for_each(line);
            return left(shared, true);
        }
        self.run(scratch, line)?;
        if compares {
            self.compare(&key, scratch, parts)?;
        }
        if let Err(error) = self.store.keep(&key, parts) {
            // What the guest left is good without it.
            let words = self.words();
            fs::write(&words, format!("not stored: {error}\n")).at("write", &words)?;
        }
        left(shared, false)
    }

    /// Returns whether what the guest leaves follows from its inputs: not with QEMU's NICs, nor
    /// with several processors, nor with a plugin, which leaves files of its own.
    fn is_pure(&self) -> bool {
        self.nics.is_empty() && self.cpus == 1 && self.plugin.is_none()
    }

    /// Returns the digest of the guest's inputs. Of QEMU's packages the name of their folder
    /// counts, which has the digest of their versions.
    fn key(&self) -> Result<String, Error> {
        let mut key = Key::new();
        key.add(self.qemu.file_name().unwrap_or_default().as_encoded_bytes());
        key.add(&fs::read(self.kernel).at("read", self.kernel)?);
        key.add(self.initrd);
        for word in self.options_anywhere() {
            key.add(word.as_encoded_bytes());
        }
        Ok(key.text())
    }

    /// Compares what the guest left with the store's answer, if there is one.
    fn compare(&self, key: &str, scratch: &Path, parts: [&Path; 3]) -> Result<(), Error> {
        let stored = PARTS.map(|name| scratch.join(format!("stored-{name}")));
        let places = stored.each_ref().map(PathBuf::as_path);
        if !self.store.load(key, places)? {
            return Ok(());
        }
        for ((name, stored), part) in PARTS.iter().zip(&stored).zip(parts) {
            if !are_equal(stored, part)? {
                return Err(self.failed(Failure::Differs((*name).to_owned(), key.to_owned())));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;
    use crate::cache::Cache;
    use crate::guest_store::Store;
    use crate::qemu::Start;

    /// Stands for QEMU: counts its runs, and leaves its options as results.
    const COUNTER: &str = r#"#!/bin/sh
echo boot >>COUNT
for word; do
    case $word in
    *mem-path=*) printf 'a\nb' 1<>"${word##*mem-path=}" ;;
    file,id=console,*) path=${word#*path=}; echo booted >"${path%%,*}" ;;
    file:*progress) echo "line 1" >"${word#file:}" ;;
    esac
done
"#;

    /// Makes a folder of packages in which [`COUNTER`] is QEMU.
    fn packages(folder: &Path, name: &str) -> PathBuf {
        let qemu = folder.join(name);
        let loader = qemu.join("usr/lib64/ld-linux-x86-64.so.2");
        fs::create_dir_all(loader.parent().unwrap()).unwrap();
        let count = folder.join("count").display().to_string();
        fs::write(&loader, COUNTER.replace("COUNT", &count)).unwrap();
        fs::set_permissions(&loader, fs::Permissions::from_mode(0o755)).unwrap();
        qemu
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn a_guest_runs_again_if_any_input_differs() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let [qemu, newer] = ["qemu-1", "qemu-2"].map(|name| packages(folder, name));
        let [kernel, other] = ["kernel", "other"].map(|name| {
            let path = folder.join(name);
            fs::write(&path, name).unwrap();
            path
        });
        let (store, stop) = (
            Store::of(&Cache::at(folder.join("cache"))).unwrap(),
            AtomicBool::new(false),
        );
        let logs = [folder.join("logs"), folder.join("others")];
        let saved = ["snapshot-1", "snapshot-2"].map(|name| {
            let path = folder.join(name);
            fs::create_dir(&path).unwrap();
            fs::write(crate::saved::console(&path), "").unwrap();
            path
        });
        let first = Guest {
            qemu: &qemu,
            kernel: &kernel,
            kernel_line: "a b",
            initrd: b"initrd",
            memory_bytes: 1 << 29,
            cpus: 1,
            shared_bytes: 1 << 16,
            seed: 1,
            start: Start::Boot,
            timeout: Duration::from_secs(60),
            folder: &logs[0],
            nics: &[],
            plugin: None,
            stop: &stop,
            store: &store,
            answers: Answers::Stored,
        };
        let booted = |guest: &Guest<'_>| {
            let count = || fs::read_to_string(folder.join("count")).map_or(0, |text| text.len());
            let before = count();
            let scratch = tempfile::tempdir_in(folder).unwrap();
            let mut lines = Vec::new();
            let shared = guest.boot(scratch.path(), &mut |line| lines.push(line.to_owned()));
            let shared = fs::read(shared.unwrap().shared).unwrap();
            assert_eq!(shared.len() as u64, guest.shared_bytes);
            assert_eq!(&shared[..3], b"a\nb");
            assert_eq!(lines, ["line 1"]);
            assert_eq!(fs::read(guest.console()).unwrap(), b"booted\n");
            count() > before
        };
        assert!(booted(&first));
        assert!(!booted(&first));
        let said = fs::read_to_string(first.words()).unwrap();
        assert!(said.starts_with("not booted: the store"), "{said}");
        let plugin = (&*kernel, "out=x".to_owned());
        let others = [
            Guest {
                qemu: &newer,
                ..first.clone()
            },
            Guest {
                kernel: &other,
                ..first.clone()
            },
            Guest {
                kernel_line: "a",
                ..first.clone()
            },
            Guest {
                initrd: b"initrb",
                ..first.clone()
            },
            Guest {
                memory_bytes: 1 << 30,
                ..first.clone()
            },
            Guest {
                shared_bytes: 1 << 17,
                ..first.clone()
            },
            Guest {
                seed: 2,
                ..first.clone()
            },
            Guest {
                start: Start::Resume(&saved[0]),
                ..first.clone()
            },
            Guest {
                start: Start::Resume(&saved[1]),
                ..first.clone()
            },
        ];
        for guest in &others {
            assert!(booted(guest));
            assert!(!booted(guest));
        }
        let key = first.key().unwrap();
        let (own, other) = (key.chars().next().unwrap(), 'x');
        // What decides nothing; and the first one is still known.
        for guest in [
            first.clone(),
            Guest {
                answers: Answers::FreshBy(other),
                ..first.clone()
            },
            Guest {
                folder: &logs[1],
                ..first.clone()
            },
            Guest {
                timeout: Duration::from_secs(61),
                ..first.clone()
            },
        ] {
            assert!(!booted(&guest));
        }
        for guest in [
            Guest {
                answers: Answers::Fresh,
                ..first.clone()
            },
            Guest {
                answers: Answers::FreshBy(own),
                ..first.clone()
            },
            Guest {
                answers: Answers::Unstored,
                ..first.clone()
            },
            Guest {
                nics: &["e1000e"],
                ..first.clone()
            },
            Guest {
                cpus: 2,
                ..first.clone()
            },
            Guest {
                plugin: Some(plugin),
                ..first.clone()
            },
        ] {
            assert!(booted(&guest));
            assert!(booted(&guest));
        }
    }

    #[test]
    fn a_fresh_guest_that_leaves_other_bytes_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let qemu = packages(folder, "qemu");
        let kernel = folder.join("kernel");
        fs::write(&kernel, "").unwrap();
        let logs = folder.join("logs");
        let guest = Guest {
            qemu: &qemu,
            kernel: &kernel,
            kernel_line: "",
            initrd: &[],
            memory_bytes: 1 << 29,
            cpus: 1,
            shared_bytes: 1 << 16,
            seed: 1,
            start: Start::Boot,
            timeout: Duration::from_secs(60),
            folder: &logs,
            nics: &[],
            plugin: None,
            stop: &AtomicBool::new(false),
            store: &Store::of(&Cache::at(folder.join("cache"))).unwrap(),
            answers: Answers::Fresh,
        };
        let boot = || {
            let scratch = tempfile::tempdir_in(folder).unwrap();
            guest.boot(scratch.path(), &mut |_| {}).map(drop)
        };
        boot().unwrap();
        boot().unwrap();
        let loader = qemu.join("usr/lib64/ld-linux-x86-64.so.2");
        let text = fs::read_to_string(&loader).unwrap();
        for (from, to, part) in [
            ("'a\\nb'", "'a\\nc'", "shared"),
            ("echo booted", "echo Booted", "console"),
            ("line 1", "line 2", "progress"),
        ] {
            assert!(text.contains(from), "{text}");
            fs::write(&loader, text.replace(from, to)).unwrap();
            let error = boot().unwrap_err().to_string();
            assert!(
                error.contains(&format!("left another {part} before")),
                "{error}"
            );
        }
    }
}
