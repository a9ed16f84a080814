// SPDX-License-Identifier: MIT OR Apache-2.0
//! Returns the TCP segments of one or more captures, one after the other.
//!
//! ```no_run
//! # use std::{fs::File, io::Read};
//! # use capture::segments::{Segments, Source};
//! let file = Source::new("a.pcap", || {
//!     File::open("a.pcap").map(|file| Box::new(file) as Box<dyn Read>)
//! });
//! let mut segments = Segments::open(vec![file])?;
//! while let Some(segment) = segments.next() {
//!     println!("{} {}", segment.number, segment.payload_bytes);
//! }
//! # Ok::<(), capture::segments::OpenError>(())
//! ```

pub mod following;

use std::io::{self, Read};

use crate::choice::Choice;
use crate::dissect::dissect;
use crate::encapsulation::Encapsulations;
use crate::error::{Damage, ReadError};
use crate::frame::{BEYOND_SECOND, Frame, Interface, Oddities, Options, READ_AS_NS};
use crate::headers::Other;
use crate::inside::Insides;
use crate::link::{self, Link};
use crate::packets::{Format, Packets};
use crate::pcapng::Skipped;
use crate::process::{Process, Processes};
use crate::segment::Segment;

/// A capture that can be opened again.
pub struct Source<'a> {
    name: String,
    open: Box<dyn FnMut() -> io::Result<Box<dyn Read + 'a>> + 'a>,
}

impl<'a> Source<'a> {
    /// Names a capture that `open` opens from its begin. `open` is called twice if there are
    /// several files, because a file whose packets are not needed yet is not kept open.
    pub fn new(
        name: impl Into<String>,
        open: impl FnMut() -> io::Result<Box<dyn Read + 'a>> + 'a,
    ) -> Self {
        Self {
            name: name.into(),
            open: Box::new(open),
        }
    }
}

/// Error of a file of which nothing can be read.
#[derive(Debug, thiserror::Error)]
#[error("{name}")]
pub struct OpenError {
    /// Name of the file.
    pub name: String,
    /// Why it cannot be read.
    pub source: ReadError,
}

/// Most link types that the notes name.
const LINKS_MOST: usize = 8;

/// Counts of the packets that were read, and of those passed over by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of all kinds.
    pub packets: u64,
    pub segments: u64,
    /// Packets of other protocols.
    pub not_tcp: u64,
    /// Those packets of other protocols that are QUIC.
    pub quic: u64,
    /// Packets of a link type that is not supported.
    pub unknown_link: u64,
    /// Numbers of such link types, from files that were read to their end.
    pub unknown_link_numbers: Vec<i32>,
    /// Packets without a timestamp (pcapng's simple packets).
    pub timeless: u64,
    /// Packets of an interface that the file does not describe.
    pub no_interface: u64,
    /// Packets that are encrypted below TCP (IEEE 802.11, CAPWAP, ESP).
    pub encrypted: u64,
    /// Segments whose options are broken or cut by the snap length.
    pub options_cut: u64,
    /// Packets that the snap length cut before the end of the TCP header.
    pub cut: u64,
    /// Packets whose headers contradict each other.
    pub malformed: u64,
    /// First fragments of IP packets. Their payload counts as far as this fragment holds it.
    pub first_fragments: u64,
    /// Other fragments. They are passed over because they hold no TCP header.
    pub later_fragments: u64,
    /// Packets whose timestamp is before that of an earlier packet in the same file.
    pub backwards: u64,
    /// Packets whose times have fractions of a second or more.
    pub beyond_second: u64,
    /// Packets that were not wanted.
    pub left_out: u64,
    /// Packets that the captures lost, as they count them: of files that were read to their end.
    pub dropped: u64,
    /// Blocks whose length is no multiple of 4, of such files.
    pub odd_lengths: u64,
    /// Such files whose headers state microseconds, and whose packets have nanoseconds.
    pub read_as_ns: u64,
}

/// A file that is being read, and its current packet.
struct Reading<'a> {
    name: String,
    /// Index of the file. It orders packets of equal timestamps.
    place: usize,
    packets: Packets<Box<dyn Read + 'a>>,
    skipped: Skipped,
    head: Head,
}

/// A packet that was read and not yet returned.
struct Head {
    time_ns: u64,
    is_beyond_second: bool,
    /// Packets that were skipped before this one. They take numbers too.
    passed: Skipped,
    /// The segment, of which there is one if the outcome says so: whether it is the first of
    /// several fragments.
    segment: Segment,
    outcome: Result<bool, Other>,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            time_ns: 0,
            is_beyond_second: false,
            passed: Skipped::default(),
            segment: Segment::default(),
            outcome: Err(Other::NotTcp),
        }
    }
}

