// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs pieces of work on several threads.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Result;

/// Most pieces of work at the same time: more than any machine has cores is taken for a mistake.
const MOST_THREADS: usize = 1024;

/// Runs `count` pieces of work, `jobs` at a time and by default one for each core. They begin in
/// their order, and so do the results come. After an error no other piece is begun.
pub fn side_by_side<T: Send>(
    count: usize,
    jobs: Option<NonZeroUsize>,
    work: impl Fn(usize) -> Result<T> + Sync + Send,
) -> Result<Vec<T>> {
    let cores = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = jobs.unwrap_or_else(cores).get();
    let threads = threads.min(count).min(MOST_THREADS);
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let results: Mutex<Vec<_>> = Mutex::new((0..count).map(|_| None).collect());
    let run = || {
        while !has_failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                break;
            }
            let result = work(index);
            has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results[index] = Some(result);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(run);
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// Two threads: as long as the first piece runs, the other takes the second, then the third.
    #[test]
    fn pieces_begin_in_their_order() {
        let begun = Mutex::new(vec![]);
        let meet = Barrier::new(2);
        let work = |index: usize| {
            begun.lock().unwrap().push(index);
            if index == 0 || index == 5 {
                meet.wait();
            }
            Ok(index * 2)
        };
        let results = side_by_side(6, NonZeroUsize::new(2), work).unwrap();
        assert_eq!(results, [0, 2, 4, 6, 8, 10]);
        let begun = begun.into_inner().unwrap();
        let later: Vec<_> = begun.into_iter().filter(|index| *index > 0).collect();
        assert_eq!(later, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn no_piece_begins_after_an_error() {
        let begun = Mutex::new(vec![]);
        let work = |index: usize| {
            begun.lock().unwrap().push(index);
            anyhow::ensure!(index != 1, "piece 1");
            Ok(())
        };
        let error = side_by_side(9, NonZeroUsize::new(1), work).unwrap_err();
        assert_eq!(error.to_string(), "piece 1");
        assert_eq!(begun.into_inner().unwrap(), [0, 1]);
        assert!(side_by_side(0, None, work_of_nothing).unwrap().is_empty());
    }

    fn work_of_nothing(_: usize) -> Result<()> {
        Ok(())
    }
}
