// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the model as the user chose to see it.

use std::io;

use ratatui::backend::TestBackend;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row as Cells, Sparkline, Table, TableState};
use ratatui::{Frame, Terminal};
use tcpsp::ClassStats;
use tcpsp::stats::{Shown, Stats, Unit, Value};
use units::terse;

use crate::model::{Late, Model, PortRow, Row};
use crate::reservations;
use crate::view::View;

/// Columns of a row's history.
const SPARK: usize = 16;
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const KEYS: &str = "q quit  p pause  / filter  Enter close up  order: e device r rate b backlog d drops l lateness";

/// The column of classes, and its least width.
const CLASS: usize = 1;
const CLASS_CELLS: u16 = 12;
const COLUMNS: [(&str, Constraint); 9] = [
    ("device", Constraint::Length(10)),
    ("class", Constraint::Length(CLASS_CELLS)),
    ("type", Constraint::Length(8)),
    ("target", Constraint::Length(12)),
    ("rate", Constraint::Length(12)),
    ("history", Constraint::Length(SPARK as u16)),
    ("backlog", Constraint::Length(9)),
    ("late 99 %", Constraint::Length(10)),
    ("drops", Constraint::Min(12)),
];

/// Most of the screen that reservations take: one part of so many.
const RESERVATIONS_PART: u16 = 2;

