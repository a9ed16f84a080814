// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements of a self-contained HTML page.

use maud::{Markup, PreEscaped, Render, html};

use crate::escape::escape;
use crate::figure::Figure;
use crate::table::{Column, Table, Tone, Value};
use crate::theme::PAGE_STYLE;

/// Most cells or connections that have a section of their own.
pub const MOST_SECTIONS: usize = 24;
/// Most rows of a table that is shown; a longer table is folded away.
pub const MOST_ROWS: usize = 12;

/// Text of a name, a value or a file. maud escapes what HTML needs; this escapes what XML
/// needs as well, because pages hold SVG.
pub struct Text<'a>(pub &'a str);

impl Render for Text<'_> {
    fn render_to(&self, buffer: &mut String) {
        buffer.push_str(&escape(self.0));
    }
}

/// Returns a whole page.
pub fn document(title: &str, source: &str, facts: &[(&str, String)], body: &Markup) -> String {
    let page = html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (Text(title)) }
                style { (PreEscaped(PAGE_STYLE)) }
            }
            body {
                main {
                    header {
                        h1 { (Text(title)) }
                        @if !source.is_empty() {
                            p.source { (Text(source)) }
                        }
                        dl.facts {
                            @for (name, value) in facts {
                                div { dt { (Text(name)) } dd { (Text(value)) } }
                            }
                        }
                    }
                    (body)
                }
            }
        }
    };
    page.into_string()
}

pub fn paragraph(text: &str) -> Markup {
    html! { p { (Text(text)) } "\n" }
}

/// Returns a figure with its title and caption.
pub fn figure(figure: &Figure) -> Markup {
    html! {
        figure {
            h3 { (Text(&figure.title)) }
            figcaption { (Text(&figure.caption)) }
            (PreEscaped(figure.inline()))
        }
        "\n"
    }
}

/// Returns figures, one below the other.
pub fn figures(of: &[Figure]) -> Markup {
    html! { @for one in of { (figure(one)) } }
}

/// Returns a table; if `fold`, it is hidden behind its summary.
pub fn folded(summary: &str, of: &Table, fold: bool) -> Markup {
    html! {
        @if fold {
            details { summary { (Text(summary)) } (table(of)) }
        } @else {
            (table(of))
        }
    }
}

pub fn table(table: &Table) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr { @for column in &table.columns { (head(column)) } } }
                "\n"
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (i, (value, column)) in row.iter().zip(&table.columns).enumerate() {
                                (cell(i, value, column))
                            }
                        }
                        "\n"
                    }
                }
            }
        }
        "\n"
    }
}

fn head(column: &Column) -> Markup {
    html! {
        th scope="col" class=[column.is_text.then_some("t")] {
            (Text(&column.title))
            @if !column.unit.is_empty() {
                small { (Text(&column.unit)) }
            }
        }
    }
}

fn cell(index: usize, value: &Value, column: &Column) -> Markup {
    if index == 0 && column.is_text {
        return html! { th scope="row" class="t" { (Text(&value.text)) } };
    }
    let class = match (column.is_text, value.tone) {
        (true, Tone::Plain) => Some("t"),
        (true, Tone::Good) => Some("t good"),
        (true, Tone::Bad) => Some("t bad"),
        (false, Tone::Plain) => None,
        (false, Tone::Good) => Some("good"),
        (false, Tone::Bad) => Some("bad"),
    };
    html! { td class=[class] { (Text(&value.text)) } }
}
