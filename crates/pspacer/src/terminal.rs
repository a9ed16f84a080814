// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user's terminal can show.

use std::io::IsTerminal;

use report::Style;

/// For standard output: colours only on a terminal whose user did not refuse
/// them.
pub fn style() -> Style {
    let terminal = std::io::stdout().is_terminal();
    let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
        || std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    Style {
        colour: terminal && !refused,
        width: columns.unwrap_or(if terminal { 100 } else { Style::PLAIN.width }),
    }
}
