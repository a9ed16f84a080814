// SPDX-License-Identifier: MIT OR Apache-2.0
//! Does independent work on several processors.

use std::thread::{self, available_parallelism};

/// With more threads, they wait for the one that reads.
const THREADS_MOST: usize = 4;

/// Returns how many threads have a processor.
pub(crate) fn threads() -> usize {
    available_parallelism().map_or(1, |cores| cores.get().min(THREADS_MOST))
}

/// Does independent work on several processors, each of which has neighbours.
pub(crate) fn in_parallel<T: Send>(all: &mut [T], work: &(impl Fn(usize, &mut T) + Sync)) {
    let size = all.len().div_ceil(threads()).max(1);
    let work = |(number, chunk): (usize, &mut [T])| {
        let places = (number * size..).zip(chunk);
        places.for_each(|(index, one)| work(index, one));
    };
    let mut chunks = all.chunks_mut(size).enumerate();
    let first = chunks.next();
    thread::scope(|scope| {
        for chunk in chunks {
            scope.spawn(move || work(chunk));
        }
        first.map(work);
    });
}
