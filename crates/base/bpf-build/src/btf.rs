// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types that go with a program (BTF), as the compiler writes them in assembly.
//!
//! The verifier checks a global function once, whoever calls it, if its types say that it is given
//! numbers and returns one. A pointer into an arena is a number until it is used
//! ([`crate::arena`]), and [`Types::make_numbers`] says so.

use std::collections::BTreeMap;

/// Kinds of types (linux/btf.h).
mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const PTR: u32 = 2;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const RESTRICT: u32 = 11;
    pub(super) const FUNC: u32 = 12;
    pub(super) const FUNC_PROTO: u32 = 13;
    pub(super) const VAR: u32 = 14;
    pub(super) const DATASEC: u32 = 15;
    pub(super) const DECL_TAG: u32 = 17;
    pub(super) const TYPE_TAG: u32 = 18;
    pub(super) const ENUM64: u32 = 19;
}

/// Lines of the header: magic, version, flags, its length, and where types and strings are.
const HEADER_LINES: usize = 8;
const TYPES_BYTES: usize = 5;

/// A type: where its words are among all, and its kind and length.
#[derive(Clone, Copy)]
struct Type {
    at: usize,
    kind: u32,
    length: usize,
}

/// The types of a program.
pub(crate) struct Types {
    /// The lines of the header.
    header: Vec<String>,
    /// The words of the types, as they are written: some are symbols.
    words: Vec<String>,
    types: Vec<Type>,
    /// The lines of the strings.
    strings: Vec<String>,
    /// Functions by name: their types' numbers.
    functions: BTreeMap<String, usize>,
}

fn value(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(".long")?;
    rest.split('#').next().map(str::trim)
}

fn number(words: &[String], at: usize) -> Option<u32> {
    words.get(at)?.parse().ok()
}

impl Types {
    /// Reads the lines of a section of types, but for the line that begins it.
    pub fn read(lines: &[&str]) -> Result<Self, String> {
        let (header, rest) = lines
            .split_at_checked(HEADER_LINES)
            .ok_or("the types have no header")?;
        let header: Vec<String> = header.iter().map(|line| (*line).to_owned()).collect();
        let of_header = |at: usize| -> Option<u32> { value(header.get(at)?)?.parse().ok() };
        let bytes = of_header(TYPES_BYTES).ok_or("the types have no length")?;
        let count = usize::try_from(bytes / 4).unwrap_or(usize::MAX);
        let (words, strings) = rest
            .split_at_checked(count)
            .ok_or("the types are shorter than they say")?;
        let words: Option<Vec<String>> = words
            .iter()
            .map(|line| value(line).map(ToOwned::to_owned))
            .collect();
        let words = words.ok_or("a word of the types is not one")?;
        let mut names = BTreeMap::new();
        for line in strings {
            let name = line.split('"').nth(1);
            let offset = line.split("string offset=").nth(1);
            if let (Some(name), Some(offset)) = (name, offset) {
                names.insert(offset.trim().to_owned(), name.to_owned());
            }
        }
        let types = walk(&words).ok_or("the types do not follow each other")?;
        let functions = types.iter().enumerate().filter_map(|(number, found)| {
            let name = names.get(words.get(found.at)?)?;
            (found.kind == kind::FUNC).then(|| (name.clone(), number))
        });
        Ok(Self {
            header,
            functions: functions.collect(),
            types,
            words,
            strings: strings.iter().map(|line| (*line).to_owned()).collect(),
        })
    }

    /// Returns a type by its id: the first is 1, and 0 is nothing.
    fn by_id(&self, id: u32) -> Option<Type> {
        let number = usize::try_from(id).ok()?.checked_sub(1)?;
        self.types.get(number).copied()
    }

