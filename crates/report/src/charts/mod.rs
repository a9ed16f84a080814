// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plots. Each is drawn twice, for pages wide and narrow.

mod bandwidth;
mod chart;
mod closeup;
mod compare;
mod distribution;
mod gaps;
mod grid;
mod histogram;
mod lines;
mod queue;
mod sender;
mod stalls;
mod sweep;
mod transfer;
mod waits;

pub use bandwidth::bandwidth;
pub use chart::{Chart, ChartCurve, chart};
pub use closeup::closeups;
pub use compare::compare;
pub use distribution::{Distribution, delays, lateness, retries};
pub use gaps::gaps;
pub use histogram::{Histogram, HistogramBar, histogram};
pub use queue::queue;
pub use sender::{SenderRecord, Variables, sender_scoreboard, sender_sequence, sender_window};
pub use stalls::{Sample, Stream, Stroke, stream};
pub use sweep::sweep;
pub use transfer::{transfer, transfers};
pub use waits::waits;

use crate::svg::Canvas;

/// A plot with its words.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Short, for file names.
    pub slug: &'static str,
    /// Names it.
    pub title: String,
    /// Says what one should see.
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
    fn new(
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
fn is_narrow(width: f64) -> bool {
    width < 500.0
}
