// SPDX-License-Identifier: MIT OR Apache-2.0
//! Determines what the user's terminal can show, and what the user wants to see.

use std::io::{IsTerminal, stdout};
use std::sync::OnceLock;

use clap::ValueEnum;
use draw::Style;
use terminal_size::{Width, terminal_size_of};

/// Width of a terminal that does not report it, columns.
const WIDTH: u16 = 100;

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb
    #[default]
    Auto,
    /// Into files and pipes too
    Always,
    /// Nowhere
    Never,
}

#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    colour: Colour,
    quiet: bool,
}

static WANTED: OnceLock<Wanted> = OnceLock::new();

/// Stores the choices of the command line.
pub fn want(colour: Colour, quiet: bool) {
    // The function is called once; a second call would change nothing.
    let _ = WANTED.set(Wanted { colour, quiet });
}

fn wanted() -> Wanted {
    WANTED.get().copied().unwrap_or_default()
}

/// Returns whether only results and errors are wanted.
pub fn is_quiet() -> bool {
    wanted().quiet
}

/// Returns the style of standard output.
pub fn style() -> Style {
    let is_terminal = stdout().is_terminal();
    let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
        || std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let width = || match terminal_size_of(stdout()) {
        Some((Width(columns), _)) if columns > 0 => columns,
        _ if is_terminal => WIDTH,
        _ => Style::PLAIN.width,
    };
    Style {
        colour: match wanted().colour {
            Colour::Auto => is_terminal && !refused,
            Colour::Always => true,
            Colour::Never => false,
        },
        width: columns.unwrap_or_else(width),
    }
}
