// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer watch`: tells why transfers stall while they run (docs/use/watch.md).

mod outputs;
mod packets;
mod recording;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use capture::selector::Network;
use clap::Args;
use linux_io::clock::monotonic_ns;
use linux_io::signals::Signals;
use outputs::{Outputs, Session};
use packets::SavedPackets;
use recording::Recording;
use watch::counted::Counted;
use watch::json::Stream;
use watch::lines::Lines;
use watch::names::{self, Names};
use watch::screen::{Screen, asks_to_stop};
use watch::session::Report;
use watch::{Filter, Reasons, Tracer};

use crate::headings::{FILTERS, OUTPUT, RUN};
use crate::output;

/// Time between two readings of the ring buffer: the kernel does not wake the reader.
const READ_EVERY: Duration = Duration::from_millis(10);
/// Time between two updates of the connections and of the display.
const LOOK_EVERY_NS: u64 = 250_000_000;

/// Arguments of `pspacer watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Only sockets of this process: those it has, connects or accepts; not its
    /// children's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..),
        help_heading = FILTERS)]
    pub pid: Option<u32>,
    /// Only connections with this port at either end, or to this address or network: "port 80" or
    /// ":80", "dst 10.1.0.5", "dst 2001:db8::/32 port 443"
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["port", "dst"], help_heading = FILTERS)]
    pub flow: Option<Filter>,
    /// Only sockets made in this cgroup or below it, as in /system.slice/nginx.service
    #[arg(long, value_name = "PATH", conflicts_with = "unit", help_heading = FILTERS)]
    pub cgroup: Option<String>,
    /// Only sockets made in the cgroup of this systemd unit or below it: nginx, user.slice
    #[arg(long, value_name = "NAME", help_heading = FILTERS)]
    pub unit: Option<String>,
    /// As in --flow "port N"
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..),
        help_heading = FILTERS)]
    pub port: Option<u16>,
    /// As in --flow "dst ADDRESS"
    #[arg(long, hide = true, value_name = "ADDRESS[/BITS]", help_heading = FILTERS)]
    pub dst: Option<Network>,
    /// Stop after this time, as in 30s [default: with q, Ctrl-C or SIGTERM]
    #[arg(long, value_name = "TIME", value_parser = crate::values::time, help_heading = RUN)]
    pub duration: Option<u64>,
    /// JSON objects on standard output, a line each and nothing else there: each
    /// connection when it ends, a summary last
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Also write each connection's variables at each acknowledgement into this
    /// new folder: tables of the simulator's form (flow-N.epool.csv), and plots
    #[arg(long, value_name = "DIR", alias = "record", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// Write the packets around each stall into this new folder: stall-N.pcapng, 128 bytes of each
    /// packet, for pspacer stalls and other tools
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    pub packets: Option<PathBuf>,
    /// Memory for the last packets of this host, of which those around stalls are written
    #[arg(long, value_name = "SIZE", default_value = "16mb", requires = "packets",
        value_parser = crate::values::size, help_heading = OUTPUT)]
    pub packets_memory: u64,
    /// Let the kernel time the BPF program, and say what a record costs
    #[arg(long, help_heading = RUN)]
    pub cost: bool,
    /// Exit with 3 if a stall was found, for scripts
    #[arg(long, help_heading = RUN)]
    pub exit_code: bool,
}

/// Watches until the time is over or the user stops it. Returns `false` if `--exit-code` was given
/// and a stall was found.
///
/// # Errors
/// When the rights, BTF or BPF are missing; when the process does not exist; when an output cannot
/// be written.
pub fn main(args: &WatchArgs) -> Result<bool> {
    let signals = Signals::block().context("signals")?;
    let mut tracer = Tracer::attach(&filter(args)?)?;
    if args.cost {
        tracer.count_costs()?;
    }
    // The folder is opened only after the tracer is attached: if watching is not possible, an
    // earlier call's recording stays.
    let recording = args.out.as_deref().map(Recording::new).transpose()?;
    let stream = args
        .json
        .then(|| Stream::start(output::out()))
        .transpose()?;
    let mut packets = args
        .packets
        .as_deref()
        .map(|folder| SavedPackets::new(folder, args.packets_memory))
        .transpose()?;
    let reasons = match tracer.drop_reasons() {
        Ok(reasons) => reasons,
        Err(error) => {
            output::note(&format!(
                "pspacer: drops on this host are not seen: {error}"
            ));
            Reasons::default()
        }
    };
    let session = Session::new(monotonic_ns()?, Outputs { recording, stream });
    let mut session = session.with_names(Names::of_this_host(), reasons);
    let mut view = View::new(args)?;
    if !matches!(view, View::Screen(_)) {
        output::note("pspacer: watching; Ctrl-C ends it");
    }
    let result = watch_until(
        args,
        &mut tracer,
        &mut session,
        (&mut view, &mut packets),
        &signals,
    );
    view.close()?;
    result?;
    let mut found = session.finish(monotonic_ns()?)?;
    save(&mut packets, &mut session, &mut found)?;
    let counted = Counted {
        packets: packets.as_ref().map(SavedPackets::counts),
        lost: tracer.lost()?,
        lost_sockets: tracer.lost_sockets()?,
        costs: if args.cost {
            tracer.costs()?
        } else {
            Vec::new()
        },
    };
    if let Some(mut stream) = session.sink.stream.take() {
        stream.summary(&session, &counted, session.sink.unrecorded())?;
    } else {
        let mut out = io::BufWriter::new(output::out());
        let lines = Lines::new(crate::terminal::style());
        lines.stalls(&mut out, &session, &found)?;
        lines.summary(&mut out, &session, &counted, session.sink.unrecorded())?;
        out.flush()?;
    }
    Ok(!args.exit_code || session.stalls == 0)
}

