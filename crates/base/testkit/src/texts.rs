// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a text must have.

/// Checks that a text has all parts.
///
/// # Panics
/// With the part that it has not, and the text.
#[track_caller]
pub fn has<T: AsRef<str>>(text: impl AsRef<str>, parts: impl IntoIterator<Item = T>) {
    let text = text.as_ref();
    for part in parts {
        let part = part.as_ref();
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

/// Checks that a text has none of the parts.
///
/// # Panics
/// With the part that it has, and the text.
#[track_caller]
pub fn has_none<T: AsRef<str>>(text: impl AsRef<str>, parts: impl IntoIterator<Item = T>) {
    let text = text.as_ref();
    for part in parts {
        let part = part.as_ref();
        assert!(!text.contains(part), "{part:?} in:\n{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_has_all_passes() {
        has("one two", ["one", "two"]);
        has(String::from("one"), &["one".to_owned()]);
        has_none("one two", ["three"]);
    }

    #[test]
    #[should_panic(expected = "no \"three\" in:\none two")]
    fn a_text_that_lacks_a_part_fails() {
        has("one two", ["one", "three"]);
    }

    #[test]
    #[should_panic(expected = "\"two\" in:\none two")]
    fn a_text_that_has_what_it_must_not_fails() {
        has_none("one two", ["three", "two"]);
    }
}
