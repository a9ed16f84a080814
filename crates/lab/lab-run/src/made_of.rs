// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the figures of a page were measured with: for each of its runs digests of the keys of the
//! run's pieces. A page is stale if the pieces that would run now have other keys.

use std::collections::{BTreeMap, BTreeSet};

use scenario::Cell;
use vmlab::Key;

use crate::stored::Id;

/// Begins and ends the last line of a page.
const BEGIN: &str = "<!-- made of: ";
const END: &str = " -->";

/// Of the code that this command was compiled from; `build.rs` sets them.
const MEASURES: &str = env!("MADE_OF_MEASURES");
const STALLS: &str = env!("MADE_OF_STALLS");
const SIMULATOR: &str = env!("MADE_OF_SIMULATOR");
const CORE: &str = env!("MADE_OF_CORE");
const BPF: &str = env!("MADE_OF_BPF");
const ROUTER: &str = env!("MADE_OF_ROUTER");
/// How a cell's description says that hosts have no offloads and no programs.
const BARE: &str = "offloads: [], host_programs: [], ";

/// Returns what stands for the command in the guests of some cells: the parts that make a psp of BPF,
/// and where hosts have programs the router.
pub fn command(cells: &[Cell]) -> String {
    let has_programs = cells.iter().any(|cell| !cell.host_programs.is_empty());
    format!("{BPF}{}", if has_programs { ROUTER } else { "" })
}

/// Returns the key of what was measured of a guest with these cells.
pub fn of_guest(guest: &str, cells: &[Cell]) -> String {
    let mut key = measured(cells);
    key.add(guest.as_bytes());
    key.text()
}

/// Returns the key of what was measured of a simulated cell, in runs of these seeds; `None` if no
/// seed decides anything.
pub fn of_simulated(cell: &Cell, seeds: Option<(u64, u64)>) -> String {
    let mut key = measured(std::slice::from_ref(cell));
    key.add(SIMULATOR.as_bytes());
    let words = cell.tc.iter().flat_map(|line| &line.args);
    // The core decides nothing in a cell without a psp.
    let core = if words.into_iter().any(|word| word == "psp") {
        CORE
    } else {
        ""
    };
    key.add(core.as_bytes());
    key.add(format!("{seeds:?}").as_bytes());
    key.text()
}

/// Begins the key of what is measured in some cells.
fn measured(cells: &[Cell]) -> Key {
    let mut key = Key::new();
    key.add(MEASURES.as_bytes());
    let has_stops = cells.iter().any(|cell| !cell.stops.is_empty());
    key.add(if has_stops { STALLS } else { "" }.as_bytes());
    for cell in cells {
        key.add(without_places(&format!("{cell:?}")).as_bytes());
    }
    key
}

/// Takes out of a cell's description where in its file each part stands, and that hosts are bare: it
/// is then the same as before hosts had offloads and programs.
fn without_places(text: &str) -> String {
    let text = text.replacen(BARE, "", 1);
    let mut pieces = text.split("Line { file: ");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |mut all, piece| {
        all.push_str(piece.split_once(" }").map_or("", |(_, rest)| rest));
        all
    })
}

/// What a run was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Digests {
    /// Of what is the project's.
    own: String,
    /// Of packages, kernel and compiler, too.
    all: String,
}

/// Digests by the name of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeOf(BTreeMap<String, Digests>);

/// Returns the digest of some keys, as a page has it.
fn digest<'a>(keys: impl Iterator<Item = &'a String>) -> String {
    let mut digest = Key::new();
    keys.for_each(|key| digest.add(key.as_bytes()));
    digest.text()[..16].to_owned()
}

impl MadeOf {
    pub fn add(&mut self, run: String, pieces: &[Id]) {
        let digests = Digests {
            own: digest(pieces.iter().map(|piece| &piece.own_key)),
            all: digest(pieces.iter().map(|piece| &piece.key)),
        };
        self.0.insert(run, digests);
    }