fn filter(args: &WatchArgs) -> Result<Filter> {
    let flow = args.flow.unwrap_or_default();
    let cgroup = match (&args.cgroup, &args.unit) {
        (Some(path), _) => Some(names::cgroup_id(path).map_err(|why| anyhow!("--cgroup: {why}"))?),
        (None, Some(unit)) => Some(names::unit_id(unit).map_err(|why| anyhow!("--unit: {why}"))?),
        (None, None) => None,
    };
    Ok(Filter {
        pid: args.pid,
        cgroup,
        port: flow.port.or(args.port),
        destination: flow.destination.or(args.dst),
    })
}

fn watch_until(
    args: &WatchArgs,
    tracer: &mut Tracer,
    session: &mut Session,
    (view, packets): (&mut View, &mut Option<SavedPackets>),
    signals: &Signals,
) -> Result<()> {
    let start_ns = monotonic_ns()?;
    let end_ns = args.duration.map(|duration_ns| start_ns + duration_ns);
    let mut look_ns = 0;
    loop {
        // Whether to end is decided before reading, so that records from before the end are still
        // read.
        let now_ns = monotonic_ns()?;
        let is_over = signals.came()? || end_ns.is_some_and(|end_ns| now_ns >= end_ns);
        let mut taken = Ok(());
        tracer.drain(&mut |record| {
            if taken.is_ok() {
                taken = session.take(&record);
            }
        })?;
        taken?;
        if tracer.process_ended()? {
            session.ended_process = args.pid;
            view.process_ended(session);
        }
        if now_ns >= look_ns || is_over {
            look_ns = now_ns + LOOK_EVERY_NS;
            session.tick(now_ns);
            let mut reports = session.reports();
            save(packets, session, &mut reports)?;
            view.show(session, &reports, &tracer.lost()?, now_ns)?;
        }
        if is_over || view.asks_to_stop()? {
            return Ok(());
        }
        std::thread::sleep(READ_EVERY);
    }
}

/// Saves the packets around stalls, if the user wants that.
fn save(
    packets: &mut Option<SavedPackets>,
    session: &mut Session,
    reports: &mut [Report],
) -> Result<()> {
    let Some(packets) = packets else {
        return Ok(());
    };
    for report in reports {
        packets.save(session, report);
        if let Some(stream) = &mut session.sink.stream {
            stream.packets(report)?;
        }
    }
    Ok(())
}

/// How events are displayed as they happen.
enum View {
    Screen(Box<Screen>),
    Lines(Lines),
    Nothing,
}

impl View {
    fn new(args: &WatchArgs) -> Result<Self> {
        let is_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
        Ok(match (args.json, is_terminal) {
            (true, _) => Self::Nothing,
            (false, true) => Self::Screen(Box::new(Screen::open()?)),
            (false, false) => Self::Lines(Lines::new(crate::terminal::style())),
        })
    }

    fn show(
        &mut self,
        session: &Session,
        reports: &[Report],
        lost: &[u64],
        now_ns: u64,
    ) -> Result<()> {
        match self {
            Self::Screen(screen) => Ok(screen.draw(session, reports, lost, now_ns)?),
            Self::Lines(lines) => {
                let mut out = output::out();
                lines.stalls(&mut out, session, reports)?;
                Ok(out.flush()?)
            }
            Self::Nothing => Ok(()),
        }
    }

    /// Reports that the process has ended, except on the screen, which shows it by itself.
    fn process_ended(&self, session: &Session) {
        if let (Self::Lines(_) | Self::Nothing, Some(pid)) = (self, session.ended_process) {
            output::note(&format!(
                "pspacer: process {pid} has ended; no new connection is taken for its own"
            ));
        }
    }

    fn asks_to_stop(&self) -> Result<bool> {
        match self {
            Self::Screen(_) => Ok(asks_to_stop()?),
            Self::Lines(_) | Self::Nothing => Ok(false),
        }
    }

    fn close(&mut self) -> Result<()> {
        match self {
            Self::Screen(screen) => Ok(screen.close()?),
            Self::Lines(_) | Self::Nothing => Ok(()),
        }
    }
}
