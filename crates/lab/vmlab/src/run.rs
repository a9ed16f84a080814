// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the cells of a scenario: a number of them in each guest, guests side by side.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use scenario::{Cell, Kernel};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cell_files::CellFiles;
use crate::error::{At, Error};
use crate::guest_store::{FRESH, Key};
use crate::kbuild::{Headers, SCH_PSP};
use crate::profile::{self, Debug};
use crate::progress::{Event, Progress};
use crate::qemu::{Guest, Start};
use crate::reports;
use crate::results::collect;
use crate::setup::{Lab, Parts};
use crate::snapshot::Origin;

/// Smallest and largest room for results, in bytes. The file is sparse, so unused room costs
/// nothing.
const SHARED_MIN: u64 = 1 << 26;
const SHARED_MAX: u64 = 1 << 32;

/// Describes what [`run`] is to do.
#[derive(Clone, Debug)]
pub struct RunSpec<'a> {
    /// Cells of one scenario.
    pub cells: &'a [Cell],
    /// Cells run one after another in one guest; at least 1.
    pub per_boot: usize,
    /// The kernel under test.
    pub kernel: Kernel,
    /// Seed of every guest.
    pub seed: u64,
    /// Folder for the results; `cell-N` and `boot-N` are made in it.
    pub out_dir: &'a Path,
    /// Guests that run at the same time; `None`: one for each core.
    pub jobs: Option<NonZeroUsize>,
    /// Limit of the processor time of one guest; `None`: derived from the guest's simulated time.
    pub timeout: Option<Duration>,
}

/// The results of [`run`].
#[derive(Clone, Debug)]
pub struct RunOutput {
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel_release: String,
    /// Results of the cells, in the order of the cells.
    pub cells: Vec<CellOutput>,
    /// Wall-clock figures of the run; for `run.json`.
    pub stats: RunStats,
}

/// The results of one cell.
#[derive(Clone, Debug)]
pub struct CellOutput {
    pub index: usize,
    /// Its folder: `timeline.CABLE.END`, `flows.CABLE.END`, `snap.CABLE.END`, `counters.CABLE` and
    /// what the programs printed.
    pub dir: PathBuf,
    /// The console log of the guest that ran the cell.
    pub console: PathBuf,
    /// t = 0 on the guest's clock.
    pub zero_ns: u64,
    /// Time for which the CPU was not idle, in each of the cell's windows.
    pub busy_ns: Vec<u64>,
    /// Output of `tc -s -j` for every device, by host.
    pub tc: BTreeMap<String, Value>,
    /// Report of the sender, by flow.
    pub flow_reports: BTreeMap<String, Value>,
    /// Instructions by function, largest first, in each of the cell's windows; empty unless
    /// [`Lab::profile`] is set.
    pub profile: Vec<Vec<profile::Row>>,
}

/// Wall-clock figures: not part of the result, because they differ each time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunStats {
    /// From the first boot to the end of the last guest.
    pub wall_s: f64,
    /// Duration and settle time of all cells together.
    pub simulated_s: f64,
    /// Simulated seconds for each second of wall-clock time.
    pub speed: f64,
    /// Guests that ran at the same time.
    pub jobs: usize,
    /// Figures of the guests, in the order of the boots.
    pub boots: Vec<BootStats>,
}

/// Wall-clock figures of one guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BootStats {
    pub cells: usize,
    /// From power on to the first cell.
    pub boot_s: f64,
    /// From power on to the end.
    pub wall_s: f64,
    /// Whether the guest did not run, because the store has what it left.
    pub is_stored: bool,
}

/// Runs the cells of `spec`. A folder `cell-N` in `out_dir` must not contain files.
///
/// # Errors
/// If a cell's folder contains files: then nothing has been booted. Otherwise the error of the
/// first guest that failed; the others are then stopped.
pub fn run(lab: &Lab, spec: &RunSpec<'_>, progress: &dyn Progress) -> Result<RunOutput, Error> {
    check_room(spec.out_dir, spec.cells.iter().map(|cell| cell.index))?;
    let parts = lab.parts(spec.kernel, false, progress)?;
    let base = parts.base.to_cpio();
    fs::create_dir_all(spec.out_dir).at("create", spec.out_dir)?;
    let cpus = spec.cells.iter().map(|cell| cell.cpus).max().unwrap_or(1);
    if cpus > 1 {
        let text = format!(
            "the guests have {cpus} processors and follow the host's clock: no two runs are equal, \
             and none is taken from the cache or kept there"
        );
        progress.event(&Event::Note { text: &text });
    }
    let shards: Vec<&[Cell]> = guests(spec).collect();
    let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let jobs = spec.jobs.unwrap_or(cores).get().min(shards.len().max(1));
    let runner = Runner {
        lab,
        spec,
        parts: &parts,
        base: &base,
        progress,
    };
    let begin = Instant::now();
    let done = runner.all(&shards, jobs)?;
    let wall_s = begin.elapsed().as_secs_f64();
    let simulated_s = spec.cells.iter().map(simulated_s).sum();
    let (cells, boots): (Vec<_>, Vec<BootStats>) = done.into_iter().unzip();
    let stored = boots.iter().filter(|boot| boot.is_stored).count();
    if stored > 0 {
        let text = format!(
            "{stored} of {} guests did not run: the cache has what they left ({FRESH}=1 runs them)",
            boots.len()
        );
        progress.event(&Event::Note { text: &text });
    }
    Ok(RunOutput {
        kernel_release: parts.kernel.release,
        cells: cells.into_iter().flatten().collect(),
        stats: RunStats {
            wall_s,
            simulated_s,
            speed: simulated_s / wall_s,
            jobs,
            boots,
        },
    })
}