    /// Reads what a page was made of; `None` if the page does not say.
    pub fn read(page: &str) -> Option<Self> {
        let line = page
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix(BEGIN))?;
        let words = line.strip_suffix(END)?.split_whitespace();
        let read = |word: &str| {
            let (name, digests) = word.split_once('=')?;
            // Where no packages decide anything, the two are one.
            let (own, all) = digests.split_once('.').unwrap_or((digests, digests));
            let (own, all) = (own.to_owned(), all.to_owned());
            Some((name.to_owned(), Digests { own, all }))
        };
        Some(Self(words.map(read).collect::<Option<_>>()?))
    }

    /// Returns the line for a page.
    pub fn line(&self) -> String {
        let words: Vec<_> = self
            .0
            .iter()
            .map(|(name, Digests { own, all })| {
                if own == all {
                    format!("{name}={all}")
                } else {
                    format!("{name}={own}.{all}")
                }
            })
            .collect();
        format!("{BEGIN}{}{END}\n", words.join(" "))
    }

    /// Returns the names of the runs that are in one of the two alone, or differ.
    pub fn differing<'a>(&'a self, other: &'a Self) -> Vec<&'a str> {
        self.differing_by(other, |digests| &digests.all)
    }

    /// Returns the names of those runs that differ in what is the project's.
    pub fn differing_in_code<'a>(&'a self, other: &'a Self) -> Vec<&'a str> {
        self.differing_by(other, |digests| &digests.own)
    }

    fn differing_by<'a>(&'a self, other: &'a Self, of: fn(&Digests) -> &String) -> Vec<&'a str> {
        let names: BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        names
            .into_iter()
            .filter(|name| self.0.get(*name).map(of) != other.0.get(*name).map(of))
            .map(String::as_str)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::result::Engine;

    /// Returns a piece of a guest with these keys, or a simulated one with one key.
    fn id(keys: &str) -> Id {
        let (own, key) = keys.split_once('/').unwrap_or((keys, keys));
        Id {
            key: key.into(),
            own_key: own.into(),
            name: "a".into(),
            engine: Engine::Netsim,
            simulated_s: 1.0,
            is_further: false,
        }
    }

    /// Returns the cell of a scenario with more keys of a host and more tables.
    fn cell(host: &str, more: &str) -> Cell {
        let text = format!(
            "name = \"s\"\ntitle = \"\"\nduration = \"1s\"\n\
             [[host]]\nname = \"tx\"\n{host}\n[[host]]\nname = \"rx\"\n\
             [[cable]]\nname = \"wire\"\nends = [\"tx:eth0\", \"rx:eth0\"]\nrate = \"1gbit\"\n{more}"
        );
        let mut scenario = scenario::parse("s.toml", &text, &scenario::Options::default()).unwrap();
        scenario.cells.remove(0)
    }

    const PROGRAM: &str = "[[program]]\nhost = \"tx\"\nrun = \"pspacer router r\"\n";

    /// Pages that were made before hosts had offloads and programs stay fresh.
    #[test]
    fn bare_hosts_are_described_as_before() {
        let described = |cell: &Cell| without_places(&format!("{cell:?}"));
        let bare = described(&cell("", ""));
        assert!(bare.contains("sysctls: [], noise: None"), "{bare}");
        assert!(described(&cell("offloads = \"gso off\"", "")).contains("offloads: [Offload"));
        assert!(described(&cell("", PROGRAM)).contains("host_programs: [HostProgram"));
    }

    #[test]
    fn the_router_decides_where_hosts_have_programs() {
        assert_eq!(command(&[cell("", "")]), BPF);
        assert_eq!(command(&[cell("", PROGRAM)]), format!("{BPF}{ROUTER}"));
    }

    #[test]
    fn a_page_says_what_it_was_made_of() {
        let mut made = MadeOf::default();
        made.add("one".into(), &[id("a"), id("b")]);
        made.add("two".into(), &[id("c")]);
        let page = format!("# a\n\n## b\n\n{}", made.line());
        assert_eq!(MadeOf::read(&page), Some(made.clone()));
        assert_eq!(MadeOf::read("# a\n"), None);
        assert_eq!(MadeOf::read("<!-- made of: a -->"), None);

        let mut other = made.clone();
        assert!(made.differing(&other).is_empty());
        other.add("two".into(), &[id("d")]);
        other.add("three".into(), &[]);
        assert_eq!(made.differing(&other), ["three", "two"]);
        assert_eq!(other.differing(&made), ["three", "two"]);
        assert_eq!(other.differing_in_code(&made), ["three", "two"]);
    }

    /// Newer packages change a guest, and nothing of the project's.
    #[test]
    fn packages_differ_from_code() {
        let made = |keys: [&str; 2]| {
            let mut made = MadeOf::default();
            made.add("guest".into(), &[id(keys[0])]);
            made.add("simulated".into(), &[id(keys[1])]);
            assert_eq!(MadeOf::read(&made.line()), Some(made.clone()));
            made
        };
        let before = made(["a/a1", "b"]);
        let newer = made(["a/a2", "b"]);
        assert_eq!(before.differing(&newer), ["guest"]);
        assert!(before.differing_in_code(&newer).is_empty());
        let changed = made(["c/c1", "b"]);
        assert_eq!(before.differing_in_code(&changed), ["guest"]);
    }

    /// A cell with a psp depends on the core, one with measured stalls on what judges them.
    #[test]
    fn what_is_measured_and_how_is_in_the_key() {
        let cell = |more: &str| {
            let text = format!(
                "name = \"a\"\ntitle = \"A\"\nduration = \"10ms\"\n[[host]]\nname = \"tx\"\n\
                 [[host]]\nname = \"rx\"\n[[cable]]\nname = \"wire\"\n\
                 ends = [\"tx:eth0\", \"rx:eth0\"]\nrate = \"1gbit\"\n[[flow]]\nname = \"bulk\"\n\
                 type = \"udp\"\nfrom = \"tx\"\nto = \"rx\"\n{more}"
            );
            let scenario = scenario::parse("a.toml", &text, &scenario::Options::default());
            scenario.unwrap().cells.remove(0)
        };
        let window = "[[tc]]\nhost = \"tx\"\nlines = [\"qdisc add dev eth0 root pfifo\"]\n\
                      [[window]]\nname = \"all\"\n";
        let (first, comment) = (cell(window), cell(&format!("# why\n{window}")));
        assert_eq!(of_simulated(&first, None), of_simulated(&comment, None));
        let shorter = cell(&format!("{window}to = \"5ms\"\n"));
        let keys = [
            of_simulated(&first, None),
            of_simulated(&shorter, None),
            of_simulated(&first, Some((1, 1))),
            of_simulated(&first, Some((1, 2))),
            of_guest("a", std::slice::from_ref(&first)),
            of_guest("b", std::slice::from_ref(&first)),
            of_guest("b", std::slice::from_ref(&shorter)),
        ];
        let distinct: BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }
}
