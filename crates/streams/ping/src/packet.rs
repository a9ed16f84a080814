// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe (`docs/use/formats.md`, "Probes"): a UDP payload with a header of 52 bytes in network byte
//! order, padded with zeros to the wanted size.

/// First bytes of every probe.
const MAGIC: [u8; 4] = *b"PSPR";
/// Version of the format.
const VERSION: u8 = 1;
/// Bytes that the checksum covers.
const CHECKED: usize = 48;
/// Bytes of the shortest probe.
pub const LEAST_BYTES: usize = CHECKED + 4;
/// Bytes of the longest probe: the most that UDP over IPv4 carries.
pub const MOST_BYTES: usize = 65_507;
/// UDP port of reflectors.
pub const PORT: u16 = 8637;

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From the sender to the reflector.
    Probe,
    /// From the reflector back to the sender.
    Answer,
}

/// The header of a probe. Times are nanoseconds since 1970 of CLOCK_TAI, 0 if there is none yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Direction of the packet.
    pub kind: Kind,
    /// Identifies the run that sent it.
    pub session: u64,
    /// Number of the probe, from 0.
    pub sequence: u64,
    /// Time at which the sender handed it to its kernel.
    pub sent_ns: u64,
    /// Time at which the reflector received it.
    pub received_ns: u64,
    /// Time at which the reflector handed the answer to its kernel.
    pub reflected_ns: u64,
}

/// The reason why a datagram is no probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// It is shorter than a header.
    #[error("{bytes} bytes: expected at least {LEAST_BYTES}")]
    Short { bytes: usize },
    /// It does not begin with a probe's first bytes.
    #[error("no probe of pspacer's")]
    Magic,
    /// Its version is not known.
    #[error("version {version}: expected {VERSION}")]
    Version { version: u8 },
    /// It is neither probe nor answer.
    #[error("kind {kind}: expected 0, a probe, or 1, an answer")]
    Kind { kind: u8 },
    /// Its checksum is wrong: it was changed on the path.
    #[error("check sum does not match")]
    Check,
}

impl Header {
    /// Writes the header to the beginning of `bytes`; the bytes after it stay.
    ///
    /// # Errors
    /// If `bytes` is shorter than a header.
    pub fn write(&self, bytes: &mut [u8]) -> Result<(), PacketError> {
        let short = PacketError::Short { bytes: bytes.len() };
        let header: &mut [u8; LEAST_BYTES] = bytes.first_chunk_mut().ok_or(short)?;
        let (checked, check) = header.split_at_mut(CHECKED);
        let kind = match self.kind {
            Kind::Probe => 0,
            Kind::Answer => 1,
        };
        let [m0, m1, m2, m3] = MAGIC;
        let numbers = [
            u64::from_be_bytes([m0, m1, m2, m3, VERSION, kind, 0, 0]),
            self.session,
            self.sequence,
            self.sent_ns,
            self.received_ns,
            self.reflected_ns,
        ];
        for (place, number) in checked.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        check.copy_from_slice(&crc32fast::hash(checked).to_be_bytes());
        Ok(())
    }

    /// Reads the header of a datagram.
    ///
    /// # Errors
    /// The reason why the datagram is no probe.
    pub fn read(bytes: &[u8]) -> Result<Self, PacketError> {
        let short = PacketError::Short { bytes: bytes.len() };
        let header: &[u8; LEAST_BYTES] = bytes.first_chunk().ok_or(short)?;
        let (checked, check) = header.split_at(CHECKED);
        let [m0, m1, m2, m3, version, kind, ..] = *header;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(PacketError::Magic);
        }
        if version != VERSION {
            return Err(PacketError::Version { version });
        }
        if crc32fast::hash(checked).to_be_bytes() != check {
            return Err(PacketError::Check);
        }
        let kind = match kind {
            0 => Kind::Probe,
            1 => Kind::Answer,
            kind => return Err(PacketError::Kind { kind }),
        };
        let number = |index: usize| {
            let place = checked.chunks_exact(8).nth(index);
            // The conversion does not fail: there are six fields of eight bytes.
            let place = place.and_then(|b| b.try_into().ok()).unwrap_or_default();
            u64::from_be_bytes(place)
        };
        Ok(Self {
            kind,
            session: number(1),
            sequence: number(2),
            sent_ns: number(3),
            received_ns: number(4),
            reflected_ns: number(5),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header {
        kind: Kind::Probe,
        session: 0x0102_0304_0506_0708,
        sequence: 7,
        sent_ns: 1_700_000_000_000_000_000,
        received_ns: 0,
        reflected_ns: 0,
    };

    #[test]
    fn a_written_header_is_read_unchanged() {
        let mut bytes = [0xff; 60];
        HEADER.write(&mut bytes).unwrap();
        assert_eq!(Header::read(&bytes), Ok(HEADER));
        assert_eq!(&bytes[..6], b"PSPR\x01\x00");
        assert_eq!(bytes[LEAST_BYTES..], [0xff; 8]);
    }

    #[test]
    fn other_bytes_are_not_probes() {
        assert_eq!(
            Header::read(&[0; 51]),
            Err(PacketError::Short { bytes: 51 })
        );
        assert_eq!(Header::read(&[0; 52]), Err(PacketError::Magic));
        assert!(HEADER.write(&mut [0; 51]).is_err());
        let mut good = [0; LEAST_BYTES];
        HEADER.write(&mut good).unwrap();
        let mut other = good;
        other[4] = 2;
        assert_eq!(
            Header::read(&other),
            Err(PacketError::Version { version: 2 })
        );
        for at in 5..LEAST_BYTES {
            let mut other = good;
            other[at] ^= 0x10;
            assert_eq!(Header::read(&other), Err(PacketError::Check), "byte {at}");
        }
    }
}
