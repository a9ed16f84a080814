// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the laboratory's progress on standard error, a line for each step.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use vmlab::{Event, Progress};

/// Prints each step when it begins.
#[derive(Default)]
pub struct Notes {
    printed: Mutex<BTreeSet<String>>,
}

impl Notes {
    fn once(&self, text: String) {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.insert(text.clone()) {
            eprintln!("{text}");
        }
    }
}

impl Progress for Notes {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::Lists { set } => self.once(format!("asking the archive for {set}")),
            Event::Download { set, .. } => self.once(format!("downloading {set}")),
            Event::Unpack { set, .. } => self.once(format!("unpacking {set}")),
            Event::Build { what } => eprintln!("building {what}"),
            Event::Boot { boot, .. } => eprintln!("guest {boot}: booting"),
            Event::BootEnd { boot, ok: false } => eprintln!("guest {boot}: failed"),
            Event::Note { text } => eprintln!("{text}"),
            Event::BootEnd { .. } | Event::Cell { .. } | Event::Output { .. } => {}
        }
    }
}
