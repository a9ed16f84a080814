// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the guest's instructions go, by function.
//!
//! The plugin `lab/profile` counts the instructions between the instants at which the plan reads
//! the CPU's idle time, which are the borders of the windows. The kernel's own table of symbols
//! names the functions, and the module's debug information those that the compiler inlined.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use scenario::Cell;

use crate::error::{At, Error};

/// Files of a boot: what the plugin wrote, and the symbols of its kernel.
pub(crate) const COUNTS: &str = "profile";
pub(crate) const SYMBOLS: &str = "kallsyms";
/// Module and function of all instructions of programs.
const USER: &str = "programs";

/// Instructions of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its module; `kernel`, or `programs` for all programs together.
    pub module: String,
    /// Its name, as the kernel has it.
    pub function: String,
    /// The function whose body that is, if the compiler inlined it into `function`; else the same.
    pub inlined: String,
    pub instructions: u64,
}

/// What was executed between two borders: instructions by address, and those of programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Segment {
    kernel: BTreeMap<u64, u64>,
    user: u64,
}

/// A symbol of code: its name and its module.
type Symbol = (String, String);

/// A module with its debug information.
pub(crate) struct Debug<'a> {
    /// Name of the module.
    pub name: &'a str,
    /// Its file, not stripped.
    pub file: &'a Path,
}

/// Returns for each cell of a boot, and each of its windows, what was executed in it. `folder` is
/// that of the boot.
pub(crate) fn read(
    folder: &Path,
    cells: &[Cell],
    debug: &[Debug<'_>],
) -> Result<Vec<Vec<Vec<Row>>>, Error> {
    let text = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).at("read", &path)
    };
    let damaged = |detail: String| Error::Results {
        detail,
        console: folder.join("console.log"),
    };
    let segments = segments(&text(COUNTS)?).map_err(damaged)?;
    let symbols = symbols(&text(SYMBOLS)?);
    let mut inlined = BTreeMap::new();
    for module in debug {
        inlined.extend(inlined_functions(module, &symbols, &segments)?);
    }
    let expected: usize = cells.iter().map(|cell| borders(cell).len()).sum();
    if segments.len() != expected {
        let found = segments.len();
        return Err(damaged(format!(
            "the profile has {found} marks, expected {expected}"
        )));
    }
    let mut first = 0;
    let mut all = Vec::new();
    for cell in cells {
        let borders = borders(cell);
        let index = |ns: u64| borders.iter().take_while(|border| **border < ns).count();
        let windows = cell.windows.iter().map(|window| {
            let (from, to) = (first + index(window.from_ns), first + index(window.to_ns));
            // A mark ends the segment that has its number.
            rows(&segments[from + 1..=to], &symbols, &inlined)
        });
        all.push(windows.collect());
        first += borders.len();
    }
    Ok(all)
}

/// Returns the instants at which the plan of a cell reads the idle time, in order.
fn borders(cell: &Cell) -> BTreeSet<u64> {
    let windows = cell.windows.iter();
    windows.flat_map(|w| [w.from_ns, w.to_ns]).collect()
}

/// Reads what the plugin wrote; its format is in `lab/profile/profile.c`.
fn segments(text: &str) -> Result<Vec<Segment>, String> {
    let mut all: Vec<Segment> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line == "mark" {
            all.push(Segment::default());
            continue;
        }
        let words: Vec<&str> = line.split(' ').collect();
        let read = all.last_mut().and_then(|segment| add(segment, &words));
        if read.is_none() {
            return Err(format!("line {} of the profile: {line}", number + 1));
        }
    }
    Ok(all)
}

/// Adds a line to a segment; `None` if it is none.
fn add(segment: &mut Segment, words: &[&str]) -> Option<()> {
    match words {
        ["user", instructions] => segment.user += instructions.parse::<u64>().ok()?,
        [address, executions, sizes] => {
            let mut address = u64::from_str_radix(address, 16).ok()?;
            let executions: u64 = executions.parse().ok()?;
            for size in sizes.bytes() {
                *segment.kernel.entry(address).or_default() += executions;
                address += u64::from(size.checked_sub(b'a')?) + 1;
            }
        }
        _ => return None,
    }
    Some(())
}

/// Reads `/proc/kallsyms`: the code of the kernel and its modules by address. Of names with the
/// same address the first counts.
fn symbols(text: &str) -> BTreeMap<u64, Symbol> {
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(address), Some(kind), Some(name)) = (words.first(), words.get(1), words.get(2))
        else {
            continue;
        };
        let Ok(address) = u64::from_str_radix(address, 16) else {
            continue;
        };
        if !matches!(*kind, "t" | "T" | "w" | "W") {
            continue;
        }
        let module = words.get(3).map_or("kernel", |module| {
            module.trim_matches(|c| c == '[' || c == ']')
        });
        all.entry(address)
            .or_insert_with(|| ((*name).to_owned(), module.to_owned()));
    }
    all
}