/// Results that all files contribute to.
#[derive(Default)]
struct Shared {
    choice: Choice,
    /// Time of the first packet.
    start_ns: Option<u64>,
    encapsulations: Encapsulations,
    processes: Processes,
    interfaces: Vec<Interface>,
    counts: Counts,
    /// What the packets had in place of TCP, as long as no segment was found.
    insides: Insides,
    damages: Vec<(String, Damage)>,
}

/// Iterates over segments in the order of their packets; over several files in order of time,
/// as in a merged capture. Memory: one chunk for each file whose time span covers the current
/// time.
pub struct Segments<'a> {
    /// Time of the first packet, index and source of each file not yet begun, the latest
    /// first.
    waiting: Vec<(u64, usize, Source<'a>)>,
    reading: Vec<Reading<'a>>,
    shared: Shared,
}

impl Shared {
    /// Reads the next packet into `head`; `None` at the end.
    #[inline]
    fn read<R: Read>(
        &mut self,
        packets: &mut Packets<R>,
        head: &mut Head,
    ) -> Result<Option<()>, ReadError> {
        // Each format has its own copy of what is done with a packet: as a function that both call it
        // takes a seventh more instructions.
        let input = &mut packets.input;
        match &mut packets.format {
            Format::Pcap(pcap) => pcap.next(input, |frame| self.take(&frame, head)),
            Format::PcapNg(pcapng) => pcapng.next(input, |frame| self.take(&frame, head)),
        }
    }

    #[inline(always)]
    fn take(&mut self, frame: &Frame<'_>, head: &mut Head) {
        let time_ns = frame.time.ns();
        let start_ns = *self.start_ns.get_or_insert(time_ns);
        (head.time_ns, head.segment.time_ns) = (time_ns, time_ns);
        head.is_beyond_second = frame.time.is_beyond_second();
        if !self.choice.is_all() && !self.choice.takes(frame, time_ns, start_ns) {
            head.outcome = Err(Other::LeftOut);
            return;
        }
        head.outcome = dissect(frame, &mut self.encapsulations, &mut head.segment);
        if !frame.options.bytes.is_empty() && head.outcome.is_ok() {
            note_process(&mut self.processes, frame.options, &head.segment);
        }
        // Only where nothing is found is it said what was there instead.
        if head.outcome.is_err() && self.counts.segments == 0 {
            self.insides.note(frame);
        }
    }

    /// Reads the next packet of a file; `false` at its end.
    #[inline]
    fn advance(&mut self, reading: &mut Reading<'_>) -> bool {
        let before_ns = reading.head.time_ns;
        let next = self.read(&mut reading.packets, &mut reading.head);
        let skipped = reading.packets.skipped();
        let passed = skipped.since(std::mem::replace(&mut reading.skipped, skipped));
        match next {
            Ok(Some(())) => {
                let head = &mut reading.head;
                self.counts.beyond_second += u64::from(head.is_beyond_second);
                self.counts.backwards += u64::from(head.time_ns < before_ns);
                head.passed = passed;
                return true;
            }
            Ok(None) => {}
            Err(error) => self.damages.push((reading.name.clone(), error.into())),
        }
        self.pass(passed);
        self.end(&reading.packets);
        false
    }

    /// Notes the interfaces of a file that was read to its end.
    fn end<R: Read>(&mut self, packets: &Packets<R>) {
        let interfaces = packets.interfaces();
        let numbers = interfaces.iter().map(|interface| interface.link_number);
        let unknown = &mut self.counts.unknown_link_numbers;
        for number in numbers.filter(|number| Link::from_number(*number).is_none()) {
            if unknown.len() < LINKS_MOST && !unknown.contains(&number) {
                unknown.push(number);
            }
        }
        if self.counts.segments == 0 {
            let links = interfaces.iter().map(|interface| interface.link_number);
            links.for_each(|number| self.insides.note_link(number));
        }
        self.interfaces.extend_from_slice(interfaces);
        let Oddities {
            is_read_as_ns,
            odd_lengths,
            dropped,
        } = packets.oddities();
        self.counts.read_as_ns += u64::from(is_read_as_ns);
        self.counts.odd_lengths += odd_lengths;
        self.counts.dropped = self.counts.dropped.saturating_add(dropped);
    }

    fn pass(&mut self, skipped: Skipped) {
        self.counts.packets += skipped.timeless + skipped.no_interface;
        self.counts.timeless += skipped.timeless;
        self.counts.no_interface += skipped.no_interface;
    }