/// Draws a frame: the qdiscs, below them the classes or the selected one close up, then the
/// reservations if managers are asked.
pub fn draw(frame: &mut Frame<'_>, model: &Model, view: &View) {
    let ports = model.ports();
    let shown = view.shown(model.rows());
    let lines = u16::try_from(ports.len()).unwrap_or(u16::MAX);
    let reserved = reservations::lines(model.reservations());
    let part = frame.area().height / RESERVATIONS_PART;
    let [head, top, below, granted, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Max(lines.saturating_add(1)),
        Constraint::Min(3),
        Constraint::Length(reserved.min(part)),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    if let Some(overview) = model.reservations() {
        reservations::draw(frame, granted, overview);
    }
    frame.render_widget(Line::from(summary(model, view, shown.len())), head);
    let devices = model.devices();
    let ports: Vec<_> = ports
        .iter()
        .enumerate()
        .map(|(place, port)| {
            let mut line = port_line(port);
            let is_first = ports.iter().position(|of| of.device == port.device) == Some(place);
            let device = devices.iter().find(|row| row.device == port.device);
            if let Some(device) = device.filter(|_| is_first) {
                line += &device.words();
            }
            Line::from(line)
        })
        .collect();
    frame.render_widget(Paragraph::new(ports), top);
    match view.selected_of(&shown).filter(|_| view.is_close) {
        Some(row) => close_up(frame, below, row),
        None => table(frame, below, &shown, view),
    }
    let foot_line = if view.is_typing {
        format!("filter: {}_", view.filter)
    } else {
        KEYS.to_owned()
    };
    frame.render_widget(Line::from(foot_line), foot);
}

/// Returns what [`draw`] shows without the line of keys, as text of this width and as high as it
/// has to be. Each line is ended.
///
/// # Errors
/// None, but for what the terminal's interface allows for.
pub fn text(model: &Model, view: &View, width: u16) -> io::Result<String> {
    let rows = model.ports().len() + view.shown(model.rows()).len();
    // The summary, the heads of both tables, and the line of keys.
    let height = u16::try_from(rows + 4).unwrap_or(u16::MAX).max(8);
    // Reservations have a part of the whole, and what is empty above them is left out below.
    let reserved = reservations::lines(model.reservations());
    let height = height
        .saturating_add(reserved)
        .max(reserved.saturating_mul(RESERVATIONS_PART).saturating_add(1));
    let mut terminal = Terminal::new(TestBackend::new(width, height))?;
    terminal.draw(|frame| draw(frame, model, view))?;
    let buffer = terminal.backend().buffer();
    let cells = buffer.content().chunks(usize::from(width.max(1)));
    let line = |cells: &[ratatui::buffer::Cell]| {
        let line: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned() + "\n"
    };
    let lines: Vec<String> = cells.map(line).collect();
    let shown = &lines[..lines.len().saturating_sub(1)];
    let text = match reserved {
        0 => shown.concat(),
        _ => {
            let (above, granted) =
                shown.split_at(shown.len().saturating_sub(usize::from(reserved)));
            format!("{}\n\n{}", above.concat().trim_end(), granted.concat())
        }
    };
    Ok(text.trim_end().to_owned() + "\n")
}

fn summary(model: &Model, view: &View, shown: usize) -> String {
    let Some(last) = model.last() else {
        return "pspacer top: no sample yet".to_owned();
    };
    if last.ports.is_empty() {
        return "pspacer top: no device has psp (tc qdisc replace dev DEV root handle 1: psp)"
            .to_owned();
    }
    let mut text = format!(
        "pspacer top: {}, {} by {}; reading takes {}",
        of(last.ports.len(), "qdisc", "qdiscs"),
        of(shown, "class", "classes"),
        view.sort.name(),
        terse::ms(last.cost_ns)
    );
    if !view.filter.is_empty() {
        text += &format!("; filter \"{}\"", view.filter);
    }
    if view.is_paused {
        text += "; PAUSED";
    }
    text
}

fn of(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn port_line(port: &PortRow) -> String {
    let mode = port.mode.map_or("?", |mode| mode.word());
    let why = port.why.map_or(String::new(), |why| format!(" ({why})"));
    let rate = port.wire_bps.map_or("-".to_owned(), terse::rate);
    let gaps = port
        .gap_share
        .map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let unclassified = match port.unclassified_frames {
        0 => String::new(),
        frames => format!(", {frames} frames without a class"),
    };
    let beyond = match port.beyond_horizon_frames {
        0 => String::new(),
        frames => format!(", {frames} frames dropped beyond fq's horizon"),
    };
    format!(
        "{} {}  mode {mode}{why}, {rate} of {} on the wire, gap frames {gaps}{unclassified}{beyond}",
        port.device,
        port.qdisc,
        terse::rate(port.line_bps)
    )
}

fn table(frame: &mut Frame<'_>, area: Rect, shown: &[Row], view: &View) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let header = Cells::new(COLUMNS.map(|(name, _)| name)).style(bold);
    let rows = shown.iter().map(cells);
    let table = Table::new(rows, widths(area.width, shown))
        .header(header)
        .column_spacing(1)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let selected = shown
        .len()
        .checked_sub(1)
        .map(|last| view.selected.min(last));
    let mut state = TableState::default().with_selected(selected);
    frame.render_stateful_widget(table, area, &mut state);
}

/// Returns the widths of the columns. Names of pods are long: what the others leave is the class's,
/// as far as a name needs it.
fn widths(width: u16, shown: &[Row]) -> [Constraint; COLUMNS.len()] {
    let mut widths = COLUMNS.map(|(_, width)| width);
    let least = widths.iter().fold(0, |sum, width| match width {
        Constraint::Length(cells) | Constraint::Min(cells) => sum + cells + 1,
        _ => sum,
    });
    let longest = shown.iter().map(|row| class(row).chars().count()).max();
    let longest = u16::try_from(longest.unwrap_or_default()).unwrap_or(u16::MAX);
    // Behind the last column there is no space.
    let room = (width + 1).saturating_sub(least);
    widths[CLASS] = Constraint::Length(longest.clamp(CLASS_CELLS, CLASS_CELLS + room));
    widths
}

/// Returns the name of a class, or its id, below that of its group.
fn class(row: &Row) -> String {
    let indent = if row.group.is_some() { "  " } else { "" };
    let name = row.name.clone().unwrap_or_else(|| row.class.to_string());
    format!("{indent}{name}")
}

fn cells(row: &Row) -> Cells<'static> {
    let rate = |rate: Option<u64>| rate.map_or("-".to_owned(), terse::rate);
    let all = [
        row.device.clone(),
        class(row),
        row.of_type.to_string(),
        rate(row.target_bps),
        rate(row.rate_bps),
        spark(&row.history_bps, row.target_bps),
        terse::size(row.backlog_bytes.into()),
        row.late
            .map_or("-".to_owned(), |late| short_time(late.p99_ns)),
        drops(row),
    ];
    let is_losing = row.drops.iter().any(|drop| drop.new_frames > 0);
    let style = if is_losing {
        Style::new().add_modifier(Modifier::BOLD)
    } else {
        Style::new()
    };
    Cells::new(all.map(Cell::from)).style(style)
}

/// Returns the drops by cause, those that grow first marked with a plus.
fn drops(row: &Row) -> String {
    let one = |drop: &crate::model::Drop| {
        let new = match drop.new_frames {
            0 => String::new(),
            frames => format!(" (+{frames})"),
        };
        format!("{} {}{new}", drop.cause, drop.frames)
    };
    let all: Vec<_> = row.drops.iter().map(one).collect();
    if all.is_empty() {
        "-".to_owned()
    } else {
        all.join(", ")
    }
}

/// Returns the newest rates as blocks; a full one is the highest of them and of the target.
fn spark(history: &[u64], target_bps: Option<u64>) -> String {
    let newest = history
        .get(history.len().saturating_sub(SPARK)..)
        .unwrap_or_default();
    let highest = newest
        .iter()
        .copied()
        .chain(target_bps)
        .max()
        .unwrap_or(0)
        .max(1);
    let block = |rate: &u64| {
        let eighths = (u128::from(*rate) * 8).div_ceil(highest.into());
        let index = usize::try_from(eighths).unwrap_or(0);
        BLOCKS.get(index).copied().unwrap_or('█')
    };
    newest.iter().map(block).collect()
}

/// Returns a time that may be far below a millisecond.
fn short_time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{}.{} µs", ns / 1_000, ns / 100 % 10),
        _ => terse::ms(ns),
    }
}

