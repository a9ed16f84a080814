// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the reservations that managers told of: a row for each listener.

use manager_proto::overview::{ListenerRow, Overview, ReservationRow};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row as Cells, Table};
use units::display::{count, time};
use units::time::NS_PER_S;

const COLUMNS: [(&str, Constraint); 7] = [
    ("reservation", Constraint::Length(12)),
    ("from, to", Constraint::Length(16)),
    ("bytes", Constraint::Length(8)),
    ("bound", Constraint::Length(9)),
    ("worst measured", Constraint::Length(28)),
    ("free of the tightest link", Constraint::Length(25)),
    ("in force", Constraint::Min(8)),
];

/// Returns the number of lines that reservations need, with their heads; 0 if no manager is asked.
pub(crate) fn lines(overview: Option<&Overview>) -> u16 {
    let Some(overview) = overview else {
        return 0;
    };
    let rows = overview.reservations.iter().map(|row| row.listeners.len());
    // A line of words, and the heads where there are rows.
    let lines = match rows.sum::<usize>() {
        0 => 1,
        rows => rows + 2,
    };
    u16::try_from(lines + away(overview).count()).unwrap_or(u16::MAX)
}

/// Returns a line for each manager that does not answer.
fn away(overview: &Overview) -> impl Iterator<Item = String> {
    overview.managers.iter().filter_map(|of| {
        let problem = of.problem.as_ref()?;
        Some(format!("manager {} does not answer: {problem}", of.manager))
    })
}

pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, overview: &Overview) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let away: Vec<_> = away(overview)
        .map(|line| Line::styled(line, bold))
        .collect();
    let height = u16::try_from(away.len()).unwrap_or(u16::MAX);
    let [head, problems, below] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(height),
        Constraint::Min(0),
    ])
    .areas(area);
    frame.render_widget(Line::from(summary(overview)), head);
    frame.render_widget(Paragraph::new(away), problems);
    let all = overview.reservations.iter();
    let rows = all.flat_map(|row| row.listeners.iter().map(move |of| cells(row, of)));
    let header = Cells::new(COLUMNS.map(|(name, _)| name)).style(bold);
    let table = Table::new(rows, COLUMNS.map(|(_, width)| width))
        .header(header)
        .column_spacing(1);
    if !overview.reservations.is_empty() {
        frame.render_widget(table, below);
    }
}

fn summary(overview: &Overview) -> String {
    let all = overview.reservations.iter().flat_map(|row| &row.listeners);
    let above = all.filter(|of| of.is_above() == Some(true)).count();
    let mut text = format!("reservations: {}", overview.reservations.len());
    if above > 0 {
        text += &format!("; {above} measured above the bound");
    }
    text
}

fn cells(row: &ReservationRow, listener: &ListenerRow) -> Cells<'static> {
    let bytes = row.links.iter().map(|link| link.bytes).max();
    let all = [
        row.id.clone(),
        format!("{}, {}", row.talker, listener.name),
        bytes.map_or("-".to_owned(), count),
        delay(listener.bound_ns),
        measured(listener),
        margin(row),
        if row.in_force {
            "yes".to_owned()
        } else {
            format!("not at {}", row.not_in_force.join(" "))
        },
    ];
    let style = match listener.is_above() {
        Some(true) => Style::new().add_modifier(Modifier::BOLD),
        _ => Style::new(),
    };
    Cells::new(all.map(Cell::from)).style(style)
}

fn delay(ns: u64) -> String {
    time(ns as f64 / NS_PER_S as f64)
}

fn measured(listener: &ListenerRow) -> String {
    let Some(of) = listener.measured else {
        return "not measured".to_owned();
    };
    let above = match listener.is_above() {
        Some(true) => " ABOVE",
        _ => "",
    };
    let lost = match of.lost_packets {
        0 => String::new(),
        lost => format!(", {} lost", count(lost)),
    };
    let worst = delay(of.worst_delay_ns);
    format!("{worst}{above} of {}{lost}", count(of.packets))
}

fn margin(row: &ReservationRow) -> String {
    let Some(name) = &row.tightest else {
        return "not known".to_owned();
    };
    let links = &row.links;
    let known = links.iter().find(|link| link.link == *name);
    let free = known.and_then(|link| link.free_bytes).unwrap_or(0);
    let unknown = links
        .iter()
        .filter(|link| link.free_bytes.is_none())
        .count();
    let rest = match unknown {
        0 => String::new(),
        unknown => format!(", {unknown} not known"),
    };
    format!("{} {name}{rest}", count(free))
}
