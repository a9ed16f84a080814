// SPDX-License-Identifier: MIT OR Apache-2.0
//! Evaluates `${...}` in a scenario's strings: a name, or a whole-number expression of names,
//! digits and `+ - * /`, in which `*` and `/` bind tighter and operators of equal rank apply
//! from left to right; `:x` at the end formats it in hexadecimal.

use indexmap::IndexMap;

/// Values by name.
pub type Env = IndexMap<String, String>;

/// Why a string cannot be filled in.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// A name that has no value.
    Unknown(String),
    /// Description of what was expected.
    Expected(String),
}

/// Replaces every `${...}` of `text` by its value. Linear in the length of the output.
///
/// # Errors
/// If a name is not in `env`, or an expression is invalid or has no value.
pub fn fill(text: &str, env: &Env) -> Result<String, Fault> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inner, tail)) = after.split_once('}') else {
            return Err(Fault::Expected("a `}` after every `${`".into()));
        };
        out.push_str(&evaluate(inner, env)?);
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns whether `name` can be the name of a parameter.
pub fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn evaluate(inner: &str, env: &Env) -> Result<String, Fault> {
    let name = inner.trim();
    if is_name(name) {
        return env
            .get(name)
            .cloned()
            .ok_or_else(|| Fault::Unknown(name.to_owned()));
    }
    let (text, hexadecimal) = match name.strip_suffix(":x") {
        Some(text) => (text, true),
        None => (name, false),
    };
    let mut parser = Parser {
        rest: text.trim(),
        env,
    };
    let value = parser.sum()?;
    if !parser.rest.is_empty() {
        return Err(parser.expected("an operator (+ - * /)"));
    }
    match (hexadecimal, u64::try_from(value)) {
        (false, _) => Ok(value.to_string()),
        (true, Ok(value)) => Ok(format!("{value:x}")),
        (true, Err(_)) => Err(Fault::Expected(format!(
            "a number of 0 or more before `:x`, not {value}"
        ))),
    }
}

struct Parser<'a> {
    rest: &'a str,
    env: &'a Env,
}

impl Parser<'_> {
    fn expected(&self, what: &str) -> Fault {
        let at = if self.rest.is_empty() {
            "the end"
        } else {
            self.rest
        };
        Fault::Expected(format!("{what} at `{at}` inside `${{...}}`"))
    }

    fn operator(&mut self, set: [char; 2]) -> Option<char> {
        let found = self.rest.chars().next().filter(|c| set.contains(c))?;
        self.rest = self.rest[1..].trim_start();
        Some(found)
    }

    fn sum(&mut self) -> Result<i64, Fault> {
        let mut value = self.product()?;
        while let Some(operator) = self.operator(['+', '-']) {
            let right = self.product()?;
            value = match operator {
                '+' => value.checked_add(right),
                _ => value.checked_sub(right),
            }
            .ok_or_else(too_large)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i64, Fault> {
        let mut value = self.atom()?;
        while let Some(operator) = self.operator(['*', '/']) {
            let right = self.atom()?;
            value = match operator {
                '*' => value.checked_mul(right).ok_or_else(too_large)?,
                _ => value
                    .checked_div(right)
                    .ok_or_else(|| Fault::Expected("a divisor other than 0".into()))?,
            };
        }
        Ok(value)
    }

    fn atom(&mut self) -> Result<i64, Fault> {
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let value = if is_name(word) {
            let text = self
                .env
                .get(word)
                .ok_or_else(|| Fault::Unknown(word.to_owned()))?;
            text.parse().map_err(|_| {
                Fault::Expected(format!(
                    "whole numbers to count with, and `{word}` is \"{text}\""
                ))
            })?
        } else if !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) {
            word.parse().map_err(|_| too_large())?
        } else {
            return Err(self.expected("a name or a whole number"));
        };
        self.rest = rest.trim_start();
        Ok(value)
    }
}

fn too_large() -> Fault {
    Fault::Expected("numbers within 64 bits".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env() -> Env {
        [
            ("rate", "500mbit"),
            ("a", "3"),
            ("f", "12"),
            ("big", "9223372036854775807"),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into()
    }

    #[test]
    fn names_and_expressions() {
        for (text, expected) in [
            ("no names", "no names"),
            ("rate ${rate} burst ${ a }kb", "rate 500mbit burst 3kb"),
            ("${a * 10}mbit", "30mbit"),
            ("rx#${a}", "rx#3"),
            ("${5000 + a * 8 + f}", "5036"),
            ("1:${f:x}", "1:c"),
            ("1:${a * 100 + f:x}", "1:138"),
            ("${100 / 8 / 4}", "3"),
            ("${20 - 5 - 5}", "10"),
            ("${1-2}", "-1"),
            ("a $ b } c", "a $ b } c"),
        ] {
            assert_eq!(fill(text, &env()).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_say_what_was_expected() {
        for (text, expected) in [
            ("${rate", "a `}` after"),
            ("${}", "a name or a whole number at `the end`"),
            ("${a +}", "a name or a whole number at `the end`"),
            ("${a f}", "an operator (+ - * /) at `f`"),
            ("${a ? f}", "an operator (+ - * /) at `? f`"),
            ("${é}", "a name or a whole number at `é`"),
            ("${rate * 2}", "`rate` is \"500mbit\""),
            ("${a / 0}", "a divisor other than 0"),
            ("${big + 1}", "within 64 bits"),
            ("${big * 2}", "within 64 bits"),
            ("${99999999999999999999}", "within 64 bits"),
            ("${1 - 2:x}", "0 or more before `:x`, not -1"),
            ("${3a}", "a name or a whole number at `3a`"),
        ] {
            match fill(text, &env()) {
                Err(Fault::Expected(what)) => assert!(what.contains(expected), "{text}: {what}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        assert_eq!(fill("${b}", &env()), Err(Fault::Unknown("b".into())));
        assert_eq!(fill("${a + c}", &env()), Err(Fault::Unknown("c".into())));
    }
}
