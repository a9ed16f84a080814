// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user chose: order, filter, the selected class, pause.

use std::cmp::Reverse;

use crate::model::Row;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// The row above.
    Up,
    /// The row below.
    Down,
    Enter,
    Escape,
    Backspace,
}

/// The order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// By device and class.
    #[default]
    Device,
    /// The fastest first.
    Rate,
    /// The longest backlog first.
    Backlog,
    /// The most drops first.
    Drops,
    /// The latest first.
    Late,
}

impl Sort {
    pub fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Rate => "rate",
            Self::Backlog => "backlog",
            Self::Drops => "drops",
            Self::Late => "lateness",
        }
    }
}

/// What the user chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    pub sort: Sort,
    /// Rows have this in their device, class or type.
    pub filter: String,
    /// Whether what is typed goes into the filter.
    pub is_typing: bool,
    /// Whether new samples are not shown.
    pub is_paused: bool,
    /// Whether the selected class is shown close up.
    pub is_close: bool,
    /// Whether the user wants to end.
    pub is_over: bool,
    /// The selected row, counted from the first one shown.
    pub selected: usize,
}

impl View {
    /// Does what a key is for; `rows` is how many are shown.
    pub fn press(&mut self, key: Key, rows: usize) {
        if self.is_typing {
            match key {
                Key::Char(c) => self.filter.push(c),
                Key::Backspace => {
                    self.filter.pop();
                }
                Key::Enter => self.is_typing = false,
                Key::Escape => {
                    self.filter.clear();
                    self.is_typing = false;
                }
                Key::Up | Key::Down => {}
            }
            return;
        }
        match key {
            Key::Char('q') => self.is_over = true,
            Key::Escape if self.is_close => self.is_close = false,
            Key::Escape => self.is_over = true,
            Key::Char('p' | ' ') => self.is_paused = !self.is_paused,
            Key::Char('/') => self.is_typing = true,
            Key::Char('e') => self.sort = Sort::Device,
            Key::Char('r') => self.sort = Sort::Rate,
            Key::Char('b') => self.sort = Sort::Backlog,
            Key::Char('d') => self.sort = Sort::Drops,
            Key::Char('l') => self.sort = Sort::Late,
            Key::Enter => self.is_close = !self.is_close && rows > 0,
            Key::Up | Key::Char('k') => self.selected = self.selected.saturating_sub(1),
            Key::Down | Key::Char('j') => {
                self.selected = (self.selected + 1).min(rows.saturating_sub(1));
            }
            Key::Char(_) | Key::Backspace => {}
        }
    }

    /// Returns the rows that are shown, in order. Rows that are equal keep theirs.
    pub fn shown(&self, mut rows: Vec<Row>) -> Vec<Row> {
        let filter = self.filter.to_lowercase();
        rows.retain(|row| {
            let name = row.name.as_deref().unwrap_or_default();
            let text = format!("{} {} {name} {}", row.device, row.class, row.of_type);
            text.to_lowercase().contains(&filter)
        });
        match self.sort {
            Sort::Device => {}
            Sort::Rate => rows.sort_by_key(|row| Reverse(row.rate_bps)),
            Sort::Backlog => rows.sort_by_key(|row| Reverse(row.backlog_bytes)),
            Sort::Drops => rows
                .sort_by_key(|row| Reverse(row.drops.iter().map(|drop| drop.frames).sum::<u64>())),
            Sort::Late => rows.sort_by_key(|row| Reverse(row.late.map(|late| late.p99_ns))),
        }
        rows
    }

    /// Returns the selected one of the rows that are shown: the last one if there are fewer now.
    pub fn selected_of<'a>(&self, shown: &'a [Row]) -> Option<&'a Row> {
        shown.get(self.selected.min(shown.len().checked_sub(1)?))
    }
}
