// SPDX-License-Identifier: MIT OR Apache-2.0
//! Returns the segments of captures that are still being written, each as soon as its packet is
//! whole.
//!
//! A source says that there is nothing more for now by the error `WouldBlock`, and that a file
//! is over by the end of its bytes. Captures that follow each other are read one after the
//! other, and their packets are numbered on.

use std::io::{self, Cursor, Read};

use super::{Counts, Head, Shared};
use crate::choice::Choice;
use crate::encapsulation::Encapsulations;
use crate::error::{Damage, ReadError};
use crate::packets::Packets;
use crate::pcapng::Skipped;
use crate::segment::Segment;

/// Bytes that a capture's header has at least.
const HEADER_BYTES: usize = 24;
/// What a packed file begins with: gzip, zstd.
const PACKED: [&[u8]; 2] = [&[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd]];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // a segment is what nearly always comes
pub enum Next {
    Segment(Segment),
    /// Nothing yet.
    Waiting,
    /// The file is over, or no file was begun.
    End,
}

type Input = Box<dyn Read>;

enum State {
    None,
    /// The bytes of a header that is not whole.
    Opening(Vec<u8>, Input),
    /// And what was skipped so far.
    Reading(Packets<Box<dyn Read>>, Skipped),
}

/// Captures that are read while they are written.
pub struct Following {
    shared: Shared,
    name: String,
    state: State,
    last_ns: u64,
}

impl Following {
    /// Reads the packets that are chosen, of no capture yet.
    pub fn new(choice: Choice) -> Self {
        Self {
            shared: Shared {
                choice,
                ..Shared::default()
            },
            name: String::new(),
            state: State::None,
            last_ns: 0,
        }
    }

    /// Begins a capture, which must not be compressed. What is left of the one before is given
    /// up.
    pub fn begin(&mut self, name: impl Into<String>, source: Input) {
        self.name = name.into();
        self.state = State::Opening(Vec::with_capacity(HEADER_BYTES), source);
    }

    /// Returns the next segment, without waiting for it.
    #[allow(clippy::should_implement_trait)] // it may have nothing and go on
    pub fn next(&mut self) -> Next {
        loop {
            match std::mem::replace(&mut self.state, State::None) {
                State::None => return Next::End,
                State::Opening(head, source) => match opened(head, source) {
                    Opened::Waiting(head, source) => {
                        self.state = State::Opening(head, source);
                        return Next::Waiting;
                    }
                    Opened::Packets(packets) => {
                        self.state = State::Reading(packets, Skipped::default())
                    }
                    Opened::Failed(error) => self.damaged(error),
                },
                State::Reading(mut packets, before) => {
                    let mut head = Head::default();
                    let read = self.shared.read(&mut packets, &mut head);
                    let skipped = packets.skipped();
                    self.shared.pass(skipped.since(before));
                    match read {
                        Ok(Some(())) => {}
                        Ok(None) => {
                            self.shared.end(&packets);
                            continue;
                        }
                        Err(ReadError::Io { source, .. }) if is_waiting(&source) => {
                            self.state = State::Reading(packets, skipped);
                            return Next::Waiting;
                        }
                        Err(error) => {
                            self.shared.end(&packets);
                            self.damaged(error);
                            continue;
                        }
                    };
                    self.state = State::Reading(packets, skipped);
                    let counts = &mut self.shared.counts;
                    counts.beyond_second += u64::from(head.is_beyond_second);
                    counts.backwards += u64::from(head.time_ns < self.last_ns);
                    self.last_ns = head.time_ns;
                    if let Some(segment) = self.shared.count(&mut head) {
                        return Next::Segment(*segment);
                    }
                }
            }
        }
    }

