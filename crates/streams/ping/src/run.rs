// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a measurement: one thread sends on the schedule, the calling thread receives the answers.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;

use anyhow::Result;
use linux_io::clock::{monotonic_ns, sleep_until, tai_ns};
use linux_io::priority::{Scheduling, schedule};
use linux_io::signals::Signals;
use linux_io::udp::{Class, TimestampedSocket};
use linux_io::wait::{BATCH, readable};
use serde::Serialize;

use crate::packet::{Header, Kind, MOST_BYTES};
use crate::schedule::Schedule;
use crate::statistics::{Outcome, REMEMBERED, Results, Sent, Statistics};

/// Time from when the sending thread has its priority to the first probe, so that the receiving one runs
/// by then. Probes that are due before the sender runs would leave in one burst.
const LEAD_NS: u64 = 20_000_000;
/// Longest sleep of the sender: in a long period it wakes to notice the end of the run.
const PART_NS: u64 = 50_000_000;
/// Priority of the sender: above other real-time threads of a common host, below the kernel's.
const PRIORITY: u8 = 80;

/// Describes a measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Address of the reflector.
    pub address: SocketAddr,
    /// Time from one probe to the next.
    pub period_ns: u64,
    /// Number of probes; `None`: the run sends until a signal comes.
    pub count: Option<u64>,
    /// Longest wait for answers after the last probe.
    pub wait_ns: u64,
    /// UDP payload of a probe, in bytes.
    pub size_bytes: usize,
    /// Priority and code point of the probes.
    pub class: Class,
    /// Whether both hosts have the same clock, so that one-way delays are measured too.
    pub one_way: bool,
    /// Threshold: a longer round trip ends the run.
    pub stop_above_ns: Option<u64>,
}

/// A received answer, to be printed.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Number of its probe.
    pub sequence: u64,
    /// UDP payload, in bytes.
    pub bytes: usize,
    /// What the answer is: the first to its probe, a duplicate or a stranger.
    pub outcome: Outcome,
}

/// The results of a run.
pub struct Done {
    pub results: Results,
    /// Scheduling of the sending thread.
    pub scheduling: Scheduling,
    /// The round trip that ended the run, if one did.
    pub above: Option<Above>,
    /// Change of CLOCK_TAI against CLOCK_MONOTONIC during the run.
    pub clock_step_ns: u64,
}

/// The round trip that ended the run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Above {
    /// Number of its probe.
    pub sequence: u64,
    /// The round trip, which exceeds the threshold.
    pub round_trip_ns: u64,
}

/// Sends all probes and receives their answers. Ends when every probe is answered, the wait after
/// the last one is over, a round trip exceeds the threshold, or a signal comes.
///
/// # Errors
/// If the socket fails, or the error of `on_answer`.
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
        let sending = threads.spawn(|| send(plan, session, &socket, &stop, said));
        // The priority is below the sender's: an answer can wait in the socket, a probe must leave.
        schedule(&[Scheduling::Fifo(PRIORITY - 1)]);
        let taken = taker.take_all(&signals, &sender, &mut on_answer);
        // The sender must end in any case, also after an error.
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

/// Returns how far CLOCK_TAI is ahead of CLOCK_MONOTONIC.
fn clock_offset_ns() -> Result<u64> {
    Ok(tai_ns()?.wrapping_sub(monotonic_ns()?))
}

/// A message of the sending thread about a probe.
enum ProbeMessage {
    /// The probe is about to be sent.
    Sending(Sent),
    /// The kernel did not accept the probe with this number.
    Refused(u64),
}

/// Sends every probe when it is due, and reports it to the receiving thread.
fn send(
    plan: &Plan,
    session: u64,
    socket: &TimestampedSocket,
    stop: &AtomicBool,
    said: Sender<ProbeMessage>,
) -> Result<Scheduling> {
    let granted = schedule(&[Scheduling::Fifo(PRIORITY)]);
    let due = Schedule {
        start_ns: monotonic_ns()?.saturating_add(LEAD_NS),
        period_ns: plan.period_ns,
        count: plan.count,
    };
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
        let reported = said.send(ProbeMessage::Sending(Sent {
            sequence,
            late_ns,
            sent_ns,
        }));
        // The first error may belong to an earlier probe, so the sender tries once more.
        let send = || socket.socket().send(&probe);
        let refused = send().or_else(|_| send()).is_err();
        if reported.is_err() || refused && said.send(ProbeMessage::Refused(sequence)).is_err() {
            break;
        }
    }
    Ok(granted)
}

/// Sequence numbers of the last datagrams that the kernel accepted, to be found by the kernel's
/// number of a datagram.
#[derive(Default)]
struct Numbers {
    sequences: VecDeque<u64>,
    /// The kernel's number of the first element.
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

/// Receives answers and timestamps, and the sender's messages.
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
        sender: &Receiver<ProbeMessage>,
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

    /// Reads the sender's messages; returns `true` once the sender has ended.
    fn take_sent(&mut self, sender: &Receiver<ProbeMessage>) -> bool {
        loop {
            match sender.try_recv() {
                Ok(ProbeMessage::Sending(sent)) => {
                    self.numbers.push(sent.sequence);
                    self.statistics.sent(sent);
                }
                Ok(ProbeMessage::Refused(sequence)) => {
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

    /// Receives one batch of answers. Further ones wait in the socket, which stays readable.
    fn take_answers(
        &mut self,
        buffer: &mut [u8],
        sender: &Receiver<ProbeMessage>,
        on_answer: &mut impl FnMut(&Answer) -> Result<()>,
    ) -> Result<()> {
        for _ in 0..BATCH {
            let received = match self.socket.receive(buffer) {
                Ok(Some(received)) => received,
                Ok(None) => break,
                // The error reports a closed port or a broken path: the probes are lost.
                Err(_) => continue,
            };
            let now_ns = tai_ns()?;
            self.statistics.overrun(received.overrun.into());
            // Its probe may have been sent since this thread last read the sender's messages.
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

    /// Ends the run if this round trip exceeds the threshold.
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

    /// ping sees a signal even if the peer sends faster than ping receives.
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
