// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads whose end is reported, so that an agent does not live on without one of them.

use std::thread::{panicking, spawn};

/// Calls a function when a thread ends, however it ends.
struct Ending<F: FnOnce(String)> {
    report: Option<(String, F)>,
    /// A panic alone is reported.
    may_end: bool,
}

impl<F: FnOnce(String)> Drop for Ending<F> {
    fn drop(&mut self) {
        let Some((what, report)) = self.report.take() else {
            return;
        };
        if !self.may_end || panicking() {
            report(what);
        }
    }
}

/// Starts a thread that runs as long as the agent: its end is reported with its name.
pub(crate) fn spawn_needed(
    what: String,
    report: impl FnOnce(String) + Send + 'static,
    run: impl FnOnce() + Send + 'static,
) {
    start(what, report, false, run);
}

/// Starts a thread that does one thing: a panic of it is reported.
pub(crate) fn spawn_short(
    what: String,
    report: impl FnOnce(String) + Send + 'static,
    run: impl FnOnce() + Send + 'static,
) {
    start(what, report, true, run);
}

fn start(
    what: String,
    report: impl FnOnce(String) + Send + 'static,
    may_end: bool,
    run: impl FnOnce() + Send + 'static,
) {
    let ending = Ending {
        report: Some((what, report)),
        may_end,
    };
    spawn(move || {
        let _ending = ending;
        run();
    });
}

#[cfg(test)]
#[allow(clippy::panic, reason = "a thread that panics")]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_end_of_a_thread_is_reported() {
        type Start = fn(String, Box<dyn FnOnce(String) + Send>, Box<dyn FnOnce() + Send>);
        let needed: Start = |what, report, run| spawn_needed(what, report, run);
        let short: Start = |what, report, run| spawn_short(what, report, run);
        for (start, panics, expected) in [
            (needed, false, Some("a")),
            (needed, true, Some("a")),
            (short, true, Some("a")),
            (short, false, None),
        ] {
            let (sender, ended) = channel();
            let report = move |what: String| sender.send(what).unwrap();
            start(
                "a".to_owned(),
                Box::new(report),
                Box::new(move || {
                    if panics {
                        panic!("as the test wants it");
                    }
                }),
            );
            // Without a report the channel closes.
            assert_eq!(ended.recv().ok().as_deref(), expected, "{panics}");
        }
    }
}
