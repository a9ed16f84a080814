// SPDX-License-Identifier: MIT OR Apache-2.0
//! A plot with its title and caption, drawn for wide and narrow pages.

use crate::svg::Canvas;

/// A plot and the name of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plot {
    /// Name of the file, for example `bandwidth.svg`.
    pub name: String,
    /// The SVG document.
    pub svg: String,
}

/// A plot with its title and caption.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Short name, for file names.
    pub slug: &'static str,
    pub title: String,
    /// The caption: what is drawn, and how to read it.
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

    /// Returns the plot as a file.
    pub fn plot(&self) -> Plot {
        Plot {
            name: format!("{}.svg", self.slug),
            svg: self.svg(),
        }
    }

    /// Returns the wide form as an SVG file.
    pub fn svg(&self) -> String {
        self.wide.standalone(&self.title)
    }

    /// Returns both forms as HTML; the page's style sheet chooses between them.
    pub fn inline(&self) -> String {
        self.wide.inline("plot", &self.title) + &self.narrow.inline("plot-narrow", &self.title)
    }
}

/// Returns whether a page is as narrow as a phone's.
pub fn is_narrow(width: f64) -> bool {
    width < 500.0
}