/// Returns the rows of a window, largest first.
fn rows(
    segments: &[Segment],
    symbols: &BTreeMap<u64, Symbol>,
    inlined: &BTreeMap<u64, String>,
) -> Vec<Row> {
    let mut sums: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for segment in segments {
        *sums.entry((USER, USER, USER)).or_default() += segment.user;
        for (address, count) in &segment.kernel {
            let (function, module) = symbols
                .range(..=address)
                .next_back()
                .map_or(("?", "?"), |(_, (name, module))| (name, module));
            let within = inlined.get(address).map_or(function, String::as_str);
            *sums.entry((module, function, within)).or_default() += count;
        }
    }
    let mut rows: Vec<Row> = sums
        .into_iter()
        .filter(|(_, instructions)| *instructions > 0)
        .map(|((module, function, inlined), instructions)| Row {
            module: module.to_owned(),
            function: function.to_owned(),
            inlined: inlined.to_owned(),
            instructions,
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.instructions));
    rows
}

/// Returns the address of a module's code in the guest, if it was loaded.
fn text_address(debug: &Debug<'_>, bytes: &[u8], symbols: &BTreeMap<u64, Symbol>) -> Option<u64> {
    let file = object::File::parse(bytes).ok()?;
    let section = file.section_by_name(".text")?.index();
    let in_file: BTreeMap<&str, u64> = file
        .symbols()
        .filter(|s| s.kind() == SymbolKind::Text && s.section_index() == Some(section))
        .filter_map(|s| Some((s.name().ok()?, s.address())))
        .collect();
    symbols
        .iter()
        .filter(|(_, (_, module))| module == debug.name)
        .find_map(|(address, (name, _))| address.checked_sub(*in_file.get(name.as_str())?))
}

/// Asks `addr2line` whose bodies the executed instructions of a module are.
fn inlined_functions(
    debug: &Debug<'_>,
    symbols: &BTreeMap<u64, Symbol>,
    segments: &[Segment],
) -> Result<BTreeMap<u64, String>, Error> {
    let bytes = fs::read(debug.file).at("read", debug.file)?;
    let Some(base) = text_address(debug, &bytes, symbols) else {
        return Ok(BTreeMap::new());
    };
    let is_of_module = |address: &u64| {
        let found = symbols.range(..=*address).next_back();
        found.is_some_and(|(_, (_, module))| module == debug.name) && *address >= base
    };
    let addresses: BTreeSet<u64> = segments
        .iter()
        .flat_map(|segment| segment.kernel.keys().copied())
        .filter(is_of_module)
        .collect();
    let mut asked = String::new();
    for address in &addresses {
        asked += &format!("{:#x}\n", address - base);
    }
    let said = ask(debug.file, &asked)?;
    let names = innermost(&said);
    Ok(addresses.into_iter().zip(names).collect())
}

fn ask(file: &Path, asked: &str) -> Result<String, Error> {
    let program = "addr2line (binutils)";
    let fault = |source| Error::Start {
        program: program.into(),
        source,
    };
    let mut child = Command::new("addr2line")
        .args(["-a", "-f", "-i", "-j", ".text", "-e"])
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(fault)?;
    // The answer is read meanwhile: both pipes are short.
    let mut input = child.stdin.take();
    let output = std::thread::scope(|threads| {
        threads.spawn(move || input.as_mut().map(|pipe| pipe.write_all(asked.as_bytes())));
        child.wait_with_output()
    });
    let output = output.map_err(fault)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the innermost function of each answer of `addr2line`: the line after an address.
fn innermost(said: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut lines = said.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            names.push(lines.next().unwrap_or("?").to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const KALLSYMS: &str = "\
ffffffff81000000 T _text
ffffffff81000010 t tiny
ffffffff81000010 t tiny_alias
ffffffff81000020 d data
ffffffffc0000000 t psp_dequeue\t[sch_psp]
ffffffffc0000040 t psp_enqueue\t[sch_psp]
";

    #[test]
    fn instructions_are_counted_by_function_and_segment() {
        let text = "mark\nuser 5\nmark\nffffffff8100000c 3 bbb\nffffffffc0000000 2 c\nuser 7\nmark\n\
                    ffffffff81000010 1 a\nuser 1\n";
        let segments = segments(text).unwrap();
        assert_eq!(segments.len(), 3);
        assert_eq!(segments[0].user, 5);
        let symbols = symbols(KALLSYMS);
        assert_eq!(symbols.len(), 4);
        let inlined = BTreeMap::from([(0xffff_ffff_c000_0000, "pace_next".to_owned())]);
        let rows = rows(&segments[1..], &symbols, &inlined);
        let found: Vec<_> = rows
            .iter()
            .map(|row| {
                let name = (row.module.as_str(), row.function.as_str());
                (name, row.inlined.as_str(), row.instructions)
            })
            .collect();
        let expected = [
            (("programs", "programs"), "programs", 8),
            (("kernel", "_text"), "_text", 6),
            (("kernel", "tiny"), "tiny", 4),
            (("sch_psp", "psp_dequeue"), "pace_next", 2),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_damaged_profile_names_the_line() {
        for (text, line) in [
            ("user 5\n", "line 1"),
            ("mark\nx 1 a\n", "line 2"),
            ("mark\n10 1\n", "line 2"),
            ("mark\nuser 1\n10 1 A\n", "line 3"),
        ] {
            let error = segments(text).unwrap_err();
            assert!(error.starts_with(line), "{text}: {error}");
        }
    }

    #[test]
    fn the_innermost_function_is_the_first() {
        let said = "0x10\npace_next\n/a/sched.c:3\npsp_dequeue\n/a/psp.c:9\n0x14\n??\n??:0\n";
        assert_eq!(innermost(said), ["pace_next", "??"]);
    }
}
