// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files as they were applied, a copy for each device: what is followed is what was applied, not
//! what an editor has saved since.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, Result};
use host_config::Device;
use linux_io::links::links;

use crate::read;
use crate::run_dir::{folder, path, write};

fn copies(run: &Path) -> PathBuf {
    run.join("applied")
}

fn copy(run: &Path, device: &str) -> PathBuf {
    copies(run).join(format!("{device}.toml"))
}

/// Keeps the file that a device was set up by; `None`: what stands there is of no file.
pub(crate) fn note(device: &str, text: Option<&str>) -> Result<()> {
    let run = folder()?;
    let path = copy(&run, device);
    if let Some(text) = text {
        let copies = copies(&run);
        fs::create_dir_all(&copies).with_context(|| copies.display().to_string())?;
        return write(&path, text);
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| path.display().to_string())
        }
        _ => Ok(()),
    }
}

/// Returns the file that a device was set up by, if it was by one.
pub(crate) fn text(device: &str) -> Option<String> {
    fs::read_to_string(copy(&path(), device)).ok()
}

/// Returns the tables of the devices that were applied, each with its file. One that cannot be read is
/// left out.
pub(crate) fn devices(run: &Path) -> Vec<(Device, Rc<str>)> {
    let entries = fs::read_dir(copies(run));
    let paths = entries.into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = paths.map(|entry| entry.path()).collect();
    paths.sort();
    let links = links().unwrap_or_default();
    let device = |path: &PathBuf| {
        let name = path.file_stem()?.to_str()?;
        let text = fs::read_to_string(path).ok()?;
        let host = read::host(&path.display().to_string(), &text, &links).ok()?;
        let device = host.devices.into_iter().find(|device| device.name == name);
        Some((device?, text.into()))
    };
    paths.iter().filter_map(device).collect()
}
