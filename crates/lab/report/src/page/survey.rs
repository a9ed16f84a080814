// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of `pspacer measure`.

use draw::page::{document, figures};
use maud::html;
use metrics::survey::Survey;

use crate::figures::cell_figures;
use crate::page::parts::{foot, window};

/// Returns the page of a capture or timeline that belongs to no scenario, with what is known about
/// it.
pub fn survey_html(title: &str, facts: &[(&str, String)], survey: &Survey) -> String {
    let body = html! {
        section {
            h2 { "Flows" }
            (figures(&cell_figures(&survey.curves)))
            (window(&survey.window, false))
        }
        (foot(""))
    };
    document(title, "", facts, &body)
}
