// SPDX-License-Identifier: MIT OR Apache-2.0
//! Analyses a capture on several processors: one thread reads, and others have the connections, each
//! those whose ends it is given. The results are those of one thread.

use std::net::IpAddr;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use capture::segment::{Endpoint, Segment};
use capture::segments::Segments;

use crate::analyser::Analyser;
use crate::clock::{Clock, Moment};
use crate::options::Options;
use crate::parallel::threads;

/// Segments that a thread gets at once, and how many such batches wait for it at most.
const BATCH: usize = 512;
const WAITING_MOST: usize = 2;

type Batch = Vec<(Segment, Moment)>;

/// A thread that analyses some of the connections.
struct Shard<'scope> {
    batch: Batch,
    full: SyncSender<Batch>,
    /// Batches that were analysed: their memory is used again.
    empty: Receiver<Batch>,
    thread: ScopedJoinHandle<'scope, Analyser>,
}

impl<'scope> Shard<'scope> {
    fn new<'env>(scope: &'scope Scope<'scope, 'env>, options: Options) -> Self {
        let (full, batches) = sync_channel::<Batch>(WAITING_MOST);
        let (used, empty) = channel();
        let thread = scope.spawn(move || {
            let mut analyser = Analyser::new(options);
            for mut batch in batches {
                for (segment, moment) in &batch {
                    analyser.segment_at(segment, *moment);
                }
                batch.clear();
                // The thread that reads may have ended.
                let _ = used.send(batch);
            }
            analyser
        });
        Self {
            batch: Vec::with_capacity(BATCH),
            full,
            empty,
            thread,
        }
    }

    #[inline]
    fn push(&mut self, segment: &Segment, moment: Moment) {
        if self.batch.len() == self.batch.capacity() {
            self.send();
        }
        self.batch.push((*segment, moment));
    }

    fn send(&mut self) {
        let empty = self.empty.try_recv();
        let next = empty.unwrap_or_else(|_| Vec::with_capacity(BATCH));
        let full = std::mem::replace(&mut self.batch, next);
        // Where the thread ended, its panic is told when it is joined.
        let _ = self.full.send(full);
    }

    fn end(mut self) -> Analyser {
        self.send();
        drop(self.full);
        self.thread
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Analyses segments to their end.
pub(crate) fn analyse(segments: &mut Segments<'_>, options: Options) -> Analyser {
    // A history is of a connection by its place among all.
    let threads = if options.history_of.is_some() {
        1
    } else {
        threads()
    };
    on_threads(segments, options, threads)
}

/// Analyses segments to their end on so many threads, besides the one that reads.
pub fn on_threads(segments: &mut Segments<'_>, options: Options, threads: usize) -> Analyser {
    thread::scope(|scope| {
        let mut alone = (threads < 2).then(|| Analyser::new(options));
        let shards = (0..threads).filter(|_| threads > 1);
        let mut shards: Vec<_> = shards.map(|_| Shard::new(scope, options)).collect();
        let mut clock = Clock::default();
        segments.each(|segment| {
            if alone.is_none() && segment.mptcp.is_some() {
                // Connections of Multipath TCP belong together: from here on one thread has all.
                alone = Some(joined(std::mem::take(&mut shards), options, clock));
            }
            if let Some(analyser) = &mut alone {
                analyser.segment(segment);
            } else {
                let moment = clock.moment(segment.time_ns);
                shards[shard_of(segment, threads)].push(segment, moment);
            }
        });
        alone.unwrap_or_else(|| joined(shards, options, clock))
    })
}

fn joined(shards: Vec<Shard<'_>>, options: Options, clock: Clock) -> Analyser {
    let ended = shards.into_iter().map(Shard::end).collect();
    Analyser::join(ended, options, clock)
}

/// Returns the number of the thread that has the connections between two ends.
#[inline]
fn shard_of(segment: &Segment, threads: usize) -> usize {
    let bits = |end: &Endpoint| {
        let address = match end.address {
            IpAddr::V4(address) => address.to_bits(),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                (bits ^ (bits >> 32) ^ (bits >> 64) ^ (bits >> 96)) as u32
            }
        };
        address.rotate_left(16) ^ u32::from(end.port)
    };
    // Both directions of a connection have the same sum.
    let sum = bits(&segment.from).wrapping_add(bits(&segment.to));
    let mixed = u64::from(sum.wrapping_mul(0x9e37_79b1));
    ((mixed * threads as u64) >> 32) as usize
}
