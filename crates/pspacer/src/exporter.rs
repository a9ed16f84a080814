// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer exporter`: statistics of psp for Prometheus (docs/use/monitoring.md).

use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use exporter::{Bounds, Scraper, count_stalls, serve, text};
use linux_io::clock::monotonic_ns;
use linux_io::signals::Signals;
use linux_io::wait::readable;
use manager::commands::Managers;
use manager_proto::poll::{Poll, ask};

use crate::headings::{OUTPUT, RUN};
use crate::{output, values};

/// Arguments of `pspacer exporter`.
#[derive(Debug, Args)]
pub struct ExporterArgs {
    /// Answer GET /metrics here. Whoever reaches the address reads all statistics
    #[arg(long, value_name = "[ADDRESS]:PORT", default_value = "127.0.0.1:9977",
        conflicts_with_all = ["textfile", "once"], value_parser = values::listen,
        help_heading = OUTPUT)]
    pub listen: values::Listen,
    /// Replace this file instead, for the textfile collector of node_exporter: psp.prom
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub textfile: Option<PathBuf>,
    /// Time between two replacements of the file
    #[arg(long, value_name = "TIME", default_value = "15s", requires = "textfile",
        value_parser = values::some_time, help_heading = RUN)]
    pub every: u64,
    /// Once, to standard output or the file
    #[arg(long, help_heading = RUN)]
    pub once: bool,
    /// Most classes with metrics of their own; the others are summed as class "other"
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = OUTPUT)]
    pub classes: usize,
    /// Most reservations with metrics; the others are counted
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = OUTPUT)]
    pub reservations: usize,
    /// Count stalls of this host's TCP senders by cause and unit, too; needs what pspacer watch
    /// needs
    #[arg(long, conflicts_with = "once", help_heading = OUTPUT)]
    pub stalls: bool,
    /// Whose reservations to export, too
    #[command(flatten)]
    pub managers: Managers,
}

/// Time between two questions to managers.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// Exports until SIGINT or SIGTERM, or once.
///
/// # Errors
/// When the address is taken or the file cannot be written; with `--once` also when the kernel's
/// tables cannot be read.
pub fn main(args: &ExporterArgs) -> Result<()> {
    let scraper = Scraper::new(env!("CARGO_PKG_VERSION"), args.classes);
    let mut scraper = scraper.with_names(Box::new(|names| {
        *names = host_apply::class_names()?;
        cni::names::add_names(names)
    }));
    let managers = args.managers.clients()?;
    if args.once {
        if !managers.is_empty() {
            let asked = Box::new(move || ask(&managers));
            scraper = scraper.with_reservations(asked, args.reservations);
        }
        let scraped = scraper.scrape()?;
        if let Some(why) = scraper.last_error() {
            bail!("cannot read the kernel's tables: {why}");
        }
        return match &args.textfile {
            Some(path) => write(path, &scraped),
            None => output::print(&scraped),
        };
    }
    // Before a thread starts, so that it is not ended by a signal.
    let signals = Signals::block().context("signals")?;
    if !managers.is_empty() {
        // A scrape waits for no manager.
        let poll = Poll::start(managers, ASK_EVERY).context("a thread that asks managers")?;
        let latest = Box::new(move || poll.latest());
        scraper = scraper.with_reservations(latest, args.reservations);
    }
    if args.stalls {
        let say = |why: String| output::error(&anyhow!(why));
        scraper = scraper.with_stalls(count_stalls(say).context("--stalls")?);
    }
    let Some(path) = &args.textfile else {
        let listener = TcpListener::bind(args.listen.addresses.as_slice())
            .with_context(|| format!("--listen {}: cannot listen", args.listen))?;
        let at = listener.local_addr()?;
        output::note(&format!("pspacer: http://{at}/metrics; Ctrl-C ends it"));
        return Ok(serve(listener, scraper, Bounds::default(), &signals)?);
    };
    let mut due_ns = monotonic_ns()?;
    while !signals.came()? {
        let left_ns = due_ns.saturating_sub(monotonic_ns()?);
        if left_ns > 0 {
            readable(&[signals.as_fd()], left_ns)?;
            continue;
        }
        due_ns += args.every;
        write(path, &scraper.scrape()?)?;
        if let Some(why) = scraper.last_error() {
            output::error(&anyhow!("cannot read the kernel's tables: {why}"));
        }
    }
    Ok(())
}

fn write(path: &Path, scraped: &str) -> Result<()> {
    psp_files::write::replace(path, text::prometheus(scraped))
        .with_context(|| path.display().to_string())
}
