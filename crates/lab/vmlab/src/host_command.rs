// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `pspacer` in a guest, with the libraries that it was linked with here.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::output;
use crate::error::{At, Error};
use crate::image::Image;

/// The command's name.
pub(crate) const NAME: &str = "pspacer";
/// Starts the command in a guest.
pub(crate) const COMMAND: &str = "/pspacer/ld.so --library-path /pspacer /pspacer/pspacer";

/// Adds the command without what a debugger needs. The archive is read in the guest's time before
/// any cell, so its size decides no figure.
pub(crate) fn add(image: &mut Image, command: &Path) -> Result<(), Error> {
    let stripped = tempfile::NamedTempFile::new().at("create a file for", command)?;
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(stripped.path()).arg(command);
    output(&mut strip, "strip of the command")?;
    let read = |path: &Path| fs::read(path).at("read", path);
    image.file("pspacer/pspacer", read(stripped.path())?);
    let linked = output(Command::new("ldd").arg(command), "ldd of the command")?;
    for line in linked.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [name, "=>", path, _] => image.file(&format!("pspacer/{name}"), read(path.as_ref())?),
            [path, _] if path.contains("ld-linux") => {
                image.file("pspacer/ld.so", read(path.as_ref())?);
            }
            _ => {}
        }
    }
    Ok(())
}
