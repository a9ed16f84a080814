// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes Rust out of uapi/sch_psp.h and the table of statistics, uapi/sch_psp_stats.h: numbers of
//! attributes and values, and for each struct of statistics its members, how they are read, and
//! what the table says of them. So the kernel's side and this one cannot differ.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let uapi = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../../uapi");
    let read = |name: &str| -> Result<String> {
        let path = uapi.join(name);
        println!("cargo:rerun-if-changed={}", path.display());
        let text = fs::read_to_string(&path)?;
        without_comments(&text).ok_or_else(|| format!("{name}: a comment does not end").into())
    };
    println!("cargo:rerun-if-changed=build.rs");
    let header = read("sch_psp.h")?;
    let table = read("sch_psp_stats.h")?;
    let out = Path::new(&env::var("OUT_DIR")?).to_owned();
    let numbers = numbers(&header)?;
    fs::write(out.join("uapi.rs"), constants(&numbers)?)?;
    let mut text = String::new();
    for (of, rust, prefix) in [
        ("qdisc", "QdiscStats", "PSP_QDISC_STAT("),
        ("class", "ClassStats", "PSP_CLASS_STAT("),
    ] {
        let members = members(&header, &format!("tc_psp_{of}_stats"), &numbers)?;
        let rows = rows(&table, prefix)?;
        write_stats(&mut text, of, rust, &members, &rows)?;
    }
    fs::write(out.join("stats.rs"), text)?;
    Ok(())
}

fn without_comments(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        out += before;
        rest = comment.split_once("*/")?.1;
    }
    Some(out + rest)
}

/// Returns the values of all members of enums, and of macros that are plain numbers.
fn numbers(header: &str) -> Result<BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    for line in header.lines().filter_map(|l| l.strip_prefix("#define ")) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else {
            continue;
        };
        let digits = value.trim_end_matches(['u', 'l']);
        if let Ok(number) = digits.parse() {
            all.insert(name.to_owned(), number);
        } else if line.ends_with("(1u << 20)") {
            all.insert(name.to_owned(), 1 << 20);
        } else if value == "(~0ull)" {
            all.insert(name.to_owned(), u64::MAX);
        }
    }
    for block in header.split("\nenum").skip(1) {
        let body = block
            .split_once('{')
            .and_then(|(_, rest)| rest.split_once('}'))
            .ok_or("an enum without a body")?
            .0;
        let mut next = 0;
        for member in body.split(',').map(str::trim).filter(|m| !m.is_empty()) {
            let (name, value) = member.split_once('=').unwrap_or((member, ""));
            if !value.is_empty() {
                next = value.trim().parse()?;
            }
            all.insert(name.trim().to_owned(), next);
            next += 1;
        }
    }
    Ok(all)
}

fn constants(numbers: &BTreeMap<String, u64>) -> Result<String> {
    let mut text = String::new();
    for (name, number) in numbers.iter().filter(|(name, _)| !name.starts_with('_')) {
        let kind = if name.starts_with("TCA_") {
            "u16"
        } else {
            "u64"
        };
        writeln!(
            text,
            "#[allow(dead_code)]\npub(crate) const {name}: {kind} = {number};"
        )?;
    }
    Ok(text)
}

struct Member {
    name: String,
    offset: usize,
    /// Bytes of the number, or of each of `count`.
    bytes: usize,
    count: Option<u64>,
}

fn members(header: &str, name: &str, numbers: &BTreeMap<String, u64>) -> Result<Vec<Member>> {
    let body = header
        .split_once(&format!("struct {name} {{"))
        .and_then(|(_, rest)| rest.split_once('}'))
        .ok_or_else(|| format!("struct {name} is missing"))?
        .0;
    let mut offset = 0;
    let mut all = Vec::new();
    for member in body.split(';').map(str::trim).filter(|m| !m.is_empty()) {
        let (kind, name) = member
            .split_once(char::is_whitespace)
            .ok_or_else(|| format!("{member}: a type and a name were expected"))?;
        let bytes = match kind {
            "__u32" => 4,
            "__u64" => 8,
            _ => return Err(format!("{member}: __u32 or __u64 was expected").into()),
        };
        // No compiler then puts space between the members.
        if offset % bytes != 0 {
            return Err(format!("{member}: not aligned").into());
        }
        let (name, count) = match name.trim().split_once('[') {
            Some((name, length)) => {
                let length = length.trim_end_matches(']');
                let count = numbers.get(length).ok_or("an array of unknown length")?;
                (name, Some(*count))
            }
            None => (name.trim(), None),
        };
        all.push(Member {
            name: name.to_owned(),
            offset,
            bytes,
            count,
        });
        offset += bytes * usize::try_from(count.unwrap_or(1))?;
    }
    Ok(all)
}

