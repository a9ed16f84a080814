// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the statistics of this host for a scrape, and counts what fails.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, fs, io};

use host_config::ClassNames;
use manager_proto::overview::Overview;
use tcpsp::Tc;
use tcpsp::ports::Port;

use crate::devices::device_families;
use crate::families::{Family, Kind, Number, Sample, families};
use crate::reservations::reservation_families;
use crate::stalls::Stalls;
use crate::text;

/// Where the kernel says which version of the module is loaded.
const MODULE_VERSION: &str = "/sys/module/sch_psp/version";

/// What the exporter says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Version of this program.
    pub version: String,
    /// Version of the kernel's module, empty if none is loaded.
    pub module: String,
    /// Scrapes so far, this one among them.
    pub scrapes: u64,
    /// Scrapes that could not read the kernel's tables.
    pub errors: u64,
    /// HTTP requests that were refused.
    pub refused: u64,
    /// Scrapes that could not read all names of classes.
    pub name_errors: u64,
}

impl Health {
    /// Returns it as metrics.
    pub fn families(&self) -> Vec<Family> {
        let family = |name: &str, help: &str, kind, labels, number| Family {
            name: name.to_owned(),
            help: help.to_owned(),
            unit: None,
            kind,
            samples: vec![Sample {
                labels,
                number: Number::Whole(number),
            }],
        };
        let versions = vec![
            ("version", self.version.clone()),
            ("module_version", self.module.clone()),
        ];
        let counter = |name, help, number| family(name, help, Kind::Counter, vec![], number);
        vec![
            family(
                "psp_exporter_info",
                "Version of the exporter, and of the kernel's module: empty if none is loaded.",
                Kind::Gauge,
                versions,
                1,
            ),
            counter(
                "psp_exporter_scrapes",
                "Times the kernel's tables were asked for.",
                self.scrapes,
            ),
            counter(
                "psp_exporter_scrape_errors",
                "Scrapes that could not read the kernel's tables: they have no metric of a qdisc or class.",
                self.errors,
            ),
            counter(
                "psp_exporter_refused_requests",
                "HTTP requests that were no GET of /metrics, too long, too slow or too many.",
                self.refused,
            ),
            counter(
                "psp_exporter_name_errors",
                "Scrapes that could not read all names of classes: the others have theirs.",
                self.name_errors,
            ),
        ]
    }
}

/// Reads the names of classes: changes those that it could read. An error is a sentence, and says that
/// there are others.
pub type ReadNames = Box<dyn FnMut(&mut ClassNames) -> Result<(), String> + Send>;

/// Returns what managers said last.
pub type ReadOverview = Box<dyn FnMut() -> Overview + Send>;

/// How many HTTP requests were refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refused(Arc<AtomicU64>);

impl Refused {
    pub(crate) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads this host.
pub struct Scraper {
    most_classes: usize,
    health: Health,
    refused: Refused,
    last_error: Option<String>,
    read_names: ReadNames,
    names: ClassNames,
    stalls: Option<Arc<Mutex<Stalls>>>,
    /// With the most reservations that have samples.
    reservations: Option<(ReadOverview, usize)>,
}

impl Scraper {
    /// Returns a scraper of at most so many classes, see [`families`]; `version` is the program's.
    pub fn new(version: &str, most_classes: usize) -> Self {
        Self {
            most_classes,
            health: Health {
                version: version.to_owned(),
                ..Health::default()
            },
            refused: Refused::default(),
            last_error: None,
            read_names: Box::new(|_| Ok(())),
            names: ClassNames::default(),
            stalls: None,
            reservations: None,
        }
    }

    /// Reads names of classes at each scrape.
    pub fn with_names(mut self, read_names: ReadNames) -> Self {
        self.read_names = read_names;
        self
    }

    /// Adds the stalls that someone else counts.
    pub fn with_stalls(mut self, stalls: Arc<Mutex<Stalls>>) -> Self {
        self.stalls = Some(stalls);
        self
    }

    /// Adds what managers said last, of at most so many reservations.
    pub fn with_reservations(mut self, read: ReadOverview, most: usize) -> Self {
        self.reservations = Some((read, most));
        self
    }

