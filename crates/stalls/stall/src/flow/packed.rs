// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps many alike in few bytes: the facts of a thousand pauses of a flow are those of the first,
//! or nearly.
//!
//! Each becomes a row of numbers, as many for all. What is kept of a row is a bit for each number
//! that differs from the first one's, and by how much, with or without the time that lies between.

use std::num::NonZeroU64;

/// How many are kept as they are; the last may still change.
const PLAIN: usize = 4;

/// Takes the numbers of a row, one after the other.
pub(crate) trait Sink {
    fn put(&mut self, number: u64);
}

/// Gives the numbers of a row, one after the other.
pub(crate) trait Source {
    fn take(&mut self) -> u64;
}

impl Sink for Vec<u64> {
    fn put(&mut self, number: u64) {
        self.push(number);
    }
}

/// What stands for a value that is missing.
struct Zeros;

impl Source for Zeros {
    fn take(&mut self) -> u64 {
        0
    }
}

/// What becomes numbers, of which there are always as many, and is made of them again.
pub(crate) trait Numbers: Sized {
    fn put(&self, row: &mut impl Sink);
    fn take(row: &mut impl Source) -> Self;
}

macro_rules! numbers {
    ($($integer:ty),*) => {
        $(impl Numbers for $integer {
            fn put(&self, row: &mut impl Sink) {
                row.put((*self).into());
            }

            fn take(row: &mut impl Source) -> Self {
                Self::try_from(row.take()).unwrap_or_default()
            }
        })*
    };
}

numbers!(u8, u16, u32, u64);

impl Numbers for NonZeroU64 {
    fn put(&self, row: &mut impl Sink) {
        row.put(self.get());
    }

    fn take(row: &mut impl Source) -> Self {
        Self::new(row.take()).unwrap_or(Self::MIN)
    }
}

impl Numbers for bool {
    fn put(&self, row: &mut impl Sink) {
        row.put((*self).into());
    }

    fn take(row: &mut impl Source) -> Self {
        row.take() != 0
    }
}

impl<A: Numbers, B: Numbers> Numbers for (A, B) {
    fn put(&self, row: &mut impl Sink) {
        self.0.put(row);
        self.1.put(row);
    }

    fn take(row: &mut impl Source) -> Self {
        (A::take(row), B::take(row))
    }
}

impl<T: Numbers, const N: usize> Numbers for [T; N] {
    fn put(&self, row: &mut impl Sink) {
        self.iter().for_each(|one| one.put(row));
    }

    fn take(row: &mut impl Source) -> Self {
        std::array::from_fn(|_| T::take(row))
    }
}

impl<T: Numbers> Numbers for Option<T> {
    fn put(&self, row: &mut impl Sink) {
        self.is_some().put(row);
        match self {
            Some(one) => one.put(row),
            // As many numbers.
            None => T::take(&mut Zeros).put(row),
        }
    }

    fn take(row: &mut impl Source) -> Self {
        let is_some = bool::take(row);
        let one = T::take(row);
        is_some.then_some(one)
    }
}

/// Makes a struct of its fields' numbers: a field that is forgotten does not compile.
macro_rules! fields {
    ($what:ident { $($field:ident),* $(,)? }) => {
        impl $crate::flow::packed::Numbers for $what {
            fn put(&self, row: &mut impl $crate::flow::packed::Sink) {
                let Self { $($field),* } = self;
                $($crate::flow::packed::Numbers::put($field, row);)*
            }

            fn take(row: &mut impl $crate::flow::packed::Source) -> Self {
                Self { $($field: $crate::flow::packed::Numbers::take(row)),* }
            }
        }
    };
}

/// Makes an enum without data of its variants' places.
macro_rules! variants {
    ($what:ident { $first:ident $(, $variant:ident)* $(,)? }) => {
        impl $crate::flow::packed::Numbers for $what {
            fn put(&self, row: &mut impl $crate::flow::packed::Sink) {
                let all = [Self::$first, $(Self::$variant),*];
                let place = all.iter().position(|one| one == self).unwrap_or(0);
                $crate::flow::packed::Numbers::put(&(place as u64), row);
            }

            fn take(row: &mut impl $crate::flow::packed::Source) -> Self {
                let place: u64 = $crate::flow::packed::Numbers::take(row);
                let all = [Self::$first, $(Self::$variant),*];
                all.get(place as usize).copied().unwrap_or(Self::$first)
            }
        }
    };
}

pub(crate) use {fields, variants};

