// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the shared memory of a guest: an archive that contains the files of the cells.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use crate::console::Failure;
use crate::error::Error;
use crate::progress::{Event, Progress};

/// First bytes of the shared memory once it contains results.
const MAGIC: &[u8; 8] = b"PSPLAB01";
/// Offset of the archive in the shared memory, bytes.
const ARCHIVE_AT: u64 = 4096;

/// A fault of the results.
#[derive(Debug, thiserror::Error)]
enum Fault {
    /// The guest did not finish.
    #[error("there are none")]
    None,
    /// The archive is damaged.
    #[error("the archive is damaged: {0}")]
    Damaged(String),
    /// A file could not be read or written on this host.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Results of the whole boot.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Boot {
    /// `ok`, or the failure.
    pub status: String,
    /// t = 0 of each cell, on the guest's clock, in order.
    pub zeros_ns: Vec<u64>,
}

/// Unpacks the results of a guest whose plan ran to its end; see [`unpack`].
pub(crate) fn collect(
    shared: &Path,
    folder: &Path,
    boot: &Path,
    console: &Path,
    progress: &dyn Progress,
) -> Result<Boot, Error> {
    let console = console.to_owned();
    let failure = match unpack(shared, folder, boot, progress) {
        Ok(found) if found.status == "ok" => return Ok(found),
        Ok(found) => Failure::Step(found.status),
        Err(Fault::None) => Failure::NoResult,
        Err(fault) => {
            let detail = fault.to_string();
            return Err(Error::Results { detail, console });
        }
    };
    Err(Error::Guest { failure, console })
}

/// Unpacks the results into `folder`: files of cell N into `cell-N`, the others
/// into `boot`.
fn unpack(
    shared: &Path,
    folder: &Path,
    boot: &Path,
    progress: &dyn Progress,
) -> Result<Boot, Fault> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| Fault::Io { path, source }
    };
    let mut file = File::open(shared).map_err(at(shared))?;
    let room = file
        .metadata()
        .map_err(at(shared))?
        .len()
        .saturating_sub(ARCHIVE_AT);
    let mut head = [0; 16];
    file.read_exact(&mut head).map_err(|_| Fault::None)?;
    let (magic, length) = head.split_at(8);
    let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
    if magic != MAGIC || length == 0 {
        return Err(Fault::None);
    }
    if length > room {
        return Err(Fault::Damaged(format!("{length} bytes in room for {room}")));
    }
    file.seek(SeekFrom::Start(ARCHIVE_AT)).map_err(at(shared))?;
    let mut found = Boot::default();
    let mut archive = tar::Archive::new(io::BufReader::new(file.take(length)));
    let damaged = |error: io::Error| Fault::Damaged(error.to_string());
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = entry.path().map_err(damaged)?.into_owned();
        let Some(place) = place(&name) else {
            return Err(Fault::Damaged(format!("a file named {}", name.display())));
        };
        if place == Path::new("status") || place == Path::new("marks") {
            let mut text = String::new();
            entry.read_to_string(&mut text).map_err(damaged)?;
            if place == Path::new("status") {
                found.status = text.trim().to_owned()
            } else {
                found.zeros_ns = zeros(&text)
            }
            continue;
        }
        let target = match place.components().count() {
            1 => boot.join(&place),
            _ => folder.join(&place),
        };
        let output = |path, is_folder| progress.event(&Event::Output { path, is_folder });
        if let Some(parent) = target.parent() {
            output(parent, true);
            fs::create_dir_all(parent).map_err(at(parent))?;
        }
        output(&target, false);
        let mut written = File::create(&target).map_err(at(&target))?;
        let copied = io::copy(&mut entry, &mut written).map_err(at(&target))?;
        if copied != entry.size() {
            return Err(Fault::Damaged(format!("{} is cut off", name.display())));
        }
    }
    Ok(found)
}

/// Returns the path for an archived file: `cell-N/x` stays, `out/cell-N.x` becomes `cell-N/x`,
/// `out/x` becomes `x`. `None` for names that lead out of the folder.
fn place(name: &Path) -> Option<PathBuf> {
    let plain = name
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !plain || name.as_os_str().is_empty() {
        return None;
    }
    let Ok(out) = name.strip_prefix("out") else {
        return Some(name.to_owned());
    };
    let text = out.to_str()?;
    let (cell, rest) = text.split_once('.').unwrap_or((text, ""));
    let is_cell = cell
        .strip_prefix("cell-")
        .is_some_and(|number| number.parse::<u32>().is_ok());
    Some(if is_cell && !rest.is_empty() {
        Path::new(cell).join(rest)
    } else {
        out.to_owned()
    })
}

fn zeros(marks: &str) -> Vec<u64> {
    marks
        .lines()
        .filter_map(|line| line.strip_prefix("zero ")?.trim().parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Quiet;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_ustar();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            builder.append(&header, *bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn shared(length: u64, archive: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(length.to_le_bytes());
        bytes.resize(ARCHIVE_AT as usize, 0);
        bytes.extend(archive);
        bytes
    }

    fn unpacked(bytes: &[u8]) -> (tempfile::TempDir, Result<Boot, Fault>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shared");
        fs::write(&path, bytes).unwrap();
        let boot = unpack(&path, folder.path(), &folder.path().join("boot-0"), &Quiet);
        (folder, boot)
    }

    #[test]
    fn files_go_to_their_cells() {
        let archive = archive(&[
            ("cell-3/timeline.wire.a", b"abc"),
            ("out/cell-3.send.tx", b"{}"),
            ("out/commands", b"$ true\n"),
            ("out/marks", b"zero 12000000\nzero 99\n"),
            ("status", b"ok\n"),
        ]);
        let (folder, boot) = unpacked(&shared(archive.len() as u64, &archive));
        assert_eq!(
            boot.unwrap(),
            Boot {
                status: "ok".into(),
                zeros_ns: vec![12_000_000, 99]
            }
        );
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("cell-3/timeline.wire.a"), "abc");
        assert_eq!(read("cell-3/send.tx"), "{}");
        assert_eq!(read("boot-0/commands"), "$ true\n");
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_rejected() {
        for name in ["../x", "/etc/passwd", "cell-0/../../x", "out/../x"] {
            let archive = archive(&[(name, b"")]);
            let (_folder, boot) = unpacked(&shared(archive.len() as u64, &archive));
            assert!(matches!(boot, Err(Fault::Damaged(_))), "{name}: {boot:?}");
        }
    }

    #[test]
    fn results_cut_at_any_byte_are_rejected() {
        let archive = archive(&[("cell-0/a", &[7; 700]), ("status", b"ok")]);
        let whole = shared(archive.len() as u64, &archive);
        for length in (0..32).chain((4090..whole.len()).step_by(61)) {
            let (_folder, boot) = unpacked(&whole[..length]);
            assert!(boot.is_err(), "{length} of {}", whole.len());
        }
        assert!(matches!(unpacked(&shared(0, &archive)).1, Err(Fault::None)));
        // The archive has a length that ends inside a file.
        let (_folder, boot) = unpacked(&shared(600, &archive));
        assert!(matches!(boot, Err(Fault::Damaged(_))), "{boot:?}");
    }
}