    /// Reads the kernel's tables and returns OpenMetrics. If they cannot be read, the text has the
    /// exporter's own metrics alone, and an error is counted.
    ///
    /// # Errors
    /// If the text cannot be written, which does not happen.
    pub fn scrape(&mut self) -> Result<String, fmt::Error> {
        self.scrape_of(read)
    }

    fn scrape_of(
        &mut self,
        read: impl FnOnce() -> io::Result<Vec<Port>>,
    ) -> Result<String, fmt::Error> {
        self.health.scrapes += 1;
        self.health.refused = self.refused.0.load(Ordering::Relaxed);
        let module = fs::read_to_string(Path::new(MODULE_VERSION)).unwrap_or_default();
        self.health.module = module.trim().to_owned();
        let read = read();
        self.last_error = read.as_ref().err().map(ToString::to_string);
        self.health.errors += u64::from(read.is_err());
        let named = (self.read_names)(&mut self.names);
        self.health.name_errors += u64::from(named.is_err());
        let mut all = self.health.families();
        if let Some(stalls) = &self.stalls {
            let stalls = stalls.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(stalls.families());
        }
        if let Some((read, most)) = &mut self.reservations {
            all.extend(reservation_families(&read(), *most));
        }
        let ports = read.unwrap_or_default();
        all.extend(device_families(&ports));
        all.extend(families(&ports, self.most_classes, &self.names));
        text::open_metrics(all)
    }

    /// Returns why the last scrape could not read the kernel's tables.
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Returns the count of refused requests, which the service keeps while a scrape runs.
    pub(crate) fn refused(&self) -> Refused {
        self.refused.clone()
    }
}

fn read() -> io::Result<Vec<Port>> {
    backend::ports(&mut Tc::open()?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted() {
        let mut scraper = Scraper::new("1.2.3", 10);
        let text = scraper.scrape_of(|| Ok(Vec::new())).unwrap();
        assert!(
            text.contains("psp_exporter_scrape_errors_total 0\n"),
            "{text}"
        );
        assert!(
            text.contains("psp_exporter_info{version=\"1.2.3\""),
            "{text}"
        );
        let failed = || Err(io::Error::other("no table"));
        let text = scraper.scrape_of(failed).unwrap();
        assert!(
            text.contains("psp_exporter_scrape_errors_total 1\n"),
            "{text}"
        );
        assert!(text.contains("psp_exporter_scrapes_total 2\n"), "{text}");
        assert_eq!(scraper.last_error(), Some("no table"));
        scraper.scrape_of(|| Ok(Vec::new())).unwrap();
        assert_eq!(scraper.last_error(), None);
    }

    #[test]
    fn names_that_could_be_read_count_beside_an_error() {
        let mut asked = 0;
        let read = move |names: &mut ClassNames| {
            asked += 1;
            if asked > 1 {
                return Err("no folder".to_owned());
            }
            names.insert("eth0", "video", "video".to_owned());
            Err("a record".to_owned())
        };
        let mut expected = ClassNames::default();
        expected.insert("eth0", "video", "video".to_owned());
        let mut scraper = Scraper::new("0", 10).with_names(Box::new(read));
        for errors in 1..=2 {
            let text = scraper.scrape_of(|| Ok(Vec::new())).unwrap();
            let sample = format!("psp_exporter_name_errors_total {errors}\n");
            assert!(text.contains(&sample), "{text}");
            assert_eq!(scraper.names, expected);
        }
    }

    #[test]
    fn reservations_are_those_of_each_scrape() {
        let mut asked = 0;
        let read = move || {
            asked += 1;
            let manager = manager_proto::overview::ManagerRow {
                manager: format!("m{asked}"),
                problem: None,
            };
            Overview {
                managers: vec![manager],
                ..Overview::default()
            }
        };
        let mut scraper = Scraper::new("0", 10).with_reservations(Box::new(read), 10);
        for expected in ["m1", "m2"] {
            let text = scraper.scrape_of(|| Ok(Vec::new())).unwrap();
            let sample = format!("psp_manager_up{{manager=\"{expected}\"}} 1\n");
            assert!(text.contains(&sample), "{text}");
        }
    }

    #[test]
    fn this_host_is_scraped() {
        let mut scraper = Scraper::new("0", 10);
        assert!(scraper.scrape().unwrap().ends_with("# EOF\n"));
        assert_eq!(scraper.last_error(), None);
    }
}
