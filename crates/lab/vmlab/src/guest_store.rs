// SPDX-License-Identifier: MIT OR Apache-2.0
//! The store of guests: what a guest left, under the digest of all that it was made of.
//!
//! A guest is a pure function of QEMU's packages, the kernel, the initial file system and QEMU's
//! options, so one that has run need not run again. An answer is a file, `KEY.tar.gz`, complete or
//! absent. Its checksum is gzip's: one that is damaged counts as absent. The store is bounded, and
//! what was not used for longest goes first.
//!
//! What was measured of a run, of a guest or of a simulated cell, is an answer too, in one piece:
//! `KEY.gz`. It is small where what a guest left is large.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::cache::Cache;
use crate::error::{At, Error};

/// Folder in the cache.
const FOLDER: &str = "guests";
/// Ends the name of an answer.
const SUFFIX: &str = ".tar.gz";
/// Room for all answers, in bytes.
const ROOM_BYTES: u64 = 2 << 30;
/// The largest answer that is kept: a larger one would push many out.
const LARGEST_BYTES: u64 = ROOM_BYTES / 64;
/// Counts the forms that answers have had.
const FORM: &[u8] = b"pspacer guest 1";
/// The shared memory is sparse: zeros are looked for and left out in pieces of this size.
const PIECE_BYTES: usize = 1 << 16;

/// What the store is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// A guest that has run is answered from the store.
    #[default]
    Stored,
    /// Each guest runs. If the store has its answer, the two must be equal to the byte.
    Fresh,
    /// So it is with the guests whose key begins with this hexadecimal digit; the others are answered.
    FreshBy(char),
    /// Each guest runs, and the store is left alone.
    Unstored,
}

/// Variable that makes guests run which the store has: 1 all of them, digit:D those whose key begins with D.
pub const FRESH: &str = "PSPACER_FRESH";

impl Answers {
    /// Returns what the environment asks for: stored answers, unless `PSPACER_FRESH` is 1 or names a digit.
    pub fn asked() -> Self {
        Self::of(&env::var(FRESH).unwrap_or_default())
    }

    fn of(value: &str) -> Self {
        let digit = value.strip_prefix("digit:").and_then(|d| d.parse().ok());
        match (value, digit) {
            ("1", _) => Self::Fresh,
            (_, Some(digit)) => Self::FreshBy(digit),
            _ => Self::Stored,
        }
    }

    /// Returns whether the guest with this key runs although the store may have its answer, which is then compared.
    pub(crate) fn compares(self, key: &str) -> bool {
        match self {
            Self::Stored | Self::Unstored => false,
            Self::Fresh => true,
            Self::FreshBy(digit) => key.starts_with(digit),
        }
    }
}

/// The names of what a guest leaves, in an answer.
pub(crate) const PARTS: [&str; 3] = ["console", "progress", "shared"];

/// Digests all that decides an answer.
#[derive(Clone)]
pub struct Key(Sha256);

impl Default for Key {
    fn default() -> Self {
        Self::new()
    }
}

impl Key {
    /// Begins a key of the present form of answers.
    pub fn new() -> Self {
        let mut key = Self(Sha256::new());
        key.add(FORM);
        key
    }

    /// Adds a piece; the borders between pieces count.
    pub fn add(&mut self, piece: &[u8]) {
        let bytes = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.0.update(bytes.to_le_bytes());
        self.0.update(piece);
    }

    /// Returns the digest in hexadecimal digits.
    pub fn text(self) -> String {
        let digest = self.0.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The store in a cache.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    room_bytes: u64,
    largest_bytes: u64,
}

impl Store {
    /// Returns the store of a cache.
    pub fn of(cache: &Cache) -> Result<Self, Error> {
        Ok(Self {
            folder: cache.folder(FOLDER)?,
            room_bytes: ROOM_BYTES,
            largest_bytes: LARGEST_BYTES,
        })
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}{SUFFIX}"))
    }

    /// Returns the path of an answer in one piece.
    fn whole(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.gz"))
    }

    /// Returns whether there is an answer in one piece.
    pub fn has(&self, key: &str) -> bool {
        self.whole(key).exists()
    }

