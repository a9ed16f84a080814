// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures that are written while they are read: standard input, one file, or the files of
//! `tcpdump -C -W` and `-G` and of `dumpcap -b`, which appear one after the other and are overwritten in turn.
//!
//! A file's generation is what it holds from its first packet on. When it is overwritten, a new
//! generation begins in the same file. Generations are read in the order of their first packets.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use capture::segments::following::first_packet_ns;

/// Bytes at the begin of a file that tell its generations apart: the header, and the first
/// packet's time.
const HEAD_BYTES: usize = 512;
/// Bytes within which the first packet must end for its file to be found.
const FIRST_BYTES: u64 = 1 << 20;

/// Chooses the files that belong to a ring.
#[derive(Clone, Debug)]
struct Pattern {
    folder: PathBuf,
    /// The name's parts between which anything may stand.
    parts: Vec<String>,
}

impl Pattern {
    /// `path` is a folder, the name given to `tcpdump -w` (with `%` as of strftime), or a name
    /// with `*`.
    fn new(path: &Path) -> Self {
        if path.is_dir() {
            return Self {
                folder: path.to_owned(),
                parts: vec![String::new(), String::new()],
            };
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let mut parts = vec![String::new()];
        let name = name.unwrap_or_default();
        let mut rest = name.chars();
        while let Some(c) = rest.next() {
            let is_any = match c {
                '*' => true,
                '%' => rest.next().is_some_and(|conversion| conversion != '%'),
                _ => false,
            };
            match parts.last_mut() {
                Some(last) if !is_any => last.push(c),
                _ => parts.push(String::new()),
            }
        }
        Self { folder, parts }
    }

    /// Returns whether a name fits, or does without the digits that `-C` appends, or without the
    /// number and time that dumpcap puts in front of the ending.
    fn matches(&self, name: &str) -> bool {
        let without = name.trim_end_matches(|c: char| c.is_ascii_digit());
        self.fits(name)
            || self.fits(without)
            || without_dumpcap(name).is_some_and(|name| self.fits(&name))
    }

    fn fits(&self, name: &str) -> bool {
        let [first, middle @ ..] = self.parts.as_slice() else {
            return false;
        };
        let Some((last, middle)) = middle.split_last() else {
            return name == first;
        };
        let Some(mut rest) = name.strip_prefix(first.as_str()) else {
            return false;
        };
        for part in middle {
            let Some(at) = rest.find(part.as_str()) else {
                return false;
            };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last.as_str())
    }
}

/// Returns a name without what dumpcap makes of it for each file of a ring: `a.pcapng` becomes
/// `a_00001_20260101120000.pcapng`, or `a_20260101120000_00001.pcapng`.
fn without_dumpcap(name: &str) -> Option<String> {
    const TIME_DIGITS: usize = 14;
    const NUMBER_DIGITS_LEAST: usize = 5;
    let (stem, ending) = match name.rfind('.') {
        Some(at) => name.split_at(at),
        None => (name, ""),
    };
    let (rest, second) = stem.rsplit_once('_')?;
    let (base, first) = rest.rsplit_once('_')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits =
        |number: &str, time: &str| time.len() == TIME_DIGITS && number.len() >= NUMBER_DIGITS_LEAST;
    let is_dumpcap =
        is_number(first) && is_number(second) && (fits(first, second) || fits(second, first));
    is_dumpcap.then(|| format!("{base}{ending}"))
}

/// What a file was like when it was looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Looked {
    inode: u64,
    length: u64,
    changed_ns: i64,
}

/// A generation of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Generation {
    first_ns: u64,
    path: PathBuf,
}

/// The files of a ring.
pub struct Ring {
    pattern: Pattern,
    /// What was found in each file when it was last looked at.
    known: HashMap<PathBuf, (Looked, Option<u64>)>,
    current: Option<Generation>,
    is_over: Rc<Cell<bool>>,
    is_lost: Rc<Cell<bool>>,
}

impl Ring {
    /// Describes the ring that `path` names; no file is opened.
    pub fn new(path: &Path) -> Self {
        Self {
            pattern: Pattern::new(path),
            known: HashMap::new(),
            current: None,
            is_over: Rc::default(),
            is_lost: Rc::default(),
        }
    }

    /// Returns the name of the file that is read.
    pub fn name(&self) -> String {
        let path = self.current.as_ref().map(|current| &current.path);
        path.map_or(String::new(), |path| path.display().to_string())
    }

    /// Returns the name that files are waited for by.
    pub fn awaited(&self) -> String {
        let name = self.pattern.parts.join("*");
        self.pattern.folder.join(name).display().to_string()
    }

    /// Returns whether the file that was read was overwritten before its end, once.
    pub fn was_lost(&self) -> bool {
        self.is_lost.take()
    }

    /// Looks for a later file. If there is one, the current file is complete, and its reader
    /// ends when all of it was read.
    pub fn look(&mut self) -> io::Result<()> {
        if self.current.is_some() && self.next_generation()?.is_some() {
            self.is_over.set(true);
        }
        Ok(())
    }