/// Has a begin, which is its first number, and a length.
pub(crate) trait Span {
    fn start_ns(&self) -> u64;
    fn duration_ns(&self) -> u64;
}

#[derive(Clone, Debug)]
struct Packed {
    start_ns: u64,
    duration_ns: u64,
    bytes: Box<[u8]>,
}

/// A list in order of time, of which all but the last are packed.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T> {
    /// Most flows have few, and pack none.
    rows: Option<Box<Rows>>,
    plain: Vec<T>,
}

#[derive(Clone, Debug, Default)]
struct Rows {
    first: Box<[u64]>,
    packed: Vec<Packed>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self {
            rows: None,
            plain: Vec::new(),
        }
    }
}

impl<T: Numbers + Span + Copy> Kept<T> {
    fn packed(&self) -> &[Packed] {
        self.rows.as_ref().map_or(&[], |rows| &rows.packed)
    }

    /// Returns all, in order, each made when it is asked for.
    fn each(&self) -> impl Iterator<Item = T> + '_ {
        let rows = self.rows.iter();
        let packed = rows.flat_map(|rows| rows.packed.iter().map(|one| one.open(&rows.first)));
        packed.chain(self.plain.iter().copied())
    }

    pub(crate) fn len(&self) -> usize {
        self.packed().len() + self.plain.len()
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.plain.last_mut()
    }

    pub(crate) fn push(&mut self, one: T) {
        if self.plain.len() >= PLAIN {
            let oldest = self.plain.remove(0);
            self.pack(&oldest);
        }
        self.plain.push(one);
    }

    /// Returns all, in order.
    pub(crate) fn all(&self) -> Vec<T> {
        self.each().collect()
    }

    /// Removes those at the begin that are wanted, and returns them.
    pub(crate) fn take_while(&mut self, is_wanted: impl Fn(&T) -> bool) -> Vec<T> {
        let taken: Vec<T> = self.each().take_while(&is_wanted).collect();
        let of_packed = taken.len().min(self.packed().len());
        if let Some(rows) = &mut self.rows {
            rows.packed.drain(..of_packed);
        }
        self.plain.drain(..taken.len() - of_packed);
        taken
    }

    pub(crate) fn first(&self) -> Option<T> {
        self.each().next()
    }

    /// Keeps the longest; of equal ones the earlier.
    pub(crate) fn keep_longest(&mut self, most: usize) {
        let spans = self.packed().iter().map(|p| (p.start_ns, p.duration_ns));
        let plain = self.plain.iter().map(|p| (p.start_ns(), p.duration_ns()));
        let mut order: Vec<_> = spans.chain(plain).enumerate().collect();
        if order.len() <= most {
            return;
        }
        order.sort_by_key(|(_, (start_ns, duration_ns))| {
            (std::cmp::Reverse(*duration_ns), *start_ns)
        });
        let mut is_kept = vec![false; order.len()];
        for (index, _) in order.into_iter().take(most) {
            is_kept[index] = true;
        }
        let mut is_kept = is_kept.into_iter();
        if let Some(rows) = &mut self.rows {
            rows.packed.retain(|_| is_kept.next() == Some(true));
        }
        self.plain.retain(|_| is_kept.next() == Some(true));
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        if let Some(rows) = &mut self.rows {
            rows.packed.shrink_to_fit();
        }
        self.plain.shrink_to_fit();
    }

    fn pack(&mut self, one: &T) {
        let rows = self.rows.get_or_insert_with(|| {
            let mut first = Vec::new();
            one.put(&mut first);
            Box::new(Rows {
                first: first.into(),
                packed: Vec::new(),
            })
        });
        let mut packer = Packer::new(&rows.first, one.start_ns());
        one.put(&mut packer);
        rows.packed.push(Packed {
            start_ns: one.start_ns(),
            duration_ns: one.duration_ns(),
            bytes: packer.bytes.into(),
        });
    }
}

/// Times lie as far behind those of the first row as one begins behind the first.
fn between(first: &[u64], start_ns: u64) -> u64 {
    start_ns.wrapping_sub(first.first().copied().unwrap_or(0))
}

/// Packs a row.
struct Packer<'a> {
    first: std::slice::Iter<'a, u64>,
    place: usize,
    between: u64,
    bytes: Vec<u8>,
}

impl<'a> Packer<'a> {
    fn new(first: &'a [u64], start_ns: u64) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.resize(first.len().div_ceil(8), 0);
        Self {
            first: first.iter(),
            place: 0,
            between: between(first, start_ns),
            bytes,
        }
    }

