// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs pieces of work on several threads.

use std::num::NonZeroUsize;

use anyhow::Result;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

/// Most pieces of work at the same time.
const MOST_THREADS: usize = 1024;

/// Runs `count` pieces of work, `jobs` at a time, and returns the results in order. After an error
/// no other piece is begun.
pub fn side_by_side<T: Send>(
    count: usize,
    jobs: Option<NonZeroUsize>,
    work: impl Fn(usize) -> Result<T> + Sync + Send,
) -> Result<Vec<T>> {
    // 0 means one thread for each core. More threads than work, or than any machine has cores, are
    // taken for a mistake and limited.
    let threads = jobs.map_or(0, |jobs| jobs.get().min(count.clamp(1, MOST_THREADS)));
    let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
    let pieces = (0..count).into_par_iter().with_max_len(1);
    pool.install(|| pieces.map(work).collect())
}