    fn damaged(&mut self, error: ReadError) {
        let damage = Damage::from(error);
        self.shared.damages.push((self.name.clone(), damage));
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Returns the damages found since the last call, each with the name of its file.
    pub fn take_damages(&mut self) -> Vec<(String, Damage)> {
        std::mem::take(&mut self.shared.damages)
    }

    /// Returns the VLANs and tunnels found so far.
    pub fn encapsulations(&self) -> &Encapsulations {
        &self.shared.encapsulations
    }
}

fn is_waiting(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

enum Opened {
    Waiting(Vec<u8>, Input),
    Packets(Packets<Box<dyn Read>>),
    Failed(ReadError),
}

/// Reads a header as far as it is there.
fn opened(mut head: Vec<u8>, mut source: Input) -> Opened {
    while head.len() < HEADER_BYTES {
        let mut more = [0; HEADER_BYTES];
        match source.read(&mut more[..HEADER_BYTES - head.len()]) {
            Ok(0) => break,
            Ok(read) => head.extend(&more[..read]),
            Err(error) if is_waiting(&error) => return Opened::Waiting(head, source),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => {
                let offset = head.len() as u64;
                return Opened::Failed(ReadError::Io { offset, source });
            }
        }
    }
    if PACKED.iter().any(|magic| head.starts_with(magic)) {
        return Opened::Failed(ReadError::Foreign {
            expected: "a capture (pcap or pcapng) that is not packed, because it is followed"
                .into(),
            first: head.get(..16).unwrap_or(&head).to_vec(),
        });
    }
    match Packets::open_plain(Box::new(Cursor::new(head).chain(source))) {
        Ok(packets) => Opened::Packets(packets),
        Err(error) => Opened::Failed(error),
    }
}

/// Returns the time of a capture's first packet, in ns since 1970; `None` if it has none that is
/// whole, or is no capture.
pub fn first_packet_ns(source: impl Read) -> Option<u64> {
    let mut packets = Packets::open_plain(Box::new(source)).ok()?;
    packets.next(|frame| frame.time.ns()).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// A file to which bytes are added, and which may be over.
    #[derive(Clone, Default)]
    struct Growing(Rc<RefCell<(Vec<u8>, bool)>>);

    impl Read for Growing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let (bytes, is_over) = &mut *self.0.borrow_mut();
            let read = buffer.len().min(bytes.len());
            buffer[..read].copy_from_slice(&bytes[..read]);
            bytes.drain(..read);
            match read {
                0 if !*is_over => Err(io::ErrorKind::WouldBlock.into()),
                read => Ok(read),
            }
        }
    }

    /// A pcap of two segments, in raw IP.
    fn capture() -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 96, 101u32] {
            bytes.extend(word.to_le_bytes());
        }
        for second in [7u32, 8] {
            let mut packet = Vec::new();
            etherparse::PacketBuilder::ipv4([10, 1, 1, 1], [10, 1, 2, 1], 64)
                .tcp(5000, 80, second, 900)
                .write(&mut packet, &[])
                .unwrap();
            let length = packet.len() as u32;
            for word in [second, 0, length, length] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(packet);
        }
        bytes
    }

    #[test]
    fn bytes_may_come_one_by_one() {
        let growing = Growing::default();
        let mut following = Following::new(Choice::default());
        assert_eq!(following.next(), Next::End);
        following.begin("a", Box::new(growing.clone()));
        let bytes = capture();
        let mut found = Vec::new();
        for (i, byte) in bytes.iter().enumerate() {
            growing.0.borrow_mut().0.push(*byte);
            match following.next() {
                Next::Segment(segment) => found.push((i, segment.number, segment.seq)),
                Next::Waiting => {}
                Next::End => unreachable!("it is not over"),
            }
        }
        // Each is there with its last byte.
        assert_eq!(found, [(24 + 56 - 1, 1, 7), (24 + 112 - 1, 2, 8)]);
        growing.0.borrow_mut().1 = true;
        assert_eq!(following.next(), Next::End);
        assert_eq!(following.take_damages(), []);
        assert_eq!(first_packet_ns(bytes.as_slice()), Some(7_000_000_000));
        assert_eq!(first_packet_ns(&bytes[..70]), None);
    }

    #[test]
    fn files_that_follow_each_other_are_numbered_on() {
        let mut following = Following::new(Choice::default());
        let mut numbers = Vec::new();
        let whole = capture();
        for bytes in [whole.clone(), whole[..100].to_vec(), whole, vec![0x1f; 30]] {
            following.begin("file", Box::new(Cursor::new(bytes)));
            while let Next::Segment(segment) = following.next() {
                numbers.push(segment.number);
            }
        }
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        let damages = following.take_damages();
        assert_eq!(damages.len(), 2, "{damages:?}");
        assert!(
            damages[0]
                .1
                .what
                .contains("ends inside the record at byte 80")
        );
    }
}
