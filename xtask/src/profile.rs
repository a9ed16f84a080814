// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the instructions of a frame go: a cell of an experiment in the laboratory, by function.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use capture::record::Kind;
use capture::timeline::TimelineReader;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use draw::table::{Column, Table};
use draw::terminal::{Style, table};
use scenario::{Cell, End, Kernel, Options, UnknownKernel};
use units::display::{count, number};
use vmlab::{CellOutput, Lab, ProfileRow, RunSpec};

use crate::notes::Notes;

/// Arguments of `cargo xtask profile`.
#[derive(Debug, Args)]
pub struct Profile {
    /// Folder under experiments/, or a scenario's file
    scenario: String,
    /// Change a parameter, a sweep or a key of the scenario; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Kernel to boot instead of the scenario's
    #[arg(long, value_name = "6.1|6.12|7", value_parser = kernel(), hide_possible_values = true)]
    kernel: Option<Kernel>,
    /// Most functions that are listed
    #[arg(long, value_name = "N", default_value_t = 40)]
    top: usize,
    /// Functions whose parts are listed, too: the bodies that the compiler inlined into them
    #[arg(long, value_name = "MODULE", default_value = "sch_psp")]
    inlined: String,
    /// Folder of what the guests recorded
    #[arg(long, value_name = "DIR", default_value = "out/profile")]
    out: PathBuf,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(format!("{text}: expected KEY=VALUE")),
    }
}

fn kernel() -> impl TypedValueParser<Value = Kernel> {
    PossibleValuesParser::new(Kernel::NAMES)
        .try_map(|name| -> Result<Kernel, UnknownKernel> { name.parse() })
}

/// Runs the cells of a scenario, counts their instructions by function, and returns a table for
/// each window of each cell.
///
/// # Errors
/// When the scenario cannot be read, the folder has files of another run, or a guest fails.
pub fn main(args: &Profile) -> Result<String> {
    let mut lab = Lab::find()?;
    lab.profile = true;
    let file = find(&lab, &args.scenario)?;
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let options = Options {
        quick: false,
        set: args.set.clone(),
    };
    let scenario = scenario::parse(&file.display().to_string(), &text, &options)?;
    let out = args.out.join(&scenario.name);
    clear(&out)?;
    let spec = RunSpec {
        cells: &scenario.cells,
        per_boot: scenario.per_boot,
        kernel: args.kernel.unwrap_or(scenario.kernel),
        seed: scenario.seed,
        out_dir: &out,
        jobs: None,
        timeout: None,
    };
    let ran = vmlab::run(&lab, &spec, &Notes::default())?;
    let mut text = String::new();
    for (cell, output) in scenario.cells.iter().zip(&ran.cells) {
        for index in 0..cell.windows.len() {
            text += &window(args, cell, output, index)?;
        }
    }
    Ok(text)
}

fn find(lab: &Lab, name: &str) -> Result<PathBuf> {
    let folder = lab.sources.path().join("experiments").join(name);
    let paths = [PathBuf::from(name), folder.join("scenario.toml")];
    match paths.into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => bail!("{name}: expected a folder under experiments/, or a scenario's file"),
    }
}

/// Removes the results of the profile before: folders `boot-N` and `cell-N`.
fn clear(out: &Path) -> Result<()> {
    let Ok(entries) = out.read_dir() else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_ours = ["boot-", "cell-"].iter().any(|p| name.starts_with(p));
        ensure!(
            is_ours,
            "{}: expected only boot-N and cell-N",
            path.display()
        );
        std::fs::remove_dir_all(&path)?;
    }
    Ok(())
}

