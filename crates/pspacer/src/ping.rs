// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer ping`: measures the delay of a host by probes on a schedule.

use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use draw::histogram::{Histogram, delay_bars, histogram};
use linux_io::udp::Class;
use manager::commands::Connection;
use manager_proto::client::{Client, ClientError};
use manager_proto::record::Measured;
use ping::packet::{LEAST_BYTES, MOST_BYTES, PORT};
use ping::run::{Above, Done, Plan, run};
use ping::schedule::Schedule;
use ping::statistics::Results;
use ping::text;
use serde::Serialize;

use crate::headings::{OUTPUT, RUN};
use crate::output;
use crate::terminal;
use crate::values::{some_time, time};

/// Exit statuses, like those of ping(8): 0 if an answer came, 1 if none came, 2 for anything else.
const NO_ANSWER: u8 = 1;
pub const TROUBLE: u8 = 2;
/// Exit status if a round trip was above `--stop-above`.
const ABOVE: u8 = 3;
/// Time in which another manager takes over from one that was killed, and a pause between two questions.
const TAKEOVER: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(500);
/// Status of an answer while no manager decides.
const UNAVAILABLE: u16 = 503;

/// Arguments of `pspacer ping`.
#[derive(Debug, Args)]
pub struct PingArgs {
    /// Where "pspacer reflect" runs: a name or an address
    pub host: String,
    /// UDP port of the reflector
    #[arg(long, value_name = "PORT", default_value_t = PORT, help_heading = RUN)]
    pub port: u16,
    /// Time from one probe to the next, whatever becomes of them
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "10ms",
        help_heading = RUN)]
    pub period: u64,
    /// UDP payload of a probe in bytes, 52 to 65507
    #[arg(long, value_name = "BYTES", default_value_t = LEAST_BYTES, value_parser = probe_bytes,
        help_heading = RUN)]
    pub size: usize,
    /// Stop after this many probes [default: at Ctrl-C]
    #[arg(long, short = 'c', value_name = "N", conflicts_with = "duration", help_heading = RUN)]
    pub count: Option<u64>,
    /// Stop after this long
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = RUN)]
    pub duration: Option<u64>,
    /// How long to wait for answers after the last probe
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1s", help_heading = RUN)]
    pub wait: u64,
    /// Priority of the socket and code point of the packets, as in 6, 6/46, /46; or a class of
    /// psp, as in 1:10
    #[arg(long, value_name = "PRIO/DSCP", value_parser = clap::value_parser!(Class), help_heading = RUN)]
    pub class: Option<Class>,
    /// Stop at the first round trip above this, name it, and exit with 3
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = RUN)]
    pub stop_above: Option<u64>,
    /// Both hosts have one clock, or clocks that are kept alike (PTP): one-way delays too
    /// [default: for addresses of this host's loopback]
    #[arg(long, help_heading = RUN)]
    pub synced: bool,
    /// One JSON object on standard output at the end, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Probes are the packets of this reservation: at the end its manager is told the worst one-way
    /// delay, with the wait in this host's queues. `top` and the exporter show it beside the bound
    #[arg(long, value_name = "ID", requires = "listener", help_heading = OUTPUT)]
    pub reservation: Option<String>,
    /// The reservation's listener where the reflector runs
    #[arg(long, value_name = "HOST", requires = "reservation", help_heading = OUTPUT)]
    pub listener: Option<String>,
    /// Whom to tell
    #[command(flatten)]
    pub connection: Connection,
    /// Also draw the distribution of round trips
    #[arg(long, value_name = "OUT.svg", help_heading = OUTPUT)]
    pub plot: Option<PathBuf>,
}

/// Parses the size of a probe, bytes.
fn probe_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok();
    bytes
        .filter(|bytes| (LEAST_BYTES..=MOST_BYTES).contains(bytes))
        .ok_or_else(|| format!("expected {LEAST_BYTES} to {MOST_BYTES}"))
}

