// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the words of one line of tc(8) after its kind, one after the other.

use scenario::{Place, TcHead, TcLine};
use units::clock::Span;
use units::{parse, tc};

use super::refusal::Refusal;

/// A reader of a line's words.
pub(super) struct TcTokens<'a> {
    line: &'a TcLine,
    /// What is not read yet.
    words: &'a [String],
}

impl<'a> TcTokens<'a> {
    /// Reads the head of a line, and returns a reader of what follows its kind.
    pub fn of(line: &'a TcLine) -> Result<(TcHead<'a>, Self), Refusal> {
        let head = line.head().map_err(|reason| Refusal {
            place: line.place.clone(),
            reason,
        })?;
        let words = head.options;
        Ok((head, Self { line, words }))
    }

    /// Returns the next word, if there is one, and advances.
    pub fn next(&mut self) -> Option<&'a str> {
        let (word, rest) = self.words.split_first()?;
        self.words = rest;
        Some(word)
    }

    /// Returns the next word without advancing.
    pub fn peek(&self) -> Option<&'a str> {
        self.words.first().map(String::as_str)
    }

    /// Returns the line's place in the file.
    pub fn place(&self) -> Place {
        self.line.place.clone()
    }

    /// Makes a refusal of this line.
    pub fn refuse(&self, reason: impl Into<String>) -> Refusal {
        Refusal {
            place: self.line.place.clone(),
            reason: reason.into(),
        }
    }

    /// Makes a refusal of a word of `what` that the simulator does not model.
    pub fn unknown(&self, what: &str, word: &str, known: &str) -> Refusal {
        self.refuse(format!(
            "tc: `{word}` of {what} is not modelled by the simulator, which knows {known}"
        ))
    }

    fn value<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Refusal> {
        let word = self.next();
        word.and_then(read).ok_or_else(|| {
            self.refuse(format!(
                "tc: {key} is {:?}, expected {expected}",
                word.unwrap_or("")
            ))
        })
    }

    pub fn word(&mut self, key: &str) -> Result<&'a str, Refusal> {
        match self.next() {
            Some(word) => Ok(word),
            None => Err(self.refuse(format!("tc: the line ends where {key} should be"))),
        }
    }

    pub fn number(&mut self, key: &str) -> Result<u32, Refusal> {
        self.value(key, "a number", |word| word.parse().ok())
    }

    /// Reads a rate in bit/s; a number without a unit is in bit/s, as in tc.
    pub fn rate(&mut self, key: &str) -> Result<u64, Refusal> {
        self.value(key, parse::RATE, |word| {
            tc::rate_bps(word).filter(|bps| *bps > 0)
        })
    }

    /// Reads a budget: bytes, or with `%` per cent of the line rate.
    pub fn budget(&mut self, key: &str) -> Result<Budget, Refusal> {
        let read = |word: &str| match word.strip_suffix('%') {
            Some(percent) => percent.parse().ok().map(Budget::Percent),
            None => tc::size_bytes(word).map(Budget::Bytes),
        };
        self.value(key, "a size such as 50kb, or 70%", read)
    }

    /// Reads a size; a number without a unit is in bytes.
    pub fn size(&mut self, key: &str) -> Result<u64, Refusal> {
        self.value(key, parse::SIZE, tc::size_bytes)
    }

    pub fn size_u32(&mut self, key: &str) -> Result<u32, Refusal> {
        self.value(key, parse::SIZE, |word| {
            u32::try_from(tc::size_bytes(word)?).ok()
        })
    }

    /// Reads a time; a number without a unit is in microseconds.
    pub fn time(&mut self, key: &str) -> Result<Span, Refusal> {
        let read = |word: &str| tc::time_ns(word).map(Span::from_ns);
        self.value(key, parse::TIME, read)
    }

    /// Reads `MAJOR:` or `MAJOR:MINOR`, both hexadecimal.
    pub fn handle(&mut self, key: &str) -> Result<(u32, u32), Refusal> {
        self.value(key, "a class id such as 1:1", tc::class_id)
    }

    /// Reads a minor number: hexadecimal, with or without a leading 0x.
    pub fn minor(&mut self, key: &str) -> Result<u32, Refusal> {
        let read = |word: &str| {
            let digits = word.strip_prefix("0x").unwrap_or(word);
            u16::from_str_radix(digits, 16).ok().map(u32::from)
        };
        self.value(key, "a minor number, hexadecimal", read)
    }

    /// Reads a percentage, and returns it in millionths.
    pub fn per_million(&mut self, key: &str) -> Result<u64, Refusal> {
        let read = |word: &str| {
            let text = word.strip_suffix('%')?;
            let (whole, part) = text.split_once('.').unwrap_or((text, ""));
            let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
            if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 4 {
                return None;
            }
            let parts: u64 = format!("{whole}{part:0<4}").parse().ok()?;
            (parts <= 1_000_000).then_some(parts)
        };
        self.value(key, "a percentage such as 0.1%", read)
    }

    /// Reads `on` or `off`.
    pub fn switch(&mut self, key: &str) -> Result<bool, Refusal> {
        self.one_of(key, &[("on", true), ("off", false)])
    }

    pub fn one_of<T: Copy>(&mut self, key: &str, values: &[(&str, T)]) -> Result<T, Refusal> {
        let names: Vec<_> = values.iter().map(|(name, _)| *name).collect();
        let found = |word: &str| values.iter().find(|(name, _)| *name == word).map(|v| v.1);
        self.value(key, &names.join(", "), found)
    }
}

/// The budget of a port: what it may send in a period.
#[derive(Clone, Copy, Debug)]
pub(super) enum Budget {
    /// Bytes, as the port's layer counts them.
    Bytes(u64),
    /// Per cent of the line rate.
    Percent(u32),
}