/// Draws one class: history, lateness as a histogram, and every statistic.
fn close_up(frame: &mut Frame<'_>, area: Rect, row: &Row) {
    let [title, history, rest] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(4),
        Constraint::Min(3),
    ])
    .areas(area);
    let late = row
        .late
        .map_or("no lateness".to_owned(), |late| lateness(&late));
    let rate = |rate: Option<u64>| rate.map_or("-".to_owned(), terse::rate);
    let name = row
        .name
        .as_deref()
        .map_or(String::new(), |name| format!("{name} "));
    let lines = vec![
        Line::from(format!(
            "{} {name}{} {}: {} of {}, ceil {}",
            row.device,
            row.class,
            row.of_type,
            rate(row.rate_bps),
            rate(row.target_bps),
            rate(row.ceil_bps)
        )),
        Line::from(late),
    ];
    frame.render_widget(Paragraph::new(lines), title);
    frame.render_widget(Sparkline::default().data(&row.history_bps), history);
    let [left, right] =
        Layout::horizontal([Constraint::Length(48), Constraint::Min(20)]).areas(rest);
    frame.render_widget(Paragraph::new(statistics(row)), left);
    frame.render_widget(Paragraph::new(histogram(&row.stats.late_frames)), right);
}

fn lateness(late: &Late) -> String {
    format!(
        "late by at most {} (half), {} (99 %), {} (all) of {} frames",
        short_time(late.median_ns),
        short_time(late.p99_ns),
        short_time(late.max_ns),
        late.frames
    )
}

fn statistics(row: &Row) -> Vec<Line<'static>> {
    let has = |shown: Shown, number: u64| {
        (shown != Shown::Nonzero || number != 0) && shown.applies(row.of_type, row.stats.rate_bps)
    };
    let line = |stat: &tcpsp::stats::Stat<ClassStats>| {
        let Value::Number(number) = (stat.value)(&row.stats) else {
            return None;
        };
        let text = match stat.unit {
            Unit::Rate => terse::rate(number),
            Unit::Time => short_time(number),
            Unit::Bytes => terse::size(number),
            Unit::Hidden => return None,
            _ => units::display::count(number),
        };
        has(stat.shown, number).then(|| Line::from(format!("{:<20} {text}", stat.key)))
    };
    ClassStats::TABLE.iter().filter_map(line).collect()
}

/// Returns frames by lateness since the class was made, a line for each bucket in use.
fn histogram(buckets: &[u64]) -> Vec<Line<'static>> {
    const WIDTH: u128 = 24;
    let highest = buckets.iter().copied().max().unwrap_or(0).max(1);
    let mut lines = vec![Line::from("frames by lateness, byte times")];
    for (i, count) in (0u32..).zip(buckets).filter(|(_, count)| **count > 0) {
        let width = (u128::from(*count) * WIDTH).div_ceil(highest.into());
        let bar = "█".repeat(usize::try_from(width).unwrap_or(0));
        let from = match i {
            0 => "on time".to_owned(),
            _ => format!("from {}", 1u64 << (i - 1)),
        };
        let count = units::display::count(*count);
        lines.push(Line::from(format!("{from:>13} {bar} {count}")));
    }
    lines
}
