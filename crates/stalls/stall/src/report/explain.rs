// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints what a verdict follows from: what was asked of the pause, and what that makes of each cause.

use std::io::{self, Write};

use draw::table::Table;
use draw::terminal::{self, Style};

use super::phrases::{cause, words};
use crate::Stall;
use crate::predictions::{Answers, Ask, ROWS, Row, State};

/// Returns the answers: each question, and whether it held.
pub fn answers(answers: Answers) -> Table {
    let mut table = Table::default();
    table.text("asked of the pause");
    table.text("answer");
    for ask in Ask::ALL {
        let answer = match answers.of(ask) {
            Some(true) => "held",
            Some(false) => "refuted",
            None => "could not be asked",
        };
        let text = ask.text().to_owned();
        table.rows.push(vec![text.into(), answer.to_owned().into()]);
    }
    table
}

/// Returns the causes: what the answers make of each, and which of them decide it.
pub fn causes(answers: Answers) -> Table {
    let mut table = Table::default();
    table.text("cause");
    table.text("side");
    table.text("state");
    table.text("because");
    for row in &ROWS {
        let state = row.state(answers);
        table.rows.push(vec![
            words(&row.cause).into(),
            words(&row.cause.side()).into(),
            words(&state).into(),
            because(row, state, answers).into(),
        ]);
    }
    table
}

/// Names the answers that decide a state.
fn because(row: &Row, state: State, answers: Answers) -> String {
    let named = |all: &[(Ask, bool)], is_it: &dyn Fn(Ask, bool) -> bool| {
        let those = all.iter().filter(|&&(ask, is)| is_it(ask, is));
        let not = |is: bool| if is { "" } else { "not: " };
        let texts = those.map(|&(ask, is)| format!("{}{}", not(is), words(&ask)));
        texts.collect::<Vec<_>>().join(", ")
    };
    match state {
        State::Refuted => {
            let failed = named(row.must, &|ask, is| answers.of(ask) == Some(!is));
            format!("needs {failed}")
        }
        State::Untested => {
            let open = named(row.must, &|ask, _| answers.of(ask).is_none());
            format!("unknown {open}")
        }
        State::Shown => named(row.shows, &|ask, is| answers.of(ask) == Some(is)),
        State::Left => String::new(),
    }
}

/// Writes both tables of a stall.
pub fn write(out: &mut impl Write, stall: &Stall, style: Style) -> io::Result<()> {
    let (cause, confidence) = (cause(stall), words(&stall.confidence));
    let number = stall.number.unwrap_or(0);
    writeln!(out, "Stall {number}: {cause}, {confidence} confidence")?;
    if stall.asked.are_none() {
        return writeln!(
            out,
            "It follows from more than one pause, or from what is before the first data: no table."
        );
    }
    let both = [answers(stall.asked), causes(stall.asked)];
    for table in both {
        write!(out, "\n{}", terminal::table(&table, style))?;
    }
    Ok(())
}
