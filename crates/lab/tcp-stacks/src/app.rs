// SPDX-License-Identifier: MIT OR Apache-2.0
//! The application of one end: steps that it takes one after the other, and how it reads.

use std::collections::VecDeque;

use crate::ground_truth::Pause;
use crate::stack::Stack;

/// One step of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Writes so many bytes.
    Write(u64),
    /// Waits until so many further bytes were read.
    Await(u64),
    /// Waits until the peer has ended its stream.
    AwaitEnd,
    /// Does something else for so many nanoseconds, for that reason.
    Pause(Pause, u64),
    /// Ends its stream.
    Close,
    /// Resets the connection.
    Abort,
}

/// How an application reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Bytes that it takes at once.
    pub chunk_bytes: u64,
    /// Time between two of its reads; 0 reads whatever is there.
    pub every_ns: u64,
    /// Pauses: after so many bytes it does not read for so many nanoseconds. In order.
    pub pauses: Vec<(u64, u64)>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            chunk_bytes: u64::MAX,
            every_ns: 0,
            pauses: Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct App {
    steps: VecDeque<Step>,
    reader: Reader,
    /// Bytes that the current step still writes or awaits.
    left: Option<u64>,
    until_ns: Option<u64>,
    read_bytes: u64,
    awaited_bytes: u64,
    next_read_ns: u64,
}

impl App {
    /// Makes an application that takes its first step when the connection is set up.
    pub fn new(steps: &[Step], reader: Reader) -> Self {
        Self {
            steps: steps.iter().copied().collect(),
            reader,
            left: None,
            until_ns: None,
            read_bytes: 0,
            awaited_bytes: 0,
            next_read_ns: 0,
        }
    }

    /// Reads, and takes the steps that can be taken at `now_ns`.
    pub fn advance(&mut self, now_ns: u64, stack: &mut dyn Stack) {
        if !stack.is_established() {
            return;
        }
        self.read(now_ns, stack);
        while let Some(&step) = self.steps.front() {
            let is_done = match step {
                Step::Write(bytes) => {
                    let left = self.left.unwrap_or(bytes);
                    let left = left - stack.write(now_ns, left);
                    self.left = Some(left);
                    left == 0
                }
                Step::Await(bytes) => {
                    // What was read before this step counts as well.
                    let want = self.awaited_bytes + bytes;
                    let is_there = self.read_bytes >= want;
                    if is_there {
                        self.awaited_bytes = want;
                    }
                    is_there
                }
                Step::AwaitEnd => stack.is_ended(),
                Step::Pause(_, ns) => {
                    let until_ns = *self.until_ns.get_or_insert(now_ns + ns);
                    until_ns <= now_ns
                }
                Step::Close => {
                    stack.close(now_ns);
                    true
                }
                Step::Abort => {
                    stack.abort(now_ns);
                    true
                }
            };
            if !is_done {
                return;
            }
            self.steps.pop_front();
            self.left = None;
            self.until_ns = None;
        }
    }

    fn read(&mut self, now_ns: u64, stack: &mut dyn Stack) {
        while now_ns >= self.next_read_ns {
            let to_pause = self
                .reader
                .pauses
                .first()
                .map(|p| p.0.saturating_sub(self.read_bytes));
            let most = self.reader.chunk_bytes.min(to_pause.unwrap_or(u64::MAX));
            let bytes = stack.read(now_ns, most);
            self.read_bytes += bytes;
            if let Some(&(_, ns)) = self
                .reader
                .pauses
                .first()
                .filter(|p| p.0 <= self.read_bytes)
            {
                self.next_read_ns = now_ns + ns;
                self.reader.pauses.remove(0);
                return;
            }
            if bytes == 0 {
                return;
            }
            self.next_read_ns = now_ns + self.reader.every_ns;
        }
    }

    /// Returns when [`Self::advance`] is to be called, whatever arrives.
    pub fn deadline(&self, now_ns: u64) -> Option<u64> {
        let reads = Some(self.next_read_ns).filter(|t| *t > now_ns);
        [self.until_ns, reads].into_iter().flatten().min()
    }

    /// Returns whether it wants to write more than the stack takes.
    pub fn is_blocked(&self) -> bool {
        matches!(self.steps.front(), Some(Step::Write(_)))
    }

    /// Returns why it gives nothing to send. An application that awaits is `AwaitPeer` here.
    pub fn pause(&self) -> Pause {
        match self.steps.front() {
            Some(Step::Pause(pause, _)) => *pause,
            Some(Step::Await(_) | Step::AwaitEnd) => Pause::AwaitPeer,
            Some(Step::Write(_)) => Pause::Work,
            Some(Step::Close | Step::Abort) | None => Pause::Finished,
        }
    }

    /// Returns whether it waits to read what will never be written: all its steps are done.
    pub fn is_finished(&self) -> bool {
        self.steps.is_empty()
    }
}
