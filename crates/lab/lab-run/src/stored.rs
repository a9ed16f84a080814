// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was measured of a piece of an experiment, in the laboratory's store: a piece that has run need
//! not run again. Beside its result is how long it took, so the next call knows what takes longest.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use scenario::result::Engine;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use vmlab::{Answers, Cache, Event, Store};

use crate::progress::{Progress, Steps};
use crate::workers::side_by_side;

/// File in the cache with the seconds that each piece took, by its name.
const TIMES: &str = "times.json";
/// Seconds of one processor that a simulated second takes where nothing like it has run.
const LABORATORY_S: f64 = 11.5;
const SIMULATOR_S: f64 = 0.03;

/// A piece of work: a guest, or some runs of a simulated cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Id {
    /// Digest of all that decides its result.
    pub key: String,
    /// Digest of what of that is the project's.
    pub own_key: String,
    /// Its name, which is the same whatever the code is.
    pub name: String,
    /// The engine that runs it.
    pub engine: Engine,
    pub simulated_s: f64,
    /// Whether what others found may show that it is not needed: those run first.
    pub is_further: bool,
}

/// An answer of the store.
#[derive(Serialize, Deserialize)]
struct Answer<T> {
    wall_s: f64,
    of: T,
}

/// The store, and how long pieces took.
pub struct Stored {
    store: Store,
    /// Whether each piece runs in this call, whatever the store has.
    is_fresh: bool,
    /// Keys of the pieces that this call has run.
    done: Mutex<HashSet<String>>,
    times: Mutex<BTreeMap<String, f64>>,
    path: PathBuf,
}

impl Stored {
    /// Opens the store of the usual cache.
    pub fn open() -> Result<Self> {
        Self::at(&Cache::default_folder()?, Answers::asked())
    }

    /// Opens the store of a cache.
    pub fn at(cache: &Cache, answers: Answers) -> Result<Self> {
        let path = cache.path().join(TIMES);
        Ok(Self {
            store: Store::of(cache)?,
            is_fresh: matches!(answers, Answers::Fresh | Answers::Unstored),
            done: Mutex::default(),
            times: Mutex::new(times_in(&path)),
            path,
        })
    }

    /// Returns whether a piece need not run.
    pub fn has(&self, piece: &Id) -> bool {
        let is_done = || lock(&self.done).contains(&piece.key);
        self.store.has(&piece.key) && (!self.is_fresh || is_done())
    }

