// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each device has sent since the sample before, beside what psp counted of that.

use serde::Serialize;
use tcpsp::account::{Sent, Traffic};

use crate::model::{Model, Sample};

/// What a device sent since the sample before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceRow {
    pub device: String,
    /// What it sent, as its driver counts.
    pub sent: Traffic,
    /// What psp counted: classes, frames of no class, and gap frames.
    pub counted: Traffic,
    /// Of that what no rule claims: the default class, and none. `None`: there is no other class.
    pub unmatched: Option<Traffic>,
    /// What left past psp; nothing within the tolerance of [`tcpsp::account`].
    pub bypassed: Traffic,
}

impl DeviceRow {
    /// Returns what a person should see of it; empty if all is well.
    pub(crate) fn words(&self) -> String {
        let mut words = String::new();
        if let Some(unmatched) = self.unmatched.filter(|of| of.frames > 0) {
            let percent = unmatched.bytes as f64 * 100.0 / self.counted.bytes.max(1) as f64;
            words += &format!(", {percent:.1} % without a rule");
        }
        if self.bypassed.frames > 0 {
            words += &format!(", {} frames PAST psp", self.bypassed.frames);
        }
        words
    }
}

impl Model {
    /// Returns the devices, by name; none before the second sample, and none whose counters began
    /// anew. O(classes).
    pub fn devices(&self) -> Vec<DeviceRow> {
        let (Some(last), Some(before)) = (self.last(), self.before()) else {
            return Vec::new();
        };
        let of = |sample: &Sample, name: &str| {
            Sent::new(sample.ports.iter().filter(|port| port.device == name))
        };
        let mut names: Vec<&str> = last.ports.iter().map(|port| port.device.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let rows = names.into_iter().filter_map(|name| {
            let account = of(last, name)?.since(&of(before, name)?)?;
            Some(DeviceRow {
                device: name.to_owned(),
                sent: account.device,
                counted: account.counted,
                unmatched: account.unmatched,
                bypassed: account.bypassed(),
            })
        });
        rows.collect()
    }
}
