// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables, for the terminal and for pages alike.

use units::display::NONE;

/// The head of a column.
#[derive(Clone, Debug)]
pub struct Column {
    /// The title: what the column holds.
    pub title: String,
    /// Its unit; empty if it has none.
    pub unit: String,
    /// Whether the column holds text, aligned to the left, or numbers, aligned to the right.
    pub is_text: bool,
}

/// Whether a value is good or bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Neither good nor bad.
    #[default]
    Plain,
    /// As wanted.
    Good,
    /// Not as wanted.
    Bad,
}

/// One value of a row.
#[derive(Clone, Debug, Default)]
pub struct Value {
    /// The value as printed.
    pub text: String,
    /// Whether it is good or bad, which chooses its colour.
    pub tone: Tone,
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self {
            text,
            tone: Tone::Plain,
        }
    }
}

/// Rows under columns.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// The rows, from top to bottom; each has as many values as there are columns.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// Adds a column of text.
    pub fn text(&mut self, title: &str) {
        self.columns.push(Column {
            title: title.into(),
            unit: String::new(),
            is_text: true,
        });
    }

    /// Adds a column of numbers.
    pub fn number(&mut self, title: &str, unit: &str) {
        self.columns.push(Column {
            title: title.into(),
            unit: unit.into(),
            is_text: false,
        });
    }

    /// Removes columns that are empty in every row, or 0 in every row and named in `zero_is_empty`.
    pub fn without_empty_columns(mut self, zero_is_empty: &[&str]) -> Self {
        let used: Vec<bool> = (0..self.columns.len())
            .map(|i| {
                let zero = zero_is_empty.contains(&&*self.columns[i].title);
                let nothing = |v: &Value| v.text == NONE || zero && v.text == "0";
                self.rows
                    .iter()
                    .any(|r| r.get(i).is_some_and(|v| !nothing(v)))
            })
            .collect();
        let mut keep = used.iter();
        self.columns.retain(|_| *keep.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut keep = used.iter();
            row.retain(|_| *keep.next().unwrap_or(&true));
        }
        self
    }
}
