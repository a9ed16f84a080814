// SPDX-License-Identifier: MIT OR Apache-2.0
//! Texts that strangers choose: processes and cgroups name themselves, other hosts answer.

/// Returns the text without what would steer a terminal or break a line.
pub fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        // Turn the direction of what follows.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal() {
        assert_eq!(
            printable("a\x1b[31mb\nc\u{9b}1m"),
            "a\u{fffd}[31mb\u{fffd}c\u{fffd}1m"
        );
        assert_eq!(printable("x\u{202e}gnp.sh"), "x\u{fffd}gnp.sh");
        assert_eq!(printable("é [kworker/0:1]"), "é [kworker/0:1]");
    }
}