    /// Counts a packet, and returns its segment with its number.
    #[inline]
    fn count<'h>(&mut self, head: &'h mut Head) -> Option<&'h Segment> {
        let counts = &mut self.counts;
        counts.packets += 1;
        let counter = match head.outcome {
            Ok(first_fragment) => {
                counts.segments += 1;
                counts.options_cut += u64::from(head.segment.options_cut);
                counts.first_fragments += u64::from(first_fragment);
                head.segment.number = counts.packets;
                return Some(&head.segment);
            }
            Err(Other::UnknownLink) => &mut counts.unknown_link,
            Err(Other::LeftOut) => &mut counts.left_out,
            Err(Other::NotTcp) => &mut counts.not_tcp,
            Err(Other::Quic) => {
                counts.quic += 1;
                &mut counts.not_tcp
            }
            Err(Other::Encrypted) => &mut counts.encrypted,
            Err(Other::LaterFragment) => &mut counts.later_fragments,
            Err(Other::Cut) => &mut counts.cut,
            Err(Other::Malformed) => &mut counts.malformed,
        };
        *counter += 1;
        None
    }
}

/// Notes the process that a packet's comments name.
fn note_process(processes: &mut Processes, options: Options<'_>, segment: &Segment) {
    const COMMENT: u16 = 1;
    let mut process = Process::default();
    let mut is_any = false;
    for (_, comment) in options.filter(|(code, _)| *code == COMMENT) {
        is_any |= process.read(comment);
    }
    if is_any {
        processes.note(segment.from, segment.to, process);
    }
}

impl<'a> Segments<'a> {
    /// Opens captures, and reads each as far as its first packet.
    ///
    /// # Errors
    /// Names the first file that cannot be opened or is no capture.
    pub fn open(sources: Vec<Source<'a>>) -> Result<Self, OpenError> {
        Self::open_chosen(sources, Choice::default())
    }

    /// Opens captures as [`Self::open`] does, and returns the segments of chosen packets alone.
    /// The others are counted, and keep their numbers.
    ///
    /// # Errors
    /// Names the first file that cannot be opened or is no capture.
    pub fn open_chosen(sources: Vec<Source<'a>>, choice: Choice) -> Result<Self, OpenError> {
        let mut all = Self {
            waiting: Vec::new(),
            reading: Vec::new(),
            shared: Shared {
                choice,
                ..Shared::default()
            },
        };
        if sources.len() == 1 {
            for source in sources {
                all.begin(0, source)?;
            }
            return Ok(all);
        }
        for (place, mut source) in sources.into_iter().enumerate() {
            let mut packets = opened(&mut source)?;
            // A file damaged before its first packet sorts first; the second read reports the
            // damage.
            let first = packets.next(|frame| frame.time.ns()).ok().flatten();
            let start_ns = all.shared.start_ns.into_iter().chain(first).min();
            all.shared.start_ns = start_ns;
            all.waiting.push((first.unwrap_or(0), place, source));
        }
        all.waiting
            .sort_by_key(|(first_ns, place, _)| std::cmp::Reverse((*first_ns, *place)));
        Ok(all)
    }

    fn begin(&mut self, place: usize, mut source: Source<'a>) -> Result<(), OpenError> {
        let packets = opened(&mut source)?;
        let mut reading = Reading {
            name: source.name,
            place,
            packets,
            skipped: Skipped::default(),
            head: Head::default(),
        };
        if self.shared.advance(&mut reading) {
            self.reading.push(reading);
        }
        Ok(())
    }

    /// Returns the index of the file with the next packet. Opens the files whose first packet
    /// is due.
    fn earliest(&mut self) -> Option<usize> {
        loop {
            let times = self
                .reading
                .iter()
                .map(|r| (r.head.time_ns, r.place))
                .enumerate();
            let first = times.min_by_key(|(_, time)| *time);
            let due = match (self.waiting.last(), first) {
                (Some((begin_ns, place, _)), Some((_, time))) => (*begin_ns, *place) <= time,
                (waiting, _) => waiting.is_some(),
            };
            let Some((_, place, source)) = due.then(|| self.waiting.pop()).flatten() else {
                return first.map(|(index, _)| index);
            };
            let name = source.name.clone();
            if let Err(error) = self.begin(place, source) {
                // The first pass opened this file, so it changed since then.
                self.shared.damages.push((name, error.source.into()));
            }
        }
    }

