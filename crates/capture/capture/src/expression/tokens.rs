// SPDX-License-Identifier: MIT OR Apache-2.0
//! Splits an expression into words.

/// Longest expression that is read, in bytes, and most words.
const MOST_BYTES: usize = 10_000;

/// Splits at white space, and around parentheses, `!`, `&&` and `||`. The three signs become
/// `not`, `and` and `or`.
pub(super) fn tokens(text: &str) -> Result<Vec<String>, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("a filter of more than {MOST_BYTES} bytes"));
    }
    let mut all = Vec::new();
    let mut word = String::new();
    let mut rest = text.chars().peekable();
    let end = |word: &mut String, all: &mut Vec<String>| {
        if !word.is_empty() {
            all.push(std::mem::take(word));
        }
    };
    while let Some(c) = rest.next() {
        let sign = match c {
            '(' => "(",
            ')' => ")",
            '!' if rest.peek() != Some(&'=') => "not",
            '&' if rest.next_if_eq(&'&').is_some() => "and",
            '|' if rest.next_if_eq(&'|').is_some() => "or",
            '[' | '&' | '|' | '=' | '<' | '>' | '+' | '*' | '^' => return Err(arithmetic()),
            c if c.is_whitespace() => {
                end(&mut word, &mut all);
                continue;
            }
            c => {
                word.push(c);
                continue;
            }
        };
        end(&mut word, &mut all);
        all.push(sign.to_owned());
    }
    end(&mut word, &mut all);
    Ok(all)
}

fn arithmetic() -> String {
    "arithmetic on bytes, as in \"tcp[13] & 2 != 0\", is not understood here: expected host, net, \
     port, portrange, a protocol, vlan, less or greater"
        .to_owned()
}
