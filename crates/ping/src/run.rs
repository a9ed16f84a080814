// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run: one thread sends on the schedule, this one takes what comes.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;

use crate::packet::{Header, Kind, MOST_BYTES};
use crate::schedule::Schedule;
use crate::statistics::{Outcome, REMEMBERED, Results, Sent, Statistics};
use anyhow::Result;
use linux_io::clock::{monotonic_ns, sleep_until, tai_ns};
use linux_io::priority::{Scheduling, schedule};
use linux_io::signals::Signals;
use linux_io::udp::{Class, TimestampedSocket};
use linux_io::wait::{BATCH, readable};
use serde::Serialize;

/// Before the first probe, so that both threads run.
const LEAD_NS: u64 = 20_000_000;
/// A long period is waited for in parts, to notice the end.
const PART_NS: u64 = 50_000_000;
/// Above other real-time threads of a common host, below the kernel's.
const PRIORITY: u8 = 80;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the reflector is.
    pub address: SocketAddr,
    /// From one probe to the next.
    pub period_ns: u64,
    /// Probes; until a signal comes by default.
    pub count: Option<u64>,
    /// How long answers are waited for after the last probe.
    pub wait_ns: u64,
    /// UDP payload of a probe.
    pub size_bytes: usize,
    /// Priority and code point.
    pub class: Class,
    /// Both hosts have one clock.
    pub one_way: bool,
    /// A longer round trip ends the run.
    pub stop_above_ns: Option<u64>,
}

/// An answer, for people.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Of its probe.
    pub sequence: u64,
    /// UDP payload.
    pub bytes: usize,
    /// What it says.
    pub outcome: Outcome,
}

/// What was found.
pub struct Done {
    /// Counts and delays.
    pub results: Results,
    /// Of the sending thread.
    pub scheduling: Scheduling,
    /// What ended the run, if a round trip did.
    pub above: Option<Above>,
    /// How far CLOCK_TAI was set meanwhile.
    pub clock_step_ns: u64,
}

/// The round trip that stopped the run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Above {
    /// Of its probe.
    pub sequence: u64,
    /// Longer than the threshold.
    pub round_trip_ns: u64,
}

