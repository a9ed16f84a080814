// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps that lose or delay frames on purpose.

use std::fmt::Write;

use scenario::{Impairment, ImpairmentKind};

use super::{Timed, WIRE, Writer};

impl Writer<'_> {
    /// Returns the step that passes all impairments to the cables at once. It follows `zero`,
    /// because their instants count from t = 0.
    pub(super) fn impairments(&mut self, seed: u64) -> Vec<Timed> {
        let impairments = self.cell.impairments.iter().enumerate();
        let lines: Vec<String> = impairments
            .map(|(number, impairment)| {
                // Each impairment has a seed of its own: two with one seed would pick the same
                // frames.
                let seed = seed.wrapping_mul(1 << 16).wrapping_add(number as u64);
                self.impairment(impairment, seed)
            })
            .collect();
        if lines.is_empty() {
            return Vec::new();
        }
        let lines = [vec!["set -e".to_owned()], lines].concat();
        let path = self.file("impair", &lines);
        vec![(None, format!("run sh /{path}"))]
    }

    fn impairment(&self, impairment: &Impairment, seed: u64) -> String {
        let direction = impairment.direction;
        let mut line = format!("echo end={}", direction.end);
        // Writing to a string does not fail.
        let mut key = |name: &str, value: Option<u64>| {
            if let Some(value) = value {
                let _ = write!(line, " {name}={value}");
            }
        };
        if let Some(flow) = impairment.flow.map(|flow| &self.cell.flows[flow]) {
            let (from, to) = if flow.path.contains(&direction) {
                (flow.source_port, flow.port)
            } else {
                (flow.port, flow.source_port)
            };
            key("sport", Some(from.into()));
            key("dport", Some(to.into()));
        }
        let bytes = impairment.bytes.as_ref();
        key("from_byte", bytes.map(|bytes| bytes.start));
        key("to_byte", bytes.map(|bytes| bytes.end));
        key("copies", impairment.copies);
        key("larger_bytes", impairment.larger_bytes);
        key("every", impairment.every);
        key("seed", impairment.every.map(|_| seed));
        match impairment.kind {
            ImpairmentKind::Lost => {}
            ImpairmentKind::Late { by_ns } => key("late_ns", Some(by_ns)),
            ImpairmentKind::Held => key("held", Some(1)),
        }
        let cable = &self.cell.cables[direction.cable].name;
        format!(
            "{line} start_ns=$((ZERO_NS + {})) stop_ns=$((ZERO_NS + {})) > {WIRE}/{cable}/impair",
            impairment.start_ns, impairment.stop_ns
        )
    }
}