/// Digests of what decides what a guest measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Of what is the project's: sources, plan, options. Packages, kernel and compiler are not in it.
    pub own: String,
    /// Of all that the guest is given.
    pub all: String,
}

/// Returns the keys of each guest of runs on one kernel, run by run. Nothing is booted; modules and programs
/// are compiled if the cache has none. `command` stands for the command `pspacer`: for the parts of it that
/// decide something in these guests.
pub fn keys(
    lab: &Lab,
    specs: &[RunSpec<'_>],
    command: &str,
    progress: &dyn Progress,
) -> Result<Vec<Keys>, Error> {
    let Some(kernel) = specs.first().map(|spec| spec.kernel) else {
        return Ok(vec![]);
    };
    let parts = lab.parts(kernel, false, progress)?;
    let base = parts.base.to_cpio();
    let stop = AtomicBool::new(false);
    let folder = PathBuf::new();
    let mut common = Key::new();
    common.add(&base);
    common.add(&fs::read(&parts.kernel.image).at("read", &parts.kernel.image)?);
    let mut digests = BTreeMap::new();
    let of = |(spec, cells): (&RunSpec<'_>, &[Cell])| {
        let runner = Runner {
            lab,
            spec,
            parts: &parts,
            base: &base,
            progress,
        };
        let guest = runner.guest(cells, &folder, &stop);
        let (mut own, mut all) = (Key::new(), common.clone());
        own.add(format!("{kernel:?}").as_bytes());
        let qemu = guest.qemu.file_name().unwrap_or_default();
        all.add(qemu.as_encoded_bytes());
        for word in guest.options_anywhere() {
            own.add(word.as_encoded_bytes());
            all.add(word.as_encoded_bytes());
        }
        own.add(&runner.files().own(cells, command)?.to_cpio());
        let sources = runner.files().sources(cells);
        let digest = match digests.entry(sources) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let digest = lab.sources.hash(new.key())?;
                new.insert(digest)
            }
        };
        own.add(digest.as_bytes());
        all.add(&runner.files().all(cells, Some(command))?.to_cpio());
        Ok(Keys {
            own: own.text(),
            all: all.text(),
        })
    };
    let guests = |spec| guests(spec).map(move |cells| (spec, cells));
    specs.iter().flat_map(guests).map(of).collect()
}

/// Returns the cells of each guest of a run.
fn guests<'a>(spec: &RunSpec<'a>) -> impl Iterator<Item = &'a [Cell]> + use<'a> {
    spec.cells.chunks(spec.per_boot.max(1))
}

fn simulated_s(cell: &Cell) -> f64 {
    Duration::from_nanos(cell.duration_ns + cell.settle_ns).as_secs_f64()
}

type Done = (Vec<CellOutput>, BootStats);

struct Runner<'a> {
    lab: &'a Lab,
    spec: &'a RunSpec<'a>,
    parts: &'a Parts,
    base: &'a [u8],
    progress: &'a dyn Progress,
}

