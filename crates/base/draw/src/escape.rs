// SPDX-License-Identifier: MIT OR Apache-2.0
//! Escapes text for pages and plots.

/// Escapes text for HTML and SVG, attributes included.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML does not allow control characters, even escaped.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn escapes() {
        assert_eq!(
            escape("<a b=\"c\">&'\u{1}"),
            "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\u{fffd}"
        );
    }
}