    /// Returns what was measured of a piece, and the seconds that it took; runs it only if nobody
    /// knows.
    pub fn get<T: Serialize + DeserializeOwned>(
        &self,
        piece: &Id,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<(T, f64)> {
        if self.has(piece) {
            let found = self.store.get(&piece.key);
            let read = |bytes: Vec<u8>| serde_json::from_slice::<Answer<T>>(&bytes).ok();
            if let Some(answer) = found.and_then(read) {
                return Ok((answer.of, answer.wall_s));
            }
        }
        let begin = Instant::now();
        let of = work()?;
        let wall_s = begin.elapsed().as_secs_f64();
        let bytes = serde_json::to_vec(&Answer { wall_s, of })?;
        self.store.put(&piece.key, &bytes)?;
        lock(&self.done).insert(piece.key.clone());
        self.note(piece, wall_s)?;
        // As it will be read, so that a page does not depend on whether its pieces ran.
        let answer: Answer<T> = serde_json::from_slice(&bytes)
            .with_context(|| format!("{}: its result cannot be stored", piece.name))?;
        Ok((answer.of, wall_s))
    }

    /// Returns what was measured of a piece, if the store has it.
    pub fn known<T: DeserializeOwned>(&self, piece: &Id) -> Option<T> {
        let bytes = self.has(piece).then(|| self.store.get(&piece.key))??;
        let answer = serde_json::from_slice::<Answer<T>>(&bytes).ok()?;
        Some(answer.of)
    }

    /// Notes how long a piece took, beside what other calls have noted meanwhile.
    fn note(&self, piece: &Id, wall_s: f64) -> Result<()> {
        let mut times = lock(&self.times);
        times.extend(times_in(&self.path));
        times.insert(piece.name.clone(), wall_s);
        let text = serde_json::to_vec(&*times)?;
        let next = self.path.with_extension("new");
        let written = fs::write(&next, text).and_then(|()| fs::rename(&next, &self.path));
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Returns the seconds that a piece will take: as many as last time, or else as others of its
    /// scenario on its kernel or in the simulator, by the simulated time.
    pub fn expected_s(&self, piece: &Id) -> f64 {
        let times = lock(&self.times);
        if let Some(known_s) = times.get(&piece.name) {
            return *known_s;
        }
        let alike: String = piece.name.split_inclusive(' ').take(2).collect();
        let like = times.range(alike.clone()..);
        let like = like.take_while(|(name, _)| name.starts_with(&alike));
        let (mut wall_s, mut simulated_s) = (0.0, 0.0);
        for (name, seconds) in like {
            let of_name = name.rsplit(' ').next().and_then(|text| text.parse().ok());
            wall_s += seconds;
            simulated_s += of_name.unwrap_or(0.0);
        }
        piece.simulated_s
            * match piece.engine {
                _ if simulated_s > 0.0 => wall_s / simulated_s,
                Engine::Vmlab => LABORATORY_S,
                Engine::Netsim => SIMULATOR_S,
            }
    }

    /// Returns those of some pieces that have to run, each once: first those that are needed in any
    /// case, and of these the longest.
    pub fn missing<'a, P>(&self, pieces: &'a [P], id: impl Fn(&P) -> &Id) -> Vec<&'a P> {
        let mut seen = HashSet::new();
        let mut missing: Vec<(f64, &P)> = pieces
            .iter()
            .filter(|piece| !self.has(id(piece)) && seen.insert(id(piece).key.clone()))
            .map(|piece| (self.expected_s(id(piece)), piece))
            .collect();
        missing.sort_by(|(a_s, a), (b_s, b)| {
            let (a, b) = (id(a), id(b));
            let further = a.is_further.cmp(&b.is_further);
            let further = further.then_with(|| b_s.total_cmp(a_s));
            further.then_with(|| a.name.cmp(&b.name))
        });
        missing.into_iter().map(|(_, piece)| piece).collect()
    }

    /// Does what is missing, on all processors, in its order. A piece that fails keeps none of the
    /// others from running.
    ///
    /// # Errors
    /// The first that was seen.
    pub fn fill<P: Sync>(
        &self,
        missing: &[P],
        jobs: Option<NonZeroUsize>,
        progress: &dyn Progress,
        work: impl Fn(&P) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        let steps = Steps::new(progress, "measuring", 0, missing.len() as u64);
        let failed = Mutex::new(None);
        side_by_side(missing.len(), jobs, |index| {
            if let Err(error) = work(&missing[index]) {
                let text = &format!("{error:#}");
                progress.event(&Event::Note { text });
                lock(&failed).get_or_insert(error);
            }
            steps.add(1);
            Ok(())
        })?;
        progress.clear();
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.map_or(Ok(()), Err)
    }

    /// Returns the minutes that some pieces will take.
    pub fn minutes<'a>(&self, missing: impl IntoIterator<Item = &'a Id>) -> f64 {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let all_s: f64 = missing
            .into_iter()
            .map(|piece| self.expected_s(piece))
            .sum();
        // The number of processors is small.
        #[allow(clippy::cast_precision_loss)]
        let minutes = all_s / 60.0 / cores as f64;
        minutes
    }
}

