// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of `pspacer stalls`.

use draw::Figure;
use draw::page::{MOST_ROWS, MOST_SECTIONS, Text, document, figures, folded, paragraph};
use draw::table::Table;
use maud::{Markup, html};
use units::display::time;

use super::stream::{Stream, stream};

/// Most stalls that are drawn as closeups.
const CLOSEUPS: usize = 3;
/// Part of a stall's length that its closeup shows before and after it.
const AROUND: f64 = 0.5;

/// A connection as the page describes it.
#[derive(Clone, Debug, Default)]
pub struct StallConnection {
    /// Its name, for example `#3 10.1.1.1:5000 → 10.1.2.1:80`.
    pub name: String,
    /// The verdict, in one sentence.
    pub verdict: String,
    /// Other facts, a sentence each.
    pub facts: Vec<String>,
    /// Its stalls, in order of time.
    pub stalls: Vec<StallRow>,
    /// Its events, if they were kept, with the times of the first and the last one that is drawn,
    /// s.
    pub drawn: Option<(Stream, (f64, f64))>,
}

/// A stall as the page describes it.
#[derive(Clone, Debug, Default)]
pub struct StallRow {
    /// Begin, seconds after the capture's first segment.
    pub start_s: f64,
    pub duration_s: f64,
    /// What the stall cost, for example `1.2 MB`, if that is known.
    pub cost: Option<String>,
    pub cause: String,
    /// Whose side caused it, and how certain that is.
    pub side: String,
    pub explanation: String,
    /// What to do about it.
    pub advice: String,
    /// Numbers of the packets that show it.
    pub evidence: String,
    /// What the verdict follows from.
    pub causes: Option<Table>,
}

/// Returns the page of one or more captures, with what is known about them. `sums` are pictures of
/// all connections together. The connections come in the order given; only the first [`MOST_SECTIONS`] have a section.
pub fn stalls_html(
    title: &str,
    facts: &[(&str, String)],
    notes: &[String],
    sums: &[Figure],
    connections: &[StallConnection],
) -> String {
    let body = html! {
        @for note in notes { (paragraph(note)) }
        @if !sums.is_empty() {
            section {
                h2 { "What cost the time" }
                (figures(sums))
            }
        }
        @if connections.len() > 1 {
            section {
                h2 { "Connections" }
                (folded(
                    "Every connection",
                    &overview(connections),
                    connections.len() > MOST_SECTIONS,
                ))
            }
        }
        @for connection in connections.iter().take(MOST_SECTIONS) {
            (section(connection))
        }
        footer {
            "Times count from the capture's first TCP segment, bytes are of payload. What a stall cost is \
             what the rate before it would have brought in the time, less what came. Numbers of packets are \
             those of the capture; of several files, of the merged one."
        }
    };
    document(title, "", facts, &body)
}

/// Returns the plots of a connection: the whole connection, then its longest stalls.
pub fn stall_figures(connection: &StallConnection) -> Vec<Figure> {
    let Some((events, (begin_s, end_s))) = &connection.drawn else {
        return Vec::new();
    };
    let all = stream(
        "transfer",
        "The transfer over time",
        "Each upright stroke is data sent, over its sequence numbers; retransmitted data stands below the \
         front. The gray line is what was acknowledged: where it is level nothing arrives in order. Shades are \
         the stalls, by number; pale ones are slow phases, in which something moved.",
        events,
        (*begin_s, *end_s),
    );
    let mut figures = vec![all];
    let mut longest: Vec<_> = connection.stalls.iter().enumerate().collect();
    longest.sort_by(|a, b| b.1.duration_s.total_cmp(&a.1.duration_s));
    longest.truncate(CLOSEUPS);
    longest.sort_by_key(|(i, _)| *i);
    let whole_s = end_s - begin_s;
    for (i, stall) in longest {
        let around_s = stall.duration_s * AROUND;
        let range_s = (
            (stall.start_s - around_s).max(*begin_s),
            (stall.start_s + stall.duration_s + around_s).min(*end_s),
        );
        // Skips a closeup that would nearly repeat the first plot.
        if range_s.1 - range_s.0 > whole_s * 0.7 {
            continue;
        }
        let title = format!("Stall {} closely: {}", i + 1, stall.cause);
        figures.push(stream("stop", &title, &stall.explanation, events, range_s));
    }
    figures
}

