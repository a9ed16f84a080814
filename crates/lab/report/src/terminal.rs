// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small charts of block characters for the terminal.

use draw::Style;
use metrics::curves::Curves;
use units::display::{number, rate_unit, short, time};

use crate::frames::Frames;
use crate::series;
use crate::side_by_side::SideBySide;

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
pub(crate) fn frames(compared: &SideBySide<'_>, found: &Frames<'_>, style: Style) -> String {
    let length = |name: &str| name.chars().count();
    let names = compared.flows.iter().map(|f| length(f.name));
    let names = names.max().unwrap_or(0);
    let (cells, width) = (compared.cells.len(), usize::from(style.width));
    let room = width
        .min(draw::terminal::LONGEST_LINE)
        .saturating_sub(names + 2 * cells)
        / cells.max(1);
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
            if style.colour {
                let colour = COLOURS[cell % COLOURS.len()];
                line.push_str(&format!("  \x1b[{colour}m{blocks}\x1b[0m"));
            } else {
                line.push_str(&format!("  {blocks}"))
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
}
