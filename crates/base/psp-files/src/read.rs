// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads files that people name. Nothing that is no file, or has no end, is waited for.

use std::fs::{self, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::kind::other;

/// A flag of open(2): a link is refused.
pub const NOFOLLOW: i32 = OFlags::NOFOLLOW.bits() as i32;
/// Longest file that is read.
pub const BYTES_MAX: u64 = 16 << 20;
const EXPECTED: &str = "expected a regular file of at most 16 MiB";

fn fault(what: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("{what}, {EXPECTED}"))
}

/// Reads a regular file, after following links, of at most 16 MiB. It does not block: a fifo, a
/// device and a longer file are refused.
///
/// # Errors
/// What the path leads to and what was expected, or the kernel's reason. None names the path.
pub fn bytes(path: &Path) -> Result<Vec<u8>> {
    let regular = |file_type| other(file_type).map_or(Ok(()), |what| Err(fault(what)));
    // To open a device may do something.
    regular(fs::metadata(path)?.file_type())?;
    // Files of /proc are regular, and may wait for what is to come.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(Error::other)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    // It may be another by now.
    regular(file.metadata()?.file_type())?;
    let mut bytes = Vec::new();
    let count = file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if count as u64 > BYTES_MAX {
        return Err(fault("it is longer"));
    }
    Ok(bytes)
}

/// Reads a regular file of text as [`bytes`] does.
///
/// # Errors
/// As [`bytes`], or the line that is no text in UTF-8.
pub fn text(path: &Path) -> Result<String> {
    String::from_utf8(bytes(path)?).map_err(|error| {
        let end = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..end).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let what = format!("line {line}: expected text in UTF-8");
        Error::new(ErrorKind::InvalidData, what)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};

    use super::*;

    fn said(path: &Path) -> String {
        text(path).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let folder = std::env::temp_dir().join(format!("linux-io-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [fifo, socket, link, long, plain, latin] =
            ["fifo", "socket", "link", "long", "plain", "latin"].map(|name| folder.join(name));
        mknodat(CWD, &fifo, Kind::Fifo, Mode::from(0o600), 0).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        symlink("fifo", &link).unwrap();
        fs::File::create(&long)
            .and_then(|file| file.set_len(BYTES_MAX + 1))
            .unwrap();
        fs::write(&plain, "a\n").unwrap();
        fs::write(&latin, b"a\nb\xe4").unwrap();
        for (path, what) in [
            (fifo.as_path(), "it is a fifo"),
            (&link, "it is a fifo"),
            (&socket, "it is a socket"),
            (&folder, "it is a directory"),
            (Path::new("/dev/zero"), "it is a character device"),
            (&long, "it is longer"),
        ] {
            let expected = format!("{what}, expected a regular file of at most 16 MiB");
            assert_eq!(said(path), expected, "{}", path.display());
        }
        assert_eq!(said(&latin), "line 2: expected text in UTF-8");
        symlink("plain", folder.join("to-plain")).unwrap();
        assert_eq!(text(&folder.join("to-plain")).unwrap(), "a\n");
        drop(listener);
        fs::remove_dir_all(&folder).unwrap();
    }
}