    /// Returns the next segment; `None` at the end of all files.
    #[allow(clippy::should_implement_trait)] // An iterator's `for` would borrow it for good.
    pub fn next(&mut self) -> Option<Segment> {
        loop {
            let index = if self.waiting.is_empty() && self.reading.len() == 1 {
                0
            } else {
                self.earliest()?
            };
            let reading = self.reading.get_mut(index)?;
            self.shared.pass(reading.head.passed);
            let segment = self.shared.count(&mut reading.head).copied();
            if !self.shared.advance(reading) {
                self.reading.swap_remove(index);
            }
            if segment.is_some() {
                return segment;
            }
        }
    }

    /// Passes each segment to `use_it`, to the end of all files. A segment of the last file is
    /// where it was read, and not copied.
    pub fn each(&mut self, mut use_it: impl FnMut(&Segment)) {
        while !self.waiting.is_empty() || self.reading.len() > 1 {
            match self.next() {
                Some(segment) => use_it(&segment),
                None => return,
            }
        }
        let Some(mut reading) = self.reading.pop() else {
            return;
        };
        loop {
            self.shared.pass(reading.head.passed);
            if let Some(segment) = self.shared.count(&mut reading.head) {
                use_it(segment);
            }
            if !self.shared.advance(&mut reading) {
                return;
            }
        }
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Returns the damage of each file that was read only in part, so far.
    pub fn damages(&self) -> &[(String, Damage)] {
        &self.shared.damages
    }

    /// Returns the interfaces of the files that were read to their end.
    pub fn interfaces(&self) -> &[Interface] {
        &self.shared.interfaces
    }

    /// Returns the processes that comments named so far.
    pub fn processes(&self) -> &Processes {
        &self.shared.processes
    }

    /// Returns what the packets had in place of TCP, if no segment was found: link types,
    /// EtherTypes, protocols and ports, the most frequent first.
    pub fn insides(&self) -> String {
        self.shared.insides.to_string()
    }

    /// Returns the VLANs and tunnels that were found. Call it after the last segment.
    pub fn into_encapsulations(self) -> Encapsulations {
        self.shared.encapsulations
    }

    /// Returns the VLANs and tunnels found so far.
    pub fn encapsulations(&self) -> &Encapsulations {
        &self.shared.encapsulations
    }
}

fn opened<'a>(source: &mut Source<'a>) -> Result<Packets<Box<dyn Read + 'a>>, OpenError> {
    let error = |error: ReadError| OpenError {
        name: source.name.clone(),
        source: error,
    };
    let file = (source.open)().map_err(|source| error(ReadError::Io { offset: 0, source }))?;
    Packets::open(file).map_err(error)
}

impl Counts {
    fn unknown_links(&self) -> String {
        let name = |number: &i32| format!("{number} ({})", Link::name(*number));
        let names: Vec<_> = self.unknown_link_numbers.iter().map(name).collect();
        let which = match names.as_slice() {
            [] => String::new(),
            names => format!(": {}", names.join(", ")),
        };
        format!(
            "packets of a link type that is not understood were left out{which}; expected {}",
            link::READ
        )
    }

    /// What a reader of the analysis should know, in sentences.
    pub fn notes(&self) -> Vec<String> {
        let of = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
        [
            of(self.unknown_link, &self.unknown_links()),
            of(
                self.quic,
                "packets are QUIC: it hides what TCP's headers show, and is not judged",
            ),
            of(self.timeless, "packets without a time were left out"),
            of(
                self.no_interface,
                "packets name an interface that the file does not describe, and were left out",
            ),
            of(
                self.encrypted,
                "packets are encrypted below TCP (802.11, CAPWAP or ESP) and were left out; \
                 capture where they are not",
            ),
            of(
                self.cut,
                "packets were cut before the end of what is needed of a TCP header (a longer snap \
                 length helps)",
            ),
            of(
                self.options_cut,
                "segments have TCP options that were cut or are broken: SACK blocks and \
                 timestamps may be missing",
            ),
            of(
                self.malformed,
                "packets have headers that cannot be right, and were left out",
            ),
            of(
                self.first_fragments + self.later_fragments,
                "packets are IP fragments: of each packet only the first counts",
            ),
            of(
                self.dropped,
                "packets were lost by the capture itself, as it says: what was not seen cannot be \
                 told from what was not there",
            ),
            of(
                self.odd_lengths,
                "blocks have a length that is no multiple of 4, which pcapng does not allow",
            ),
            (self.read_as_ns > 0).then(|| READ_AS_NS.to_owned()),
            of(self.beyond_second, BEYOND_SECOND),
            of(
                self.backwards,
                "packets have a time before that of the packet before them",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
