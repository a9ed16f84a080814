// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements that several pages of runs use.

use draw::page::{Text, folded, table};
use maud::{Markup, html};
use metrics::flow::WIRE;
use scenario::result::WindowResult;
use units::display::short;

use crate::table as tables;

/// Most flows of a window whose rows are shown; with more, a summary is shown and the rows are
/// folded away.
pub const MOST_FLOWS: usize = 16;

/// Returns the flows of one window; the window is named only where there are several.
pub fn window(window: &WindowResult, several: bool) -> Markup {
    let flows = window.flows.iter().filter(|f| f.name != WIRE).count();
    let wires = tables::wires(window);
    html! {
        @if several {
            h3 {
                "Window “" (Text(&window.name)) "”, " (short(window.from_s, 3)) " s to "
                (short(window.to_s, 3)) " s"
            }
            "\n"
        }
        @if flows > MOST_FLOWS {
            (table(&tables::flow_summary(window)))
            (folded("Every flow", &tables::flows(window), true))
        } @else {
            (table(&tables::flows(window)))
        }
        @if !wires.rows.is_empty() {
            (table(&wires))
        }
    }
}

/// Returns the foot of a page: how figures are to be read, and `more`.
pub fn foot(more: &str) -> Markup {
    html! {
        footer {
            "Rates are of the link layer (Ethernet header included, FCS not) unless a \
             target says otherwise. Gaps run from the start of one frame to the start of the \
             next. " (Text(more))
        }
        "\n"
    }
}
