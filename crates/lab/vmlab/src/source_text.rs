// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a source decides what is built: its text without comments, blanks, how Rust is laid out, and the tests
//! at the end of a file.

/// How a source marks its comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C, and assembler for its preprocessor.
    C,
    Rust,
    /// Shell, TOML, make: a line may be a comment.
    Lines,
}

/// Where the tests of a Rust file begin, which are at its end.
const TESTS: &str = "#[cfg(test)]\nmod tests {";
/// What only tells the compiler to warn.
const WARNS: &str = "#[must_use]";

impl Language {
    /// Returns the language of a file by its extension.
    pub fn of(extension: &str) -> Self {
        match extension {
            "c" | "h" | "S" => Self::C,
            "rs" => Self::Rust,
            _ => Self::Lines,
        }
    }
}

/// Returns the text without what decides nothing: comments, blank lines, more than one blank, and tests.
/// Strings stay as they are. Time O(bytes).
pub fn deciding(text: &str, language: Language) -> String {
    if language == Language::Lines {
        let is_kept = |line: &&str| {
            let line = line.trim();
            !line.is_empty() && line != "#" && !line.starts_with("# ")
        };
        return text
            .lines()
            .filter(is_kept)
            .map(|l| l.to_owned() + "\n")
            .collect();
    }
    let mut code = Code {
        rest: text,
        language,
        out: String::with_capacity(text.len()),
    };
    while code.step() {}
    code.out.trim_end().to_owned() + "\n"
}

/// A source that is being read.
struct Code<'a> {
    rest: &'a str,
    language: Language,
    out: String,
}

