// SPDX-License-Identifier: MIT OR Apache-2.0
//! What classes counted beside what their device sent, and what the kernel's tables say of why it may
//! differ. Pure; needs no tap.

use serde::{Deserialize, Serialize};
use units::ethernet;

use crate::ClassType;
use crate::ports::Port;

/// An interface or a cgroup that a rule names by a number that is no longer its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Renewed {
    pub what: Renewable,
    /// Of a cgroup its path.
    pub name: String,
    pub number_in_force: u64,
    /// The number that it has; 0: it is gone.
    pub number: u64,
}

/// What has another number once it is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Renewable {
    Interface,
    Cgroup,
}

/// Why packets may not come to the class that the file gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reasons {
    /// Filters and programs of others that are asked before the classifier.
    pub taken_by: Vec<String>,
    /// Interfaces that were made anew.
    pub renewed: Vec<Renewed>,
    /// What keeps the packets of classes and is not as `apply` makes it.
    pub amiss: Vec<String>,
}

/// Frames and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    pub frames: u64,
    /// Bytes, without FCS.
    pub bytes: u64,
}

impl Traffic {
    fn add(&mut self, frames: u64, bytes: u64) {
        self.frames += frames;
        self.bytes += bytes;
    }

    fn since(self, before: Self) -> Option<Self> {
        Some(Self {
            frames: self.frames.checked_sub(before.frames)?,
            bytes: self.bytes.checked_sub(before.bytes)?,
        })
    }
}

/// What a device and its psp have counted at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// What the device sent, as its driver counts.
    pub device: Traffic,
    /// What psp counted: classes, frames of no class, and gap frames.
    pub counted: Traffic,
    /// Of that what no rule claims: the default class, and frames of no class. `None`: there is no
    /// class beside the default, so no rule.
    pub unmatched: Option<Traffic>,
    /// Frames that wait where they may have been counted already.
    pub waiting_frames: u64,
    /// Bytes that the kernel counts of the qdiscs: they begin anew with another qdisc, also where
    /// programs count the rest.
    #[serde(default)]
    pub qdisc_bytes: u64,
    /// Frames that classes counted.
    #[serde(default)]
    pub class_frames: u64,
}

/// What became of what a device sent between two instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// What the device sent.
    pub device: Traffic,
    pub counted: Traffic,
    /// Of that what no rule claims; `None`: there are no rules.
    pub unmatched: Option<Traffic>,
    /// Frames by which the two may differ.
    pub tolerance_frames: u64,
}

/// Frames that may be on their way between the counters of psp and the device, at each end.
const FRAMES_ON_THE_WAY: u64 = 8;
/// One frame of so many may be sent while counters are read, one after the other.
const FRAMES_PER_SLACK: u64 = 100;

