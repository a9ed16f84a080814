// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds scenarios: by a file, a folder, or a name under `experiments/`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use scenario::{Options, Scenario};

/// The file that every experiment's folder has beside its scenarios.
pub const PAPER: &str = "paper.toml";

/// Returns the folder that holds `experiments/`: PSPACER_ROOT, the source tree around the working
/// folder, or the folder in which the installed command keeps them.
pub fn root() -> Result<PathBuf> {
    let has_experiments = |root: &PathBuf| root.join("experiments").is_dir();
    if let Some(root) = vmlab::named_root() {
        ensure!(
            has_experiments(&root),
            "PSPACER_ROOT is {}, which has no folder experiments; expected the folder of \
             pspacer's sources",
            root.display()
        );
        return Ok(root);
    }
    // Other projects may have a folder `experiments`, too: `core` tells ours.
    let is_ours = |root: &PathBuf| has_experiments(root) && root.join("core").is_dir();
    vmlab::roots().into_iter().find(is_ours).context(
        "no experiments here: run this inside the pspacer source tree, set PSPACER_ROOT to it, or \
         name a scenario file",
    )
}

/// Returns the scenario files of one folder: `scenario.toml` first, then the others by name.
pub fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .filter(|p| p.file_name().is_some_and(|n| n != PAPER))
        .collect();
    files.sort_by_key(|p| (p.file_stem() != Some("scenario".as_ref()), p.clone()));
    Ok(files)
}

/// Returns the folders of all experiments, by name.
pub fn folders() -> Result<Vec<PathBuf>> {
    let root = root()?.join("experiments");
    let mut folders: Vec<_> = fs::read_dir(&root)
        .with_context(|| format!("cannot read {}", root.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| p.is_dir())
        .collect();
    folders.sort();
    Ok(folders)
}

/// Finds the file that `name` means: a file, a folder with a `scenario.toml`, or the name of a
/// scenario or folder under `experiments/`.
pub fn find(name: &str) -> Result<PathBuf> {
    let path = Path::new(name);
    if path.is_file() {
        return Ok(path.to_path_buf());
    }
    if path.is_dir() {
        let file = path.join("scenario.toml");
        anyhow::ensure!(file.is_file(), "{} has no scenario.toml", path.display());
        return Ok(file);
    }
    let mut known = vec![];
    for folder in folders()? {
        for file in files_in(&folder)? {
            let scenario = read(&file, &Options::default())?;
            if scenario.name == name {
                return Ok(file);
            }
            known.push(scenario.name);
        }
    }
    bail!(
        "no scenario is called {name:?} and there is no such file; there are: {}",
        known.join(", ")
    )
}

pub fn read(file: &Path, options: &Options) -> Result<Scenario> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(scenario::parse(
        &file.display().to_string(),
        &text,
        options,
    )?)
}