/// Sends all probes and takes their answers, until all are there, the wait
/// after the last is over, a round trip is above the threshold, or a signal
/// comes.
///
/// # Errors
/// When the socket fails, or what `on_answer` says.
pub fn run(plan: &Plan, mut on_answer: impl FnMut(&Answer) -> Result<()>) -> Result<Done> {
    let signals = Signals::block()?;
    let session = RandomState::new().hash_one(std::process::id());
    let any: SocketAddr = match plan.address {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(plan.address)?;
    let socket = TimestampedSocket::new(socket, true)?;
    socket.set_class(plan.class)?;
    let due = Schedule {
        start_ns: monotonic_ns()?.saturating_add(LEAD_NS),
        period_ns: plan.period_ns,
        count: plan.count,
    };
    let offset_ns = clock_offset_ns()?;
    let stop = AtomicBool::new(false);
    let (said, sender) = channel();
    let mut taker = Taker {
        plan,
        socket: &socket,
        statistics: Statistics::new(session, plan.one_way),
        numbers: Numbers::default(),
        above: None,
    };
    let scheduling = thread::scope(|threads| -> Result<Scheduling> {
        let sending = threads.spawn(|| send(plan, session, due, &socket, &stop, said));
        // Below the sender: an answer waits in the socket, a probe must leave.
        schedule(&[Scheduling::Fifo(PRIORITY - 1)]);
        let taken = taker.take_all(&signals, &sender, &mut on_answer);
        // Whatever happened, the sender must end.
        stop.store(true, Ordering::Relaxed);
        let granted = sending.join();
        taken?;
        granted.unwrap_or_else(|_| anyhow::bail!("the sending thread failed"))
    })?;
    Ok(Done {
        results: taker.statistics.results(),
        scheduling,
        above: taker.above,
        clock_step_ns: clock_offset_ns()?.abs_diff(offset_ns),
    })
}

/// How far CLOCK_TAI is ahead of CLOCK_MONOTONIC.
fn clock_offset_ns() -> Result<u64> {
    Ok(tai_ns()?.wrapping_sub(monotonic_ns()?))
}

/// What the sender says of a probe.
enum Said {
    /// It is about to be sent.
    Sending(Sent),
    /// The kernel did not take it.
    Refused(u64),
}

/// Sends every probe when it is due, and says so.
fn send(
    plan: &Plan,
    session: u64,
    due: Schedule,
    socket: &TimestampedSocket,
    stop: &AtomicBool,
    said: Sender<Said>,
) -> Result<Scheduling> {
    let granted = schedule(&[Scheduling::Fifo(PRIORITY)]);
    let mut probe = vec![0; plan.size_bytes];
    for sequence in 0.. {
        let Some(due_ns) = due.due_ns(sequence) else {
            break;
        };
        while !stop.load(Ordering::Relaxed) {
            let now_ns = monotonic_ns()?;
            if now_ns >= due_ns {
                break;
            }
            sleep_until(due_ns.min(now_ns.saturating_add(PART_NS)))?;
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let late_ns = monotonic_ns()?.saturating_sub(due_ns);
        let sent_ns = tai_ns()?;
        let header = Header {
            kind: Kind::Probe,
            session,
            sequence,
            sent_ns,
            received_ns: 0,
            reflected_ns: 0,
        };
        header.write(&mut probe)?;
        let told = said.send(Said::Sending(Sent {
            sequence,
            late_ns,
            sent_ns,
        }));
        // The first error may be what became of an earlier probe.
        let send = || socket.socket().send(&probe);
        let refused = send().or_else(|_| send()).is_err();
        if told.is_err() || refused && said.send(Said::Refused(sequence)).is_err() {
            break;
        }
    }
    Ok(granted)
}

/// Sequence numbers of the datagrams that the kernel took, as it counts them;
/// of the last ones.
#[derive(Default)]
struct Numbers {
    sequences: VecDeque<u64>,
    /// The kernel's number of the first of them.
    first: u32,
}

impl Numbers {
    fn push(&mut self, sequence: u64) {
        if self.sequences.len() >= REMEMBERED {
            self.sequences.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        self.sequences.push_back(sequence);
    }

    fn pop(&mut self) {
        self.sequences.pop_back();
    }

    fn sequence(&self, number: u32) -> Option<u64> {
        let index = usize::try_from(number.wrapping_sub(self.first)).ok()?;
        self.sequences.get(index).copied()
    }
}

/// Takes what comes.
struct Taker<'a> {
    plan: &'a Plan,
    socket: &'a TimestampedSocket,
    statistics: Statistics,
    numbers: Numbers,
    above: Option<Above>,
}

impl Taker<'_> {
    fn take_all(
        &mut self,
        signals: &Signals,
        sender: &Receiver<Said>,
        on_answer: &mut impl FnMut(&Answer) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = vec![0; MOST_BYTES];
        let mut ended_ns = None;
        loop {
            readable(&[self.socket.as_fd(), signals.as_fd()], PART_NS)?;
            let all_sent = self.take_sent(sender);
            self.take_timestamps()?;
            self.take_answers(&mut buffer, sender, on_answer)?;
            if all_sent && ended_ns.is_none() {
                ended_ns = Some(monotonic_ns()?);
            }
            let waited = |since_ns: u64| -> Result<bool> {
                let waited_ns = monotonic_ns()?.saturating_sub(since_ns);
                Ok(self.statistics.outstanding() == 0 || waited_ns >= self.plan.wait_ns)
            };
            let over = match ended_ns {
                Some(since_ns) => waited(since_ns)?,
                None => false,
            };
            if over || self.above.is_some() || signals.came()? {
                self.take_sent(sender);
                return Ok(());
            }
        }
    }

    /// `true` once the sender has ended.
    fn take_sent(&mut self, sender: &Receiver<Said>) -> bool {
        loop {
            match sender.try_recv() {
                Ok(Said::Sending(sent)) => {
                    self.numbers.push(sent.sequence);
                    self.statistics.sent(sent);
                }
                Ok(Said::Refused(sequence)) => {
                    self.numbers.pop();
                    self.statistics.unsent(sequence);
                }
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
    }

    fn take_timestamps(&mut self) -> Result<()> {
        for _ in 0..BATCH {
            let Some(left) = self.socket.left_at()? else {
                break;
            };
            if let Some(sequence) = self.numbers.sequence(left.number) {
                self.statistics.sent_timestamp(sequence, left.kernel_ns);
            }
        }
        Ok(())
    }

    /// A batch: more of them wait in the socket, which stays readable.
    fn take_answers(
        &mut self,
        buffer: &mut [u8],
        sender: &Receiver<Said>,
        on_answer: &mut impl FnMut(&Answer) -> Result<()>,
    ) -> Result<()> {
        for _ in 0..BATCH {
            let received = match self.socket.receive(buffer) {
                Ok(Some(received)) => received,
                Ok(None) => break,
                // A closed port or a broken way: the probes are lost.
                Err(_) => continue,
            };
            let now_ns = tai_ns()?;
            self.statistics.overrun(received.overrun.into());
            // Its probe may have been sent since this thread looked.
            self.take_sent(sender);
            let datagram = buffer.get(..received.bytes).unwrap_or_default();
            let Ok(header) = Header::read(datagram) else {
                continue;
            };
            let by_kernel = received.kernel_ns.is_some();
            let received_ns = received.kernel_ns.unwrap_or(now_ns);
            let answer = Answer {
                sequence: header.sequence,
                bytes: received.bytes,
                outcome: self.statistics.answer(&header, received_ns, by_kernel),
            };
            on_answer(&answer)?;
            self.judge(&answer);
        }
        Ok(())
    }

    /// Whether this round trip ends the run.
    fn judge(&mut self, answer: &Answer) {
        let Outcome::Answer { round_trip_ns, .. } = answer.outcome else {
            return;
        };
        if self.above.is_none() && self.plan.stop_above_ns.is_some_and(|t| round_trip_ns > t) {
            self.above = Some(Above {
                sequence: answer.sequence,
                round_trip_ns,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::Ipv4Addr;

    use super::*;

    /// A peer that sends faster than they are taken does not keep ping from its signals.
    #[test]
    fn answers_are_taken_in_batches() {
        let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let plan = Plan {
            address: peer.local_addr().unwrap(),
            period_ns: 1_000_000,
            count: None,
            wait_ns: 0,
            size_bytes: 100,
            class: Class::default(),
            one_way: false,
            stop_above_ns: None,
        };
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        peer.connect(socket.local_addr().unwrap()).unwrap();
        socket.connect(plan.address).unwrap();
        let socket = TimestampedSocket::new(socket, true).unwrap();
        let mut taker = Taker {
            plan: &plan,
            socket: &socket,
            statistics: Statistics::new(1, false),
            numbers: Numbers::default(),
            above: None,
        };
        for _ in 0..200 {
            peer.send(b"no answer").unwrap();
        }
        let (_said, sender) = channel();
        let mut buffer = vec![0; MOST_BYTES];
        taker
            .take_answers(&mut buffer, &sender, &mut |_| Ok(()))
            .unwrap();
        let left = std::iter::from_fn(|| socket.receive(&mut buffer).unwrap());
        assert_eq!(left.count(), 200 - BATCH);
    }
}
