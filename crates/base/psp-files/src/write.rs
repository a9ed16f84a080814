// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes files in one step: a reader finds what was there before, or all that is new. What is written
//! is a file of a fresh name in the same folder until it is whole.

use std::fs::{self, Permissions};
use std::io::{Error, ErrorKind, Result, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::kind::other;

/// Permissions of a file that was not there: all of these but for the user's umask.
const ALL: u32 = 0o666;

/// A file that is being written. It goes with this value unless it is [finished](Self::finish).
#[derive(Debug)]
pub struct NewFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl NewFile {
    /// Begins a file that takes the place of a regular file, with its permissions, or of none.
    ///
    /// # Errors
    /// What there is in its place, or the kernel's reason.
    pub fn create(path: &Path) -> Result<Self> {
        let mode = replaceable(path)?.map_or(ALL, |there| there.mode() & 0o777);
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        // Its ending says to nobody that it is one to be read.
        let file = Builder::new()
            .prefix(".psp-")
            .suffix(".new")
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(folder)?;
        let path = path.to_owned();
        Ok(Self { file, path })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// The kernel's; what was there is as it was.
    pub fn finish(self) -> Result<()> {
        self.file.as_file().sync_all()?;
        replaceable(&self.path)?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}

impl Seek for NewFile {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.file.seek(to)
    }
}

/// Checks whether a file could be written, before there is anything to write.
///
/// # Errors
/// What there is in its place, or the kernel's reason.
pub fn check(path: &Path) -> Result<()> {
    replaceable(path).map(|_| ())
}

/// Returns the permissions of the file that a new one takes the place of, if there is one.
fn replaceable(path: &Path) -> Result<Option<Permissions>> {
    if path.file_name().is_none() {
        let what = "expected the name of a file";
        return Err(Error::new(ErrorKind::InvalidInput, what));
    }
    match fs::symlink_metadata(path) {
        Ok(there) => match other(there.file_type()) {
            None => Ok(Some(there.permissions())),
            Some(what) => Err(Error::new(
                ErrorKind::InvalidInput,
                format!("{what}, expected a regular file or none"),
            )),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file in one step.
///
/// # Errors
/// As [`NewFile`]'s; what was there is as it was.
pub fn replace(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let mut file = NewFile::create(path)?;
    file.write_all(bytes.as_ref())?;
    file.finish()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        replace(&path, "first and longer\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(&path, "second\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        drop(NewFile::create(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "second\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_file_stays_and_nothing_is_written_through_it() {
        let folder = tempfile::tempdir().unwrap();
        let [fifo, link, dangling, directory, other] =
            ["fifo", "link", "dangling", "directory", "other"].map(|name| folder.path().join(name));
        mknodat(CWD, &fifo, FileType::Fifo, Mode::from(0o600), 0).unwrap();
        fs::write(&other, "others'").unwrap();
        symlink(&other, &link).unwrap();
        symlink(folder.path().join("nothing"), &dangling).unwrap();
        fs::create_dir(&directory).unwrap();
        for (path, what) in [
            (fifo.as_path(), "it is a fifo"),
            (&link, "it is a link"),
            (&dangling, "it is a link"),
            (&directory, "it is a directory"),
            (Path::new("/dev/full"), "it is a character device"),
        ] {
            let said = replace(path, "text").unwrap_err().to_string();
            assert_eq!(said, format!("{what}, expected a regular file or none"));
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), "others'");
        assert!(!folder.path().join("nothing").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
        assert!(replace(Path::new("/"), "text").is_err());
        assert!(replace(&folder.path().join("no/file"), "text").is_err());
    }

    /// What comes into the place of a file while it is written.
    #[test]
    fn a_link_that_comes_later_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("file"), folder.path().join("other"));
        fs::write(&other, "others'").unwrap();
        let file = NewFile::create(&path).unwrap();
        symlink(&other, &path).unwrap();
        assert!(file.finish().is_err());
        assert_eq!(fs::read_to_string(&other).unwrap(), "others'");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
