// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one end echoes of the other: timestamps, and the congestion marks that a receiver counts,
//! by ECE (RFC 3168) or, where the handshake agreed on accurate ECN (RFC 9768), by the counter that
//! AE, CWR and ECE are then.

use std::num::{NonZeroU32, NonZeroU64};

use capture::segment::Flags;

const BITS: u16 = Flags::AE | Flags::CWR | Flags::ECE;

/// Timestamps that tell what an end had got when it sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamps {
    /// Of the first data of the other side since this side's last.
    pub(super) request: Option<u32>,
    /// When the other side began what this side has not answered yet; 0, when the capture begins, before.
    pub(super) asked_ns: u64,
    /// The shortest time from that to the answer, in microseconds begun; `None`: there was none.
    pub(super) answered_us: Option<NonZeroU32>,
    /// What this side's last segment echoes.
    pub(super) echo: Option<u32>,
    /// Of the receiver's last segment, and its time.
    pub(super) reply: Option<(u32, NonZeroU64)>,
}

impl Stamps {
    pub(super) fn note_answer(&mut self, now: u64) {
        let us = now.saturating_sub(self.asked_ns).div_ceil(1000);
        let us = NonZeroU32::new(u32::try_from(us).unwrap_or(u32::MAX));
        self.answered_us = self.answered_us.into_iter().chain(us).min();
    }
}

/// What the flags of one end mean.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Echoes {
    is_counter: bool,
    /// Its last value; `None`: the end sent at most the segment that answers the handshake.
    last: Option<u16>,
    has_answered: bool,
}

/// Returns whether the SYN and its answer agree on accurate ECN (RFC 9768, table 2).
pub(crate) fn is_agreed(syn: Flags, answer: Flags) -> bool {
    let bits = answer.0 & BITS;
    let is_classic = bits & !Flags::AE == Flags::ECE;
    syn.0 & BITS == BITS && bits != 0 && bits != BITS && !is_classic
}

impl Echoes {
    pub(crate) fn counting() -> Self {
        Self {
            is_counter: true,
            ..Self::default()
        }
    }

    /// Returns how many marks a segment echoes that is no SYN.
    pub(crate) fn of(&mut self, flags: Flags) -> u64 {
        if !self.is_counter {
            return u64::from(flags.any(Flags::ECE));
        }
        // The first one says what the SYN's own mark was.
        if !std::mem::replace(&mut self.has_answered, true) {
            return 0;
        }
        let value = (flags.0 & BITS) / Flags::ECE;
        let before = self.last.replace(value).unwrap_or(value);
        // Of more than half a turn an older segment came later.
        let more = value.wrapping_sub(before) & 7;
        if more < 4 { more.into() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_mean_what_the_handshake_agreed() {
        let syn = Flags(Flags::SYN | BITS);
        assert!(is_agreed(syn, Flags(Flags::CWR)));
        assert!(!is_agreed(syn, Flags(Flags::ECE)));
        assert!(!is_agreed(syn, Flags(0)));
        assert!(!is_agreed(
            Flags(Flags::CWR | Flags::ECE),
            Flags(Flags::CWR)
        ));
        let count = |mut echoes: Echoes| {
            let values = [2, 5, 5, 6, 0, 7].map(|value| echoes.of(Flags(value * Flags::ECE)));
            values.iter().sum::<u64>()
        };
        assert_eq!(count(Echoes::counting()), 3);
        assert_eq!(count(Echoes::default()), 3);
    }
}
