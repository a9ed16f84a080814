// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables and small charts of block characters for the terminal.

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, TableComponent,
    Width, presets,
};
use metrics::curves::Curves;
use units::display::{number, rate_unit, short, time};

use crate::frames::Frames;
use crate::series;
use crate::side_by_side::SideBySide;
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
#[must_use]
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
            column.set_constraint(match of.is_text {
                true => ColumnConstraint::LowerBoundary(Width::Fixed(least)),
                false => ColumnConstraint::ContentWidth,
            });
        }
    }
    out.lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// Greatest length of a line of text, columns: longer lines are hard to read.
const LONGEST_LINE: usize = 80;

/// Breaks text into lines that fit.
#[must_use]
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

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// ANSI colours that can be read on a dark and on a light background.
const COLOURS: [u8; 6] = [34, 33, 32, 35, 36, 31];

/// Draws bandwidth over time: a row of blocks for each flow, or for each group of many flows (its
/// median). A full block is the largest rate or target:
///
/// ```text
/// bulk  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇  499.998 Mbit/s
///       0 ──────── 500 ms; full height 571 Mbit/s
/// ```
#[must_use]
pub fn chart(curves: &Curves, style: Style) -> String {
    let groups = series::groups(curves);
    let names = groups
        .iter()
        .map(|g| g.label.chars().count())
        .max()
        .unwrap_or(0);
    let room = usize::from(style.width)
        .saturating_sub(names + 20)
        .clamp(10, 72);
    let intervals = curves
        .flows
        .iter()
        .map(|f| f.bytes.len())
        .max()
        .unwrap_or(0);
    let merge = series::merge(curves).max(intervals.div_ceil(room)).max(1);
    let columns = intervals.div_ceil(merge);
    if columns == 0 {
        return String::new();
    }
    let rows: Vec<_> = groups
        .iter()
        .map(|g| (g, series::bandwidth(curves, g, merge)))
        .collect();
    let highest = rows
        .iter()
        .flat_map(|(g, points)| points.iter().map(|p| p.middle).chain(g.target_bps()))
        .fold(0.0, f64::max);
    let unit = rate_unit(highest);
    let width_s = curves.interval_s * merge as f64;
    let mut out = String::new();
    for (group, points) in &rows {
        let mut blocks = vec![' '; columns];
        for point in points {
            let column = (point.at_s / width_s) as usize;
            if let Some(block) = blocks.get_mut(column) {
                *block = block_of(point.middle / highest.max(1.0));
            }
        }
        let blocks: String = blocks.into_iter().collect();
        let mean = points.iter().map(|p| p.middle).sum::<f64>() / points.len().max(1) as f64;
        let (begin, end) = if style.colour {
            (
                format!("\x1b[{}m", COLOURS[group.colour % COLOURS.len()]),
                "\x1b[0m",
            )
        } else {
            (String::new(), "")
        };
        let rate = number(mean / unit.size, 1);
        let unit = unit.name;
        out.push_str(&format!(
            "{:<names$}  {begin}{blocks}{end}  {rate:>7} {unit}\n",
            group.label
        ));
    }
    let end = time(curves.duration_s);
    let line = "─".repeat(columns.saturating_sub(end.chars().count() + 3));
    let top = short(highest / unit.size, 1);
    out.push_str(&format!(
        "{:<names$}  0 {line} {end}  a full block is {top} {}\n",
        "", unit.name
    ));
    out
}

/// Draws how much of the line each flow of each cell takes over a few milliseconds, with the cells
/// beside each other:
///
/// ```text
///       psp              htb
/// bulk  ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄ ██      ██
///       5 ms of the wire from 1.6 s on; a full block is frames back to back
/// ```
#[must_use]
pub(crate) fn frames(compared: &SideBySide<'_>, found: &Frames<'_>, style: Style) -> String {
    let length = |name: &str| name.chars().count();
    let names = compared.flows.iter().map(|f| length(f.name));
    let names = names.max().unwrap_or(0);
    let (cells, width) = (compared.cells.len(), usize::from(style.width));
    let room = width.min(LONGEST_LINE).saturating_sub(names + 2 * cells) / cells.max(1);
    let merge = found.intervals.div_ceil(room.max(10)).max(1);
    let room = found.intervals.div_ceil(merge);
    let mut out = " ".repeat(names);
    for cell in &compared.cells {
        out.push_str(&format!("  {cell:<room$}"));
    }
    out = format!("{}\n", out.trim_end());
    for (flow, bytes) in compared.flows.iter().zip(&found.bytes) {
        let mut line = format!("{:<names$}", flow.name);
        for (cell, bytes) in bytes.iter().enumerate() {
            let share = |part: &[u64]| {
                let bytes = part.iter().sum::<u64>() as f64;
                bytes / (part.len() as f64 * found.line_bytes).max(f64::MIN_POSITIVE)
            };
            let blocks: String = bytes.chunks(merge).map(|p| block_of(share(p))).collect();
            let blocks = format!("{blocks:<room$}");
            match style.colour {
                true => {
                    let colour = COLOURS[cell % COLOURS.len()];
                    line.push_str(&format!("  \x1b[{colour}m{blocks}\x1b[0m"));
                }
                false => line.push_str(&format!("  {blocks}")),
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    let note = format!(
        "{:names$}  {} of the wire; a full block is frames back to back\n",
        "",
        time(found.length_s())
    );
    out + &note
}

/// Returns the block for a share of the full height. A share above 0 has at least the lowest block.
fn block_of(share: f64) -> char {
    let eighths = (share * 8.0).round().clamp(0.0, 8.0) as usize;
    BLOCKS[if share > 0.0 { eighths.max(1) } else { 0 }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks() {
        let line: String = [0.0, 0.01, 0.5, 0.99, 1.0, 7.0]
            .map(block_of)
            .iter()
            .collect();
        assert_eq!(line, " ▁▄███");
    }

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