    /// Returns an answer in one piece, if there is one.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let file = File::open(self.whole(key)).ok()?;
        let mut bytes = Vec::new();
        GzDecoder::new(BufReader::new(&file))
            .read_to_end(&mut bytes)
            .ok()?;
        let _ = file.set_modified(SystemTime::now());
        Some(bytes)
    }

    /// Keeps an answer in one piece.
    pub fn put(&self, key: &str, bytes: &[u8]) -> Result<(), Error> {
        self.write(&self.whole(key), |file| {
            let mut packed = GzEncoder::new(BufWriter::new(file), Compression::fast());
            packed.write_all(bytes)?;
            packed.finish()?.flush()
        })
    }

    /// Writes a file of the store whole or not at all, and makes room for it. One that is too large is
    /// not kept.
    fn write(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), Error> {
        let mut file = tempfile::Builder::new()
            .prefix(".new-")
            .tempfile_in(&self.folder)
            .at("create a file in", &self.folder)?;
        fill(file.as_file_mut()).at("write to", &self.folder)?;
        let bytes = file.as_file().metadata().at("read", &self.folder)?.len();
        if bytes > self.largest_bytes {
            return Ok(());
        }
        file.persist(path)
            .map_err(|error| error.error)
            .at("move into place", path)?;
        self.make_room()
    }

    /// Writes an answer to `parts`, files in the order of [`PARTS`]. Returns whether there is one.
    pub(crate) fn load(&self, key: &str, parts: [&Path; 3]) -> Result<bool, Error> {
        let path = self.path(key);
        let Ok(file) = File::open(&path) else {
            return Ok(false);
        };
        if unpack(&file, parts).is_err() {
            // Not removed: another process may have put a good one there meanwhile.
            return Ok(false);
        }
        // An answer whose time cannot be set is only forgotten sooner.
        let _ = file.set_modified(SystemTime::now());
        Ok(true)
    }

    /// Keeps `parts` as the answer.
    pub(crate) fn keep(&self, key: &str, parts: [&Path; 3]) -> Result<(), Error> {
        self.write(&self.path(key), |file| pack(file, parts))
    }

    /// Removes the answers that were not used for longest until the others have room.
    fn make_room(&self) -> Result<(), Error> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder).at("read", &self.folder)? {
            let entry = entry.at("read", &self.folder)?;
            // Another process may have removed it.
            if let Ok(meta) = entry.metadata() {
                let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                all.push((used, entry.path(), meta.len()));
            }
        }
        let mut bytes: u64 = all.iter().map(|(_, _, bytes)| bytes).sum();
        all.sort();
        for (_, path, len) in all {
            if bytes <= self.room_bytes {
                break;
            }
            let _ = fs::remove_file(&path);
            bytes -= len;
        }
        Ok(())
    }
}

fn pack(to: &mut File, parts: [&Path; 3]) -> io::Result<()> {
    let packed = GzEncoder::new(BufWriter::new(to), Compression::fast());
    let mut archive = tar::Builder::new(packed);
    for (name, path) in PARTS.iter().zip(parts) {
        let mut file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let used = used_bytes(&mut file, bytes)?;
        file.rewind()?;
        let mut header = tar::Header::new_gnu();
        header.set_size(used);
        header.set_mode(0o644);
        // The file's own size, of which the archive has what is not zero.
        header.set_mtime(bytes);
        archive.append_data(&mut header, name, file.take(used))?;
    }
    archive.into_inner()?.finish()?.flush()
}

fn unpack(from: &File, parts: [&Path; 3]) -> io::Result<()> {
    let mut archive = tar::Archive::new(GzDecoder::new(BufReader::new(from)));
    let mut found = 0;
    for (number, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "not an answer");
        let name = PARTS.get(number).ok_or_else(wrong)?;
        let path = parts.get(number).ok_or_else(wrong)?;
        if entry.path()?.as_ref() != Path::new(name) {
            return Err(wrong());
        }
        let mut file = File::create(path)?;
        io::copy(&mut entry, &mut file)?;
        file.set_len(entry.header().mtime()?)?;
        found += 1;
    }
    // Reads to the end of the compressed stream, where its checksum is.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    if found == PARTS.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Returns how many bytes a file has without the zeros at its end, in whole pieces.
fn used_bytes(file: &mut File, bytes: u64) -> io::Result<u64> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut end = bytes;
    while end > 0 {
        let size = (end - 1) % PIECE_BYTES as u64 + 1;
        let piece = &mut piece[..usize::try_from(size).unwrap_or(PIECE_BYTES)];
        file.seek(SeekFrom::Start(end - size))?;
        file.read_exact(piece)?;
        if piece.iter().any(|byte| *byte != 0) {
            break;
        }
        end -= size;
    }
    Ok(end)
}