/// The JSON object that `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    format: &'static str,
    host: String,
    size_bytes: usize,
    period_ns: u64,
    scheduling: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    above: Option<Above>,
    /// By how much CLOCK_TAI was set during the run, ns.
    clock_step_ns: u64,
    #[serde(flatten)]
    results: &'a Results,
}

/// Where a measurement goes.
struct Target {
    client: Client,
    reservation: String,
    listener: String,
}

impl Target {
    /// Returns where the measurement goes; `None` if nowhere. What would not be found out before the
    /// end is refused before the first probe.
    fn of(args: &PingArgs, is_one_way: bool) -> Result<Option<Self>> {
        let Some((reservation, listener)) = args.reservation.clone().zip(args.listener.clone())
        else {
            return Ok(None);
        };
        if !is_one_way {
            bail!(
                "--reservation {reservation}: a bound is of one way, expected --synced, with clocks \
                 that are kept alike"
            );
        }
        let client = args.connection.client()?;
        let views = client.reservations()?;
        let Some(view) = views.iter().find(|view| view.id == reservation) else {
            bail!("--reservation {reservation}: the manager has no such reservation of yours");
        };
        if !view.listeners.iter().any(|of| of.name == listener) {
            let names: Vec<_> = view.listeners.iter().map(|of| of.name.as_str()).collect();
            bail!(
                "--listener {listener}: expected a listener of {reservation}: {}",
                names.join(", ")
            );
        }
        Ok(Some(Self {
            client,
            reservation,
            listener,
        }))
    }

    /// Tells the manager what was measured.
    fn tell(&self, done: &Done) -> Result<()> {
        let measured = measured(done).with_context(|| {
            format!(
                "--reservation {}: nothing was measured that its manager could be told",
                self.reservation
            )
        })?;
        let tell = || {
            self.client
                .measured(&self.reservation, &self.listener, &measured)
        };
        let sent = until_answered(TAKEOVER, AGAIN, tell);
        sent.with_context(|| format!("--reservation {}", self.reservation))?;
        Ok(())
    }
}

/// Asks until a manager answers, for this long at least. A manager may have been killed, and another one
/// takes over.
///
/// # Errors
/// The last one, or the first that stays.
fn until_answered<T>(
    within: Duration,
    pause: Duration,
    mut ask: impl FnMut() -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let end = Instant::now() + within;
    loop {
        match ask() {
            Err(
                ClientError::Transport { .. }
                | ClientError::Refused {
                    status: UNAVAILABLE,
                    ..
                },
            ) if Instant::now() < end => thread::sleep(pause),
            answer => return answer,
        }
    }
}

/// Returns what a run has measured of the way to the reflector.
///
/// # Errors
/// If no probe came, or the clocks disagree.
fn measured(done: &Done) -> Result<Measured> {
    let counts = &done.results.counts;
    if counts.implausible > 0 {
        bail!(
            "{} one-way delays were below 0: the clocks disagree",
            counts.implausible
        );
    }
    if done.clock_step_ns > text::CLOCK_STEP_NS {
        bail!("the clock was set meanwhile");
    }
    match &done.results.one_way_with_wait {
        None => bail!("no answer came"),
        Some(summary) => Ok(Measured {
            worst_delay_ns: summary.max_ns,
            packets: summary.count,
            lost_packets: counts.lost,
        }),
    }
}