impl Sent {
    /// Sums up the psp qdiscs of a device; `None` if there is none. Groups hold classes, so they are
    /// left out. O(classes).
    pub fn new<'a>(ports: impl IntoIterator<Item = &'a Port>) -> Option<Self> {
        let mut sent: Option<Self> = None;
        for port in ports {
            let sent = sent.get_or_insert_default();
            sent.take(port);
        }
        sent
    }

    fn take(&mut self, port: &Port) {
        self.device = Traffic {
            frames: port.device_frames,
            bytes: port.device_bytes,
        };
        self.waiting_frames += u64::from(port.counters.waiting_packets);
        self.qdisc_bytes += port.counters.sent_bytes;
        let stats = &port.psp.stats;
        let overhead = u64::from(ethernet::WIRE_OVERHEAD_BYTES);
        let bytes = |wire_bytes: u64, frames: u64| {
            wire_bytes.saturating_sub(frames.saturating_mul(overhead))
        };
        let (mut frames, mut wire_bytes) = (stats.sent_frames, stats.sent_wire_bytes);
        let mut of_default = Traffic::default();
        let mut has_others = false;
        for class in &port.classes {
            if class.psp.options.class_type() == ClassType::Group {
                continue;
            }
            let counters = &class.counters;
            self.class_frames += class.psp.stats.sent_frames;
            self.counted
                .add(class.psp.stats.sent_frames, counters.sent_bytes);
            frames = frames.saturating_sub(class.psp.stats.sent_frames);
            wire_bytes = wire_bytes.saturating_sub(class.psp.stats.sent_wire_bytes);
            if class.id.minor() == port.psp.options.default_minor {
                of_default.add(class.psp.stats.sent_frames, counters.sent_bytes);
            } else {
                has_others = true;
            }
        }
        // What is left of the qdisc's is of no class.
        self.counted.add(frames, bytes(wire_bytes, frames));
        of_default.add(frames, bytes(wire_bytes, frames));
        let gaps = stats.gap_frames;
        self.counted.add(gaps, bytes(stats.gap_wire_bytes, gaps));
        if has_others {
            let unmatched = self.unmatched.get_or_insert_default();
            unmatched.add(of_default.frames, of_default.bytes);
        }
    }

    /// Returns whether a qdisc or a class began anew since: it was taken away and put back. Those
    /// that have sent as much as the ones before look like them.
    pub const fn began_anew_since(&self, before: &Self) -> bool {
        self.qdisc_bytes < before.qdisc_bytes || self.class_frames < before.class_frames
    }

    /// Returns what was sent since; `None` if a counter began anew.
    pub fn since(&self, before: &Self) -> Option<Account> {
        let device = self.device.since(before.device)?;
        let unmatched = match (self.unmatched, before.unmatched) {
            (Some(now), Some(before)) => Some(now.since(before)?),
            _ => None,
        };
        Some(Account {
            device,
            counted: self.counted.since(before.counted)?,
            unmatched,
            tolerance_frames: 2 * FRAMES_ON_THE_WAY
                + before.waiting_frames
                + device.frames / FRAMES_PER_SLACK,
        })
    }
}

impl Account {
    /// Returns what left the device past psp; nothing within the tolerance. Frames decide: drivers
    /// differ in the bytes that they count of one. Bursts that the driver counts as one hide as many.
    pub fn bypassed(&self) -> Traffic {
        let frames = self.device.frames.saturating_sub(self.counted.frames);
        if frames <= self.tolerance_frames {
            return Traffic::default();
        }
        Traffic {
            frames,
            bytes: self.device.bytes.saturating_sub(self.counted.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn traffic(frames: u64) -> Traffic {
        Traffic {
            frames,
            bytes: frames * 1000,
        }
    }

    #[test]
    fn what_psp_did_not_count_has_bypassed_it() {
        let before = Sent {
            device: traffic(100),
            counted: traffic(50),
            unmatched: Some(traffic(10)),
            waiting_frames: 4,
            ..Sent::default()
        };
        let after = |device, counted| Sent {
            device: traffic(device),
            counted: traffic(counted),
            unmatched: Some(traffic(30)),
            waiting_frames: 0,
            ..Sent::default()
        };
        let account = after(1100, 550).since(&before).unwrap();
        assert_eq!(account.tolerance_frames, 16 + 4 + 10);
        assert_eq!(account.unmatched, Some(traffic(20)));
        assert_eq!(account.bypassed(), traffic(500));
        let within = after(1100, 1020).since(&before).unwrap();
        assert_eq!(within.bypassed(), Traffic::default());
        let beyond = after(1100, 1019).since(&before).unwrap();
        assert_eq!(beyond.bypassed(), traffic(31));
        // psp was made anew.
        assert_eq!(after(1100, 40).since(&before), None);
        assert_eq!(before.since(&after(1100, 550)), None);
    }

    #[test]
    fn what_counts_less_than_before_is_another() {
        let sent = |qdisc_bytes, class_frames| Sent {
            qdisc_bytes,
            class_frames,
            ..Sent::default()
        };
        let before = sent(1000, 10);
        for (now, is_another) in [
            (sent(1000, 10), false),
            (sent(1001, 11), false),
            // A class, or an fq whose program counts on.
            (sent(1500, 9), true),
            (sent(999, 15), true),
            (sent(0, 0), true),
        ] {
            assert_eq!(now.began_anew_since(&before), is_another, "{now:?}");
        }
    }
}