    /// Returns the kind of a type without its names and qualifiers.
    fn plain_kind(&self, mut id: u32) -> Option<u32> {
        for _ in 0..self.types.len() {
            let found = self.by_id(id)?;
            match found.kind {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    id = number(&self.words, found.at + 2)?;
                }
                other => return Some(other),
            }
        }
        None
    }

    /// Returns the prototype of a function: where its words are, and how many parameters it has.
    fn prototype(&self, function: &str) -> Option<Type> {
        let found = self.types.get(*self.functions.get(function)?)?;
        let proto = self.by_id(number(&self.words, found.at + 2)?)?;
        (proto.kind == kind::FUNC_PROTO).then_some(proto)
    }

    /// Returns whether a function returns nothing; `None` if it has no type.
    pub fn is_void(&self, function: &str) -> Option<bool> {
        let proto = self.prototype(function)?;
        Some(number(&self.words, proto.at + 2)? == 0)
    }

    /// Says of functions that the pointers that they are given and return are numbers, and that
    /// those that return nothing return a number, too.
    pub fn make_numbers(&mut self, functions: &[String]) -> Result<(), String> {
        let wide = (1..).zip(&self.types).find(|(_, found)| {
            found.kind == kind::INT && number(&self.words, found.at + 2) == Some(8)
        });
        let wide = wide
            .map(|(id, _): (u32, _)| id)
            .ok_or("no number of 64 bits")?;
        for function in functions {
            let proto = self.prototype(function);
            let proto = proto.ok_or_else(|| format!("{function} has no type"))?;
            let returned = proto.at + 2;
            let parameters = (0..proto.length).map(|parameter| proto.at + 4 + parameter * 2);
            for at in parameters.chain([returned]) {
                let id = number(&self.words, at);
                let is_void = at == returned && id == Some(0);
                if is_void || id.and_then(|id| self.plain_kind(id)) == Some(kind::PTR) {
                    self.words[at] = wide.to_string();
                }
            }
        }
        Ok(())
    }

    pub fn lines(&self) -> Vec<String> {
        let words = self.words.iter().map(|word| format!("\t.long\t{word}"));
        let header = self.header.iter().cloned();
        header
            .chain(words)
            .chain(self.strings.iter().cloned())
            .collect()
    }
}

/// Finds where each type is.
fn walk(words: &[String]) -> Option<Vec<Type>> {
    let mut types = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let info = number(words, at + 1)?;
        let (kind, length) = ((info >> 24) & 0x1f, (info & 0xffff) as usize);
        let more = match kind {
            kind::INT | kind::VAR | kind::DECL_TAG => 1,
            kind::ARRAY => 3,
            kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 3 * length,
            kind::ENUM | kind::FUNC_PROTO => 2 * length,
            _ => 0,
        };
        types.push(Type { at, kind, length });
        at += 3 + more;
    }
    (at == words.len()).then_some(types)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;

    /// u64 (1), struct s (2), pointer to it (3), a prototype (4) of f (5), one (6) of g (7).
    fn lines() -> Vec<String> {
        let words = [
            &[1, 1 << 24, 8, 64][..],
            &[5, 4 << 24, 8],
            &[0, 2 << 24, 2],
            &[0, (13 << 24) | 2, 3, 7, 3, 9, 1],
            &[11, (12 << 24) | 1, 4],
            &[0, 13 << 24, 0],
            &[13, (12 << 24) | 1, 6],
        ]
        .concat();
        let header = [
            "\t.short\t60319",
            "\t.byte\t1",
            "\t.byte\t0",
            "\t.long\t24",
            "\t.long\t0",
            &format!("\t.long\t{}", words.len() * 4),
            &format!("\t.long\t{}", words.len() * 4),
            "\t.long\t15",
        ]
        .map(ToOwned::to_owned);
        let words = words.iter().map(|word| format!("\t.long\t{word}  # x"));
        let strings = [
            (0, ""),
            (1, "u64"),
            (5, "s"),
            (7, "a"),
            (9, "b"),
            (11, "f"),
            (13, "g"),
        ];
        let strings = strings.iter().flat_map(|(at, name)| {
            [
                format!("\t.ascii\t\"{name}\"  # string offset={at}"),
                "\t.byte\t0".to_owned(),
            ]
        });
        header.into_iter().chain(words).chain(strings).collect()
    }

    fn read(lines: &[String]) -> Types {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        Types::read(&lines).unwrap()
    }

    #[test]
    fn pointers_and_nothing_become_numbers() {
        let before = lines();
        let mut types = read(&before);
        assert_eq!(types.is_void("f"), Some(false));
        assert_eq!(types.is_void("g"), Some(true));
        assert_eq!(types.is_void("h"), None);
        types
            .make_numbers(&["f".to_owned(), "g".to_owned()])
            .unwrap();
        let changed: Vec<(String, String)> = before
            .iter()
            .map(|line| line.split("  #").next().unwrap().to_owned())
            .zip(
                types
                    .lines()
                    .iter()
                    .map(|line| line.split("  #").next().unwrap().to_owned()),
            )
            .filter(|(before, after)| before != after)
            .collect();
        let line = |word: u32| format!("\t.long\t{word}");
        // f's result and its first parameter, g's result.
        let expected = [(line(3), line(1)), (line(3), line(1)), (line(0), line(1))];
        assert_eq!(changed.len(), 2 + 1);
        assert_eq!(changed, expected);
        let error = types.make_numbers(&["h".to_owned()]).unwrap_err();
        assert_eq!(error, "h has no type");
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let lines = lines();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        for (count, expected) in [
            (3, "the types have no header"),
            (20, "the types are shorter than they say"),
        ] {
            let error = Types::read(&lines[..count]).err().unwrap();
            assert_eq!(error, expected);
        }
    }
}
