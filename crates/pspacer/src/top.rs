// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer top`: every psp class of this host as it sends (docs/use/monitoring.md).

use std::io::{self, IsTerminal, Write};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use linux_io::clock::monotonic_ns;
use linux_io::signals::Signals;
use manager::commands::Managers;
use manager_proto::client::Client;
use manager_proto::overview::Overview;
use manager_proto::poll::{Poll, ask};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use serde::Serialize;
use tcpsp::Tc;
use top::{ClassNames, DeviceRow, Key, Model, PortRow, Row, Sample, View, draw};

use crate::headings::{OUTPUT, RUN};
use crate::terminal::style;
use crate::{output, values};

/// Longest time between two looks at keys and signals.
const LOOK_EVERY_NS: u64 = 50_000_000;

/// Arguments of `pspacer top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Time between two samples
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::some_time,
        help_heading = RUN)]
    pub every: u64,
    /// JSON objects on standard output, a line for each sample and nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
    /// Two samples, which is what rates need, and the second as text, or with --json as one line
    #[arg(long, help_heading = RUN)]
    pub once: bool,
    /// Whose reservations to show, too
    #[command(flatten)]
    pub managers: Managers,
}

/// The JSON line of a sample.
#[derive(Serialize)]
struct Json {
    format: &'static str,
    time_ns: u64,
    cost_ns: u64,
    devices: Vec<DeviceRow>,
    qdiscs: Vec<PortRow>,
    classes: Vec<Row>,
    /// With `--manager`.
    #[serde(flatten)]
    overview: Option<Overview>,
}

/// Shows the classes until the user ends it.
///
/// # Errors
/// When the kernel's tables cannot be read, or standard output is no terminal and neither `--once`
/// nor `--json` was given.
pub fn main(args: &TopArgs) -> Result<()> {
    // Before threads start, so that none of them is ended by a signal.
    let signals = Signals::block().context("signals")?;
    let managers = args.managers.clients()?;
    let mut tc = Tc::open()?;
    if args.json || args.once {
        return lines(args, managers, &mut tc, &signals);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        bail!("standard input and output are no terminal: expected --once or --json");
    }
    let poll = poll(args, managers)?;
    let mut terminal = ratatui::try_init()?;
    let shown = screen(args, poll.as_ref(), &mut tc, &signals, &mut terminal);
    ratatui::try_restore()?;
    shown
}

/// Reads the names of classes that files give. Without them classes are shown by their ids.
fn names() -> ClassNames {
    host_apply::class_names().unwrap_or_else(|error| {
        output::note(&format!("pspacer: classes have no names: {error}"));
        ClassNames::default()
    })
}

/// Gives the classes of pods their names: pods come and go. Classes whose names cannot be read are
/// shown by their ids.
fn name_pods(model: &mut Model, of_files: &ClassNames) {
    let mut names = of_files.clone();
    // The screen has no place for an error; the exporter counts it.
    let _ = cni::names::add_names(&mut names);
    model.rename(names);
}

fn read(tc: &mut Tc) -> Result<Sample> {
    let time_ns = monotonic_ns()?;
    let ports = backend::ports(tc).context("the kernel's tables")?;
    Ok(Sample {
        time_ns,
        cost_ns: monotonic_ns()?.saturating_sub(time_ns),
        ports,
    })
}

/// Asks managers as often as samples are taken; `None` if there are none.
fn poll(args: &TopArgs, managers: Vec<(String, Client)>) -> Result<Option<Poll>> {
    if managers.is_empty() {
        return Ok(None);
    }
    let poll = Poll::start(managers, Duration::from_nanos(args.every));
    Ok(Some(poll.context("a thread that asks managers")?))
}

/// Waits until the time, or until a signal comes; returns whether one came.
fn wait(due_ns: u64, signals: &Signals) -> Result<bool> {
    loop {
        if signals.came()? {
            return Ok(true);
        }
        let left_ns = due_ns.saturating_sub(monotonic_ns()?);
        if left_ns == 0 {
            return Ok(false);
        }
        sleep(Duration::from_nanos(left_ns.min(LOOK_EVERY_NS)));
    }
}

fn lines(
    args: &TopArgs,
    managers: Vec<(String, Client)>,
    tc: &mut Tc,
    signals: &Signals,
) -> Result<()> {
    let of_files = names();
    let mut model = Model::named(of_files.clone());
    model.take(read(tc)?);
    // One answer is enough for one line, and is asked for when the line is due.
    let (once, poll) = if args.once {
        (managers, None)
    } else {
        (Vec::new(), poll(args, managers)?)
    };
    let mut due_ns = monotonic_ns()?;
    loop {
        due_ns += args.every;
        if wait(due_ns, signals)? {
            return Ok(());
        }
        let sample = read(tc)?;
        let (time_ns, cost_ns) = (sample.time_ns, sample.cost_ns);
        model.take(sample);
        name_pods(&mut model, &of_files);
        if let Some(poll) = &poll {
            model.take_reservations(poll.latest());
        } else if !once.is_empty() {
            model.take_reservations(ask(&once));
        }
        let mut out = output::out();
        if args.json {
            let json = Json {
                format: "pspacer-top-1",
                time_ns,
                cost_ns,
                devices: model.devices(),
                qdiscs: model.ports(),
                classes: model.rows(),
                overview: model.reservations().cloned(),
            };
            serde_json::to_writer(&mut out, &json)?;
            writeln!(out)?;
        } else {
            write!(
                out,
                "{}",
                top::text(&model, &View::default(), style().width)?
            )?;
        }
        out.flush()?;
        if args.once {
            return Ok(());
        }
    }
}

fn screen(
    args: &TopArgs,
    poll: Option<&Poll>,
    tc: &mut Tc,
    signals: &Signals,
    terminal: &mut DefaultTerminal,
) -> Result<()> {
    let of_files = names();
    let (mut model, mut view) = (Model::named(of_files.clone()), View::default());
    let mut due_ns = monotonic_ns()?;
    while !view.is_over {
        if monotonic_ns()? >= due_ns {
            due_ns += args.every;
            let sample = read(tc)?;
            // A pause shows what was there; samples that are not taken make no rates of gaps.
            if !view.is_paused {
                model.take(sample);
                name_pods(&mut model, &of_files);
                if let Some(poll) = poll {
                    model.take_reservations(poll.latest());
                }
            }
        }
        terminal.draw(|frame| draw(frame, &model, &view))?;
        let left_ns = due_ns.saturating_sub(monotonic_ns()?).min(LOOK_EVERY_NS);
        if event::poll(Duration::from_nanos(left_ns))? {
            view.is_over = interrupts(&event::read()?, &mut view, &model);
        }
        view.is_over |= signals.came()?;
    }
    Ok(())
}

/// Gives a key to the view; returns whether the user ends it.
fn interrupts(event: &Event, view: &mut View, model: &Model) -> bool {
    let Event::Key(key) = event else {
        return view.is_over;
    };
    if key.kind != KeyEventKind::Press {
        return view.is_over;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
        return true;
    }
    let key = match key.code {
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return view.is_over,
    };
    let rows = view.shown(model.rows()).len();
    view.press(key, rows);
    view.is_over
}