    /// Opens the earliest file that is later than the current one; `None` if there is none yet.
    pub fn advance(&mut self) -> io::Result<Option<Tail>> {
        let Some(next) = self.next_generation()? else {
            return Ok(None);
        };
        let Ok(file) = File::open(&next.path) else {
            self.known.remove(&next.path); // it went away
            return Ok(None);
        };
        let head = head(&file)?;
        // Between the look and now it may have been overwritten: then it is another generation.
        let found_ns = File::open(&next.path).map(|file| first_ns(&file));
        if !found_ns.is_ok_and(|found_ns| found_ns == Some(next.first_ns)) {
            self.known.remove(&next.path);
            return Ok(None);
        }
        self.current = Some(next);
        (self.is_over, self.is_lost) = (Rc::default(), Rc::default());
        Ok(Some(Tail {
            file,
            head,
            is_over: Rc::clone(&self.is_over),
            is_lost: Rc::clone(&self.is_lost),
        }))
    }

    fn next_generation(&mut self) -> io::Result<Option<Generation>> {
        let mut next: Option<Generation> = None;
        for entry in fs::read_dir(&self.pattern.folder)? {
            let entry = entry?;
            if !self.pattern.matches(&entry.file_name().to_string_lossy()) {
                continue;
            }
            let path = entry.path();
            let Some(first_ns) = self.first_of(&path) else {
                continue;
            };
            let is_later = self.current.as_ref().is_none_or(|c| first_ns > c.first_ns);
            let is_earliest = next.as_ref().is_none_or(|next| first_ns < next.first_ns);
            if is_later && is_earliest {
                next = Some(Generation { first_ns, path });
            }
        }
        Ok(next)
    }

    /// Returns the time of a file's first packet. A file that has not changed is not read again.
    fn first_of(&mut self, path: &Path) -> Option<u64> {
        let there = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let looked = Looked {
            inode: there.ino(),
            length: there.len(),
            changed_ns: there.mtime() * 1_000_000_000 + there.mtime_nsec(),
        };
        match self.known.get(path) {
            Some((known, first_ns)) if *known == looked => return *first_ns,
            _ => {}
        }
        let first_ns = File::open(path).ok().and_then(|file| first_ns(&file));
        self.known.insert(path.to_owned(), (looked, first_ns));
        first_ns
    }
}

fn first_ns(file: &File) -> Option<u64> {
    // The reader owns its source: the bytes are few.
    let mut bytes = Vec::new();
    file.take(FIRST_BYTES).read_to_end(&mut bytes).ok()?;
    first_packet_ns(io::Cursor::new(bytes))
}

fn head(file: &File) -> io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD_BYTES];
    let mut have = 0;
    while have < head.len() {
        match file.read_at(&mut head[have..], have as u64) {
            Ok(0) => break,
            Ok(read) => have += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    head.truncate(have);
    Ok(head)
}

/// Reads a file of a ring to the end of its generation.
pub struct Tail {
    file: File,
    head: Vec<u8>,
    is_over: Rc<Cell<bool>>,
    is_lost: Rc<Cell<bool>>,
}

impl Read for Tail {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The order matters: what is read after the file was over is all there will be.
        let was_over = self.is_over.get();
        let read = self.file.read(buffer)?;
        // What was read is of this generation if the file still begins with it afterwards.
        if !head(&self.file)?.starts_with(&self.head) {
            self.is_lost.set(true);
            return Ok(0);
        }
        match read {
            0 if !was_over && !buffer.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            read => Ok(read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_ring() {
        for (pattern, names, others) in [
            (
                "a.pcap",
                &["a.pcap", "a.pcap0", "a.pcap12"][..],
                &["b.pcap", "a.pcap1x"][..],
            ),
            (
                "r-%Y%m%d_%H.pcap",
                &["r-20261123_02.pcap", "r-20261123_02.pcap1"],
                &["r.pcap"],
            ),
            ("100%%.pcap", &["100%.pcap"], &["1000.pcap"]),
            ("*.pcapng", &["x.pcapng", ".pcapng"], &["x.pcap"]),
            (
                "a.pcapng",
                &[
                    "a_00001_20261123021957.pcapng",
                    "a_20261123021957_00012.pcapng",
                ],
                &[
                    "a_00001_2026.pcapng",
                    "b_00001_20261123021957.pcapng",
                    "a_1.pcapng",
                ],
            ),
            ("a*b*c", &["abc", "axxbyyc", "abbcc7"], &["acb", "ab"]),
        ] {
            let pattern = Pattern::new(&Path::new("/nowhere").join(pattern));
            for name in names {
                assert!(pattern.matches(name), "{pattern:?} {name}");
            }
            for name in others {
                assert!(!pattern.matches(name), "{pattern:?} {name}");
            }
        }
    }
}
