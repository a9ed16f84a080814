// SPDX-License-Identifier: MIT OR Apache-2.0
//! `ShapedDevices.csv` of LibreQoS: a row for each device of a subscriber.

use csv::{ErrorKind, ReaderBuilder, StringRecord, Trim};
use tcpsp::Prefix;

use crate::error::Error;
use crate::rate::{Direction, bps};

const CIRCUIT_ID: &str = "Circuit ID";
const CIRCUIT_NAME: &str = "Circuit Name";
const PARENT_NODE: &str = "Parent Node";
const IPV4: &str = "IPv4";
const IPV6: &str = "IPv6";
const RATE: &str = "a rate above 0 in Mbit/s such as 25 or 2.5";

/// A row.
pub(crate) struct Row {
    pub line: u64,
    pub circuit: String,
    pub circuit_name: String,
    pub parent: String,
    pub min_bps: u64,
    pub max_bps: u64,
    pub prefixes: Vec<Prefix>,
}

/// The table, and the places of its columns.
pub(crate) struct Table<'a> {
    file: &'a str,
    columns: Vec<(&'static str, usize)>,
    min: &'static str,
    max: &'static str,
}

impl Table<'_> {
    /// Returns the error of a cell.
    pub fn fault(&self, line: u64, column: &'static str, value: &str, expected: &str) -> Error {
        Error::Cell {
            file: self.file.to_owned(),
            line,
            number: 1 + self.place(column),
            column,
            value: value.to_owned(),
            expected: expected.to_owned(),
        }
    }

    /// Returns the error of a row's parent.
    pub fn parent_fault(&self, row: &Row, expected: &str) -> Error {
        self.fault(row.line, PARENT_NODE, &row.parent, expected)
    }

    /// Returns the error of an address of a row.
    pub fn address_fault(&self, line: u64, prefix: Prefix, expected: &str) -> Error {
        let column = if prefix.address.is_ipv4() { IPV4 } else { IPV6 };
        self.fault(line, column, &prefix.to_string(), expected)
    }

    fn place(&self, column: &str) -> usize {
        let known = self.columns.iter().find(|(name, _)| *name == column);
        known.map_or(0, |(_, place)| *place)
    }

    fn cell<'r>(&self, row: &'r StringRecord, column: &str) -> &'r str {
        row.get(self.place(column)).unwrap_or_default().trim()
    }

    fn row(&self, row: &StringRecord, line: u64) -> Result<Row, Error> {
        let last = self.columns.iter().max_by_key(|(_, place)| *place);
        if let Some((column, place)) = last.filter(|(_, place)| row.len() <= *place) {
            let cells = row.len();
            return Err(Error::Syntax {
                file: self.file.to_owned(),
                line,
                what: format!(
                    "the row has {cells} cells, expected at least {}, up to `{column}`",
                    1 + place
                ),
            });
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
        let mut prefixes = self.prefixes(row, line, IPV4)?;
        prefixes.extend(self.prefixes(row, line, IPV6)?);
        Ok(Row {
            line,
            circuit,
            circuit_name: text(CIRCUIT_NAME),
            parent: text(PARENT_NODE),
            min_bps,
            max_bps,
            prefixes,
        })
    }

    fn prefixes(
        &self,
        row: &StringRecord,
        line: u64,
        column: &'static str,
    ) -> Result<Vec<Prefix>, Error> {
        let is_ipv4 = column == IPV4;
        let parts = self.cell(row, column).split(',').map(str::trim);
        let parts = parts.filter(|part| !part.is_empty());
        let prefix = |part| {
            let known = Prefix::parse(part).filter(|p| p.address.is_ipv4() == is_ipv4);
            known.ok_or_else(|| {
                let example = if is_ipv4 {
                    "100.64.0.1 or 100.64.1.0/24"
                } else {
                    "2001:db8::1 or 2001:db8:0:100::/56"
                };
                let expected =
                    format!("addresses, or networks whose other bits are 0, such as {example}");
                self.fault(line, column, part, &expected)
            })
        };
        parts.map(prefix).collect()
    }
}

/// Returns the line of a row: the library counts from the comments and empty lines before it.
fn line_of(row: &StringRecord, bytes: &[u8]) -> u64 {
    let Some(position) = row.position() else {
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
pub(crate) fn read<'a>(
    file: &'a str,
    bytes: &[u8],
    direction: Direction,
) -> Result<(Table<'a>, Vec<Row>), Error> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let syntax = |line, what| Error::Syntax {
        file: file.to_owned(),
        line,
        what,
    };
    // A comment with an unquoted comma makes a row longer.
    let mut reader = ReaderBuilder::new()
        .comment(Some(b'#'))
        .flexible(true)
        .trim(Trim::All)
        .has_headers(false)
        .from_reader(bytes);
    let mut records = reader.records().map(|record| {
        record.map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
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
    for name in [CIRCUIT_ID, CIRCUIT_NAME, PARENT_NODE, IPV4, IPV6, min, max] {
        let mut cells = head.iter();
        let Some(place) = cells.position(|cell| cell.trim().eq_ignore_ascii_case(name)) else {
            let what = format!("there is no column `{name}`, expected the names of columns");
            return Err(syntax(line_of(&head, bytes), what));
        };
        columns.push((name, place));
    }
    let table = Table {
        file,
        columns,
        min,
        max,
    };
    let rows = records.map(|record| {
        let record = record?;
        table.row(&record, line_of(&record, bytes))
    });
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    Ok((table, rows))
}
