// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probe (`docs/formats.md`, "Probes"): a UDP payload with a header of 52
//! bytes, network byte order, and zeros up to the size that is wanted.

/// First bytes.
const MAGIC: [u8; 4] = *b"PSPR";
/// Of the format.
const VERSION: u8 = 1;
/// Bytes that the check sum covers.
const CHECKED: usize = 48;
/// Shortest probe.
pub const LEAST_BYTES: usize = CHECKED + 4;
/// Longest probe: what UDP over IPv4 holds.
pub const MOST_BYTES: usize = 65_507;
/// UDP port of reflectors.
pub const PORT: u16 = 8637;

/// Which way it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To the reflector.
    Probe,
    /// Back from it.
    Answer,
}

/// What a probe says. Times are nanoseconds since 1970 of CLOCK_TAI, 0 if
/// there is none yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which way.
    pub kind: Kind,
    /// Tells runs apart.
    pub session: u64,
    /// From 0.
    pub sequence: u64,
    /// When the sender handed it to its kernel.
    pub sent_ns: u64,
    /// When the reflector got it.
    pub received_ns: u64,
    /// When the reflector handed it to its kernel.
    pub reflected_ns: u64,
}

/// Why bytes are no probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Too short.
    #[error("{bytes} bytes: expected at least {LEAST_BYTES}")]
    Short {
        /// How many there are.
        bytes: usize,
    },
    /// Something else altogether.
    #[error("no probe of pspacer's")]
    Magic,
    /// Of a version that is not known.
    #[error("version {version}: expected {VERSION}")]
    Version {
        /// Its version.
        version: u8,
    },
    /// Neither probe nor answer.
    #[error("kind {kind}: expected 0, a probe, or 1, an answer")]
    Kind {
        /// Its kind.
        kind: u8,
    },
    /// Changed on its way.
    #[error("check sum does not match")]
    Check,
}

impl Header {
    /// Writes the header at the beginning of `bytes`; what follows stays.
    ///
    /// # Errors
    /// When it does not fit.
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
    /// What shows that it is none.
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
            // There are six of them.
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
    fn what_is_written_is_read() {
        let mut bytes = [0xff; 60];
        HEADER.write(&mut bytes).unwrap();
        assert_eq!(Header::read(&bytes), Ok(HEADER));
        assert_eq!(&bytes[..6], b"PSPR\x01\x00");
        assert_eq!(bytes[LEAST_BYTES..], [0xff; 8]);
    }

    #[test]
    fn what_is_no_probe() {
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
