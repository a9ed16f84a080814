// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plots one direction of a connection as its packets show it: sequence numbers with what was
//! acknowledged, retransmitted and SACKed; bytes in flight and the window; throughput. Stalls are
//! shaded.

use std::collections::BTreeMap;

use draw::figure::{Figure, is_narrow};
use draw::lines::{legend, legend_rows};
use draw::scale::{Kind, Scale, round_up};
use draw::svg::{Anchor, Canvas, Frame, text_width};
use units::display::{Unit, rate_unit, short, time_unit};

/// Bytes of a stream at a time: time in seconds, first byte, byte after the last.
pub type Stroke = (f64, u64, u64);
/// A value at a time: time in seconds, value.
pub type Sample = (f64, f64);

/// The series of the plot, each in order of time. Offsets count from the stream's first byte.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Data not seen before.
    pub new: Vec<Stroke>,
    pub retransmitted: Vec<Stroke>,
    pub sacked: Vec<Stroke>,
    /// SACK blocks that report data that arrived twice (DSACK).
    pub duplicates: Vec<Stroke>,
    /// The next byte that the receiver expects.
    pub acked: Vec<Sample>,
    /// The window's right edge: the first byte for which the receiver has no room.
    pub edge: Vec<Sample>,
    pub flight: Vec<Sample>,
    /// The receiver's window, bytes.
    pub window: Vec<Sample>,
    /// Acknowledged bits per second, each in the middle of its interval.
    pub rate: Vec<Sample>,
    pub stalls: Vec<Shade>,
}

/// A stall, as it is shaded.
#[derive(Clone, Debug, Default)]
pub struct Shade {
    pub begin_s: f64,
    pub end_s: f64,
    pub name: String,
    /// Whether data moved, slowly. Its shade is paler and lies below the others, which it may
    /// contain.
    pub is_slow: bool,
}

/// Resolution of the plot, in the style sheet's pixels.
const GRAIN: f64 = 0.5;
/// Least height of the stroke of retransmitted data, in units of [`GRAIN`], so that a single
/// retransmitted segment is visible in a transfer of thousands.
const SHORTEST_GRAINS: i64 = 8;
const SEQUENCE_HEIGHT: f64 = 280.0;
const PANEL_HEIGHT: f64 = 110.0;
const LEGEND_ROW: f64 = 17.0;
/// Room for the title above a panel, and for the axis below it, pixels.
const ABOVE: f64 = 30.0;
const BELOW: f64 = 26.0;

const NEW: usize = 0;
const RETRANSMITTED: usize = 1;
const SACKED: usize = 2;
const DUPLICATE: usize = 3;
const ACKED: usize = 7;
const EDGE: usize = 4;

const BYTES: [Unit; 4] = [
    Unit {
        name: "bytes",
        size: 1.0,
    },
    Unit {
        name: "kB",
        size: 1e3,
    },
    Unit {
        name: "MB",
        size: 1e6,
    },
    Unit {
        name: "GB",
        size: 1e9,
    },
];

fn byte_unit(largest: f64) -> Unit {
    let fits = BYTES.iter().rev().find(|u| largest >= u.size * 2.0);
    *fits.unwrap_or(&BYTES[0])
}

/// Draws the figure of what happened in `range_s`. `slug` names its file.
pub fn stream(
    slug: &'static str,
    title: &str,
    caption: &str,
    stream: &Stream,
    range_s: (f64, f64),
) -> Figure {
    Figure::new(slug, title, caption, |width| {
        Drawing::new(stream, range_s, width).draw()
    })
}

struct Drawing<'a> {
    stream: &'a Stream,
    range_s: (f64, f64),
    width: f64,
    seconds: Unit,
    canvas: Canvas,
    /// Where the next panel begins, pixels.
    top: f64,
    narrow: bool,
}

/// Returns the last element of `all` before a range of time, and the elements within the range.
fn part<T>(all: &[T], range_s: (f64, f64), at: impl Fn(&T) -> f64) -> (Option<&T>, Vec<&T>) {
    let before = all.iter().rev().find(|v| at(v) < range_s.0);
    let inside = all
        .iter()
        .filter(|v| (range_s.0..=range_s.1).contains(&at(v)));
    (before, inside.collect())
}

impl<'a> Drawing<'a> {
    fn new(stream: &'a Stream, range_s: (f64, f64), width: f64) -> Self {
        let narrow = is_narrow(width);
        let entries = Self::entries(stream);
        let names: Vec<_> = entries.iter().map(|e| e.0).collect();
        let rows = legend_rows(&names, width);
        let top = rows.len() as f64 * LEGEND_ROW + 4.0;
        let panels = 3.0 * (ABOVE + BELOW) + SEQUENCE_HEIGHT + 2.0 * PANEL_HEIGHT;
        let mut canvas = Canvas::new(width, top + panels + 22.0);
        legend(&mut canvas, &entries, &rows, 14.0);
        Self {
            stream,
            range_s,
            width,
            seconds: time_unit(range_s.1 - range_s.0),
            canvas,
            top,
            narrow,
        }
    }

