// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of psp as OpenMetrics: [`families`] makes metrics out of the table of statistics,
//! [`text`] writes them, [`Scraper`] reads them of this host, [`count_stalls`] counts stalls,
//! [`serve`] answers a Prometheus, and [`replace`] writes a file for the textfile collector of
//! node_exporter (docs/use/monitoring.md).

#![forbid(unsafe_code)]

mod devices;
mod families;
mod http;
mod reservations;
mod scraper;
mod stall_watch;
mod stalls;
pub mod text;

pub use devices::device_families;
pub use families::{Family, Kind, Number, Sample, families};
pub use http::{Bounds, REQUEST_BYTES, serve};
pub use reservations::reservation_families;
pub use scraper::{Health, ReadNames, ReadOverview, Scraper};
pub use stall_watch::count_stalls;
pub use stalls::Stalls;