impl Runner<'_> {
    /// Runs every shard, `jobs` at a time. After the first failure it begins no other shard and
    /// stops those that run.
    fn all(&self, shards: &[&[Cell]], jobs: usize) -> Result<Vec<Done>, Error> {
        let pool = ThreadPoolBuilder::new().num_threads(jobs).build()?;
        let stop = AtomicBool::new(false);
        let work = |(boot, cells): (usize, &&[Cell])| {
            let result = self.boot(boot, cells, &stop);
            let ok = result.is_ok();
            self.progress.event(&Event::BootEnd { boot, ok });
            match result {
                // This guest was stopped because another failed: the other's error is reported.
                Err(_) if stop.load(Ordering::Relaxed) => Ok(None),
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    Err(error)
                }
                Ok(done) => Ok(Some(done)),
            }
        };
        let shards = shards.par_iter().with_max_len(1).enumerate();
        let done: Vec<_> = pool.install(|| shards.map(work).collect::<Result<_, Error>>())?;
        Ok(done.into_iter().flatten().collect())
    }

    fn files(&self) -> CellFiles<'_> {
        CellFiles {
            lab: self.lab,
            parts: self.parts,
            seed: self.spec.seed,
            progress: self.progress,
        }
    }

    /// Returns the guest of some cells, without its files.
    fn guest<'b>(&'b self, cells: &[Cell], folder: &'b Path, stop: &'b AtomicBool) -> Guest<'b> {
        let simulated: f64 = cells.iter().map(simulated_s).sum();
        Guest {
            qemu: &self.parts.qemu,
            kernel: &self.parts.kernel.image,
            // Cells are IPv4 only; IPv6 neighbour discovery would put frames on their cables.
            kernel_line: "ipv6.disable=1",
            initrd: &[],
            start: Start::Boot,
            memory_bytes: cells
                .iter()
                .map(|cell| cell.memory_bytes)
                .max()
                .unwrap_or(1 << 30),
            cpus: cells.iter().map(|cell| cell.cpus).max().unwrap_or(1),
            shared_bytes: shared_bytes(cells),
            seed: self.spec.seed,
            timeout: self.spec.timeout.unwrap_or_else(|| timeout(simulated)),
            folder,
            nics: &[],
            plugin: None,
            stop,
            store: &self.parts.store,
            answers: self.lab.answers,
        }
    }

    /// Runs one guest with its cells.
    fn boot(&self, boot: usize, cells: &[Cell], stop: &AtomicBool) -> Result<Done, Error> {
        let folder = self.spec.out_dir.join(format!("boot-{boot}"));
        let scratch = tempfile::Builder::new()
            .prefix(".boot-")
            .tempdir_in(self.spec.out_dir)
            .at("create a folder in", self.spec.out_dir)?;
        let plugin = self.parts.programs.join("profile.so");
        let argument = format!("out={}", folder.join(profile::COUNTS).display());
        let guest = Guest {
            plugin: self.lab.profile.then_some((&*plugin, argument)),
            ..self.guest(cells, &folder, stop)
        };
        let first_cell = cells.first().map_or(0, |cell| cell.index);
        self.progress.event(&Event::Boot {
            boot,
            first_cell,
            cells: cells.len(),
        });
        if self.lab.profile {
            let path = &folder.join(profile::COUNTS);
            self.progress.event(&Event::Output {
                path,
                is_folder: false,
            });
        }
        for path in guest.files(scratch.path()) {
            let is_folder = path == folder || path == scratch.path();
            self.progress.event(&Event::Output {
                path: &path,
                is_folder,
            });
        }
        let files = self.files().all(cells, None)?.to_cpio();
        let origin = Origin::new(&self.lab.cache, &guest, self.base, files)?;
        let guest = Guest {
            initrd: &origin.initrd,
            start: origin.start(),
            ..guest
        };
        let begin = Instant::now();
        let mut boot_s = None;
        let left = guest.boot(scratch.path(), &mut |line| {
            boot_s.get_or_insert_with(|| begin.elapsed().as_secs_f64());
            if let Some((cell, done)) = progress_line(line) {
                self.progress.event(&Event::Cell { boot, cell, done });
            }
        })?;
        let wall_s = begin.elapsed().as_secs_f64();
        let out_dir = self.spec.out_dir;
        let found = collect(
            &left.shared,
            out_dir,
            &folder,
            &guest.console(),
            self.progress,
        )?;
        let mut outputs = cells
            .iter()
            .enumerate()
            .map(|(number, cell)| self.cell_output(&guest, cell, found.zeros_ns.get(number)))
            .collect::<Result<Vec<_>, _>>()?;
        if self.lab.profile {
            let profiles = self.profiles(&folder, cells)?;
            for (output, profile) in outputs.iter_mut().zip(profiles) {
                output.profile = profile;
            }
        }
        let boot_s = boot_s.unwrap_or(wall_s);
        Ok((
            outputs,
            BootStats {
                cells: cells.len(),
                boot_s,
                wall_s,
                is_stored: left.is_stored,
            },
        ))
    }

    /// Returns the instructions of every window by function.
    fn profiles(&self, boot: &Path, cells: &[Cell]) -> Result<Vec<Vec<Vec<profile::Row>>>, Error> {
        let headers = Headers {
            cross: None,
            release: &self.parts.kernel.release,
            root: &self.parts.kernel_root,
        };
        let Lab { cache, sources, .. } = self.lab;
        let file = headers.debug(cache, sources, &SCH_PSP)?;
        // Without a cell that loads psp the module was not compiled.
        let debug = file.is_file().then_some(Debug {
            name: SCH_PSP.name,
            file: &file,
        });
        profile::read(boot, cells, debug.as_slice())
    }

    fn cell_output(
        &self,
        guest: &Guest<'_>,
        cell: &Cell,
        zero_ns: Option<&u64>,
    ) -> Result<CellOutput, Error> {
        let dir = cell_folder(self.spec.out_dir, cell.index);
        let console = guest.console();
        let fault = |detail: String| Error::Results {
            detail,
            console: console.clone(),
        };
        let zero_ns = *zero_ns.ok_or_else(|| fault(format!("cell {} has no t = 0", cell.index)))?;
        reports::check_counters(cell, &dir).map_err(fault)?;
        Ok(CellOutput {
            index: cell.index,
            tc: reports::tc(cell, &dir)?,
            flow_reports: reports::flows(cell, &dir)?,
            busy_ns: reports::busy(cell, &dir)?,
            profile: Vec::new(),
            console: console.clone(),
            dir,
            zero_ns,
        })
    }
}

