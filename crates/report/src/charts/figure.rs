// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plot with its title and caption, drawn for wide and narrow pages.

use crate::svg::Canvas;

/// A plot with its title and caption.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Short, for file names.
    pub slug: &'static str,
    /// Its title.
    pub title: String,
    /// What is drawn, and how to read it.
    pub caption: String,
    wide: Canvas,
    narrow: Canvas,
}

/// Width of the wide form, in the style sheet's pixels.
pub const WIDE: f64 = 860.0;
/// Width of the narrow form: a phone's.
pub const NARROW: f64 = 360.0;

impl Figure {
    /// Draws both forms.
    pub fn new(
        slug: &'static str,
        title: impl Into<String>,
        caption: impl Into<String>,
        draw: impl Fn(f64) -> Canvas,
    ) -> Self {
        let (title, caption) = (title.into(), caption.into());
        Self {
            slug,
            title,
            caption,
            wide: draw(WIDE),
            narrow: draw(NARROW),
        }
    }

    /// As a file of its own.
    #[must_use]
    pub fn svg(&self) -> String {
        self.wide.standalone(&self.title)
    }

    /// Both forms, for the page's style sheet to choose from.
    #[must_use]
    pub fn inline(&self) -> String {
        self.wide.inline("plot", &self.title) + &self.narrow.inline("plot-narrow", &self.title)
    }
}

/// A page as narrow as a phone's.
pub fn is_narrow(width: f64) -> bool {
    width < 500.0
}