    fn put_different(&mut self, number: u64, first: u64, place: usize) {
        if let Some(bits) = self.bytes.get_mut(place / 8) {
            *bits |= 1 << (place % 8);
        }
        let plain = zigzag(number.wrapping_sub(first));
        let behind = zigzag(number.wrapping_sub(first.wrapping_add(self.between)));
        // The lowest bit says which of the two is kept, the smaller one.
        let (value, which) = if behind < plain {
            (behind, 1)
        } else {
            (plain, 0)
        };
        let (mut byte, mut rest) = ((value << 1) as u8 & 0x7f | which, value >> 6);
        while rest > 0 {
            self.bytes.push(byte | 0x80);
            (byte, rest) = (rest as u8 & 0x7f, rest >> 7);
        }
        self.bytes.push(byte);
    }
}

impl Sink for Packer<'_> {
    #[inline]
    fn put(&mut self, number: u64) {
        let first = self.first.next().copied().unwrap_or(0);
        let place = self.place;
        self.place += 1;
        if number != first {
            self.put_different(number, first, place);
        }
    }
}

fn zigzag(difference: u64) -> u64 {
    let signed = difference as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// Opens a packed row.
struct Opener<'a> {
    first: std::slice::Iter<'a, u64>,
    place: usize,
    between: u64,
    bits: &'a [u8],
    rest: std::slice::Iter<'a, u8>,
}

impl Opener<'_> {
    fn next_byte(&mut self) -> u8 {
        self.rest.next().copied().unwrap_or(0)
    }

    fn take_different(&mut self, first: u64) -> u64 {
        let mut byte = self.next_byte();
        let behind = if byte & 1 == 1 { self.between } else { 0 };
        let (mut value, mut shift) = (u64::from(byte & 0x7e) >> 1, 6);
        while byte & 0x80 != 0 {
            byte = self.next_byte();
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
        }
        first.wrapping_add(behind).wrapping_add(unzigzag(value))
    }
}

impl Source for Opener<'_> {
    #[inline]
    fn take(&mut self) -> u64 {
        let first = self.first.next().copied().unwrap_or(0);
        let bits = self.bits.get(self.place / 8).copied().unwrap_or(0);
        let is_different = (bits >> (self.place % 8)) & 1 == 1;
        self.place += 1;
        if is_different {
            self.take_different(first)
        } else {
            first
        }
    }
}

impl Packed {
    fn open<T: Numbers>(&self, first: &[u64]) -> T {
        let numbers_at = first.len().div_ceil(8).min(self.bytes.len());
        let (bits, rest) = self.bytes.split_at(numbers_at);
        T::take(&mut Opener {
            first: first.iter(),
            place: 0,
            between: between(first, self.start_ns),
            bits,
            rest: rest.iter(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Rest = ((u16, bool), (Option<(u32, u64)>, [u8; 2]));

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct One {
        start_ns: u64,
        length: u64,
        rest: Rest,
    }

    fields!(One {
        start_ns,
        length,
        rest
    });

    impl Span for One {
        fn start_ns(&self) -> u64 {
            self.start_ns
        }

        fn duration_ns(&self) -> u64 {
            self.length
        }
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        /// Against a plain list.
        #[test]
        fn what_is_kept_comes_back(
            all in prop::collection::vec((any::<u64>(), any::<u64>(), any::<Rest>()), 0..40),
            most in 1..40usize,
            before in any::<u64>(),
        ) {
            let one = |(start_ns, length, rest)| One { start_ns, length, rest };
            let mut list: Vec<One> = all.into_iter().map(one).collect();
            list.sort_by_key(|one| one.start_ns);
            let mut kept = Kept::default();
            for one in &list {
                kept.push(*one);
                prop_assert_eq!(kept.last_mut().copied(), Some(*one));
            }
            prop_assert_eq!(kept.all(), list.clone());
            prop_assert_eq!((kept.len(), kept.first()), (list.len(), list.first().copied()));
            let mut rest = kept.clone();
            let taken = rest.take_while(|one| one.start_ns < before);
            let at = list.partition_point(|one| one.start_ns < before);
            prop_assert_eq!(&taken[..], &list[..at]);
            prop_assert_eq!(&rest.all()[..], &list[at..]);
            kept.keep_longest(most);
            list.sort_by_key(|one| (std::cmp::Reverse(one.length), one.start_ns));
            list.truncate(most);
            list.sort_by_key(|one| one.start_ns);
            prop_assert_eq!(kept.all(), list);
        }
    }
}
