// SPDX-License-Identifier: MIT OR Apache-2.0
//! What two captures, one from each end, show of the path between them.

use draw::Figure;
use draw::table::Table;
use units::display::{count, number};

use super::one_way::one_way;
use crate::two_ends::{Clocks, Path};

/// Most directions that are drawn.
const MOST_DRAWN: usize = 8;

/// Says in a sentence how the two clocks stand.
pub fn clocks(clocks: &Clocks) -> String {
    let is_ahead = clocks.offset_s >= 0.0;
    let (stands, gains) = (
        if is_ahead { "ahead" } else { "behind" },
        if clocks.drift_ppm >= 0.0 {
            "gains"
        } else {
            "loses"
        },
    );
    format!(
        "The other capture's clock is {} ms {stands} and {gains} {} us in a second, by {} packets \
         that both have. One-way delays are right to {} ms: half of the least round trip.",
        number(clocks.offset_s.abs() * 1e3, 3),
        number(clocks.drift_ppm.abs(), 2),
        count(clocks.pairs),
        number(clocks.uncertainty_s * 1e3, 3),
    )
}

/// Returns a row for each direction: what left, what was lost, and how long it took.
pub fn paths(paths: &[Path], most: usize) -> Table {
    let mut table = Table::default();
    table.text("from");
    table.text("to");
    table.number("packets", "");
    table.number("lost", "");
    table.number("least", "ms");
    table.number("median", "ms");
    table.number("99 %", "ms");
    table.number("most", "ms");
    for path in paths.iter().take(most) {
        let delays = &path.delays;
        let mut row = vec![
            path.from.to_string().into(),
            path.to.to_string().into(),
            count(path.sent).into(),
            count(path.lost).into(),
        ];
        let all = [delays.min_s, delays.median_s, delays.p99_s, delays.max_s];
        let shown = all.map(|s| s.map_or("-".to_owned(), |s| number(s * 1e3, 3)));
        row.extend(shown.into_iter().map(Into::into));
        table.rows.push(row);
    }
    table
}

/// Draws the one-way delays over time of the directions with the most packets.
pub fn figure(paths: &[Path]) -> Option<Figure> {
    let mut busiest: Vec<_> = paths
        .iter()
        .filter(|p| !p.delays.over_time.is_empty())
        .collect();
    busiest.sort_by_key(|path| std::cmp::Reverse(path.arrived));
    busiest.truncate(MOST_DRAWN);
    let curve = |path: &&Path| {
        let points = path.delays.over_time.iter();
        let points = points.map(|i| (i.start_s, [i.min_s, i.median_s, i.max_s].map(|s| s * 1e3)));
        (format!("{} → {}", path.from, path.to), points.collect())
    };
    (!busiest.is_empty()).then(|| one_way(busiest.iter().map(curve).collect()))
}
