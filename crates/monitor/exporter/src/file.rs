// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces a file so that a reader sees the old text or the new, never a part.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Writes `text` to a file beside `path` and renames it. The name of that file does not end in
/// `.prom`: the textfile collector does not read it.
///
/// # Errors
/// The system's; `path` is then as it was.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| {
        let what = "expected the name of a file, such as psp.prom";
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })?;
    let mut new = std::ffi::OsString::from(".");
    new.push(name);
    new.push(".new");
    let new = path.with_file_name(new);
    let written = write(&new, text).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // The error that is reported is the first one.
        let _ = fs::remove_file(&new);
    }
    written
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("psp.prom");
        for text in ["first and longer\n", "second\n"] {
            replace(&path, text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_replaced_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("psp.prom");
        fs::create_dir(&path).unwrap();
        assert!(replace(&path, "text").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(replace(Path::new("/"), "text").is_err());
        assert!(replace(&folder.path().join("no/psp.prom"), "text").is_err());
    }
}