/// Sends the probes, waits for the answers and prints the results.
///
/// # Errors
/// When the host has no address, the reservation does not fit what is measured, the socket fails, or an output cannot be written.
pub fn main(args: &PingArgs) -> Result<ExitCode> {
    let address = resolve(&args.host, args.port)?;
    let within = |duration| Schedule::count_within(duration, args.period);
    let plan = Plan {
        address,
        period_ns: args.period,
        count: args.count.or(args.duration.map(within)),
        wait_ns: args.wait,
        size_bytes: args.size,
        class: args.class.unwrap_or_default(),
        one_way: args.synced || address.ip().is_loopback(),
        stop_above_ns: args.stop_above,
    };
    let target = Target::of(args, plan.one_way)?;
    let lines = !terminal::is_quiet() && !args.json;
    if !args.json {
        output::print(&format!("{}\n", text::head(&plan)))?;
    }
    let done = run(&plan, |answer| {
        if lines {
            output::print(&format!("{}\n", text::line(&plan, answer)))
        } else {
            Ok(())
        }
    })
    .with_context(|| address.to_string())?;
    if let Some(path) = &args.plot {
        let svg = histogram(&plot(&plan, &done.results)).svg();
        psp_files::write::replace(path, svg)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    print(args, &plan, &done)?;
    if let Some(target) = &target {
        target.tell(&done)?;
    }
    Ok(match (done.above, done.results.counts.received) {
        (Some(_), _) => ExitCode::from(ABOVE),
        (None, 0) => ExitCode::from(NO_ANSWER),
        (None, _) => ExitCode::SUCCESS,
    })
}

fn print(args: &PingArgs, plan: &Plan, done: &Done) -> Result<()> {
    let mut out = output::out();
    if !args.json {
        out.write_all(text::summary(plan, done).as_bytes())?;
        return Ok(());
    }
    let report = Report {
        format: predict::measured::PING,
        host: plan.address.to_string(),
        size_bytes: plan.size_bytes,
        period_ns: plan.period_ns,
        scheduling: done.scheduling.to_string(),
        above: done.above,
        clock_step_ns: done.clock_step_ns,
        results: &done.results,
    };
    serde_json::to_writer_pretty(&mut out, &report)?;
    writeln!(out)?;
    Ok(())
}

/// Returns the first address of a name.
fn resolve(host: &str, port: u16) -> Result<SocketAddr> {
    let mut found = (host, port)
        .to_socket_addrs()
        .with_context(|| host.to_owned())?;
    found
        .next()
        .with_context(|| format!("{host}: no address of that name"))
}

fn plot(plan: &Plan, results: &Results) -> Histogram {
    let bars = results.round_trip.as_ref().map(|of| {
        let bins = of.histogram.iter().map(|bin| (bin.delay_ns, bin.count));
        delay_bars(of.min_ns, of.max_ns, bins)
    });
    Histogram {
        slug: "round-trips",
        title: format!("Round trips to {}", plan.address),
        x_name: "round trip, ms".to_owned(),
        y_name: "packets".to_owned(),
        log: true,
        bars: bars.unwrap_or_default(),
        ..Histogram::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_probe() {
        assert_eq!(probe_bytes("52"), Ok(52));
        assert!(probe_bytes("51").is_err() && probe_bytes("65508").is_err());
    }
    #[test]
    fn a_manager_is_asked_until_one_answers() {
        let transport = || ClientError::Transport {
            url: String::new(),
            problem: "reset".to_owned(),
        };
        let refused = |status| ClientError::Refused {
            status,
            message: String::new(),
        };
        let asked = |within: Duration, mut answers: Vec<Result<u8, ClientError>>| {
            answers.reverse();
            let mut ask = || answers.pop().unwrap_or(Ok(9));
            until_answered(within, Duration::ZERO, &mut ask)
        };
        let passing = vec![Err(transport()), Err(refused(503)), Ok(1)];
        assert!(matches!(asked(TAKEOVER, passing), Ok(1)));
        let staying = vec![Err(transport()), Err(refused(404)), Ok(1)];
        let answer = asked(TAKEOVER, staying);
        assert!(matches!(
            answer,
            Err(ClientError::Refused { status: 404, .. })
        ));
        let answer = asked(Duration::ZERO, vec![Err(transport()), Ok(1)]);
        assert!(matches!(answer, Err(ClientError::Transport { .. })));
    }
}
