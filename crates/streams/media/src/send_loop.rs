// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands the packets of synthetic streams to their sockets in time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind};

use linux_io::clock::{monotonic_ns, sleep_until, tai_ns};
use linux_io::launch::{LaunchClock, LaunchSocket, Missed};
use linux_io::signals::Signals;
use serde::Serialize;
use st2110::synthetic::{Audio, Video};
use units::time::PS_PER_NS;

/// Packets after which reports are read and signals looked for.
const BATCH: u64 = 64;
/// Time after the last launch in which reports may still come.
const LAST_REPORTS_NS: u64 = 100_000_000;

/// A synthetic stream.
#[derive(Clone, Debug)]
pub enum Source {
    /// RFC 4175 video.
    Video(Video),
    /// AES67 audio.
    Audio(Audio),
}

/// When packets are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handing {
    /// All of a frame when its first is due.
    Frame,
    /// Each this long before it is due, with its launch time.
    Launch {
        /// The clock of launch times.
        clock: LaunchClock,
        /// Time from handing over to launching.
        lead_ns: u64,
    },
}

/// A stream that is sent.
#[derive(Clone, Debug)]
pub struct Stream {
    /// What it is made of.
    pub source: Source,
    /// Its packets leave so much later than the source says.
    pub offset_ns: u64,
}

/// What to send.
#[derive(Clone, Debug)]
pub struct Plan {
    pub streams: Vec<Stream>,
    /// When packets are handed over.
    pub handing: Handing,
    /// Time from now to the first packet, at least.
    pub ahead_ns: u64,
    /// Time from the first packet to the last; `None`: until a signal comes.
    pub duration_ns: Option<u64>,
}

/// What became of the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Packets that the kernel took.
    pub sent: u64,
    /// Packets that it did not take: a queue was full.
    pub unsent: u64,
    /// Packets that were handed over after they were due.
    pub late: u64,
    /// How late the latest was.
    pub latest_ns: u64,
    /// Packets that the error queue says were dropped because their launch time had passed; `None`:
    /// they have none.
    pub missed: Option<u64>,
    /// Packets whose launch time the qdisc refused.
    pub refused: Option<u64>,
    /// Time from the first packet's launch to the last one's.
    pub sent_for_ns: u64,
}

/// A packet that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    /// Number of its frame or, of audio, its own; since the epoch.
    number: i128,
    index: u32,
    sequence: u32,
    /// When it leaves, on TAI, rounded down.
    launch_ns: u64,
    /// When the first packet of its frame leaves.
    frame_ns: u64,
}

/// The packets of a stream, in order.
struct Packets<'a> {
    source: &'a Source,
    offset_ns: u64,
    number: i128,
    index: u32,
    sequence: u32,
}

fn ns(ps: i128) -> u64 {
    u64::try_from(ps / i128::from(PS_PER_NS)).unwrap_or(0)
}

impl<'a> Packets<'a> {
    /// Begins with the first packet at or after an instant of TAI.
    fn new(stream: &'a Stream, from_ns: u64) -> Self {
        let from_ps = i128::from(from_ns) * i128::from(PS_PER_NS);
        let source = &stream.source;
        Self {
            source,
            offset_ns: stream.offset_ns,
            number: match source {
                Source::Video(video) => video.first_after(from_ps),
                Source::Audio(audio) => audio.first_after(from_ps),
            },
            index: 0,
            sequence: 0,
        }
    }