/// Returns an error if a cell's folder contains files. Nothing is removed: only the caller knows
/// which files it wrote.
fn check_room(out_dir: &Path, cells: impl Iterator<Item = usize>) -> Result<(), Error> {
    for index in cells {
        let path = cell_folder(out_dir, index);
        if path.exists() {
            let mut entries = fs::read_dir(&path).at("read", &path)?;
            if entries.next().is_some() {
                return Err(Error::Occupied { path });
            }
        }
    }
    Ok(())
}

fn cell_folder(out_dir: &Path, index: usize) -> PathBuf {
    out_dir.join(format!("cell-{index}"))
}

/// Parses `progress T_NS cell N begin|end` into the cell and the share that is done.
fn progress_line(line: &str) -> Option<(usize, f64)> {
    let mut words = line.strip_prefix("progress ")?.split(' ').skip(1);
    let (word, cell, what) = (words.next()?, words.next()?, words.next()?);
    let done = match what {
        "begin" => 0.0,
        "end" => 1.0,
        _ => return None,
    };
    (word == "cell").then_some((cell.parse().ok()?, done))
}

/// Returns a limit of processor time that no guest should reach: two minutes for each simulated
/// second (measured: at most 15 s, alone on a slow core), and two minutes more.
fn timeout(simulated_s: f64) -> Duration {
    Duration::from_secs_f64(simulated_s.mul_add(120.0, 120.0))
}

/// Returns the bytes of room for the records of both directions of fully loaded cables with small
/// frames.
fn shared_bytes(cells: &[Cell]) -> u64 {
    const RECORD: f64 = 32.0;
    const FRAME_BITS: f64 = 300.0 * 8.0;
    let bytes: f64 = cells
        .iter()
        .flat_map(|cell| cell.cables.iter().map(move |cable| (cell, cable)))
        .map(|(cell, cable)| {
            #[allow(clippy::cast_precision_loss, reason = "an estimate")]
            let frames = simulated_s(cell) * cable.rate_bps as f64 / FRAME_BITS;
            2.0 * frames * (RECORD + f64::from(cable.snap_bytes))
        })
        .sum();
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped"
    )]
    let bytes = bytes.min(SHARED_MAX as f64) as u64;
    bytes.clamp(SHARED_MIN, SHARED_MAX).next_power_of_two()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Files in a cell's folder belong to somebody: they stay, and no guest boots.
    #[test]
    fn a_cells_folder_with_files_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let cell = folder.path().join("cell-1");
        fs::create_dir(&cell).unwrap();
        check_room(folder.path(), 0..3).unwrap();
        let file = cell.join("thesis.txt");
        fs::write(&file, "years of work").unwrap();
        let error = check_room(folder.path(), 0..3).unwrap_err().to_string();
        assert!(error.contains("cell-1: the folder has files"), "{error}");
        assert!(file.exists());
    }

    #[test]
    fn progress_lines() {
        assert_eq!(
            progress_line("progress 120034 cell 3 begin"),
            Some((3, 0.0))
        );
        assert_eq!(
            progress_line("progress 120034 cell 12 end"),
            Some((12, 1.0))
        );
        for line in [
            "",
            "progress",
            "progress 1 cell x end",
            "progress 1 cell 1 now",
            "cell 1 end",
        ] {
            assert_eq!(progress_line(line), None, "{line}");
        }
    }
}
