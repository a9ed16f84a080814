// SPDX-License-Identifier: MIT OR Apache-2.0
//! Splits a Rust file into words and signs, without comments, texts and test code.

/// Returns the tokens of a file. A word is one token, `::` is one, and so is every other sign.
/// Texts and characters are left out.
pub fn tokens(text: &str) -> Vec<String> {
    without_tests(scan(text))
}

/// Returns the names and key words of a file in Rust or C, including test code.
pub fn words(text: &str) -> Vec<String> {
    let mut all = scan(text);
    all.retain(|token| token.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    all
}

fn scan(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_text(rest) {
            length
        } else if c == '"' {
            quoted(rest)
        } else if c == '\'' {
            character(rest)
        } else if c.is_alphanumeric() || c == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            let end = end.unwrap_or(rest.len());
            out.push(rest[..end].to_owned());
            end
        } else if rest.starts_with("::") {
            out.push("::".to_owned());
            2
        } else {
            if !c.is_whitespace() {
                out.push(c.to_string());
            }
            c.len_utf8()
        };
        rest = &rest[length..];
    }
    out
}

/// Returns the length of `r"..."` or `r#"..."#`, if one begins here.
fn raw_text(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let inner = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - inner.len();
    Some(
        inner
            .find(&end)
            .map_or(rest.len(), |at| start + at + end.len()),
    )
}

/// Returns the length of a text in quotes.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of a character, or of the quote of a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let from = at + escaped.len_utf8();
            rest[from..]
                .find('\'')
                .map_or(rest.len(), |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// Leaves out what follows `#[cfg(test)]`: an item up to its `;` or the end of its block.
fn without_tests(all: Vec<String>) -> Vec<String> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut out = Vec::new();
    let mut at = 0;
    while at < all.len() {
        if !all[at..].iter().map(String::as_str).take(7).eq(MARK) {
            out.push(all[at].clone());
            at += 1;
            continue;
        }
        at += MARK.len();
        let mut depth = 0;
        while at < all.len() {
            match all[at].as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 && matches!(all[at - 1].as_str(), ";" | "}") {
                break;
            }
        }
    }
    out
}