    fn next(&mut self) -> Due {
        let (number, index) = (self.number, self.index);
        let (launch_ps, frame_ps, packets) = match self.source {
            Source::Video(video) => (
                video.launch_ps(number, index),
                video.launch_ps(number, 0),
                video.packets(),
            ),
            Source::Audio(audio) => (audio.launch_ps(number), audio.launch_ps(number), 1),
        };
        let due = Due {
            number,
            index,
            sequence: self.sequence,
            launch_ns: ns(launch_ps) + self.offset_ns,
            frame_ns: ns(frame_ps) + self.offset_ns,
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.index += 1;
        if self.index >= packets {
            (self.number, self.index) = (number + 1, 0);
        }
        due
    }

    fn write(&self, due: &Due, out: &mut Vec<u8>) {
        match self.source {
            Source::Video(video) => video.write(due.number, due.index, due.sequence, out),
            Source::Audio(audio) => audio.write(due.number, due.sequence, out),
        }
    }
}

/// Sends the plan's packets, each stream's through the socket of its number.
///
/// # Errors
/// If a clock or the socket fails. A full queue is counted instead.
pub fn run(plan: &Plan, sockets: &[LaunchSocket], signals: &Signals) -> io::Result<Statistics> {
    // Frames begin on TAI's grid; the program waits on the monotonic clock. The offset is read once.
    let (monotonic_start_ns, tai_start_ns) = (monotonic_ns()?, tai_ns()?);
    let to_monotonic = |tai: u64| {
        let ahead = i128::from(tai) - i128::from(tai_start_ns);
        u64::try_from(i128::from(monotonic_start_ns) + ahead).unwrap_or(0)
    };
    let from_ns = tai_start_ns + plan.ahead_ns;
    let streams = plan.streams.iter();
    let mut streams: Vec<_> = streams.map(|s| Packets::new(s, from_ns)).collect();
    let handed_at = |due: &Due| match plan.handing {
        Handing::Frame => due.frame_ns,
        Handing::Launch { .. } => due.launch_ns,
    };
    // The next packet of each stream; streams of equal time go by their numbers.
    let mut next: BinaryHeap<_> = streams
        .iter_mut()
        .enumerate()
        .map(|(number, packets)| {
            let due = packets.next();
            Reverse((handed_at(&due), number, due))
        })
        .collect();
    let mut statistics = Statistics::default();
    if matches!(plan.handing, Handing::Launch { .. }) {
        (statistics.missed, statistics.refused) = (Some(0), Some(0));
    }
    let mut bytes = Vec::new();
    let mut first_ns = None;
    let mut handed = 0u64;
    while let Some(Reverse((_, number, due))) = next.pop() {
        let (packets, Some(socket)) = (&mut streams[number], sockets.get(number)) else {
            continue;
        };
        let first = *first_ns.get_or_insert(due.launch_ns);
        let passed_ns = due.launch_ns.saturating_sub(first);
        if plan
            .duration_ns
            .is_some_and(|duration| passed_ns >= duration)
        {
            break;
        }
        let (hand_ns, launch_ns) = match plan.handing {
            Handing::Frame => (due.frame_ns, None),
            Handing::Launch { clock, lead_ns } => {
                let launch_ns = match clock {
                    LaunchClock::Tai => due.launch_ns,
                    LaunchClock::Monotonic => to_monotonic(due.launch_ns),
                };
                (due.launch_ns.saturating_sub(lead_ns), Some(launch_ns))
            }
        };
        packets.write(&due, &mut bytes);
        let after = packets.next();
        next.push(Reverse((handed_at(&after), number, after)));
        let hand_ns = to_monotonic(hand_ns);
        let mut now_ns = monotonic_ns()?;
        if now_ns < hand_ns || handed % BATCH == 0 {
            // Of many streams one has room for the reports of many packets.
            if sockets.len() == 1 || handed % BATCH == 0 {
                read_reports(sockets, &mut statistics)?;
            }
            if signals.came()? {
                break;
            }
            sleep_until(hand_ns)?;
            now_ns = monotonic_ns()?;
        }
        handed += 1;
        let late_ns = now_ns.saturating_sub(to_monotonic(due.launch_ns));
        statistics.late += u64::from(late_ns > 0);
        statistics.latest_ns = statistics.latest_ns.max(late_ns);
        match socket.send(&bytes, launch_ns) {
            Ok(()) => statistics.sent += 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => statistics.unsent += 1,
            Err(error) => return Err(error),
        }
        statistics.sent_for_ns = statistics.sent_for_ns.max(passed_ns);
    }
    if let Handing::Launch { lead_ns, .. } = plan.handing {
        sleep_until(
            monotonic_ns()?
                .saturating_add(lead_ns)
                .saturating_add(LAST_REPORTS_NS),
        )?;
        read_reports(sockets, &mut statistics)?;
    }
    Ok(statistics)
}

fn read_reports(sockets: &[LaunchSocket], statistics: &mut Statistics) -> io::Result<()> {
    if statistics.missed.is_none() {
        return Ok(());
    }
    for socket in sockets {
        while let Some(report) = socket.report()? {
            let count = match report.missed {
                Missed::Late => &mut statistics.missed,
                Missed::Refused => &mut statistics.refused,
            };
            *count = Some(count.unwrap_or(0) + 1);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    use st2110::format::Schedule;
    use st2110::rtp;

    #[test]
    fn packets_follow_each_other_over_frames() {
        let format = "640x4@60".parse().unwrap();
        let video = Video::new(format, Schedule::Linear, 0, 1).unwrap();
        assert_eq!(video.packets(), 8);
        let source = Source::Video(video);
        let stream = Stream {
            source,
            offset_ns: 0,
        };
        let mut packets = Packets::new(&stream, 1_000_000_000_000);
        let all: Vec<_> = (0..17).map(|_| packets.next()).collect();
        assert!(
            all.windows(2)
                .all(|pair| pair[0].launch_ns < pair[1].launch_ns)
        );
        let places: Vec<_> = all
            .iter()
            .map(|due| (due.number - all[0].number, due.index))
            .collect();
        assert_eq!((places[7], places[8], places[16]), ((0, 7), (1, 0), (2, 0)));
        assert_eq!(all[16].sequence, 16);
        // 1/60 s from frame to frame.
        let period_ns = all[8].frame_ns - all[7].frame_ns;
        assert!(
            (16_666_666..=16_666_667).contains(&period_ns),
            "{period_ns}"
        );
        assert!(all[0].launch_ns >= 1_000_000_000_000);
    }

    /// A stereo stream of a packet each millisecond.
    fn audio(ssrc: u32, offset_ns: u64) -> Stream {
        Stream {
            source: Source::Audio(Audio::new(2, 1_000_000, ssrc).unwrap()),
            offset_ns,
        }
    }

    /// The packets of several streams go to their own sockets, in the order of their times.
    #[test]
    fn streams_take_turns() {
        let far: Vec<_> = (0..3)
            .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
            .collect();
        let sockets: Vec<_> = far
            .iter()
            .map(|far| LaunchSocket::connect(far.local_addr().unwrap(), 1 << 20).unwrap())
            .collect();
        let plan = Plan {
            streams: (0..3).map(|k| audio(k, u64::from(k) * 333_333)).collect(),
            handing: Handing::Frame,
            ahead_ns: 1_000_000,
            duration_ns: Some(9_500_000),
        };
        let statistics = run(&plan, &sockets, &Signals::block().unwrap()).unwrap();
        // The third would leave its tenth at 9.67 ms.
        assert_eq!((statistics.sent, statistics.sent_for_ns), (29, 9_333_333));
        let mut buffer = [0; 2000];
        for (k, count) in [(0, 10), (1, 10), (2, 9)] {
            far[k].set_nonblocking(true).unwrap();
            for number in 0..count {
                let bytes = far[k].recv(&mut buffer).unwrap();
                let packet = rtp::read(&buffer[..bytes], bytes as u32).unwrap();
                assert_eq!(
                    (packet.header.ssrc, packet.header.sequence),
                    (k as u32, number)
                );
            }
            assert!(far[k].recv(&mut buffer).is_err());
        }
    }

    /// Sends 20 packets over the loopback, and returns the statistics and their numbers.
    fn sent(handing: Handing, prepare: impl Fn(&LaunchSocket)) -> (Statistics, Vec<u16>) {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        far.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let socket = LaunchSocket::connect(far.local_addr().unwrap(), 1 << 20).unwrap();
        prepare(&socket);
        let plan = Plan {
            streams: vec![audio(5, 0)],
            handing,
            ahead_ns: 1_000_000,
            duration_ns: Some(20_000_000),
        };
        let sockets = [socket];
        let statistics = run(&plan, &sockets, &Signals::block().unwrap()).unwrap();
        let mut buffer = [0; 2000];
        let numbers = (0..statistics.sent).map(|_| {
            let bytes = far.recv(&mut buffer).unwrap();
            let packet = rtp::read(&buffer[..bytes], bytes as u32).unwrap();
            assert_eq!((packet.header.ssrc, packet.payload_bytes), (5, 288));
            packet.header.sequence
        });
        (statistics, numbers.collect())
    }

    #[test]
    fn all_packets_of_a_time_are_sent_by_every_option() {
        let clock = LaunchClock::Monotonic;
        let launch = Handing::Launch {
            clock,
            lead_ns: 1_000_000,
        };
        let nothing = |_: &LaunchSocket| {};
        let paced = |socket: &LaunchSocket| socket.set_max_pacing_rate(1 << 20).unwrap();
        let timed = |socket: &LaunchSocket| socket.set_launch_clock(clock).unwrap();
        let all: Vec<u16> = (0..20).collect();
        let (statistics, numbers) = sent(Handing::Frame, nothing);
        assert_eq!(
            (statistics.sent, statistics.unsent, statistics.missed),
            (20, 0, None)
        );
        assert_eq!((statistics.sent_for_ns, &numbers), (19_000_000, &all));
        let (statistics, numbers) = sent(Handing::Frame, paced);
        assert_eq!((statistics.sent, &numbers), (20, &all));
        // The loopback has no qdisc that could miss a launch time.
        let (statistics, numbers) = sent(launch, timed);
        assert_eq!((statistics.sent, statistics.missed), (20, Some(0)));
        assert_eq!(numbers, all);
    }

    #[test]
    fn nobody_needs_to_listen() {
        let gone = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let socket = LaunchSocket::connect(gone, 1 << 20).unwrap();
        let plan = Plan {
            streams: vec![audio(5, 0)],
            handing: Handing::Frame,
            ahead_ns: 0,
            duration_ns: Some(5_000_000),
        };
        let statistics = run(&plan, &[socket], &Signals::block().unwrap()).unwrap();
        assert_eq!((statistics.sent, statistics.unsent), (5, 0));
    }
}
