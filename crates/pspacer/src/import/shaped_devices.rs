// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ShapedDevices.csv` of LibreQoS: a row for each device of a subscriber.

use std::net::IpAddr;

use anyhow::{Error, Result, anyhow, bail};
use csv::{ErrorKind, Position, ReaderBuilder, StringRecord, Trim};
use tcpsp::Prefix;

use super::network::By;
use super::rate::{Direction, bps};

const CIRCUIT_ID: &str = "Circuit ID";
const CIRCUIT_NAME: &str = "Circuit Name";
/// Which node is above a circuit: the first of these that has a value.
const PARENTS: [&str; 3] = ["Anchor Node ID", "Parent Node ID", PARENT_NODE];
const PARENT_NODE: &str = "Parent Node";
const IPV4: &str = "IPv4";
const IPV6: &str = "IPv6";
const RATE: &str = "a rate from 0.0025 to 1000000 in Mbit/s such as 25 or 2.5";

/// What a row says of the node above its circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The column that says it.
    pub column: &'static str,
    pub value: String,
}

impl Parent {
    /// Returns what the column has of a node.
    pub fn by(&self) -> By {
        match self.column {
            PARENT_NODE => By::Name,
            _ => By::Id,
        }
    }
}

pub struct Row {
    pub line: u64,
    pub circuit: String,
    pub circuit_name: String,
    pub parent: Parent,
    pub min_bps: u64,
    pub max_bps: u64,
    pub prefixes: Vec<Prefix>,
    /// Cells with bits of a host: what is said, its network, the line.
    pub hosts: Vec<(String, Prefix, u64)>,
}

/// The table, and the places of its columns.
pub struct Table<'a> {
    file: &'a str,
    columns: Vec<(&'static str, usize)>,
    min: &'static str,
    max: &'static str,
}

impl Table<'_> {
    /// Returns the error of a cell.
    pub fn fault(&self, line: u64, column: &'static str, value: &str, expected: &str) -> Error {
        let (file, number) = (self.file, 1 + self.place(column).unwrap_or(0));
        anyhow!("{file}:{line}: column {number}, `{column}`, is \"{value}\", expected {expected}")
    }

    pub fn parent_fault(&self, row: &Row, expected: &str) -> Error {
        self.fault(row.line, row.parent.column, &row.parent.value, expected)
    }

    /// Returns the error of an address of a row.
    pub fn address_fault(&self, line: u64, prefix: Prefix, expected: &str) -> Error {
        let column = if prefix.address.is_ipv4() { IPV4 } else { IPV6 };
        self.fault(line, column, &prefix.to_string(), expected)
    }

    fn place(&self, column: &str) -> Option<usize> {
        let known = self.columns.iter().find(|(name, _)| *name == column);
        known.map(|(_, place)| *place)
    }

    fn cell<'r>(&self, row: &'r StringRecord, column: &str) -> &'r str {
        let cell = self.place(column).and_then(|place| row.get(place));
        cell.unwrap_or_default().trim()
    }

    fn row(&self, row: &StringRecord, line: u64) -> Result<Row> {
        let needed = self.columns.iter();
        let needed = needed.filter(|(name, _)| !is_optional(name));
        let last = needed.max_by_key(|(_, place)| *place);
        if let Some((column, place)) = last.filter(|(_, place)| row.len() <= *place) {
            bail!(
                "{}:{line}: the row has {} cells, expected at least {}, up to `{column}`",
                self.file,
                row.len(),
                1 + place
            );
        }
        let text = |column| self.cell(row, column).to_owned();
        let rate = |column: &'static str| {
            let cell = self.cell(row, column);
            let rate = cell.parse().ok().and_then(bps);
            rate.ok_or_else(|| self.fault(line, column, cell, RATE))
        };
        let circuit = text(CIRCUIT_ID);
        if circuit.is_empty() {
            return Err(self.fault(line, CIRCUIT_ID, "", "what tells the circuit from others"));
        }
        let (min_bps, max_bps) = (rate(self.min)?, rate(self.max)?);
        if min_bps > max_bps {
            let expected = format!("at most `{}`, {}", self.max, self.cell(row, self.max));
            return Err(self.fault(line, self.min, self.cell(row, self.min), &expected));
        }
        let (mut prefixes, mut hosts) = (Vec::new(), Vec::new());
        for column in [IPV4, IPV6] {
            for (said, address, prefix) in self.prefixes(row, line, column)? {
                if address != prefix.address {
                    hosts.push((said.to_owned(), prefix, line));
                }
                prefixes.push(prefix);
            }
        }
        let given = PARENTS
            .into_iter()
            .find(|name| !self.cell(row, name).is_empty());
        let column = given.unwrap_or(PARENT_NODE);
        Ok(Row {
            line,
            circuit,
            circuit_name: text(CIRCUIT_NAME),
            parent: Parent {
                column,
                value: text(column),
            },
            min_bps,
            max_bps,
            prefixes,
            hosts,
        })
    }

    /// Returns what a cell says: each part, its address, and the network.
    fn prefixes<'r>(
        &self,
        row: &'r StringRecord,
        line: u64,
        column: &'static str,
    ) -> Result<Vec<(&'r str, IpAddr, Prefix)>> {
        let is_ipv4 = column == IPV4;
        let parts = self.cell(row, column).split(',').map(str::trim);
        let parts = parts.filter(|part| !part.is_empty());
        let prefix = |part| {
            let known = Prefix::parse_host(part).filter(|(of, _)| of.is_ipv4() == is_ipv4);
            let known = known.map(|(address, prefix)| (part, address, prefix));
            known.ok_or_else(|| {
                if let Some(plain) = without_zeros(part) {
                    let expected = format!(
                        "octets without leading zeros, which some read as octal, such as {plain}"
                    );
                    return self.fault(line, column, part, &expected);
                }
                let example = if is_ipv4 {
                    "100.64.0.1 or 100.64.1.0/24"
                } else {
                    "2001:db8::1 or 2001:db8:0:100::/56"
                };
                let expected = format!("addresses or networks, such as {example}");
                self.fault(line, column, part, &expected)
            })
        };
        parts.map(prefix).collect()
    }
}

