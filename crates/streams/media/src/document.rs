// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of `pspacer measure --st2110`.

use draw::histogram::{Histogram, histogram};
use draw::level::{Level, level};
use draw::page::{Text, document, figure, paragraph, table};
use draw::table::Table;
use maud::html;

/// What the page shows of a stream.
#[derive(Clone, Debug, Default)]
pub struct StreamSection {
    pub heading: String,
    /// What was found, in sentences.
    pub sentences: Vec<String>,
    pub table: Table,
    /// Its levels over time.
    pub levels: Vec<Level>,
    pub histograms: Vec<Histogram>,
}

/// Returns the page of media streams: all of them in one table, then a section for each.
pub fn streams_html(
    title: &str,
    facts: &[(&str, String)],
    overviews: &[Table],
    sections: &[StreamSection],
) -> String {
    let body = html! {
        section {
            h2 { "Streams" }
            @for overview in overviews { (table(overview)) }
        }
        @for section in sections {
            section {
                h2 { (Text(&section.heading)) }
                @for sentence in &section.sentences { (paragraph(sentence)) }
                @if !section.table.rows.is_empty() { (table(&section.table)) }
                @for one in &section.levels { (figure(&level(one))) }
                @for one in &section.histograms { (figure(&histogram(one))) }
            }
        }
        footer {
            "Times are those of the capture. VRX and Cinst are in packets, by SMPTE ST 2110-21."
        }
    };
    document(title, "", facts, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_for_each_stream() {
        let section = |heading: &str| StreamSection {
            heading: heading.to_owned(),
            sentences: vec!["It is narrow & even.".to_owned()],
            levels: vec![Level::default()],
            ..StreamSection::default()
        };
        let page = streams_html(
            "a.pcap",
            &[("Streams", "2".to_owned())],
            &[],
            &[section("one"), section("two")],
        );
        for expected in ["<h2>one</h2>", "<h2>two</h2>", "narrow &amp; even", "<svg"] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
    }
}