/// Returns whether two files have the same bytes.
pub(crate) fn are_equal(one: &Path, two: &Path) -> Result<bool, Error> {
    let read = |path: &Path| -> Result<Vec<u8>, Error> {
        let mut file = File::open(path).at("read", path)?;
        let bytes = file.metadata().at("read", path)?.len();
        let used = used_bytes(&mut file, bytes).at("read", path)?;
        file.rewind().at("read", path)?;
        let mut data = bytes.to_le_bytes().to_vec();
        file.take(used).read_to_end(&mut data).at("read", path)?;
        Ok(data)
    };
    Ok(read(one)? == read(two)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use std::time::Duration;

    use super::*;

    #[test]
    fn a_variable_says_which_guests_run_again() {
        for (value, answers) in [
            ("", Answers::Stored),
            ("0", Answers::Stored),
            ("digit:", Answers::Stored),
            ("1", Answers::Fresh),
            ("digit:c", Answers::FreshBy('c')),
        ] {
            assert_eq!(Answers::of(value), answers, "{value}");
        }
    }

    /// Writes three files into a folder, and returns their paths.
    fn parts(folder: &Path, shared: &[u8], room: u64) -> [PathBuf; 3] {
        fs::create_dir_all(folder).unwrap();
        let paths = PARTS.map(|name| folder.join(name));
        fs::write(&paths[0], "console").unwrap();
        fs::write(&paths[1], "").unwrap();
        fs::write(&paths[2], shared).unwrap();
        File::options()
            .write(true)
            .open(&paths[2])
            .unwrap()
            .set_len(room)
            .unwrap();
        paths
    }

    fn refs(paths: &[PathBuf; 3]) -> [&Path; 3] {
        paths.each_ref().map(|path| path.as_path())
    }

    fn store(folder: &Path, room_bytes: u64) -> Store {
        let mut store = Store::of(&Cache::at(folder.join("cache"))).unwrap();
        store.room_bytes = room_bytes;
        store
    }

    #[test]
    fn an_answer_comes_back_to_the_byte() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path(), 1 << 20);
        for (shared, room) in [
            (b"".as_slice(), 0),
            (b"", 1 << 22),
            (b"x", 1),
            (b"\0\0x\0", 1 << 17),
            (&[7; PIECE_BYTES], PIECE_BYTES as u64),
            (&[7; PIECE_BYTES + 1], 2 * PIECE_BYTES as u64),
        ] {
            let from = parts(&folder.path().join("from"), shared, room);
            let to = parts(&folder.path().join("to"), b"other", 9);
            store.keep("k", refs(&from)).unwrap();
            assert!(store.load("k", refs(&to)).unwrap());
            for (from, to) in from.iter().zip(&to) {
                assert_eq!(fs::read(from).unwrap(), fs::read(to).unwrap());
                assert!(are_equal(from, to).unwrap());
            }
        }
        let to = parts(&folder.path().join("to"), b"", 0);
        assert!(!store.load("other", refs(&to)).unwrap());
    }

    #[test]
    fn a_damaged_answer_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path(), 1 << 20);
        let from = parts(
            &folder.path().join("from"),
            &[1, 2, 3, 4].repeat(1000),
            1 << 16,
        );
        let to = parts(&folder.path().join("to"), b"", 0);
        store.keep("k", refs(&from)).unwrap();
        let path = store.path("k");
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            fs::write(&path, &good[..at]).unwrap();
            assert!(!store.load("k", refs(&to)).unwrap(), "cut at {at}");
        }
        // The checksum is at the end; the bytes before decide what it is of.
        for at in 10..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            fs::write(&path, &bad).unwrap();
            let loaded = store.load("k", refs(&to)).unwrap();
            // A few bits of the compressed form mean nothing.
            let same = |(from, to): (&PathBuf, &PathBuf)| are_equal(from, to).unwrap();
            assert!(!loaded || from.iter().zip(&to).all(same), "changed at {at}");
        }
        fs::write(&path, &good).unwrap();
        assert!(store.load("k", refs(&to)).unwrap());
    }

    #[test]
    fn what_was_not_used_for_longest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let noise: Vec<u8> = (0..40_000_u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        let from = parts(&folder.path().join("from"), &noise, 1 << 18);
        let to = parts(&folder.path().join("to"), b"", 0);
        let store = store(folder.path(), 500_000);
        let age = |key: &str, seconds| {
            let time = SystemTime::now() - Duration::from_secs(seconds);
            File::open(store.path(key))
                .unwrap()
                .set_modified(time)
                .unwrap();
        };
        for (key, seconds) in [("a", 30), ("b", 20), ("c", 10)] {
            store.keep(key, refs(&from)).unwrap();
            age(key, seconds);
        }
        assert!(store.load("a", refs(&to)).unwrap());
        store.keep("d", refs(&from)).unwrap();
        let is_there = ["a", "b", "c", "d"].map(|key| store.path(key).exists());
        assert_eq!(is_there, [true, false, true, true]);
        let store = Store {
            largest_bytes: 100_000,
            ..store
        };
        store.keep("e", refs(&from)).unwrap();
        assert!(!store.path("e").exists());
    }

    #[test]
    fn an_answer_in_one_piece_comes_back_or_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path(), 1 << 20);
        assert!(!store.has("k"));
        store.put("k", b"measured").unwrap();
        assert!(store.has("k"));
        assert_eq!(store.get("k").unwrap(), b"measured");
        let good = fs::read(store.whole("k")).unwrap();
        fs::write(store.whole("k"), &good[..good.len() - 1]).unwrap();
        assert_eq!(store.get("k"), None);
        // What a guest left under the same key is another answer.
        assert!(!store.path("k").exists());
    }
}
