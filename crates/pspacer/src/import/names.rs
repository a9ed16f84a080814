// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of classes and groups, which the host's file has of fewer characters than others.

use std::collections::BTreeSet;

const BYTES_MAX: usize = 32;

#[derive(Default)]
pub struct Names(BTreeSet<String>);

/// Returns 32 bits of a text: FNV-1a.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

impl Names {
    /// Returns a name for what others call `text`: the same if it can be one and is free. Another
    /// gets a hash behind it, which does not depend on other names. A class has its id by its
    /// name.
    pub fn take(&mut self, text: &str) -> String {
        let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_name = !text.is_empty() && text.len() <= BYTES_MAX && text.chars().all(known);
        if is_name && self.0.insert(text.to_owned()) {
            return text.to_owned();
        }
        let short: String = text
            .chars()
            .map(|c| if known(c) { c } else { '_' })
            .take(BYTES_MAX - 9)
            .collect();
        let mut number = hash(text);
        loop {
            let name = format!("{short}-{number:08x}");
            if self.0.insert(name.clone()) {
                return name;
            }
            number = number.wrapping_add(1);
        }
    }
}

/// Returns a text as part of a comment's line.
pub fn comment(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_differ() {
        let mut names = Names::default();
        assert_eq!(names.take("AP_A"), "AP_A");
        assert_eq!(names.take("Turm Süd"), "Turm_S_d-586a8c9b");
        let twice = [names.take("AP_A"), names.take("AP_A")];
        assert_ne!(twice[0], twice[1]);
        let long = names.take(&"x".repeat(40));
        assert_eq!(long.len(), BYTES_MAX);
        assert!(names.take("").starts_with('-'));
    }

    #[test]
    fn a_comment_is_one_line() {
        assert_eq!(comment("a\nb\u{7f}c"), "a b c");
    }
}
