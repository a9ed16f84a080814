// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows progress on standard error: bars on a terminal. Elsewhere a line for each step, and another
//! one when the step goes on for long.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lab_run::progress::Progress;
use vmlab::Event;

use crate::output;
use crate::terminal;

/// Shows the progress of the laboratory and the simulator.
pub struct Bars {
    multi: MultiProgress,
    terminal: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bars: HashMap<String, ProgressBar>,
    /// When each step was last reported, where there is no terminal.
    said: HashMap<String, Instant>,
}

const PLAIN: &str = "{spinner} {msg}";
const COUNT: &str = "{spinner} {msg:32!} {bar:30} {pos}/{len}";
const BYTES: &str = "{spinner} {msg:32!} {bar:30} {bytes}/{total_bytes} {bytes_per_sec}";
const SHARE: &str = "{spinner} {msg:32!} {bar:30} {percent} %";

const STEPS: &str = "{spinner} {msg:12} {bar:40} {percent:>3} % {eta:>5}";

/// Key of the step that [`Bars::begin`] shows.
const WORK: &str = "work";

/// Steps of a cell's bar: tenths of a per cent.
const CELL_STEPS: f64 = 1000.0;

/// Time after which a step that goes on is reported again, where there is no terminal.
const SILENCE: Duration = Duration::from_secs(15);

fn style(template: &str) -> ProgressStyle {
    // The templates above are constants; the default is used if one is invalid.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Bars {
    /// Shows progress on standard error.
    pub fn new() -> Self {
        Self {
            multi: MultiProgress::new(),
            terminal: std::io::stderr().is_terminal(),
            state: Mutex::default(),
        }
    }

    fn step(&self, key: String, message: &str, template: &str, done: u64, total: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.terminal {
            let now = Instant::now();
            match state.said.get(&key) {
                Some(last) if now.duration_since(*last) < SILENCE => return,
                Some(_) => output::note(&format!("{message}: {} %", done * 100 / total.max(1))),
                None => output::note(message),
            }
            state.said.insert(key, now);
            return;
        }
        let bar = state.bars.entry(key).or_insert_with(|| {
            let bar = self.multi.add(ProgressBar::new(total));
            bar.set_style(style(template));
            bar.set_message(message.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        bar.set_length(total);
        bar.set_position(done);
        if done >= total {
            bar.finish_and_clear();
        }
    }

    /// Shows a step of which nobody knows how long it takes. It ends the one before.
    fn begin(&self, message: &str) {
        self.end(WORK);
        self.step(WORK.into(), message, PLAIN, 0, 1);
    }

    fn end(&self, key: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.said.remove(key);
        if let Some(bar) = state.bars.remove(key) {
            bar.finish_and_clear();
        }
    }
}

impl vmlab::Progress for Bars {
    fn event(&self, event: &Event<'_>) {
        if terminal::is_quiet() {
            return;
        }
        match *event {
            Event::Lists { set } => {
                self.begin(&format!("asking the archive for {set}"));
            }
            Event::Download {
                set,
                done_bytes,
                total_bytes,
            } => {
                self.end(WORK);
                let message = format!("downloading {set}");
                self.step(message.clone(), &message, BYTES, done_bytes, total_bytes);
            }
            Event::Unpack { set, done, total } => {
                let message = format!("unpacking {set}");
                self.step(message.clone(), &message, COUNT, done as u64, total as u64);
            }
            Event::Build { what } => {
                self.begin(&format!("building {what}"));
            }
            Event::Boot {
                boot,
                first_cell,
                cells,
            } => {
                self.end(WORK);
                let message = match cells {
                    1 => format!("guest {boot}: booting for cell {first_cell}"),
                    n => format!(
                        "guest {boot}: booting for cells {first_cell} to {}",
                        first_cell + n - 1
                    ),
                };
                self.step(format!("boot {boot}"), &message, PLAIN, 0, 1);
            }
            Event::Cell { boot, cell, done } => {
                self.end(&format!("boot {boot}"));
                let message = format!("guest {boot}: cell {cell}");
                // The value is between 0 and `CELL_STEPS`.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let position = (done.clamp(0.0, 1.0) * CELL_STEPS) as u64;
                self.step(
                    message.clone(),
                    &message,
                    SHARE,
                    position,
                    CELL_STEPS as u64,
                );
            }
            Event::BootEnd { boot, ok } => {
                self.end(&format!("boot {boot}"));
                if !ok && !self.terminal {
                    output::note(&format!("guest {boot}: failed"));
                }
            }
            Event::Note { text } => {
                self.multi.suspend(|| output::note(text));
            }
            // New output files are not displayed.
            Event::Output { .. } => {}
        }
    }
}

impl Progress for Bars {
    fn steps(&self, what: &str, done: u64, total: u64) {
        if self.terminal && !terminal::is_quiet() {
            self.step(what.to_owned(), what, STEPS, done, total);
        }
    }

    fn clear(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, bar) in state.bars.drain() {
            bar.finish_and_clear();
        }
    }
}
