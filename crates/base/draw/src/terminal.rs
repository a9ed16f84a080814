// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables and paragraphs for the terminal.

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, TableComponent,
    Width, presets,
};

use crate::table::{Table, Tone};

/// What the terminal can show. The caller determines it, from `NO_COLOR` and the terminal itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether colours may be used.
    pub colour: bool,
    /// Width of the terminal, columns.
    pub width: u16,
}

impl Style {
    /// The style for files and pipes.
    pub const PLAIN: Self = Self {
        colour: false,
        width: 120,
    };
}

/// Returns a table as text, each line ended. A table wider than the terminal has its columns of
/// words folded between words; numbers are never folded.
pub fn table(table: &Table, style: Style) -> String {
    let mut out = comfy_table::Table::new();
    out.load_preset(presets::NOTHING)
        .set_style(TableComponent::HeaderLines, '─')
        .set_style(TableComponent::MiddleHeaderIntersections, '─')
        .set_content_arrangement(ContentArrangement::Disabled);
    if style.colour {
        out.enforce_styling();
    } else {
        out.force_no_tty();
    }
    let heads = table.columns.iter().map(|c| {
        let text = if c.unit.is_empty() {
            c.title.clone()
        } else {
            format!("{}\n{}", c.title, c.unit)
        };
        aligned(Cell::new(text), c.is_text)
    });
    out.set_header(heads.collect::<Vec<_>>());
    for row in &table.rows {
        let cells = row.iter().zip(&table.columns).map(|(value, column)| {
            let cell = aligned(Cell::new(&value.text), column.is_text);
            match value.tone {
                Tone::Plain => cell,
                Tone::Good => cell.fg(Color::Green),
                Tone::Bad => cell.fg(Color::Red).add_attribute(Attribute::Bold),
            }
        });
        out.add_row(cells.collect::<Vec<_>>());
    }
    let widest = out
        .lines()
        .map(|line| line.trim_end().chars().count())
        .max();
    if widest > Some(usize::from(style.width)) {
        out.set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(style.width);
        let longest = table.columns.iter().enumerate().map(|(at, column)| {
            let cells = table.rows.iter().filter_map(|row| row.get(at));
            let texts = cells
                .map(|value| value.text.as_str())
                .chain([column.title.as_str()]);
            let words = texts.flat_map(str::split_whitespace);
            let most = words.map(|word| word.chars().count()).max().unwrap_or(0);
            u16::try_from(most).unwrap_or(u16::MAX)
        });
        let longest: Vec<u16> = longest.collect();
        let columns = out.column_iter_mut().zip(&table.columns).zip(longest);
        for ((column, of), longest) in columns {
            let least = longest.saturating_add(column.padding_width());
            column.set_constraint(if of.is_text {
                ColumnConstraint::LowerBoundary(Width::Fixed(least))
            } else {
                ColumnConstraint::ContentWidth
            });
        }
    }
    out.lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// Greatest length of a line of text, columns: longer lines are hard to read.
pub const LONGEST_LINE: usize = 80;

/// Breaks text into lines that fit.
pub fn paragraph(words: &str, style: Style) -> String {
    let width = usize::from(style.width).clamp(20, LONGEST_LINE);
    let mut out = String::new();
    let mut used = 0;
    for word in words.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            out.push('\n');
            used = 0;
        }
        if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out.push('\n');
    out
}

fn aligned(cell: Cell, is_text: bool) -> Cell {
    cell.set_alignment(if is_text {
        CellAlignment::Left
    } else {
        CellAlignment::Right
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_folds_words_and_no_numbers() {
        let mut wide = Table::default();
        wide.text("cause");
        wide.number("time lost", "s");
        let cause = "the retransmission was lost as well";
        wide.rows
            .push(vec![cause.to_owned().into(), "1,234.567".to_owned().into()]);
        let of_width = |width| {
            let colour = false;
            table(&wide, Style { colour, width })
        };
        let lines = |text: &str| text.lines().count();
        let folded = of_width(40);
        assert!(folded.lines().all(|l| l.chars().count() <= 40), "{folded}");
        assert!(folded.contains("1,234.567"), "{folded}");
        assert_eq!(lines(&folded), lines(&of_width(120)) + 1, "{folded}");
        // Where not even words fit, the table is wider than the terminal.
        assert!(of_width(12).contains("retransmission"), "{}", of_width(12));
    }

    #[test]
    fn lines_of_words_fit() {
        let style = Style {
            colour: false,
            width: 20,
        };
        let text = paragraph("The burstiest  flow has 1.53 MTU.", style);
        assert_eq!(text, "The burstiest flow\nhas 1.53 MTU.\n");
        assert_eq!(paragraph(&"x".repeat(30), style), "x".repeat(30) + "\n");
    }
}