/// A row of the table: member, key, unit, metric, total, shown, source, meaning.
type Row = [String; 8];

fn rows(table: &str, prefix: &str) -> Result<Vec<Row>> {
    let mut all = Vec::new();
    for text in table.split(&format!("\n{prefix}")).skip(1) {
        all.push(row(text)?);
    }
    if all.is_empty() {
        Err(format!("no row begins with {prefix}").into())
    } else {
        Ok(all)
    }
}

/// Reads the arguments of a row up to its closing bracket. Strings beside each other are one.
fn row(text: &str) -> Result<Row> {
    let mut arguments = vec![String::new()];
    let mut is_string = false;
    let mut characters = text.chars();
    loop {
        let character = characters.next().ok_or("a row does not end")?;
        let last = arguments.last_mut().ok_or("no argument")?;
        match character {
            '"' => is_string = !is_string,
            '\\' if is_string => match characters.next() {
                Some('n') => last.push(' '),
                Some(other) => last.push(other),
                None => return Err("a row ends in a string".into()),
            },
            ',' if !is_string => arguments.push(String::new()),
            ')' if !is_string => break,
            other if is_string || !other.is_whitespace() => last.push(other),
            _ => {}
        }
    }
    let found = arguments.len();
    arguments
        .try_into()
        .map_err(|_| format!("a row has {found} arguments, 8 were expected").into())
}

fn write_stats(
    text: &mut String,
    of: &str,
    rust: &str,
    members: &[Member],
    rows: &[Row],
) -> Result<()> {
    // A meaning that the class's table leaves to the qdisc's is the qdisc's.
    let meaning = |row: &Row| match row[7].as_str() {
        "" => format!("As the qdisc's `{}`, of this class alone.", row[1]),
        meaning => meaning.to_owned(),
    };
    let find = |name: &str| rows.iter().find(|row| row[0] == name);
    let named: Vec<_> = members
        .iter()
        .filter(|member| !matches!(member.name.as_str(), "type" | "pad"))
        .collect();
    writeln!(
        text,
        "/// Statistics of a psp {of}, `struct tc_psp_{of}_stats`."
    )?;
    writeln!(
        text,
        "#[derive(Clone, Debug, Default, PartialEq, Eq)]\npub struct {rust} {{"
    )?;
    for member in &named {
        let row = find(&member.name).ok_or_else(|| format!("{}: no row", member.name))?;
        let kind = match member.count {
            Some(count) => format!("[u64; {count}]"),
            None => "u64".to_owned(),
        };
        writeln!(
            text,
            "    /// {}\n    pub {}: {kind},",
            meaning(row),
            member.name
        )?;
    }
    writeln!(text, "}}\n\nimpl Stats for {rust} {{")?;
    writeln!(
        text,
        "    const TYPE: u64 = TC_PSP_STATS_{};",
        of.to_uppercase()
    )?;
    writeln!(text, "    const TABLE: &'static [Stat<Self>] = &[")?;
    for row in rows {
        let member = named.iter().find(|member| member.name == row[0]);
        let member = member.ok_or_else(|| format!("{}: no member", row[0]))?;
        let value = match member.count {
            Some(_) => format!("Value::Histogram(&s.{})", row[0]),
            None => format!("Value::Number(s.{})", row[0]),
        };
        writeln!(
            text,
            "        Stat {{ member: {:?}, key: {:?}, unit: Unit::{}, metric: Metric::{}, \
             total: Total::{}, shown: Shown::{}, meaning: {:?}, value: |s| {value} }},",
            row[0],
            row[1],
            camel(&row[2]),
            camel(&row[3]),
            camel(&row[4]),
            camel(&row[5]),
            meaning(row),
        )?;
    }
    writeln!(
        text,
        "    ];\n\n    fn read(bytes: &[u8]) -> Self {{\n        Self {{"
    )?;
    for member in &named {
        let read = |offset: String| format!("number{}(bytes, {offset})", member.bytes * 8);
        let value = match member.count {
            Some(_) => format!(
                "std::array::from_fn(|i| {})",
                read(format!("{} + {} * i", member.offset, member.bytes))
            ),
            None => read(member.offset.to_string()),
        };
        writeln!(text, "            {}: {value},", member.name)?;
    }
    writeln!(text, "        }}\n    }}\n}}\n")?;
    Ok(())
}

/// Returns `RATE` as `Rate`.
fn camel(word: &str) -> String {
    let mut characters = word.chars();
    let first = characters.next().map(|c| c.to_ascii_uppercase());
    let rest = characters.map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(rest).collect()
}