impl Code<'_> {
    /// Reads a comment, a literal, or a character; `false`: there is no more that decides.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        if self.rest.starts_with(TESTS) && self.language == Language::Rust {
            return false;
        }
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.rest = &self.rest[end..];
        } else if self.rest.starts_with("/*") {
            self.rest = &self.rest[self.block()..];
            self.blank(' ');
        } else if self.rest.starts_with(WARNS) && self.language == Language::Rust {
            self.rest = &self.rest[WARNS.len()..];
        } else if let Some(length) = self.literal() {
            let (literal, rest) = self.rest.split_at(length);
            self.join(first);
            self.out.push_str(literal);
            self.rest = rest;
        } else {
            self.rest = &self.rest[first.len_utf8()..];
            if first.is_whitespace() {
                self.blank(first);
            } else {
                self.join(first);
                self.out.push(first);
            }
        }
        true
    }

    /// Writes a blank, if there is none yet; in C an end of line takes the place of other blanks.
    fn blank(&mut self, blank: char) {
        let is_end = blank == '\n' && self.language == Language::C;
        if is_end {
            self.out.truncate(self.out.trim_end_matches(' ').len());
        }
        if !self.out.is_empty() && !self.out.ends_with(['\n', ' ']) {
            self.out.push(if is_end { '\n' } else { ' ' });
        }
    }

    /// Prepares for what begins with a character: in Rust only words have a blank between them, and no comma
    /// stands before the end of a list.
    fn join(&mut self, next: char) {
        if self.language == Language::C {
            return;
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let before = self.out.trim_end_matches(' ');
        if !(is_word(next) && before.ends_with(is_word)) {
            let comma = usize::from(")]}".contains(next) && before.ends_with(','));
            self.out.truncate(before.len() - comma);
        }
    }

    /// Returns the length of the comment that begins here; those of Rust nest.
    fn block(&self) -> usize {
        let mut depth = 0;
        let mut at = 0;
        while at < self.rest.len() {
            let rest = &self.rest[at..];
            if rest.starts_with("/*") && (depth == 0 || self.language == Language::Rust) {
                depth += 1;
                at += 2;
            } else if rest.starts_with("*/") {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    break;
                }
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
        at
    }

    /// Returns the length of the literal that begins here, if one does.
    fn literal(&self) -> Option<usize> {
        let is_in_word = self
            .out
            .ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if self.language == Language::Rust && !is_in_word {
            let raw = self.rest.strip_prefix('b').unwrap_or(self.rest);
            if let Some(raw) = raw.strip_prefix('r') {
                let marks = raw.len() - raw.trim_start_matches('#').len();
                let end = format!("\"{}", &raw[..marks]);
                if let Some(body) = raw[marks..].strip_prefix('"') {
                    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
                    return Some(self.rest.len() - body.len() + length);
                }
            }
        }
        let quote = self
            .rest
            .chars()
            .next()
            .filter(|c| ['"', '\''].contains(c))?;
        let mut chars = self.rest.char_indices().skip(1);
        if quote == '\'' && self.language == Language::Rust {
            // A lifetime has no end.
            let mut next = self.rest.chars().skip(1);
            let is_letter = next.next().is_some_and(|c| c != '\\') && next.next() == Some('\'');
            if !is_letter && !self.rest.starts_with("'\\") {
                return Some(1);
            }
        }
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => drop(chars.next()),
                c if c == quote => return Some(at + 1),
                _ => {}
            }
        }
        Some(self.rest.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blanks_and_tests_decide_nothing() {
        for (language, text, expected) in [
            (Language::C, "/* a */ int  a;\n\n\n// b\n", "int a;"),
            (
                Language::C,
                "#define A 1 /* b\n c */\nint",
                "#define A 1\nint",
            ),
            (Language::C, "a /* /* b */ c", "a c"),
            (
                Language::C,
                r#"a = "/* b */  \" // c"; d"#,
                r#"a = "/* b */  \" // c"; d"#,
            ),
            (Language::C, r#"a = '"'; // b"#, r#"a = '"';"#),
            (Language::C, r"a = '\''; /* ' */", r"a = '\'';"),
            (Language::Rust, "/* a /* b */ c */ d", "d"),
            (
                Language::Rust,
                "fn a<'b>(c: &'b str) {} // 'd'",
                "fn a<'b>(c:&'b str){}",
            ),
            (
                Language::Rust,
                r"let a = ['\'', 'b', '/']; // c",
                r"let a=['\'','b','/'];",
            ),
            (
                Language::Rust,
                r##"r#"a // "  b"#; // c"##,
                r##"r#"a // "  b"#;"##,
            ),
            (Language::Rust, r#"br"\"; // c"#, r#"br"\";"#),
            (Language::Rust, "/// a\nfn for_r() {}\n", "fn for_r(){}"),
            (
                Language::Rust,
                "A {\n    /// b\n    b: u8,\n},\n",
                "A{b:u8},",
            ),
            (Language::Rust, "#[must_use]\npub fn a() {}", "pub fn a(){}"),
            (
                Language::Rust,
                "b;\n\n#[cfg(test)]\nmod tests {\n c\n}\n",
                "b;",
            ),
            (
                Language::Rust,
                "#[cfg(test)]\nuse a;\nb;\n",
                "#[cfg(test)]use a;b;",
            ),
            (
                Language::Lines,
                "#!/bin/sh\n# a\n\n\t# b\n#\necho '#'\n",
                "#!/bin/sh\necho '#'",
            ),
        ] {
            let found = deciding(text, language);
            assert_eq!(found.strip_suffix('\n'), Some(expected), "{text}");
        }
    }

    /// A line of comment behind each line of each source of this crate changes nothing; a letter more in any
    /// line of code does.
    #[test]
    fn each_line_of_a_source_counts() {
        let text = include_str!("source_text.rs");
        let code = text.split("\n#[cfg(test)]").next().unwrap();
        let now = deciding(code, Language::Rust);
        let lines: Vec<_> = code.lines().collect();
        for at in 0..lines.len() {
            let with = |more: &str| {
                let (before, after) = lines.split_at(at + 1);
                let changed = [before.join("\n"), more.to_owned(), after.join("\n")].join("");
                deciding(&changed, Language::Rust)
            };
            assert_eq!(with("\n// \"it's\" /* more\n\n"), now, "{}", lines[at]);
            let is_code = !lines[at].trim().is_empty() && !lines[at].contains("//");
            assert!(!is_code || with(" x\n") != now, "{}", lines[at]);
        }
    }
}