/// Frames that all cables carried in a window: data, and gap frames.
fn frames(cell: &Cell, output: &CellOutput, index: usize) -> Result<(u64, u64)> {
    let window = &cell.windows[index];
    let [from, to] =
        [window.from_ns, window.to_ns].map(|ns| (output.zero_ns + ns).saturating_mul(1000));
    let (mut data, mut gaps) = (0, 0);
    for cable in &cell.cables {
        for end in End::BOTH {
            let path = output.dir.join(format!("timeline.{}.{end}", cable.name));
            let file =
                File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
            for record in TimelineReader::new(file) {
                let record = record.with_context(|| path.display().to_string())?;
                if record.start_ps < from || record.start_ps >= to {
                    continue;
                }
                match record.kind {
                    Kind::Data => data += 1,
                    Kind::Pause | Kind::Gap => gaps += 1,
                }
            }
        }
    }
    Ok((data, gaps))
}

/// Returns the tables of a window.
fn window(args: &Profile, cell: &Cell, output: &CellOutput, index: usize) -> Result<String> {
    let rows = &output.profile[index];
    let (data, gaps) = frames(cell, output, index)?;
    let total: u64 = rows.iter().map(|row| row.instructions).sum();
    let params: Vec<String> = cell
        .params
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let mut text = format!(
        "{}, window {}\n{} frames, {} gap frames, {} instructions a frame (busy {} ns a frame)\n\n",
        params.join(" "),
        cell.windows[index].name,
        count(data),
        count(gaps),
        per_frame(total, data),
        per_frame(output.busy_ns[index], data),
    );
    let by_module = sums(rows, |row| (row.module.clone(), String::new()));
    text += &listed("", &by_module, (total, data), args.top);
    text.push('\n');
    let by_function = sums(rows, |row| (row.module.clone(), row.function.clone()));
    text += &listed("function", &by_function, (total, data), args.top);
    let parts: Vec<ProfileRow> = rows
        .iter()
        .filter(|row| row.module == args.inlined)
        .cloned()
        .collect();
    if !parts.is_empty() {
        let inner = sums(&parts, |row| (row.function.clone(), row.inlined.clone()));
        text += &format!(
            "\nInside {}, by the function that was inlined\n\n",
            args.inlined
        );
        text += &listed("inlined", &inner, (total, data), args.top);
    }
    Ok(text + "\n")
}

type Sums = Vec<((String, String), u64)>;

/// Adds up rows that `key` gives the same name; largest first.
fn sums(rows: &[ProfileRow], key: impl Fn(&ProfileRow) -> (String, String)) -> Sums {
    let mut all: BTreeMap<(String, String), u64> = BTreeMap::new();
    for row in rows {
        *all.entry(key(row)).or_default() += row.instructions;
    }
    let mut all: Sums = all.into_iter().collect();
    all.sort_by_key(|(_, instructions)| std::cmp::Reverse(*instructions));
    all
}

fn listed(what: &str, sums: &Sums, (total, frames): (u64, u64), top: usize) -> String {
    let column = |title: &str, unit: &str, is_text| Column {
        title: title.into(),
        unit: unit.into(),
        is_text,
    };
    let mut rows = Table {
        columns: vec![
            column("in", "", true),
            column(what, "", true),
            column("share", "%", false),
            column("instructions", "per frame", false),
        ],
        rows: vec![],
    };
    let (first, rest) = sums.split_at(sums.len().min(top));
    let left = rest.iter().map(|(_, instructions)| instructions).sum();
    let others = ((String::new(), "all others".to_owned()), left);
    let others = Some(&others).filter(|_| !rest.is_empty());
    for ((module, function), instructions) in first.iter().chain(others) {
        rows.rows.push(vec![
            module.clone().into(),
            function.clone().into(),
            share(*instructions, total).into(),
            per_frame(*instructions, frames).into(),
        ]);
    }
    table(&rows, Style::PLAIN)
}

#[allow(clippy::cast_precision_loss, reason = "printed with two digits")]
fn share(part: u64, of: u64) -> String {
    number(100.0 * part as f64 / of.max(1) as f64, 2)
}

#[allow(clippy::cast_precision_loss, reason = "printed with one digit")]
fn per_frame(instructions: u64, frames: u64) -> String {
    number(instructions as f64 / frames.max(1) as f64, 1)
}
