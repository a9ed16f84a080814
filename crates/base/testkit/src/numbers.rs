// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers in sentences: whether a text still has the figure that a sentence names.

/// Returns the numbers of a text as they are written, without separators of thousands. Dates,
/// versions and what stands in code spans or as the target of a link are none.
pub fn numbers(text: &str) -> Vec<String> {
    let spans = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let mut words = String::new();
    let mut rest = spans.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        words.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    words.push_str(rest);
    let is_of_word = |c: char| !(c.is_ascii_digit() || c == '.' || c == ',' || c == '-');
    // Digits right behind a letter are of a name, as those of `x86` are.
    let mut is_of_name = false;
    let mut found = vec![];
    for piece in words.split_inclusive(is_of_word) {
        let (part, border) = match piece.char_indices().next_back() {
            Some((at, last)) if is_of_word(last) => (&piece[..at], Some(last)),
            _ => (piece, None),
        };
        found.extend(number(part).filter(|_| !is_of_name));
        is_of_name = border.is_some_and(|c| c.is_alphabetic() || c == '_');
    }
    found
}

fn number(part: &str) -> Option<String> {
    let part = part.trim_matches(['.', ',', '-']).replace(',', "");
    // 004 is the name of a paper.
    let is_name = part.starts_with('0') && part.len() > 1 && !part.contains('.');
    (!is_name && part.parse::<f64>().is_ok()).then_some(part)
}

/// Returns the numbers of `sentence` that no number of `text` equals, rounded to as many places. Of
/// `text` the code spans count, too: tables are in some.
pub fn missing(sentence: &str, text: &str) -> Vec<String> {
    let known: Vec<f64> = numbers(&text.replace('`', " "))
        .iter()
        .filter_map(|n| n.parse().ok())
        .collect();
    let is_known = |claimed: &String| {
        let places = claimed
            .split_once('.')
            .map_or(0, |(_, places)| places.len());
        known.iter().any(|known| {
            format!("{known:.places$}") == *claimed || is_half(*known, claimed, places)
        })
    };
    let claimed = numbers(sentence).into_iter();
    claimed.filter(|claimed| !is_known(claimed)).collect()
}

/// Returns whether a number lies half between two, one of them `claimed`: it may be rounded either
/// way.
fn is_half(known: f64, claimed: &str, places: usize) -> bool {
    let step = 10f64.powi(-i32::try_from(places).unwrap_or(0));
    claimed
        .parse::<f64>()
        .is_ok_and(|claimed| ((known - claimed).abs() - step / 2.0).abs() < step * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_sentence() {
        for (text, expected) in [
            (
                "carries 478.2 of 500, or 95.6 %.",
                &["478.2", "500", "95.6"][..],
            ),
            ("10,246 ns with 1,000 classes", &["10246", "1000"]),
            ("on x86 and 0.2.0 since 2026-11-24", &[]),
            ("`burst 1600` [16](a-7.md), 8", &["16", "8"]),
            ("behind 4700b: 3x, paper 004, 0.5", &["4700", "3", "0.5"]),
            ("", &[]),
        ] {
            assert_eq!(numbers(text), expected, "{text}");
        }
    }

    #[test]
    fn a_figure_that_the_page_no_longer_has_is_found() {
        let page = "| a | 478.217 | `1,054` | 2.5 |";
        for (sentence, expected) in [
            ("it carries 478 Mbit/s, 478.2 to be exact", &[][..]),
            ("it takes 1,054 ns", &[]),
            ("twice and a half: 2 or 3", &[]),
            ("it carries 479 Mbit/s", &["479"]),
            ("it carries 478.3 Mbit/s, or 47", &["478.3", "47"]),
        ] {
            assert_eq!(missing(sentence, page), expected, "{sentence}");
        }
    }
}