/// Returns an address or network of IPv4 without the leading zeros of its octets; `None` if it has
/// none, or is no address without them either.
fn without_zeros(text: &str) -> Option<String> {
    let octets = text.split('.').map(|octet| {
        let short = octet.trim_start_matches('0');
        let is_zero = !short.starts_with(|c: char| c.is_ascii_digit());
        format!("{}{short}", if is_zero { "0" } else { "" })
    });
    let plain = octets.collect::<Vec<_>>().join(".");
    (plain != text && Prefix::parse_host(&plain).is_some()).then_some(plain)
}

/// Returns whether a table may lack a column.
fn is_optional(column: &str) -> bool {
    column != PARENT_NODE && PARENTS.contains(&column)
}

/// Returns what names of columns are compared by: letters and digits alone, without the unit.
fn key(name: &str) -> String {
    let plain = name.chars().filter(char::is_ascii_alphanumeric);
    let plain: String = plain.map(|c| c.to_ascii_lowercase()).collect();
    let unit = plain.strip_suffix("mbps").map(str::to_owned);
    unit.unwrap_or(plain)
}

/// Returns the line of a row: the library counts from the comments and empty lines before it.
fn line_of(position: Option<&Position>, bytes: &[u8]) -> u64 {
    let Some(position) = position else {
        return 0;
    };
    let start = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let rest = bytes.get(start..).unwrap_or_default();
    let lines = rest.split(|byte| *byte == b'\n');
    let skipped = lines.take_while(|line| matches!(line, [b'#', ..] | [] | [b'\r']));
    position.line() + skipped.count() as u64
}

/// Reads a file: its rows, and the table for messages about them.
///
/// # Errors
/// The first fault, with its line and column.
pub fn read<'a>(
    file: &'a str,
    bytes: &[u8],
    direction: Direction,
) -> Result<(Table<'a>, Vec<Row>)> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let syntax = |line: u64, what: String| anyhow!("{file}:{line}: {what}");
    // A comment with an unquoted comma makes a row longer.
    let mut reader = ReaderBuilder::new()
        .comment(Some(b'#'))
        .flexible(true)
        .trim(Trim::All)
        .has_headers(false)
        .from_reader(bytes);
    let mut records = reader.records().map(|record| {
        record.map_err(|error| {
            let line = line_of(error.position(), bytes);
            let what = match error.kind() {
                ErrorKind::Utf8 { err, .. } => {
                    format!("column {}: expected text in UTF-8", 1 + err.field())
                }
                _ => error.to_string(),
            };
            syntax(line, what)
        })
    });
    let (min, max) = match direction {
        Direction::Download => ("Download Min Mbps", "Download Max Mbps"),
        Direction::Upload => ("Upload Min Mbps", "Upload Max Mbps"),
    };
    let Some(head) = records.next().transpose()? else {
        return Err(syntax(
            1,
            "there is no row, expected the names of columns".to_owned(),
        ));
    };
    let mut columns = Vec::new();
    let needed = [CIRCUIT_ID, CIRCUIT_NAME, IPV4, IPV6, min, max];
    for name in needed.into_iter().chain(PARENTS) {
        let mut cells = head.iter();
        match cells.position(|cell| key(cell) == key(name)) {
            Some(place) => columns.push((name, place)),
            None if is_optional(name) => {}
            None => {
                let semicolons = head.iter().flat_map(|cell| cell.matches(';')).count();
                let what = if semicolons >= head.len() {
                    format!(
                        "expected commas between cells, the first row has {semicolons} semicolons"
                    )
                } else {
                    format!("there is no column `{name}`, expected the names of columns")
                };
                return Err(syntax(line_of(head.position(), bytes), what));
            }
        }
    }
    let table = Table {
        file,
        columns,
        min,
        max,
    };
    let rows = records.map(|record| {
        let record = record?;
        table.row(&record, line_of(record.position(), bytes))
    });
    let rows = rows.collect::<Result<Vec<_>>>()?;
    Ok((table, rows))
}
