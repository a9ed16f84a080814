// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event box (paper 004, 3.2): a queue between threads, some of which run
//! by event and some every period.
//!
//! A listener chooses whether to wait. A listener that runs every period must not wait: it would
//! miss its deadline. A notifier chooses whether to give its processor up afterwards. A notifier
//! that has a second box to notify must not: the second box would wait until the notifier runs
//! again.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Whether a listener waits (Xevent-Listen-Block, -Non-Block).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Waits until the box contains something or is closed.
    Block,
    /// Does not wait.
    NonBlock,
}

/// What a notifier does after it has notified (Xevent-Notify-Preempt, -not-Preempt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify {
    /// Lets other threads run.
    Yield,
    Stay,
}

/// A bounded queue of items that one thread passes to another.
#[derive(Debug)]
pub struct EventBox<T> {
    state: Mutex<State<T>>,
    event: Condvar,
    capacity: usize,
}

#[derive(Debug)]
struct State<T> {
    queue: VecDeque<T>,
    closed: bool,
}

impl<T> EventBox<T> {
    /// Returns an empty box for at most `capacity` items. It allocates its memory now, so that
    /// nothing is allocated later.
    pub fn new(capacity: usize) -> Self {
        Self {
            state: Mutex::new(State {
                queue: VecDeque::with_capacity(capacity),
                closed: false,
            }),
            event: Condvar::new(),
            capacity,
        }
    }

    /// Inserts `item` and wakes a waiting listener. O(1).
    ///
    /// # Errors
    /// The item, if the box is full or closed.
    pub fn notify(&self, item: T, after: Notify) -> Result<(), T> {
        let mut state = self.lock();
        let refused = state.closed || state.queue.len() >= self.capacity;
        let result = if refused {
            Err(item)
        } else {
            state.queue.push_back(item);
            Ok(())
        };
        drop(state);
        self.event.notify_one();
        if after == Notify::Yield {
            thread::yield_now();
        }
        result
    }

    /// Moves all items to the end of `into`, in the order they came. Returns `false` once the box
    /// is closed and empty. O(items).
    pub fn listen(&self, how: Listen, into: &mut VecDeque<T>) -> bool {
        let mut state = self.lock();
        while how == Listen::Block && state.queue.is_empty() && !state.closed {
            state = self
                .event
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let open = !state.closed || !state.queue.is_empty();
        into.extend(state.queue.drain(..));
        open
    }

    /// Closes the box: it accepts no more items. The items in it can still be removed, and waiting
    /// listeners wake.
    pub fn close(&self) {
        self.lock().closed = true;
        self.event.notify_all();
    }

    /// Locks the state. A thread that panicked left it consistent, because every change is one
    /// step.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonblocking_listener_does_not_wait() {
        let events = EventBox::new(2);
        let mut got = VecDeque::new();
        assert!(events.listen(Listen::NonBlock, &mut got));
        assert!(got.is_empty());
        assert_eq!(events.notify(1, Notify::Stay), Ok(()));
        assert_eq!(events.notify(2, Notify::Yield), Ok(()));
        assert_eq!(events.notify(3, Notify::Stay), Err(3));
        assert!(events.listen(Listen::Block, &mut got));
        assert_eq!(got, [1, 2]);
    }

    #[test]
    fn a_closed_box_is_emptied_first() {
        let events = EventBox::new(2);
        assert_eq!(events.notify(1, Notify::Stay), Ok(()));
        events.close();
        assert_eq!(events.notify(2, Notify::Stay), Err(2));
        let mut got = VecDeque::new();
        assert!(events.listen(Listen::Block, &mut got));
        assert!(!events.listen(Listen::Block, &mut got));
        assert_eq!(got, [1]);
    }

    /// Several notifiers of both types meet a listener that waits and one that does not.
    /// Everything arrives once, and each notifier's events stay in order.
    #[test]
    fn between_threads_nothing_is_lost_and_nothing_twice() {
        const NOTIFIERS: usize = 4;
        const EACH: usize = 2000;
        let events = EventBox::new(16);
        let take = |how| {
            let (mut all, mut got) = (Vec::new(), VecDeque::new());
            while events.listen(how, &mut got) {
                all.extend(got.drain(..));
                thread::yield_now();
            }
            all
        };
        let (blocking, polling) = thread::scope(|threads| {
            let notifiers: Vec<_> = (0..NOTIFIERS)
                .map(|who| {
                    let events = &events;
                    threads.spawn(move || {
                        let after = [Notify::Yield, Notify::Stay][who % 2];
                        for n in 0..EACH {
                            let mut item = (who, n);
                            while let Err(back) = events.notify(item, after) {
                                item = back;
                                thread::yield_now();
                            }
                        }
                    })
                })
                .collect();
            let blocking = threads.spawn(|| take(Listen::Block));
            let polling = threads.spawn(|| take(Listen::NonBlock));
            for notifier in notifiers {
                notifier.join().unwrap();
            }
            events.close();
            (blocking.join().unwrap(), polling.join().unwrap())
        });
        for listener in [&blocking, &polling] {
            for who in 0..NOTIFIERS {
                let of = listener.iter().filter(|(w, _)| *w == who);
                assert!(of.map(|(_, n)| n).is_sorted());
            }
        }
        let mut all = [blocking, polling].concat();
        all.sort_unstable();
        let expected = (0..NOTIFIERS).flat_map(|who| (0..EACH).map(move |n| (who, n)));
        assert!(all.into_iter().eq(expected));
    }
}