    /// Returns the legend's entries, without those that do not occur.
    fn entries(stream: &Stream) -> Vec<(&'static str, usize)> {
        [
            ("sent", NEW, !stream.new.is_empty()),
            (
                "retransmitted",
                RETRANSMITTED,
                !stream.retransmitted.is_empty(),
            ),
            ("acknowledged", ACKED, !stream.acked.is_empty()),
            ("SACKed", SACKED, !stream.sacked.is_empty()),
            ("arrived twice", DUPLICATE, !stream.duplicates.is_empty()),
            ("window", EDGE, !stream.edge.is_empty()),
        ]
        .into_iter()
        .filter(|e| e.2)
        .map(|e| (e.0, e.1))
        .collect()
    }

    fn draw(mut self) -> Canvas {
        self.sequence();
        self.flight();
        self.rate();
        self.canvas
    }

    /// Draws the axes, shades and ticks of the next panel.
    fn panel(
        &mut self,
        title: &str,
        height: f64,
        (low, high): (f64, f64),
        size: f64,
        last: bool,
    ) -> (Scale, Scale) {
        let top = self.top + ABOVE;
        let widest = text_width("0,000.0");
        let frame = Frame {
            left: widest + 12.0,
            right: self.width - 10.0,
            top,
            bottom: top + height,
        };
        self.top = frame.bottom + BELOW;
        let x = Scale::new(
            Kind::Linear,
            self.range_s.0,
            self.range_s.1,
            frame.left,
            frame.right,
        );
        let y = Scale::new(Kind::Linear, low, high, frame.bottom, frame.top);
        self.shades(&frame, &x, height > PANEL_HEIGHT);
        let titled = (frame.left, frame.top - 16.0);
        self.canvas.text(titled, Anchor::Start, "label", title);
        let in_units = Scale::new(Kind::Linear, low / size, high / size, 0.0, 1.0);
        let ticks: Vec<_> = in_units
            .ticks(if height > 200.0 { 6 } else { 3 })
            .into_iter()
            .map(|t| (t * size, short(t, 3)))
            .collect();
        frame.y_axis(&mut self.canvas, &y, &ticks, "");
        let unit = self.seconds.size;
        let ends = Scale::new(
            Kind::Linear,
            self.range_s.0 / unit,
            self.range_s.1 / unit,
            0.0,
            1.0,
        );
        let ticks: Vec<_> = ends
            .ticks(if self.narrow { 4 } else { 8 })
            .into_iter()
            .map(|t| (t * unit, short(t, 4)))
            .collect();
        let name = if last {
            format!("time, {}", self.seconds.name)
        } else {
            String::new()
        };
        frame.x_axis(&mut self.canvas, &x, &ticks, &name);
        (x, y)
    }

