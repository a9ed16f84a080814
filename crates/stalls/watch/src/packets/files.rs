// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the packets of each stall into a file, within limits.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use capture::saved::{SavedPacket, write_packets};

use super::ring::{Kept, SNAP_BYTES};

/// Files and bytes of all of them: a watch of days must not fill the disk.
const FILES_MOST: u64 = 1000;
const BYTES_MOST: u64 = 1 << 30;

/// What was saved, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PacketCounts {
    /// Files that were written.
    pub files: u64,
    pub bytes: u64,
    /// Stalls without a file: no packet was kept, the limits were reached, or the disk was full.
    pub left_out: u64,
    /// Packets of this host that the kernel had no room for.
    pub dropped_packets: u64,
}

/// Where the packets of a stall are.
#[derive(Debug, PartialEq, Eq)]
pub enum Saved {
    File(PathBuf),
    Nothing,
    /// Nowhere, for the first time for this reason: a sentence for the user.
    Failed(String),
}

/// The folder, and what is in it.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    pub(super) counts: PacketCounts,
    said: Option<String>,
}

impl Files {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        if fs::read_dir(folder)?.next().is_some() {
            let what = "the folder has files; expected a new or an empty folder";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        Ok(Self {
            folder: folder.to_owned(),
            counts: PacketCounts::default(),
            said: None,
        })
    }

    /// Counts a stall without a file.
    pub(super) fn leave_out(&mut self) -> Saved {
        self.counts.left_out += 1;
        Saved::Nothing
    }

    /// Writes packets into the next file. A file that cannot be written is removed.
    pub(super) fn write(
        &mut self,
        comment: &str,
        kept: &[Kept],
        name: &dyn Fn(u32) -> String,
    ) -> Saved {
        if kept.is_empty() {
            return self.leave_out();
        }
        let number = self.counts.files + self.counts.left_out + 1;
        let path = self.folder.join(format!("stall-{number}.pcapng"));
        let bytes = match encode(comment, kept, name) {
            Ok(bytes) => bytes,
            Err(error) => return self.fail(error.to_string()),
        };
        let length = bytes.len() as u64;
        if self.counts.files >= FILES_MOST || self.counts.bytes + length > BYTES_MOST {
            return self.fail(format!(
                "{FILES_MOST} files or 1 GB are written; no more packets are saved"
            ));
        }
        if let Err(error) = create(&path, &bytes) {
            return self.fail(format!("{}: {error}", path.display()));
        }
        self.counts.files += 1;
        self.counts.bytes += length;
        self.said = None;
        Saved::File(path)
    }

    /// Counts a stall without a file; says why, unless that was said of the one before.
    fn fail(&mut self, why: String) -> Saved {
        self.counts.left_out += 1;
        // Names of files differ; kinds of failures do not.
        let kind = why.rsplit(": ").next().map(str::to_owned);
        if self.said == kind {
            return Saved::Nothing;
        }
        self.said = kind;
        Saved::Failed(why)
    }
}

/// Creates a file that this user alone may read: packets have what people say to each other. One
/// that cannot be written to its end is removed; one that was there is not touched.
fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes).inspect_err(|_| {
        // If it cannot be removed, the next one fails, too.
        let _ = fs::remove_file(path);
    })
}

fn encode(comment: &str, kept: &[Kept], name: &dyn Fn(u32) -> String) -> io::Result<Vec<u8>> {
    let mut indices: Vec<u32> = kept.iter().map(|kept| kept.interface).collect();
    indices.sort_unstable();
    indices.dedup();
    let names: Vec<String> = indices.iter().map(|index| name(*index)).collect();
    let mut packets = Vec::with_capacity(kept.len());
    for kept in kept {
        packets.push(SavedPacket {
            interface: indices.binary_search(&kept.interface).unwrap_or(0),
            time_ns: kept.time_ns,
            is_outgoing: kept.is_outgoing,
            packet_bytes: kept.packet_bytes,
            bytes: kept.bytes(),
        });
    }
    let mut bytes = Vec::new();
    write_packets(&mut bytes, comment, &names, SNAP_BYTES as u32, &packets)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use capture::segments::{Segments, Source};

    use super::*;
    use crate::packets::ring::Ring;
    use crate::packets::ring::tests::{LOCAL, REMOTE, head, segment};

    fn kept() -> Vec<Kept> {
        let mut ring = Ring::new(1 << 20);
        ring.push(head(5_000_000_001, 7, true), &segment(LOCAL, REMOTE));
        ring.push(head(5_000_000_003, 3, false), &segment(REMOTE, LOCAL));
        ring.between(
            (LOCAL.parse().unwrap(), REMOTE.parse().unwrap()),
            (0, u64::MAX),
        )
    }

    fn name(index: u32) -> String {
        format!("eth{index}")
    }

    #[test]
    fn a_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::new(&folder.path().join("new")).unwrap();
        let saved = files.write("which stall", &kept(), &name);
        let path = folder.path().join("new/stall-1.pcapng");
        assert_eq!(saved, Saved::File(path.clone()));
        let bytes = fs::read(&path).unwrap();
        assert_eq!(files.counts.bytes, bytes.len() as u64);
        assert!(bytes.windows(11).any(|part| part == b"which stall"));
        let source = Source::new("a file", || Ok(Box::new(bytes.as_slice())));
        let mut segments = Segments::open(vec![source]).unwrap();
        let mut found = HashMap::new();
        while let Some(segment) = segments.next() {
            found.insert(segment.from.to_string(), segment.time_ns);
        }
        let expected = [(LOCAL, 5_000_000_001), (REMOTE, 5_000_000_003)];
        let expected = expected.map(|(from, time_ns)| (from.to_owned(), time_ns));
        assert_eq!(found, HashMap::from(expected));
        let names: Vec<&str> = segments
            .interfaces()
            .iter()
            .map(|i| i.name.as_str())
            .collect();
        assert_eq!(names, ["eth3", "eth7"]);
        assert!(segments.damages().is_empty());
    }

    #[test]
    fn limits_of_files() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::new(folder.path()).unwrap();
        for _ in 0..FILES_MOST {
            assert!(matches!(files.write("", &kept(), &name), Saved::File(_)));
        }
        assert!(
            matches!(files.write("", &kept(), &name), Saved::Failed(why) if why.contains("1 GB"))
        );
        assert_eq!(files.write("", &kept(), &name), Saved::Nothing);
        assert_eq!((files.counts.files, files.counts.left_out), (FILES_MOST, 2));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1000);
        let mut files = Files::new(&folder.path().join("bytes")).unwrap();
        files.counts.bytes = BYTES_MOST;
        assert!(matches!(files.write("", &kept(), &name), Saved::Failed(_)));
    }

    #[test]
    fn a_failure_is_said_once_and_it_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let into = folder.path().join("new");
        let mut files = Files::new(&into).unwrap();
        assert_eq!(files.write("", &[], &name), Saved::Nothing, "no packet");
        fs::remove_dir(&into).unwrap();
        assert!(matches!(files.write("", &kept(), &name), Saved::Failed(_)));
        assert_eq!(files.write("", &kept(), &name), Saved::Nothing);
        fs::create_dir(&into).unwrap();
        let file = into.join("stall-4.pcapng");
        assert_eq!(files.write("", &kept(), &name), Saved::File(file));
        assert_eq!(files.counts.left_out, 3);
    }

    #[test]
    fn a_folder_with_files_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let error = Files::new(folder.path()).unwrap_err();
        assert!(error.to_string().contains("empty folder"), "{error}");
    }
}