/// Returns the times that a file has. Without them the simulated ones tell.
fn times_in(path: &Path) -> BTreeMap<String, f64> {
    let text = fs::read(path).ok();
    let times = text.and_then(|text| serde_json::from_slice(&text).ok());
    times.unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(key: &str, name: &str, engine: Engine, simulated_s: f64) -> Id {
        Id {
            key: key.into(),
            own_key: key.into(),
            name: name.into(),
            engine,
            simulated_s,
            is_further: false,
        }
    }

    fn open(folder: &tempfile::TempDir, answers: Answers) -> Stored {
        Stored::at(&Cache::at(folder.path().to_owned()), answers).unwrap()
    }

    #[test]
    fn a_piece_with_the_same_key_runs_once() {
        let folder = tempfile::tempdir().unwrap();
        let stored = open(&folder, Answers::Stored);
        let runs = Mutex::new(0);
        let ask = |stored: &Stored, key: &str| {
            let work = || {
                *lock(&runs) += 1;
                Ok((0.1 + 0.2, f64::MAX, "text".to_owned()))
            };
            let piece = id(key, "a", Engine::Netsim, 1.0);
            let ((sum, most, text), _) = stored.get(&piece, work).unwrap();
            // To the last bit.
            assert_eq!((sum, most, &*text), (0.1 + 0.2, f64::MAX, "text"));
            *lock(&runs)
        };
        assert_eq!(ask(&stored, "k"), 1);
        assert_eq!(ask(&stored, "k"), 1);
        assert_eq!(ask(&stored, "other"), 2);
        // The next call knows, too; one that wants fresh results runs each piece once.
        assert_eq!(ask(&open(&folder, Answers::Stored), "k"), 2);
        let fresh = open(&folder, Answers::Fresh);
        assert_eq!(ask(&fresh, "k"), 3);
        assert_eq!(ask(&fresh, "k"), 3);
    }

    #[test]
    fn a_piece_that_failed_or_is_damaged_runs_again() {
        let folder = tempfile::tempdir().unwrap();
        let stored = open(&folder, Answers::Stored);
        let piece = id("k", "a", Engine::Netsim, 1.0);
        let failed = stored.get::<u64>(&piece, || anyhow::bail!("no"));
        assert!(failed.is_err() && !stored.has(&piece));
        stored.store.put("k", b"{\"wall_s\": 1").unwrap();
        assert_eq!(stored.get(&piece, || Ok(7)).unwrap().0, 7);
    }

    #[test]
    fn the_longest_is_first_as_far_as_anybody_knows() {
        let folder = tempfile::tempdir().unwrap();
        let pieces = [
            id("a", "short", Engine::Netsim, 1.0),
            id("b", "guest", Engine::Vmlab, 1.0),
            id("c", "long", Engine::Netsim, 5.0),
            id("d", "known to be long", Engine::Netsim, 0.1),
            id("c", "the same again", Engine::Netsim, 5.0),
            id("e", "stored", Engine::Netsim, 9.0),
            Id {
                is_further: true,
                ..id("f", "further", Engine::Netsim, 99.0)
            },
        ];
        let stored = open(&folder, Answers::Stored);
        stored.note(&pieces[3], 100.0).unwrap();
        stored.get(&pieces[5], || Ok(0)).unwrap();
        let stored = open(&folder, Answers::Stored);
        let missing = stored.missing(&pieces, |piece| piece);
        let names: Vec<_> = missing.iter().map(|piece| &*piece.name).collect();
        assert_eq!(
            names,
            ["known to be long", "guest", "long", "short", "further"]
        );
        // What is new of a scenario takes as long as what is known of it.
        stored
            .note(&id("x", "tiny 6.1 0 0 2", Engine::Vmlab, 2.0), 1.0)
            .unwrap();
        let new = id("y", "tiny 6.1 1 0 4", Engine::Vmlab, 4.0);
        assert!((stored.expected_s(&new) - 2.0).abs() < 1e-9);
        // A kernel says nothing of the simulator.
        let simulated = id("z", "tiny simulated 0 0 4", Engine::Netsim, 4.0);
        assert!((stored.expected_s(&simulated) - 4.0 * SIMULATOR_S).abs() < 1e-9);
        let one = NonZeroUsize::new(1);
        let ran = Mutex::new(vec![]);
        let work = |piece: &Id| {
            lock(&ran).push(piece.name.clone());
            Ok(())
        };
        let missing: Vec<Id> = missing.into_iter().cloned().collect();
        stored.fill(&missing, one, &vmlab::Quiet, work).unwrap();
        assert_eq!(*lock(&ran), names);
        let fails = |piece: &Id| match &*piece.name {
            "guest" => anyhow::bail!("no {}", piece.name),
            _ => work(piece),
        };
        let error = stored.fill(&missing, one, &vmlab::Quiet, fails);
        assert_eq!(error.unwrap_err().to_string(), "no guest");
        assert_eq!(lock(&ran).len(), 2 * names.len() - 1);
        assert!(stored.minutes([&pieces[3]]) > 0.0);
    }
}