fn overview(connections: &[StallConnection]) -> Table {
    let mut table = Table::default();
    table.text("connection");
    table.number("stalls", "");
    table.number("stalled", "s");
    table.text("verdict");
    for connection in connections {
        let stalled_s: f64 = connection.stalls.iter().map(|s| s.duration_s).sum();
        let row = [
            connection.name.clone(),
            connection.stalls.len().to_string(),
            format!("{stalled_s:.3}"),
            connection.verdict.clone(),
        ];
        table.rows.push(row.into_iter().map(Into::into).collect());
    }
    table
}

fn section(connection: &StallConnection) -> Markup {
    let class = if connection.stalls.is_empty() {
        "ok"
    } else {
        "no"
    };
    let stalls = html! {
        @for (i, one) in connection.stalls.iter().enumerate() { (stall(i + 1, one)) }
    };
    let all = connection.stalls.len();
    html! {
        section {
            h2 { (Text(&connection.name)) }
            p class={ "verdict " (class) } { (Text(&connection.verdict)) }
            @for fact in &connection.facts { (paragraph(fact)) }
            (figures(&stall_figures(connection)))
            @if all > MOST_ROWS {
                details { summary { "Every stall (" (all) ")" } (stalls) }
            } @else {
                (stalls)
            }
        }
        "\n"
    }
}

fn stall(number: usize, stall: &StallRow) -> Markup {
    let cost = stall.cost.as_ref();
    let cost = cost.map_or_else(String::new, |cost| format!(", cost {cost}"));
    let heading = format!(
        "{number}. At {:.3} s for {}{cost}: {}",
        stall.start_s,
        time(stall.duration_s),
        stall.cause
    );
    html! {
        h3 { (Text(&heading)) }
        (paragraph(&format!("{} ({}.)", stall.explanation, stall.side)))
        @if !stall.advice.is_empty() {
            (paragraph(&format!("→ {}", stall.advice)))
        }
        @if !stall.evidence.is_empty() {
            p.source { "Packets " (Text(&stall.evidence)) }
        }
        @if let Some(causes) = stall.causes.as_ref().filter(|_| number <= MOST_ROWS) {
            (folded("What each cause predicts, and what was seen", causes, true))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(name: &str, stalls: usize) -> StallConnection {
        let stall = |i: usize| StallRow {
            start_s: i as f64,
            duration_s: 0.1 + i as f64 / 100.0,
            cause: format!("cause <{i}>"),
            ..StallRow::default()
        };
        StallConnection {
            name: name.to_owned(),
            verdict: "It & it stopped.".to_owned(),
            stalls: (0..stalls).map(stall).collect(),
            drawn: Some((Stream::default(), (0.0, 10.0))),
            ..StallConnection::default()
        }
    }

    #[test]
    fn the_longest_stalls_are_drawn_closely() {
        let figures = stall_figures(&connection("a", 5));
        let titles: Vec<_> = figures.iter().map(|f| f.title.as_str()).collect();
        let expected = [
            "The transfer over time",
            "Stall 3 closely: cause <2>",
            "Stall 4 closely: cause <3>",
            "Stall 5 closely: cause <4>",
        ];
        assert_eq!(titles, expected);
    }

    #[test]
    fn everything_from_outside_is_escaped() {
        let page = stalls_html(
            "<t>",
            &[("<f>", "<v>".into())],
            &["<n>".into()],
            &[],
            &[connection("<c>", 1), connection("d", 0)],
        );
        for bad in ["<t>", "<f>", "<v>", "<n>", "<c>", "cause <0>", "It & it"] {
            assert!(!page.contains(bad), "{bad}");
        }
        assert!(page.contains("<h2>Connections</h2>"));
    }
}