    /// Shades the stalls, slow phases below the others, and writes their names below the first
    /// panel's title: of the shorter ones first, because a longer one can be named elsewhere.
    fn shades(&mut self, frame: &Frame, x: &Scale, is_first: bool) {
        let stalls = self.stream.stalls.iter();
        let range = self.range_s;
        let mut shades: Vec<_> = stalls
            .filter(|s| s.end_s >= range.0 && s.begin_s <= range.1)
            .map(|s| {
                let left = x.at(s.begin_s);
                (s, left, x.at(s.end_s).max(left + 1.0))
            })
            .collect();
        shades.sort_by_key(|(shade, ..)| !shade.is_slow);
        for (shade, left, right) in &shades {
            let corners = [
                (*left, frame.top),
                (*right, frame.top),
                (*right, frame.bottom),
                (*left, frame.bottom),
            ];
            let class = if shade.is_slow {
                "band pale f1"
            } else {
                "band f1"
            };
            self.canvas.area(&corners, class);
        }
        if !is_first {
            return;
        }
        shades.sort_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1)));
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for (shade, left, right) in shades {
            let (left, right) = (left.max(frame.left), right.min(frame.right));
            let need = text_width(&shade.name) / 2.0;
            let places = [0.5, 0.25, 0.75, 0.1, 0.9].map(|part| left + part * (right - left));
            let is_free = |place: &&f64| {
                let (begin, end) = (**place - need - 3.0, **place + need + 3.0);
                taken.iter().all(|(b, e)| end <= *b || begin >= *e)
            };
            if let Some(&place) = places.iter().find(is_free) {
                let at = (place, frame.top - 3.0);
                self.canvas.text(at, Anchor::Middle, "note", &shade.name);
                taken.push((place - need - 3.0, place + need + 3.0));
            }
        }
    }

    fn sequence(&mut self) {
        let range = self.range_s;
        let strokes = [
            &self.stream.new,
            &self.stream.retransmitted,
            &self.stream.sacked,
            &self.stream.duplicates,
        ];
        let mut low = f64::INFINITY;
        let mut high = 0.0f64;
        for (_, start, end) in strokes
            .into_iter()
            .flat_map(|all| part(all, range, |s| s.0).1)
        {
            (low, high) = (low.min(*start as f64), high.max(*end as f64));
        }
        for (_, acked) in part(&self.stream.acked, range, |s| s.0).1 {
            (low, high) = (low.min(*acked), high.max(*acked));
        }
        if !low.is_finite() {
            low = 0.0;
        }
        // A window far larger than the data would flatten the data.
        let room = high + (high - low).max(1.0) * 0.3;
        for (_, edge) in part(&self.stream.edge, range, |s| s.0).1 {
            if *edge <= room {
                high = high.max(*edge);
            }
        }
        let unit = byte_unit(high);
        let title = format!("sequence number, {}", unit.name);
        let (x, y) = self.panel(&title, SEQUENCE_HEIGHT, (low, high), unit.size, false);
        let stream = self.stream;
        self.line(&stream.edge, &x, &y, EDGE);
        self.strokes(&stream.sacked, &x, &y, SACKED);
        self.strokes(&stream.new, &x, &y, NEW);
        self.line(&stream.acked, &x, &y, ACKED);
        self.strokes(&stream.retransmitted, &x, &y, RETRANSMITTED);
        self.strokes(&stream.duplicates, &x, &y, DUPLICATE);
    }

    fn flight(&mut self) {
        let highest = self.highest(&self.stream.flight);
        let window = self.highest(&self.stream.window);
        // The axis includes the window only if it is at most four times the bytes in flight.
        let top = if window > highest * 4.0 {
            highest
        } else {
            highest.max(window)
        };
        let unit = byte_unit(top);
        let title = format!("in flight, and the receiver's window, {}", unit.name);
        let high = round_up(top * 1.05 / unit.size, 3) * unit.size;
        let (x, y) = self.panel(&title, PANEL_HEIGHT, (0.0, high), unit.size, false);
        let stream = self.stream;
        self.line(&stream.window, &x, &y, EDGE);
        self.line(&stream.flight, &x, &y, NEW);
    }

    fn rate(&mut self) {
        let highest = self.highest(&self.stream.rate);
        let unit = rate_unit(highest);
        let title = format!("acknowledged, {}", unit.name);
        let high = round_up(highest * 1.05 / unit.size, 3) * unit.size;
        let (x, y) = self.panel(&title, PANEL_HEIGHT, (0.0, high), unit.size, true);
        let (_, rates) = part(&self.stream.rate, self.range_s, |s| s.0);
        let places: Vec<_> = rates
            .into_iter()
            .map(|(at, value)| (x.at(*at), y.at(*value)))
            .collect();
        self.canvas.polyline(&places, &format!("line s{ACKED}"));
    }

    fn highest(&self, samples: &[Sample]) -> f64 {
        let (before, inside) = part(samples, self.range_s, |s| s.0);
        let values = before.into_iter().chain(inside).map(|s| s.1);
        values.fold(0.0, f64::max)
    }

    /// Draws the steps between samples, from the last sample before the range to the range's end.
    /// Of samples that share a column of the resolution, it draws the lowest and the highest.
    fn line(&mut self, samples: &[Sample], x: &Scale, y: &Scale, colour: usize) {
        let mut columns: BTreeMap<i64, [f64; 4]> = BTreeMap::new();
        let (before, inside) = part(samples, self.range_s, |s| s.0);
        for (at, value) in before.into_iter().chain(inside) {
            let value = y.at(*value);
            let column = columns
                .entry((x.at(*at) / GRAIN) as i64)
                .or_insert([value; 4]);
            let [_, low, high, last] = column;
            (*low, *high, *last) = (low.min(value), high.max(value), value);
        }
        let mut points: Vec<(f64, f64)> = Vec::with_capacity(columns.len() * 3);
        for (column, [first, low, high, last]) in columns {
            let at = column as f64 * GRAIN;
            if let Some((_, before)) = points.last() {
                points.push((at, *before));
            }
            points.push((at, first));
            if low < high {
                points.extend([(at, low), (at, high), (at, last)]);
            }
        }
        if let Some((_, last)) = points.last() {
            points.push((x.at(self.range_s.1), *last));
        }
        points.dedup();
        self.canvas.polyline(&points, &format!("line s{colour}"));
    }

    /// Draws upright strokes; strokes of one column that touch become one.
    fn strokes(&mut self, strokes: &[Stroke], x: &Scale, y: &Scale, colour: usize) {
        let mut columns: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
        for (at, start, end) in part(strokes, self.range_s, |s| s.0).1 {
            let [upper, lower] = [*end, *start].map(|v| (y.at(v as f64) / GRAIN).round() as i64);
            let upper = if colour == NEW {
                upper
            } else {
                upper.min(lower - SHORTEST_GRAINS)
            };
            let column = columns.entry((x.at(*at) / GRAIN) as i64).or_default();
            match column.last_mut() {
                Some((top, bottom)) if upper <= *bottom && lower >= *top => {
                    (*top, *bottom) = (upper.min(*top), lower.max(*bottom));
                }
                _ => column.push((upper, lower)),
            }
        }
        let mut drawn = Vec::new();
        for (column, mut ranges) in columns {
            ranges.sort_unstable();
            ranges.dedup();
            let at = column as f64 * GRAIN;
            let place = |grains: i64| grains as f64 * GRAIN;
            drawn.extend(
                ranges
                    .into_iter()
                    .map(|(top, bottom)| (at, place(top), place(bottom))),
            );
        }
        self.canvas.strokes(&drawn, &format!("line s{colour}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shade(begin_s: f64, end_s: f64, name: &str, is_slow: bool) -> Shade {
        Shade {
            begin_s,
            end_s,
            name: name.to_owned(),
            is_slow,
        }
    }

    fn sample() -> Stream {
        Stream {
            new: (0..1000)
                .map(|i| (f64::from(i) * 1e-3, i as u64 * 1448, (i as u64 + 1) * 1448))
                .collect(),
            retransmitted: vec![(0.5, 1448, 2896)],
            acked: (0..1000)
                .map(|i| (f64::from(i) * 1e-3, f64::from(i) * 1448.0))
                .collect(),
            flight: vec![(0.0, 10.0), (1.0, 20.0)],
            stalls: vec![shade(0.2, 0.4, "1", false)],
            rate: vec![(0.1, 1e6), (0.3, 2e6)],
            ..Stream::default()
        }
    }

    #[test]
    fn many_segments_make_a_small_picture() {
        let mut dense = sample();
        // The dense figure has a hundred times as many segments in the same place.
        dense.new = (0..100_000u32)
            .map(|i| {
                (
                    f64::from(i) * 1e-5,
                    u64::from(i) * 14,
                    (u64::from(i) + 1) * 14,
                )
            })
            .collect();
        let size = |s: &Stream| stream("s", "t", "c", s, (0.0, 1.0)).svg().len();
        assert!(
            size(&dense) < 3 * size(&sample()),
            "{} {}",
            size(&dense),
            size(&sample())
        );
        assert!(size(&dense) < 200_000);
    }

    #[test]
    fn the_legend_has_only_marks_that_occur() {
        let svg = stream("s", "t", "c", &sample(), (0.0, 1.0)).svg();
        assert!(svg.contains(">retransmitted<") && svg.contains(">acknowledged<"));
        assert!(!svg.contains(">SACKed<") && !svg.contains(">window<"));
        assert_eq!(svg.matches("band f1").count(), 3, "a shade in each panel");
    }

    /// A slow phase that contains stalls is below them and paler, and all are named.
    #[test]
    fn a_slow_phase_does_not_hide_the_stalls_in_it() {
        let mut events = sample();
        events.stalls = vec![
            shade(0.1, 0.9, "71", true),
            shade(0.2, 0.21, "72", false),
            shade(0.49, 0.51, "73", false),
        ];
        let svg = stream("s", "t", "c", &events, (0.0, 1.0)).svg();
        let first = |what: &str| svg.find(what).unwrap();
        assert!(first("band pale f1") < first("band f1"));
        for name in [">71<", ">72<", ">73<"] {
            assert_eq!(svg.matches(name).count(), 1, "{name}");
        }
    }

    #[test]
    fn a_part_has_its_own_axis() {
        let svg = stream("s", "t", "c", &sample(), (0.9, 1.0)).svg();
        assert!(!svg.contains("band f1"), "the stop lies before it");
    }

    #[test]
    fn no_stall_gives_an_empty_figure() {
        let svg = stream("s", "t", "c", &Stream::default(), (0.0, 0.0)).svg();
        assert!(svg.starts_with("<svg") && !svg.contains("NaN"));
    }
}
