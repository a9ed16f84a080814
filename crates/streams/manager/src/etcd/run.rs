// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a manager that shares its links: some threads that take jobs, and wait for etcd beside each
//! other.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::shared::Shared;
use crate::engine::Job;

/// Threads that wait for etcd.
const THREADS: usize = 8;

/// Runs a manager until it is stopped. A question that etcd does not answer has no answer.
pub fn run(shared: &Shared, jobs: &Receiver<Job>) {
    let (sender, receiver) = sync_channel(0);
    let receiver = Mutex::new(receiver);
    thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                loop {
                    // Nobody holds the lock while he works.
                    let next = receiver
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .recv();
                    let Ok(job) = next else { return };
                    work(shared, job);
                }
            });
        }
        for job in jobs {
            let is_over = matches!(job, Job::Stop);
            if is_over || sender.send(job).is_err() {
                break;
            }
        }
        drop(sender);
    });
}

fn work(shared: &Shared, job: Job) {
    match job {
        Job::Command { command, reply } => {
            // Whoever asked may have gone.
            let _ = reply.send(shared.command(&command));
        }
        Job::Query(look) => {
            if let Ok(manager) = shared.look() {
                look(&manager);
            }
        }
        // Nobody else decides over a segment, so nobody sends any.
        Job::Message { .. } | Job::Nothing | Job::Stop => {}
    }
}
